// One lane: a ring of tasks that run in order. Producers share a mutex. Whoever holds the token executes: the lane's
// own thread, or a caller that waits. So a waiter never sleeps while there is something that it could do itself.
#include "tressel/runtime/Engine.h"

#include "Concat.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tressel::runtime {

extern thread_local bool onLaneThread; // Storage.cpp

namespace {

constexpr uint64_t kRing = 4096;
constexpr size_t kInlineRefs = 8;
/// An op below this runs inline whenever its inputs are there: handing it over would cost as much.
constexpr double kTinyNs = 500;
/// An op below this does so too, until the caller has spent kDebtNs on such ops since its last wait: it may have large
/// work to hand over soon, which then starts late.
constexpr double kSmallNs = 20000, kDebtNs = 50000;
constexpr size_t kMaxLanes = 256;
constexpr uint32_t kEarlySamples = 4;
constexpr size_t kCounts = 8;
/// How long the lane's thread looks for the next task before it sleeps: about what two wake-ups take. A producer that
/// hands over op after op must not pay for waking it each time.
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr auto kExitPatience = std::chrono::seconds(2);

thread_local constinit bool insideTask = false;
thread_local constinit double inlineDebtNs = 0;
thread_local constinit uint32_t sampleDice = 1;
thread_local constinit uint32_t threadNumber = 0; // from 1 on
std::atomic<bool> forked{false};

double nowNs() {
  return static_cast<double>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

/// How far each lane of the process is. A number given back starts again where it ended, so that old points stay
/// reached.
struct LaneTable {
  std::atomic<uint64_t> done[kMaxLanes] = {};
  std::mutex mutex;
  bool used[kMaxLanes] = {};

  uint16_t acquire() {
    std::lock_guard lock(mutex);
    for (size_t i = 0; i < kMaxLanes; ++i)
      if (!used[i]) {
        used[i] = true;
        return static_cast<uint16_t>(i);
      }
    throwError<RuntimeError>("too many engines in one process");
  }
  void release(uint16_t lane) {
    std::lock_guard lock(mutex);
    used[lane] = false;
  }
};
LaneTable laneTable;

struct InsideTask {
  const bool before = std::exchange(insideTask, true);
  ~InsideTask() { insideTask = before; }
};

void checkCaller() {
  if (forked.load(std::memory_order_relaxed))
    throwError<RuntimeError>(
        "tensors cannot be computed in the child of a fork (start the process anew, or fork earlier)");
}

} // namespace

bool OpCost::wantsSample() {
  const uint32_t n = samples_.load(std::memory_order_relaxed); // losing a count to another thread does not matter
  sampleDice = sampleDice * 1664525u + 1013904223u;            // programs repeat themselves: not each 64th
  if (n >= kEarlySamples && sampleDice >> 26)
    return false;
  if (n <= kEarlySamples)
    samples_.store(n + 1, std::memory_order_relaxed);
  return true;
}

void OpCost::record(double ns) {
  const float old = ns_.load(std::memory_order_relaxed);
  const bool early = samples_.load(std::memory_order_relaxed) <= kEarlySamples;
  // Later on, one call during which the system took the thread away must not make a tiny op look large.
  const float value = early ? static_cast<float>(ns) : std::min(static_cast<float>(ns), 4 * old + 100);
  ns_.store(old + (early ? 0.5f : 0.125f) * (value - old), std::memory_order_relaxed);
}

/// A queued task. References keep the storages alive until it has run.
struct Task {
  const Engine::ClosureOps *ops;
  StorageRef *refs; // inputs, then outputs: inlineRefs, or an array of its own
  uint32_t numInputs, numOutputs;
  TaskInfo info;
  StorageRef inlineRefs[kInlineRefs];
  alignas(16) std::byte closure[Engine::kClosureBytes];
};

struct Engine::Impl {
  const uint16_t lane = laneTable.acquire();
  std::atomic<uint64_t> &done = laneTable.done[lane];
  const uint64_t first = done.load(); // sequence numbers of this engine are above
  std::atomic<uint64_t> submitted{first};
  std::unique_ptr<Task[]> ring{new Task[kRing]};

