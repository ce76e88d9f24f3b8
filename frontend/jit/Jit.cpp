// The cache of a jitted function's programs.
#include "frontend/trace/Debug.h"
#include "runtime/types/Clock.h"
#include "frontend/eager/Eager.h"
#include "frontend/jit/EntryRun.h"
#include "frontend/jit/Explain.h"
#include "frontend/trace/Fingerprint.h"
#include "frontend/trace/Trace.h"

#include "tressel/runtime/File.h"

#include <tressel/debug.h>
#include <tressel/jit.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

namespace tressel {
namespace detail {
namespace {

/// TRESSEL_CHECK_TRACE: compare at each Nth call of a program. 0: only at its second.
uint64_t checkInterval() {
  static const uint64_t interval = [] {
    const char *given = std::getenv("TRESSEL_CHECK_TRACE");
    const std::string text = given ? given : "";
    uint64_t n = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (!text.empty() && (problem != std::errc() || end != text.data() + text.size())) {
      std::cerr << "tressel: TRESSEL_CHECK_TRACE is '" << text << "', which is no number; calls are compared at the second only\n";
      n = 0;
    }
    return n;
  }();
  return interval;
}

/// What errors of a call are said of: a jitted function by its name. Modules call theirs "module".
std::string calleeOf(const JitOptions &options) { return options.name == "module" ? "hybridized module" : options.name; }

void checkLeaf(const Tensor &t, size_t index, const JitOptions &options, const std::source_location &where) {
  if (!t.defined())
    fail<Error>("tensor " + std::to_string(index) + " of the arguments is empty", toLoc(where), calleeOf(options),
                "it was moved from, or never got a value");
  if (t.traced())
    fail<TraceError>("tensor " + std::to_string(index) + " of the arguments, " + t.type().str() +
                         ", belongs to a trace that has ended",
                     toLoc(where), calleeOf(options));
  checkMachine(*t.impl(), currentMachine(), toLoc(where), calleeOf(options).c_str());
}

void checkLeaves(const CallArgs &args, const JitOptions &options, const std::source_location &where) {
  const auto tensors = args.tensors();
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i]->defined() || tensors[i]->traced() || tensors[i]->impl()->home) [[unlikely]]
      checkLeaf(*tensors[i], i, options, where);
}

} // namespace

namespace {
/// Says that this thread makes a program, which another call of the same function cannot do meanwhile.
class Making {
public:
  explicit Making(std::atomic<std::thread::id> &maker) : maker_(maker) { maker_ = std::this_thread::get_id(); }
  ~Making() { maker_ = std::thread::id(); }
  Making(const Making &) = delete;
  Making &operator=(const Making &) = delete;

private:
  std::atomic<std::thread::id> &maker_;
};
} // namespace

struct JitCore::Impl {
  JitOptions options;
  mutable std::mutex mutex;                    // guards entries and statistics
  std::mutex compiling;                        // one program is made at a time: one compile per key
  std::atomic<std::thread::id> maker;          // who holds it
  std::vector<std::shared_ptr<JitEntry>> entries; // the most recently used first
  std::shared_ptr<JitEntry> dropped;              // the last one whose modules were changed
  RetraceBudget budget;
  std::vector<std::vector<TensorType>> refused; // types with symbols that the function cannot be recorded with
  JitStats stats;
  const JitEntry *previous = nullptr; // found last, under the mutex; compared only

  std::shared_ptr<VariableImpl> assigned; // one that some program assigns: all that programs do are in its group; under `mutex`

  /// Counts the changes of `entries` after which a call may be another program's.
  std::atomic<uint64_t> generation{0};
  Places places;
  std::vector<std::unique_ptr<LastCall>> lastCalls; // all that were made, as many as calls that ran at once; guarded
  std::vector<LastCall *> unused;                   // of those; guarded

  static std::mutex &registryMutex() {
    static auto *mutex = new std::mutex;
    return *mutex;
  }
  static std::set<Impl *> &registry() {
    static auto *set = new std::set<Impl *>;
    return *set;
  }

