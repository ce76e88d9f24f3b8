#include "tressel/runtime/Engine.h"

#include "runtime/types/Concat.h"
#include "Blocks.h"
#include "Finish.h"
#include "Lanes.h"
#include "runtime/devices/EnginePoints.h"
#include "tressel/runtime/Shutdown.h"
#include "tressel/runtime/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tressel::runtime {

thread_local constinit bool insideTask = false;

namespace {

/// An op below this runs inline if its inputs are ready: handing it over would take as long.
constexpr double kTinyNs = 500;
/// So does an op below kSmallNs, until the caller has spent kDebtNs on such ops since its last wait: larger work that
/// the caller submits later would start late.
constexpr double kSmallNs = 20000, kDebtNs = 50000;
constexpr uint32_t kEarlySamples = 4;

thread_local constinit double inlineDebtNs = 0;
thread_local constinit uint32_t sampleDice = 1;
thread_local constinit uint32_t threadNumber = 0; // from 1 on
/// numForks() when the first engine was made. Its threads and locks exist in that process only.
constexpr uint32_t kNoEngine = UINT32_MAX;
std::atomic<uint32_t> forksOfEngines{kNoEngine};
bool isForked() {
  const uint32_t forks = forksOfEngines.load(std::memory_order_relaxed);
  return forks != numForks() && forks != kNoEngine;
}
/// The lanes of Engine::global(), for shutdown.
Lanes *globalLanes = nullptr;

int configuredLanes() {
  ThreadPool::global(); // created here: a thread of the engine may be bound to few cores
  if (const char *text = std::getenv("TRESSEL_LANES")) {
    char *end = nullptr;
    const long n = std::strtol(text, &end, 10);
    if (end != text && *end == 0 && n >= 1 && n <= static_cast<long>(kLanesPerEngine))
      return static_cast<int>(n);
    std::fprintf(stderr, "tressel: TRESSEL_LANES is '%s', which is no number from 1 to %u; there are as many as cores, but at most %u\n", text,
                 kLanesPerEngine, kLanesPerEngine);
  }
  return std::min(ThreadPool::global().numThreads(), static_cast<int>(kLanesPerEngine));
}

} // namespace

void checkCaller() {
  if (isForked())
    throwError<RuntimeError>(
        "tensors cannot be computed in the child of a fork (start the process anew, or fork earlier)");
}

uint32_t recordThread() {
  if (!threadNumber) [[unlikely]] {
    static std::atomic<uint32_t> last{0};
    threadNumber = ++last;
  }
  return threadNumber;
}

int logWaits() {
  static const int level = [] {
    const char *text = std::getenv("TRESSEL_LOG_WAITS");
    if (!text || !*text || std::strcmp(text, "0") == 0)
      return 0;
    const bool all = std::strcmp(text, "all") == 0;
    if (!all && std::strcmp(text, "1") != 0)
      std::fprintf(stderr, "tressel: TRESSEL_LOG_WAITS is '%s', which is none of 0, 1 and all; waits that the program did not ask for are logged\n", text);
    return all ? 2 : 1;
  }();
  return level;
}

bool OpCost::wantsSample() {
  const uint32_t n = samples_.load(std::memory_order_relaxed); // not atomic: a lost count does not matter
  // random, since a fixed interval may match the period of a program
  sampleDice = sampleDice * 1664525u + 1013904223u;
  if (n >= kEarlySamples && sampleDice >> 26)
    return false;
  if (n <= kEarlySamples)
    samples_.store(n + 1, std::memory_order_relaxed);
  return true;
}

void OpCost::record(double ns) {
  const float old = ns_.load(std::memory_order_relaxed);
  const bool early = samples_.load(std::memory_order_relaxed) <= kEarlySamples;
  // Bounds outliers: a call during which the thread was preempted must not make a tiny op look large.
  const float value = early ? static_cast<float>(ns) : std::min(static_cast<float>(ns), 4 * old + 100);
  ns_.store(old + (early ? 0.5f : 0.125f) * (value - old), std::memory_order_relaxed);
}

Lanes::Lanes(int lanes)
    : engine([] {
        std::lock_guard lock(laneTable.mutex);
        for (uint32_t i = 0; i < kMaxEngines; ++i)
          if (!laneTable.used[i]) {
            laneTable.used[i] = true;
            return i;
          }
        throwError<RuntimeError>("too many engines in one process");
      }()),
      count(static_cast<uint32_t>(
          std::clamp(lanes > 0 ? lanes : configuredLanes(), 1, static_cast<int>(kLanesPerEngine)))),
      next_(laneTable.last[engine] + 1) {}

