// Kernels for GPUs written by hand in LLVM's language, optimized, and run by the emulator.
#pragma once

#include "codegen/cuda/emulate/Emulate.h"
#include "codegen/cuda/target/Target.h"
#include "tressel/runtime/Error.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

namespace tressel::codegen::test {

/// Kernels in LLVM's language, as the back end is given them.
class GpuKernels {
public:
  explicit GpuKernels(const std::string &text, int dropBarrier = -1) {
    llvm::SMDiagnostic problem;
    module = llvm::parseAssemblyString(text, problem, context);
    if (!module) {
      ADD_FAILURE() << problem.getMessage().str() << " in line " << problem.getLineNo();
      return;
    }
    cuda::Target(cuda::findArch("sm_90")).optimize(*module);
    if (dropBarrier >= 0)
      drop(dropBarrier);
    emulated = cuda::EmulatedModule::create(*module);
  }
  /// Deletes one of the calls that order accesses to memory.
  void drop(int number) {
    for (llvm::Function &f : *module)
      for (llvm::Instruction &i : llvm::make_early_inc_range(llvm::instructions(f)))
        if (auto *call = llvm::dyn_cast<llvm::CallInst>(&i);
            call && call->getCalledFunction() &&
            (call->getCalledFunction()->getName().starts_with("llvm.nvvm.barrier.cta") ||
             call->getCalledFunction()->getName() == "llvm.nvvm.bar.warp.sync" ||
             call->getCalledFunction()->getName() == "llvm.nvvm.barrier.cluster.arrive") &&
            number-- == 0) {
          if (call->getCalledFunction()->getName() == "llvm.nvvm.barrier.cluster.arrive")
            call->getNextNode()->eraseFromParent(); // the wait
          call->eraseFromParent();
          return;
        }
    ADD_FAILURE() << "there are not so many barriers";
  }
  int32_t run(const std::string &symbol, std::vector<void *> buffers, int threads, int64_t blocks,
              std::vector<int64_t> scalars = {}, std::vector<int64_t> bytes = {}, bool watch = false,
              int64_t cluster = 1) const {
    return emulated->run({symbol, threads, buffers, scalars, bytes, watch, cluster}, 0, blocks, blocks);
  }
  /// The message of the error that the launch ends with.
  std::string failure(const std::string &symbol, std::vector<void *> buffers, int threads, int64_t blocks,
                      std::vector<int64_t> scalars = {}, std::vector<int64_t> bytes = {}, bool watch = false,
                      int64_t cluster = 1) const {
    try {
      run(symbol, buffers, threads, blocks, scalars, bytes, watch, cluster);
      return "";
    } catch (const Error &e) {
      return e.what();
    }
  }

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  std::shared_ptr<cuda::EmulatedModule> emulated;
};

inline void expectContains(const std::string &text, std::initializer_list<std::string> parts) {
  for (const std::string &part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

} // namespace tressel::codegen::test