  Found find(const CallArgs &args, uint32_t mode) {
    std::lock_guard lock(mutex);
    // A program for these very sizes before one for all.
    size_t found = entries.size();
    for (size_t i = 0; i < entries.size(); ++i)
      if ((found == entries.size() || entries[found]->isSymbolic) && (found == entries.size() || !entries[i]->isSymbolic) &&
          entries[i]->matches(args, mode))
        found = i;
    if (found == entries.size())
      return {};
    if (!entries[found]->isCurrent()) {
      dropped = std::move(entries[found]);
      entries.erase(entries.begin() + static_cast<ptrdiff_t>(found));
      ++generation;
      return {};
    }
    touch(found);
    const std::shared_ptr<JitEntry> &entry = entries.front();
    ++stats.hits;
    return {entry, ++entry->calls, generation, entry->structureSeen, std::exchange(previous, entry.get()) == entry.get()};
  }
  /// Makes it the most recently used one.
  void touch(size_t i) {
    std::rotate(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(i),
                entries.begin() + static_cast<ptrdiff_t>(i) + 1);
  }

  LastCall *take(const CallArgs &args, uint32_t mode);
  void giveBack(LastCall *last);
  void remember(const Found &found, const CallArgs &args, std::unique_ptr<CompiledFunction::Slot> slot);
  void forget(LastCall *last);
  void forgetAll();

  /// `call` are the types of the call that it is made for, where those are not `types`.
  std::shared_ptr<JitEntry> make(std::vector<TensorType> types, std::vector<uint32_t> homes,
                                 std::vector<uint64_t> words, TraceBody &body, const std::source_location &where,
                                 const std::vector<TensorType> *call = nullptr);
  std::optional<std::vector<TensorType>> generalized(std::span<const TensorType> types,
                                                     std::span<const uint64_t> words, uint32_t mode) const;
  std::shared_ptr<JitEntry> makeGeneral(const std::vector<TensorType> &types, const std::vector<uint32_t> &homes,
                                        const std::vector<uint64_t> &words, TraceBody &body,
                                        const std::source_location &where);
  void check(JitEntry &entry, TraceBody &body, const std::source_location &where);
  Found entryFor(const CallArgs &args, TraceBody &body, const std::source_location &where);
  template <typename Fn> bool run(const CallArgs &args, TraceBody &body, const std::source_location &where, Fn results);

  const JitEntry *before() const { return dropped ? dropped.get() : entries.empty() ? nullptr : entries.front().get(); }
  bool isSpent() const {
    std::lock_guard lock(mutex);
    return budget.isSpent(options);
  }
  void failSpent(const Difference *now, TraceBody &body, const std::source_location &where) const;
  void spend(const CallArgs &args, TraceBody &body, const std::source_location &where);
  std::vector<Tensor> runImperatively(const JitCore &core, const CallArgs &args, TraceBody &body,
                                      std::shared_ptr<void> *prototype, const std::source_location &where);
};

/// One that was made for a call like this, or null.
LastCall *JitCore::Impl::take(const CallArgs &args, uint32_t mode) {
  LastCall *last = places.takeOut();
  if (!last)
    return nullptr;
  if (last->generation == generation.load(std::memory_order_acquire) &&
      last->structure == structureEpoch.load(std::memory_order_acquire) && last->matches(args, mode)) {
    last->hits.store(last->hits.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return last;
  }
  giveBack(last);
  return nullptr;
}

void JitCore::Impl::giveBack(LastCall *last) {
  const bool isGood = last->slot && last->generation == generation.load(std::memory_order_acquire);
  if (!isGood || !places.putBack(last))
    forget(last);
}

/// It is owned, and waits for another program.
void JitCore::Impl::forget(LastCall *last) {
  std::shared_ptr<JitEntry> entry;
  {
    std::lock_guard lock(mutex);
    entry = std::move(last->entry);
    if (last->slot)
      entry->traced.function->release(std::move(last->slot));
    unused.push_back(last);
  }
}

/// Of this thread and of those that share a place; other threads find out at their next call.
void JitCore::Impl::forgetAll() {
  for (LastCall *last : {places.takeOut(), places.takeOutShared()})
    if (last)
      forget(last);
}

/// The context of a call that ran at once, for the next one like it.
void JitCore::Impl::remember(const Found &found, const CallArgs &args, std::unique_ptr<CompiledFunction::Slot> slot) {
  LastCall *last = nullptr;
  if (LastCall *old = places.takeOut()) // for another kind of call
    forget(old);
  {
    std::lock_guard lock(mutex);
    if (unused.empty())
      unused.push_back(lastCalls.emplace_back(std::make_unique<LastCall>()).get());
    last = unused.back();
    unused.pop_back();
    last->entry = found.entry;
  }
  last->types.clear();
  for (const Tensor *t : args.tensors())
    last->types.push_back(t->type());
  last->generation = found.generation;
  last->structure = found.structure;
  last->slot = std::move(slot);
  giveBack(last);
}

/// Runs the body under a recorder, with the lines of the ops inside its own.
static std::vector<Tensor> recordBody(Recorder &recorder, std::span<const Tensor> inputs, TraceBody &body,
                                      std::shared_ptr<void> *prototype) {
  RecorderScope scope(&recorder);
  return body.run(inputs, prototype);
}

const Tensor &inputAt(std::span<const Tensor> inputs, size_t i) {
  if (i >= inputs.size())
    throw Error(
        {.message = "types are given for " + std::to_string(inputs.size()) + " tensors, but the arguments hold more",
         .hint = "give one type per tensor, in order"});
  return inputs[i];
}

/// `homes`: none for values of the host.
static std::vector<Tensor> makeInputs(TraceRecorder &recorder, std::span<const TensorType> types, SourceLoc where,
                                      std::span<const std::string> names = {}, std::span<const uint32_t> homes = {}) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < types.size(); ++i)
    inputs.push_back(recorder.input(types[i], names.empty() ? "arg" + std::to_string(i) : names[i], where,
                                    homes.empty() ? 0 : homes[i]));
  return inputs;
}

