// Who bids for clusters on GPUs: generated loops, and the device library.
#pragma once

#include "codegen/cuda/target/Arch.h"
#include "codegen/cuda/loops/Kernel.h"
#include "passes/cluster/KernelProvider.h"

#include <memory>

namespace tressel::codegen::cuda {

/// Names of providers in the graph; in the schedule both are kCudaProvider.
inline constexpr const char *kLoopProvider = "cuda", *kRootProvider = "cuda.kernels";
inline constexpr const char *kCudaProvider = "cuda";
/// The least time of a kernel on a GPU, which fusing saves: typical.
inline constexpr double kLaunchSeconds = 3e-6;

std::unique_ptr<passes::KernelProvider> makeLoopProvider(const Arch &arch);
std::unique_ptr<passes::KernelProvider> makeRootProvider(const Arch &arch);

} // namespace tressel::codegen::cuda
