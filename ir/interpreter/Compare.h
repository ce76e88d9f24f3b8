// Compares tensors: how every check against the interpreter decides.
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
/// Bit for bit but for the sign of zero and the kind of NaN.
inline constexpr Tolerance kExact = {};
/// What a chain of a few dozen ops may differ by when sums are reassociated and functions are approximated, by type.
Tolerance looseTolerance(DType type);

/// "" when equal, else one line: the first differing index, both values, how many differ and the largest difference; or the
/// types when they differ.
std::string compare(const HostTensor &got, const HostTensor &want, const Tolerance &tolerance = kExact);

} // namespace tressel::op::interp