  std::mutex producers;
  std::atomic<bool> token{false}; // held by the executing thread

  std::mutex mutex; // of the two conditions below
  std::condition_variable work, progress;
  std::atomic<bool> workerParked{false};
  /// The first sequence number that a sleeping waiter waits for; lowered and reset under `mutex`.
  std::atomic<uint64_t> wanted{UINT64_MAX};
  bool stop = false;
  std::thread worker; // started with the first task that is queued

  std::mutex failuresMutex;
  struct Unseen {
    Point point;
    FailureRef why;
  };
  std::vector<Unseen> failures; // of tasks themselves, not inherited; seen ones are dropped now and then

  std::atomic<uint64_t> numHelped{0};
  /// Of tasks that ran in submit(), in a few lines of memory, so that threads seldom meet in one.
  struct alignas(64) Count {
    std::atomic<uint64_t> n{0};
  };
  Count numInlined[kCounts];

  //--- Running one task ---------------------------------------------------------------------------------------------
  /// Runs the op over its storages, or inherits a failure; the outputs carry the outcome.
  [[gnu::always_inline]] void runTask(Point point, const TaskInfo &info, Storage *const *inputs, size_t numInputs, Storage *const *outputs,
               size_t numOutputs, Invoke invoke, void *closure) {
    FailureRef why;
    for (size_t i = 0; i < numInputs && !why; ++i)
      if (inputs[i]->failed_.load(std::memory_order_acquire)) [[unlikely]]
        why = inputs[i]->failure_;
    if (!why) {
      const size_t n = numInputs + numOutputs;
      void *local[16];
      std::unique_ptr<void *[]> many;
      void **pointers = local;
      if (n > 16) {
        many.reset(new void *[n]);
        pointers = many.get();
      }
      for (size_t i = 0; i < numInputs; ++i)
        pointers[i] = inputs[i]->data();
      for (size_t i = 0; i < numOutputs; ++i)
        pointers[numInputs + i] = outputs[i]->data();
      const bool timed = info.cost && info.cost->wantsSample();
      const double start = timed ? nowNs() : 0;
      why = call(info, invoke, closure, {pointers, pointers + numInputs});
      if (timed)
        info.cost->record(nowNs() - start);
      if (why)
        remember(point, why);
    }
    // A success clears what an earlier task left in a reused storage.
    for (size_t i = 0; i < numOutputs; ++i)
      if (why || outputs[i]->failed_.load(std::memory_order_relaxed)) [[unlikely]]
        outputs[i]->fail(why);
  }

  static FailureRef call(const TaskInfo &info, Invoke invoke, void *closure, const TaskView &view) {
    auto failed = [&](Failure::Kind kind, std::string message) {
      auto failure = std::make_shared<Failure>();
      failure->kind = kind;
      failure->message = std::move(message);
      failure->op = info.op;
      failure->where = info.where;
      return failure;
    };
    InsideTask inside;
    try {
      const int32_t status = invoke(closure, view);
      if (status == kKernelOk)
        return nullptr;
      return failed(Failure::Kind::Runtime, status == kKernelIndexOutOfRange ? "an index is out of range"
                                            : status == kKernelLibraryFailed ? "a library call failed"
                                                                             : "the kernel failed");
    } catch (const Error &e) {
      auto failure = failed(dynamic_cast<const OutOfMemory *>(&e) ? Failure::Kind::OutOfMemory : Failure::Kind::Runtime,
                            e.message());
      if (!e.op().empty())
        failure->op = e.op();
      if (e.where())
        failure->where = e.where();
      return failure;
    } catch (const std::bad_alloc &) {
      return failed(Failure::Kind::OutOfMemory, "memory is exhausted");
    } catch (const std::exception &e) {
      return failed(Failure::Kind::Runtime, e.what());
    }
  }

