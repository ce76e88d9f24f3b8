// What a jitted function keeps: its programs, the budget of retraces, and the contexts of calls that may come again.
#pragma once

#include "frontend/jit/EntryRun.h"
#include "frontend/trace/Recorder.h"
#include "frontend/jit/JitEntry.h"
#include "frontend/jit/Retrace.h"
#include "frontend/trace/Trace.h"

#include <tressel/jit.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

namespace tressel::detail {

/// Records that this thread makes a program: it holds `compiling`, and must not lock that again.
class Making {
public:
  explicit Making(std::atomic<std::thread::id> &maker) : maker_(maker) { maker_ = std::this_thread::get_id(); }
  ~Making() { maker_ = std::thread::id(); }
  Making(const Making &) = delete;
  Making &operator=(const Making &) = delete;

private:
  std::atomic<std::thread::id> &maker_;
};
struct JitCore::Impl {
  JitOptions options;
  mutable std::mutex mutex;                    // guards entries and statistics
  std::mutex compiling;                        // held while a program is made: one compile per key
  std::atomic<std::thread::id> maker;          // the thread that holds `compiling`
  std::vector<std::shared_ptr<JitEntry>> entries; // the most recently used first
  std::shared_ptr<JitEntry> dropped;              // the last entry that was dropped because its modules changed
  RetraceBudget budget;
  std::vector<std::vector<TensorType>> refused; // types with symbols that the function cannot be recorded with
  JitStats stats;
  const JitEntry *previous = nullptr; // the entry found last, under the mutex; compared only

  std::shared_ptr<VariableImpl> assigned; // a Variable that some program assigns; those that all programs assign are in
                                          // its group; under `mutex`

  /// Incremented by changes of `entries` after which a call may need another program.
  std::atomic<uint64_t> generation{0};
  Places places;
  std::vector<std::unique_ptr<LastCall>> lastCalls; // all that exist, as many as calls ran at the same time; guarded
  std::vector<LastCall *> unused;                   // those of them that are free; guarded

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
    // A program for these exact sizes takes precedence over one for all sizes.
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

  /// `call`: the types of the call that it is made for, if they differ from `types`.
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

/// TRESSEL_CHECK_TRACE=N: compare at each Nth call of a program. 0: only at its second.
uint64_t checkInterval();
/// The function's name in errors of a call; "module" for a module.
std::string calleeOf(const JitOptions &options);
/// Throws Error and TraceError for an argument that no program can take.
void checkLeaf(const Tensor &t, size_t index, const JitOptions &options, const std::source_location &where);
/// Of the arguments, each checked.
std::vector<TensorType> typesOf(const CallArgs &args, const JitOptions &options, const std::source_location &where);

/// Runs the body under a recorder, with the lines of the ops inside its own.
std::vector<Tensor> recordBody(Recorder &recorder, std::span<const Tensor> inputs, TraceBody &body, std::shared_ptr<void> *prototype);
/// `homes`: empty if all values are on the host.
std::vector<Tensor> makeInputs(TraceRecorder &recorder, std::span<const TensorType> types, SourceLoc where,
                               std::span<const std::string> names = {}, std::span<const uint32_t> homes = {});
/// How a trace is compiled, `model` being what modelFor gives. Throws Error for a mesh that cannot be.
FinishOptions finishOptionsOf(const JitOptions &options, const std::shared_ptr<runtime::Machine> &machine,
                              const runtime::MachineModel *model, const std::source_location &where,
                              bool ofOneRank = false);
/// Throws Error where no input has the dimension that JitOptions::shard_axis names.
void checkShardAxis(const JitOptions &options, std::span<const TensorType> types, const std::source_location &where);
/// What the program is placed on: the machine, or what JitOptions::devices leave of it, and the devices where values
/// are. Nothing: the processor. Throws Error for a device that the machine lacks.
std::optional<runtime::MachineModel> modelFor(const JitOptions &options, const runtime::Machine *machine,
                                              const std::source_location &where, std::span<const uint32_t> homes = {});

} // namespace tressel::detail
