// A convolution by cuDNN, with what follows it (LibraryKernel.h), as an operation graph:
//
//   image, weights ─> convolution ─> + residual ─> + bias ─> relu ─> result
//
// What lies between the operations is virtual, in f32: the result is rounded once. The order is that of the library's
// fused convolutions (cudnnConvolutionBiasActivationForward): some engines take no other.
//
// The library's dimensions are batch, channels, space, whatever the layout; strides say what lies where. Weights of a
// program are always [out, in / groups, window...], one element behind the other.
//
// Engines that round inputs of f32 to fewer bits, that transform windows (Winograd, FFT), that add up in fewer bits
// than f32 or in an order that changes are left alone: results are held to bounds of u * sum|terms|, and are the same
// each time.
#pragma once

#include "Cudnn.h"
#include "LibraryKernel.h"

#include <memory>
#include <optional>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class CudnnKernel final : public LibraryKernel {
public:
  static constexpr const char *kName = "cudnn"; // codegen/cuda/Library.h

  /// `call` is the library's call in `desc.params`, `params`. Throws InputError when they are no description of one.
  CudnnKernel(const KernelDesc &desc, const json::Value &params, const json::Value &call,
              std::shared_ptr<const GpuKernel> generated, const Cudnn &library, Cudnn::CardHandle *handle,
              const Card &card, const Driver &driver);
  bool run(const LibraryKernel::Plan &plan, const Call &call) const override;

private:
  struct Plan;
  struct Candidate;
  /// A launch's numbers. Lists have an entry per dimension of space.
  struct Numbers {
    int64_t batch = 0;
    std::vector<int64_t> in, out, window, strides, dilations, pad;
  };
  std::optional<Numbers> numbersOf(std::span<const int64_t> scalars) const;
  std::unique_ptr<LibraryKernel::Plan> make(const Key &key, const Call &call) const override;
  void checkElements(const Numbers &numbers, const Call &call) const;
  void describe(Plan &plan, const Key &key, const Numbers &numbers) const;
  void choose(Plan &plan, const Key &key, const Numbers &numbers, const Call &call) const;
  void propose(const Plan &plan, dnn::HeuristicMode mode, size_t wanted, size_t workspaceBytes,
               std::vector<Candidate> &found) const;
  bool serves(const CudnnDescriptor &engine) const;
  std::optional<Candidate> build(CudnnDescriptor config, std::string name, size_t workspaceBytes) const;
  std::optional<Candidate> rebuild(const Plan &plan, const std::string &name, size_t workspaceBytes) const;
  std::string problemOf(const Key &key, const Numbers &numbers) const;
  dnn::Status execute(const Candidate &candidate, const Call &call, void *result) const;
  std::vector<int64_t> stridesOf(const std::vector<int64_t> &dims) const;

  const Cudnn &library_;
  Cudnn::CardHandle &handle_;
  DType type_ = f32;
  bool channelsLast_ = false;
  int64_t groups_ = 1, inChannels_ = 0, outChannels_ = 0;
  Size batch_;
  std::vector<Size> in_, out_, window_, strides_, dilations_, pad_;
  uint32_t image_ = 0, weights_ = 0, result_ = 0;
  std::optional<uint32_t> bias_, residual_;
  float alpha_ = 1;
  bool relu_ = false;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
