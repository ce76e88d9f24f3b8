#include "codegen/cuda/library/AsyncIntrinsics.h"

#include "codegen/cuda/target/Target.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tressel::codegen::cuda {
namespace {

using llvm::Intrinsic::ID;
constexpr unsigned kTensorMemory = 6; // of LLVM's address spaces

/// Inline assembly that takes and returns `count` sums, which lie at `sums`, and reads `more`.
void callOnSums(llvm::IRBuilder<> &b, llvm::Value *sums, unsigned count, const std::string &text,
                llvm::ArrayRef<llvm::Value *> more) {
  llvm::Type *f32 = b.getFloatTy();
  auto at = [&](unsigned i) { return b.CreateConstInBoundsGEP1_64(f32, sums, i); };
  std::vector<llvm::Value *> args(more.begin(), more.end());
  std::vector<llvm::Type *> types;
  std::string constraints;
  for (unsigned i = 0; i < count; ++i)
    constraints += i ? ",=f" : "=f";
  for (llvm::Value *value : more)
    constraints += value->getType()->isIntegerTy(64) ? ",l" : ",r";
  for (unsigned i = 0; i < count; ++i) {
    constraints += "," + std::to_string(i); // the same register
    args.push_back(b.CreateLoad(f32, at(i)));
  }
  for (llvm::Value *arg : args)
    types.push_back(arg->getType());
  auto *type = llvm::FunctionType::get(llvm::StructType::get(b.getContext(), std::vector<llvm::Type *>(count, f32)),
                                       types, false);
  llvm::CallInst *call = b.CreateCall(llvm::InlineAsm::get(type, text, constraints, /*hasSideEffects=*/true), args);
  call->setConvergent();
  for (unsigned i = 0; i < count; ++i)
    b.CreateStore(b.CreateExtractValue(call, i), at(i));
}

/// void f(float *sums, i64 left, i64 right, i32 leftTransposed, i32 rightTransposed), which are constants once it is
/// inlined: a form of the instruction for each.
void defineProduct(llvm::Function &f, const std::string &type, unsigned columns) {
  llvm::LLVMContext &context = f.getContext();
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", &f));
  llvm::Value *form = b.CreateOr(b.CreateShl(f.getArg(3), 1), f.getArg(4));
  auto *end = llvm::BasicBlock::Create(context, "end", &f);
  llvm::SwitchInst *choice = b.CreateSwitch(form, end, 4);
  std::string sums, symbols;
  for (unsigned i = 0; i < columns / 2; ++i)
    sums += (i ? ", $" : "$") + std::to_string(i);
  for (unsigned i = 0; i < 4; ++i) {
    auto *block = llvm::BasicBlock::Create(context, "form", &f, end);
    choice->addCase(b.getInt32(i), block);
    b.SetInsertPoint(block);
    const std::string text = "{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\nwgmma.mma_async.sync.aligned.m64n" +
                             std::to_string(columns) + "k16.f32." + type + "." + type + " {" + sums + "}, $" +
                             std::to_string(columns / 2) + ", $" + std::to_string(columns / 2 + 1) + ", adds, 1, 1, " +
                             std::to_string(i / 2) + ", " + std::to_string(i % 2) + ";\n}";
    callOnSums(b, f.getArg(0), columns / 2, text, {f.getArg(1), f.getArg(2)});
    b.CreateBr(end);
    b.SetInsertPoint(choice->getParent());
  }
  b.SetInsertPoint(end);
  b.CreateRetVoid();
}

/// void f(float *sums): the sums are there behind it.
void defineWait(llvm::Function &f, unsigned columns) {
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(f.getContext(), "entry", &f));
  callOnSums(b, f.getArg(0), columns / 2, "wgmma.wait_group.sync.aligned 0;", {});
  b.CreateRetVoid();
}

/// void f(shared i64 *barrier, i32 parity): returns when that phase has ended.
void defineBarrierWait(llvm::Function &f) {
  llvm::LLVMContext &context = f.getContext();
  auto *entry = llvm::BasicBlock::Create(context, "entry", &f), *again = llvm::BasicBlock::Create(context, "again", &f),
       *end = llvm::BasicBlock::Create(context, "end", &f);
  llvm::IRBuilder<> b(entry);
  b.CreateBr(again);
  b.SetInsertPoint(again);
  llvm::Value *ended = b.CreateIntrinsic(llvm::Intrinsic::nvvm_mbarrier_try_wait_parity_scope_cta_space_cta, {},
                                         {f.getArg(0), f.getArg(1)});
  b.CreateCondBr(ended, end, again);
  b.SetInsertPoint(end);
  b.CreateRetVoid();
}

/// void f(shared void *to, shared i64 *barrier, const void *map, i32 x, i32 y[, i32 z]).
void defineCopy(llvm::Function &f, ID id) {
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(f.getContext(), "entry", &f));
  std::vector<llvm::Value *> args{b.CreateAddrSpaceCast(f.getArg(0), b.getPtrTy(kSharedCluster)), f.getArg(1),
                                  f.getArg(2)};
  for (unsigned i = 3; i < f.arg_size(); ++i)
    args.push_back(f.getArg(i));
  // No other blocks, no hint for the cache.
  args.insert(args.end(), {b.getInt16(0), b.getInt64(0), b.getFalse(), b.getFalse(), b.getInt32(0)});
  b.CreateIntrinsic(id, {}, args);
  b.CreateRetVoid();
}