static std::vector<TensorType> typesOf(const CallArgs &args, const JitOptions &options, const std::source_location &where) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < args.tensors().size(); ++i) {
    checkLeaf(*args.tensors()[i], i, options, where);
    types.push_back(args.tensors()[i]->type());
  }
  return types;
}

static Fingerprint fingerprintOf(std::span<const TensorType> types, TraceBody &body,
                                 const std::source_location &where) {
  FingerprintRecorder recorder;
  std::vector<Tensor> inputs;
  for (const TensorType &type : types)
    inputs.push_back(recorder.input(type, toLoc(where)));
  for (const Tensor &t : recordBody(recorder, inputs, body, nullptr))
    recorder.fingerprint.result(t);
  return std::move(recorder.fingerprint);
}

/// A number for what tells calls apart.
static uint64_t kindOf(std::span<const TensorType> types, std::span<const uint32_t> homes,
                       std::span<const uint64_t> words) {
  uint64_t hash = callMode();
  for (const TensorType &type : types)
    hash = mixHash(hash, type);
  for (uint32_t home : homes)
    hash = mixHash(hash, home);
  for (uint64_t word : words)
    hash = mixHash(hash, word);
  return hash;
}

/// What the program is placed on: the machine, or what JitOptions::devices leave of it, and the devices where values
/// are. Nothing: the processor.
static std::optional<runtime::MachineModel> modelFor(const JitOptions &options, const runtime::Machine *machine,
                                                     std::span<const uint32_t> homes = {}) {
  const auto &devices = options.devices;
  for (const Device &device : devices)
    if (device != cpu() && (!machine || !machine->model().find(refOf(device))))
      throw Error(Error::Details{.message = "'" + options.name + "' is to run on " + device.name() + ", which the machine does not have",
                                 .hint = "choose one that has it with use_machine"});
  if (!machine)
    return std::nullopt;
  runtime::MachineModel model = machine->model();
  if (devices.empty())
    return model;
  auto isLeft = [&](runtime::DeviceRef ref) {
    return isHost(ref) || std::ranges::any_of(devices, [&](Device d) { return refOf(d) == ref; }) ||
           std::ranges::find(homes, homeNumber(ref)) != homes.end();
  };
  std::erase_if(model.devices, [&](const runtime::DeviceModel &d) { return !isLeft(d.device); });
  std::erase_if(model.routes, [&](const runtime::RouteModel &r) { return !isLeft(r.from) || !isLeft(r.to); });
  return model;
}

