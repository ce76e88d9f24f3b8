// Derivatives of scalar programs, for the gradients of elementwise ops.
#pragma once

#include "ir/op/ScalarProgram.h"

#include <optional>

namespace tressel::op {

/// The partial derivative of `program` in operand `operand`, as a program over the same operands with a result of the
/// same type. Nothing where it is zero everywhere: the operand or the result is no float, or no path between them is
/// differentiable (floor, comparisons, conversions to integers).
///
/// Every scalar op has its rule, written in terms of the op's result where that is cheaper or more exact: exp(x) is the
/// slope of exp(x). Where there is no derivative, the slope is one of those on either side, or between them: 0 for abs
/// at 0; a half each for min and max of equal operands, but 0 against a constant (relu at 0). A `select` has the slope
/// of the branch it takes; an infinite or undefined slope of the other one does not reach the result.
///
/// This is the slope of the formula. Where the formula has a kink but the function has none (softplus at 0, whose
/// fragment contains |x|), the slope at that point is wrong, and the op needs a rule of its own.
std::optional<ScalarProgram> slopeOf(const ScalarProgram &program, int operand);

} // namespace tressel::op
