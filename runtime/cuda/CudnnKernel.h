// What kernels share that cuDNN computes (LibraryKernel.h): an operation graph for each set of sizes, the engines that
// the library proposes for it, and launches of the one that is chosen. The graphs are those of CudnnConvolution and
// CudnnAttention.
//
// Engines that round inputs of f32 to fewer bits, that transform windows (Winograd, FFT), that add up in fewer bits
// than f32 or in an order that changes are left alone: results are held to bounds of u * sum|terms|, and are the same
// each time.
#pragma once

#include "CudnnGraph.h"
#include "LibraryKernel.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class CudnnKernel : public LibraryKernel {
public:
  /// Ids of tensors: the result, a residual that may be where the result is; others are larger.
  static constexpr int64_t kResult = 1, kResidual = 2;

  bool run(const LibraryKernel::Plan &plan, const Call &call) const final;

protected:
  static constexpr const char *kChoices = "cudnn";
  using Describe = std::function<void(CudnnGraph &)>;

  /// `computes`: "convolution".
  CudnnKernel(const char *computes, const KernelDesc &desc, std::shared_ptr<const GpuKernel> generated,
              const Cudnn &library, Cudnn::CardHandle *handle, const Card &card, const Driver &driver);
  static std::optional<dnn::DataType> dataType(DType type);
  /// With a note: the result lies over an operand, other than a residual in its place, which the library may read
  /// later.
  bool writesWhatItReads(const Call &call) const;
  /// The plan for what `describe` puts into a graph. `problem` names it among choices, `words` in a note.
  std::unique_ptr<LibraryKernel::Plan> planOf(const Call &call, const std::string &problem, const std::string &words,
                                              const Describe &describe) const;

  const Cudnn &library_;
  DType type_ = f32;
  uint32_t result_ = 0;
  std::optional<uint32_t> residual_;                ///< may be where the result is
  std::vector<std::pair<int64_t, uint32_t>> reads_; ///< ids and operands
  std::vector<std::pair<int64_t, float>> numbers_;  ///< ids and values of what is passed by value

private:
  struct Plan;
  struct Candidate;
  void choose(Plan &plan, const std::string &problem, const std::string &words, const Call &call) const;
  void propose(const Plan &plan, dnn::HeuristicMode mode, size_t wanted, size_t workspaceBytes,
               std::vector<Candidate> &found) const;
  bool serves(const CudnnDescriptor &engine) const;
  std::optional<Candidate> build(CudnnDescriptor config, std::string name, size_t workspaceBytes) const;
  std::optional<Candidate> rebuild(const Plan &plan, const std::string &name, size_t workspaceBytes) const;
  dnn::Status execute(const Candidate &candidate, const Call &call, void *result) const;

  const char *const computes_;
  Cudnn::CardHandle &handle_;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
