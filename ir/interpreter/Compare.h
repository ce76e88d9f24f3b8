// Compares tensors by the rules that every check against the interpreter uses.
#pragma once

#include "ir/op/OpInfo.h"

#include <string>

namespace tressel::op::interp {

/// Floats agree when |got - want| <= atol + rtol * |want|, or when they are at most `ulps` representable values of their own
/// type apart. NaN equals NaN, infinities equal themselves, -0 equals 0. Integers and bools must be equal.
struct Tolerance {
  double rtol = 0, atol = 0;
  int64_t ulps = 0;
};
/// Bit by bit, except for the sign of zero and the payload of NaN.
inline constexpr Tolerance kExact = {};
/// Differences, by type, that a chain of some dozens of ops may have with reassociated sums and approximated functions.
Tolerance looseTolerance(DType type);

/// "" if equal, else one line: the first index that differs, both values, how many differ and the largest difference;
/// or the types if they differ.
std::string compare(const HostTensor &got, const HostTensor &want, const Tolerance &tolerance = kExact);

} // namespace tressel::op::interp