std::shared_ptr<JitEntry> JitCore::Impl::make(std::vector<TensorType> types, std::vector<uint32_t> homes,
                                              std::vector<uint64_t> words, TraceBody &body,
                                              const std::source_location &where, const std::vector<TensorType> *call) {
  {
    std::lock_guard lock(mutex);
    budget.need(kindOf(types, homes, words));
    if (budget.isSpent(options)) { // asked for ahead of a call
      const JitEntry *known = before();
      const Difference now = known ? known->firstDifference(types, homes, words, callMode()) : Difference();
      failSpent(known ? &now : nullptr, body, where);
    }
  }
  auto entry = std::make_shared<JitEntry>();
  entry->types = std::move(types);
  entry->isSymbolic = std::ranges::any_of(entry->types, [](const TensorType &t) { return !t.shape.isStatic(); });
  entry->homes = std::move(homes);
  entry->words = std::move(words);
  entry->mode = callMode();
  entry->structureSeen = structureEpoch.load(std::memory_order_acquire);
  entry->machine = currentMachine();
  std::vector<runtime::DeviceRef> devices;
  for (const Device &device : options.devices)
    devices.push_back(refOf(device));
  (void)modelFor(options, entry->machine.get()); // throws where the machine lacks one of them
  const double start = runtime::nowSeconds();
  TraceRecorder recorder;
  std::vector<Tensor> results =
      recordBody(recorder, makeInputs(recorder, entry->types, toLoc(where), {}, entry->homes), body, &entry->prototype);
  const std::optional<runtime::MachineModel> model = modelFor(options, entry->machine.get(), recorder.homes());
  const double traced = runtime::nowSeconds();
  entry->traced = recorder.finish(results, {.name = options.name,
                                            .deterministic = options.deterministic,
                                            .diskCache = options.disk_cache,
                                            .measure = options.measure,
                                            .winograd = options.winograd,
                                            .keepSubnormals = options.keep_subnormals,
                                            .strictDonation = options.strict_donation,
                                            .machine = entry->machine,
                                            .model = model ? &*model : nullptr,
                                            .devices = devices});
  const double compiled = runtime::nowSeconds();
  entry->structure = recorder.structure();
  entry->stateTypes = entry->typesOfStates();
  entry->stateHomes = entry->homesOfStates();
  if (const auto &updated = entry->traced.updated; !updated.empty()) {
    std::unique_lock known(mutex);
    if (!assigned)
      assigned = updated.front();
    const std::array both{assigned, updated.front()};
    known.unlock(); // a thread that holds the group may want it
    StateGroup::join(both);
  }

  std::lock_guard lock(mutex);
  ++stats.traces;
  budget.made();
  stats.trace_seconds += traced - start;
  stats.compile_seconds += compiled - traced;
  stats.kernels_compiled += static_cast<uint64_t>(entry->traced.kernelsCompiled);
  stats.kernels_cached += static_cast<uint64_t>(entry->traced.kernelsCached);
  if (const JitEntry *known = before()) {
    const Difference difference =
        known->firstDifference(call ? *call : entry->types, entry->homes, entry->words, entry->mode);
    stats.retraces.push_back(difference.text);
    budget.note(difference);
  }
  dropped.reset();
  ++generation;
  for (const auto &last : lastCalls) // calls that did not come by here are uses as well
    if (const uint64_t hits = last->hits.load(std::memory_order_relaxed); last->entry && last->hitsSeen != hits) {
      last->hitsSeen = hits;
      if (auto used = std::ranges::find(entries, last->entry); used != entries.end())
        touch(static_cast<size_t>(used - entries.begin()));
    }
  entries.insert(entries.begin(), entry);
  if (entries.size() > static_cast<size_t>(std::max(1, options.max_programs)))
    entries.pop_back();
  return entry;
}

/// The types of a call with symbols where a known program differs: nothing if there is none that differs in one size only.
/// The same two sizes in several places are one symbol: a batch of images with their labels.
std::optional<std::vector<TensorType>>
JitCore::Impl::generalized(std::span<const TensorType> types, std::span<const uint64_t> words, uint32_t mode) const {
  for (const auto &entry : entries) {
    if (entry->mode != mode || entry->types.size() != types.size() || !std::ranges::equal(entry->words, words))
      continue;
    std::vector<TensorType> general(types.begin(), types.end());
    std::optional<std::pair<int64_t, int64_t>> change; // the known size and the new one
    int64_t symbol = 0;
    bool fits = true;
    for (size_t i = 0; i < types.size() && fits; ++i) {
      const TensorType &known = entry->types[i];
      fits = known.dtype == types[i].dtype && known.rank() == types[i].rank();
      for (int d = 0; fits && d < known.rank(); ++d) {
        const int64_t before = known.shape[d], now = types[i].shape[d];
        if (before == now)
          continue;
        if (dim::isSymbolic(before)) { // dynamic already
          const dim::Bounds bounds = dim::bounds(before);
          fits = now >= bounds.lo && now <= bounds.hi;
          general[i].shape[d] = before;
          continue;
        }
        if (!change) {
          change = {before, now};
          symbol = dim::symbol("arg" + std::to_string(i) + "_" + std::to_string(d));
        }
        fits = *change == std::pair(before, now) && before > 0 && now > 0;
        general[i].shape[d] = symbol;
      }
    }
    if (fits && change)
      return general;
  }
  return std::nullopt;
}

