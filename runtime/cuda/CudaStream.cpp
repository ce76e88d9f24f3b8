#include "CudaGraph.h"
#include "NcclCommunicator.h"
#include "Nvtx.h"
#include "runtime/types/Concat.h"
#include "runtime/types/KernelStatus.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tressel::runtime::cuda {
namespace {

constexpr unsigned kNonBlocking = 1; // CU_STREAM_NON_BLOCKING

Address addressOf(const void *memory) { return reinterpret_cast<Address>(memory); }

/// Errors after which a context serves for nothing any more.
bool isSticky(Result result) { return (result >= 700 && result < 720) || result == 214 || result == 999; }

} // namespace

CudaStream::CudaStream(CudaMachine &machine, CudaDevice &device, StreamKind kind, const std::string &name)
    : machine_(machine), device_(device) {
  const Driver &driver = machine.driver();
  device.card().use(driver);
  driver.check(driver.cuStreamCreate(&handle_, kNonBlocking), "cuStreamCreate", device.caps().name);
  if (const Nvtx *nvtx = Nvtx::find())
    nvtx->name(handle_, name);
  if (machine.keepsStamps())
    logged_ = machine.runLog().addStream({device.caps().device, kind, name});
  std::lock_guard lock(machine.mutex());
  machine.add(*this);
}

CudaStream::~CudaStream() {
  if (wasForked())
    return;
  stopParts(); // what waits for them was told, and the card may be at them
  const Driver &driver = machine_.driver();
  const bool hasEnded =
      driver.cuCtxSetCurrent(device_.card().context) == kSuccess && driver.cuStreamSynchronize(handle_) == kSuccess;
  std::lock_guard lock(machine_.mutex());
  settle();
  if (workspace_ && hasEnded)
    device_.freeOnCard(workspace_);
  machine_.remove(*this);
  driver.cuStreamDestroy(handle_);
}

Event CudaStream::last() const {
  std::lock_guard lock(machine_.mutex());
  return {const_cast<Semaphore *>(&progress_), submitted_};
}

Event CudaStream::submit(const DeviceCommand &command) {
  checkShape(command);
  return give(command);
}

Event CudaStream::submit(const CudaGraph &graph, std::span<const Event> waits, uint64_t tag) {
  return give({.kind = DeviceCommandKind::Launch, .waits = waits, .kernel = &graph, .tag = tag});
}

Event CudaStream::give(const DeviceCommand &command) {
  refuseFork();
  std::lock_guard lock(machine_.mutex());
  const uint64_t number = ++submitted_;
  DeviceCommand numbered = command;
  if (Communicator *communicator = communicatorOf(command))
    numbered.turn = communicator->takeTurn();
  if (!held_.empty() || runsHostCall_ || isLaunching() || !tryIssue(numbered, number)) {
    held_.emplace_back(numbered, number);
    machine_.wakeIssuer();
  }
  return {&progress_, number};
}

bool CudaStream::withEvent(uint64_t value, const std::function<void(void *event)> &use) {
  std::lock_guard lock(machine_.mutex());
  const auto at = std::ranges::lower_bound(inFlight_, value, {}, &InFlight::number);
  if (at == inFlight_.end() || at->number != value || !at->end)
    return false;
  use(at->end);
  return true;
}

//--- Issuing ----------------------------------------------------------------------------------------------------------
bool CudaStream::isReady(const DeviceCommand &command) const {
  for (const Event &wait : command.waits) {
    if (wait.semaphore == &progress_ || wait.state() != Semaphore::State::Pending)
      continue;
    const CudaStream *other = machine_.streamOf(wait.semaphore);
    if (!other || other->issued_ < wait.value)
      return false;
  }
  if (const NcclCommunicator *nccl = ncclOf(command.collective.get())) {
    if (nccl->failure())
      return true; // and fails at once
    const CudaStream *last = device_.lastPart().stream;
    return nccl->isNext(command.turn) && !nccl->isLaunching() && !(last && last->isLaunching());
  }
  // The host reads it when the copy is issued, so it has to be there.
  return command.kind != DeviceCommandKind::Copy || !machine_.staging(command.regions[0]).semaphore;
}