  void remember(Point point, FailureRef why) {
    std::lock_guard lock(failuresMutex);
    if (failures.size() >= 64)
      std::erase_if(failures, [](const Unseen &f) { return f.why->observed.load(std::memory_order_relaxed); });
    failures.push_back({point, std::move(why)});
  }

  //--- Executing the queue ------------------------------------------------------------------------------------------
  bool takeToken() {
    return !token.load(std::memory_order_relaxed) && !token.exchange(true, std::memory_order_acquire);
  }

  /// Runs tasks until `target` is done or the queue is empty. The token is held.
  uint64_t drain(uint64_t target) {
    uint64_t ran = 0, at = done.load(std::memory_order_relaxed);
    while (at < target && at < submitted.load(std::memory_order_acquire)) {
      Task &task = ring[at % kRing];
      Storage *const *storages = StorageRef::pointers({task.refs, size_t(task.numInputs) + task.numOutputs}).data();
      runTask({lane, at + 1}, task.info, storages, task.numInputs, storages + task.numInputs, task.numOutputs,
              task.ops->invoke, task.closure);
      task.ops->destroy(task.closure);
      for (size_t i = 0; i < task.numInputs + task.numOutputs; ++i)
        task.refs[i] = StorageRef();
      if (task.refs != task.inlineRefs)
        delete[] task.refs;
      done.store(++at); // sequentially consistent, like `wanted`: one of the two sees the other
      ++ran;
      if (at >= wanted.load())
        notifyWaiters();
    }
    return ran;
  }

  void releaseToken() {
    token.store(false);
    // Tasks that came while we held the token, or that we left, are somebody's now.
    if (done.load() < submitted.load()) {
      if (workerParked.load())
        notifyWorker();
      if (wanted.load() != UINT64_MAX)
        notifyWaiters();
    }
  }

  void notifyWorker() {
    { std::lock_guard lock(mutex); } // whoever checked before us is asleep by now
    work.notify_one();
  }
  void notifyWaiters() {
    {
      std::lock_guard lock(mutex);
      wanted.store(UINT64_MAX); // those that go on waiting say so again
    }
    progress.notify_all();
  }

  void workerLoop() {
    onLaneThread = true;
    for (;;) {
      if (done.load() < submitted.load() && takeToken()) {
        drain(UINT64_MAX);
        releaseToken();
        continue;
      }
      if (spin())
        continue;
      std::unique_lock lock(mutex);
      workerParked.store(true);
      work.wait(lock, [&] { return stop || (done.load() < submitted.load() && !token.load()); });
      workerParked.store(false);
      if (stop && done.load() >= submitted.load())
        return;
    }
  }

  /// True when a task came.
  bool spin() {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 64; ++i) {
        if (done.load(std::memory_order_relaxed) < submitted.load(std::memory_order_relaxed) &&
            !token.load(std::memory_order_relaxed))
          return true;
        __builtin_ia32_pause();
      }
    } while (std::chrono::steady_clock::now() < until);
    return false;
  }

  using Deadline = std::chrono::steady_clock::time_point;
  /// Returns when `sequence` is done, helping; false if the deadline came first.
  bool waitFor(uint64_t sequence, Deadline until = Deadline::max()) {
    while (done.load(std::memory_order_acquire) < sequence) {
      if (takeToken()) {
        numHelped.fetch_add(drain(sequence), std::memory_order_relaxed);
        releaseToken();
        continue;
      }
      std::unique_lock lock(mutex);
      for (;;) {
        wanted.store(std::min(wanted.load(), sequence));
        if (done.load() >= sequence || !token.load())
          break;
        if (until == Deadline::max())
          progress.wait(lock);
        else if (progress.wait_until(lock, until) == std::cv_status::timeout)
          return false;
      }
    }
    return true;
  }

  void printUnseen() {
    std::lock_guard lock(failuresMutex);
    for (const Unseen &f : failures)
      if (!f.why->observed.exchange(true)) {
        const SourceLoc where = f.why->where;
        std::fprintf(stderr, "tressel: a failure that nobody waited for: %s%s%s: %s\n", where.str().c_str(),
                     where ? ": " : "", f.why->op.c_str(), f.why->message.c_str());
      }
    failures.clear();
  }
};

