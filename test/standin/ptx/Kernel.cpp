// Modules, and launches of their kernels.
#include "test/standin/ptx/Lexer.h"
#include "test/standin/ptx/Lower.h"
#include "test/standin/ptx/Program.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>

namespace tressel::standin::ptx {

namespace baseline {
void addHandlers(void *context, void (*receive)(void *context, const char *name, const char *type, Handler handler));
}
#ifdef PTX_HAS_HASWELL
namespace haswell {
void addHandlers(void *context, void (*receive)(void *context, const char *name, const char *type, Handler handler));
}
#endif

namespace {

std::atomic<bool> isBaselineForced = false;

using Handlers = std::unordered_map<std::string, Handler>;

Handlers makeHandlers(void (*add)(void *, void (*)(void *, const char *, const char *, Handler))) {
  Handlers handlers;
  add(&handlers, [](void *context, const char *name, const char *type, Handler handler) {
    static_cast<Handlers *>(context)->emplace(std::string(name) + "." + type, handler);
  });
  addCommonHandlers(handlers);
  addAsyncHandlers(handlers);
  addWarpgroupHandlers(handlers);
  addTensorHandlers(handlers);
  return handlers;
}

const Handlers &handlersInUse() {
  static const Handlers least = makeHandlers(baseline::addHandlers);
#ifdef PTX_HAS_HASWELL
  static const bool hasBetter = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                                __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
                                __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt");
  static const Handlers better = hasBetter ? makeHandlers(haswell::addHandlers) : Handlers{};
  if (hasBetter && !isBaselineForced)
    return better;
#endif
  return least;
}

/// MXCSR as a launch changes it, restored.
class Control {
public:
  Control() : old_(exchangeControl(controlOf(kNearest))) {}
  ~Control() { exchangeControl(old_); }
  Control(const Control &) = delete;

private:
  unsigned old_;
};

/// Aligned memory that a thread keeps for its next launch.
std::byte *scratch(size_t bytes) {
  thread_local std::vector<std::byte> kept;
  if (kept.size() < bytes + 64)
    kept.resize(bytes + 64);
  return reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(kept.data()) + 63) / 64 * 64);
}

class Compiled final : public Kernel {
public:
  Program program;
  std::optional<Fault> run(const Launch &launch, Memory &memory) const override;

private:
  void begin(Block &block, uint64_t number) const;
};

