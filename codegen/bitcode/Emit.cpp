#include "codegen/bitcode/Emit.h"

#include "codegen/loops/EmitSize.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Kernel.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Linker/Linker.h"

#include <cstddef>
#include <functional>
#include <map>

// The bitcode of each source, as the build made it.
#define TRESSEL_BITCODE(name)                                                                                          \
  asm(".section .rodata,\"a\",@progbits\n.balign 16\n"                                                                 \
      "tressel_bitcode_" #name "_begin:\n.incbin \"" TRESSEL_BITCODE_DIR "/" #name ".bc\"\n"                           \
      "tressel_bitcode_" #name "_end:\n.byte 0\n.previous\n");                                                         \
  extern "C" const char tressel_bitcode_##name##_begin[], tressel_bitcode_##name##_end[];
#include "codegen/bitcode/Bitcode.inc"
#undef TRESSEL_BITCODE

namespace tressel::codegen {
namespace {

struct Blob {
  const char *name, *begin, *end;
};
const Blob kBlobs[] = {
#define TRESSEL_BITCODE(name) {#name, tressel_bitcode_##name##_begin, tressel_bitcode_##name##_end},
#include "codegen/bitcode/Bitcode.inc"
#undef TRESSEL_BITCODE
};

/// Function bodies are read when they are asked for.
std::unique_ptr<llvm::Module> readBlob(const Blob &blob, llvm::LLVMContext &context) {
  llvm::MemoryBufferRef buffer(llvm::StringRef(blob.begin, static_cast<size_t>(blob.end - blob.begin)), blob.name);
  auto module = llvm::getLazyBitcodeModule(buffer, context);
  if (!module)
    throw InternalError(std::string("the bitcode kernels of ") + blob.name +
                        " cannot be read: " + llvm::toString(module.takeError()));
  return std::move(*module);
}

const Blob *findBlob(const std::string &kernel) {
  static const auto &blobs = *[] {
    auto *map = new std::map<std::string, const Blob *>;
    llvm::LLVMContext context;
    for (const Blob &blob : kBlobs) {
      std::unique_ptr<llvm::Module> module = readBlob(blob, context);
      for (const llvm::Function &f : *module)
        if (!f.isDeclaration() && f.hasExternalLinkage())
          map->emplace(f.getName().str(), &blob);
    }
    return map;
  }();
  auto it = blobs.find(kernel);
  return it == blobs.end() ? nullptr : it->second;
}

/// Brings the kernel and what it calls into the module, free of the machine they were compiled on.
llvm::Function *linkKernel(llvm::Module &module, const std::string &kernel) {
  if (llvm::Function *known = module.getFunction(kernel))
    return known;
  const Blob *blob = findBlob(kernel);
  if (!blob)
    throw InternalError("there is no bitcode kernel '" + kernel + "'");
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *ptr = llvm::PointerType::get(context, 0), *i64 = llvm::Type::getInt64Ty(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context), {ptr, ptr, ptr, i64, i64}, false);
  module.getOrInsertFunction(kernel, type); // only what is asked for is linked
  std::unique_ptr<llvm::Module> source = readBlob(*blob, context);
  llvm::cantFail(source->materializeMetadata());
  if (llvm::NamedMDNode *flags = source->getModuleFlagsMetadata()) // how it was compiled; the module has its own
    source->eraseNamedMetadata(flags);
  source->setTargetTriple(module.getTargetTriple());
  source->setDataLayout(module.getDataLayout());
  llvm::SmallPtrSet<llvm::Function *, 16> before;
  for (llvm::Function &f : module)
    if (!f.isDeclaration())
      before.insert(&f);
  if (llvm::Linker::linkModules(module, std::move(source), llvm::Linker::LinkOnlyNeeded))
    throw InternalError("the bitcode kernel '" + kernel + "' cannot be linked");
  for (llvm::Function &f : module)
    if (!f.isDeclaration() && !before.contains(&f)) {
      f.setLinkage(llvm::GlobalValue::InternalLinkage);
      for (const char *pinned : {"target-cpu", "target-features", "tune-cpu"})
        f.removeFnAttr(pinned);
    }
  llvm::Function *f = module.getFunction(kernel);
  f->addFnAttr(llvm::Attribute::AlwaysInline); // into its wrapper, where its parameters are constants
  return f;
}

} // namespace

std::string BitcodeCall::str() const {
  std::string text = "bitcode " + kernel;
  for (Size p : params)
    text += ' ' + dim::spell(p);
  text += " range " + dim::spell(range) + " scalars";
  for (Size s : symbols)
    text += ' ' + dim::spell(s);
  text += " on";
  for (int32_t b : buffers)
    text += ' ' + std::to_string(b);
  return text;
}

bool hasBitcodeKernel(const std::string &kernel) { return findBlob(kernel) != nullptr; }

llvm::Function *emitBitcodeCall(llvm::Module &module, const BitcodeCall &call, const std::string &symbol) {
  llvm::Function *kernel = linkKernel(module, call.kernel);
  llvm::LLVMContext &context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type *ptr = b.getPtrTy();
  auto *type = llvm::FunctionType::get(b.getInt32Ty(), {ptr, b.getInt64Ty(), b.getInt64Ty()}, false);
  auto *function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->setDSOLocal(true);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  llvm::Value *args = function->getArg(0);
  auto field = [&](size_t offset) {
    return b.CreateLoad(ptr, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), args, offset));
  };
  llvm::Value *table = field(offsetof(runtime::KernelArgs, buffers));
  llvm::Value *scratch = field(offsetof(runtime::KernelArgs, scratch));
  auto *buffers = b.CreateAlloca(llvm::ArrayType::get(ptr, call.buffers.size()));
  auto *params = b.CreateAlloca(llvm::ArrayType::get(b.getInt64Ty(), call.params.size()));
  for (auto [i, operand] : llvm::enumerate(call.buffers)) {
    llvm::Value *buffer = llvm::ConstantPointerNull::get(b.getPtrTy());
    if (operand >= 0)
      buffer = b.CreateLoad(ptr, b.CreateConstInBoundsGEP1_64(ptr, table, static_cast<uint64_t>(operand)));
    b.CreateStore(buffer, b.CreateConstInBoundsGEP1_64(ptr, buffers, i));
  }
  std::function<llvm::Value *(Size)> size = [&](Size value) -> llvm::Value * {
    return value.isSymbolic() ? emitSize(b, value, args, call.symbols, size)
                              : b.getInt64(static_cast<uint64_t>(value.number()));
  };
  for (auto [i, value] : llvm::enumerate(call.params))
    b.CreateStore(size(value), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), params, i));
  llvm::Value *begin = function->getArg(1), *end = function->getArg(2), *range = size(call.range);
  end = b.CreateSelect(b.CreateICmpSLT(end, range), end, range);
  begin = b.CreateSelect(b.CreateICmpSLT(begin, end), begin, end);
  b.CreateRet(b.CreateCall(kernel, {buffers, scratch, params, begin, end}));
  return function;
}

} // namespace tressel::codegen
