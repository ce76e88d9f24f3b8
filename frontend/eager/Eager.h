// Imperative ops: how a call without a trace finds its code and goes to the engine. docs/eager.md tells it from
// outside.
//
//   runFlat    elementwise ops of operands of one shape, with numbers or single elements among them: no lock, no look
//   at
//              the op's rules, and no memory but the result's. Remembered per thread by op and element types.
//   runEager   everything else: remembered per thread by op, types and attributes; what it falls back to is one kernel
//   for
//              all sizes of a layout class (eager/Kernel.h), or a compiled function (eager/EagerFunction.h).
//
// A call returns when its result has a type and a place in the queue. It never waits for a compiler.
#pragma once

#include "ir/op/OpInfo.h"

#include <tressel/arg.h>

#include <span>

namespace tressel::detail {

/// Runs one op on the engine and fills `results`.
void runEager(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const op::Attr> attrs, SourceLoc where,
              std::span<Tensor> results);

/// True when the call has been handed over. False: it is of another kind, or is traced, or something is wrong with it,
/// which `record` then finds; nothing was done. One to three operands.
bool runFlat(const op::OpInfo &info, std::span<const Arg *const> args, std::span<const op::Attr> attrs, Tensor &result);

/// Forgets kernels and programs that were compiled.
void clearEagerFunctions();

} // namespace tressel::detail
