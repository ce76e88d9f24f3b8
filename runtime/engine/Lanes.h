// The lanes of an engine: rings of queued tasks, the threads that run them, and the callers that wait for them.
//
// Producers share one mutex, which numbers the tasks. The thread that holds a lane's token executes the lane: a worker
// of the engine, or a caller that waits. A lane whose head waits for another lane is released, and resumed when that
// lane has reached the point.
#pragma once

#include "tressel/runtime/Engine.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <sched.h>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace tressel::runtime {

/// Progress of each lane of the process. A new engine continues the numbers of the engine that had its place before, so
/// that points of that one stay reached.
struct LaneTable {
  struct alignas(64) Entry {
    std::atomic<uint64_t> done{0};      ///< number of the last finished task
    std::atomic<uint64_t> submitted{0}; ///< number of the last queued task
  };
  Entry lanes[kMaxEngines * kLanesPerEngine];
  std::mutex mutex;
  bool used[kMaxEngines] = {};
  uint64_t last[kMaxEngines] = {};
};
extern LaneTable laneTable;

/// A queued task. It counts as a user of its storages until it has run.
struct Task {
  static constexpr size_t kInlineStorages = 8;
  const Engine::ClosureOps *ops;
  Storage **storages; ///< inputs, then outputs: inlineStorages, or those of `list`
  StorageRef list;
  uint32_t numInputs, numOutputs, numWaits;
  TaskInfo info;
  uint64_t sequence;
  int64_t submitNs; ///< these two only while records are made
  uint32_t caller;
  double endNs; ///< estimated work of the lane up to and including this task
  Storage *inlineStorages[kInlineStorages];
  uint64_t waits[kLanesPerEngine]; ///< packed points of other lanes
  alignas(16) std::byte closure[Engine::kClosureBytes];
};

struct alignas(64) Lane {
  static constexpr uint64_t kRing = 4096;
  std::atomic<uint64_t> head{0}; ///< tasks that have run
  std::atomic<uint64_t> tail{0}; ///< tasks that were queued; written under the producers' mutex
  std::atomic<bool> token{false};
  std::atomic<uint64_t> blockedOn{0}; ///< packed point that the task at the head was seen to wait for, 0: none
  /// The least number that a sleeping caller or a blocked lane waits for; lowered and reset under the mutex.
  std::atomic<uint64_t> wanted{UINT64_MAX};
  std::atomic<double> doneNs{0}; ///< estimated work of finished tasks
  double submittedNs = 0;        ///< estimated work of all submitted tasks; under the producers' mutex
  std::unique_ptr<Task[]> ring;  ///< made with the first task
};

/// A number for this thread, from 1 on, small enough for records and counts.
uint32_t recordThread();
/// TRESSEL_LOG_WAITS: 0, 1 for hidden waits, 2 for all.
int logWaits();
/// Set while a task runs: calls then run inline, and waits are refused.
extern thread_local constinit bool insideTask;
/// Throws in the child of a fork, which has neither the threads nor valid locks.
void checkCaller();

class Lanes {
public:
  using Deadline = std::chrono::steady_clock::time_point;
  explicit Lanes(int count);
  ~Lanes();

  const uint32_t engine; ///< index in the lane table
  const uint32_t count;

  LaneTable::Entry &entry(uint32_t lane) { return laneTable.lanes[engine * kLanesPerEngine + lane]; }
  uint16_t number(uint32_t lane) const { return static_cast<uint16_t>(engine * kLanesPerEngine + lane); }

  /// Runs the op over its storages, or passes on the failure of an input; the outputs record the outcome.
  using Invoke = int32_t (*)(void *closure, const TaskView &view);
  void runTask(Point point, const TaskInfo &info, Storage *const *inputs, size_t numInputs, Storage *const *outputs,
               size_t numOutputs, Invoke invoke, void *closure, const Task *queued = nullptr,
               TaskRecord::Kind kind = TaskRecord::Kind::Inline);

  Point push(const TaskInfo &info, std::span<Storage *const> inputs, std::span<Storage *const> outputs,
             const Engine::ClosureOps &ops, void *closure);

  /// Runs queued tasks while it waits. Returns true once the task is done, false if the deadline comes first.
  bool waitFor(Point point, Deadline until = Deadline::max());
  void waitFor(Uses uses);
  /// Waits for all tasks submitted before the call.
  bool drain(Deadline until = Deadline::max());
  /// The lane and line of a queued task, for logs: "matmul (train.cpp:42)"; "" when it is done.
  std::string describe(Point point);

