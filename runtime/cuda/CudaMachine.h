// The GPUs of this computer behind the seam of devices (tressel/runtime/Device.h), and its processor with memory that they copy from and to at full
// speed.
//
//   submit ──issued at once──────────────────────────────> the driver's stream ──event──> settled: Semaphore
//      └──held back, while what it waits for is not issued──> issuing thread ──┘
//
// A command is issued in the caller's thread when all that it waits for is reached or issued: what streams of cards have to wait for of each
// other, the driver is told (cuStreamWaitEvent). Waits for the host's work, and host calls, hold a stream's commands back; then the issuing thread goes
// on with them. A command has ended when the driver's event behind it has; threads that wait here look for that themselves, others are told by the
// settling thread. All state is guarded by one lock of the machine.
//
// A kernel that fails says so in a word of pinned memory, which is read when it has ended. Commands behind it that were issued have run by then, on
// whatever was there; their events fail with it.
#pragma once

#include "../devices/HostWork.h"
#include "../devices/PendingReleases.h"
#include "../devices/RunLog.h"
#include "../devices/ThreadStream.h"
#include "Driver.h"
#include "GpuKernel.h"
#include "LibraryKernel.h"
#include "Staging.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class CudaMachine;
class CudaDevice;
class CudaGraph;
class CudaHost;

class CudaStream final : public Stream, public NativeEvents { // public: streams are found by their events (dynamic_cast)
public:
  CudaStream(CudaMachine &machine, CudaDevice &device, StreamKind kind, const std::string &name);
  ~CudaStream() override;
  Event submit(const DeviceCommand &command) override;
  /// A launch of the graph, whose launch before has ended. It stays until this one has.
  Event submit(const CudaGraph &graph, std::span<const Event> waits, uint64_t tag);
  /// When what another stream of the driver's, a caller's, holds now has ended. Throws InputError when it is none of
  /// this stream's device.
  Event follow(StreamHandle other);
  CudaDevice &device() const { return device_; }
  Event last() const override;
  void abort(DeviceFailureRef failure) override;
  const char *driver() const override { return "cuda"; }
  bool withEvent(uint64_t value, const std::function<void(void *event)> &use) override;

  //--- Under the machine's lock -------------------------------------------------------------------------------------
  /// Ends what the card has done. True if there was any.
  bool settle();
  /// Goes on with the first command that is held back; false if it still has to be. `lock` is open while a function of the host runs.
  bool issueHeld(std::unique_lock<std::mutex> &lock);
  /// That stream goes: what it has to say of waits here is noted.
  void forget(const CudaStream &other);
  bool isBusy() const { return !inFlight_.empty(); }
  /// Whether the card may still be at work on that command or one before, also if it is known to fail.
  bool mayRun(uint64_t number) const { return !inFlight_.empty() && inFlight_.front().number <= number; }
  bool isHeld() const { return (!held_.empty() || isLaunching()) && !runsHostCall_; }
  /// A copy in flight to bytes of the host that are not pinned, and overlap these; no semaphore: there is none.
  Event staging(const Region &region) const;
  /// What the first command that is held back waits for. False: nothing any more, it can be tried again.
  bool addAwaited(std::vector<Event> &events) const;
  /// What holds it up is no event: a communicator's other parts, or NCCL.
  bool isHeldByCommunicator() const { return isLaunching() || communicatorOf(held_.front().kept.command); }

private:
  struct InFlight {
    uint64_t number = 0;
    EventHandle begin = nullptr, end = nullptr; ///< none: nothing was issued
    std::vector<Event> waits;                   ///< issued, but not reached then: this fails with them
    int32_t *status = nullptr;                  ///< of a kernel
    const KernelDesc *kernel = nullptr;
    const CudaGraph *graph = nullptr;
    DeviceFailureRef failure;
    Event signal;
    uint64_t tag = 0;
    std::shared_ptr<StagedCopy> staged; ///< of a copy to memory that is not pinned
    StagingPool::Block source;          ///< that a copy comes from
    std::shared_ptr<const CollectiveRun> part; ///< that NCCL was given
    uint64_t turn = 0;
    std::chrono::steady_clock::time_point since = {}; ///< when it was first seen that nothing is before the part
    bool isLaunching = false;                         ///< NCCL may not have put it into the stream yet
  };
  struct Held {
    explicit Held(const DeviceCommand &command, uint64_t number) : kept(command), number(number) {}
    KeptCommand kept;
    uint64_t number;
  };
  Event give(const DeviceCommand &command);
  /// False: what it waits for is not issued.
  bool tryIssue(const DeviceCommand &command, uint64_t number);
  bool isReady(const DeviceCommand &command) const;
  void issue(const DeviceCommand &command, InFlight &flight);
  /// What a kernel of a library runs with; `plan` stays null where the generated one does.
  struct LibraryLaunch {
    LibraryKernel::Call call;
    const LibraryKernel::Plan *plan = nullptr;
  };
  LibraryLaunch prepare(const DeviceCommand &command, const LibraryKernel &kernel);
  /// `kernel` is null where another kind of device loaded it.
  void launch(const DeviceCommand &command, const CudaKernel *kernel, const LibraryLaunch &library, InFlight &flight);
  void copy(const DeviceCommand &command, InFlight &flight);
  void fill(const DeviceCommand &command);
  void dropHeld();
  bool isLaunching() const { return !inFlight_.empty() && inFlight_.back().isLaunching; }
  /// Behind all parts that the card was given: two on one card may not wait for each other's ranks.
  void followPart();
  void recordEnd(InFlight &flight);
  /// True when NCCL has put it into the stream, or will not.
  bool finishLaunch();
  /// Why the first one in flight fails before the card is done with it; null: it does not.
  DeviceFailureRef lookAhead(InFlight &flight) const;
  /// Tells all that wait; what is in flight stays until the card is done with it.
  void doom(const DeviceFailureRef &failure);
  DeviceFailureRef whyDoomed() const;
  /// Stops the communicators with parts that the card may be at. Not under the machine's lock.
  void stopParts();
  void note(const Stamp &stamp);
  DeviceFailureRef failureOf(const InFlight &flight, Result result) const;

