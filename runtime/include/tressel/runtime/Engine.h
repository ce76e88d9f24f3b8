// The engine of the eager path: ops are handed over as tasks and run on lanes, while the caller goes on.
//
//   Engine &engine = Engine::global();
//   StorageRef out = Engine::output(bytes);
//   engine.submit({.op = "add", .where = loc, .cost = &cost}, {{a, b}}, {{out}}, [n](const TaskView &task) {
//     addFloats(task.inputs[0], task.inputs[1], task.outputs[0], n);   // data pointers
//     return kKernelOk;
//   });
//   engine.wait(*out);      // throws the failure, if the task or one that it depends on failed
//
// Where a task runs. A tiny one whose inputs are there runs at once in the caller's thread: waking another thread costs
// more than it does. Others go to a lane. A lane runs its tasks in order, so a chain of ops needs no word between them;
// a task goes to the lane of the task that it waits for, and to another one where it could start there earlier by more
// than it takes to hand it over: independent ops run side by side. A task waits for tasks of other lanes by their
// numbers, which are always smaller than its own, so lanes never wait for each other in a circle. A thread that waits
// helps: it runs queued tasks of the lanes that it waits for, instead of sleeping.
//
// Memory. A result's bytes are taken when its task is handed over, and given on when its last handle goes, even while
// tasks that use it are queued: the next task on that lane may have them, as it runs later anyway. So a queue of any
// length needs the memory of what is used at a time. A lane that is full, and memory that is short, make the caller
// help until there is room; what handles hold is never waited for: if all is done and memory is still short, submit()
// throws OutOfMemory and says who holds it. The bound is 80% of the machine's memory, or TRESSEL_MEMORY_LIMIT (bytes,
// or with K, M or G).
//
// Failures. A task that throws an Error or returns a status other than kKernelOk marks its outputs as failed; tasks
// that read a failed storage are not run, and their outputs share the failure. The call that waits throws it. A
// failure that no call waits for is printed at exit. The engine goes on working.
//
// Threads. All functions may be called from any thread, but not from inside a task: there submit() runs the new task
// inline, and wait() throws. After a fork, calls in the child throw. Signals are not delivered to the engine's threads,
// and none of its functions may be called in a signal handler: set a flag there.
//
// TRESSEL_LANES is the number of lanes, at most 8 (else as many as the process may use cores). TRESSEL_LOG_WAITS=1
// prints each wait that the program did not ask for by wait() or wait_all() and that was not over at once: for reading
// a value, for printing, for room in a queue, for memory; =all those asked for as well.
#pragma once

#include "tressel/runtime/Error.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Lane.h"
#include "tressel/runtime/Storage.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace tressel::runtime {

/// Running average of an op's duration, kept by the caller: one per kernel and size bucket. Decides what runs inline.
class OpCost {
public:
  explicit OpCost(double initialNs = 0) : ns_(static_cast<float>(initialNs)) {}
  double estimateNs() const { return ns_.load(std::memory_order_relaxed); }
  void record(double ns);
  /// Time stamps cost as much as a tiny op, so only the first calls and then one in 64 are measured. Other calls
  /// write nothing that threads share.
  bool wantsSample();

private:
  std::atomic<float> ns_;
  std::atomic<uint32_t> samples_{0};
};

/// What a task gets when it runs: its storages' bytes, in the order of submit().
struct TaskView {
  void *const *inputs;
  void *const *outputs;
  mutable bool wroteStates = false; ///< set by a task before it writes the first of its states (TaskInfo::numStates)
};

struct TaskInfo {
  const char *op = ""; ///< outlives the process: a literal, or from internName()
  SourceLoc where = {};
  OpCost *cost = nullptr; ///< must outlive the task; null: always queued
  /// The last outputs are states: the task updates their contents in place, and reads them. It is not run when one of them
  /// has failed. When it fails, or what it reads has, they keep their contents unless it had set TaskView::wroteStates.
  uint32_t numStates = 0;
};

