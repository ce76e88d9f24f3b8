#include "runtime/engine/Lanes.h"

#include "runtime/types/Clock.h"
#include "runtime/types/Concat.h"
#include "runtime/engine/Blocks.h"
#include "runtime/types/KernelStatus.h"
#include "tressel/runtime/Shutdown.h"
#include "tressel/runtime/ThreadPool.h"

#include <algorithm>
#include <cstdio>
#include <pthread.h>
#include <sched.h>
#include <utility>

namespace tressel::runtime {

extern thread_local bool onLaneThread; // Storage.cpp

LaneTable laneTable;

namespace {

/// Cost of handing a task to another thread: a task moves to another lane only if it starts earlier by more than this.
constexpr double kHandOverNs = 20000;
/// How long a thread spins for work, or for the point it waits for, before it sleeps: about the cost of two wake-ups.
/// Without it a producer of many small ops would pay for a wake-up at each.
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr double kUnknownNs = 20000;
/// With more cores the kernel's scheduler finds idle ones by itself.
[[maybe_unused]] constexpr size_t kFewCores = 4;
/// A chain of ops smaller than this stays on one lane until it is long: waking a thread for one takes longer than the
/// op.
constexpr double kLeastToSpreadNs = 5000;

bool reached(uint64_t packed) { return packed == 0 || Engine::reached(unpack(packed)); }

} // namespace

//--- Running one task
//---------------------------------------------------------------------------------------------------

namespace {

struct InsideTask {
  const bool before = std::exchange(insideTask, true);
  ~InsideTask() { insideTask = before; }
};

FailureRef call(const TaskInfo &info, Lanes::Invoke invoke, void *closure, const TaskView &view) {
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
    return failed(Failure::Kind::Runtime, describeStatus(status));
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
  } catch (...) {
    return failed(Failure::Kind::Runtime, "an exception of a type that is not std::exception");
  }
}

std::vector<uint64_t> writersOf(Storage *const *inputs, size_t n) {
  std::vector<uint64_t> after;
  for (size_t i = 0; i < n; ++i)
    if (const Point point = inputs[i]->ready())
      after.push_back(point.sequence);
  return after;
}

} // namespace

void Lanes::runTask(Point point, const TaskInfo &info, Storage *const *inputs, size_t numInputs,
                    Storage *const *outputs, size_t numOutputs, Invoke invoke, void *closure, const Task *queued,
                    TaskRecord::Kind kind) {
  const bool recorded = recording.load(std::memory_order_relaxed);
  const int64_t begin = recorded ? nowNs() : 0;
  FailureRef why;
  bool keepsStates = true;
  const size_t numResults = numOutputs - info.numStates;
  auto inherit = [&](Storage *const *storages, size_t n) {
    for (size_t i = 0; i < n && !why; ++i)
      if (storages[i]->failed_.load(std::memory_order_acquire)) [[unlikely]]
        why = storages[i]->failure_;
  };
  inherit(inputs, numInputs);
  inherit(outputs + numResults, info.numStates);
  if (!why) {
    const size_t n = numInputs + numOutputs;
    void *local[16];
    StorageRef many; // from the recycling allocator, as small tensors are
    void **pointers = local;
    if (n > 16) {
      many = Storage::allocate(static_cast<int64_t>(n * sizeof(void *)));
      pointers = static_cast<void **>(many->data());
    }
    for (size_t i = 0; i < numInputs; ++i)
      pointers[i] = inputs[i]->data();
    for (size_t i = 0; i < numOutputs; ++i)
      pointers[numInputs + i] = outputs[i]->data();
    const bool timed = info.cost && info.cost->wantsSample();
    const int64_t start = timed ? nowNs() : 0;
    const TaskView view{pointers, pointers + numInputs};
    why = call(info, invoke, closure, view);
    keepsStates = !view.wroteStates;
    if (timed)
      info.cost->record(static_cast<double>(nowNs() - start));
    if (why) [[unlikely]] {
      std::lock_guard lock(failuresMutex);
      if (failures.size() >= 64)
        std::erase_if(failures, [](const Unseen &f) { return f.why->observed.load(std::memory_order_relaxed); });
      uint64_t order = point.sequence;
      for (uint32_t lane = 0; lane < count && !point; ++lane)
        order = std::max(order, entry(lane).submitted.load(std::memory_order_relaxed));
      failures.push_back({point, why, order});
    }
  }
  // A success clears the failure of an earlier task in a reused storage.
  for (size_t i = 0; i < (keepsStates ? numResults : numOutputs); ++i)
    if (why || outputs[i]->failed_.load(std::memory_order_relaxed)) [[unlikely]]
      outputs[i]->fail(why);
  if (recorded) [[unlikely]] {
    TaskRecord r{.kind = kind, .op = info.op, .where = info.where, .sequence = point.sequence};
    r.lane = static_cast<uint8_t>(point.lane % kLanesPerEngine);
    r.failed = why != nullptr;
    r.thread = recordThread();
    r.caller = queued ? queued->caller : r.thread;
    r.submitNs = queued && queued->submitNs ? queued->submitNs : begin;
    r.beginNs = begin;
    r.endNs = nowNs();
    r.after = writersOf(inputs, numInputs);
    record(std::move(r));
  }
}

