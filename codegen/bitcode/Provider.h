// The provider "bitcode": bids for single ops that have a KernelForm.
#pragma once

#include "passes/cluster/KernelProvider.h"
#include "tressel/runtime/Cpu.h"

#include <memory>

namespace tressel::codegen {

inline constexpr const char *kBitcodeProvider = "bitcode";
/// Their code is made for the level.
std::unique_ptr<passes::KernelProvider> makeBitcodeProvider(runtime::CpuLevel level);

} // namespace tressel::codegen
