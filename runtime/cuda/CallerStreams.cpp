// Streams of callers beside those of the machine: what they hold is waited for, and they are held up, without the host.
#include "CudaMachine.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <atomic>

namespace tressel::runtime::cuda {
namespace {

constexpr Result kNotSupported = 801, kNotFound = 500;
constexpr unsigned kAtLeast = 0; // CU_STREAM_WAIT_VALUE_GEQ

[[noreturn]] void refuse(const CudaDevice &device, const char *call, Result result) {
  throwError<InputError>("a stream of the caller's is none that ", device.caps().name, " (", device.card().name, ") could be ordered with: ", call,
                         " failed: ", device.machine().driver().describe(result));
}

} // namespace

Event CudaStream::follow(StreamHandle other) {
  refuseFork();
  const Driver &driver = machine_.driver();
  std::lock_guard lock(machine_.mutex());
  device_.card().use(driver);
  const EventHandle there = device_.takeEvent();
  Result result = driver.cuEventRecord(there, other);
  if (result == kSuccess)
    result = driver.cuStreamWaitEvent(handle_, there, 0);
  device_.giveEvent(there); // the wait is for what it was recorded behind, whatever it records later
  if (result != kSuccess)
    refuse(device_, "cuEventRecord", result);
  const uint64_t number = ++submitted_;
  InFlight &flight = inFlight_.emplace_back(InFlight{.number = number});
  flight.end = device_.takeEvent();
  if (result = driver.cuEventRecord(flight.end, handle_); result != kSuccess) {
    driver.cuStreamSynchronize(handle_); // no event says when it has ended
    device_.giveEvent(std::exchange(flight.end, nullptr));
    flight.failure = std::make_shared<DeviceFailure>(FailureKind::Launch, "cuEventRecord failed: " + driver.describe(result), device_.caps().device);
  }
  issued_ = number;
  isDoomed_ |= flight.failure != nullptr;
  machine_.wakeSettler();
  return {&progress_, number};
}

Event CudaDevice::endOf(void *stream) {
  CudaStream *follower = nullptr;
  {
    std::lock_guard lock(machine_.mutex());
    if (const auto at = followers_.find(stream); at != followers_.end())
      follower = at->second.get();
  }
  if (!follower) {
    auto made = std::make_unique<CudaStream>(machine_, *this, StreamKind::Compute, "caller");
    std::lock_guard lock(machine_.mutex());
    follower = followers_.try_emplace(stream, std::move(made)).first->second.get();
  }
  return follower->follow(static_cast<StreamHandle>(stream));
}

/// The stream waits for a word of pinned memory.
class CudaDevice::Hold final : public HeldStream {
public:
  Hold(CudaDevice &device, Passed passed) : device_(device), passed_(passed) {}
  ~Hold() override {
    std::atomic_ref(*passed_.word).store(1, std::memory_order_release);
    std::lock_guard lock(device_.machine_.mutex());
    device_.holds_.push_back(passed_);
  }

private:
  CudaDevice &device_;
  const Passed passed_;
};

void CudaDevice::giveHolds() {
  std::erase_if(holds_, [this](const Passed &passed) {
    if (machine_.driver().cuEventQuery(passed.event) == kNotReady)
      return false;
    giveStatus(passed.word);
    giveEvent(passed.event);
    return true;
  });
}

std::unique_ptr<HeldStream> CudaDevice::hold(void *stream) {
  refuseFork();
  const Driver &driver = machine_.driver();
  const auto handle = static_cast<StreamHandle>(stream);
  std::lock_guard lock(machine_.mutex());
  card_.use(driver);
  giveHolds();
  const Passed passed{takeStatus(), takeEvent()};
  Result result = driver.cuStreamWaitValue32(handle, reinterpret_cast<Address>(passed.word), 1, kAtLeast);
  if (result == kSuccess) {
    if (result = driver.cuEventRecord(passed.event, handle); result == kSuccess)
      return std::make_unique<Hold>(*this, passed);
    std::atomic_ref(*passed.word).store(1, std::memory_order_release); // and stays so: nothing tells when the stream has passed
    giveEvent(passed.event);
    refuse(*this, "cuEventRecord", result);
  }
  giveStatus(passed.word);
  giveEvent(passed.event);
  if (result == kNotSupported || result == kNotFound)
    return nullptr;
  refuse(*this, "cuStreamWaitValue32", result);
}

} // namespace tressel::runtime::cuda