//--- Handing over
//-------------------------------------------------------------------------------------------------------

Lanes::Waits Lanes::waitsOf(std::span<Storage *const> inputs, std::span<Storage *const> outputs) {
  Waits waits;
  auto add = [&](Point point) {
    if (Engine::reached(point))
      return;
    if (point.sequence > waits.latest.sequence)
      waits.latest = point;
    for (uint32_t i = 0; i < waits.n; ++i)
      if (unpack(waits.points[i]).lane == point.lane) {
        waits.points[i] = std::max(waits.points[i], pack(point)); // in one lane the largest number implies the others
        return;
      }
    waits.points[waits.n++] = pack(point);
  };
  auto check = [&](uint32_t of) {
    if (of != engine)
      throwError<InternalError>("a storage of another engine");
  };
  for (Storage *input : inputs)
    if (const Point ready = input->ready(); !Engine::reached(ready)) {
      check(ready.lane / kLanesPerEngine);
      add(ready);
    }
  // The last task of each lane that may use the bytes, which includes the last writer.
  for (Storage *output : outputs)
    if (const Uses uses = output->lastUse(); !Engine::reached(uses)) {
      check(uses.engine);
      for (uint32_t lane = 0; lane < count; ++lane)
        if (uses.lanes >> lane & 1)
          add({number(lane), std::min(uses.sequence, entry(lane).submitted.load(std::memory_order_relaxed))});
    }
  return waits;
}

double Lanes::remainingNs(uint32_t lane) const {
  const Lane &l = lanes_[lane];
  if (l.head.load(std::memory_order_relaxed) == l.tail.load(std::memory_order_relaxed))
    return 0;
  return std::max(0.0, l.submittedNs - l.doneNs.load(std::memory_order_relaxed));
}

/// Estimated time until that task is done. Needs the producers' mutex, so that no slot of the ring is overwritten.
double Lanes::remainingNs(Point upTo) {
  Lane &l = lanes_[upTo.lane % kLanesPerEngine];
  uint64_t low = l.head.load(std::memory_order_relaxed), high = l.tail.load(std::memory_order_relaxed);
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (l.ring[middle % Lane::kRing].sequence < upTo.sequence)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == l.tail.load(std::memory_order_relaxed))
    return 0;
  return std::max(0.0, l.ring[low % Lane::kRing].endNs - l.doneNs.load(std::memory_order_relaxed));
}

uint32_t Lanes::chooseLane(double ns, const Waits &waits) {
  if (count == 1)
    return 0;
  const uint32_t home = waits.n ? waits.latest.lane % kLanesPerEngine : lastLane_;
  const double homeNs = remainingNs(home);
  const bool isSmall = ns < kHandOverNs;
  if (isSmall && waits.n && homeNs < kHandOverNs)
    return home; // it follows its operand
  // Estimated time until all its dependences are done.
  double there = 0;
  for (uint32_t i = 0; i < waits.n; ++i)
    there = std::max(there, remainingNs(unpack(waits.points[i])));
  uint32_t best = home;
  if (isSmall && waits.n) {
    // Its own lane has a long queue of other chains' ops: it moves to a shorter one, and later ops of the chain follow
    // it. The hand-over costs nothing, as it overlaps with the queue.
    if (there < kHandOverNs || there + ns / 2 > homeNs)
      return home;
    double least = homeNs - kHandOverNs;
    for (uint32_t lane = 0; lane < count; ++lane)
      if (const double queued = remainingNs(lane); queued < least)
        best = lane, least = queued;
    return best;
  }
  // Moves to a lane where it starts earlier by more than the hand-over takes. The first op of a chain moves for less,
  // as the rest of the chain follows it.
  double start = homeNs - (!waits.n && ns >= kLeastToSpreadNs ? std::min(kHandOverNs, ns / 2) : kHandOverNs);
  for (uint32_t lane = 0; lane < count; ++lane)
    if (const double mine = std::max(there, remainingNs(lane)); mine < start)
      best = lane, start = mine;
  if (!waits.n)
    lastLane_ = best;
  return best;
}

