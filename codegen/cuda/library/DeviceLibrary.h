// The device library in a program: the bitcode that was made of codegen/cuda/device when the compiler was built, linked
// to the kernel that hands it the launch's operands and the call's sizes.
#pragma once

#include "tressel/runtime/Size.h"

#include "llvm/IR/Module.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tressel::codegen::cuda {

/// One function of the device library, for one kernel.
struct DeviceCall {
  std::string function;        ///< "product_f32_128"
  std::vector<Size> params;    ///< numbers become constants of the code, symbolic sizes are computed in it
  std::vector<int32_t>
      buffers; ///< for each of the function's buffers the operand of the launch, or -1 for a null pointer
  /// Operands of the launch that are only read, and whose bytes nothing else in it writes.
  std::vector<int32_t> constant;
  int numMaps = 0; ///< the kernel's tensor maps: pointers to them are behind the buffers
  /// So many blocks shall fit on a multiprocessor at once: limits registers. 1: as many registers as a thread may have.
  int atOnce = 1;

  /// Equal texts are equal code, but for the epilogue.
  std::string str() const;
};

/// The epilogue that a function of the library calls is the function of this name; whoever emits the kernel defines it.
std::string epilogueOf(const std::string &symbol);

bool hasDeviceFunction(const std::string &name);

/// Gives a kernel that was declared (declareKernel) its body. `symbols`: whose values the launch's scalars are.
void emitDeviceCall(llvm::Function &kernel, const DeviceCall &call, int numBuffers, const std::vector<Size> &symbols);

} // namespace tressel::codegen::cuda
