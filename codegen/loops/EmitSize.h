// Sizes that are known when a program runs, as code: expressions over symbols that the launch hands over.
#pragma once

#include "tressel/runtime/Size.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

#include <cstdint>

namespace tressel::codegen {

/// The value of a symbolic size. `args` is the kernel's argument, whose scalars are the values of `symbols`, in this order;
/// `part` gives the value of a size that occurs in it (a number, or symbolic again).
llvm::Value *emitSize(llvm::IRBuilderBase &b, Size size, llvm::Value *args, llvm::ArrayRef<Size> symbols,
                      llvm::function_ref<llvm::Value *(Size)> part);

/// The same where the code has another way to a symbol's value, as parameters of a GPU's kernel.
llvm::Value *emitSize(llvm::IRBuilderBase &b, Size size, llvm::function_ref<llvm::Value *(Size)> symbol,
                      llvm::function_ref<llvm::Value *(Size)> part);

} // namespace tressel::codegen