/// Waits until half of the full lane is done; the caller executes it itself if the token is free.
void Lanes::makeRoom(std::unique_lock<std::mutex> &lock, uint32_t lane, const TaskInfo &info) {
  Lane &l = lanes_[lane];
  const uint64_t middle = l.ring[(l.tail.load(std::memory_order_relaxed) - Lane::kRing / 2) % Lane::kRing].sequence;
  lock.unlock();
  numQueueFull.fetch_add(1, std::memory_order_relaxed);
  {
    WaitScope scope(*this, TaskRecord::Kind::QueueFull, info.op, info.where, {number(lane), middle}, true);
    waitFor(Point{number(lane), middle});
  }
  lock.lock();
}

Point Lanes::push(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs,
                  const Engine::ClosureOps &ops, void *closure) {
  const size_t n = inputs.size() + outputs.size();
  StorageRef many; // from the recycling allocator, as small tensors are
  if (n > Task::kInlineStorages)
    many = Storage::allocate(static_cast<int64_t>(n * sizeof(Storage *)));
  const double ns = info.cost ? info.cost->estimateNs() : kUnknownNs;
  std::unique_lock lock(producers_);
  Waits waits;
  uint32_t lane = 0;
  for (bool drained = false;;) {
    waits = waitsOf(inputs, outputs);
    lane = chooseLane(ns, waits);
    Lane &l = lanes_[lane];
    if (!l.ring)
      l.ring.reset(new Task[Lane::kRing]);
    if (l.tail.load(std::memory_order_relaxed) - l.head.load(std::memory_order_acquire) >= Lane::kRing) {
      makeRoom(lock, lane, info);
      continue; // dependences may be done by now, and another lane may be better
    }
    Storage *without = nullptr;
    for (Storage *output : outputs)
      if (!Blocks::materialize(*output, number(lane), info) && !without)
        without = output;
    if (!without)
      break;
    lock.unlock();
    if (drained)
      throw OutOfMemory(Error::Details{Blocks::report(without->bytes()), info.where, info.op});
    numMemoryShort.fetch_add(1, std::memory_order_relaxed);
    {
      WaitScope scope(*this, TaskRecord::Kind::Memory, info.op, info.where, {}, true);
      drain();
    }
    drained = true;
    lock.lock();
  }
  if (workers_.empty())
    startWorkers();

  Lane &l = lanes_[lane];
  const uint64_t position = l.tail.load(std::memory_order_relaxed);
  Task &task = l.ring[position % Lane::kRing];
  const Point point{number(lane), next_++};
  task.ops = &ops;
  task.info = info;
  task.numInputs = static_cast<uint32_t>(inputs.size());
  task.numOutputs = static_cast<uint32_t>(outputs.size());
  task.sequence = point.sequence;
  task.endNs = l.submittedNs += ns;
  task.submitNs = 0;
  if (recording.load(std::memory_order_relaxed)) [[unlikely]]
    task.submitNs = nowNs(), task.caller = recordThread();
  task.numWaits = 0;
  for (uint32_t i = 0; i < waits.n; ++i)
    if (unpack(waits.points[i]).lane != point.lane)
      task.waits[task.numWaits++] = waits.points[i];
  task.storages = many ? static_cast<Storage **>(many->data()) : task.inlineStorages;
  task.list = std::move(many);
  std::copy(inputs.begin(), inputs.end(), task.storages);
  std::copy(outputs.begin(), outputs.end(), task.storages + inputs.size());
  // before uses refer to the task: Engine::reached
  entry(lane).submitted.store(point.sequence, std::memory_order_release);
  for (size_t i = 0; i < n; ++i) {
    Storage &s = *task.storages[i];
    s.references_.fetch_add(Storage::kTask, std::memory_order_relaxed);
    Uses uses = s.lastUse();
    uses.engine = static_cast<uint8_t>(engine); // uses of another engine are over: waitsOf has checked
    uses.lanes = static_cast<uint8_t>((Engine::reached(s.lastUse()) ? 0 : uses.lanes) | 1u << lane);
    uses.sequence = point.sequence;
    s.lastUse_.store(pack(uses), std::memory_order_release);
  }
  for (Storage *output : outputs)
    output->ready_.store(pack(point), std::memory_order_release);
  ops.move(task.closure, closure);
  const uint32_t numWaits = task.numWaits;
  const Point firstWait = numWaits ? unpack(task.waits[0]) : Point();
  // it is the head of its lane, so no thread need examine it before the wait is over
  if (numWaits && l.head.load() == position)
    l.blockedOn.store(pack(firstWait));
  // sequentially consistent, as `parked_` is: either this thread sees the sleeper, or the sleeper sees the task
  l.tail.store(position + 1);
#ifdef __linux__
  if (choosesCores_ && parked_.load(std::memory_order_relaxed))
    keepOffCaller(sched_getcpu());
#endif
  lock.unlock();
  numQueued.fetch_add(1, std::memory_order_relaxed);
  if (numWaits)
    numCrossed.fetch_add(1, std::memory_order_relaxed);
  // A spinning worker that has a core finds the task and soon holds the token. No thread is woken for a task that has
  // to wait; reaching the point that it waits for wakes one.
  const bool isFound = spinning_.load() && position - l.head.load(std::memory_order_relaxed) < 4;
  if (parked_.load() && !isFound && !l.token.load() && reached(l.blockedOn.load()) && (!numWaits || want(firstWait))) {
    wakeWorker();
  }
  return point;
}