bool CudaStream::tryIssue(const DeviceCommand &command, uint64_t number) {
  if (!isDoomed_ && !isReady(command))
    return false;
  if (!isDoomed_ && command.kind == DeviceCommandKind::HostCall)
    return false;
  inFlight_.push_back({.number = number, .tag = command.tag});
  InFlight &flight = inFlight_.back();
  if (command.kind == DeviceCommandKind::Signal)
    flight.signal = command.signal;
  if (!isDoomed_)
    issue(command, flight);
  if (Communicator *communicator = communicatorOf(command); communicator && !flight.part)
    communicator->skip(command.turn, flight.failure ? flight.failure : whyDoomed());
  isDoomed_ |= flight.failure != nullptr;
  if (isDoomed_ && flight.signal.semaphore && progress_.failure())
    std::exchange(flight.signal, {}).semaphore->fail(progress_.failure()); // what is in flight may stay for long
  if (!flight.isLaunching)
    issued_ = number;
  if (flight.part)
    machine_.wakeIssuer(); // for the next one of its communicator, and this one
  machine_.wakeSettler();
  return true;
}

void CudaStream::issue(const DeviceCommand &c, InFlight &flight) {
  const Driver &driver = machine_.driver();
  auto check = [&](Result result, const char *what) {
    if (result != kSuccess)
      throw Error(concat(what, " failed: ", driver.describe(result)));
  };
  try {
    device_.card().use(driver);
    const ProfilerRange range(c);
    for (const Event &wait : c.waits) {
      if (wait.semaphore == &progress_)
        continue;
      const auto state = wait.state();
      if (state == Semaphore::State::Reached)
        continue;
      if (state == Semaphore::State::Failed) {
        flight.failure = wait.semaphore->failure();
        return;
      }
      flight.waits.push_back(wait);
      const CudaStream *other = machine_.streamOf(wait.semaphore);
      const auto at = std::ranges::lower_bound(other->inFlight_, wait.value, {}, &InFlight::number);
      const bool isThere = at != other->inFlight_.end() && at->number == wait.value;
      if (isThere && at->failure) {
        flight.failure = at->failure;
        return;
      }
      if (isThere && !at->end) { // its stream had failed, so nothing of it was issued
        flight.failure = other->whyDoomed();
        return;
      }
      if (isThere)
        check(driver.cuStreamWaitEvent(handle_, at->end, 0), "cuStreamWaitEvent");
    }
    LibraryLaunch library;
    const auto *kernel = c.kind == DeviceCommandKind::Launch ? dynamic_cast<const CudaKernel *>(c.kernel) : nullptr;
    if (kernel && kernel->form == CudaKernel::Form::Library)
      library = prepare(c, static_cast<const LibraryKernel &>(*kernel)); // what it measures is no part of the launch
    if (machine_.keepsStamps()) {
      flight.begin = device_.takeEvent();
      check(driver.cuEventRecord(flight.begin, handle_), "cuEventRecord");
    }
    switch (c.kind) {
    case DeviceCommandKind::Launch:
      launch(c, kernel, library, flight);
      break;
    case DeviceCommandKind::Copy:
      copy(c, flight);
      break;
    case DeviceCommandKind::Fill:
      fill(c);
      break;
    case DeviceCommandKind::Collective: {
      NcclCommunicator *const nccl = ncclOf(c.collective.get());
      if (!nccl || &nccl->device() != &device_) {
        flight.failure = std::make_shared<DeviceFailure>(
            FailureKind::Unsupported,
            concat(device_.caps().name, " takes parts of communicators by NCCL that were made for it, and no others"),
            device_.caps().device, c.tag);
        return;
      }
      followPart();
      flight.part = c.collective;
      flight.turn = c.turn;
      flight.failure = failureOfPart(nccl->launch(c, handle_), device_.caps().device, c.tag);
      flight.isLaunching = !flight.failure && nccl->isLaunching();
      device_.lastPart() = {this, flight.number};
      if (flight.isLaunching)
        return;
      break;
    }
    case DeviceCommandKind::HostCall:
    case DeviceCommandKind::Wait:
    case DeviceCommandKind::Signal:
      break;
    }
    recordEnd(flight);
  } catch (const Error &problem) {
    driver.cuStreamSynchronize(handle_); // no event says when what was issued has ended
    if (flight.end)
      device_.giveEvent(std::exchange(flight.end, nullptr));
    if (!flight.failure)
      flight.failure = std::make_shared<DeviceFailure>(FailureKind::Launch, concat(device_.caps().name, ": ", problem.message()),
                                                       device_.caps().device, c.tag);
  }
}

