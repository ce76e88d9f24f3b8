// What collectives compute, on memory that the processor can touch.
#pragma once

#include "tressel/runtime/Device.h"

namespace tressel::runtime {

/// The operands of a member's part.
struct CollectiveOperands {
  const void *source = nullptr; ///< null: it has none
  void *target = nullptr;
  int64_t sourceBytes = 0, targetBytes = 0;
};
/// By member. Elements are combined in the members' order, from the first on, in their own type; so the result does not
/// depend on who is ready first. Sources and targets may coincide.
void combine(const CollectiveRun &collective, std::span<const CollectiveOperands> members);

} // namespace tressel::runtime