//--- Executing
//----------------------------------------------------------------------------------------------------------

/// Runs tasks until `target` is done, the lane is empty, or the head has to wait. Needs the token.
Lanes::Progress Lanes::execute(uint32_t lane, uint64_t target, TaskRecord::Kind kind) {
  Lane &l = lanes_[lane];
  std::atomic<uint64_t> &done = entry(lane).done;
  Progress progress;
  executing_.fetch_add(1, std::memory_order_relaxed);
  for (uint64_t at = l.head.load(std::memory_order_relaxed);
       done.load(std::memory_order_relaxed) < target && at != l.tail.load(std::memory_order_acquire);) {
    Task &task = l.ring[at % Lane::kRing];
    for (uint32_t i = 0; i < task.numWaits && !progress.blockedOn; ++i)
      if (!reached(task.waits[i]))
        progress.blockedOn = unpack(task.waits[i]);
    if (progress.blockedOn)
      break;
    const uint64_t sequence = task.sequence;
    // Concurrent ops share the pool's threads: each may use its part only. Split over all of them, they would take
    // turns.
    const int others = numOthers(lane);
    ThreadPool::share = others ? std::max(1, ThreadPool::global().numThreads() / (1 + others)) : 0;
    runTask({number(lane), sequence}, task.info, task.storages, task.numInputs, task.storages + task.numInputs,
            task.numOutputs, task.ops->invoke, task.closure, &task, kind);
    task.ops->destroy(task.closure);
    for (size_t i = 0; i < size_t(task.numInputs) + task.numOutputs; ++i)
      task.storages[i]->release(Storage::kTask);
    task.list = {};
    l.doneNs.store(task.endNs, std::memory_order_relaxed);
    // sequentially consistent, as `wanted` is: either this thread sees the waiter, or the waiter sees the task done
    done.store(sequence);
    l.head.store(++at, std::memory_order_release);
    ++progress.ran;
    if (sequence >= l.wanted.load())
      wakeAll(l);
  }
  ThreadPool::share = 0;
  executing_.fetch_sub(1, std::memory_order_relaxed);
  return progress;
}

void Lanes::releaseToken(uint32_t lane, Point blockedOn) {
  Lane &l = lanes_[lane];
  l.blockedOn.store(blockedOn ? pack(blockedOn) : 0);
  l.token.store(false);
  if (blockedOn && !want(blockedOn)) { // reaching that point wakes the threads
    if (l.wanted.load() != UINT64_MAX)
      wakeAll(l); // callers that wait for this lane may help with the other one
    return;
  }
  // Wakes a thread for tasks that came while this one held the token, or that it left.
  if (l.head.load() != l.tail.load()) {
    if (parked_.load() && !spinning_.load())
      wakeWorker();
    if (l.wanted.load() != UINT64_MAX)
      wakeAll(l);
  }
}

