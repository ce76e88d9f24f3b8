// What value_and_grad remembers of the ops of a thread.
#pragma once

#include "ir/op/OpInfo.h"

#include <tressel/tensor.h>

#include <optional>
#include <span>
#include <vector>

namespace tressel::detail {

/// Called after each op while this thread has a tape (ThreadState::tape). Missing attributes get their defaults.
void noteOnTapes(const op::OpInfo &info, std::span<const Tensor> operands, op::Attrs attrs,
                 std::span<const Tensor> results, const std::source_location &where);
/// Called after each op with bodies, see Recorder::pullBack.
void noteControlOnTapes(void *control, std::span<const Tensor> operands, std::span<const Tensor> results,
                        const std::source_location &where);

/// The cotangents of a custom op's operands, from the gradient function that the application registered; empty tensors
/// where zero. `cotangents` are those of the results, and may be empty. nullopt if there is no such function. Throws
/// where it gives anything but tensors of the operands' types.
std::optional<std::vector<Tensor>> customGradient(const op::OpInfo &info, std::span<const Tensor> operands,
                                                  std::span<const Tensor> results, std::span<const Tensor> cotangents,
                                                  SourceLoc where);

} // namespace tressel::detail