void CudaStream::recordEnd(InFlight &flight) {
  flight.end = device_.takeEvent();
  if (const Result result = machine_.driver().cuEventRecord(flight.end, handle_); result != kSuccess)
    throw Error(concat("cuEventRecord failed: ", machine_.driver().describe(result)));
}

//--- Parts of communicators -------------------------------------------------------------------------------------------
void CudaStream::followPart() {
  const CudaDevice::Part last = device_.lastPart();
  if (!last.stream || last.stream == this)
    return;
  const auto at = std::ranges::lower_bound(last.stream->inFlight_, last.number, {}, &InFlight::number);
  if (at == last.stream->inFlight_.end() || at->number != last.number || !at->end)
    return;
  if (const Result result = machine_.driver().cuStreamWaitEvent(handle_, at->end, 0); result != kSuccess)
    throw Error(concat("cuStreamWaitEvent failed: ", machine_.driver().describe(result)));
}

bool CudaStream::finishLaunch() {
  InFlight &flight = inFlight_.back();
  NcclCommunicator &nccl = *ncclOf(flight.part.get());
  const auto now = std::chrono::steady_clock::now();
  if (flight.since == decltype(now)())
    flight.since = now;
  if (const DeviceFailureRef failure = nccl.look(*flight.part, flight.since); failure && !isDoomed_)
    doom(failureOfPart(failure, device_.caps().device, flight.tag));
  if (nccl.isLaunching())
    return false;
  flight.isLaunching = false;
  flight.since = {};
  try {
    device_.card().use(machine_.driver());
    recordEnd(flight);
  } catch (const Error &problem) {
    machine_.driver().cuStreamSynchronize(handle_);
    if (flight.end)
      device_.giveEvent(std::exchange(flight.end, nullptr));
    flight.failure = std::make_shared<DeviceFailure>(
        FailureKind::Launch, concat(device_.caps().name, ": ", problem.message()), device_.caps().device, flight.tag);
    isDoomed_ = true;
  }
  issued_ = flight.number;
  machine_.wakeIssuer();
  machine_.wakeSettler();
  return true;
}

DeviceFailureRef CudaStream::lookAhead(InFlight &flight) const {
  if (flight.part) {
    if (flight.since == std::chrono::steady_clock::time_point())
      flight.since = std::chrono::steady_clock::now();
    return failureOfPart(ncclOf(flight.part.get())->look(*flight.part, flight.since), device_.caps().device,
                         flight.tag);
  }
  for (const Event &wait : flight.waits) // other failures are told when the card has passed what follows them
    if (wait.state() == Semaphore::State::Failed)
      if (DeviceFailureRef failure = wait.semaphore->failure(); failure->rank >= 0)
        return failure;
  return nullptr;
}

void CudaStream::doom(const DeviceFailureRef &failure) {
  isDoomed_ = true;
  progress_.fail(failure);
  for (InFlight &flight : inFlight_) { // callers may let go of what their commands name
    flight.kernel = nullptr;
    if (Semaphore *signal = std::exchange(flight.signal, {}).semaphore)
      signal->fail(failure);
  }
  if (!held_.empty())
    machine_.wakeIssuer();
}

