#include "GpuKernel.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Schedule.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tressel::runtime {
namespace cuda {
namespace {

/// "sm_90" as 90; 0 for what is no architecture.
int numberOf(const std::string &architecture) {
  int number = 0;
  return std::sscanf(architecture.c_str(), "sm_%d", &number) == 1 ? number : 0;
}

Result loadImage(const Driver &driver, Module *module, const void *image, std::string &log) {
  enum { kErrorLog = 5, kErrorLogBytes = 6 }; // CUjit_option
  char text[8192] = "";
  int options[] = {kErrorLog, kErrorLogBytes};
  void *values[] = {text, reinterpret_cast<void *>(sizeof text)};
  const Result result = driver.cuModuleLoadDataEx(module, image, 2, options, values);
  log = text;
  return result;
}

} // namespace

Module GpuModules::load(const Card &card, const Driver &driver) const {
  const int wanted = card.major * 10 + card.minor;
  const GpuCode *best = nullptr;
  std::string there;
  for (const GpuCode &code : codes_) {
    there += concat(there.empty() ? "" : ", ", code.arch);
    const int number = numberOf(code.arch);
    if (number && number <= wanted && (!best || number > numberOf(best->arch)))
      best = &code;
  }
  if (!best)
    throwError<RuntimeError>("the program has code for ", there.empty() ? "no GPU" : there, ", but this card (", card.name, ") is a ",
                             card.architecture(), ": compile it for that too (--gpu ", card.architecture(), ")");
  card.use(driver);
  Module module = nullptr;
  std::string log;
  Result result = kSuccess;
  if (!best->cubin.empty() && numberOf(best->arch) / 10 == card.major) {
    result = loadImage(driver, &module, best->cubin.data(), log);
    if (result == kSuccess)
      return module;
  }
  // The driver reads PTX up to its end, a null byte; std::string has one.
  if (!best->ptx.empty())
    result = loadImage(driver, &module, best->ptx.c_str(), log);
  if (result != kSuccess || !module)
    throwError<RuntimeError>(card.name, " does not take the program's code for ", best->arch, ": ", driver.describe(result), log.empty() ? "" : "\n",
                             log);
  return module;
}

Module GpuModules::moduleFor(const Card &card, const Driver &driver) {
  std::lock_guard lock(mutex_);
  Module &module = modules_[card.ordinal];
  if (!module)
    module = load(card, driver);
  return module;
}

GpuModules::~GpuModules() {
  const Driver *driver = modules_.empty() ? nullptr : Driver::find();
  for (const auto &[ordinal, module] : modules_)
    if (module && driver->cuCtxSetCurrent(cards(*driver)[static_cast<size_t>(ordinal)].context) == kSuccess)
      driver->cuModuleUnload(module);
}

int32_t GpuKernel::runNowhere(const KernelArgs *args, int64_t, int64_t) {
  if (args->failure)
    args->failure->say("the kernel is for a GPU");
  return kKernelSaysWhy;
}

const GpuKernel *GpuKernel::of(const void *state, KernelFn fn) { return fn == runNowhere ? static_cast<const GpuKernel *>(state) : nullptr; }

Function GpuKernel::functionOn(const Card &card, const Driver &driver) const {
  std::lock_guard lock(mutex_);
  Function &function = functions_[card.ordinal];
  if (!function) {
    const Module module = modules->moduleFor(card, driver);
    driver.check(driver.cuModuleGetFunction(&function, module, symbol.c_str()), concat("finding the kernel '", symbol, "'"), card.name);
  }
  return function;
}

} // namespace cuda

KernelLookup gpuKernels(std::vector<GpuCode> codes) {
  auto modules = std::make_shared<cuda::GpuModules>(std::move(codes));
  return [modules](const KernelDesc &desc) -> LoadedKernel {
    if (desc.target != KernelTarget::Gpu)
      return {};
    auto kernel = std::make_shared<cuda::GpuKernel>();
    kernel->modules = modules;
    kernel->symbol = desc.symbol;
    const auto params = nlohmann::json::parse(desc.params, nullptr, /*allow_exceptions=*/false);
    const auto found = params.find("threads");
    const int64_t threads = found != params.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
    if (threads < 1 || threads > 1024)
      throwError<InputError>("kernel '", desc.symbol, "' has ", threads, " threads in a block, where a GPU has 1 to 1024");
    kernel->threads = static_cast<unsigned>(threads);
    const void *state = kernel.get();
    return {.fn = cuda::GpuKernel::runNowhere, .state = state, .owner = std::move(kernel)};
  };
}

} // namespace tressel::runtime
