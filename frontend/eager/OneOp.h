// A program of one op, as a trace.
#pragma once

#include "codegen/OpKernel.h"
#include "frontend/trace/Trace.h"

#include <span>
#include <vector>

namespace tressel::eager {

/// Records the call, with its operands as the program's inputs in order, and gives its results. Records no line, as the
/// program serves calls from anywhere. `homes`: TensorImpl::home of the inputs; none: all are on the host. Throws Error
/// where the op's rules refuse the types.
std::vector<Tensor> recordOp(detail::TraceRecorder &recorder, const codegen::OpCall &call,
                             std::span<const uint32_t> homes = {});

} // namespace tressel::eager