bool Lanes::want(Point point) {
  std::lock_guard lock(mutex_);
  Lane &l = lanes_[point.lane % kLanesPerEngine];
  l.wanted.store(std::min(l.wanted.load(), point.sequence));
  return Engine::reached(point);
}

void Lanes::wakeWorker() {
  // a worker that found nothing before this point is asleep now, so it gets the notification
  { std::lock_guard lock(mutex_); }
  notifyWorker();
}
/// Wakes the last worker only if no other is asleep.
void Lanes::notifyWorker() { (lastParked_.load() && parked_.load() == 1 ? lastWork_ : work_).notify_one(); }

/// Linux places a woken thread on the core of the thread that woke it, and on machines of few cores often leaves it
/// there though another core is idle. So workers may use all cores but the caller's. With as many workers as cores,
/// each is bound to one core; the last worker, which is woken last, gets the caller's. Needs the producers' mutex.
void Lanes::keepOffCaller(int core) {
#ifdef __linux__
  if (core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(core, &allowed_) ||
      callersCore_.exchange(core, std::memory_order_relaxed) == core)
    return;
  cpu_set_t away = allowed_;
  CPU_CLR(core, &away);
  const bool oneEach = static_cast<size_t>(CPU_COUNT(&allowed_)) == workers_.size();
  int next = 0;
  for (size_t i = 0; i < workers_.size(); ++i) {
    cpu_set_t wanted = away, set;
    if (oneEach) {
      CPU_ZERO(&wanted);
      while (i + 1 < workers_.size() && !CPU_ISSET(next, &away))
        ++next;
      CPU_SET(i + 1 < workers_.size() ? next++ : core, &wanted);
    }
    // An affinity that differs from what was set here was set by the application, which is respected: stop choosing.
    if (pthread_getaffinity_np(workers_[i].native_handle(), sizeof(set), &set) != 0 || !CPU_EQUAL(&set, &given_[i]) ||
        pthread_setaffinity_np(workers_[i].native_handle(), sizeof(wanted), &wanted) != 0) {
      choosesCores_ = false;
      return;
    }
    given_[i] = wanted;
  }
#endif
}

void Lanes::wakeAll(Lane &lane) {
  {
    std::lock_guard lock(mutex_);
    lane.wanted.store(UINT64_MAX); // threads that still wait lower it again
  }
  if (waiting_.load())
    progress_.notify_all();
  if (parked_.load() && !spinning_.load())
    notifyWorker();
}

bool Lanes::isRunnable(Lane &lane) {
  return lane.head.load() != lane.tail.load() && !lane.token.load() && reached(lane.blockedOn.load());
}
/// Number of other lanes that are executed or could be.
int Lanes::numOthers(uint32_t lane) {
  int n = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const Lane &l = lanes_[i];
    n += i != lane && l.head.load(std::memory_order_relaxed) != l.tail.load(std::memory_order_relaxed) &&
         (l.token.load(std::memory_order_relaxed) || reached(l.blockedOn.load(std::memory_order_relaxed)));
  }
  return n;
}
bool Lanes::anyRunnable() {
  for (uint32_t i = 0; i < count; ++i)
    if (isRunnable(lanes_[i]))
      return true;
  return false;
}

void Lanes::startWorkers() {
  for (uint32_t i = 0; i < count; ++i)
    workers_.push_back(startInternalThread("tressel.lane", [this, i] { workerLoop(i); }));
#ifdef __linux__
  if (sched_getaffinity(0, sizeof(allowed_), &allowed_) == 0) {
    std::fill(std::begin(given_), std::end(given_), allowed_);
    const size_t cores = static_cast<size_t>(CPU_COUNT(&allowed_));
    choosesCores_ = cores > 1 && cores >= workers_.size() && cores <= kFewCores;
  }
#endif
}

void Lanes::workerLoop(uint32_t preferred) {
  onLaneThread = true;
#ifdef SCHED_BATCH
  // The caller goes on after handing over work: with SCHED_BATCH the woken thread does not preempt it.
  const sched_param none{};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &none); // optional: may be refused
