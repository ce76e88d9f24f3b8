// Attention by cuDNN (CudnnKernel.h), as the operation graph by which its engines know it:
//
//   q, k^T ─> product ─> * scale ─> + mask ─> where row >= column, else hidden ─> scores
//   scores ─> largest of each row ─> e^(scores - largest) ─> / sum of each row ─> weights, rounded ─> product with v
//
// and the logarithm of each sum plus the row's largest, which nothing reads: without it engines do not take the graph.
// All that is between is virtual. The dimensions are batch, heads, rows, columns. k and v may have fewer heads, each
// for neighbours among those of q. A mask is added; one of bools is not the library's.
//
// This is the form of NVIDIA's cudnn-frontend for all versions from 9.0 on. The library's own operation for attention
// (9.13 on) takes neither masks nor causality before 9.21.
#pragma once

#include "CudnnKernel.h"

#include <array>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class CudnnAttention final : public CudnnKernel {
public:
  static constexpr const char *kName = "cudnn.attention"; // codegen/cuda/Library.h

  /// `call` is the library's call in `desc.params`, `params`. Throws InputError when they are no description of one.
  CudnnAttention(const KernelDesc &desc, const json::Value &params, const json::Value &call,
                 std::shared_ptr<const GpuKernel> generated, const Cudnn &library, Cudnn::CardHandle *handle,
                 const Card &card, const Driver &driver);

private:
  struct Mask {
    uint32_t operand = 0;
    bool byBatch = false, byHead = false, byQuery = false; ///< false: it is the same for all
  };
  /// Sizes. Groups: heads of k and v.
  enum Dim : uint8_t { kBatch, kHeads, kGroups, kQueries, kKeys, kSize, kWidth, kDims };
  using Numbers = std::array<int64_t, kDims>; ///< of a launch
  std::optional<Numbers> numbersOf(std::span<const int64_t> scalars) const;
  std::unique_ptr<LibraryKernel::Plan> make(const Key &key, const Call &call) const override;
  /// With a note: the library does not take it.
  bool isRefused(const Key &key, const Numbers &numbers) const;
  void checkElements(const Numbers &numbers, const Call &call) const;
  void describe(CudnnGraph &graph, const Numbers &numbers) const;
  std::array<int64_t, 4> maskDims(const Numbers &numbers) const;
  std::string problemOf(const Key &key, const Numbers &numbers) const;

  std::array<Size, kDims> dims_;
  uint32_t q_ = 0, k_ = 0, v_ = 0;
  std::optional<Mask> mask_;
  bool causal_ = false;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
