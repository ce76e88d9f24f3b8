// The provider "generated": runs whatever ops share one loop nest.
#pragma once

#include "codegen/cpu/Target.h"
#include "passes/cluster/KernelProvider.h"

#include <memory>

namespace tressel::codegen {

/// `target` must outlive the provider.
std::unique_ptr<passes::KernelProvider> makeGeneratedProvider(const Target &target);

} // namespace tressel::codegen