#endif
  for (;;) {
    bool ran = false;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t lane = (preferred + i) % count;
      if (!isRunnable(lanes_[lane]) || !takeToken(lanes_[lane]))
        continue;
      // Keeps one worker awake for the other lanes while this one executes.
      if (parked_.load() && anyRunnable())
        wakeWorker();
      const Progress progress = execute(lane, UINT64_MAX, TaskRecord::Kind::Lane);
      releaseToken(lane, progress.blockedOn);
      ran |= progress.ran != 0;
    }
    const bool isLast = preferred + 1 == count;
    if (ran || ((!isLast || count == 1) && spin())) // the last worker may share the caller's core, so it does not spin
      continue;
    std::unique_lock lock(mutex_);
    parked_.fetch_add(1);
    lastParked_.store(lastParked_.load() || isLast);
    (isLast ? lastWork_ : work_).wait(lock, [&] {
      if (anyRunnable())
        return true;
      if (!stop_)
        return false;
      for (uint32_t i = 0; i < count; ++i)
        if (lanes_[i].head.load() != lanes_[i].tail.load())
          return false;
      return true;
    });
    parked_.fetch_sub(1);
    if (isLast)
      lastParked_.store(false);
    if (stop_ && !anyRunnable())
      return;
  }
}

/// Spins for runnable tasks. Returns whether there are any. Only one thread spins at a time, as spinning slows down the
/// others.
bool Lanes::spin() {
  if (spinning_.exchange(true, std::memory_order_acquire))
    return false;
  const auto until = std::chrono::steady_clock::now() + kSpin;
  bool found = false;
  do {
    for (int i = 0; i < 64 && !found; ++i) {
      found = anyRunnable();
      __builtin_ia32_pause();
    }
    if (!found)
      sched_yield(); // threads with work go first
  } while (!found && std::chrono::steady_clock::now() < until);
  // before the last check of the queues, so that either this thread sees a new task or its producer sees no spinner
  spinning_.store(false);
  return found;
}

//--- Waiting
//------------------------------------------------------------------------------------------------------------

bool Lanes::waitFor(Point point, Deadline until) {
  const uint32_t lane = point.lane % kLanesPerEngine;
  Lane &l = lanes_[lane];
  std::atomic<uint64_t> &done = entry(lane).done;
  bool mayLook = true;
  while (done.load(std::memory_order_acquire) < point.sequence) {
    if (takeToken(l)) {
      const Progress progress = execute(lane, point.sequence, TaskRecord::Kind::Helped);
      numHelped.fetch_add(progress.ran, std::memory_order_relaxed);
      releaseToken(lane, progress.blockedOn);
      // The task that blocks the lane has a smaller number and is at the head of its lane or behind smaller ones. So
      // the recursion ends, and visits no lane twice.
      if (progress.blockedOn && !waitFor(progress.blockedOn, until))
        return false;
      continue;
    }
    // Another thread executes the lane. If a core is free, spins for as long as sleeping and waking would take.
    if (std::exchange(mayLook, false) &&
        executing_.load(std::memory_order_relaxed) < ThreadPool::global().numThreads()) {
      const auto end = std::chrono::steady_clock::now() + kSpin;
      do {
        for (int i = 0; i < 64 && done.load(std::memory_order_relaxed) < point.sequence; ++i)
          __builtin_ia32_pause();
        sched_yield();
      } while (done.load(std::memory_order_relaxed) < point.sequence && l.token.load(std::memory_order_relaxed) &&
               std::chrono::steady_clock::now() < end);
      continue;
    }
    std::unique_lock lock(mutex_);
    waiting_.fetch_add(1);
    for (bool isLate = false; !isLate;) {
      l.wanted.store(std::min(l.wanted.load(), point.sequence));
      if (done.load() >= point.sequence || !l.token.load())
        break;
      if (until == Deadline::max())
        progress_.wait(lock);
      else
        isLate = progress_.wait_until(lock, until) == std::cv_status::timeout;
    }
    waiting_.fetch_sub(1);
    if (std::chrono::steady_clock::now() > until)
      return false;
  }
  return true;
}

void Lanes::waitFor(Uses uses) {
  for (uint32_t lane = 0; lane < count; ++lane)
    if (uses.lanes >> lane & 1)
      waitFor(Point{number(lane), std::min(uses.sequence, entry(lane).submitted.load(std::memory_order_acquire))});
}

