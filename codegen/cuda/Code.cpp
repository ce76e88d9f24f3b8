#include "codegen/cuda/Code.h"

#include "codegen/cuda/Assemble.h"
#include "codegen/cuda/Emulate.h"
#include "codegen/cuda/Kernel.h"
#include "codegen/cuda/Provider.h"
#include "codegen/cuda/Target.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <map>
#include <mutex>

namespace tressel::codegen::cuda {
namespace {

std::unique_ptr<llvm::Module> optimized(const std::vector<Kernel> &kernels, const Target &target,
                                        llvm::LLVMContext &context) {
  auto module = std::make_unique<llvm::Module>("kernels", context);
  for (const Kernel &kernel : kernels)
    kernel.emit(*module);
  target.optimize(*module);
  return module;
}

class EmulationImpl;
struct Registry {
  std::mutex mutex;
  std::map<int64_t, std::weak_ptr<EmulationImpl>> byNumber;
  static Registry &instance() {
    static auto *registry = new Registry; // programs may end after static objects do
    return *registry;
  }
};

class EmulationImpl final : public Emulation, public std::enable_shared_from_this<EmulationImpl> {
public:
  EmulationImpl(std::shared_ptr<EmulatedModule> module, const std::vector<Kernel> &kernels, int64_t number)
      : module(std::move(module)), number(number) {
    for (const Kernel &kernel : kernels)
      grids[kernel.symbol] = {kernel.blocks, kernel.symbols};
  }
  ~EmulationImpl() override {
    Registry &registry = Registry::instance();
    std::lock_guard lock(registry.mutex);
    registry.byNumber.erase(number);
  }
  std::string paramsOf(const Kernel &kernel) const override {
    std::string params = launchParams(kernel);
    params.back() = ',';
    return params + "\"emulation\":" + std::to_string(number) + "}";
  }
  const std::shared_ptr<EmulatedModule> module;
  const int64_t number;
  struct Grid {
    int64_t blocks = 1;
    std::vector<int64_t> symbols;
    int64_t of(std::span<const int64_t> scalars) const {
      if (dim::isConstant(blocks))
        return blocks;
      dim::Values values;
      for (size_t i = 0; i < symbols.size(); ++i)
        values.bind(symbols[i], scalars[i]);
      return dim::evaluate(blocks, values);
    }
  };
  std::map<std::string, Grid> grids;
};

/// A launch of the runtime's, by the blocks that it is given.
struct EmulatedKernel {
  std::shared_ptr<EmulationImpl> emulation;
  std::string symbol;
  int threads = 0;
  const EmulationImpl::Grid *grid = nullptr;
  size_t operands = 0, scalars = 0;

  static int32_t run(const runtime::KernelArgs *args, int64_t begin, int64_t end) {
    const auto &self = *static_cast<const EmulatedKernel *>(args->state);
    const std::span<const int64_t> scalars(args->scalars, self.scalars);
    try {
      return self.emulation->module->run({.symbol = self.symbol,
                                          .threads = self.threads,
                                          .buffers = {args->buffers, self.operands},
                                          .scalars = scalars},
                                         begin, end, self.grid->of(scalars));
    } catch (const std::exception &problem) {
      if (args->failure)
        args->failure->say(problem.what());
      return runtime::kKernelSaysWhy;
    }
  }
};

runtime::LoadedKernel load(const runtime::KernelDesc &desc) {
  auto fail = [&](const std::string &why) { throw Error("the kernel '" + desc.symbol + "' is for a GPU: " + why); };
  auto params = llvm::json::parse(desc.params);
  if (!params) {
    llvm::consumeError(params.takeError());
    fail("how to launch it cannot be read");
  }
  const llvm::json::Object *object = params->getAsObject();
  auto number = [&](const char *name) { return object ? object->getInteger(name) : std::nullopt; };
  const auto emulation = number("emulation");
  if (!emulation)
    fail("there is none here, and the program was not compiled to be emulated");
  auto kernel = std::make_shared<EmulatedKernel>();
  {
    Registry &registry = Registry::instance();
    std::lock_guard lock(registry.mutex);
    if (auto found = registry.byNumber.find(*emulation); found != registry.byNumber.end())
      kernel->emulation = found->second.lock();
  }
  if (!kernel->emulation)
    fail("it was compiled to be emulated in another process");
  kernel->symbol = desc.symbol;
  const auto grid = kernel->emulation->grids.find(desc.symbol);
  if (grid == kernel->emulation->grids.end())
    fail("the emulated program has no such kernel");
  kernel->grid = &grid->second;
  kernel->threads = static_cast<int>(number("threads").value_or(0));
  kernel->operands = static_cast<size_t>(number("operands").value_or(0));
  kernel->scalars = static_cast<size_t>(number("scalars").value_or(0));
  const void *state = kernel.get();
  return {.fn = EmulatedKernel::run, .state = state, .owner = std::move(kernel)};
}

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

std::shared_ptr<Emulation> Emulation::create(const std::vector<Kernel> &kernels, const Arch &arch) {
  static const bool registered = [] {
    runtime::registerKernelProvider(kCudaProvider, load);
    return true;
  }();
  (void)registered;
  const Target target(arch);
  llvm::LLVMContext context;
  static std::atomic<int64_t> count{0};
  auto emulation =
      std::make_shared<EmulationImpl>(EmulatedModule::create(*optimized(kernels, target, context)), kernels, ++count);
  Registry &registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  registry.byNumber[emulation->number] = emulation;
  return emulation;
}

} // namespace tressel::codegen::cuda
