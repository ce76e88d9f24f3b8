#include "CudaMachine.h"

#include "GpuLibraries.h"
#include "NcclCommunicator.h"

#include "../devices/CudaLibrary.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Shutdown.h"

#include <algorithm>
#include <chrono>

namespace tressel::runtime::cuda {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kStatusesAtOnce = 4096;
constexpr std::chrono::microseconds kLooksFor{200}, kNap{20}, kPause{3}, kLongPause{50};
constexpr int64_t kLooksAgainNs = 50'000;
constexpr unsigned kPortable = 1, kMapped = 2;          // CU_MEMHOSTALLOC
constexpr unsigned kBlockingSync = 1, kNoTiming = 2;    // CU_EVENT
constexpr unsigned kNonBlocking = 1;                    // CU_STREAM

int64_t nsSince(Clock::time_point begin) { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count(); }

/// A stream of the driver's for copies that a thread waits for.
class CopyStream {
public:
  CopyStream(const Driver &driver, const Card &card) : driver_(driver), card_(card) {}
  ~CopyStream() {
    if (handle_ && driver_.cuCtxSetCurrent(card_.context) == kSuccess)
      driver_.cuStreamDestroy(handle_);
  }
  CopyStream(const CopyStream &) = delete;
  Result copy(void *to, const void *from, int64_t bytes) {
    if (bytes == 0)
      return kSuccess;
    Result result = driver_.cuCtxSetCurrent(card_.context);
    if (result == kSuccess && !handle_)
      result = driver_.cuStreamCreate(&handle_, kNonBlocking);
    if (result == kSuccess)
      result = driver_.cuMemcpyAsync(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from),
                                     static_cast<size_t>(bytes), handle_);
    return result == kSuccess ? driver_.cuStreamSynchronize(handle_) : result;
  }

private:
  const Driver &driver_;
  const Card &card_;
  StreamHandle handle_ = nullptr;
};

} // namespace