  struct Unseen {
    Point point;
    FailureRef why;
    uint64_t order; ///< number of the task; of an inline one, that of the task queued last before it
  };
  std::mutex failuresMutex;
  std::vector<Unseen> failures; ///< failures of tasks themselves, not inherited; observed ones are dropped now and then
  /// Whether nothing is queued and no failure is kept.
  bool isIdle();
  void printUnseen();

  // Records
  std::atomic<bool> recording{false};
  void record(TaskRecord record);
  void start(size_t limit);
  std::vector<TaskRecord> stop();

  // Counts of tasks that ran in submit(), spread over several cache lines so that threads seldom contend.
  static constexpr size_t kCounts = 8;
  struct alignas(64) Count {
    std::atomic<uint64_t> n{0};
  };
  Count numInlined[kCounts];
  std::atomic<uint64_t> numQueued{0}, numHelped{0}, numCrossed{0}, numQueueFull{0}, numMemoryShort{0};

private:
  struct Progress {
    uint64_t ran = 0;
    Point blockedOn; ///< the point that stopped it; none if it reached the target or the lane's end
  };
  struct Waits {
    uint64_t points[kLanesPerEngine];
    uint32_t n = 0;
    Point latest; ///< the highest point of any lane that is not reached yet
  };

  Waits waitsOf(std::span<Storage *const> inputs, std::span<Storage *const> outputs);
  uint32_t chooseLane(double ns, const Waits &waits);
  double remainingNs(uint32_t lane) const;
  double remainingNs(Point upTo);
  void makeRoom(std::unique_lock<std::mutex> &lock, uint32_t lane, const TaskInfo &info);

  bool takeToken(Lane &lane) {
    return !lane.token.load(std::memory_order_relaxed) && !lane.token.exchange(true, std::memory_order_acquire);
  }
  Progress execute(uint32_t lane, uint64_t target, TaskRecord::Kind kind);
  void releaseToken(uint32_t lane, Point blockedOn);
  /// Requests a wake-up when the point is reached. Returns whether it is reached already.
  bool want(Point point);
  bool isRunnable(Lane &lane);
  int numOthers(uint32_t lane);
  bool anyRunnable();
  void wakeWorker();
  void notifyWorker();
  void keepOffCaller(int core);
  void wakeAll(Lane &lane);
  void workerLoop(uint32_t preferred);
  bool spin();
  void startWorkers();

  Lane lanes_[kLanesPerEngine];
  std::mutex producers_;
  uint64_t next_;         ///< number of the next task
  uint32_t lastLane_ = 0; ///< lane of the last task without dependences
  std::vector<std::thread> workers_;

  std::mutex mutex_;                                   ///< for the condition variables
  std::condition_variable work_, lastWork_, progress_; ///< lastWork_: for the last worker, which is woken last
  std::atomic<uint32_t> parked_{0}, waiting_{0};       ///< threads asleep: workers, and callers
  std::atomic<bool> lastParked_{false};
  std::atomic<int> callersCore_{-1}; ///< core that workers were told to avoid
  bool choosesCores_ = false;        ///< under the producers' mutex, like the next member
#ifdef __linux__
  cpu_set_t allowed_, given_[kLanesPerEngine]; ///< cores of the process, and of each worker
#endif
  std::atomic<int> executing_{0}; ///< threads that execute a lane
  std::atomic<bool> spinning_{false};
  bool stop_ = false;

  std::mutex recordsMutex_;
  std::vector<TaskRecord> records_;
  size_t recordLimit_ = 0;
};

/// Counts and times a blocking wait of a caller, for its log line and record. Does nothing when neither is enabled.
class WaitScope {
public:
  /// `hidden`: a wait that the program did not ask for by name.
  WaitScope(Lanes &lanes, TaskRecord::Kind kind, const char *what, SourceLoc where, Point point, bool hidden);
  ~WaitScope();
  WaitScope(const WaitScope &) = delete;

private:
  Lanes &lanes_;
  TaskRecord::Kind kind_;
  const char *what_;
  SourceLoc where_;
  Point point_;
  bool hidden_, log_;
  int64_t begin_ = 0;
  std::string waitsFor_;
};

} // namespace tressel::runtime
