#include "codegen/cuda/library/DeviceLibrary.h"
#include "codegen/cuda/library/AsyncIntrinsics.h"

#include "codegen/loops/EmitSize.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Linker/Linker.h"

#include <functional>
#include <map>

// The bitcode of each source, as the build made it.
#define TRESSEL_BITCODE(name)                                                                                          \
  asm(".section .rodata,\"a\",@progbits\n.balign 16\n"                                                                 \
      "tressel_device_" #name "_begin:\n.incbin \"" TRESSEL_BITCODE_DIR "/" #name ".bc\"\n"                            \
      "tressel_device_" #name "_end:\n.byte 0\n.previous\n");                                                          \
  extern "C" const char tressel_device_##name##_begin[], tressel_device_##name##_end[];
#include "codegen/cuda/device/DeviceBitcode.inc"
#undef TRESSEL_BITCODE

namespace tressel::codegen::cuda {
namespace {

struct Blob {
  const char *name, *begin, *end;
};
const Blob kBlobs[] = {
#define TRESSEL_BITCODE(name) {#name, tressel_device_##name##_begin, tressel_device_##name##_end},
#include "codegen/cuda/device/DeviceBitcode.inc"
#undef TRESSEL_BITCODE
};

std::unique_ptr<llvm::Module> readBlob(const Blob &blob, llvm::LLVMContext &context) {
  llvm::MemoryBufferRef buffer(llvm::StringRef(blob.begin, static_cast<size_t>(blob.end - blob.begin)), blob.name);
  auto module = llvm::getLazyBitcodeModule(buffer, context);
  if (!module)
    throw InternalError(std::string("the device library's ") + blob.name +
                        " cannot be read: " + llvm::toString(module.takeError()));
  return std::move(*module);
}

const Blob *findBlob(const std::string &function) {
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
  auto it = blobs.find(function);
  return it == blobs.end() ? nullptr : it->second;
}

using llvm::Intrinsic::ID;

/// void f(float *c, const i32 *a, const i32 *b): c[4] += a[4] * b[2].
void defineMma(llvm::Function &f, ID id, llvm::Type *operand) {
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(f.getContext(), "entry", &f));
  std::vector<llvm::Value *> args;
  auto load = [&](unsigned arg, llvm::Type *type, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      args.push_back(b.CreateLoad(type, b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), f.getArg(arg), i)));
  };
  load(1, operand, 4), load(2, operand, 2), load(0, b.getFloatTy(), 4);
  llvm::Value *sums = b.CreateIntrinsic(id, args);
  for (unsigned i = 0; i < 4; ++i)
    b.CreateStore(b.CreateExtractValue(sums, i), b.CreateConstInBoundsGEP1_64(b.getFloatTy(), f.getArg(0), i));
  b.CreateRetVoid();
}

/// void f(i32 *r, const shared void *row): r[4].
void defineLdmatrix(llvm::Function &f, ID id) {
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(f.getContext(), "entry", &f));
  llvm::Value *words = b.CreateIntrinsic(id, {f.getArg(1)->getType()}, {f.getArg(1)});
  for (unsigned i = 0; i < 4; ++i)
    b.CreateStore(b.CreateExtractValue(words, i), b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), f.getArg(0), i));
  b.CreateRetVoid();
}

/// void f().
void defineClusterBarrier(llvm::Function &f) {
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(f.getContext(), "entry", &f));
  for (ID id :
       {llvm::Intrinsic::nvvm_barrier_cluster_arrive_aligned, llvm::Intrinsic::nvvm_barrier_cluster_wait_aligned})
    b.CreateIntrinsic(id, llvm::ArrayRef<llvm::Value *>())->setConvergent();
  b.CreateRetVoid();
}

/// float f(const shared float *here, i32 rank).
void defineClusterLoad(llvm::Function &f) {
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(f.getContext(), "entry", &f));
  llvm::Value *there = b.CreateIntrinsic(llvm::Intrinsic::nvvm_mapa_shared_cluster, {f.getArg(0), f.getArg(1)});
  b.CreateRet(b.CreateAlignedLoad(b.getFloatTy(), there, llvm::Align(4)));
}

/// What the sources declare because clang has no builtin for it.
void defineIntrinsics(llvm::Module &module) {
  llvm::LLVMContext &context = module.getContext();
  auto missing = [&](const char *name) -> llvm::Function * {
    llvm::Function *f = module.getFunction(name);
    return f && f->isDeclaration() ? f : nullptr;
  };
  defineAsyncIntrinsics(module);
  if (llvm::Function *f = missing("tressel_mma_f16"))
    defineMma(*f, llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32,
              llvm::FixedVectorType::get(llvm::Type::getHalfTy(context), 2));
  if (llvm::Function *f = missing("tressel_mma_bf16"))
    defineMma(*f, llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16, llvm::Type::getInt32Ty(context));
  if (llvm::Function *f = missing("tressel_cluster_barrier"))
    defineClusterBarrier(*f);
  if (llvm::Function *f = missing("tressel_cluster_load"))
    defineClusterLoad(*f);
  if (llvm::Function *f = missing("tressel_ldmatrix"))
    defineLdmatrix(*f, llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16);
  if (llvm::Function *f = missing("tressel_ldmatrix_trans"))
    defineLdmatrix(*f, llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16);
}

