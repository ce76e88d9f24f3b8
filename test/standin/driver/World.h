// The stand-in driver: cards whose streams are lists of operations, and a chooser that runs them when it likes, as far as NVIDIA's documentation leaves it
// the choice. Nothing runs between calls: all that happens, happens within a call of the driver, under one lock.
//
//   call ──issue──> Operation (its clock: what it is ordered behind) ──pending──chooser──> run: contents, histories, findings
//
// An operation's clock is fixed when it is issued: stream order, waits for events, and what the host has seen to have ended. When it runs, the bytes that it touches
// are checked against those that touched them before. So a missing wait is found whatever order was chosen.
#pragma once

#include "Clock.h"
#include "Control.h"
#include "Heap.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace tressel::standin {

using Result = int; ///< CUresult
enum : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kOutOfResources = 701,
  kLaunchTimeout = 702,
  kPeerAccessAlreadyEnabled = 704,
  kMisaligned = 716,
  kAlreadyRegistered = 712,
  kNotRegistered = 713,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kGraphUpdateFailure = 910,
  kInvalidClusterSize = 912,
};

struct LoadedModule;
struct Operation;
using OperationRef = std::shared_ptr<Operation>;

struct Context {
  int card = 0;
  Result sticky = kSuccess; ///< an error that every later call returns
  std::set<int> peers;      ///< cards whose memory kernels may touch
};

struct Stream {
  Context *context = nullptr;
  bool isBlocking = true; ///< the legacy stream and it wait for each other
  uint32_t timeline = 0;
  Clock clock;
  OperationRef last, beforeLast; ///< what the event before the last one was recorded behind: for a planted mistake
};

struct Event {
  Context *context = nullptr;
  bool isTiming = true;
  OperationRef recorded; ///< null: never
};

enum class Meets : uint8_t {
  NotYet, ///< some are not there, which the host has a say in
  Behind, ///< it runs when they have
  Free,   ///< it waits for none of them any more
};
struct Operation {
  uint64_t number = 0;
  Context *context = nullptr;
  Access self;
  Clock clock;
  std::vector<OperationRef> after; ///< what it waits for; empty once it has run
  std::function<Meets()> meeting;  ///< with operations of other streams; null: with none
  std::vector<OperationRef> meets; ///< those that have to run before, and do not order it
  std::function<Result(Operation &)> work; ///< null: nothing to do
  std::function<bool()> gate;              ///< until it is true, this does not run: the host has a say in it
  bool isGated = false; ///< it or one before has a gate, so that more is known of what it is behind when it runs
  std::vector<uint64_t> mentions;  ///< addresses that it may touch: kernel parameters, ends of copies
  const LoadedModule *module = nullptr; ///< of its kernel
  bool hasRun = false;
  Result result = kSuccess;
  int64_t endNs = 0;
};

struct LoadedModule {
  Context *context = nullptr;
  std::shared_ptr<const ptx::Module> code;
};
struct Function {
  LoadedModule *module = nullptr;
  const ptx::Kernel *kernel = nullptr;
  int maxDynamicShared = 48 << 10;
};

struct Pool {
  int card = 0;
};

struct KernelLaunch {
  const ptx::Kernel *kernel = nullptr;
  const LoadedModule *module = nullptr;
  std::shared_ptr<const ptx::Module> code; ///< stays as long as the launch
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, sharedBytes = 0;
  unsigned cluster = 1;          ///< blocks along x
  std::vector<std::byte> params; ///< copied when it was issued
};
struct CopyWork {
  uint64_t to = 0, from = 0, bytes = 0;
  std::shared_ptr<std::vector<std::byte>> staged; ///< pageable memory, taken when the call was made
};
struct FillWork {
  uint64_t to = 0, pitch = 0;
  uint32_t value = 0;
  unsigned elementBytes = 1;
  uint64_t width = 0, height = 1; ///< in elements, and rows
};

struct Node;
struct GraphExec;
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Graph *> bodies;       ///< of its conditional nodes
  std::vector<uint64_t> conditions; ///< handles that were made for it: addresses of words of the card
  bool isBody = false;
};
struct Node {
  enum class Kind : uint8_t { Kernel, Copy, Fill, Empty, Conditional } kind = Kind::Empty;
  Context *context = nullptr;
  std::vector<Node *> after;
  KernelLaunch kernel;
  CopyWork copy;
  FillWork fill;
  uint64_t condition = 0; ///< a handle
  bool repeats = false;
  Graph *body = nullptr;               ///< of a graph's node
  std::shared_ptr<GraphExec> bodyExec; ///< of an instantiated graph's
};
struct GraphExec {
  std::vector<std::unique_ptr<Node>> nodes; ///< in an order that `after` allows
  std::map<const Node *, Node *> copies;    ///< of the graph's nodes
  std::vector<uint32_t> timelines;          ///< by node
  std::vector<uint32_t> own;                ///< all timelines that are this graph's
  OperationRef last;
};

