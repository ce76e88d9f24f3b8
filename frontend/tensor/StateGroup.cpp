#include "frontend/tensor/StateGroup.h"

#include "frontend/tensor/Machine.h"
#include "frontend/tensor/Spread.h"
#include "frontend/trace/Recorder.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

namespace tressel::detail {
namespace {
thread_local constinit char threadToken = 0; // its address names the thread

/// Groups are joined by one thread at a time.
std::mutex &joining() {
  static auto *mutex = new std::mutex; // threads may outlive static destruction
  return *mutex;
}
} // namespace

VariableImpl::~VariableImpl() {
  if (StateGroup *own = group.load(std::memory_order_acquire))
    own->release();
}

Tensor VariableImpl::get(SourceLoc where) {
  const StateGroup::Lock lock(*this);
  readAt = where;
  if (spread) [[unlikely]]
    spread->settle(*this, where);
  return value;
}

void VariableImpl::set(Tensor next) {
  {
    const StateGroup::Lock lock(*this);
    if (next.impl()->home != home) [[unlikely]] {
      const SourceLoc where = next.impl()->where;
      const bool isThere = value.defined() && value.impl()->home == home;
      const auto machine = !home     ? nullptr
                           : isThere ? machineOf(*value.impl())
                                     : machineWith(deviceOfHome(home), where, "assign");
      next = moved(next, deviceOfHome(home), machine, where);
    }
    std::swap(value, next);
    if (spread) [[unlikely]]
      spread->noteWhole();
    version.fetch_add(1, std::memory_order_release);
  }
  variableEpoch.fetch_add(1, std::memory_order_release);
}

void VariableImpl::move(uint32_t to, SourceLoc where) {
  const runtime::DeviceRef device = deviceOfHome(to);
  {
    const StateGroup::Lock lock(*this);
    const bool wasSpread = spread != nullptr;
    if (wasSpread) {
      spread->settle(*this, where);
      spread = nullptr;
    }
    if (value.defined()) {
      const auto machine = to ? machineWith(device, where, "on") : nullptr;
      const bool isThere = value.impl()->home == to && machineOf(*value.impl()) == machine;
      if (isThere && !wasSpread)
        return;
      Tensor next = isThere ? value : moved(value, device, machine, where);
      std::swap(value, next);
    }
    home = to;
    version.fetch_add(1, std::memory_order_release);
  }
  variableEpoch.fetch_add(1, std::memory_order_release);
  structureEpoch.fetch_add(1, std::memory_order_release); // programs check the Variable's home
}

StateGroup &StateGroup::of(VariableImpl &variable) {
  if (StateGroup *group = variable.group.load(std::memory_order_acquire)) [[likely]]
    return *group;
  auto made = std::make_unique<StateGroup>();
  StateGroup *none = nullptr;
  if (variable.group.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel))
    return *made.release();
  return *none;
}

void StateGroup::release() {
  for (StateGroup *at = this; at && at->references_.fetch_sub(1, std::memory_order_acq_rel) == 1;) {
    StateGroup *next = at->joined_.load(std::memory_order_relaxed);
    delete at;
    at = next;
  }
}

bool StateGroup::isMine() const { return owner_.load(std::memory_order_relaxed) == &threadToken; }

bool StateGroup::tryTake() {
  if (isMine()) {
    ++depth_;
    return true;
  }
  uint32_t free = 0;
  if (!state_.compare_exchange_strong(free, 1, std::memory_order_acquire))
    return false;
  owner_.store(&threadToken, std::memory_order_relaxed);
  return true;
}

void StateGroup::take() {
  for (int i = 0; i <= 64; ++i) { // most calls are shorter than falling asleep
    if (tryTake())
      return;
    __builtin_ia32_pause();
  }
  while (state_.exchange(2, std::memory_order_acquire))
    state_.wait(2, std::memory_order_relaxed);
  owner_.store(&threadToken, std::memory_order_relaxed);
}

void StateGroup::takeToo(StateGroup &other) {
  while (!other.tryTake()) {
    unlock();
    other.take();
    if (tryTake())
      return;
    other.unlock();
    take();
  }
}

void StateGroup::unlock() {
  if (depth_) {
    --depth_;
    return;
  }
  owner_.store(nullptr, std::memory_order_relaxed);
  if (state_.exchange(0, std::memory_order_release) == 2)
    state_.notify_one();
}

StateGroup &StateGroup::lock() {
  for (;;) {
    StateGroup &at = root();
    at.take();
    if (!at.joined_.load(std::memory_order_relaxed)) [[likely]]
      return at;
    at.unlock(); // it was joined to another meanwhile
  }
}

void StateGroup::join(std::span<const std::shared_ptr<VariableImpl>> variables) {
  if (variables.empty())
    return;
  // One join at a time, so roots stay what they are. Other threads may hold a group and wait for another (a Variable's
  // and those of its parts, for example), in any order: hence takeToo.
  std::lock_guard one(joining());
  StateGroup *into = &of(*variables.front()).lock();
  for (const auto &variable : variables.subspan(1)) {
    StateGroup *other = &of(*variable).root();
    if (other == into)
      continue;
    into->takeToo(*other);
    if (other->rank_ > into->rank_)
      std::swap(into, other);
    into->rank_ += other->rank_ == into->rank_;
    into->readers_.insert(into->readers_.end(), other->readers_.begin(), other->readers_.end());
    other->readers_ = {};
    into->references_.fetch_add(1, std::memory_order_relaxed);
    other->joined_.store(into, std::memory_order_seq_cst);
    other->unlock();
  }
  into->unlock();
}

StateGroup::Writing::Writing(StateGroup &group)
    : group_(group), outer_(group.writing_.exchange(true, std::memory_order_seq_cst)) {
  for (const StateReader *reader : group.readers_)
    for (int i = 0; reader->reading_.load(std::memory_order_seq_cst); ++i)
      if (i < 64)
        __builtin_ia32_pause();
      else
        std::this_thread::yield();
}

StateReader::StateReader(std::span<const std::shared_ptr<VariableImpl>> variables) {
  std::vector<const StateGroup *> roots;
  for (const auto &variable : variables) {
    const StateGroup::Lock lock(*variable);
    if (std::ranges::find(roots, &lock.group()) != roots.end())
      continue;
    roots.push_back(&lock.group());
    groups_.push_back(&StateGroup::of(*variable));
    lock.group().readers_.push_back(this);
  }
}

StateReader::~StateReader() {
  for (StateGroup *group : groups_) {
    StateGroup &root = group->lock();
    std::erase(root.readers_, this);
    root.unlock();
  }
}

void StateReader::waitForWriter() {
  end();
  for (StateGroup *group : groups_)
    group->lock().unlock();
}

} // namespace tressel::detail
