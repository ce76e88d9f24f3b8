#include "codegen/cuda/target/Code.h"

#include "codegen/cpu/CompilerId.h"
#include "codegen/cuda/emulate/Emulate.h"
#include "codegen/cuda/loops/Kernel.h"
#include "codegen/cuda/target/Assemble.h"
#include "codegen/cuda/target/SourceHash.inc"
#include "codegen/cuda/target/Target.h"
#include "runtime/types/Clock.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string_view>

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
  Size blocks = 1, cluster = 1; ///< may be symbolic
  std::vector<Size> symbols;
  size_t operands = 0;

  int64_t valueOf(Size size, std::span<const int64_t> scalars) const {
    if (size.isNumber())
      return size.number();
    dim::Values values;
    for (size_t i = 0; i < symbols.size(); ++i)
      values.bind(symbols[i], scalars[i]);
    return dim::evaluate(size, values);
  }
  static int32_t run(const runtime::KernelArgs *args, int64_t begin, int64_t end) {
    const auto &self = *static_cast<const EmulatedKernel *>(args->state);
    const std::span<const int64_t> scalars(args->scalars, self.symbols.size());
    try {
      return self.module->run({.symbol = self.symbol,
                               .threads = self.threads,
                               .buffers = {args->buffers, self.operands},
                               .scalars = scalars,
                               .cluster = self.valueOf(self.cluster, scalars)},
                              begin, end, self.valueOf(self.blocks, scalars));
    } catch (const std::exception &problem) {
      if (args->failure)
        args->failure->say(problem.what());
      return runtime::kKernelSaysWhy;
    }
  }
};

} // namespace

namespace {

const std::string &gpuCompilerId() {
  static const std::string &id = *new std::string(compilerId() + " " + kSourceHash);
  return id;
}

/// All that decides a kernel's PTX, but for its name.
CacheKey keyOf(const Kernel &kernel, const Arch &arch) {
  std::string launch = std::to_string(kernel.numBuffers) + " buffers, " + std::to_string(kernel.threads) +
                       " threads, " + std::to_string(kernel.maps.size()) + " maps";
  for (Size symbol : kernel.symbols)
    launch += ", " + dim::spell(symbol);
  const std::string_view parts[] = {"ptx 1", gpuCompilerId(), arch.name, launch, kernel.text};
  return cacheKeyOf(parts);
}

/// Kernels that are equal but for their symbols.
struct Distinct {
  const Kernel *kernel;
  CacheKey key;
  std::string symbol; ///< in the code that is kept, so that any program can use it
  Code code;
};

/// What a module for the architecture begins with.
std::string headFor(const Arch &arch) {
  const std::string version(arch.feature.substr(4)); // "+ptx80"
  return ".version " + version.substr(0, version.size() - 1) + "." + version.substr(version.size() - 1) + "\n.target " +
         std::string(arch.name) + "\n.address_size 64\n";
}
std::string_view withoutHead(std::string_view ptx, const Arch &arch) {
  const std::string head = headFor(arch);
  const size_t at = ptx.find(head);
  if (at == std::string_view::npos)
    throw InternalError("the PTX that LLVM wrote does not begin with " + head);
  return ptx.substr(at + head.size());
}

Code compileOne(const Distinct &distinct, const Target &target) {
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  distinct.kernel->emit(module);
  module.getFunction(distinct.kernel->symbol)->setName(distinct.symbol);
  target.optimize(module);
  // Variables of several kernels come into one module in the end.
  for (llvm::GlobalVariable &variable : module.globals())
    variable.setName(distinct.symbol + "_" + variable.getName());
  const std::string ptx = target.ptx(module);
  const std::string_view text = withoutHead(ptx, target.arch());
  return std::make_shared<const std::vector<char>>(text.begin(), text.end());
}

/// With another symbol, in all names that begin with it.
void appendRenamed(std::string &to, std::string_view text, std::string_view symbol, std::string_view name) {
  for (size_t at; (at = text.find(symbol)) != std::string_view::npos; text.remove_prefix(at + symbol.size()))
    to.append(text.substr(0, at)).append(name);
  to.append(text);
}

/// Adds the machine code, which the assembler makes of the whole module.
void assembleInto(runtime::GpuCode &code, const Arch &arch, ObjectCache *disk) {
  const std::string assembler = assemblerName();
  if (assembler.empty())
    return;
  const std::string_view parts[] = {"cubin 1", assembler, arch.name, code.ptx};
  const CacheKey key = cacheKeyOf(parts);
  if (const Code known = findCode(key, nullptr, disk)) {
    const auto kept = nlohmann::json::from_cbor(*known, /*strict=*/true, /*allow_exceptions=*/false);
    if (kept.is_object()) {
      const auto &bytes = kept.at("cubin").get_binary();
      code.cubin.assign(reinterpret_cast<const std::byte *>(bytes.data()),
                        reinterpret_cast<const std::byte *>(bytes.data()) + bytes.size());
      code.assembler = kept.at("assembler");
      for (const nlohmann::json &k : kept.at("kernels"))
        code.kernels.push_back({k.at(0), k.at(1), k.at(2), k.at(3), k.at(4), k.at(5)});
      return;
    }
  }
  auto made = assemble(code.ptx, arch);
  if (!made)
    return;
  code.cubin = std::move(made->cubin);
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelResources &r : made->kernels) {
    code.kernels.push_back({r.symbol, r.registers, r.spillStores, r.spillLoads, r.stackBytes, r.sharedBytes});
    kernels.push_back({r.symbol, r.registers, r.spillStores, r.spillLoads, r.stackBytes, r.sharedBytes});
  }
  code.assembler = std::move(made->tool);
  const auto *bytes = reinterpret_cast<const uint8_t *>(code.cubin.data());
  const nlohmann::json kept = {{"cubin", nlohmann::json::binary({bytes, bytes + code.cubin.size()})},
                               {"assembler", code.assembler},
                               {"kernels", std::move(kernels)}};
  std::vector<char> packed;
  nlohmann::json::to_cbor(kept, packed);
  keepCode(key, std::make_shared<const std::vector<char>>(std::move(packed)), disk);
}

} // namespace