/// The processor, whose pinned memory the driver has.
class CudaHost final : public Device {
public:
  /// `log` is null where stamps are not kept.
  CudaHost(const Driver &driver, const Card &card, RunLog *log)
      : driver_(driver), card_(card), log_(log), inner_(makeCpuDevice()) {}
  const DeviceCaps &caps() const override { return inner_->caps(); }
  void *allocate(int64_t bytes, MemoryKind kind) override {
    if (kind != MemoryKind::Pinned || bytes > inner_->caps().memoryBytes)
      return inner_->allocate(bytes, kind);
    card_.use(driver_);
    void *memory = nullptr;
    const Result result = driver_.cuMemHostAlloc(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)), kPortable | kMapped);
    if (result != kSuccess)
      throwError<OutOfMemory>("cpu has no ", bytes, " bytes that could be pinned: ", driver_.describe(result));
    std::lock_guard lock(mutex_);
    pinned_.push_back(memory);
    return memory;
  }
  void release(void *memory, std::span<const Event> lastUses) override {
    std::unique_lock lock(mutex_);
    const auto at = std::ranges::find(pinned_, memory);
    if (at == pinned_.end()) {
      lock.unlock();
      return inner_->release(memory, lastUses);
    }
    pinned_.erase(at);
    released_.add(memory, lastUses);
    released_.freeUnused([this](void *unused) { driver_.cuMemFreeHost(unused); });
  }
  ~CudaHost() override {
    if (!wasForked())
      released_.freeAll([this](void *unused) { driver_.cuMemFreeHost(unused); });
  }
  /// Pinned from the first registration to the last.
  void registerMemory(const void *memory, int64_t bytes, MemoryKind) override {
    std::lock_guard lock(mutex_);
    if (bytes == 0)
      return;
    Registered &known = registered_[reinterpret_cast<uintptr_t>(memory)];
    if (known.count++ > 0)
      return;
    known.bytes = bytes;
    card_.use(driver_);
    const Result result = driver_.cuMemHostRegister(const_cast<void *>(memory), static_cast<size_t>(bytes), kPortable);
    if (result == kSuccess)
      return;
    registered_.erase(reinterpret_cast<uintptr_t>(memory));
    if (result != kAlreadyRegistered) // a part of it is, by other means: copies find out themselves
      throwError<RuntimeError>("the driver does not pin ", bytes, " bytes of the host: ", driver_.describe(result));
  }
  void unregisterMemory(const void *memory, int64_t, MemoryKind) override {
    std::lock_guard lock(mutex_);
    const auto at = registered_.find(reinterpret_cast<uintptr_t>(memory));
    if (at == registered_.end() || --at->second.count > 0)
      return;
    registered_.erase(at);
    if (driver_.cuCtxSetCurrent(card_.context) == kSuccess)
      driver_.cuMemHostUnregister(const_cast<void *>(memory));
  }
  bool reaches(DeviceRef) const override { return true; }
  std::vector<DeviceKernelRef> load(std::span<const KernelCode> kernels, const std::shared_ptr<const std::vector<GpuCode>> &gpu) override {
    return inner_->load(kernels, gpu);
  }
  void read(void *to, const void *from, int64_t bytes) override { inner_->read(to, from, bytes); }
  bool isRegistered(const void *memory, int64_t bytes) {
    std::lock_guard lock(mutex_);
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    auto at = registered_.upper_bound(begin);
    if (at == registered_.begin())
      return false;
    --at;
    return begin + static_cast<uintptr_t>(bytes) <= at->first + static_cast<uintptr_t>(at->second.bytes);
  }
  /// As the processor's, but for copies from and to cards. They have streams of the driver's: its legacy stream would
  /// not wait for the others, and what it copies from memory that is not pinned has not arrived when the call returns.
  std::unique_ptr<Stream> makeStream(StreamKind kind, std::string name, uint32_t) override {
    ThreadStream::Note note;
    if (log_)
      note = [log = log_, number = log_->addStream({caps().device, kind, std::move(name)})](const Stamp &stamp) {
        log->add(number, stamp);
      };
    return std::make_unique<ThreadStream>(
        [this, own = std::make_shared<CopyStream>(driver_, card_)](const DeviceCommand &command) -> DeviceFailureRef {
          auto isAway = [](const Region &region) { return region.home.device.kind != DeviceKind::Cpu; };
          if (command.kind != DeviceCommandKind::Copy || std::ranges::none_of(command.regions, isAway)) {
            std::vector<void *> addresses;
            for (const Region &region : command.regions)
              addresses.push_back(region.address);
            return workOnHost(command, addresses, caps().device);
          }
          const Result result =
              own->copy(command.regions[1].address, command.regions[0].address, command.regions[0].bytes);
          if (result == kSuccess)
            return nullptr;
          return std::make_shared<DeviceFailure>(
              FailureKind::Launch, concat("a copy between host and card failed: ", driver_.describe(result)),
              caps().device, command.tag);
        },
        stamps_, std::move(note));
  }
  int64_t nowPs() override { return StampList::nowPs(); }
  std::vector<Stamp> takeStamps() override { return stamps_.take(); }
  void reset() override {}

private:
  const Driver &driver_;
  const Card &card_;
  RunLog *const log_;
  std::shared_ptr<Device> inner_;
  StampList stamps_;
  std::mutex mutex_;
  std::vector<void *> pinned_;
  struct Registered {
    int64_t bytes = 0; ///< of the first time
    int count = 0;     ///< how often
  };
  std::map<uintptr_t, Registered> registered_;
  PendingReleases released_;
};

namespace {

/// What is known without figures: the devices.
MachineModel modelWithoutFigures(const std::vector<Card> &cards) {
  MachineModel model;
  model.devices.push_back({.name = "cpu"});
  for (uint16_t i = 0; i < cards.size(); ++i) {
    DeviceModel device{.name = nameOf(DeviceRef{DeviceKind::Gpu, i})};
    device.device = {DeviceKind::Gpu, i};
    device.memoryBytes = cards[i].memoryBytes;
    device.architecture = cards[i].architecture();
    model.devices.push_back(std::move(device));
  }
  return model;
}

} // namespace

//--- Devices ----------------------------------------------------------------------------------------------------------
CudaDevice::CudaDevice(CudaMachine &machine, const Card &card, DeviceRef device) : machine_(machine), card_(card) {
  caps_ = {.name = nameOf(device),
           .device = device,
           .implementation = "cuda",
           .memoryBytes = card.memoryBytes,
           .ordinal = card.ordinal,
           .runsGpuCode = true};
  makePool();
}

