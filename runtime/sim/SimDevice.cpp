#include "Simulation.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <cstring>

namespace tressel::runtime::sim {

SimDevice::SimDevice(Simulation &machine, uint32_t index, const DeviceModel &model, bool computes)
    : memory(model.device, model.memoryBytes, computes), machine_(machine), index_(index) {
  caps_ = {.name = nameOf(model.device),
           .device = model.device,
           .implementation = "sim",
           .memoryBytes = model.memoryBytes,
           .computes = computes,
           .isVirtualTime = true,
           .checksMemory = true};
}

void *SimDevice::allocate(int64_t bytes, MemoryKind kind) {
  const bool isHost = caps_.device.kind == DeviceKind::Cpu;
  if (isHost == (kind == MemoryKind::Device))
    throwError<Error>(caps_.name,
                      isHost ? " is a host: its memory is Host or Pinned" : " is an accelerator: its memory is Device");
  std::lock_guard lock(machine_.mutex_);
  freeUnused();
  if (lost)
    throwError<OutOfMemory>(caps_.name, " of ", machine_.name(), " has no ", bytes, " bytes: ", lost->message);
  if (machine_.strikes(Fault::Kind::OutOfMemory, caps_.device))
    throwError<OutOfMemory>(caps_.name, " of ", machine_.name(), " has no ", bytes, " bytes left");
  void *allocated = memory.allocate(bytes, kind, machine_.options_.poison, machine_.name());
  machine_.races_.discard(allocated, bytes);
  return allocated;
}

void SimDevice::release(void *released, std::span<const Event> lastUses) {
  std::lock_guard lock(machine_.mutex_);
  released_.add(released, lastUses);
  freeUnused();
}
void SimDevice::freeUnused() {
  released_.freeUnused([this](void *unused) { memory.release(unused, machine_.options_.poison); });
}
void SimDevice::registerMemory(const void *callers, int64_t bytes, MemoryKind kind) {
  if (caps_.device.kind != DeviceKind::Cpu || kind == MemoryKind::Device)
    throwError<Error>("memory of callers is a host's, not that of ", caps_.name);
  std::lock_guard lock(machine_.mutex_);
  memory.registerCallers(callers, bytes, kind);
}
void SimDevice::unregisterMemory(const void *callers, int64_t bytes, MemoryKind kind) {
  std::lock_guard lock(machine_.mutex_);
  memory.unregisterCallers(callers, bytes, kind);
}
bool SimDevice::knowsMemory(const void *callers, int64_t bytes, MemoryKind kind) const {
  std::lock_guard lock(machine_.mutex_);
  return memory.holds(callers, bytes, kind);
}
void SimDevice::discard(void *discarded, int64_t bytes) {
  std::lock_guard lock(machine_.mutex_);
  if (machine_.options_.checkRaces)
    machine_.races_.discard(discarded, bytes);
  if (machine_.options_.poison && machine_.options_.computes)
    std::memset(discarded, kPoison, static_cast<size_t>(bytes));
}
bool SimDevice::reaches(DeviceRef other) const {
  return other == caps_.device || machine_.model_.route(caps_.device, other);
}
void SimDevice::read(void *to, const void *from, int64_t bytes) {
  std::lock_guard lock(machine_.mutex_);
  if (caps_.computes)
    std::memcpy(to, from, static_cast<size_t>(bytes));
  else
    std::memset(to, 0, static_cast<size_t>(bytes));
}

std::unique_ptr<Stream> SimDevice::makeStream(StreamKind kind, std::string name, uint32_t host) {
  std::lock_guard lock(machine_.mutex_);
  const auto place = std::ranges::find(machine_.streams_, nullptr); // reuse the index of a destroyed stream
  const auto index = static_cast<uint32_t>(place - machine_.streams_.begin());
  if (place == machine_.streams_.end()) {
    machine_.streams_.push_back(nullptr);
    machine_.log_.streams.emplace_back();
  }
  auto stream = std::make_unique<SimStream>(machine_, index, index_, host);
  machine_.streams_[index] = stream.get();
  machine_.log_.streams[index] = {caps_.device, kind, std::move(name)};
  return stream;
}

int64_t SimDevice::nowPs() {
  return machine_.nowPs();
}

std::vector<Stamp> SimDevice::takeStamps() {
  std::lock_guard lock(machine_.mutex_);
  const VirtualTimes times = virtualTimes(machine_.log_, machine_.model_, machine_.time_);
  std::vector<Stamp> stamps;
  size_t &next = machine_.stamped_[index_];
  for (; next < machine_.log_.commands.size() && machine_.ended_[next]; ++next) {
    const LoggedCommand &c = machine_.log_.commands[next];
    SimStream *stream = machine_.streams_[c.stream];
    if (stream && stream->device == index_)
      stamps.push_back({c.tag,
                        {&stream->progress, c.event & ((uint64_t(1) << 40) - 1)},
                        machine_.base_ + times.begin[next],
                        machine_.base_ + times.end[next]});
  }
  return stamps;
}

void SimDevice::reset() {
  std::lock_guard lock(machine_.mutex_);
  if (!lost)
    return;
  lost = nullptr;
  memory.clear();
}

} // namespace tressel::runtime::sim