DeviceFailureRef CudaStream::whyDoomed() const {
  if (DeviceFailureRef failure = progress_.failure())
    return failure;
  const auto at = std::ranges::find_if(inFlight_, [](const InFlight &flight) { return flight.failure != nullptr; });
  return at != inFlight_.end() ? at->failure
                               : std::make_shared<const DeviceFailure>(
                                     FailureKind::Launch, "a command before it has failed", device_.caps().device);
}

void CudaStream::stopParts() {
  std::vector<std::shared_ptr<const CollectiveRun>> parts;
  {
    std::lock_guard lock(machine_.mutex());
    settle();
    for (const InFlight &flight : inFlight_)
      if (flight.part)
        parts.push_back(flight.part);
  }
  for (const auto &part : parts)
    ncclOf(part.get())->stop();
}

CudaStream::LibraryLaunch CudaStream::prepare(const DeviceCommand &c, const LibraryKernel &kernel) {
  LibraryLaunch library;
  if (c.desc->range.number() <= 0)
    return library;
  if (!workspace_ && hasWorkspace_) {
    try {
      workspace_ = device_.allocateOnCard(LibraryKernel::kWorkspaceBytes);
    } catch (const OutOfMemory &) {
      hasWorkspace_ = false; // there are algorithms that need none
    }
  }
  library.call = {.regions = c.regions,
                  .scalars = c.scalars,
                  .stream = handle_,
                  .workspace = workspace_,
                  .measures = machine_.keepsStamps()};
  library.plan = kernel.plan(library.call);
  return library;
}

void CudaStream::launch(const DeviceCommand &c, const CudaKernel *loaded, const LibraryLaunch &library,
                        InFlight &flight) {
  const Driver &driver = machine_.driver();
  if (!loaded) {
    flight.failure = std::make_shared<DeviceFailure>(
        FailureKind::Unsupported, concat("kernel '", c.desc->symbol, "' was not loaded for ", device_.caps().name),
        device_.caps().device, c.tag);
    return;
  }
  if (loaded->form == CudaKernel::Form::Graph) {
    flight.graph = static_cast<const CudaGraph *>(loaded);
    if (const Result result = flight.graph->launch(handle_); result != kSuccess)
      throw Error(concat("the launch of a graph failed: ", driver.describe(result)));
    return;
  }
  const GpuKernel *kernel = nullptr;
  if (loaded->form == CudaKernel::Form::Library) {
    const auto *called = static_cast<const LibraryKernel *>(loaded);
    if (library.plan && called->run(*library.plan, library.call))
      return;
    kernel = &called->generated();
  } else {
    kernel = static_cast<const GpuKernel *>(loaded);
  }
  const KernelDesc &desc = *c.desc;
  if (desc.range.number() <= 0)
    return;
  flight.status = device_.takeStatus();
  flight.kernel = &desc;
  addresses_.clear();
  for (const Region &region : c.regions)
    addresses_.push_back(region.address);
  const GpuKernel::Launch launch = kernel->prepare(desc.range.number(), addresses_, c.scalars, flight.status, params_);
  Result result = kSuccess;
  if (launch.cluster == 1) {
    result = driver.cuLaunchKernel(launch.function, launch.blocks, 1, 1, launch.threads, 1, 1, launch.sharedBytes,
                                   handle_, params_.data(), nullptr);
  } else {
    LaunchAttribute cluster{.value = {.x = launch.cluster}};
    const LaunchConfig config{.gridX = launch.blocks,
                              .blockX = launch.threads,
                              .sharedBytes = launch.sharedBytes,
                              .stream = handle_,
                              .attributes = &cluster,
                              .numAttributes = 1};
    result = driver.cuLaunchKernelEx(&config, launch.function, params_.data(), nullptr);
  }
  if (result != kSuccess)
    throw Error(concat("the launch of kernel '", desc.symbol, "' failed: ", driver.describe(result)));
}

