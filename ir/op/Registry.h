// The ops of ir/ops, as the generator lists them.
#pragma once

#include "ir/op/OpInfo.h"

namespace tressel::op {
std::span<const OpInfo *const> builtinOps();
} // namespace tressel::op
