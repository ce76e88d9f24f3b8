// Loop plans as kernels for GPUs, run by the emulator: every access is within its buffer, and no two threads race.
#pragma once

#include "Harness.h"
#include "codegen/cuda/emulate/Emulate.h"
#include "codegen/cuda/loops/Loops.h"
#include "codegen/cuda/target/Target.h"
#include "test/support/CardModule.h"
#include "tressel/runtime/Dim.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <cstdlib>
#include <memory>

namespace tressel::codegen::test {

class GpuKernel {
public:
  explicit GpuKernel(const Graph &graph, const cuda::LoopTuning &tuning = {}, std::vector<Size> symbols = {},
                     std::string_view arch = "sm_90") {
    std::string why;
    auto built = buildLoopPlan(graph, &why);
    if (!built) {
      ADD_FAILURE() << why;
      return;
    }
    for (int32_t r : graph.results)
      resultTypes.push_back(graph.types[static_cast<size_t>(r)]);
    make(*built, tuning, std::move(symbols), arch);
  }
  GpuKernel(const LoopPlan &plan, std::vector<TensorType> results, const cuda::LoopTuning &tuning = {},
            std::vector<Size> symbols = {}, std::string_view arch = "sm_90")
      : resultTypes(std::move(results)) {
    make(plan, tuning, std::move(symbols), arch);
  }

  /// All nests of a graph as one kernel.
  static GpuKernel ofParts(const Graph &graph, std::string_view arch = "sm_90") {
    GpuKernel k;
    const auto parts = planParts(graph);
    const cuda::Target target(cuda::findArch(tressel::test::runnableArch(arch)));
    auto kernel = parts ? cuda::makePartsKernel(
                              "k", *parts, static_cast<int>(graph.inputs.size() + graph.results.size()), target.arch())
                        : std::nullopt;
    if (!kernel) {
      ADD_FAILURE() << "no kernel of several nests";
      return k;
    }
    for (int32_t r : graph.results)
      k.resultTypes.push_back(graph.types[static_cast<size_t>(r)]);
    k.kernel = std::move(*kernel);
    k.compile(target);
    return k;
  }

  /// PTX of the same kernel.
  std::string ptx(std::string_view arch = "sm_90", const cuda::LoopTuning &tuning = {}) const {
    const cuda::Target target(cuda::findArch(arch));
    const cuda::Kernel other = cuda::makeLoopKernel(plan, signature, kernel.numBuffers, target.arch(), tuning);
    llvm::LLVMContext own;
    llvm::Module code("kernels", own);
    other.emit(code);
    target.optimize(code);
    return target.ptx(code);
  }

  /// Runs all blocks. `shared`: results that lie on an input, as pairs of result and input.
  std::vector<Data> run(std::vector<Data *> inputs, const dim::Values &values = {}, int32_t expected = 0,
                        std::vector<std::pair<size_t, size_t>> shared = {}) const {
    struct Free {
      void operator()(void *p) const { std::free(p); }
    };
    std::vector<std::unique_ptr<void, Free>> memory;
    std::vector<void *> buffers;
    std::vector<int64_t> bytes, scalars;
    auto allocate = [&](const TensorType &type) {
      const int64_t size = type.bytes(), off = aligned ? 0 : tressel::sizeOf(type.dtype);
      memory.emplace_back(std::aligned_alloc(64, (static_cast<size_t>(size + off) + 127) / 64 * 64));
      buffers.push_back(static_cast<std::byte *>(memory.back().get()) + off), bytes.push_back(size);
      std::memset(buffers.back(), 0xa5, static_cast<size_t>(size));
    };
    for (Data *d : inputs) {
      allocate(d->type);
      std::memcpy(buffers.back(), d->bytes.data(), static_cast<size_t>(d->type.bytes()));
    }
    std::vector<Data> results;
    for (const TensorType &type : resultTypes) {
      results.push_back(Data({type.dtype, dim::evaluate(type.shape, values)}));
      allocate(results.back().type);
    }
    for (auto [result, input] : shared)
      buffers[inputs.size() + result] = buffers[input];
    for (Size symbol : kernel.symbols)
      scalars.push_back(values.find(symbol)->number());
    if (emulated) {
      const int64_t blocks = dim::evaluate(kernel.blocks, values);
      try {
        EXPECT_EQ(emulated->run({kernel.symbol, kernel.threads, buffers, scalars, bytes, true}, 0, blocks, blocks),
                  expected);
      } catch (const std::exception &e) {
        ADD_FAILURE() << e.what() << "\n" << kernel.text;
      }
    }
    for (size_t i = 0; i < results.size(); ++i)
      std::memcpy(results[i].bytes.data(), buffers[inputs.size() + i], static_cast<size_t>(results[i].type.bytes()));
    return results;
  }

  LoopPlan plan;
  KernelSignature signature;
  cuda::Kernel kernel;
  std::vector<TensorType> resultTypes;
  bool aligned = true;

private:
  GpuKernel() = default;
  void make(const LoopPlan &of, const cuda::LoopTuning &tuning, std::vector<Size> symbols, std::string_view arch) {
    plan = of, aligned = tuning.aligned;
    signature = {"k", {}, {}, std::move(symbols)};
    const cuda::Target target(cuda::findArch(tressel::test::runnableArch(arch)));
    kernel = cuda::makeLoopKernel(plan, signature, static_cast<int>(plan.buffers.size()), target.arch(), tuning);
    compile(target);
  }
  void compile(const cuda::Target &target) {
    module = std::make_unique<llvm::Module>("kernels", *context);
    kernel.emit(*module);
    target.optimize(*module);
    emulated = tressel::test::runnable(*llvm::CloneModule(*module), target); // what makes PTX of a module changes it
  }
  std::shared_ptr<llvm::LLVMContext> context = std::make_shared<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
  std::shared_ptr<cuda::EmulatedModule> emulated;
};

} // namespace tressel::codegen::test
