// Ops on tensors that lie on accelerators.
#pragma once

#include "ir/op/OpInfo.h"

#include <tressel/tensor.h>

#include <span>

namespace tressel::eager {

/// The op runs on the device of the first operand that is on an accelerator. Operands elsewhere are copied there, and
/// the results stay there. Each op, with the types and homes of its operands, is a program of its own, compiled at the
/// first call. Common ops have one program per layout class (Class.h), for all sizes, and the GPU code of these comes
/// with Tressel (Prebuilt.h). The host computes ops with effects, custom ops, and ops that the device has no kernel
/// for: their operands are copied, and their results are on the host.
void runOnDevice(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const op::Attr> attrs,
                 SourceLoc where, std::span<Tensor> results);
void clearDevicePrograms();

} // namespace tressel::eager