  friend class CudaMachine;
  CudaMachine &machine_;
  CudaDevice &device_;
  StreamHandle handle_ = nullptr;
  Semaphore progress_{this}; ///< how many commands have ended
  uint64_t submitted_ = 0, issued_ = 0;
  bool isDoomed_ = false; ///< one has failed, or is known to fail when its turn comes: nothing more is issued
  DeviceFailureRef aborted_;
  bool runsHostCall_ = false;
  uint32_t logged_ = 0; ///< number in the machine's log
  std::deque<InFlight> inFlight_;
  std::deque<Held> held_;
  std::vector<void *> addresses_; ///< of a launch
  LaunchParams params_;
  void *workspace_ = nullptr; ///< of a library, from its first launch on
  bool hasWorkspace_ = true;  ///< false: the card had no memory for one
};

class CudaDevice final : public Device {
public:
  CudaDevice(CudaMachine &machine, const Card &card, DeviceRef device);
  ~CudaDevice() override;
  const DeviceCaps &caps() const override { return caps_; }
  void *allocate(int64_t bytes, MemoryKind kind) override;
  void release(void *memory, std::span<const Event> lastUses) override;
  void registerMemory(const void *, int64_t, MemoryKind) override;
  void unregisterMemory(const void *, int64_t, MemoryKind) override {}
  bool reaches(DeviceRef) const override { return true; } // the driver goes through the host where cards do not reach each other
  void read(void *to, const void *from, int64_t bytes) override;
  std::vector<DeviceKernelRef> load(std::span<const KernelCode> kernels, const std::shared_ptr<const std::vector<GpuCode>> &gpu) override;
  std::unique_ptr<Stream> makeStream(StreamKind kind, std::string name, uint32_t host) override;
  int64_t nowPs() override { return StampList::nowPs(); }
  std::vector<Stamp> takeStamps() override { return stamps_.take(); }
  void reset() override {}
  Event endOf(void *stream) override;
  std::unique_ptr<HeldStream> hold(void *stream) override;

  //--- Under the machine's lock -------------------------------------------------------------------------------------
  /// The last part of a communicator that the card was given.
  struct Part {
    CudaStream *stream = nullptr;
    uint64_t number = 0;
  };
  Part &lastPart() { return lastPart_; }
  void forget(const Semaphore &semaphore) { released_.forget(semaphore); }
  EventHandle takeEvent();
  void giveEvent(EventHandle event);
  int32_t *takeStatus();
  void giveStatus(int32_t *status);
  /// A kernel that gives a conditional handle its value; null where the driver refuses it.
  Function conditionSetter();
  /// Memory of the card. Throws OutOfMemory.
  void *allocateOnCard(int64_t bytes);
  void freeOnCard(void *memory) const;
  /// By this computer's clock.
  int64_t psOf(EventHandle event) const;
  /// Moments are measured from here on: the clocks of card and host drift apart. Nothing runs.
  void beginEpoch();