/// A program for all sizes where the function allows it, else null.
std::shared_ptr<JitEntry> JitCore::Impl::makeGeneral(const std::vector<TensorType> &types,
                                                     const std::vector<uint32_t> &homes,
                                                     const std::vector<uint64_t> &words, TraceBody &body,
                                                     const std::source_location &where) {
  std::optional<std::vector<TensorType>> general;
  {
    std::lock_guard lock(mutex);
    if (!options.infer_dynamic)
      return nullptr;
    general = generalized(types, words, callMode());
    if (!general || std::ranges::find(refused, *general) != refused.end())
      return nullptr;
  }
  try {
    return make(*general, homes, words, body, where, &types);
  } catch (const InternalError &) {
    throw;
  } catch (const Error &) { // the function wants to know the size: each has a program of its own, as before
    std::lock_guard lock(mutex);
    refused.push_back(std::move(*general));
    return nullptr;
  }
}

/// Records once more, and compares with the first call.
void JitCore::Impl::check(JitEntry &entry, TraceBody &body, const std::source_location &where) {
  Fingerprint now = fingerprintOf(entry.types, body, where);
  std::lock_guard lock(mutex);
  ++stats.checks;
  if (std::string difference = now.differsFrom(entry.traced.fingerprint); !difference.empty())
    fail<TraceError>(
        "'" + options.name + "' recorded another program than at its first call: " + difference, toLoc(where), "jit",
        "what a jitted function reads from outside is fixed when it is recorded: pass it as an argument, or "
        "make it a Variable");
}

void JitCore::Impl::failSpent(const Difference *now, TraceBody &body, const std::source_location &where) const {
  fail<TraceError>(budget.message(options, now, body), toLoc(where), "jit", budget.hint(options));
}

/// A call that needs one program too many: throws, or is one to run op by op.
void JitCore::Impl::spend(const CallArgs &args, TraceBody &body, const std::source_location &where) {
  const auto machine = currentMachine();
  const std::optional<runtime::MachineModel> model = modelFor(options, machine.get());
  // Ops that run one by one run on the host, and flush subnormal numbers.
  const bool needsProgram = options.keep_subnormals || (model && std::ranges::any_of(model->devices, [](const runtime::DeviceModel &d) {
                              return d.device.kind != runtime::DeviceKind::Cpu;
                            }));
  const std::vector<TensorType> types = typesOf(args, options, where);
  std::string warning;
  {
    std::lock_guard lock(mutex);
    const JitEntry *known = before();
    const Difference now =
        known ? known->firstDifference(types, JitEntry::homesOf(args.tensors()), args.words(), callMode())
              : Difference();
    const bool throws = options.strict_retrace || needsProgram, warns = !throws && budget.warns();
    if (throws || warns)
      budget.need(kindOf(types, JitEntry::homesOf(args.tensors()), args.words()));
    if (throws)
      failSpent(known ? &now : nullptr, body, where);
    if (warns)
      warning = budget.message(options, known ? &now : nullptr, body) +
                "; calls that need another program run op by op from now on: " + budget.hint(options);
    ++stats.imperative;
  }
  if (!warning.empty()) {
    const SourceLoc line = userLine(toLoc(where));
    std::cerr << "tressel: " + (line ? line.str() + ": " : std::string()) + warning + "\n";
  }
}

/// Null: the budget is spent, and the function itself is to run.
Found JitCore::Impl::entryFor(const CallArgs &args, TraceBody &body, const std::source_location &where) {
  Found found = find(args, callMode());
  if (!found.entry) {
    std::unique_lock lock(compiling, std::defer_lock);
    std::optional<Making> making;
    if (!isSpent()) {
      lock.lock();
      making.emplace(maker);
      found = find(args, callMode()); // another thread may have made it meanwhile
    }
    if (!found.entry && isSpent()) {
      spend(args, body, where);
      return {};
    }
    if (!found.entry) {
      const std::vector<TensorType> types = typesOf(args, options, where);
      const std::vector<uint64_t> words(args.words().begin(), args.words().end());
      const std::vector<uint32_t> homes = JitEntry::homesOf(args.tensors());
      found.entry = makeGeneral(types, homes, words, body, where);
      if (!found.entry)
        found.entry = make(types, homes, words, body, where);
      std::lock_guard count(mutex);
      found.entry->calls = 1;
      return found;
    }
  }
  if (found.calls == 2 || (checkInterval() && found.calls % checkInterval() == 0)) [[unlikely]]
    check(*found.entry, body, where);
  return found;
}

