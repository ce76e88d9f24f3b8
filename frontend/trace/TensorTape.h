// What value_and_grad remembers of the ops of a thread.
#pragma once

#include "ir/op/OpInfo.h"

#include <tressel/tensor.h>

#include <span>

namespace tressel::detail {

/// After each op while this thread has a tape (ThreadState::tape). Missing attributes have their defaults.
void noteOnTapes(const op::OpInfo &info, std::span<const Tensor> operands, op::Attrs attrs, std::span<const Tensor> results);

} // namespace tressel::detail
