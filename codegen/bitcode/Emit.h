// Bitcode kernels in a program: the bitcode that was made of codegen/bitcode/kernels when the compiler was built, linked
// to the wrapper that gives a kernel the ABI of all others.
#pragma once

#include "tressel/runtime/Size.h"

#include "llvm/IR/Module.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tressel::codegen {

/// A kernel of the image that calls a bitcode kernel.
struct BitcodeCall {
  std::string kernel;           ///< "sort_f32"
  std::vector<Size> params;     ///< numbers become constants of the code, symbolic sizes are computed in it
  Size range = 1;               ///< units; asked for more (a launch has at least one), the kernel does none
  std::vector<int32_t> buffers; ///< for each of the kernel's buffers the operand of the launch, or -1 for a null pointer
  std::vector<Size> symbols;    ///< whose values are args->scalars, in this order

  /// Equal texts are equal code.
  std::string str() const;
};

bool hasBitcodeKernel(const std::string &kernel);

/// Adds the function `symbol` to the module, and the functions it needs unless they are there. To be optimized by
/// Target::optimizeLinked, which makes one function of all.
llvm::Function *emitBitcodeCall(llvm::Module &module, const BitcodeCall &call, const std::string &symbol);

} // namespace tressel::codegen
