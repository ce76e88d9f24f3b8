#include "GpuKernel.h"

#include "runtime/files/Json.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Schedule.h"

#include <algorithm>
#include <cstdio>

namespace tressel::runtime::cuda {
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

Module GpuModule::load() const {
  const int wanted = card_.major * 10 + card_.minor;
  const GpuCode *best = nullptr;
  std::string there;
  for (const GpuCode &code : *codes_) {
    there += concat(there.empty() ? "" : ", ", code.arch);
    const int number = numberOf(code.arch);
    if (number && number <= wanted && (!best || number > numberOf(best->arch)))
      best = &code;
  }
  if (!best)
    throwError<RuntimeError>("the program has code for ", there.empty() ? "no GPU" : there, ", but this card (", card_.name, ") is a ",
                             card_.architecture(), ": compile it for that too (--gpu ", card_.architecture(), ")");
  card_.use(driver_);
  Module module = nullptr;
  std::string log;
  Result result = kSuccess;
  if (!best->cubin.empty() && numberOf(best->arch) / 10 == card_.major) {
    result = loadImage(driver_, &module, best->cubin.data(), log);
    if (result == kSuccess)
      return module;
  }
  // The driver reads PTX up to its end, a null byte; std::string has one.
  if (!best->ptx.empty())
    result = loadImage(driver_, &module, best->ptx.c_str(), log);
  if (result != kSuccess || !module)
    throwError<RuntimeError>(card_.name, " does not take the program's code for ", best->arch, ": ", driver_.describe(result), log.empty() ? "" : "\n",
                             log);
  return module;
}

Function GpuModule::find(const std::string &symbol) {
  std::lock_guard lock(mutex_);
  if (!module_)
    module_ = load();
  Function function = nullptr;
  driver_.check(driver_.cuModuleGetFunction(&function, module_, symbol.c_str()), concat("finding the kernel '", symbol, "'"), card_.name);
  return function;
}

GpuModule::~GpuModule() {
  if (module_ && driver_.cuCtxSetCurrent(card_.context) == kSuccess)
    driver_.cuModuleUnload(module_);
}

GpuKernel::GpuKernel(const KernelDesc &desc, std::shared_ptr<GpuModule> module)
    : CudaKernel(Form::Generated), module_(std::move(module)), symbol_(desc.symbol) {
  const json::Value params = json::parse(desc.params);
  const json::Value *found = params.find("threads");
  const int64_t threads = found && found->kind() == json::Value::Kind::Int ? found->asInt() : 0;
  if (threads < 1 || threads > 1024)
    throwError<InputError>("kernel '", desc.symbol, "' has ", threads, " threads in a block, where a GPU has 1 to 1024");
  threads_ = static_cast<unsigned>(threads);
}

std::vector<FillNodeParams> fillsOf(const DeviceCommand &c, Address to, int64_t bytes) {
  const auto element = static_cast<unsigned>(sizeOf(c.type));
  const size_t count = static_cast<size_t>(bytes) / element;
  const auto low = static_cast<uint32_t>(c.fillValue), high = static_cast<uint32_t>(c.fillValue >> 32);
  if (element <= 4)
    return {{.to = to, .value = low, .elementBytes = element, .width = count}};
  if (low == high)
    return {{.to = to, .value = low, .elementBytes = 4, .width = 2 * count}};
  const FillNodeParams half{.to = to, .pitch = 8, .value = low, .elementBytes = 4, .width = 1, .height = count};
  FillNodeParams other = half;
  other.to += 4;
  other.value = high;
  return {half, other};
}

Function GpuKernel::function() const {
  if (const Function known = function_.load(std::memory_order_acquire))
    return known;
  const Function found = module_->find(symbol_);
  function_.store(found, std::memory_order_release);
  return found;
}

} // namespace tressel::runtime::cuda