  const Card &card() const { return card_; }
  StampList &stamps() { return stamps_; }
  CudaMachine &machine() const { return machine_; }

private:
  class Hold;
  /// Gives back the words that held streams have passed.
  void giveHolds();
  void freeUnused();
  void makePool();
  /// What the driver answers; the memory is there for every stream.
  Result takeMemory(size_t bytes, Address &memory) const;
  CudaMachine &machine_;
  const Card &card_;
  DeviceCaps caps_;
  StampList stamps_;
  std::vector<EventHandle> events_;
  std::vector<void *> statusBlocks_;
  std::vector<int32_t *> statuses_;
  EventHandle epoch_ = nullptr;
  int64_t epochPs_ = 0;
  PendingReleases released_;
  MemoryPool pool_ = nullptr; ///< null: a card without pools
  StreamHandle memoryStream_ = nullptr; ///< in whose order memory of the pool is given out and taken back
  struct Passed {
    int32_t *word;
    EventHandle event; ///< recorded behind the wait for the word
  };
  std::vector<Passed> holds_;
  std::map<void *, std::unique_ptr<CudaStream>>
      followers_; ///< by stream of a caller's: one that waits for it, and for no other
  Part lastPart_;
  Module conditionModule_ = nullptr;
  Function conditionSetter_ = nullptr;
  bool isConditionTried_ = false;
  std::mutex modulesMutex_;
  std::map<const std::vector<GpuCode> *, std::weak_ptr<GpuModule>> modules_; ///< the code of programs that some of them is loaded of
};

class CudaMachine final : public Machine {
public:
  CudaMachine(const Driver &driver, const MachineRequest &request, MachineModel model);
  ~CudaMachine() override;
  int awaitAny(std::span<const Event> events, int64_t timeoutNs) override;
  std::unique_lock<std::mutex> beginCall(bool isAside) override;
  std::unique_ptr<CommandGroup> record(std::span<Stream *const> streams,
                                       std::span<const GroupCommand> commands) override;
  std::unique_ptr<ChoiceGroup> record(std::span<Stream *const> streams, const GroupChoice &choice) override;
  bool unrollsLoops() const override { return true; }
  const CommandLog &log() const override { return keepsStamps_ ? log_.log() : Machine::log(); }
  VirtualTimes times() const override { return log_.times(); }

  const Driver &driver() const { return driver_; }
  StagingPool &stagingPool() { return staging_; }
  Mover &mover() { return mover_; }
  /// Of the host, and the driver does not know it.
  bool isPageable(const Region &region) const;
  bool keepsStamps() const { return keepsStamps_; }
  RunLog &runLog() { return log_; } ///< where stamps are kept

  std::mutex &mutex() const { return mutex_; }
  //--- Under the lock ---------------------------------------------------------------------------------------------------
  /// Null: of none of the machine's streams.
  CudaStream *streamOf(const Semaphore *semaphore) const {
    auto *stream = dynamic_cast<CudaStream *>(semaphore->native());
    return stream && &stream->machine_ == this ? stream : nullptr;
  }
  Event staging(const Region &region) const;
  struct AtWork {
    const KernelDesc *kernel = nullptr;
    uint64_t tag = 0;
  };
  /// A kernel of the card that was not seen to end, the first of its stream; none if there is none.
  AtWork kernelAtWork(const Card &card) const;
  void add(CudaStream &stream);
  void remove(CudaStream &stream);
  bool settleAll();
  /// Its last owner may be here, and its destructor needs the lock: it goes later.
  void retire(std::shared_ptr<const CollectiveRun> part) { retired_.push_back(std::move(part)); }
  /// The issuing thread has something to do; the settling one.
  void wakeIssuer();
  /// On return the issuing thread looks at no events that streams waited for before.
  void quiesceIssuer(std::unique_lock<std::mutex> &lock);
  void wakeSettler() {
    given_.fetch_add(1, std::memory_order_relaxed);
    somethingRuns_.notify_one();
  }

private:
  void issueHeld();
  void settle();
  const Driver &driver_;
  const bool keepsStamps_;
  RunLog log_; ///< devices use it
  StagingPool staging_;
  Mover mover_;
  CudaHost *host_ = nullptr; ///< the first of the devices
  mutable std::mutex mutex_;
  std::mutex calls_;
  std::vector<CudaStream *> streams_;
  std::condition_variable somethingRuns_;
  std::atomic<uint64_t> given_{0}; ///< commands to streams
  bool closing_ = false;
  std::vector<std::shared_ptr<const CollectiveRun>> retired_;
  Semaphore wake_; ///< how often the issuing thread was woken
  uint64_t wakes_ = 0, wakesSeen_ = 0;
  std::condition_variable issuerLooked_;
  std::thread issuer_, settler_; ///< begun when they are first needed
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