void CudaStream::copy(const DeviceCommand &c, InFlight &flight) {
  const Driver &driver = machine_.driver();
  const Region &from = c.regions[0], &to = c.regions[1];
  const void *source = from.address;
  void *destination = to.address;
  if (from.bytes == 0)
    return;
  // Without pinned memory for it the driver does it, and makes this wait.
  if (machine_.isPageable(from))
    if (flight.source = machine_.stagingPool().take(from.bytes); flight.source.memory) {
      std::memcpy(flight.source.memory, source, static_cast<size_t>(from.bytes));
      source = flight.source.memory;
    }
  if (machine_.isPageable(to))
    if (const StagingPool::Block block = machine_.stagingPool().take(to.bytes); block.memory) {
      flight.staged = std::make_shared<StagedCopy>();
      flight.staged->block = block;
      flight.staged->to = destination;
      flight.staged->bytes = to.bytes;
      destination = block.memory;
    }
  device_.card().use(driver);
  if (const Result result =
          driver.cuMemcpyAsync(addressOf(destination), addressOf(source), static_cast<size_t>(from.bytes), handle_);
      result != kSuccess)
    throw Error(concat("cuMemcpyAsync failed: ", driver.describe(result)));
}

Event CudaStream::staging(const Region &region) const {
  const auto begin = reinterpret_cast<uintptr_t>(region.address), end = begin + static_cast<uintptr_t>(region.bytes);
  for (const InFlight &flight : inFlight_)
    if (flight.staged)
      if (const auto to = reinterpret_cast<uintptr_t>(flight.staged->to);
          to < end && begin < to + static_cast<uintptr_t>(flight.staged->bytes))
        return {const_cast<Semaphore *>(&progress_), flight.number};
  return {};
}

void CudaStream::fill(const DeviceCommand &c) {
  const Driver &driver = machine_.driver();
  if (c.regions[0].bytes == 0)
    return;
  for (const FillNodeParams &f : fillsOf(c, addressOf(c.regions[0].address), c.regions[0].bytes)) {
    Result result = kSuccess;
    if (f.height > 1)
      result = driver.cuMemsetD2D32Async(f.to, f.pitch, f.value, f.width, f.height, handle_);
    else if (f.elementBytes == 1)
      result = driver.cuMemsetD8Async(f.to, static_cast<unsigned char>(f.value), f.width, handle_);
    else if (f.elementBytes == 2)
      result = driver.cuMemsetD16Async(f.to, static_cast<unsigned short>(f.value), f.width, handle_);
    else
      result = driver.cuMemsetD32Async(f.to, f.value, f.width, handle_);
    if (result != kSuccess)
      throw Error(concat("the driver's fill failed: ", driver.describe(result)));
  }
}

bool CudaStream::addAwaited(std::vector<Event> &events) const {
  if (isLaunching())
    return true;
  const Held &first = held_.front();
  const size_t before = events.size();
  const bool isHostCall = first.kept.command.kind == DeviceCommandKind::HostCall;
  // The host's work may have ended since this was tried: what is pending now is what counts.
  for (const Event &wait : first.kept.waits) {
    if (wait.semaphore == &progress_ || wait.state() != Semaphore::State::Pending)
      continue;
    const CudaStream *other = isHostCall ? nullptr : machine_.streamOf(wait.semaphore);
    if (!other || other->issued_ < wait.value)
      events.push_back(wait);
  }
  if (first.kept.command.kind == DeviceCommandKind::Copy)
    if (const Event staging = machine_.staging(first.kept.regions[0]); staging.semaphore)
      events.push_back(staging);
  if (isHostCall && first.number > 1)
    if (const Event last{const_cast<Semaphore *>(&progress_), first.number - 1}; last.state() == Semaphore::State::Pending)
      events.push_back(last);
  const NcclCommunicator *const nccl = ncclOf(first.kept.command.collective.get());
  return events.size() > before || (nccl && !isDoomed_ && !isReady(first.kept.command));
}