std::optional<Fault> Compiled::run(const Launch &launch, Memory &memory) const {
  const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
  auto refuse = [&](const std::string &what) { return Fault{Fault::Kind::Trap, "kernel '" + name + "': " + what}; };
  if (!threads || threads > 1024)
    return refuse("a block of " + std::to_string(threads) + " threads");
  if (!launch.cluster || launch.grid[0] % launch.cluster)
    return refuse("clusters of " + std::to_string(launch.cluster) + " in a grid of " + std::to_string(launch.grid[0]));
  if (launch.params.size() < paramBytes)
    return refuse(std::to_string(launch.params.size()) + " bytes of parameters, of " + std::to_string(paramBytes));
  const unsigned warps = (threads + kLanes - 1) / kLanes;
  const size_t constantBytes = program.constants.size(), frame = program.frameBytes;
  const size_t sharedBytes =
      launch.dynamicSharedBytes ? program.dynamicBegin + launch.dynamicSharedBytes : program.sharedBytes;
  const size_t localBytes = size_t(program.localBytes) * warps * kLanes;
  auto rounded = [](size_t bytes) { return (bytes + 127) / 64 * 64; };
  std::byte *at =
      scratch(launch.cluster * (rounded(constantBytes) + frame * warps + rounded(sharedBytes) + rounded(localBytes) +
                                rounded(paramBytes) + rounded(program.caches * sizeof(Span *))));
  auto take = [&at, &rounded](size_t bytes) { return std::exchange(at, at + rounded(bytes)); };
  std::vector<Block> cluster(launch.cluster);
  for (Block &block : cluster) {
    block.program = &program, block.launch = &launch, block.memory = &memory;
    block.threads = threads;
    block.cluster = cluster;
    std::byte *constants = take(constantBytes);
    std::memcpy(constants, program.constants.data(), constantBytes);
    block.shared = {take(sharedBytes), sharedBytes};
    block.local = {take(localBytes), localBytes};
    block.params = {take(paramBytes), paramBytes};
    if (paramBytes)
      std::memcpy(block.params.host, launch.params.data(), paramBytes);
    block.caches = reinterpret_cast<Span **>(take(program.caches * sizeof(Span *)));
    std::fill_n(block.caches, program.caches, nullptr);
    block.constants = {reinterpret_cast<std::byte *>(program.storage->constants.data()),
                       program.storage->constantBytes};
    block.warps = std::vector<Warp>(warps);
    for (unsigned w = 0; w < warps; ++w) {
      Warp &warp = block.warps[w];
      warp.index = w, warp.block = &block;
      warp.base[0] = std::exchange(at, at + frame);
      warp.base[1] = constants - 1;
      std::memset(warp.base[0], 0, frame);
      for (unsigned l = 0; l < kLanes; ++l) {
        const unsigned thread = w * kLanes + l;
        warp.exists |= static_cast<uint32_t>(thread < threads) << l;
        warp.tid[0][l] = thread % launch.block[0];
        warp.tid[1][l] = thread / launch.block[0] % launch.block[1];
        warp.tid[2][l] = thread / launch.block[0] / launch.block[1];
      }
    }
    block.random = launch.seed ? launch.seed * 0x9e3779b97f4a7c15 | 1 : 0;
  }
  const uint64_t clusters = uint64_t(launch.grid[0]) / launch.cluster * launch.grid[1] * launch.grid[2];
  // Some order of all clusters: from one to another in steps that have no common divisor with their number.
  uint64_t first = 0, step = 1;
  if (launch.seed && clusters > 1) {
    const uint64_t random = cluster.front().random;
    first = random % clusters;
    step = (random >> 20) % clusters;
    while (std::gcd(step, clusters) != 1)
      step = (step + 1) % clusters;
  }
  const Control control;
  try {
    for (uint64_t i = 0; i < clusters; ++i) {
      const auto chosen = static_cast<uint64_t>((first + static_cast<unsigned __int128>(i) * step) % clusters);
      for (Block &block : cluster)
        begin(block, chosen * launch.cluster + block.rank());
      executeCluster(cluster);
      for (Block &block : cluster) {
        endAsync(block);
        endWarpgroups(block);
        endTensorMemory(block);
      }
    }
  } catch (const Stop &stop) {
    return stop.fault;
  }
  return std::nullopt;
}

void Compiled::begin(Block &block, uint64_t number) const {
  const Launch &launch = *block.launch;
  block.index[0] = static_cast<unsigned>(number % launch.grid[0]);
  block.index[1] = static_cast<unsigned>(number / launch.grid[0] % launch.grid[1]);
  block.index[2] = static_cast<unsigned>(number / launch.grid[0] / launch.grid[1]);
  if (block.shared.bytes)
    std::memset(block.shared.host, 0xff, block.shared.bytes);
  if (block.local.bytes)
    std::memset(block.local.host, 0xff, block.local.bytes);
  block.barriers.fill({});
  block.barrierObjects.clear();
  block.tensorCopies.clear();
  block.tensor = {};
  for (Warp &warp : block.warps) {
    warp.live = warp.exists;
    warp.active = 0, warp.carry = 0, warp.gaveWay = false;
    warp.atCluster = warp.clusterMet = 0;
    warp.copies.clear();
    warp.committed.fill(0);
    warp.products.clear(), warp.accumulators.clear();
    warp.committedProducts = 0, warp.tensorLoads.clear(), warp.tensorSeen = 0;
    warp.isFenced = false, warp.warpgroupWork = 0, warp.failedWaits = 0;
    for (const auto &[offset, bytes] : program.uninitialized)
      std::memset(warp.base[0] + offset, bytes == 4 ? 0 : 0xff, bytes);
  }
}