// A pool keeps what is given back to it, and gives it out again without the driver's cuMemFree, for which a card waits until all of its streams have ended.
void CudaDevice::makePool() {
  constexpr int kPoolsSupported = 115;   // CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
  constexpr int kReleaseThreshold = 4;   // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
  const Driver &driver = machine_.driver();
  int supported = 0;
  card_.use(driver);
  if (driver.cuDeviceGetAttribute(&supported, kPoolsSupported, card_.device) != kSuccess || !supported)
    return;
  MemoryPoolProps props;
  props.device = card_.ordinal;
  uint64_t all = UINT64_MAX;
  if (driver.cuStreamCreate(&memoryStream_, kNonBlocking) != kSuccess) {
    memoryStream_ = nullptr;
    return;
  }
  if (driver.cuMemPoolCreate(&pool_, &props) != kSuccess)
    pool_ = nullptr;
  else if (driver.cuMemPoolSetAttribute(pool_, kReleaseThreshold, &all) != kSuccess) {
    driver.cuMemPoolDestroy(pool_);
    pool_ = nullptr;
  }
}

Result CudaDevice::takeMemory(size_t bytes, Address &memory) const {
  const Driver &driver = machine_.driver();
  if (!pool_)
    return driver.cuMemAlloc(&memory, bytes);
  Result result = driver.cuMemAllocFromPoolAsync(&memory, bytes, pool_, memoryStream_);
  if (result == kSuccess)
    if (result = driver.cuStreamSynchronize(memoryStream_); result != kSuccess) // nothing else is in that stream
      driver.cuMemFreeAsync(memory, memoryStream_);
  return result;
}

CudaDevice::~CudaDevice() {
  if (wasForked())
    return;
  const Driver &driver = machine_.driver();
  if (driver.cuCtxSetCurrent(card_.context) != kSuccess)
    return;
  // Its own streams have ended; the context's others are the caller's, and may wait for what only this thread can do.
  followers_.clear();
  for (const Passed &passed : holds_) {
    driver.cuEventSynchronize(passed.event);
    driver.cuEventDestroy(passed.event);
  }
  released_.freeAll([this](void *memory) { freeOnCard(memory); });
  if (memoryStream_) {
    driver.cuStreamSynchronize(memoryStream_);
    driver.cuStreamDestroy(memoryStream_);
  }
  if (pool_)
    driver.cuMemPoolDestroy(pool_);
  if (conditionModule_)
    driver.cuModuleUnload(conditionModule_);
  for (EventHandle event : events_)
    driver.cuEventDestroy(event);
  if (epoch_)
    driver.cuEventDestroy(epoch_);
  for (void *block : statusBlocks_)
    driver.cuMemFreeHost(block);
}

void *CudaDevice::allocate(int64_t bytes, MemoryKind kind) {
  refuseFork();
  if (kind != MemoryKind::Device)
    throwError<Error>(caps_.name, " is an accelerator: its memory is Device");
  card_.use(machine_.driver());
  std::lock_guard lock(machine_.mutex());
  return allocateOnCard(bytes);
}

void *CudaDevice::allocateOnCard(int64_t bytes) {
  const Driver &driver = machine_.driver();
  freeUnused();
  Address memory = 0;
  // Up to the next 64 bytes the memory is the buffer's, as buffers begin there: the back end makes one load of 16 aligned bytes of loads that need fewer.
  constexpr int64_t kGranule = 64;
  const auto wanted = static_cast<size_t>((std::max<int64_t>(bytes, 1) + kGranule - 1) / kGranule * kGranule);
  Result result = takeMemory(wanted, memory);
  if (result == kOutOfMemory && pool_ && driver.cuStreamSynchronize(memoryStream_) == kSuccess && driver.cuMemPoolTrimTo(pool_, 0) == kSuccess)
    result = takeMemory(wanted, memory); // pieces that were free did not fit
  if (result == kOutOfMemory) {
    size_t free = 0, total = 0;
    driver.cuMemGetInfo(&free, &total);
    throwError<OutOfMemory>(caps_.name, " (", card_.name, ") has no ", bytes, " bytes: ", free, " of ", total, " are free");
  }
  driver.check(result, concat("allocating ", bytes, " bytes"), caps_.name);
  return reinterpret_cast<void *>(memory);
}

