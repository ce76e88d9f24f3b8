// The library's entry: the provider "kernels" of the runtime.
#pragma once

#include "tressel/runtime/Kernel.h"

namespace tressel::kernels {

/// Makes the provider known to the runtime, for programs that link the library; the runtime finds it itself for packages
/// that name it. Safe to call again.
void registerKernels();

} // namespace tressel::kernels

/// What the runtime looks for in the library.
extern "C" const tressel::runtime::KernelFactory tressel_kernel_factory;
