// The provider "custom": ops whose kernel is a function from outside (ir/op/CustomOp.h), each a launch of its own.
#pragma once

#include "passes/cluster/KernelProvider.h"

#include <memory>

namespace tressel::codegen {

std::unique_ptr<passes::KernelProvider> makeCustomProvider();

} // namespace tressel::codegen
