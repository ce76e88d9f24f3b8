// The engine of the eager path: ops are handed over as tasks and run in order on a lane, while the caller goes on.
//
//   Engine &engine = Engine::global();
//   StorageRef out = Storage::allocate(bytes);
//   engine.submit({.op = "add", .where = loc, .cost = &cost}, {{a, b}}, {{out}}, [n](const TaskView &task) {
//     addFloats(task.inputs[0], task.inputs[1], task.outputs[0], n);   // data pointers
//     return kKernelOk;
//   });
//   engine.wait(*out);      // throws the failure, if the task or one that it depends on failed
//
// Small ops whose inputs are there run at once in the caller's thread: waking another thread costs more than they do.
// Whoever waits helps: it runs queued tasks instead of sleeping. A full lane makes the caller help, so memory is
// bounded.
//
// Failures. A task that throws an Error or returns a status other than kKernelOk marks its outputs as failed; tasks
// that read a failed storage are not run, and their outputs share the failure. It is thrown where somebody waits. A
// failure that nobody ever waits for is printed at exit.
//
// Threads. All functions may be called from any thread, but not from inside a task: there submit() runs the new task
// inline, and wait() throws. After a fork, calls in the child throw.
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
};

struct TaskInfo {
  const char *op = ""; ///< outlives the process: a literal, or from internName()
  SourceLoc where = {};
  OpCost *cost = nullptr; ///< must outlive the task; null: always queued
};

struct Task;

class Engine {
public:
  /// The process's engine, made at the first call. At exit it finishes what is queued, for a bounded time.
  static Engine &global();

  Engine();
  /// Finishes what is queued, then prints the failures nobody saw.
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  /// Hands over a task, or runs it. `fn` is int32_t(const TaskView &), returns a KernelStatus and may throw an Error;
  /// it is moved into the queue and destroyed after it has run. References to all storages are held until then. Outputs
  /// may be storages that earlier tasks used (a Variable's): tasks run in the order of submission. The point is reached
  /// when the task is done; point 0 if it is done already.
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
    return runNow(info, inputs, outputs, now) ? Point() : queue(info, inputs, outputs, later());
  }

  /// Whether the task is done; a point of the beginning is.
  static bool reached(Point point);
  /// Returns when the task is done. Throws its own failure, if it failed itself.
  void wait(Point point, SourceLoc waitedAt = {});
  /// Returns when the contents are there. Throws the failure that they carry.
  void wait(const Storage &storage, SourceLoc waitedAt = {});
  /// Returns when no queued task uses the bytes: the host may write or recycle them. Throws nothing of theirs.
  void waitForUses(const Storage &storage);
  /// Returns when all that was submitted before is done. Throws the first failure nobody has seen, and lists the
  /// others.
  void waitAll(SourceLoc waitedAt = {});

  struct Stats {
    uint64_t inlined = 0; ///< tasks that ran in submit()
    uint64_t queued = 0;
    uint64_t helped = 0; ///< queued tasks that ran in a waiting caller
  };
  Stats stats() const;

private:
  using Invoke = int32_t (*)(void *closure, const TaskView &view);
  struct ClosureOps {
    Invoke invoke;
    void (*move)(void *to, void *from);
    void (*destroy)(void *closure);
  };
  static constexpr size_t kClosureBytes = 96;
  friend struct Task;

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

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace tressel::runtime
