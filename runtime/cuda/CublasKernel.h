// A kernel of a program that cuBLASLt computes: a matrix product with what follows it, as codegen/cuda/Library.h
// describes it. The generated kernel of the same symbol stands beside it, for launches that the library does not take.
//
//   load ──libraryKernel──> CublasKernel ──plan (by sizes and alignments)──> Plan ──run──> cublasLtMatmul on the
//   launch's stream
//                  └──no library───────────────────┐       └──not taken──> the generated kernel
//                                                  └──────────────────────────^
//
// The library stores matrices by columns, a program by rows. The rows of a product's result R = X Y are the columns of
// R^T = Y^T X^T: that is what the library is asked for, with the right operand first. A bias for each column of R is
// then one for each row, as the library takes it.
//
// Which of its algorithms computes a product the library proposes, fastest first by its own estimate. Where they are
// measured (TRESSEL_CUBLAS_TUNE), the choice is kept for the process, and in the folder of caches.
#pragma once

#include "CublasLt.h"
#include "GpuKernel.h"
#include "runtime/files/Json.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class CublasKernel final : public CudaKernel {
public:
  static constexpr size_t kWorkspaceBytes = size_t(32) << 20;

  /// `call` is the library's call in `desc.params`, `params`. Throws InputError when they are no description of one.
  CublasKernel(const KernelDesc &desc, const json::Value &params, const json::Value &call,
               std::shared_ptr<const GpuKernel> generated, const CublasLt &library, lt::Handle handle, const Card &card,
               const Driver &driver);
  ~CublasKernel() override;
  CublasKernel(const CublasKernel &) = delete;

  const GpuKernel &generated() const { return *generated_; }

  /// A launch. The card's context is the thread's.
  struct Call {
    std::span<const Region> regions;
    std::span<const int64_t> scalars;
    StreamHandle stream = nullptr;
    void *workspace = nullptr; ///< of this stream alone; null: there is none
    bool measures = false;     ///< measures the algorithms if no choice is known
  };
  struct Plan;
  //--- Under the machine's lock -------------------------------------------------------------------------------------
  /// What runs such a launch; null: the generated kernel does. The first launch of its sizes may compute the result
  /// several times, to measure that. Throws Error, which names the kernel.
  const Plan *plan(const Call &call) const;
  /// False: the library does not take it after all, and nothing was issued. Throws Error, which names the kernel.
  bool run(const Plan &plan, const Call &call) const;

private:
  struct Side {
    uint32_t buffer = 0;
    std::array<Size, 3> strides; ///< of batch, rows, columns
  };
  /// A launch's numbers.
  struct Numbers {
    int64_t batch = 0, m = 0, n = 0, k = 0;
    std::array<int64_t, 3> left{}, right{};
  };
  /// What plans differ in.
  struct Key {
    std::vector<int64_t> scalars;
    std::array<uint16_t, 5> alignments{}; ///< bytes, of left, right, residual, result, bias
    bool hasWorkspace = false;
    auto operator<=>(const Key &) const = default;
  };
  std::optional<Numbers> numbersOf(std::span<const int64_t> scalars) const;
  Key keyOf(const Call &call) const;
  std::unique_ptr<Plan> make(const Key &key, const Call &call) const;
  void choose(Plan &plan, const Key &key, const Numbers &numbers, const Call &call) const;
  void measure(Plan &plan, std::span<const lt::Candidate> candidates, const Call &call) const;
  lt::Status multiply(const Plan &plan, const lt::Algorithm &algorithm, const Call &call, void *result) const;
  void checkBytes(const Numbers &numbers, const Call &call) const;
  void check(lt::Status status, const char *what) const;
  void noteGenerated(std::string_view why) const;
  std::string problemOf(const Key &key, const Numbers &numbers) const;

  const std::string symbol_;
  const std::shared_ptr<const GpuKernel> generated_;
  const CublasLt &library_;
  const lt::Handle handle_;
  const Card &card_;
  const Driver &driver_;
  DType type_ = f32;
  Size batch_, m_, n_, k_;
  Side left_, right_;
  uint32_t result_ = 0;
  std::optional<uint32_t> bias_, residual_;
  float alpha_ = 1;
  bool relu_ = false;
  std::vector<Size> symbols_; ///< whose values a launch's scalars are
  mutable std::map<Key, std::unique_ptr<Plan>> plans_;
};

/// The kernel as this card runs it: a CublasKernel if `desc` describes a call of cuBLASLt and the library is there,
/// else `generated`, with a note for what the description names and is missing.
DeviceKernelRef libraryKernel(const KernelDesc &desc, std::shared_ptr<const GpuKernel> generated, const Card &card,
                              const Driver &driver);

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