Engine &Engine::global() {
  // Never destroyed: tensors with static lifetime may still use it. What is queued at exit is finished by a handler.
  static Engine &engine = *[] {
    auto *made = new Engine();
    static Engine *atExit = made;
    std::atexit([] {
      if (forked.load())
        return;
      // Not for ever: a task may be stuck in the caller's own code.
      atExit->impl_->waitFor(atExit->impl_->submitted.load(), std::chrono::steady_clock::now() + kExitPatience);
      atExit->impl_->printUnseen();
    });
    return made;
  }();
  return engine;
}

Engine::Engine() : impl_(std::make_unique<Impl>()) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { forked.store(true); }); });
}

Engine::~Engine() {
  if (forked.load()) {
    (void)impl_.release(); // its thread and locks are the parent's
    return;
  }
  impl_->waitFor(impl_->submitted.load());
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->work.notify_all();
  if (impl_->worker.joinable())
    impl_->worker.join();
  impl_->printUnseen();
  laneTable.release(impl_->lane);
  Storage::runPendingDeleters();
}

bool Engine::reached(Point point) {
  return point.sequence == 0 ||
         laneTable.done[point.lane % kMaxLanes].load(std::memory_order_acquire) >= point.sequence;
}

/// Whether a task runs in the caller's thread.
static bool isForCaller(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs) {
  if (insideTask)
    return true;
  const double ns = info.cost ? info.cost->estimateNs() : kSmallNs;
  if (ns >= kTinyNs && (ns >= kSmallNs || inlineDebtNs + ns > kDebtNs))
    return false;
  for (const Storage *input : inputs)
    if (!Engine::reached(input->ready()))
      return false;
  for (const Storage *output : outputs)
    if (!Engine::reached(output->ready()) || !Engine::reached(output->lastUse()))
      return false;
  if (ns >= kTinyNs)
    inlineDebtNs += ns;
  return true;
}