/// What the engine did for one task, or why a caller stood still. Times are nanoseconds of CLOCK_MONOTONIC.
struct TaskRecord {
  enum class Kind : uint8_t {
    Inline,    ///< a task in the thread that submitted it
    Lane,      ///< a queued task in a thread of the engine
    Helped,    ///< a queued task in a thread that waited
    Wait,      ///< a caller waited for contents, a point, or everything
    QueueFull, ///< a caller waited for room in a lane
    Memory,    ///< a caller waited for memory
  };
  Kind kind = Kind::Inline;
  uint8_t lane = 0;       ///< of a queued task, or of a full queue; counts from 0 in the engine
  bool failed = false;    ///< itself, or what it reads
  bool hidden = false;    ///< a wait that the program did not ask for by name
  uint32_t thread = 0;    ///< that it ran or waited in: small numbers, from 1 on
  uint32_t caller = 0;    ///< the thread that submitted it
  const char *op = "";    ///< of the task; what a wait was for ("item", "wait_all", ...)
  SourceLoc where = {};   ///< the task's line, or the line that waits
  uint64_t sequence = 0;  ///< number of a queued task; what a wait waited for; 0: none
  int64_t submitNs = 0, beginNs = 0, endNs = 0; ///< submitNs: of tasks only
  std::vector<uint64_t> after = {}; ///< numbers of the queued tasks that wrote what it reads
};

struct Task;
class Lanes;

class Engine {
public:
  /// The process's engine, made at the first call. At exit it finishes what is queued, for a bounded time.
  static Engine &global();

  /// `lanes` at most kLanesPerEngine; 0: by TRESSEL_LANES or the number of cores.
  explicit Engine(int lanes = 0);
  /// Finishes what is queued, then prints the failures that no call has thrown.
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  /// Storage for a task's result, as submit() takes it: until then large ones have no memory, and data() is null.
  /// Bytes that are written from outside of a task need Storage::allocate.
  static StorageRef output(int64_t bytes);
  /// For who is about to take memory from elsewhere: waits until the bound has room for so many bytes more. Throws OutOfMemory.
  void makeRoomFor(int64_t bytes, const TaskInfo &info);

  /// Returns when all that was submitted before is done, as `makeRoomFor` does where memory is short. Failures stay where they are.
  void drain(const TaskInfo &info);

  int numLanes() const;

  /// Hands over a task, or runs it. `fn` is int32_t(const TaskView &), returns a KernelStatus and may throw an Error;
  /// it is moved into the queue and destroyed after it has run. References to all storages are held until then. Outputs
  /// may be storages that earlier tasks used (a Variable's): tasks run in the order of submission. The point is reached
  /// when the task is done; point 0 if it is done already. Throws
  /// OutOfMemory when there is no memory for the outputs, and nothing was done.
  template <typename Fn>
  Point submit(const TaskInfo &info, std::span<const StorageRef> inputs, std::span<const StorageRef> outputs, Fn fn) {
    const auto in = StorageRef::pointers(inputs), out = StorageRef::pointers(outputs);
    return runNow(info, in, out, fn) ? Point() : queue(info, in, out, std::move(fn));
  }
  /// The same where what a queued task must own costs more than a tiny one takes: `now` runs at once, with whatever the
  /// caller's frame holds, else the task is what `later()` gives. The caller holds references to the storages meanwhile.
  template <typename Now, typename Later>
  Point submit(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs, Now &&now,
               Later &&later) {
    return submit(info, inputs, outputs, std::forward<Now>(now), std::forward<Later>(later), [&] { return inputs; });
  }
  /// The same for a task that, when it is queued, reads more than `inputs`: what it reads then is `inputsLater()`. All that `now` reads
  /// beside `inputs` is there.
  template <typename Now, typename Later, typename Inputs>
  Point submit(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs, Now &&now,
               Later &&later, Inputs &&inputsLater) {
    if (runNow(info, inputs, outputs, now))
      return Point();
    const std::span<Storage *const> all = inputsLater();
    return queue(info, all, outputs, later());
  }