JitCore::JitCore(JitOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  std::lock_guard lock(Impl::registryMutex());
  Impl::registry().insert(impl_.get());
}

JitCore::~JitCore() {
  std::lock_guard lock(Impl::registryMutex());
  Impl::registry().erase(impl_.get());
}

/// Finds the op behind a NaN or an infinity, which need not reach what the call gave: runs the function again, op by
/// op, from the Variables' values of before. `had` are those, in the order of Traced::updated.
static void findNan(const JitOptions &options, JitEntry &entry, const CallArgs &args, TraceBody &body,
                    std::span<const Tensor> had, std::span<const Tensor> results, const std::source_location &where) {
  std::vector<Tensor> have;
  for (const auto &variable : entry.traced.updated)
    have.push_back(variable->get(toLoc(where)));
  auto allFinite = [&](std::span<const Tensor> tensors) {
    return std::ranges::all_of(tensors, [&](const Tensor &t) { return isFinite(t, toLoc(where)); });
  };
  const bool given = !allFinite(results) || !allFinite(have);
  auto assign = [&](std::span<const Tensor> values) {
    for (size_t i = 0; i < values.size(); ++i)
      Variable(entry.traced.updated[i]).assign(values[i], where);
  };
  std::vector<Tensor> inputs;
  for (const Tensor *t : args.tensors())
    inputs.push_back(*t);
  assign(had);
  bool finite;
  try {
    DisableJit opByOp;
    finite = allFinite(body.run(inputs, nullptr));
    assign(have);
  } catch (...) {
    assign(have);
    throw;
  }
  if (finite && given)
    fail<RuntimeError>("'" + options.name +
                           "' gives NaN or infinite elements when compiled, but none when its ops run one by one",
                       toLoc(where), "jit", "this is a bug of the compiler: tressel bisect finds the kernel");
  // Else they were among the operands from the beginning.
}

/// Runs the function itself, op by op.
std::vector<Tensor> JitCore::Impl::runImperatively(const JitCore &core, const CallArgs &args, TraceBody &body,
                                                   std::shared_ptr<void> *prototype,
                                                   const std::source_location &where) {
  // Held while functions that are called inside take their own: so one thread at a time does this, of all functions.
  static auto *imperative = new std::recursive_mutex; // threads may outlive static destruction
  std::unique_lock all(*imperative, std::defer_lock);
  std::optional<StateGroup::Lock> own;
  std::shared_ptr<VariableImpl> one;
  {
    std::lock_guard lock(mutex);
    one = assigned;
  }
  if (one) {
    all.lock();
    own.emplace(*one);
  }
  const CallDepth depth(core, where);
  std::vector<Tensor> inputs;
  for (const Tensor *t : args.tensors())
    inputs.push_back(*t);
  return body.run(inputs, prototype);
}

/// Runs the program of the call, made first if there is none, and hands the run to `results`. False: the function
/// itself is to run.
template <typename Fn>
bool JitCore::Impl::run(const CallArgs &args, TraceBody &body, const std::source_location &where, Fn results) {
  checkLeaves(args, options, where);
  if (LastCall *last = take(args, callMode())) {
    struct GiveBack {
      Impl &impl;
      LastCall *last;
      ~GiveBack() { impl.giveBack(last); }
    } back{*this, last};
    EntryRun run(*last->entry, args, where, &last->slot);
    results(*last->entry, run);
    return true;
  }
  const Found found = entryFor(args, body, where);
  if (!found.entry) [[unlikely]]
    return false;
  // A call like the one before may well come again. Those that are checked now and then go this way.
  const bool repeats = found.again && found.calls > 2 && !checkInterval();
  std::unique_ptr<CompiledFunction::Slot> slot;
  {
    EntryRun run(*found.entry, args, where, repeats ? &slot : nullptr);
    results(*found.entry, run);
  }
  if (slot)
    remember(found, args, std::move(slot));
  return true;
}