bool CudaStream::issueHeld(std::unique_lock<std::mutex> &lock) {
  if (isLaunching())
    return finishLaunch();
  const DeviceCommand &command = held_.front().kept.command;
  const uint64_t number = held_.front().number;
  if (!isDoomed_ && command.kind == DeviceCommandKind::HostCall) {
    DeviceFailureRef failure;
    for (const Event &wait : command.waits) {
      if (wait.semaphore == &progress_)
        continue;
      const auto state = wait.state();
      if (state == Semaphore::State::Pending)
        return false;
      if (state == Semaphore::State::Failed && !failure)
        failure = wait.semaphore->failure();
    }
    if (!inFlight_.empty())
      return false;
    const Held held = std::move(held_.front());
    held_.pop_front();
    const int64_t begin = StampList::nowPs();
    if (!failure) {
      runsHostCall_ = true; // keeps those behind it back
      std::vector<void *> addresses;
      for (const Region &region : held.kept.regions)
        addresses.push_back(region.address);
      lock.unlock();
      failure = workOnHost(held.kept.command, addresses, device_.caps().device);
      lock.lock();
      runsHostCall_ = false;
    }
    if (!failure && machine_.keepsStamps())
      note({held.kept.command.tag, {&progress_, number}, begin, StampList::nowPs()});
    inFlight_.push_back({.number = number, .failure = std::move(failure), .tag = held.kept.command.tag});
    isDoomed_ |= inFlight_.back().failure != nullptr;
    issued_ = number;
    settle();
    return true;
  }
  if (!tryIssue(command, number))
    return false;
  held_.pop_front();
  return true;
}

void CudaStream::note(const Stamp &stamp) {
  device_.stamps().add(stamp);
  machine_.runLog().add(logged_, stamp);
}

//--- Ending -----------------------------------------------------------------------------------------------------------
DeviceFailureRef CudaStream::failureOf(const InFlight &flight, Result result) const {
  const DeviceRef device = device_.caps().device;
  if (result != kSuccess) {
    // The driver does not say which of the kernels at work it was: the first one that was not seen to end takes the
    // blame, rather than the copy that noticed.
    CudaMachine::AtWork suspect{flight.kernel, flight.tag};
    if (isSticky(result) && !flight.kernel)
      if (const CudaMachine::AtWork other = machine_.kernelAtWork(device_.card()); other.kernel)
        suspect = other;
    return std::make_shared<DeviceFailure>(
        isSticky(result) ? FailureKind::DeviceLost : FailureKind::Launch,
        concat(device_.caps().name, " has stopped: ", machine_.driver().describe(result),
               suspect.kernel ? concat(", with kernel '", suspect.kernel->symbol, "' at work") : ""),
        device, suspect.tag);
  }
  for (const Event &wait : flight.waits)
    if (wait.state() == Semaphore::State::Failed)
      return wait.semaphore->failure();
  if (flight.graph)
    if (const CudaGraph::Failed failed = flight.graph->failed(); failed.kernel)
      return std::make_shared<DeviceFailure>(
          FailureKind::Kernel, concat(describeStatus(failed.status), " in kernel '", failed.kernel->symbol, "'"),
          device, flight.tag + failed.tag);
  const int32_t status = flight.status ? *static_cast<volatile int32_t *>(flight.status) : 0;
  if (status == kKernelOk)
    return nullptr;
  return std::make_shared<DeviceFailure>(FailureKind::Kernel,
                                         concat(describeStatus(status), " in kernel '", flight.kernel->symbol, "'"), device, flight.tag);
}

