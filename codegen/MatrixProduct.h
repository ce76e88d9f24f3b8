// Which contractions are matrix products: read from an op's loop form, never from its name.
#pragma once

#include "ir/op/OpInfo.h"
#include "passes/cluster/KernelProvider.h"

#include <array>
#include <optional>
#include <vector>

namespace tressel::codegen {

/// The single op of a candidate, of two operands and one result, all of one type (f32, f16 or bf16) and of known and
/// not empty shapes.
struct BinaryRoot {
  const op::OpInfo *info;
  op::Attrs attrs;
  std::vector<TensorType> operands;
  TensorType result;
  DType type() const { return result.dtype; }
};
std::optional<BinaryRoot> binaryRootOf(const passes::Candidate &candidate);

/// result[b, m, n] = sum over k of left[b, m, k] * right[b, k, n], where the result is dense. Sizes and strides (of
/// elements) may be symbolic. Where a size is 1, its strides are 0.
struct MatrixProduct {
  Size batch = 1, m = 1, n = 1, k = 1;
  std::array<Size, 3> left{};  ///< strides of batch, m, k
  std::array<Size, 3> right{}; ///< strides of batch, k, n
  int32_t leftOperand = 0, rightOperand = 1;
};

/// Any contraction of two operands whose loops fall into batch, rows, columns and one reduced range that is never
/// empty.
std::optional<MatrixProduct> asMatrixProduct(const BinaryRoot &root);

/// Index into the candidate's inputs of an operand of its only op.
int32_t inputOf(const passes::Candidate &candidate, int32_t operand);

/// A size as the cost models see it.
double hinted(Size size);

} // namespace tressel::codegen
