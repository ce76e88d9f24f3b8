// Who bids for clusters on GPUs: generated loops, and the device library.
#pragma once

#include "codegen/cuda/Arch.h"
#include "codegen/cuda/Kernel.h"
#include "passes/KernelProvider.h"

#include <memory>

namespace tressel::codegen::cuda {

/// Names of providers in the graph; in the schedule both are kCudaProvider.
inline constexpr const char *kLoopProvider = "cuda", *kRootProvider = "cuda.library";
inline constexpr const char *kCudaProvider = "cuda";
inline bool isCuda(llvm::StringRef provider) { return provider == kLoopProvider || provider == kRootProvider; }

std::unique_ptr<passes::KernelProvider> makeLoopProvider(const Arch &arch);
std::unique_ptr<passes::KernelProvider> makeRootProvider(const Arch &arch);

/// KernelDesc::params of a kernel: {"threads":128,"operands":3,"scalars":0}. The range is the number of blocks.
std::string launchParams(const Kernel &kernel);

} // namespace tressel::codegen::cuda