std::shared_ptr<void> JitCore::call(const CallArgs &args, TraceBody &body, std::vector<Tensor> &results,
                                    const std::source_location &where) {
  std::shared_ptr<void> prototype;
  if (!checkingNan()) [[likely]] {
    const bool ran = impl_->run(args, body, where, [&](const JitEntry &entry, EntryRun &run) {
      prototype = entry.prototype;
      results.reserve(entry.traced.results.size());
      for (const TraceResult &r : entry.traced.results)
        results.push_back(run.get(r));
    });
    if (!ran) [[unlikely]]
      results = impl_->runImperatively(*this, args, body, &prototype, where);
    return prototype;
  }
  checkLeaves(args, impl_->options, where);
  std::shared_ptr<JitEntry> entry = impl_->entryFor(args, body, where).entry;
  if (!entry) { // each op is checked as it runs
    results = impl_->runImperatively(*this, args, body, &prototype, where);
    return prototype;
  }
  std::vector<Tensor> before;
  for (const auto &variable : entry->traced.updated)
    before.push_back(variable->get(toLoc(where)));
  {
    EntryRun run(*entry, args, where, nullptr);
    for (const TraceResult &r : entry->traced.results)
      results.push_back(run.get(r));
  }
  findNan(impl_->options, *entry, args, body, before, results, where);
  return entry->prototype;
}

Tensor JitCore::callOne(const CallArgs &args, TraceBody &body, const std::source_location &where) {
  if (checkingNan()) [[unlikely]] {
    std::vector<Tensor> results;
    call(args, body, results, where);
    return results.front();
  }
  Tensor result;
  const bool ran = impl_->run(args, body, where, [&](const JitEntry &entry, EntryRun &run) {
    result = run.take(entry.traced.results.front());
  });
  if (!ran) [[unlikely]]
    result = impl_->runImperatively(*this, args, body, nullptr, where).front();
  return result;
}

void JitCore::compile(std::span<const TensorSpec> inputs, std::span<const uint64_t> words, TraceBody &body,
                      const std::source_location &where) {
  std::vector<TensorType> types = detail::typesOf(inputs, "compile", where);
  if (impl_->maker == std::this_thread::get_id())
    fail<TraceError>("'" + impl_->options.name + "' is compiled while it is being recorded", toLoc(where), "compile",
                     "compile it before, or call it");
  std::lock_guard lock(impl_->compiling);
  const Making making(impl_->maker);
  {
    std::lock_guard entries(impl_->mutex);
    for (const auto &entry : impl_->entries)
      if (entry->types == types && std::ranges::count(entry->homes, 0u) == std::ssize(entry->homes) &&
          entry->mode == callMode() && std::ranges::equal(entry->words, words) && entry->isCurrent())
        return;
  }
  std::vector<uint32_t> homes(types.size(), 0); // ahead of calls with tensors of the host
  impl_->make(std::move(types), std::move(homes), {words.begin(), words.end()}, body, where);
}

std::string JitCore::traceOnly(const CallArgs &args, TraceBody &body, bool text, const std::source_location &where) {
  TraceRecorder recorder;
  const std::vector<TensorType> types = typesOf(args, impl_->options, where);
  std::vector<Tensor> results = recordBody(recorder, makeInputs(recorder, types, toLoc(where)), body, nullptr);
  return recorder.finish(results, {.name = impl_->options.name, .compile = false, .text = text}).text;
}

void JitCore::exportPackage(const std::string &path, const ExportOptions &options, TraceBody &body,
                            const std::source_location &where) {
  TraceRecorder recorder;
  const std::vector<TensorType> types = detail::typesOf(options.inputs, "export_package", where);
  std::vector<std::string> names;
  for (const TensorSpec &spec : options.inputs)
    names.push_back(spec.name.empty() ? "arg" + std::to_string(names.size()) : spec.name);
  checkDistinct(names, "input", "export_package", where);
  checkDistinct(options.outputs, "output", "export_package", where);
  std::vector<Tensor> results = recordBody(recorder, makeInputs(recorder, types, toLoc(where), names), body, nullptr);
  if (const auto &devices = impl_->options.devices;
      options.gpus.empty() && !devices.empty() && std::ranges::find(devices, cpu()) == devices.end())
    fail<Error>("'" + impl_->options.name + "' is to run on " + devices.front().name() +
                    ", but a package for GPUs needs their architecture",
                toLoc(where), "export_package", "name it in ExportOptions::gpus, or export a function whose JitOptions::devices are empty or have cpu()");
  recorder.exportPackage(results, {.path = path,
                                   .cpu = options.cpu,
                                   .outputNames = options.outputs,
                                   .gpus = options.gpus,
                                   .deterministic = impl_->options.deterministic,
                                   .measure = impl_->options.measure,
                                   .winograd = impl_->options.winograd,
                                   .keepSubnormals = impl_->options.keep_subnormals});
}

