// Ops without a record, registered with the runtime (tressel/runtime/CustomOp.h) while the program runs. Like other ops
// they are represented by an OpInfo.
#pragma once

#include "ir/op/OpInfo.h"
#include "tressel/runtime/CustomOp.h"

#include <string_view>
#include <vector>

namespace tressel::op {

/// Null if there is none.
const OpInfo *findCustomOp(std::string_view name);
/// Registers debug.print and debug.assert. The functions here do so at their first call.
void registerDebugOps();
/// In order of registration. New contexts know all of these; TresselDialect::nameOf adds those registered later.
std::vector<const OpInfo *> customOps();

/// Cost and memory of one call, for a launch.
struct CustomWork {
  runtime::CustomCall call;
  Size grain = 1;
};
/// `info.custom` is not null; the types are those `infer` accepted. Throws Error when the op's functions do.
CustomWork customWork(const OpInfo &info, std::span<const TensorType> operands, std::span<const TensorType> results,
                      const Attrs &attrs);

} // namespace tressel::op
