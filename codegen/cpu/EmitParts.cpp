// Kernels of several nests: each nest is a function, which the kernel calls for those of its units that are asked for.
#include "codegen/cpu/EmitKernel.h"

#include "tressel/runtime/Kernel.h"

#include "llvm/IR/IRBuilder.h"

#include <map>

namespace tressel::codegen {

using llvm::Value;

llvm::Function *emitParts(llvm::Module &module, const std::vector<ScheduledPart> &parts, const CpuFeatures &features,
                          const KernelSignature &signature) {
  const std::string &symbol = signature.symbol;
  std::map<std::string, llvm::Function *> nests; // equal ones are one function
  for (const ScheduledPart &part : parts) {
    llvm::Function *&nest = nests[part.plan.str()];
    if (nest)
      continue;
    KernelSignature own; // the launch gives a nest the same sizes
    own.symbol = symbol + ".nest" + std::to_string(nests.size() - 1);
    own.symbols = signature.symbols;
    nest = emitKernel(module, part.plan, part.schedule, features, own);
    nest->setLinkage(llvm::GlobalValue::InternalLinkage);
  }

  llvm::LLVMContext &context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type *ptr = b.getPtrTy();
  auto *function = llvm::Function::Create(nests.begin()->second->getFunctionType(), llvm::Function::ExternalLinkage, symbol, module);
  function->setAttributes(nests.begin()->second->getAttributes());
  function->setDSOLocal(true);
  llvm::BasicBlock *entry = llvm::BasicBlock::Create(context, "entry", function);
  b.SetInsertPoint(entry);
  size_t most = 0;
  for (const ScheduledPart &part : parts)
    most = std::max(most, part.operands.size());
  // The nest's own launch: as the kernel's, but for the buffers.
  Value *own = b.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), sizeof(runtime::KernelArgs)));
  llvm::cast<llvm::AllocaInst>(own)->setAlignment(llvm::Align(alignof(runtime::KernelArgs)));
  Value *buffers = b.CreateAlloca(llvm::ArrayType::get(ptr, most));
  Value *args = function->getArg(0), *begin = function->getArg(1), *end = function->getArg(2);
  static_assert(sizeof(runtime::KernelArgs) % 8 == 0);
  for (unsigned i = 1; i < sizeof(runtime::KernelArgs) / 8;
       ++i) // by itself: LLVM may call memcpy, which an image has not
    b.CreateStore(b.CreateLoad(b.getInt64Ty(), b.CreateConstGEP1_32(b.getInt64Ty(), args, i)),
                  b.CreateConstGEP1_32(b.getInt64Ty(), own, i));
  static_assert(offsetof(runtime::KernelArgs, buffers) == 0);
  b.CreateStore(buffers, own);
  Value *table = b.CreateLoad(ptr, args), *status = b.getInt32(runtime::kKernelOk);
  auto number = [&](int64_t n) { return b.getInt64(static_cast<uint64_t>(n)); };
  auto least = [&](Value *x, Value *y) { return b.CreateSelect(b.CreateICmpSLT(x, y), x, y); };
  auto greatest = [&](Value *x, Value *y) { return b.CreateSelect(b.CreateICmpSLT(x, y), y, x); };
  int64_t first = 0;
  for (const ScheduledPart &part : parts) {
    Value *from = b.CreateNSWSub(greatest(begin, number(first)), number(first));
    Value *to = b.CreateNSWSub(least(end, number(first + part.units())), number(first));
    first += part.units();
    llvm::BasicBlock *before = b.GetInsertBlock(), *inside = llvm::BasicBlock::Create(context, "nest", function),
                     *after = llvm::BasicBlock::Create(context, "after", function);
    b.CreateCondBr(b.CreateICmpSLT(from, to), inside, after);
    b.SetInsertPoint(inside);
    for (size_t i = 0; i < part.operands.size(); ++i)
      b.CreateStore(b.CreateLoad(ptr, b.CreateConstGEP1_32(ptr, table, static_cast<unsigned>(part.operands[i]))),
                    b.CreateConstGEP1_32(ptr, buffers, static_cast<unsigned>(i)));
    Value *grain = number(part.schedule.grain);
    Value *result = b.CreateCall(nests.at(part.plan.str()), {own, b.CreateNSWMul(from, grain),
                                                             least(b.CreateNSWMul(to, grain), number(part.schedule.range.number()))});
    result = b.CreateSelect(b.CreateICmpEQ(status, b.getInt32(runtime::kKernelOk)), result, status);
    b.CreateBr(after);
    b.SetInsertPoint(after);
    llvm::PHINode *next = b.CreatePHI(b.getInt32Ty(), 2);
    next->addIncoming(status, before);
    next->addIncoming(result, inside);
    status = next;
  }
  b.CreateRet(status);
  return function;
}

} // namespace tressel::codegen
