#include "codegen/cuda/target/Code.h"

#include "codegen/cuda/emulate/Emulate.h"
#include "codegen/cuda/loops/Kernel.h"
#include "codegen/cuda/target/Assemble.h"
#include "codegen/cuda/target/Target.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

#include "llvm/Support/raw_ostream.h"

#include <map>
#include <memory>

namespace tressel::codegen::cuda {
namespace {

std::unique_ptr<llvm::Module> optimized(const std::vector<Kernel> &kernels, const Target &target,
                                        llvm::LLVMContext &context) {
  auto module = std::make_unique<llvm::Module>("kernels", context);
  for (const Kernel &kernel : kernels)
    kernel.formFor(target.arch()).emit(*module);
  target.optimize(*module);
  return module;
}

/// A launch of the runtime's, by the blocks that it is given.
struct EmulatedKernel {
  std::shared_ptr<EmulatedModule> module;
  std::string symbol;
  int threads = 0;
  Size blocks = 1; ///< may be symbolic
  std::vector<Size> symbols;
  size_t operands = 0;

  int64_t grid(std::span<const int64_t> scalars) const {
    if (blocks.isNumber())
      return blocks.number();
    dim::Values values;
    for (size_t i = 0; i < symbols.size(); ++i)
      values.bind(symbols[i], scalars[i]);
    return dim::evaluate(blocks, values);
  }
  static int32_t run(const runtime::KernelArgs *args, int64_t begin, int64_t end) {
    const auto &self = *static_cast<const EmulatedKernel *>(args->state);
    const std::span<const int64_t> scalars(args->scalars, self.symbols.size());
    try {
      return self.module->run({.symbol = self.symbol, .threads = self.threads, .buffers = {args->buffers, self.operands}, .scalars = scalars}, begin,
                              end, self.grid(scalars));
    } catch (const std::exception &problem) {
      if (args->failure)
        args->failure->say(problem.what());
      return runtime::kKernelSaysWhy;
    }
  }
};

} // namespace

runtime::GpuCode compileKernels(const std::vector<Kernel> &kernels, const Arch &arch, bool assembled) {
  const Target target(arch);
  llvm::LLVMContext context;
  runtime::GpuCode code{.arch = std::string(arch.name)};
  code.ptx = target.ptx(*optimized(kernels, target, context));
  if (assembled)
    if (auto made = assemble(code.ptx, arch)) {
      code.cubin = std::move(made->cubin);
      for (const KernelResources &r : made->kernels)
        code.kernels.push_back({r.symbol, r.registers, r.spillStores, r.spillLoads, r.stackBytes, r.sharedBytes});
      code.assembler = std::move(made->tool);
    }
  return code;
}

std::string printKernels(const std::vector<Kernel> &kernels, const Arch &arch) {
  const Target target(arch);
  llvm::LLVMContext context;
  std::string text;
  llvm::raw_string_ostream out(text);
  optimized(kernels, target, context)->print(out, nullptr);
  return text;
}

runtime::KernelLookup emulatedKernels(const std::vector<Kernel> &kernels, const Arch &arch) {
  for (const Kernel &kernel : kernels)
    if (!kernel.formFor(arch).arch.empty())
      throw Error({.message = "kernel '" + kernel.symbol + "' has instructions of " + std::string(arch.name) +
                              " alone (wgmma, tcgen05, TMA), which are not emulated",
                   .hint = "emulate the kernels for " + std::string(arch.card) + " (--gpu " + std::string(arch.card) +
                           "), or run a package on the stand-in for NVIDIA's driver (test/standin)"});
  const Target target(arch);
  llvm::LLVMContext context;
  const std::shared_ptr<EmulatedModule> module = EmulatedModule::create(*optimized(kernels, target, context));
  std::map<std::string, std::shared_ptr<const EmulatedKernel>> bySymbol;
  for (const Kernel &kernel : kernels)
    bySymbol[kernel.symbol] = std::make_shared<EmulatedKernel>(EmulatedKernel{
        module, kernel.symbol, kernel.threads, kernel.blocks, kernel.symbols, static_cast<size_t>(kernel.numBuffers)});
  return [bySymbol = std::move(bySymbol)](const runtime::KernelDesc &desc) -> runtime::LoadedKernel {
    const auto found = bySymbol.find(desc.symbol);
    if (found == bySymbol.end())
      return {};
    return {.fn = EmulatedKernel::run, .state = found->second.get(), .owner = found->second};
  };
}

} // namespace tressel::codegen::cuda