bool CudaStream::settle() {
  const Driver &driver = machine_.driver();
  bool any = false;
  uint64_t reached = 0; // signalled once for all that have ended
  while (!inFlight_.empty()) {
    InFlight &flight = inFlight_.front();
    Result result = kSuccess;
    if (flight.isLaunching)
      break; // the issuing thread looks after it
    if (flight.end) {
      result = driver.cuEventQuery(flight.end);
      if (result == kNotReady) {
        if (const DeviceFailureRef failure = isDoomed_ ? nullptr : lookAhead(flight)) {
          if (reached)
            progress_.signal(std::exchange(reached, 0));
          doom(failure);
          any = true;
        }
        break;
      }
      if (result != kSuccess && !isSticky(result) && driver.cuCtxSetCurrent(device_.card().context) == kSuccess)
        driver.cuStreamSynchronize(handle_); // the query did not say whether it has ended, and its memory is given on
    }
    // What it waited for has ended too, by the card, but its stream may not have been looked at.
    if (std::ranges::any_of(flight.waits, [](const Event &wait) { return wait.state() == Semaphore::State::Pending; }))
      break;
    if (flight.staged && result == kSuccess && !isDoomed_ && !flight.staged->isBegun)
      machine_.mover().begin(flight.staged);
    if (flight.staged && flight.staged->isBegun && !flight.staged->isDone.load(std::memory_order_acquire))
      break;
    DeviceFailureRef failure = isDoomed_ ? progress_.failure() : nullptr;
    if (!failure)
      failure = flight.failure ? flight.failure : failureOf(flight, result);
    if (!failure && flight.part)
      failure = failureOfPart(ncclOf(flight.part.get())->interruption(), device_.caps().device, flight.tag);
    if (failure) {
      isDoomed_ = true;
      if (flight.signal.semaphore)
        flight.signal.semaphore->fail(failure);
      if (reached)
        progress_.signal(std::exchange(reached, 0));
      progress_.fail(failure);
    } else {
      if (flight.begin && flight.end && driver.cuCtxSetCurrent(device_.card().context) == kSuccess) // times need it, queries do not
        note({flight.tag, {&progress_, flight.number}, device_.psOf(flight.begin), device_.psOf(flight.end)});
      if (flight.signal.semaphore)
        flight.signal.semaphore->signal(flight.signal.value);
      reached = flight.number;
    }
    if (flight.begin)
      device_.giveEvent(flight.begin);
    if (flight.end)
      device_.giveEvent(flight.end);
    if (flight.status)
      device_.giveStatus(flight.status);
    if (flight.source.memory)
      machine_.stagingPool().give(flight.source);
    if (flight.staged)
      machine_.stagingPool().give(flight.staged->block);
    if (flight.part) {
      NcclCommunicator &nccl = *ncclOf(flight.part.get());
      failure ? nccl.skip(flight.turn, failure) : nccl.ended();
      machine_.retire(std::move(flight.part));
    }
    inFlight_.pop_front();
    any = true;
  }
  if (reached)
    progress_.signal(reached);
  return any;
}

void CudaStream::forget(const CudaStream &other) {
  for (InFlight &flight : inFlight_)
    std::erase_if(flight.waits, [&](const Event &wait) {
      if (wait.semaphore != &other.progress_)
        return false;
      if (wait.state() == Semaphore::State::Failed && !flight.failure)
        flight.failure = wait.semaphore->failure();
      return true;
    });
}

void CudaStream::dropHeld() {
  for (const Held &held : held_)
    if (const DeviceCommand &c = held.kept.command; c.kind == DeviceCommandKind::Signal)
      c.signal.semaphore->fail(aborted_);
    else if (Communicator *communicator = communicatorOf(c))
      communicator->skip(c.turn, aborted_);
  held_.clear();
}

void CudaStream::abort(DeviceFailureRef failure) {
  {
    std::unique_lock lock(machine_.mutex());
    settle();
    isDoomed_ = true;
    aborted_ = failure;
    progress_.fail(std::move(failure));
    dropHeld();
    machine_.quiesceIssuer(lock);
  }
  stopParts();
  const Driver &driver = machine_.driver();
  if (driver.cuCtxSetCurrent(device_.card().context) == kSuccess)
    driver.cuStreamSynchronize(handle_);
  for (;;) {
    std::unique_lock lock(machine_.mutex());
    for (InFlight &flight : inFlight_)
      flight.waits.clear(); // the streams that own these semaphores may be destroyed before this one
    settle();
    if (inFlight_.empty() && !runsHostCall_)
      return;
    lock.unlock();
    std::this_thread::yield();
  }
}

} // namespace tressel::runtime::cuda