/// Brings the function and what it calls into the module, as a copy for one kernel: it calls that one's epilogue, and
/// its shared memory is its own.
llvm::Function *linkFunction(llvm::Module &module, const std::string &name, const std::string &symbol) {
  const Blob *blob = findBlob(name);
  if (!blob)
    throw InternalError("the device library has no '" + name + "'");
  std::unique_ptr<llvm::Module> source = readBlob(*blob, module.getContext());
  llvm::cantFail(source->materializeMetadata());
  for (const char *compiler : {"llvm.module.flags", "llvm.ident", "nvvmir.version"}) // how it was compiled
    if (llvm::NamedMDNode *node = source->getNamedMetadata(compiler))
      source->eraseNamedMetadata(node);
  source->setTargetTriple(module.getTargetTriple());
  source->setDataLayout(module.getDataLayout());
  llvm::Function *wanted = source->getFunction(name);
  wanted->setName(symbol + ".body");
  if (llvm::Function *epilogue = source->getFunction("tressel_epilogue"))
    epilogue->setName(epilogueOf(symbol));
  llvm::SmallPtrSet<llvm::Function *, 16> before;
  for (llvm::Function &f : module)
    if (!f.isDeclaration())
      before.insert(&f);
  module.getOrInsertFunction(symbol + ".body", wanted->getFunctionType()); // only what is asked for is linked
  if (llvm::Linker::linkModules(module, std::move(source), llvm::Linker::LinkOnlyNeeded))
    throw InternalError("the device library's '" + name + "' cannot be linked");
  defineIntrinsics(module);
  for (llvm::Function &f : module)
    if (!f.isDeclaration() && !before.contains(&f)) {
      f.setLinkage(llvm::GlobalValue::InternalLinkage);
      for (const char *pinned : {"target-cpu", "target-features", "tune-cpu"})
        f.removeFnAttr(pinned);
      f.removeFnAttr(llvm::Attribute::NoInline);
      f.addFnAttr(llvm::Attribute::AlwaysInline);
    }
  return module.getFunction(symbol + ".body");
}

} // namespace

std::string DeviceCall::str() const {
  std::string text = "device " + function;
  for (Size p : params)
    text += ' ' + dim::spell(p);
  text += " on";
  for (int32_t b : buffers)
    text += ' ' + std::to_string(b);
  text += " at once " + std::to_string(atOnce) + " constant";
  for (int32_t b : constant)
    text += ' ' + std::to_string(b);
  if (numMaps)
    text += " maps " + std::to_string(numMaps);
  return text;
}

std::string epilogueOf(const std::string &symbol) { return symbol + ".epilogue"; }

bool hasDeviceFunction(const std::string &name) { return findBlob(name) != nullptr; }

void emitDeviceCall(llvm::Function &kernel, const DeviceCall &call, int numBuffers, const std::vector<Size> &symbols) {
  llvm::Function *body = linkFunction(*kernel.getParent(), call.function, kernel.getName().str());
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(kernel.getContext(), "entry", &kernel));
  kernel.addFnAttr("nvvm.minctasm",
                   std::to_string(call.atOnce)); // without it, the assembler may spill to fit more blocks
  llvm::Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
  const auto numOperands = static_cast<unsigned>(numBuffers);
  for (int32_t constant : call.constant) {
    kernel.addParamAttr(static_cast<unsigned>(constant), llvm::Attribute::NoAlias);
    kernel.addParamAttr(static_cast<unsigned>(constant), llvm::Attribute::ReadOnly);
  }
  // All of these arrays vanish when the body has been inlined.
  auto *context = b.CreateAlloca(llvm::ArrayType::get(i64, numOperands + symbols.size() + 1), nullptr, "context");
  auto *buffers = b.CreateAlloca(llvm::ArrayType::get(ptr, call.buffers.size() + static_cast<size_t>(call.numMaps)),
                                 nullptr, "buffers");
  auto *params = b.CreateAlloca(llvm::ArrayType::get(i64, call.params.size()), nullptr, "params");
  auto *args = b.CreateAlloca(llvm::ArrayType::get(ptr, 2), nullptr, "args"); // as emitSize reads it
  auto at = [&](llvm::Value *array, uint64_t i) { return b.CreateConstInBoundsGEP1_64(i64, array, i); };
  auto generic = [&](unsigned arg) { return b.CreateAddrSpaceCast(kernel.getArg(arg), ptr); };
  for (unsigned i = 0; i < numOperands; ++i)
    b.CreateStore(generic(i), at(context, i));
  for (unsigned i = 0; i < symbols.size(); ++i)
    b.CreateStore(kernel.getArg(numOperands + i), at(context, numOperands + i));
  llvm::Value *status = generic(static_cast<unsigned>(numOperands + symbols.size()));
  b.CreateStore(status, at(context, numOperands + symbols.size()));
  b.CreateStore(at(context, numOperands), at(args, 1));
  for (size_t i = 0; i < call.buffers.size(); ++i)
    b.CreateStore(call.buffers[i] < 0 ? llvm::ConstantPointerNull::get(b.getPtrTy())
                                      : generic(static_cast<unsigned>(call.buffers[i])),
                  at(buffers, i));
  for (unsigned i = 0; i < static_cast<unsigned>(call.numMaps); ++i)
    b.CreateStore(kernel.getArg(static_cast<unsigned>(numOperands + symbols.size() + 1) + i),
                  at(buffers, call.buffers.size() + i));
  std::function<llvm::Value *(Size)> size = [&](Size value) -> llvm::Value * {
    return value.isSymbolic() ? emitSize(b, value, args, symbols, size)
                              : b.getInt64(static_cast<uint64_t>(value.number()));
  };
  for (size_t i = 0; i < call.params.size(); ++i)
    b.CreateStore(size(call.params[i]), at(params, i));
  b.CreateCall(body, {context, buffers, params, status});
  b.CreateRetVoid();
}

} // namespace tressel::codegen::cuda