/// Places and first values of the module's .global and .const variables.
std::shared_ptr<Storage> store(const Text &text) {
  auto storage = std::make_shared<Storage>();
  uint64_t ends[2] = {0, 0};
  for (const auto &variable : text.variables)
    if (variable->space != Space::Shared) {
      uint64_t &end = ends[variable->space == Space::Const];
      variable->offset = (end + variable->align - 1) / variable->align * variable->align;
      end = variable->offset + variable->bytes;
    }
  storage->globals.resize((ends[0] + 7) / 8);
  storage->constants.resize((ends[1] + 7) / 8);
  storage->constantBytes = ends[1];
  storage->span.begin = kModuleWindow, storage->span.end = kModuleWindow + ends[0];
  storage->span.host = reinterpret_cast<std::byte *>(storage->globals.data());
  for (const auto &variable : text.variables) {
    if (variable->space == Space::Shared || variable->initial.empty())
      continue;
    auto *host = reinterpret_cast<std::byte *>(variable->space == Space::Const ? storage->constants.data()
                                                                               : storage->globals.data()) +
                 variable->offset;
    std::memcpy(host, variable->initial.data(), variable->initial.size());
    for (const Variable::Address &address : variable->addresses) {
      const auto of = std::ranges::find(text.variables, address.of, [](const auto &v) { return v->name; });
      if (of == text.variables.end() || (*of)->space == Space::Shared)
        failParse(address.line, "the address of '" + address.of + "' is not known");
      const bool isConstant = (*of)->space == Space::Const;
      const uint64_t window = !isConstant ? kModuleWindow : address.isGeneric ? kConstWindow : 0;
      const uint64_t value = window + (*of)->offset + static_cast<uint64_t>(address.offset);
      std::memcpy(host + address.at, &value, sizeof value);
    }
  }
  return storage;
}

} // namespace

Handler findHandler(const std::string &name) {
  const Handlers &handlers = handlersInUse();
  const auto found = handlers.find(name);
  return found == handlers.end() ? nullptr : found->second;
}

void useBaseline(bool yes) { isBaselineForced = yes; }

std::shared_ptr<const Module> Module::parse(std::string_view given) {
  const Text text = parseText(given);
  auto module = std::make_shared<Module>();
  module->target = text.target, module->version = text.version,
  module->isArchitectureSpecific = text.isArchitectureSpecific;
  if (!text.version || !text.target)
    failParse(1, "the text has no .version or no .target");
  const std::shared_ptr<Storage> storage = store(text);
  for (const auto &function : text.functions) {
    if (!function->isKernel || !function->hasBody)
      continue;
    if (module->find(function->name))
      failParse(function->line, "kernel '" + function->name + "' is there twice");
    auto kernel = std::make_unique<Compiled>();
    kernel->name = function->name;
    Program &program = kernel->program;
    program.name = function->name, program.text = text.text, program.storage = storage;
    Lowerer(text, *function, program).run();
    for (const auto &param : function->params)
      kernel->params.push_back(
          {param->name, static_cast<uint32_t>(param->offset), static_cast<uint32_t>(param->bytes), param->align});
    kernel->paramBytes = program.paramBytes;
    kernel->staticSharedBytes = program.sharedBytes;
    kernel->maxThreads = function->maxThreads;
    std::copy(function->requiredThreads, function->requiredThreads + 3, kernel->requiredThreads);
    module->kernels_.push_back(std::move(kernel));
  }
  return module;
}

const Kernel *Module::find(std::string_view name) const {
  for (const auto &kernel : kernels_)
    if (kernel->name == name)
      return kernel.get();
  return nullptr;
}

} // namespace tressel::standin::ptx