  /// Whether the task is done; a point of the beginning is. Uses are reached when all of those tasks are.
  static bool reached(Point point);
  static bool reached(Uses uses);
  /// Returns when the task is done. Throws its own failure, if it failed itself. `what` the caller does names the wait in
  /// logs and records; a literal.
  void wait(Point point, SourceLoc waitedAt = {}, const char *what = "wait");
  /// Returns when the contents are there. Throws the failure that they carry.
  void wait(const Storage &storage, SourceLoc waitedAt = {}, const char *what = "wait");
  /// Returns when no queued task uses the bytes: the host may write or recycle them. Throws nothing of theirs.
  void waitForUses(const Storage &storage);
  /// Returns when all that was submitted before is done. Throws the first failure that no call has thrown yet, and
  /// lists the others.
  void waitAll(SourceLoc waitedAt = {});

  struct Stats {
    uint64_t inlined = 0;   ///< tasks that ran in submit()
    uint64_t queued = 0;
    uint64_t helped = 0;    ///< queued tasks that ran in a waiting caller
    uint64_t crossed = 0;   ///< queued tasks that had to wait for another lane's
    uint64_t queueFull = 0; ///< calls that waited for room in a lane
    uint64_t memoryShort = 0; ///< calls that waited for memory
  };
  Stats stats() const;

  /// Bytes of results beyond 4 KiB, over all engines: in use by handles or queued tasks (`live`), kept for later
  /// results (`idle`), and the bound.
  struct Memory {
    int64_t live = 0, idle = 0, limit = 0;
  };
  static Memory memory();
  /// Sets the bound; 0: the machine's, as at the beginning. For tests and embedding programs.
  static void setMemoryLimit(int64_t bytes);
  /// Gives idle bytes back to the system.
  static void trimMemory();

  /// From here on every task and wait is recorded, at most `limit` of them; costs two time stamps for each.
  void startRecording(size_t limit = size_t(1) << 20);
  /// What was recorded, in order of `beginNs`; nothing is recorded any more.
  std::vector<TaskRecord> stopRecording();

private:
  using Invoke = int32_t (*)(void *closure, const TaskView &view);
  struct ClosureOps {
    Invoke invoke;
    void (*move)(void *to, void *from);
    void (*destroy)(void *closure);
  };
  static constexpr size_t kClosureBytes = 96;
  friend struct Task;
  friend class Lanes;

  /// Runs the task in the caller's thread, if that is right. False: nothing was done.
  template <typename Fn>
  bool runNow(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs, Fn &fn) {
    return runNow(
        info, inputs, outputs,
        [](void *closure, const TaskView &view) -> int32_t { return (*static_cast<Fn *>(closure))(view); }, &fn);
  }
  bool runNow(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs, Invoke invoke,
              void *closure);
  template <typename Fn>
  Point queue(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs, Fn fn) {
    if constexpr (sizeof(Fn) <= kClosureBytes && alignof(Fn) <= 16 && std::is_nothrow_move_constructible_v<Fn>) {
      static constexpr ClosureOps ops = {
          [](void *closure, const TaskView &view) -> int32_t { return (*static_cast<Fn *>(closure))(view); },
          [](void *to, void *from) { new (to) Fn(std::move(*static_cast<Fn *>(from))); },
          [](void *closure) { static_cast<Fn *>(closure)->~Fn(); }};
      return push(info, inputs, outputs, ops, &fn);
    } else {
      auto boxed = [box = std::make_unique<Fn>(std::move(fn))](const TaskView &view) { return (*box)(view); };
      using Boxed = decltype(boxed);
      static constexpr ClosureOps ops = {
          [](void *closure, const TaskView &view) -> int32_t { return (*static_cast<Boxed *>(closure))(view); },
          [](void *to, void *from) { new (to) Boxed(std::move(*static_cast<Boxed *>(from))); },
          [](void *closure) { static_cast<Boxed *>(closure)->~Boxed(); }};
      return push(info, inputs, outputs, ops, &boxed);
    }
  }
  Point push(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs,
             const ClosureOps &ops, void *closure);

  static bool isForCaller(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs);

  std::unique_ptr<Lanes> lanes_;
};

} // namespace tressel::runtime
