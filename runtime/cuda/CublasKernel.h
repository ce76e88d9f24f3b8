// A matrix product by cuBLASLt, with what follows it (LibraryKernel.h).
//
// The library stores matrices by columns, a program by rows. The rows of a product's result R = X Y are the columns of
// R^T = Y^T X^T: that is what the library is asked for, with the right operand first. A bias for each column of R is
// then one for each row, as the library takes it.
#pragma once

#include "CublasLt.h"
#include "LibraryKernel.h"

#include <array>
#include <memory>
#include <optional>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class CublasKernel final : public LibraryKernel {
public:
  static constexpr const char *kName = "cublaslt"; // codegen/cuda/Library.h

  /// `call` is the library's call in `desc.params`, `params`. Throws InputError when they are no description of one.
  CublasKernel(const KernelDesc &desc, const json::Value &params, const json::Value &call,
               std::shared_ptr<const GpuKernel> generated, const CublasLt &library, lt::Handle handle, const Card &card,
               const Driver &driver);
  bool run(const LibraryKernel::Plan &plan, const Call &call) const override;

private:
  struct Plan;
  struct Side {
    uint32_t buffer = 0;
    std::array<Size, 3> strides; ///< of batch, rows, columns
  };
  /// A launch's numbers.
  struct Numbers {
    int64_t batch = 0, m = 0, n = 0, k = 0;
    std::array<int64_t, 3> left{}, right{};
  };
  std::optional<Numbers> numbersOf(std::span<const int64_t> scalars) const;
  std::unique_ptr<LibraryKernel::Plan> make(const Key &key, const Call &call) const override;
  void choose(Plan &plan, const Key &key, const Numbers &numbers, const Call &call) const;
  lt::Status multiply(const Plan &plan, const lt::Algorithm &algorithm, const Call &call, void *result) const;
  void checkBytes(const Numbers &numbers, const Call &call) const;
  void check(lt::Status status, const char *what) const;
  std::string problemOf(const Key &key, const Numbers &numbers) const;

  const CublasLt &library_;
  const lt::Handle handle_;
  DType type_ = f32;
  Size batch_, m_, n_, k_;
  Side left_, right_;
  uint32_t result_ = 0;
  std::optional<uint32_t> bias_, residual_;
  float alpha_ = 1;
  bool relu_ = false;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