/// void f(i32 sums, i64 left, i64 right, i32 form, i1 adds).
void defineTensorProduct(llvm::Function &f) {
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(f.getContext(), "entry", &f));
  constexpr unsigned kF16 = 0, kOneBlock = 1, kDiscard = 0; // NVVM's kind, group of blocks, use of the collector
  llvm::Value *adds = f.getArg(4);
  if (!adds->getType()->isIntegerTy(1))
    adds = b.CreateICmpNE(adds, llvm::Constant::getNullValue(adds->getType()));
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_tcgen05_mma_shared, {},
                    {b.CreateIntToPtr(f.getArg(0), b.getPtrTy(kTensorMemory)), f.getArg(1), f.getArg(2), f.getArg(3),
                     adds, b.getInt32(kF16), b.getInt32(kOneBlock), b.getInt32(kDiscard)});
  b.CreateRetVoid();
}

/// void f(float *values, i32 address): 32 of them. The wait is part of the text: until it, nothing may read the
/// registers, not even to move them.
void defineTensorLoad(llvm::Function &f) {
  constexpr unsigned kColumns = 32;
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(f.getContext(), "entry", &f));
  std::string registers, constraints;
  for (unsigned i = 0; i < kColumns; ++i)
    registers += (i ? ", $" : "$") + std::to_string(i), constraints += "=f,";
  auto *type = llvm::FunctionType::get(
      llvm::StructType::get(b.getContext(), std::vector<llvm::Type *>(kColumns, b.getFloatTy())), {b.getInt32Ty()},
      false);
  const std::string text = "tcgen05.ld.sync.aligned.32x32b.x32.b32 {" + registers + "}, [$" + std::to_string(kColumns) +
                           "];\ntcgen05.wait::ld.sync.aligned;";
  llvm::CallInst *call =
      b.CreateCall(llvm::InlineAsm::get(type, text, constraints + "r", /*hasSideEffects=*/true), {f.getArg(1)});
  call->setConvergent();
  for (unsigned i = 0; i < kColumns; ++i)
    b.CreateStore(b.CreateExtractValue(call, i), b.CreateConstInBoundsGEP1_64(b.getFloatTy(), f.getArg(0), i));
  b.CreateRetVoid();
}

/// void f(args...): one intrinsic of the same operands, then `more`.
void defineCall(llvm::Function &f, ID id, llvm::ArrayRef<llvm::Type *> overloads, llvm::ArrayRef<llvm::Value *> more) {
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(f.getContext(), "entry", &f));
  std::vector<llvm::Value *> args;
  for (llvm::Argument &arg : f.args())
    args.push_back(&arg);
  args.insert(args.end(), more.begin(), more.end());
  b.CreateIntrinsic(id, overloads, args);
  b.CreateRetVoid();
}

} // namespace

void defineAsyncIntrinsics(llvm::Module &module) {
  using namespace llvm::Intrinsic;
  llvm::LLVMContext &context = module.getContext();
  std::map<std::string, std::function<void(llvm::Function &)>> known;
  auto calls = [&known](const char *name, ID id, std::vector<llvm::Value *> more = {}) {
    known[name] = [id, more](llvm::Function &f) { defineCall(f, id, {}, more); };
  };
  calls("tressel_mbarrier_init", nvvm_mbarrier_init_shared);
  calls("tressel_mbarrier_fence", nvvm_fence_mbarrier_init_release_cluster);
  calls("tressel_mbarrier_arrive", nvvm_mbarrier_arrive_shared);
  calls("tressel_mbarrier_expect", nvvm_mbarrier_arrive_expect_tx_scope_cta_space_cta);
  calls("tressel_wgmma_fence", nvvm_wgmma_fence_sync_aligned);
  calls("tressel_wgmma_commit", nvvm_wgmma_commit_group_sync_aligned);
  calls("tressel_wgmma_wait_1", nvvm_wgmma_wait_group_sync_aligned,
        {llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), 1)});
  calls("tressel_tensor_allocate", nvvm_tcgen05_alloc_shared_cg1);
  calls("tressel_tensor_relinquish", nvvm_tcgen05_relinq_alloc_permit_cg1);
  calls("tressel_tensor_fence_before", nvvm_tcgen05_fence_before_thread_sync);
  calls("tressel_tensor_fence_after", nvvm_tcgen05_fence_after_thread_sync);
  calls("tressel_tensor_commit", nvvm_tcgen05_commit_shared_cg1);
  known["tressel_tensor_free"] = [](llvm::Function &f) {
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(f.getContext(), "entry", &f));
    b.CreateIntrinsic(nvvm_tcgen05_dealloc_cg1, {},
                      {b.CreateIntToPtr(f.getArg(0), b.getPtrTy(kTensorMemory)), f.getArg(1)});
    b.CreateRetVoid();
  };
  known["tressel_tensor_multiply"] = defineTensorProduct;
  known["tressel_tensor_load"] = defineTensorLoad;
  known["tressel_mbarrier_wait"] = defineBarrierWait;
  known["tressel_copy_2d"] = [](llvm::Function &f) { defineCopy(f, nvvm_cp_async_bulk_tensor_g2s_tile_2d); };
  known["tressel_copy_3d"] = [](llvm::Function &f) { defineCopy(f, nvvm_cp_async_bulk_tensor_g2s_tile_3d); };
  for (unsigned columns : {64u, 128u, 256u}) {
    for (const char *type : {"f16", "bf16"})
      known["tressel_wgmma_" + std::string(type) + "_" + std::to_string(columns)] = [type, columns](llvm::Function &f) {
        defineProduct(f, type, columns);
      };
    known["tressel_wgmma_wait_" + std::to_string(columns)] = [columns](llvm::Function &f) { defineWait(f, columns); };
  }
  for (const auto &[name, define] : known)
    if (llvm::Function *f = module.getFunction(name); f && f->isDeclaration())
      define(*f);
}

} // namespace tressel::codegen::cuda