runtime::GpuCode compileKernels(const std::vector<Kernel> &kernels, const Arch &arch, bool assembled,
                                const CodeSources &sources, KernelCodeStats *stats) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Distinct> distinct;
  std::map<CacheKey, size_t> known;
  std::vector<size_t> which; ///< of `distinct`, for each kernel
  for (const Kernel &kernel : kernels) {
    const Kernel &form = kernel.formFor(arch);
    const CacheKey key = keyOf(form, arch);
    const auto [it, isNew] = known.emplace(key, distinct.size());
    if (isNew)
      distinct.push_back({&form, key, "k_" + key.hex().substr(0, 32), findCode(key, sources.archive, sources.disk)});
    which.push_back(it->second);
  }
  std::vector<Distinct *> missing;
  for (Distinct &d : distinct)
    if (!d.code)
      missing.push_back(&d);
  // Long ones first, so that no thread is left with one at the end.
  std::ranges::sort(missing, [](const Distinct *a, const Distinct *b) {
    const size_t left = a->kernel->text.size(), right = b->kernel->text.size();
    return left != right ? left > right : a < b; // both in one array: in program order
  });
  forEachInParallel(missing.size(), [&] {
    const auto target = std::make_shared<const Target>(arch);
    return [&, target](size_t i) {
      missing[i]->code = compileOne(*missing[i], *target);
      keepCode(missing[i]->key, missing[i]->code, sources.disk);
    };
  });
  if (sources.used)
    for (const Distinct &d : distinct)
      sources.used(d.key, d.code);
  runtime::GpuCode code{.arch = std::string(arch.name), .ptx = "// Generated by Tressel.\n\n" + headFor(arch)};
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Distinct &d = distinct[which[i]];
    appendRenamed(code.ptx, {d.code->data(), d.code->size()}, d.symbol, kernels[i].symbol);
  }
  if (assembled)
    assembleInto(code, arch, sources.disk);
  if (sources.disk)
    sources.disk->flush();
  if (stats) {
    stats->seconds = runtime::secondsSince(start);
    stats->compiled = static_cast<int>(missing.size());
    stats->cached = static_cast<int>(distinct.size() - missing.size());
    stats->shared = static_cast<int>(kernels.size() - distinct.size());
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
    if (const std::string &own = kernel.formFor(arch).arch; !own.empty() && findArch(own).isSpecific())
      throw Error({.message = "kernel '" + kernel.symbol + "' has instructions of " + std::string(arch.name) +
                              " alone (wgmma, tcgen05, TMA), which are not emulated",
                   .hint = "emulate the kernels for " + std::string(arch.card) + " (--gpu " + std::string(arch.card) +
                           "), or run a package on the stand-in for NVIDIA's driver (test/standin)"});
  const Target target(arch);
  llvm::LLVMContext context;
  const std::shared_ptr<EmulatedModule> module = EmulatedModule::create(*optimized(kernels, target, context));
  std::map<std::string, std::shared_ptr<const EmulatedKernel>> bySymbol;
  for (const Kernel &given : kernels) {
    const Kernel &kernel = given.formFor(arch);
    bySymbol[kernel.symbol] = std::make_shared<EmulatedKernel>(
        EmulatedKernel{module, kernel.symbol, kernel.threads, kernel.blocks, kernel.cluster, kernel.symbols,
                       static_cast<size_t>(kernel.numBuffers)});
  }
  return [bySymbol = std::move(bySymbol)](const runtime::KernelDesc &desc) -> runtime::LoadedKernel {
    const auto found = bySymbol.find(desc.symbol);
    if (found == bySymbol.end())
      return {};
    return {.fn = EmulatedKernel::run, .state = found->second.get(), .owner = found->second};
  };
}

} // namespace tressel::codegen::cuda