void CudaDevice::release(void *memory, std::span<const Event> lastUses) {
  std::lock_guard lock(machine_.mutex());
  released_.add(memory, lastUses);
  freeUnused();
}
void CudaDevice::freeUnused() {
  // What failed may have been issued behind the command that is to blame, and run.
  released_.freeUnused([this](void *unused) { freeOnCard(unused); }, [this](const Event &use) {
    if (use.state() == Semaphore::State::Pending)
      return true;
    const CudaStream *stream = use.state() == Semaphore::State::Failed ? machine_.streamOf(use.semaphore) : nullptr;
    return stream && stream->mayRun(use.value);
  });
}
void CudaDevice::freeOnCard(void *memory) const {
  const Driver &driver = machine_.driver();
  if (driver.cuCtxSetCurrent(card_.context) != kSuccess)
    return;
  if (pool_)
    driver.cuMemFreeAsync(reinterpret_cast<Address>(memory), memoryStream_);
  else
    driver.cuMemFree(reinterpret_cast<Address>(memory));
}

void CudaDevice::registerMemory(const void *, int64_t, MemoryKind) { throwError<Error>("memory of callers is a host's, not that of ", caps_.name); }

void CudaDevice::read(void *to, const void *from, int64_t bytes) {
  const Driver &driver = machine_.driver();
  card_.use(driver);
  driver.check(driver.cuMemcpy(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), static_cast<size_t>(bytes)), "cuMemcpy", caps_.name);
}

std::vector<DeviceKernelRef> CudaDevice::load(std::span<const KernelCode> kernels, const std::shared_ptr<const std::vector<GpuCode>> &gpu) {
  std::shared_ptr<GpuModule> module;
  if (gpu) {
    std::lock_guard lock(modulesMutex_);
    std::erase_if(modules_, [](const auto &entry) { return entry.second.expired(); });
    module = modules_[gpu.get()].lock();
    if (!module)
      modules_[gpu.get()] = module = std::make_shared<GpuModule>(gpu, card_, machine_.driver());
  }
  std::vector<DeviceKernelRef> loaded;
  for (const KernelCode &code : kernels) {
    if (!isForGpu(code.desc->target) || !module)
      throwError<InputError>("kernel '", code.desc->symbol, "' ",
                             isForGpu(code.desc->target) ? "is for a GPU, and the program was opened without its code for GPUs"
                                                         : "is a function of the host: it was not compiled for GPUs");
    loaded.push_back(libraryKernel(*code.desc, std::make_shared<GpuKernel>(*code.desc, module, machine_.driver()),
                                   card_, machine_.driver()));
  }
  return loaded;
}

std::unique_ptr<Stream> CudaDevice::makeStream(StreamKind kind, std::string name, uint32_t) {
  return std::make_unique<CudaStream>(machine_, *this, kind, name);
}

EventHandle CudaDevice::takeEvent() {
  EventHandle event = nullptr;
  if (!events_.empty()) {
    event = events_.back();
    events_.pop_back();
    return event;
  }
  const Driver &driver = machine_.driver();
  driver.check(driver.cuEventCreate(&event, machine_.keepsStamps() ? kBlockingSync : kBlockingSync | kNoTiming), "cuEventCreate", caps_.name);
  return event;
}
void CudaDevice::giveEvent(EventHandle event) { events_.push_back(event); }

int32_t *CudaDevice::takeStatus() {
  if (statuses_.empty()) {
    const Driver &driver = machine_.driver();
    void *block = nullptr;
    driver.check(driver.cuMemHostAlloc(&block, kStatusesAtOnce * sizeof(int32_t), kPortable | kMapped), "cuMemHostAlloc", caps_.name);
    statusBlocks_.push_back(block);
    auto *first = static_cast<int32_t *>(block);
    std::fill_n(first, kStatusesAtOnce, 0);
    for (size_t i = 0; i < kStatusesAtOnce; ++i)
      statuses_.push_back(first + i);
  }
  int32_t *status = statuses_.back();
  statuses_.pop_back();
  return status;
}
void CudaDevice::giveStatus(int32_t *status) {
  *status = 0;
  statuses_.push_back(status);
}

void CudaDevice::beginEpoch() {
  const Driver &driver = machine_.driver();
  card_.use(driver);
  if (!epoch_)
    driver.check(driver.cuEventCreate(&epoch_, kBlockingSync), "cuEventCreate", caps_.name);
  driver.check(driver.cuEventRecord(epoch_, nullptr), "cuEventRecord", caps_.name);
  driver.check(driver.cuEventSynchronize(epoch_), "cuEventSynchronize", caps_.name);
  epochPs_ = StampList::nowPs();
}
int64_t CudaDevice::psOf(EventHandle event) const {
  float milliseconds = 0;
  machine_.driver().cuEventElapsedTime(&milliseconds, epoch_, event);
  return std::min(epochPs_ + static_cast<int64_t>(static_cast<double>(milliseconds) * 1e9), StampList::nowPs());
}

