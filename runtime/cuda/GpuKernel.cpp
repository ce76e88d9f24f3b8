#include "GpuKernel.h"

#include "runtime/files/Json.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Schedule.h"

#include <algorithm>

namespace tressel::runtime::cuda {
namespace {

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

Module GpuModule::load() {
  const int wanted = card_.major * 10 + card_.minor;
  const GpuCode *best = nullptr;
  GpuArchitecture architecture;
  std::string there;
  for (const GpuCode &code : *codes_) {
    const GpuArchitecture its = GpuArchitecture::of(code.arch);
    there += concat(there.empty() ? "" : ", ", code.arch,
                    its.isSpecific
                        ? concat(" (cards of compute capability ", its.number / 10, ".", its.number % 10, " alone)")
                        : "");
    if (its.runsOn(wanted) &&
        (!best || its.isSpecific || (!architecture.isSpecific && its.number > architecture.number)))
      best = &code, architecture = its;
  }
  if (!best) {
    int known = 0; // of those that code is generated for, the latest that the card runs
    for (int each : {80, 90, 100, 120})
      if (each <= wanted)
        known = each;
    throwError<RuntimeError>("the program has code for ", there.empty() ? "no GPU" : there, ", but this card (",
                             card_.name, ") is a ", card_.architecture(),
                             known ? concat(": compile it for that too (--gpu sm_", known, ")") : ", which is too old");
  }
  loaded_ = best;
  card_.use(driver_);
  Module module = nullptr;
  std::string log;
  Result result = kSuccess;
  if (!best->cubin.empty() && architecture.number / 10 == card_.major) {
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

namespace {

int64_t integerAt(const json::Value &object, const char *key) {
  const json::Value *found = object.find(key);
  return found && found->kind() == json::Value::Kind::Int ? found->asInt() : 0;
}
unsigned threadsOf(const json::Value &object, const std::string &symbol) {
  const int64_t threads = integerAt(object, "threads");
  if (threads < 1 || threads > 1024)
    throwError<InputError>("kernel '", symbol, "' has ", threads, " threads in a block, where a GPU has 1 to 1024");
  return static_cast<unsigned>(threads);
}

} // namespace

GpuKernel::GpuKernel(const KernelDesc &desc, std::shared_ptr<GpuModule> module, const Driver &driver)
    : CudaKernel(Form::Generated), module_(std::move(module)), driver_(driver), symbol_(desc.symbol) {
  const json::Value params = json::parse(desc.params);
  threads_ = threadsOf(params, symbol_);
  const json::Value *architecture = params.find("arch");
  if (!architecture)
    return;
  special_ = std::make_unique<Special>();
  special_->architecture = architecture->asString();
  special_->symbols = LaunchSizes(params);
  const int64_t shared = integerAt(params, "shared");
  const json::Value *portable = params.find("portable"), *blocks = portable ? portable->find("blocks") : nullptr;
  if (!blocks || shared < 0 || shared > INT32_MAX)
    throwError<InputError>("kernel '", symbol_, "': its form for ", special_->architecture, " is not understood");
  special_->sharedBytes = static_cast<unsigned>(shared);
  special_->portableThreads = threadsOf(*portable, symbol_);
  special_->portableBlocks = sizeFrom(*blocks);
  if (const json::Value *cluster = params.find("cluster"))
    special_->cluster = sizeFrom(*cluster);
  if (const json::Value *maps = params.find("maps"))
    for (const json::Value &given : maps->items()) {
      Map &map = special_->maps.emplace_back();
      const json::Value *type = given.find("type"), *sizes = given.find("sizes"), *strides = given.find("strides"),
                        *box = given.find("box");
      if (!type || !sizes || !strides || !box || (type->asString() != "f16" && type->asString() != "bf16"))
        throwError<InputError>("kernel '", symbol_, "': a tensor map is not understood");
      map.operand = static_cast<uint32_t>(integerAt(given, "operand"));
      map.type = type->asString() == "f16" ? DType::f16 : DType::bf16;
      for (const json::Value &size : sizes->items())
        map.sizes.push_back(sizeFrom(size));
      for (const json::Value &stride : strides->items())
        map.strides.push_back(sizeFrom(stride));
      for (const json::Value &size : box->items())
        map.box.push_back(static_cast<uint32_t>(size.asInt()));
      if (map.sizes.empty() || map.sizes.size() > 5 || map.strides.size() + 1 != map.sizes.size() ||
          map.box.size() != map.sizes.size())
        throwError<InputError>("kernel '", symbol_, "': a tensor map has ", map.sizes.size(), " sizes, ",
                               map.strides.size(), " strides and a box of ", map.box.size());
    }
}

Function GpuKernel::function() const {
  if (const Function known = function_.load(std::memory_order_acquire))
    return known;
  const Function found = module_->find(symbol_);
  bool isSpecial = false;
  if (special_) {
    const GpuArchitecture needed = GpuArchitecture::of(special_->architecture);
    isSpecial = needed.isSpecific ? module_->architecture() == special_->architecture
                                  : needed.runsOn(GpuArchitecture::of(module_->architecture()).number);
  }
  constexpr int kMaxDynamicShared = 8; // CUfunction_attribute
  if (isSpecial && special_->sharedBytes)
    driver_.check(driver_.cuFuncSetAttribute(found, kMaxDynamicShared, static_cast<int>(special_->sharedBytes)),
                  concat("asking for ", special_->sharedBytes, " bytes of shared memory for kernel '", symbol_, "'"));
  isSpecial_.store(isSpecial, std::memory_order_relaxed);
  function_.store(found, std::memory_order_release);
  return found;
}

TensorMap GpuKernel::encode(const Map &map, void *address, const dim::Values &values) const {
  enum { kFloat16 = 6, kBfloat16 = 9 }; // CUtensorMapDataType
  enum {
    kNoInterleave = 0,
    kSwizzle128 = 3,
    kPromote128 = 2,
    kFillZero = 0
  }; // CUtensorMapInterleave, ...Swizzle, ...L2promotion, ...FloatOOBfill
  const auto rank = static_cast<unsigned>(map.sizes.size());
  uint64_t sizes[5] = {}, strides[5] = {};
  uint32_t steps[5] = {1, 1, 1, 1, 1};
  for (unsigned i = 0; i < rank; ++i)
    sizes[i] = static_cast<uint64_t>(LaunchSizes::numberOf(map.sizes[i], values));
  for (unsigned i = 0; i + 1 < rank; ++i)
    strides[i] = static_cast<uint64_t>(LaunchSizes::numberOf(map.strides[i], values) * sizeOf(map.type));
  TensorMap encoded;
  const Result result = driver_.cuTensorMapEncodeTiled(&encoded, map.type == DType::f16 ? kFloat16 : kBfloat16, rank,
                                                       address, sizes, strides, map.box.data(), steps, kNoInterleave,
                                                       kSwizzle128, kPromote128, kFillZero);
  if (result != kSuccess) {
    std::string shape;
    for (unsigned i = 0; i < rank; ++i)
      shape += concat(i ? " x " : "", sizes[i], i ? concat(" (", strides[i - 1], " bytes apart)") : std::string());
    throwError<Error>("kernel '", symbol_, "': the driver makes no tensor map of operand ", map.operand, ", ", shape,
                      ": ", driver_.describe(result));
  }
  return encoded;
}

std::vector<TensorMap> GpuKernel::mapsOf(std::span<void *const> addresses, std::span<const int64_t> scalars) const {
  constexpr size_t kMostKept = 64;
  std::vector<uint64_t> key;
  for (const Map &map : special_->maps) {
    if (map.operand >= addresses.size())
      throwError<Error>("kernel '", symbol_, "': a launch has ", addresses.size(),
                        " operands, and a tensor map is of number ", map.operand);
    key.push_back(reinterpret_cast<uint64_t>(addresses[map.operand]));
  }
  key.insert(key.end(), scalars.begin(), scalars.end());
  std::lock_guard lock(special_->mutex);
  const auto known = special_->encoded.find(key);
  if (known != special_->encoded.end())
    return known->second;
  const dim::Values values = special_->symbols.valuesOf(scalars);
  std::vector<TensorMap> maps;
  for (const Map &map : special_->maps)
    maps.push_back(encode(map, addresses[map.operand], values));
  if (special_->encoded.size() >= kMostKept)
    special_->encoded.clear();
  return special_->encoded[std::move(key)] = std::move(maps);
}

GpuKernel::Launch GpuKernel::prepare(int64_t range, std::span<void *const> addresses, std::span<const int64_t> scalars,
                                     int32_t *status, LaunchParams &params) const {
  Launch launch{.function = function(), .blocks = static_cast<unsigned>(range), .threads = threads_};
  if (!special_) {
    params.set(addresses, scalars, status);
  } else if (isSpecial_.load(std::memory_order_relaxed)) {
    launch.sharedBytes = special_->sharedBytes;
    params.set(addresses, scalars, status, mapsOf(addresses, scalars));
    launch.cluster =
        static_cast<unsigned>(LaunchSizes::numberOf(special_->cluster, special_->symbols.valuesOf(scalars)));
  } else {
    launch.threads = special_->portableThreads;
    launch.blocks =
        static_cast<unsigned>(LaunchSizes::numberOf(special_->portableBlocks, special_->symbols.valuesOf(scalars)));
    params.set(addresses, scalars, status);
  }
  return launch;
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

} // namespace tressel::runtime::cuda
