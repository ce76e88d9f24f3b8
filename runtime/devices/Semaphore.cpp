// Points in time, and waiting for them. One condition for the process: threads that wait look again when anything
// happened, and none is signalled while no thread waits.
#include "tressel/runtime/CommandLog.h"

#include "runtime/types/Clock.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <atomic>
#include <chrono>

namespace tressel::runtime {
namespace {
std::mutex &progressMutex() {
  static auto *mutex = new std::mutex;
  return *mutex;
}
std::condition_variable &progress() {
  static auto *condition = new std::condition_variable;
  return *condition;
}
std::atomic<int> numWaiting{0};

void tellProgress() {
  if (numWaiting.load() == 0)
    return;
  std::lock_guard lock(progressMutex()); // threads that have looked are asleep by now
  progress().notify_all();
}
} // namespace

uint64_t Semaphore::value() const {
  std::lock_guard lock(mutex_);
  return value_;
}
DeviceFailureRef Semaphore::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}
Semaphore::State Semaphore::state(uint64_t value) const {
  std::lock_guard lock(mutex_);
  return value <= value_ ? State::Reached : failure_ ? State::Failed : State::Pending;
}
void Semaphore::signal(uint64_t value) {
  {
    std::lock_guard lock(mutex_);
    if (failure_ || value <= value_)
      return;
    value_ = value;
  }
  tellProgress();
}
void Semaphore::fail(DeviceFailureRef failure) {
  {
    std::lock_guard lock(mutex_);
    if (!failure_)
      failure_ = std::move(failure);
  }
  tellProgress();
}

int awaitAny(std::span<const Event> events, int64_t timeoutNs) {
  auto find = [&] {
    for (size_t i = 0; i < events.size(); ++i)
      if (events[i].state() != Semaphore::State::Pending)
        return static_cast<int>(i);
    return -1;
  };
  if (const int found = find(); found >= 0 || timeoutNs <= 0)
    return found;
  constexpr int64_t kLong = int64_t(3600) * 1'000'000'000;
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min(timeoutNs, kLong));
  ++numWaiting;
  int found = -1;
  {
    std::unique_lock lock(progressMutex());
    progress().wait_until(lock, until, [&] { return (found = find()) >= 0; });
  }
  --numWaiting;
  return found;
}

//--- Machines ---------------------------------------------------------------------------------------------------------
Device &Machine::at(DeviceRef device) const {
  for (const auto &each : devices_)
    if (each->caps().device == device)
      return *each;
  throw InputError(concat("there is no ", nameOf(device), " in ", name()));
}
static void refuseStreams(const Device &device) {
  throwError<InputError>(device.caps().name, " has no driver whose streams a caller could have");
}
Event Device::endOf(void *) {
  refuseStreams(*this);
  return {};
}
std::unique_ptr<HeldStream> Device::hold(void *) {
  refuseStreams(*this);
  return nullptr;
}

int Machine::awaitAny(std::span<const Event> events, int64_t timeoutNs) { return runtime::awaitAny(events, timeoutNs); }
int64_t Machine::nowPs() {
  return 1000 * nowNs();
}
const CommandLog &Machine::log() const {
  static const CommandLog none;
  return none;
}
VirtualTimes Machine::times() const { return {}; }

std::shared_ptr<Machine> makeMachine(std::string name, std::vector<std::shared_ptr<Device>> devices) {
  struct Group final : Machine {
    Group(std::string name, std::vector<std::shared_ptr<Device>> devices) {
      model_.name = std::move(name);
      devices_ = std::move(devices);
    }
  };
  return std::make_shared<Group>(std::move(name), std::move(devices));
}

} // namespace tressel::runtime
