// An op as one loop nest: the interface through which clustering and code generation see elementwise ops, broadcasts,
// reductions, contractions, windows and data movement. An op without a loop form (sort, for example) has a kernel form.
#pragma once

#include "ir/op/ScalarProgram.h"
#include "tressel/runtime/Types.h"

#include <cstdint>
#include <vector>

namespace tressel::op {

/// offset + sum of coefficient * domain index, optionally plus the run-time value of another operand.
struct IndexExpr {
  struct Term {
    int32_t dim;
    Size coef;
  };
  std::vector<Term> terms;
  Size offset;
  /// >= 0: the value of operand number `indirect`, read at its own map, is added (gather). Negative values count
  /// from the end of the operand's dimension; a value outside fails the launch with kKernelIndexOutOfRange.
  int32_t indirect = -1;
};

/// One expression per dimension of the operand.
struct OperandMap {
  std::vector<IndexExpr> dims;
  /// The index may fall outside the operand: then this operand's value is `outside` (padding), or, when the op's
  /// operands are `alternatives`, the next operand is tried (concat).
  bool guarded = false;
  double outside = 0;
};

enum class Combine : uint8_t { None, Sum, Prod, Max, Min, Any, All, ArgMax, ArgMin };

/// The domain is the result's dimensions in order, `numParallel` of them, followed by the reduced ones. For
/// each parallel point the body is evaluated over all reduced points and combined. Results have no other layout: a
/// reduction with kept dims has unit dims in the domain. ArgMax and ArgMin give the first index along the one reduced
/// dimension; Max and Min propagate NaN. Sum of f16 and bf16 accumulates in f32.
struct LoopForm {
  std::vector<Size> domain;
  int32_t numParallel = 0;
  std::vector<OperandMap> operands;
  bool alternatives = false; ///< body is the first operand whose guard holds
  ScalarProgram body;        ///< over the operands' values; computes in f32 for f16 and bf16
  Combine combine = Combine::None;
  double scale = 1;          ///< the combined value is multiplied by it (average pooling)
  Size divisor = 1;          ///< and by the reciprocal of this size (mean)
};

} // namespace tressel::op