//--- The machine ------------------------------------------------------------------------------------------------------
CudaMachine::CudaMachine(const Driver &driver, const MachineRequest &request, MachineModel model)
    : driver_(driver), keepsStamps_(request.stamps), staging_(driver, cards(driver).front()) {
  const std::vector<Card> &all = cards(driver);
  model_ = model.devices.empty() ? modelWithoutFigures(all) : std::move(model);
  model_.name = "cuda";
  auto host = std::make_shared<CudaHost>(driver, all.front(), keepsStamps_ ? &log_ : nullptr);
  host_ = host.get();
  devices_.push_back(std::move(host));
  std::vector<size_t> named(request.cards.begin(), request.cards.end());
  if (named.empty())
    for (size_t i = 0; i < all.size(); ++i)
      named.push_back(i);
  for (uint16_t i = 0; i < named.size(); ++i) {
    auto device = std::make_shared<CudaDevice>(*this, all[named[i]], DeviceRef{DeviceKind::Gpu, i});
    if (keepsStamps_)
      device->beginEpoch();
    devices_.push_back(std::move(device));
  }
}

CudaMachine::~CudaMachine() {
  if (wasForked()) { // its threads are not here: nothing to wait for, and nothing that may be touched
    new std::thread(std::move(issuer_));
    new std::thread(std::move(settler_));
    return;
  }
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    wake_.signal(++wakes_);
    somethingRuns_.notify_all();
  }
  if (issuer_.joinable())
    issuer_.join();
  if (settler_.joinable())
    settler_.join();
  retired_.clear();
  std::exchange(devices_, {}).clear(); // they use the machine
}

std::unique_lock<std::mutex> CudaMachine::beginCall(bool isAside) {
  std::unique_lock call(calls_);
  if (keepsStamps_) {
    log_.begin(isAside);
    std::lock_guard lock(mutex_);
    for (const auto &device : devices_)
      if (auto *card = dynamic_cast<CudaDevice *>(device.get()))
        card->beginEpoch();
  }
  return call;
}

bool CudaMachine::isPageable(const Region &r) const {
  return r.home.device.kind == DeviceKind::Cpu && r.home.memory == MemoryKind::Host &&
         !host_->isRegistered(r.address, r.bytes);
}

Event CudaMachine::staging(const Region &region) const {
  if (region.home.device.kind != DeviceKind::Cpu)
    return {}; // such copies end in memory of the host
  for (const CudaStream *stream : streams_)
    if (const Event event = stream->staging(region); event.semaphore)
      return event;
  return {};
}

CudaMachine::AtWork CudaMachine::kernelAtWork(const Card &card) const {
  for (const CudaStream *stream : streams_)
    if (&stream->device_.card() == &card)
      for (const CudaStream::InFlight &flight : stream->inFlight_)
        if (flight.kernel)
          return {flight.kernel, flight.tag};
  return {};
}

void CudaMachine::add(CudaStream &stream) {
  streams_.push_back(&stream);
  if (!settler_.joinable())
    settler_ = startInternalThread("tressel.settle", [this] { settle(); });
}
void CudaMachine::remove(CudaStream &stream) {
  std::erase(streams_, &stream);
  if (CudaDevice::Part &last = stream.device().lastPart(); last.stream == &stream)
    last = {};                        // it has ended
  for (const auto &device : devices_) // what failed early is released later than its stream goes
    if (auto *card = dynamic_cast<CudaDevice *>(device.get()))
      card->forget(stream.progress_);
  for (CudaStream *other : streams_)
    other->forget(stream);
}

bool CudaMachine::settleAll() {
  bool any = false, more = true;
  while (more) { // one stream's end may be what another one's waits for
    more = false;
    for (CudaStream *stream : streams_)
      more |= stream->settle();
    any |= more;
  }
  return any;
}

