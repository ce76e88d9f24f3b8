// The provider "prebuilt": bids for single ops that have a KernelForm.
#pragma once

#include "passes/KernelProvider.h"

#include <memory>

namespace tressel::codegen {

inline constexpr const char *kPrebuiltProvider = "prebuilt";
std::unique_ptr<passes::KernelProvider> makePrebuiltProvider();

} // namespace tressel::codegen