bool Engine::runNow(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs,
                    Invoke invoke, void *closure) {
  if (!isForCaller(info, inputs, outputs))
    return false;
  checkCaller();
  impl_->runTask({}, info, inputs.data(), inputs.size(), outputs.data(), outputs.size(), invoke, closure);
  if (!threadNumber) [[unlikely]] {
    static std::atomic<uint32_t> count{0};
    threadNumber = ++count;
  }
  std::atomic<uint64_t> &inlined = impl_->numInlined[threadNumber % kCounts].n;
  inlined.store(inlined.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return true;
}

Point Engine::push(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs,
                   const ClosureOps &ops, void *closure) {
  checkCaller();
  Storage::runPendingDeleters();
  const size_t n = inputs.size() + outputs.size();
  std::unique_ptr<StorageRef[]> many(n > kInlineRefs ? new StorageRef[n] : nullptr);
  Impl &impl = *impl_;
  std::unique_lock lock(impl.producers);
  // Full: the caller runs half of the queue, or waits for whoever does.
  while (impl.submitted.load(std::memory_order_relaxed) - impl.done.load(std::memory_order_acquire) >= kRing) {
    const uint64_t target = impl.submitted.load(std::memory_order_relaxed) - kRing / 2;
    lock.unlock();
    impl.waitFor(target);
    lock.lock();
  }
  if (!impl.worker.joinable())
    impl.worker = std::thread([&impl] { impl.workerLoop(); });
  const uint64_t sequence = impl.submitted.load(std::memory_order_relaxed) + 1;
  Task &task = impl.ring[(sequence - 1) % kRing];
  task.ops = &ops;
  task.info = info;
  task.numInputs = static_cast<uint32_t>(inputs.size());
  task.numOutputs = static_cast<uint32_t>(outputs.size());
  task.refs = many ? many.release() : task.inlineRefs;
  std::transform(inputs.begin(), inputs.end(), task.refs, StorageRef::share);
  std::transform(outputs.begin(), outputs.end(), task.refs + inputs.size(), StorageRef::share);
  ops.move(task.closure, closure);
  const Point point{impl.lane, sequence};
  for (Storage *input : inputs)
    input->lastUse_.store(pack(point), std::memory_order_release);
  for (Storage *output : outputs) {
    output->lastUse_.store(pack(point), std::memory_order_release);
    output->ready_.store(pack(point), std::memory_order_release);
  }
  impl.submitted.store(sequence);
  lock.unlock();
  if (impl.workerParked.load() && !impl.token.load())
    impl.notifyWorker();
  return point;
}

static void checkNotInTask() {
  checkCaller();
  if (insideTask)
    throwError<RuntimeError>("a task cannot wait for other tasks");
}

void Engine::wait(Point point, SourceLoc waitedAt) {
  checkNotInTask();
  inlineDebtNs = 0;
  if (!reached(point)) {
    if (point.lane != impl_->lane)
      throwError<InternalError>("a point of another engine");
    impl_->waitFor(point.sequence);
  }
  Storage::runPendingDeleters();
  if (!point)
    return;
  FailureRef why;
  {
    std::lock_guard lock(impl_->failuresMutex);
    for (const Impl::Unseen &f : impl_->failures)
      if (f.point == point)
        why = f.why;
  }
  if (why)
    why->raise(waitedAt);
}

void Engine::wait(const Storage &storage, SourceLoc waitedAt) {
  checkNotInTask();
  inlineDebtNs = 0;
  if (const Point point = storage.ready(); !reached(point)) {
    if (point.lane != impl_->lane)
      throwError<InternalError>("a storage of another engine");
    impl_->waitFor(point.sequence);
  }
  Storage::runPendingDeleters();
  if (FailureRef why = storage.failure())
    why->raise(waitedAt);
}

void Engine::waitForUses(const Storage &storage) {
  checkNotInTask();
  if (const Point point = storage.lastUse(); !reached(point)) {
    if (point.lane != impl_->lane)
      throwError<InternalError>("a storage of another engine");
    impl_->waitFor(point.sequence);
  }
}

void Engine::waitAll(SourceLoc waitedAt) {
  checkNotInTask();
  inlineDebtNs = 0;
  impl_->waitFor(impl_->submitted.load());
  Storage::runPendingDeleters();
  std::vector<FailureRef> unseen;
  {
    std::lock_guard lock(impl_->failuresMutex);
    for (const Impl::Unseen &f : impl_->failures)
      if (!f.why->observed.exchange(true))
        unseen.push_back(f.why);
    impl_->failures.clear();
  }
  if (unseen.empty())
    return;
  if (unseen.size() == 1)
    unseen[0]->raise(waitedAt);
  Failure all;
  all.kind = unseen[0]->kind;
  all.op = unseen[0]->op;
  all.where = unseen[0]->where;
  all.message = concat(unseen[0]->message, "; ", unseen.size() - 1, " more failed:");
  for (size_t i = 1; i < unseen.size(); ++i)
    all.message += concat(i > 1 ? "; " : " ", unseen[i]->where ? concat(unseen[i]->where.str(), ": ") : "",
                          unseen[i]->op, ": ", unseen[i]->message);
  all.raise(waitedAt);
}

Engine::Stats Engine::stats() const {
  uint64_t inlined = 0;
  for (const Impl::Count &count : impl_->numInlined)
    inlined += count.n.load(std::memory_order_relaxed);
  return {inlined, impl_->submitted.load() - impl_->first, impl_->numHelped.load()};
}

} // namespace tressel::runtime
