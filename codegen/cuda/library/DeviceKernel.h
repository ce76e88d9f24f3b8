// A call of the device library as a kernel: what the files that choose one have in common.
#pragma once

#include "codegen/cuda/library/DeviceLibrary.h"
#include "codegen/cuda/loops/Kernel.h"
#include "codegen/cuda/loops/Loops.h"

namespace tressel::codegen::cuda {

/// `kernel` has all but its text and code. The epilogue is copied; null where the function calls none.
Kernel makeDeviceKernel(Kernel kernel, DeviceCall call, const Epilogue *epilogue = nullptr);

/// Whether blocks can be numbered.
bool isLaunchable(Size blocks);

} // namespace tressel::codegen::cuda