Lanes::~Lanes() {
  drain();
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  lastWork_.notify_all();
  for (std::thread &worker : workers_)
    worker.join();
  printUnseen();
  std::lock_guard lock(laneTable.mutex);
  for (uint32_t lane = 0; lane < kLanesPerEngine; ++lane) {
    entry(lane).submitted.store(next_ - 1);
    entry(lane).done.store(next_ - 1);
  }
  laneTable.last[engine] = next_ - 1;
  laneTable.used[engine] = false;
}

bool finishQueued(std::chrono::steady_clock::time_point until) { return !globalLanes || globalLanes->drain(until); }

Engine &Engine::global() {
  // Never destroyed: tensors with static lifetime may still use it.
  static Engine &engine = *[] {
    auto *made = new Engine();
    globalLanes = made->lanes_.get();
    atShutdown({.stage = ShutdownStage::Tasks,
                .isNeeded = [] { return !insideTask && !globalLanes->isIdle(); },
                .finish =
                    [](std::chrono::steady_clock::time_point until) {
                      finishQueued(until);
                      globalLanes->printUnseen();
                    }});
    return made;
  }();
  return engine;
}

Engine::Engine(int lanes) : lanes_(std::make_unique<Lanes>(lanes)) {
  isPointReached = static_cast<bool (*)(Point)>(&Engine::reached);
  uint32_t none = kNoEngine;
  forksOfEngines.compare_exchange_strong(none, numForks());
}

Engine::~Engine() {
  if (isForked()) {
    (void)lanes_.release(); // its threads and locks are the parent's, so it is leaked
    return;
  }
  lanes_.reset();
  Storage::runPendingDeleters();
}

StorageRef Engine::output(int64_t bytes) {
  constexpr int64_t kAtOnce = 3840; // Storage allocates up to this many bytes together with its header, without a lock
  return bytes <= kAtOnce ? Storage::allocate(bytes) : Blocks::make(bytes);
}

void Engine::makeRoomFor(int64_t bytes, const TaskInfo &info) {
  if (Blocks::fits(bytes))
    return;
  if (!insideTask) {
    lanes_->numMemoryShort.fetch_add(1, std::memory_order_relaxed);
    WaitScope scope(*lanes_, TaskRecord::Kind::Memory, info.op, info.where, {}, true);
    lanes_->drain();
  }
  if (!Blocks::fits(bytes))
    throw OutOfMemory(Error::Details{Blocks::report(bytes), info.where, info.op});
}

void Engine::drain(const TaskInfo &info) {
  if (insideTask)
    return;
  WaitScope scope(*lanes_, TaskRecord::Kind::Memory, info.op, info.where, {}, true);
  lanes_->drain();
}

int Engine::numLanes() const { return static_cast<int>(lanes_->count); }

bool Engine::reached(Point point) {
  return point.sequence == 0 || laneTable.lanes[point.lane].done.load(std::memory_order_acquire) >= point.sequence;
}

bool Engine::reached(Uses uses) {
  for (uint32_t lane = 0; uses.lanes >> lane; ++lane)
    if (uses.lanes >> lane & 1) {
      const LaneTable::Entry &entry = laneTable.lanes[uses.engine * kLanesPerEngine + lane];
      if (entry.done.load(std::memory_order_acquire) <
          std::min(uses.sequence, entry.submitted.load(std::memory_order_acquire)))
        return false;
    }
  return true;
}

