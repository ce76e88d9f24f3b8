#include "codegen/loops/EmitSize.h"

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Kernel.h"

#include "llvm/ADT/STLExtras.h"

#include <cstddef>

namespace tressel::codegen {

using llvm::Value;

Value *emitSize(llvm::IRBuilderBase &b, Size size, Value *args, llvm::ArrayRef<Size> symbols,
                llvm::function_ref<Value *(Size)> part) {
  auto symbol = [&](Size s) -> Value * {
    const auto at = llvm::find(symbols, s);
    if (at == symbols.end())
      llvm::report_fatal_error("a kernel uses a size that its launch does not give it");
    static_assert(offsetof(runtime::KernelArgs, scalars) == sizeof(void *));
    Value *scalars = b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_32(b.getPtrTy(), args, 1));
    return b.CreateLoad(b.getInt64Ty(), b.CreateConstGEP1_64(b.getInt64Ty(), scalars,
                                                             static_cast<uint64_t>(at - symbols.begin())));
  };
  return emitSize(b, size, symbol, part);
}

Value *emitSize(llvm::IRBuilderBase &b, Size size, llvm::function_ref<Value *(Size)> symbol,
                llvm::function_ref<Value *(Size)> part) {
  auto factor = [&](const dim::Factor &f) -> Value * {
    switch (f.kind) {
    case dim::Factor::Kind::Symbol:
      return symbol(f.a);
    case dim::Factor::Kind::Max: {
      Value *x = part(f.a), *y = part(f.b);
      return b.CreateSelect(b.CreateICmpSGT(x, y), x, y);
    }
    case dim::Factor::Kind::FloorDiv:
      break;
    }
    Value *x = part(f.a), *y = part(f.b), *zero = b.getInt64(0);
    if (dim::bounds(f.a).lo >= 0 && dim::bounds(f.b).lo > 0)
      return b.CreateUDiv(x, y);
    Value *quotient = b.CreateSDiv(x, y), *rest = b.CreateSRem(x, y);
    Value *down = b.CreateAnd(b.CreateICmpNE(rest, zero), b.CreateICmpSLT(b.CreateXor(rest, y), zero));
    return b.CreateSub(quotient, b.CreateZExt(down, b.getInt64Ty()));
  };
  Value *sum = nullptr;
  for (const dim::Term &term : dim::terms(size)) {
    Value *product = nullptr;
    for (const dim::Factor &f : term.factors) {
      Value *v = factor(f);
      product = product ? b.CreateMul(product, v) : v;
    }
    product = !product ? part(term.coefficient)
                       : term.coefficient == 1 ? product : b.CreateMul(product, part(term.coefficient));
    sum = sum ? b.CreateAdd(sum, product) : product;
  }
  return sum;
}

} // namespace tressel::codegen
