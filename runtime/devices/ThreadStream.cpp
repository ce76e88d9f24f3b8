#include "ThreadStream.h"
#include "runtime/types/Clock.h"
#include "tressel/runtime/Communicator.h"
#include "tressel/runtime/Shutdown.h"

#include <limits>

namespace tressel::runtime {

int64_t StampList::nowPs() { return 1000 * nowNs(); }
void StampList::add(const Stamp &stamp) {
  std::lock_guard lock(mutex_);
  if (stamps_.size() == kMost)
    stamps_.pop_front();
  stamps_.push_back(stamp);
}
std::vector<Stamp> StampList::take() {
  std::lock_guard lock(mutex_);
  std::vector<Stamp> taken(stamps_.begin(), stamps_.end());
  stamps_.clear();
  return taken;
}

ThreadStream::ThreadStream(Work work, StampList &stamps, Note note)
    : work_(std::move(work)), stamps_(stamps), note_(std::move(note)),
      thread_(startInternalThread("tressel.stream", [this] { run(); })) {}

ThreadStream::~ThreadStream() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  more_.notify_one();
  thread_.join();
}

Event ThreadStream::submit(const DeviceCommand &command) {
  checkShape(command);
  std::lock_guard lock(mutex_);
  queue_.emplace_back(command);
  if (Communicator *communicator = communicatorOf(command))
    queue_.back().command.turn = communicator->takeTurn();
  more_.notify_one();
  return {&progress_, ++submitted_};
}

Event ThreadStream::last() const {
  std::lock_guard lock(mutex_);
  return {const_cast<Semaphore *>(&progress_), submitted_};
}

/// On return the thread looks at no semaphores any more: their owners may destroy them.
void ThreadStream::abort(DeviceFailureRef failure) {
  progress_.fail(failure);
  std::unique_lock lock(mutex_);
  if (atWork_ && !atWork_->failure()) // it may wait for other ranks, and they for it
    atWork_->abort(failure->message);
  rests_.wait(lock, [&] { return queue_.empty() && !isWorking_; });
}

DeviceFailureRef ThreadStream::waitFor(std::span<const Event> waits) {
  for (const Event &wait : waits) {
    const Event either[] = {wait, {&progress_, std::numeric_limits<uint64_t>::max()}}; // the second: when aborted
    while (awaitAny(either, std::numeric_limits<int64_t>::max()) < 0) {
    }
    if (DeviceFailureRef failure = progress_.failure())
      return failure;
    if (wait.state() == Semaphore::State::Failed)
      return wait.semaphore->failure();
  }
  return progress_.failure();
}

void ThreadStream::run() {
  std::unique_lock lock(mutex_);
  for (uint64_t number = 1;; ++number) {
    more_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty())
      return;
    const KeptCommand kept = std::move(queue_.front());
    queue_.pop_front();
    isWorking_ = true;
    atWork_ = communicatorOf(kept.command);
    lock.unlock();
    execute(kept.command, number);
    lock.lock();
    isWorking_ = false;
    atWork_ = nullptr;
    rests_.notify_all();
  }
}

void ThreadStream::execute(const DeviceCommand &command, uint64_t number) {
  DeviceFailureRef failure = progress_.failure();
  if (!failure)
    failure = waitFor(command.waits);
  const int64_t begin = StampList::nowPs();
  if (!failure)
    failure = work_(command);
  else if (Communicator *communicator = communicatorOf(command))
    communicator->skip(command.turn, failure);
  // Its own progress last: who sees that may let everything else go.
  const bool signals = command.kind == DeviceCommandKind::Signal;
  if (failure) {
    if (signals)
      command.signal.semaphore->fail(progress_.failure() ? progress_.failure() : failure);
    progress_.fail(failure);
    return;
  }
  const Stamp stamp{command.tag, {&progress_, number}, begin, StampList::nowPs()};
  stamps_.add(stamp);
  if (note_)
    note_(stamp);
  if (signals)
    command.signal.semaphore->signal(command.signal.value);
  progress_.signal(number);
}

} // namespace tressel::runtime
