// From NVPTX code to code for the host that computes the same with Thread and its runtime.
#pragma once

#include "codegen/cuda/emulate/Block.h"

#include "llvm/IR/Module.h"

#include <map>
#include <memory>
#include <string>

namespace tressel::codegen::cuda::emulate {

/// The name of the host's function for a kernel.
std::string entryName(const std::string &symbol);
/// Replaces the kernels of an optimized module by functions void(Thread *). What they need to know of the code is put
/// in `codes`, whose addresses the new code contains. Throws Error naming an instruction that is not emulated.
void rewrite(llvm::Module &module, std::map<std::string, std::unique_ptr<Code>> &codes);

} // namespace tressel::codegen::cuda::emulate
