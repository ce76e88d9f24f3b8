// The emulator of GPU kernels, on kernels written by hand: what it computes, and the mistakes that it must find.
#include "codegen/cuda/Emulate.h"
#include "codegen/cuda/Target.h"
#include "tressel/runtime/Error.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

using namespace tressel;
using namespace tressel::codegen::cuda;

namespace {

/// Kernels in LLVM's language, as the back end is given them.
class Kernels {
public:
  explicit Kernels(const std::string &text, int dropBarrier = -1) {
    llvm::SMDiagnostic problem;
    module = llvm::parseAssemblyString(text, problem, context);
    if (!module) {
      ADD_FAILURE() << problem.getMessage().str() << " in line " << problem.getLineNo();
      return;
    }
    Target(findArch("sm_90")).optimize(*module);
    if (dropBarrier >= 0)
      drop(dropBarrier);
    emulated = EmulatedModule::create(*module);
  }
  /// Deletes one of the calls that order accesses to memory.
  void drop(int number) {
    for (llvm::Function &f : *module)
      for (llvm::Instruction &i : llvm::make_early_inc_range(llvm::instructions(f)))
        if (auto *call = llvm::dyn_cast<llvm::CallInst>(&i);
            call && call->getCalledFunction() &&
            (call->getCalledFunction()->getName().starts_with("llvm.nvvm.barrier.cta") ||
             call->getCalledFunction()->getName() == "llvm.nvvm.bar.warp.sync") &&
            number-- == 0) {
          call->eraseFromParent();
          return;
        }
    ADD_FAILURE() << "there are not so many barriers";
  }
  int32_t run(const std::string &symbol, std::vector<void *> buffers, int threads, int64_t blocks,
              std::vector<int64_t> scalars = {}, std::vector<int64_t> bytes = {}, bool watch = false) const {
    return emulated->run({symbol, threads, buffers, scalars, bytes, watch}, 0, blocks, blocks);
  }
  /// The message of the error that the launch ends with.
  std::string failure(const std::string &symbol, std::vector<void *> buffers, int threads, int64_t blocks,
                      std::vector<int64_t> scalars = {}, std::vector<int64_t> bytes = {}, bool watch = false) const {
    try {
      run(symbol, buffers, threads, blocks, scalars, bytes, watch);
      return "";
    } catch (const Error &e) {
      return e.what();
    }
  }

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  std::shared_ptr<EmulatedModule> emulated;
};

const std::string declarations = R"(
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
)";

/// b1[block] = the sum of the block's elements of b0: within warps by shuffles, then through shared memory.
const std::string blockSum = declarations + R"(
@partial = internal addrspace(3) global [32 x float] poison, align 4

define ptx_kernel void @sum(ptr addrspace(1) %b0, ptr addrspace(1) %b1, i64 %n, ptr addrspace(1) %status) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = mul i32 %block, %threads
  %at = add i32 %first, %t
  %at64 = zext i32 %at to i64
  %there = icmp slt i64 %at64, %n
  br i1 %there, label %read, label %lanes
read:
  %p = getelementptr float, ptr addrspace(1) %b0, i64 %at64
  %x = load float, ptr addrspace(1) %p, align 4
  br label %lanes
lanes:
  %v0 = phi float [ 0.0, %entry ], [ %x, %read ]
  %o1 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v0, i32 16, i32 31)
  %v1 = fadd float %v0, %o1
  %o2 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v1, i32 8, i32 31)
  %v2 = fadd float %v1, %o2
  %o3 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v2, i32 4, i32 31)
  %v3 = fadd float %v2, %o3
  %o4 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v3, i32 2, i32 31)
  %v4 = fadd float %v3, %o4
  %o5 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v4, i32 1, i32 31)
  %v5 = fadd float %v4, %o5
  %warp = lshr i32 %t, 5
  %lane = and i32 %t, 31
  %isFirst = icmp eq i32 %lane, 0
  br i1 %isFirst, label %put, label %meet
put:
  %q = getelementptr float, ptr addrspace(3) @partial, i32 %warp
  store float %v5, ptr addrspace(3) %q, align 4
  br label %meet
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %isLeader = icmp eq i32 %t, 0
  br i1 %isLeader, label %add, label %done
add:
  %numWarps = lshr i32 %threads, 5
  br label %loop
loop:
  %i = phi i32 [ 0, %add ], [ %next, %loop ]
  %s = phi float [ 0.0, %add ], [ %s1, %loop ]
  %r = getelementptr float, ptr addrspace(3) @partial, i32 %i
  %y = load float, ptr addrspace(3) %r, align 4
  %s1 = fadd float %s, %y
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %numWarps
  br i1 %more, label %loop, label %store
store:
  %b64 = zext i32 %block to i64
  %out = getelementptr float, ptr addrspace(1) %b1, i64 %b64
  store float %s1, ptr addrspace(1) %out, align 4
  br label %done
done:
  ret void
}
)";

TEST(Emulate, SumsOfBlocks) {
  const Kernels kernels(blockSum);
  std::vector<float> x(1000), sums(8);
  std::iota(x.begin(), x.end(), 1.0f);
  EXPECT_EQ(kernels.run("sum", {x.data(), sums.data()}, 128, 8, {1000}), 0);
  for (size_t block = 0; block < 8; ++block) {
    float want = 0;
    for (size_t i = block * 128; i < std::min<size_t>(1000, block * 128 + 128); ++i)
      want += x[i];
    EXPECT_EQ(sums[block], want);
  }
}

} // namespace
