// What the recorder and jitted functions ask of the debugging tools (tressel/debug.h).
#pragma once

#include <tressel/tensor.h>

#include <span>

namespace tressel::detail {

/// Whether this thread has a CheckNan, or the environment sets TRESSEL_CHECK_NAN.
bool checkingNan();
/// Whether the environment does.
bool checkingNanEverywhere();
/// Waits. Types without NaN and infinities are always finite.
bool isFinite(const Tensor &t, SourceLoc where);
/// Waits, and throws RuntimeError if the op made a NaN of operands without one, or an infinity of finite operands.
void checkResults(const char *op, std::span<const Tensor> operands, std::span<const Tensor> results, SourceLoc where);

} // namespace tressel::detail