class World {
public:
  static World &get();
  std::recursive_mutex mutex;

  //--- Options ------------------------------------------------------------------------------------------------------
  enum class Order : uint8_t { Eager, Late, Random, Reversed } order = Order::Eager;
  uint64_t seed = 0, random = 0;
  int numCards = 1, architecture = 90;
  uint64_t failAt = 0, failKernelAt = 0;
  Result error = kSuccess; ///< 0: the usual one
  uint64_t patience = 3;
  bool isNull = false, keepsFindings = false, isTracing = false;
  std::string plant; ///< a mistake that the launcher is to look as if it had made
  bool configure(const char *options);

  uint64_t calls = 0, kernelsRun = 0;
  std::string failedCall;
  std::vector<std::string> findings;
  void find(std::string finding);
  uint64_t next(uint64_t below); ///< a random number

  //--- Objects: handles are their addresses ---------------------------------------------------------------------------
  bool isInitialized = false;
  int process = 0;
  std::deque<Context> contexts; ///< by card
  std::deque<Stream> legacy;    ///< the legacy stream of each card
  Heap heap;
  std::map<const void *, std::unique_ptr<Stream>> streams;
  std::vector<OperationRef> orphans; ///< the last ones of streams that are destroyed
  std::map<const void *, std::unique_ptr<Event>> events;
  std::map<const void *, std::unique_ptr<LoadedModule>> modules;
  std::map<const void *, std::unique_ptr<Function>> functions;
  std::map<const void *, std::unique_ptr<Pool>> pools;
  std::map<const void *, std::unique_ptr<Graph>> graphs;
  std::map<const void *, std::unique_ptr<GraphExec>> execs;
  Alive alive() const;

  //--- Timelines ------------------------------------------------------------------------------------------------------
  Clock host; ///< what the host has seen to have ended
  uint32_t newTimeline();
  /// Free for another stream once the host has seen all of it.
  void retire(uint32_t timeline);
  Access hostAccess(const char *what);

  //--- Operations -----------------------------------------------------------------------------------------------------
  /// Behind the stream's last one, and the legacy stream's by its rules. `more` are further ones that it waits for.
  OperationRef issue(Stream &stream, std::string what, std::function<Result(Operation &)> work,
                     std::vector<uint64_t> mentions = {}, const std::vector<OperationRef> &more = {},
                     std::function<bool()> gate = nullptr, std::function<Meets()> meeting = nullptr);
  void launchGraph(GraphExec &exec, Stream &stream);
  /// Runs it and what it waits for; the host has then seen its end.
  void finish(const OperationRef &operation);
  /// The host has seen its end.
  void see(const OperationRef &operation);
  /// As an order allows when a call is made: some operations may run.
  void mayRun();
  /// Whether a query of it says that it has ended.
  bool looksEnded(const OperationRef &operation);
  void drain();
  /// That is pending; null: it has run.
  OperationRef pendingAt(uint64_t number) const;
  const std::vector<OperationRef> &pending() const { return pending_; }
  static std::vector<uint64_t> mentionsOf(const Node &node);
  static std::string nameOf(const Node &node);

  //--- What operations do (Work.cpp) ------------------------------------------------------------------------------------
  Result runKernel(Operation &operation, const KernelLaunch &launch);
  Result runCopy(Operation &operation, const CopyWork &copy);
  Result runFill(Operation &operation, const FillWork &fill);
  /// The body's nodes one behind the other, in the order in which they were instantiated; each is behind what its edges say, and all behind the time before.
  Result runConditional(Operation &operation, const Node &node);
  std::function<Result(Operation &)> workOf(const Node &node);
  void touch(Operation &operation, Allocation &allocation, Bytes bytes, bool isWrite);
  /// Before memory goes: whether something may still use it, which is a finding.
  bool findUse(Allocation &allocation, const char *call);

private:
  void add(const OperationRef &operation);
  void trace(const char *what, const Operation &operation) const;
  void run(const OperationRef &operation);
  void orderBehind(Operation &operation, const OperationRef &before);
  bool canRun(const Operation &operation) const;
  /// A gate holds it up, or one before it.
  static bool isHeld(const Operation &operation);
  /// Lets other threads of the host get on, as a call of the driver that waits does.
  void yield();
  std::vector<OperationRef> pending_; ///< in the order of issue
  std::vector<uint64_t> ticks_{0}; ///< the latest of each timeline
  std::vector<uint32_t> freeTimelines_, retired_;
  uint64_t issued_ = 0;
  std::map<uint64_t, uint64_t> polls_; ///< by the number of an operation
};

} // namespace tressel::standin