bool Lanes::drain(Deadline until) {
  uint64_t last[kLanesPerEngine];
  {
    std::lock_guard lock(producers_);
    for (uint32_t lane = 0; lane < count; ++lane)
      last[lane] = entry(lane).submitted.load(std::memory_order_relaxed);
  }
  for (uint32_t lane = 0; lane < count; ++lane)
    if (!waitFor(Point{number(lane), last[lane]}, until))
      return false;
  return true;
}

std::string Lanes::describe(Point point) {
  std::lock_guard lock(producers_); // keeps slots from being overwritten
  Lane &l = lanes_[point.lane % kLanesPerEngine];
  for (uint64_t at = l.head.load(); at != l.tail.load(); ++at)
    if (const Task &task = l.ring[at % Lane::kRing]; task.sequence == point.sequence)
      return concat(task.info.op, task.info.where ? concat(" (", task.info.where.str(), ")") : "");
  return "";
}

bool Lanes::isIdle() {
  for (uint32_t lane = 0; lane < count; ++lane)
    if (entry(lane).done.load() < entry(lane).submitted.load())
      return false;
  std::lock_guard lock(failuresMutex);
  return failures.empty();
}

void Lanes::printUnseen() {
  std::lock_guard lock(failuresMutex);
  for (const Unseen &f : failures)
    if (!f.why->observed.exchange(true)) {
      const SourceLoc where = f.why->where;
      std::fprintf(stderr, "tressel: a failure that nobody waited for: %s%s%s: %s\n", where.str().c_str(),
                   where ? ": " : "", f.why->op.c_str(), f.why->message.c_str());
    }
  failures.clear();
}

//--- Records
//------------------------------------------------------------------------------------------------------------

void Lanes::record(TaskRecord record) {
  std::lock_guard lock(recordsMutex_);
  if (records_.size() < recordLimit_)
    records_.push_back(std::move(record));
}
void Lanes::start(size_t limit) {
  std::lock_guard lock(recordsMutex_);
  records_.clear();
  recordLimit_ = limit;
  recording = true;
}
std::vector<TaskRecord> Lanes::stop() {
  std::lock_guard lock(recordsMutex_);
  recording = false;
  recordLimit_ = 0;
  std::vector<TaskRecord> all = std::exchange(records_, {});
  std::sort(all.begin(), all.end(), [](const TaskRecord &a, const TaskRecord &b) { return a.beginNs < b.beginNs; });
  return all;
}

WaitScope::WaitScope(Lanes &lanes, TaskRecord::Kind kind, const char *what, SourceLoc where, Point point, bool hidden)
    : lanes_(lanes), kind_(kind), what_(what), where_(where), point_(point), hidden_(hidden),
      log_(logWaits() > (hidden ? 0 : 1)) {
  if (log_ || lanes.recording.load(std::memory_order_relaxed)) {
    if (log_ && point && kind == TaskRecord::Kind::Wait)
      waitsFor_ = lanes.describe(point);
    begin_ = nowNs();
  }
}

WaitScope::~WaitScope() {
  if (!begin_)
    return;
  const int64_t end = nowNs();
  if (lanes_.recording.load(std::memory_order_relaxed)) {
    TaskRecord r{.kind = kind_, .op = what_, .where = where_, .sequence = point_.sequence};
    r.lane = static_cast<uint8_t>(point_.lane % kLanesPerEngine);
    r.hidden = hidden_;
    r.thread = r.caller = recordThread();
    r.submitNs = r.beginNs = begin_;
    r.endNs = end;
    lanes_.record(std::move(r));
  }
  if (!log_)
    return;
  const char *why = kind_ == TaskRecord::Kind::QueueFull ? ": 4096 ops are queued in its lane"
                    : kind_ == TaskRecord::Kind::Memory  ? ": memory is short"
                                                         : "";
  const std::string at = where_.str();
  std::fprintf(stderr, "tressel: %s%s%s waited %.3f ms%s%s%s\n", at.c_str(), at.empty() ? "" : ": ", what_,
               static_cast<double>(end - begin_) / 1e6, why, waitsFor_.empty() ? "" : " for ", waitsFor_.c_str());
}

} // namespace tressel::runtime
