// Calls of a jitted function: the cache of its programs.
#include "frontend/jit/JitImpl.h"
#include "frontend/tensor/Fail.h"
#include "frontend/trace/Recorder.h"

#include "frontend/eager/Eager.h"
#include "frontend/trace/Debug.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iostream>

namespace tressel {
namespace detail {

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

static void checkLeaves(const CallArgs &args, const JitOptions &options, const std::source_location &where) {
  const auto tensors = args.tensors();
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i]->defined() || tensors[i]->traced() || tensors[i]->impl()->home) [[unlikely]]
      checkLeaf(*tensors[i], i, options, where);
}

/// This thread's LastCall if it fits the call, else null.
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

/// Frees a LastCall that this thread owns, to be used for another program.
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

/// Those of this thread and of the shared place. Other threads notice at their next call.
void JitCore::Impl::forgetAll() {
  for (LastCall *last : {places.takeOut(), places.takeOutShared()})
    if (last)
      forget(last);
}

/// Keeps the context of a call that ran at once, for the next call like it.
void JitCore::Impl::remember(const Found &found, const CallArgs &args, std::unique_ptr<CompiledFunction::Slot> slot) {
  LastCall *last = nullptr;
  if (LastCall *old = places.takeOut()) // of another kind of call
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

static void refuseTypes(std::span<const Tensor> inputs, const std::string &why) {
  fail<Error>("types are given for " + std::to_string(inputs.size()) + " tensors, but the arguments hold " + why,
              inputs.empty() ? SourceLoc() : inputs.front().impl()->where, "jit", "give one type per tensor, in order");
}

const Tensor &inputAt(std::span<const Tensor> inputs, size_t i) {
  if (i >= inputs.size())
    refuseTypes(inputs, "more");
  return inputs[i];
}

void checkInputsUsed(std::span<const Tensor> inputs, size_t used) {
  if (used < inputs.size())
    refuseTypes(inputs, std::to_string(used));
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

/// Finds the op that made a NaN or an infinity, which need not be visible in the results. Runs the function again, op
/// by op, from the Variables' old values: `had`, in the order of Traced::updated.
static void findNan(const JitOptions &options, JitEntry &entry, const CallArgs &args, TraceBody &body,
                    std::span<const Tensor> had, std::span<const Tensor> results, uint64_t number,
                    const std::source_location &where) {
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
  } catch (const RuntimeError &error) {
    assign(have);
    throw RuntimeError({.message = error.message() + " (call " + std::to_string(number) + " of '" + options.name + "')",
                        .where = error.where(),
                        .op = error.op(),
                        .hint = error.hint(),
                        .trace = error.trace()});
  } catch (...) {
    assign(have);
    throw;
  }
  if (finite && given)
    fail<RuntimeError>("'" + options.name +
                           "' gives NaN or infinite elements when compiled, but none when its ops run one by one",
                       toLoc(where), "jit", "this is a bug of the compiler: tressel bisect finds the kernel");
  // Otherwise the operands had them already.
}

/// Runs the function itself, op by op.
std::vector<Tensor> JitCore::Impl::runImperatively(const JitCore &core, const CallArgs &args, TraceBody &body,
                                                   std::shared_ptr<void> *prototype,
                                                   const std::source_location &where) {
  // Functions called inside lock their own groups while `own` is held, so one thread at a time may do this, for all
  // functions.
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

/// Runs the program of the call, made first if there is none, and hands the run to `results`. False: there is no
/// program, and the function itself must run.
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
  // A call that repeats the one before is likely to come again. With an interval of checks, calls must go through the
  // cache.
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
  const Found found = impl_->entryFor(args, body, where);
  const std::shared_ptr<JitEntry> &entry = found.entry;
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
  findNan(impl_->options, *entry, args, body, before, results, found.calls, where);
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