void CudaMachine::settle() {
  std::unique_lock lock(mutex_);
  auto lastProgress = Clock::now();
  while (!closing_) {
    // It stays awake for a while when nothing runs: the next command is often about to come, and waking it takes longer
    // than issuing that.
    const bool isBusy = std::ranges::any_of(streams_, [](const CudaStream *stream) { return stream->isBusy(); });
    if (!isBusy && Clock::now() - lastProgress >= kLooksFor) {
      somethingRuns_.wait(lock);
      lastProgress = Clock::now();
      continue;
    }
    const bool any = isBusy && settleAll();
    auto retired = std::exchange(retired_, {});
    lock.unlock(); // for threads that issue, which must not meet this one at each command
    retired.clear();
    const auto looked = Clock::now();
    if (any)
      lastProgress = looked;
    if (looked - lastProgress < kLooksFor) {
      uint64_t given = given_.load(std::memory_order_relaxed), before = given;
      do { // as long as a thread issues one command after the other, but not for ever
        before = given;
        for (const auto begin = Clock::now(); Clock::now() - begin < kPause;)
          std::this_thread::yield();
        given = given_.load(std::memory_order_relaxed);
      } while (given != before && Clock::now() - looked < kLongPause);
    } else
      std::this_thread::sleep_for(kNap);
    lock.lock();
  }
}

void CudaMachine::wakeIssuer() {
  wake_.signal(++wakes_);
  if (!issuer_.joinable())
    issuer_ = startInternalThread("tressel.issue", [this] { issueHeld(); });
}

void CudaMachine::quiesceIssuer(std::unique_lock<std::mutex> &lock) {
  if (!issuer_.joinable())
    return;
  wakeIssuer();
  issuerLooked_.wait(lock, [this, seen = wakes_] { return wakesSeen_ >= seen; });
}

void CudaMachine::issueHeld() {
  std::vector<Event> awaited;
  std::unique_lock lock(mutex_);
  while (!closing_) {
    const uint64_t seen = wakesSeen_ = wakes_;
    issuerLooked_.notify_all();
    bool any = false;
    for (size_t i = 0; i < streams_.size(); ++i) // it changes while a function of the host runs
      while (i < streams_.size() && streams_[i]->isHeld() && streams_[i]->issueHeld(lock))
        any = true;
    if (any)
      continue;
    awaited.assign(1, Event{&wake_, seen + 1});
    bool allWait = true, looksAgain = false;
    for (const CudaStream *stream : streams_)
      if (stream->isHeld()) {
        looksAgain |= stream->isHeldByCommunicator();
        allWait &= stream->addAwaited(awaited);
      }
    if (!allWait)
      continue;
    lock.unlock();
    runtime::awaitAny(awaited, looksAgain ? kLooksAgainNs : INT64_MAX);
    lock.lock();
  }
}

int CudaMachine::awaitAny(std::span<const Event> events, int64_t timeoutNs) {
  const auto begin = Clock::now();
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      settleAll();
    }
    for (size_t i = 0; i < events.size(); ++i)
      if (events[i].state() != Semaphore::State::Pending)
        return static_cast<int>(i);
    const int64_t passed = nsSince(begin);
    if (passed >= timeoutNs)
      return -1;
    if (std::chrono::nanoseconds(passed) > kLooksFor)
      return runtime::awaitAny(events, timeoutNs - passed);
    std::this_thread::yield();
  }
}

} // namespace tressel::runtime::cuda

namespace tressel::runtime {
namespace {

std::vector<GpuCard> listCards(std::string *why) {
  std::vector<GpuCard> list;
  const cuda::Driver *driver = cuda::Driver::find(why);
  if (!driver)
    return list;
  for (const cuda::Card &card : cuda::cards(*driver))
    list.push_back({card.name, card.architecture(), card.memoryBytes, card.multiprocessors, driver->version});
  return list;
}

std::shared_ptr<Machine> open(const MachineRequest &request, MachineModel model) {
  std::string why;
  const cuda::Driver *driver = cuda::Driver::find(&why);
  if (!driver)
    throw Error(Error::Details{.message = concat("machine 'cuda' is not there: ", why), .hint = "\"sim:h100\" with {.gpu = \"sm_90\"} emulates a GPU"});
  return std::make_shared<cuda::CudaMachine>(*driver, request, std::move(model));
}

} // namespace
} // namespace tressel::runtime

extern "C" {
extern const tressel::runtime::CudaLibrary tressel_cuda_library;
const tressel::runtime::CudaLibrary tressel_cuda_library = {tressel::runtime::open, tressel::runtime::listCards,
                                                            tressel::runtime::cuda::listLibraries,
                                                            tressel::runtime::cuda::makeCommunicator};
}
