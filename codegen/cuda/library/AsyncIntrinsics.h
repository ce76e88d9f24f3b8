// Instructions of sm_90a and sm_100a in the device library (device/Async.h).
#pragma once

#include "llvm/IR/Module.h"

namespace tressel::codegen::cuda {

/// Defines those that the module declares: mbarriers, copies of tensors, wgmma. For products themselves LLVM has no
/// intrinsic, so they are inline assembly.
void defineAsyncIntrinsics(llvm::Module &module);

} // namespace tressel::codegen::cuda