/// Whether a task runs in the caller's thread.
bool Engine::isForCaller(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs) {
  if (insideTask)
    return true;
  const double ns = info.cost ? info.cost->estimateNs() : kSmallNs;
  if (ns >= kTinyNs && (ns >= kSmallNs || inlineDebtNs + ns > kDebtNs))
    return false;
  for (const Storage *input : inputs)
    if (!reached(input->ready()))
      return false;
  for (const Storage *output : outputs)
    if (!reached(output->lastUse()))
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
  for (Storage *output : outputs)
    if (!output->data()) [[unlikely]]
      if (!Blocks::materialize(*output, Blocks::kNoLane, info)) {
        if (!insideTask)
          return false; // queued instead: push() runs other tasks until there is memory
        throw OutOfMemory(Error::Details{Blocks::report(output->bytes()), info.where, info.op});
      }
  // An inline task is shorter than the time that other threads need to join.
  const int share = std::exchange(ThreadPool::share, insideTask ? ThreadPool::share : 1);
  lanes_->runTask({}, info, inputs.data(), inputs.size(), outputs.data(), outputs.size(), invoke, closure);
  ThreadPool::share = share;
  std::atomic<uint64_t> &inlined = lanes_->numInlined[recordThread() % Lanes::kCounts].n;
  inlined.store(inlined.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return true;
}

Point Engine::push(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs,
                   const ClosureOps &ops, void *closure) {
  checkCaller();
  Storage::runPendingDeleters();
  return lanes_->push(info, inputs, outputs, ops, closure);
}

static void checkNotInTask() {
  checkCaller();
  if (insideTask)
    throwError<RuntimeError>("a task cannot wait for other tasks");
}

/// A wait that the program asked for by name is not hidden.
static bool isHidden(const char *what) { return std::strcmp(what, "wait") != 0 && std::strcmp(what, "wait_all") != 0; }

static void waitForPoint(Lanes &lanes, Point point, SourceLoc waitedAt, const char *what) {
  if (Engine::reached(point))
    return;
  if (point.lane / kLanesPerEngine != lanes.engine)
    throwError<InternalError>("a point of another engine");
  WaitScope scope(lanes, TaskRecord::Kind::Wait, what, waitedAt, point, isHidden(what));
  lanes.waitFor(point);
}

void Engine::wait(Point point, SourceLoc waitedAt, const char *what) {
  checkNotInTask();
  inlineDebtNs = 0;
  waitForPoint(*lanes_, point, waitedAt, what);
  Storage::runPendingDeleters();
  if (!point)
    return;
  FailureRef why;
  {
    std::lock_guard lock(lanes_->failuresMutex);
    for (const Lanes::Unseen &f : lanes_->failures)
      if (f.point == point)
        why = f.why;
  }
  if (why)
    why->raise(waitedAt);
}

void Engine::wait(const Storage &storage, SourceLoc waitedAt, const char *what) {
  checkNotInTask();
  inlineDebtNs = 0;
  waitForPoint(*lanes_, storage.ready(), waitedAt, what);
  Storage::runPendingDeleters();
  if (FailureRef why = storage.failure())
    why->raise(waitedAt);
}

void Engine::waitForUses(const Storage &storage) {
  checkNotInTask();
  const Uses uses = storage.lastUse();
  if (reached(uses))
    return;
  if (uses.engine != lanes_->engine)
    throwError<InternalError>("a storage of another engine");
  WaitScope scope(*lanes_, TaskRecord::Kind::Wait, "host write", {}, {}, true);
  lanes_->waitFor(uses);
}

void Engine::waitAll(SourceLoc waitedAt) {
  checkNotInTask();
  inlineDebtNs = 0;
  {
    WaitScope scope(*lanes_, TaskRecord::Kind::Wait, "wait_all", waitedAt, {}, false);
    lanes_->drain();
  }
  Storage::runPendingDeleters();
  std::vector<FailureRef> unseen;
  {
    std::lock_guard lock(lanes_->failuresMutex);
    std::stable_sort(lanes_->failures.begin(), lanes_->failures.end(),
                     [](const auto &a, const auto &b) { return a.order < b.order; }); // lanes finish in any order
    for (const Lanes::Unseen &f : lanes_->failures)
      if (!f.why->observed.exchange(true))
        unseen.push_back(f.why);
    lanes_->failures.clear();
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
  Stats stats;
  for (const Lanes::Count &count : lanes_->numInlined)
    stats.inlined += count.n.load(std::memory_order_relaxed);
  stats.queued = lanes_->numQueued.load();
  stats.helped = lanes_->numHelped.load();
  stats.crossed = lanes_->numCrossed.load();
  stats.queueFull = lanes_->numQueueFull.load();
  stats.memoryShort = lanes_->numMemoryShort.load();
  return stats;
}

Engine::Memory Engine::memory() { return Blocks::memory(); }
void Engine::setMemoryLimit(int64_t bytes) { Blocks::setLimit(bytes); }
void Engine::trimMemory() {
  Blocks::trim();
  Storage::trimCache();
}

void Engine::startRecording(size_t limit) { lanes_->start(limit); }
std::vector<TaskRecord> Engine::stopRecording() { return lanes_->stop(); }

} // namespace tressel::runtime
