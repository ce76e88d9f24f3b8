// How near a kernel of one op has to be to the exact result: bounds that follow from what the op computes, not from what its tests
// happen to give.
//
// An elementwise op: its scalar program (ir/op/ScalarProgram.h) is evaluated in long double, each value with the interval that the
// bounds of its primitive functions leave: half a unit in the last place for arithmetic and conversions, and for the others what
// test/unit/codegen/MathTest.cpp holds them to. Where differences cancel, the interval says how much.
// A sum, product of matrices, convolution or pool of sums: against the op in f64, |got - exact| <= c u sum|terms| and the rounding of the
// result, where c is what docs/numbers.md promises. A product of terms: as many roundings as it has terms, relatively.
// What moves, orders or compares: equal.
// All else (norms, softmax, losses, attention): NumPy's tolerances by type, those of test/oracle/numpy_oracle.py, around the op in f64, and
// besides what the reference evaluation itself loses by rounding each of its steps to the type. Attention's tolerance is relative to the average
// of its values' sizes, as its weights are rounded to the type before they are multiplied with.
#pragma once

#include "ir/interpreter/Evaluate.h"
#include "test/support/RandomOps.h"

#include <span>
#include <string>

namespace tressel::test {

/// "" where each result in `got` (one per result of the call) is within its bounds, else one line. `want` is the reference evaluation of the same
/// inputs, which judges whatever is no float. Results without data are not looked at.
std::string outsideBounds(const OpCall &call, std::span<const op::HostTensor> inputs, std::span<const op::HostTensor> got,
                          const op::interp::Evaluation &want);

} // namespace tressel::test
