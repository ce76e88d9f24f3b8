// Ops without a record: registered with the runtime (tressel/runtime/CustomOp.h) while the program runs. They come in
// by the same door as the others: an OpInfo.
#pragma once

#include "ir/op/OpInfo.h"
#include "tressel/runtime/CustomOp.h"

#include <string_view>
#include <vector>

namespace tressel::op {

/// Null if there is none.
const OpInfo *findCustomOp(std::string_view name);
/// Makes Tressel's own known, debug.print and debug.assert; the functions here do so at their first call.
void registerDebugOps();
/// In the order of registration. Contexts made later know all of these from the beginning; TresselDialect::nameOf
/// brings in those that come later.
std::vector<const OpInfo *> customOps();

/// What a launch needs to know of one call.
struct CustomWork {
  runtime::CustomCall call;
  Size grain = 1;
};
/// `info.custom` is not null; the types are those `infer` accepted. Throws Error when the op's functions do.
CustomWork customWork(const OpInfo &info, std::span<const TensorType> operands, std::span<const TensorType> results,
                      const Attrs &attrs);

} // namespace tressel::op
