// A kernel for GPUs as tests run it: compiled for an architecture, assembled where there is an assembler, and emulated
// with its buffers watched.
#pragma once

#include "codegen/cuda/target/Assemble.h"
#include "codegen/cuda/emulate/Emulate.h"
#include "codegen/cuda/loops/Kernel.h"
#include "codegen/cuda/target/Target.h"
#include "test/support/CardModule.h"
#include "tressel/runtime/Dim.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tressel::codegen::cuda::test {

class GpuKernel {
public:
  GpuKernel(const Kernel &kernel, const Arch &arch, bool emulate = true) : kernel_(kernel) {
    llvm::LLVMContext context;
    llvm::Module module(kernel.symbol, context);
    kernel.emit(module);
    const Target target(arch);
    target.optimize(module);
    if (emulate) // what makes PTX of a module changes it
      emulated_ = tressel::test::runnable(*llvm::CloneModule(module), target, launchParams(kernel));
    ptx = target.ptx(module);
  }
  /// Registers per thread; 0 without an assembler. Nothing may spill, and static shared memory must suffice.
  int assembleFor(const Arch &arch) const {
    const std::optional<Assembled> assembled = assemble(ptx, arch);
    if (!assembled)
      return 0;
    // For sm_80, nvJitLink 13.0 takes many more registers than ptxas 13.0 does for the same PTX, and then spills.
    const bool judges = arch.name != "sm_80" || assembled->tool.starts_with("ptxas");
    for (const KernelResources &r : assembled->kernels) {
      if (judges)
        EXPECT_EQ(r.spillStores + r.spillLoads, 0) << kernel_.text;
      EXPECT_LE(r.sharedBytes, kMaxStaticShared) << kernel_.text;
      EXPECT_LE(r.registers * kernel_.threads, arch.registers) << kernel_.text;
    }
    return assembled->kernels.empty() ? 0 : assembled->kernels.front().registers;
  }
  /// One launch with values for the kernel's symbols, which returns its status.
  int32_t run(const std::vector<void *> &buffers, const std::vector<int64_t> &bytes,
              const std::vector<int64_t> &scalars = {}) const {
    dim::Values values;
    for (size_t i = 0; i < kernel_.symbols.size(); ++i)
      values.bind(kernel_.symbols[i], scalars[i]);
    const int64_t blocks = dim::evaluate(kernel_.blocks, values);
    EmulatedModule::Launch launch{kernel_.symbol,
                                  kernel_.threads,
                                  buffers,
                                  scalars,
                                  bytes,
                                  /*watchBuffers=*/true,
                                  dim::evaluate(kernel_.cluster, values)};
    return emulated_->run(launch, 0, blocks, blocks);
  }

  std::string ptx;

private:
  Kernel kernel_;
  std::shared_ptr<EmulatedModule> emulated_;
};

} // namespace tressel::codegen::cuda::test
