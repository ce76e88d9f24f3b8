// Imperative ops: how a call without a trace finds its code and goes to the engine. docs/eager.md tells it from
// outside.
//
//   runFlat    elementwise ops of operands of one shape, with numbers or single elements among them. Takes no lock,
//              asks none of the op's rules, and allocates only the result. Cached per thread by op and element types.
//   runEager   everything else. Cached per thread by op, types and attributes. On a miss: one kernel for all sizes of a
//              layout class (eager/Kernel.h), or a compiled function (eager/EagerFunction.h).
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

/// True when the call has been handed over. False, with nothing done: the call is of another kind, is traced, or is
/// wrong, which `record` then reports. One to three operands.
bool runFlat(const op::OpInfo &info, std::span<const Arg *const> args, std::span<const op::Attr> attrs, Tensor &result);

/// Forgets kernels and programs that were compiled.
void clearEagerFunctions();

} // namespace tressel::detail
