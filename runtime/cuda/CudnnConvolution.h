// A convolution by cuDNN, with what follows it (CudnnKernel.h), as an operation graph:
//
//   image, weights ─> convolution ─> + residual ─> + bias ─> relu ─> result
//
// What lies between the operations is virtual, in f32: the result is rounded once. The order is that of the library's
// fused convolutions (cudnnConvolutionBiasActivationForward): some engines take no other.
//
// The library's dimensions are batch, channels, space, whatever the layout; strides say what lies where. Weights of a
// program are always [out, in / groups, window...], one element behind the other.
#pragma once

#include "CudnnKernel.h"

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class CudnnConvolution final : public CudnnKernel {
public:
  static constexpr const char *kName = "cudnn"; // codegen/cuda/Library.h

  /// `call` is the library's call in `desc.params`, `params`. Throws InputError when they are no description of one.
  CudnnConvolution(const KernelDesc &desc, const json::Value &params, const json::Value &call,
                   std::shared_ptr<const GpuKernel> generated, const Cudnn &library, Cudnn::CardHandle *handle,
                   const Card &card, const Driver &driver);

private:
  /// A launch's numbers. Lists have an entry per dimension of space.
  struct Numbers {
    int64_t batch = 0;
    std::vector<int64_t> in, out, window, strides, dilations, pad;
  };
  std::optional<Numbers> numbersOf(std::span<const int64_t> scalars) const;
  std::unique_ptr<LibraryKernel::Plan> make(const Key &key, const Call &call) const override;
  void checkElements(const Numbers &numbers, const Call &call) const;
  void describe(CudnnGraph &graph, const Key &key, const Numbers &numbers) const;
  std::string problemOf(const Key &key, const Numbers &numbers) const;
  std::vector<int64_t> stridesOf(const std::vector<int64_t> &dims) const;

  bool channelsLast_ = false;
  int64_t groups_ = 1, inChannels_ = 0, outChannels_ = 0;
  Size batch_;
  std::vector<Size> in_, out_, window_, strides_, dilations_, pad_;
  uint32_t image_ = 0, weights_ = 0;
  std::optional<uint32_t> bias_;
  float alpha_ = 1;
  bool relu_ = false;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
