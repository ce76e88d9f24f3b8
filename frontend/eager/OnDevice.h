// Ops on tensors that lie on accelerators.
#pragma once

#include "ir/op/OpInfo.h"

#include <tressel/tensor.h>

#include <span>

namespace tressel::eager {

/// The op runs on the device of the first operand that is on one; operands that lie elsewhere are copied there by the
/// call, and the results stay. Each op, with the types and homes of its operands, is a program of its own, compiled at
/// the first call. Common ops share one with all calls of their layout class (Class.h), whatever the sizes, and their
/// code for GPUs came with Tressel (Prebuilt.h). What has effects, a custom op, and what the device has no kernel for
/// is computed by the host, with copies of the operands, and its results are there.
void runOnDevice(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const op::Attr> attrs,
                 SourceLoc where, std::span<Tensor> results);
void clearDevicePrograms();

} // namespace tressel::eager