void JitCore::dump(const std::string &path, const CallArgs &args, TraceBody &body, const std::source_location &where) {
  std::error_code ec;
  std::filesystem::create_directories(path, ec);
  if (ec)
    fail<RuntimeError>("the folder '" + path + "' cannot be made: " + ec.message(), toLoc(where), "dump");
  const auto machine = currentMachine();
  TraceRecorder recorder;
  const std::vector<TensorType> types = typesOf(args, impl_->options, where);
  std::vector<Tensor> traced = recordBody(
      recorder, makeInputs(recorder, types, toLoc(where), {}, JitEntry::homesOf(args.tensors())), body, nullptr);
  const std::optional<runtime::MachineModel> model = modelFor(impl_->options, machine.get(), recorder.homes());
  recorder.finish(traced, {.name = impl_->options.name,
                           .deterministic = impl_->options.deterministic,
                           .diskCache = impl_->options.disk_cache,
                           .measure = impl_->options.measure,
                           .winograd = impl_->options.winograd,
                           .keepSubnormals = impl_->options.keep_subnormals,
                           .machine = machine,
                           .model = model ? &*model : nullptr,
                           .dump = [&](const std::string &stage, const std::string &text) {
                             runtime::writeFile(path + "/" + stage, std::as_bytes(std::span(text)));
                           }});
  std::vector<Tensor> results;
  call(args, body, results, where);
  for (size_t i = 0; i < args.tensors().size(); ++i)
    tressel::dump(*args.tensors()[i], path + "/arg" + std::to_string(i) + ".npy", where);
  for (size_t i = 0; i < results.size(); ++i)
    tressel::dump(results[i], path + "/result" + std::to_string(i) + ".npy", where);
}

const std::string &JitCore::name() const { return impl_->options.name; }

JitStats JitCore::stats() const {
  std::lock_guard lock(impl_->mutex);
  JitStats stats = impl_->stats;
  stats.live = impl_->entries.size();
  for (const auto &entry : impl_->entries)
    stats.state_copies += entry->traced.function ? entry->traced.function->stateCopies() : 0;
  for (const auto &last : impl_->lastCalls)
    stats.hits += last->hits.load(std::memory_order_relaxed);
  return stats;
}

/// The program that was used last.
static const JitEntry &latestOf(const JitOptions &options, const std::vector<std::shared_ptr<JitEntry>> &entries,
                                const std::source_location &where) {
  if (entries.empty() || !entries.front()->traced.function)
    fail<Error>("'" + options.name + "' has no program yet", toLoc(where), "explain", "call it, or compile it ahead");
  return *entries.front();
}

static runtime::MachineModel modelOf(const JitEntry &entry) {
  return entry.machine ? entry.machine->model() : runtime::hostMachine();
}

Prediction JitCore::explain(const std::source_location &where) const {
  std::lock_guard lock(impl_->mutex);
  const JitEntry &entry = latestOf(impl_->options, impl_->entries, where);
  runtime::Decisions decisions = entry.traced.decisions;
  for (runtime::Decision &finding : entry.traced.function->findings())
    decisions.push_back(std::move(finding));
  return predict(entry.traced.function->schedule(), modelOf(entry), std::move(decisions));
}

void JitCore::drawPlan(const std::string &path, const std::source_location &where) const {
  std::lock_guard lock(impl_->mutex);
  const JitEntry &entry = latestOf(impl_->options, impl_->entries, where);
  detail::drawPlan(path, entry.traced.function->schedule(), modelOf(entry));
}

void JitCore::clearAll() {
  std::lock_guard lock(Impl::registryMutex());
  for (Impl *core : Impl::registry()) {
    {
      std::lock_guard entries(core->mutex);
      core->budget.giveBack(core->entries.size());
      core->entries.clear();
      ++core->generation;
    }
    core->forgetAll();
  }
}

} // namespace detail

void clear_compile_caches() {
  detail::clearEagerFunctions();
  detail::JitCore::clearAll();
  detail::clearCompilerCaches();
}

} // namespace tressel
