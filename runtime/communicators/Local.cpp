// A communicator of threads: what it says of each rank is in one object, under one lock. Ranks leave copies of their
// sources and take copies of their results, so none ever touches another's memory, and one that gives up may go at
// once.
#include "../devices/Collective.h"
#include "../devices/CommunicatorLibrary.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <unistd.h>

namespace tressel::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

Bytes copyOf(const void *from, int64_t bytes) {
  const auto *begin = static_cast<const std::byte *>(from);
  return {begin, begin + bytes};
}
std::string seconds(int64_t ns) { return concat(ns / 1'000'000'000, ".", ns / 100'000'000 % 10, " s"); }

/// A collective or barrier where some ranks have come.
struct Meeting {
  CollectiveRun what;
  std::string text;
  uint32_t first = 0; ///< the rank that came first
  uint32_t left = 0;  ///< how many have taken their results
  std::vector<bool> came;
  std::vector<Bytes> sources, targets;
  bool isDone = false;
};

/// What survivors agree on.
struct Group;
struct Vote {
  std::vector<bool> came;
  bool shrinks = false, isDone = false;
  uint64_t bits = ~uint64_t(0);
  std::vector<uint32_t> survivors;
  std::shared_ptr<Group> next; ///< of the survivors
};

struct Group {
  explicit Group(uint32_t size) : hosts(size), members(size) {}
  struct Member {
    bool hasJoined = false, isLost = false, isClosed = false;
    uint64_t noted = 0;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> hosts;
  std::vector<Member> members;
  DeviceFailureRef failure;
  std::map<uint64_t, Meeting> meetings; ///< by number
  std::map<uint64_t, Vote> votes;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, Bytes> mail; ///< from, to, number
};

class LocalCommunicator final : public Communicator {
public:
  LocalCommunicator(std::shared_ptr<Group> group, uint32_t rank, int64_t timeoutNs)
      : Communicator("local", rank, group->hosts, timeoutNs), group_(std::move(group)), sent_(size(), 0),
        received_(size(), 0) {}
  ~LocalCommunicator() override {
    std::lock_guard lock(group_->mutex);
    group_->members[rank()].isClosed = true;
    group_->changed.notify_all();
  }

  DeviceFailureRef failure() const override {
    std::lock_guard lock(group_->mutex);
    return group_->failure;
  }
  void expel(uint32_t rank, std::string_view why) override {
    std::lock_guard lock(group_->mutex);
    lose(rank, concat("has failed: ", why));
  }
  void revoke(std::string_view why) override {
    std::lock_guard lock(group_->mutex);
    fail(blame(FailureKind::Revoked, rank(), concat("has revoked the communicator: ", why)));
  }
  void note(uint64_t count) override {
    std::lock_guard lock(group_->mutex);
    group_->members[rank()].noted = count;
  }
  uint64_t noted(uint32_t rank) const override {
    std::lock_guard lock(group_->mutex);
    return group_->members[rank].noted;
  }
  uint64_t agree(uint64_t bits) override { return vote(false, bits).bits; }
  std::shared_ptr<Communicator> shrink() override {
    const Vote vote = this->vote(true, 0);
    const auto own = std::ranges::find(vote.survivors, rank());
    return std::make_shared<LocalCommunicator>(vote.next, static_cast<uint32_t>(own - vote.survivors.begin()),
                                               timeoutNs());
  }
  void close() override;
  DeviceFailureRef perform(const DeviceCommand &part, std::span<void *const> addresses) override;
  void skip(uint64_t, const DeviceFailureRef &failure) override {
    std::lock_guard lock(group_->mutex);
    ++ended_;
    group_->changed.notify_all();
    if (!group_->failure) // else it follows from that
      lose(rank(), concat("has skipped a part: ", failure->message));
  }

private:
  using Lock = std::unique_lock<std::mutex>;
  //--- Under the lock -------------------------------------------------------------------------------------------------
  void fail(DeviceFailureRef failure) {
    if (!group_->failure)
      group_->failure = std::move(failure);
    group_->changed.notify_all();
  }
  void lose(uint32_t rank, std::string_view why) {
    group_->members[rank].isLost = true;
    fail(blame(FailureKind::RankLost, rank, why));
  }
  bool isLive(uint32_t rank) const { return !group_->members[rank].isLost && !group_->members[rank].isClosed; }
  DeviceFailureRef meet(Lock &lock, const DeviceCommand &part, std::span<void *const> addresses,
                        Clock::time_point until);
  DeviceFailureRef exchange(Lock &lock, const DeviceCommand &part, std::span<void *const> addresses,
                            Clock::time_point until);
  Vote vote(bool shrinks, uint64_t bits);

  Clock::time_point deadline() const { return Clock::now() + std::chrono::nanoseconds(timeoutNs()); }
  std::shared_ptr<Group> group_;
  uint64_t begun_ = 0, ended_ = 0, collectives_ = 0, votes_ = 0;
  std::vector<uint64_t> sent_, received_; ///< by peer
};

DeviceFailureRef LocalCommunicator::perform(const DeviceCommand &part, std::span<void *const> addresses) {
  const auto until = deadline();
  Lock lock(group_->mutex);
  auto mayBegin = [&] { return group_->failure || begun_ + 1 == part.turn; };
  if (!group_->changed.wait_until(lock, until, mayBegin))
    lose(rank(), concat("has not begun part ", begun_ + 1, " within ", seconds(timeoutNs()), ", which holds back part ",
                        part.turn));
  DeviceFailureRef failure = group_->failure;
  if (!failure && group_->members[rank()].isClosed)
    failure = blame(FailureKind::Revoked, rank(), "has closed the communicator");
  if (!failure) {
    ++begun_;
    group_->changed.notify_all();
    failure = part.collective->work == RankWork::Exchange ? exchange(lock, part, addresses, until)
                                                          : meet(lock, part, addresses, until);
  }
  ++ended_;
  group_->changed.notify_all();
  return failure;
}

DeviceFailureRef LocalCommunicator::meet(Lock &lock, const DeviceCommand &part, std::span<void *const> addresses,
                                         Clock::time_point until) {
  const uint64_t number = ++collectives_;
  const CollectiveRun &run = *part.collective;
  Meeting &m = group_->meetings[number];
  // What all ranks must give alike: of a broadcast, where only the root has a source, the target's size.
  const std::string text = describe(run, part.regions.last(std::min<size_t>(part.regions.size(), 1)));
  if (m.came.empty()) {
    m.what = run;
    m.what.communicator = nullptr;
    m.first = rank();
    m.came.resize(size());
    m.sources.resize(size());
    m.targets.resize(size());
  }
  const int64_t target = part.regions.empty() ? 0 : part.regions.back().bytes;
  if (m.text.empty())
    m.text = text;
  else if (m.text != text) {
    fail(blame(FailureKind::Launch, rank(),
               concat("is at ", text, ", where ", nameOf(m.first), " is at ", m.text, " (collective ", number,
                      " of the communicator)")));
    return group_->failure;
  }
  m.came[rank()] = true;
  if (part.regions.size() == 2)
    m.sources[rank()] = copyOf(addresses[0], part.regions[0].bytes);
  m.targets[rank()].resize(static_cast<size_t>(target));
  if (std::ranges::all_of(m.came, [](bool came) { return came; })) {
    if (run.work == RankWork::Collective) {
      std::vector<CollectiveOperands> operands;
      for (uint32_t r = 0; r < size(); ++r)
        operands.push_back({m.sources[r].data(), m.targets[r].data(), static_cast<int64_t>(m.sources[r].size()),
                            static_cast<int64_t>(m.targets[r].size())});
      combine(m.what, operands);
    }
    m.isDone = true;
    group_->changed.notify_all();
  }
  auto missing = [&](auto &&isSo) {
    for (uint32_t r = 0; r < size(); ++r)
      if (!m.came[r] && isSo(r))
        return r;
    return size();
  };
  auto hasLeft = [&](uint32_t r) { return group_->members[r].isClosed; };
  const bool inTime =
      group_->changed.wait_until(lock, until, [&] { return m.isDone || group_->failure || missing(hasLeft) < size(); });
  if (!m.isDone) {
    if (const uint32_t gone = missing(hasLeft); !group_->failure && gone < size())
      lose(gone, concat("has closed the communicator, where ", nameOf(rank()), " is at ", text));
    else if (!inTime)
      lose(missing([](uint32_t) { return true; }), concat("has not come to ", text, " within ", seconds(timeoutNs())));
    return group_->failure;
  }
  if (target)
    std::memcpy(addresses.back(), m.targets[rank()].data(), static_cast<size_t>(target));
  if (++m.left == size())
    group_->meetings.erase(number);
  return nullptr;
}

DeviceFailureRef LocalCommunicator::exchange(Lock &lock, const DeviceCommand &part, std::span<void *const> addresses,
                                             Clock::time_point until) {
  const std::vector<uint32_t> &peers = part.collective->peers;
  std::vector<uint64_t> numbers(peers.size());
  for (size_t i = 0; i < peers.size(); ++i) {
    const Region &region = part.regions[i];
    if (region.access != Access::Read) {
      numbers[i] = received_[peers[i]]++;
      continue;
    }
    group_->mail[{rank(), peers[i], sent_[peers[i]]++}] = copyOf(addresses[i], region.bytes);
    group_->changed.notify_all();
  }
  for (size_t i = 0; i < peers.size(); ++i) {
    const Region &region = part.regions[i];
    if (region.access == Access::Read)
      continue;
    const std::tuple key{peers[i], rank(), numbers[i]};
    auto hasLeft = [&] { return group_->members[peers[i]].isClosed; };
    const bool inTime = group_->changed.wait_until(
        lock, until, [&] { return group_->mail.contains(key) || group_->failure || hasLeft(); });
    const auto at = group_->mail.find(key);
    if (at == group_->mail.end()) {
      if (!group_->failure && hasLeft())
        lose(peers[i], concat("has closed the communicator, where ", nameOf(rank()), " receives from it"));
      else if (!inTime)
        lose(peers[i], concat("has sent nothing to ", nameOf(rank()), " within ", seconds(timeoutNs())));
      return group_->failure;
    }
    if (static_cast<int64_t>(at->second.size()) != region.bytes) {
      fail(blame(FailureKind::Launch, peers[i],
                 concat("sends ", at->second.size(), " bytes to ", nameOf(rank()), ", which receives ", region.bytes)));
      return group_->failure;
    }
    if (region.bytes)
      std::memcpy(addresses[i], at->second.data(), at->second.size());
    group_->mail.erase(at);
  }
  return nullptr;
}

Vote LocalCommunicator::vote(bool shrinks, uint64_t bits) {
  const auto until = deadline();
  Lock lock(group_->mutex);
  auto refuse = [&](uint32_t rank) {
    if (!isLive(rank))
      throwError<RuntimeError>(nameOf(rank),
                               group_->members[rank].isClosed ? " has closed the communicator" : " is lost: ",
                               group_->failure && !group_->members[rank].isClosed ? group_->failure->message : "");
  };
  refuse(rank());
  Vote &v = group_->votes[++votes_];
  if (v.came.empty()) {
    v.came.resize(size());
    v.shrinks = shrinks;
  } else if (v.shrinks != shrinks)
    throwError<RuntimeError>(nameOf(rank()), shrinks ? " shrinks a communicator, where others agree"
                                                     : " agrees, where others shrink the communicator");
  v.came[rank()] = true;
  v.bits &= bits;
  if (shrinks)
    fail(blame(FailureKind::Revoked, rank(), "shrinks the communicator"));
  auto isComplete = [&] {
    for (uint32_t r = 0; r < size(); ++r)
      if (isLive(r) && !v.came[r])
        return false;
    return true;
  };
  if (!group_->changed.wait_until(lock, until, [&] { return v.isDone || isComplete(); }))
    for (uint32_t r = 0; r < size(); ++r)
      if (!v.came[r] && isLive(r))
        lose(r, concat("has not come to what the ranks agree on within ", seconds(timeoutNs())));
  if (!v.isDone) {
    v.isDone = true;
    for (uint32_t r = 0; r < size(); ++r)
      if (isLive(r))
        v.survivors.push_back(r);
    if (shrinks) {
      v.next = std::make_shared<Group>(static_cast<uint32_t>(v.survivors.size()));
      for (size_t i = 0; i < v.survivors.size(); ++i)
        v.next->hosts[i] = hostOf(v.survivors[i]);
    }
    group_->changed.notify_all();
  }
  if (std::ranges::find(v.survivors, rank()) == v.survivors.end())
    refuse(rank());
  return v;
}

void LocalCommunicator::close() {
  const auto until = deadline();
  Lock lock(group_->mutex);
  if (!group_->changed.wait_until(lock, until, [&] { return ended_ == turns(); }))
    lose(rank(), concat("closes the communicator, and ", turns() - ended_, " of its parts have not ended within ",
                        seconds(timeoutNs())));
  group_->members[rank()].isClosed = true;
  group_->changed.notify_all();
}

//--- Joining ----------------------------------------------------------------------------------------------------------
std::string hostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] ? name : "localhost";
}

std::shared_ptr<Communicator> makeLocal(const std::string &name, uint32_t rank, uint32_t size, int64_t timeoutNs) {
  static std::mutex &mutex = *new std::mutex;
  static auto &joining = *new std::map<std::string, std::shared_ptr<Group>>;
  if (rank >= size)
    throwError<InputError>("communicator '", name, "': rank ", rank, " is none of ", size, " ranks");
  if (timeoutNs <= 0)
    throwError<InputError>("communicator '", name, "': its time is ", timeoutNs, " ns; it has to be more than 0");
  std::shared_ptr<Group> group;
  {
    std::lock_guard registry(mutex);
    std::shared_ptr<Group> &known = joining[name];
    if (!known)
      known = std::make_shared<Group>(size);
    group = known;
    std::lock_guard lock(group->mutex);
    if (group->members.size() != size)
      throwError<InputError>("communicator '", name, "': rank ", rank, " makes it of ", size, " ranks, others of ",
                             group->members.size());
    if (group->members[rank].hasJoined)
      throwError<InputError>("communicator '", name, "': there are two of rank ", rank);
    group->members[rank].hasJoined = true;
    group->hosts[rank] = hostName();
    if (std::ranges::all_of(group->members, &Group::Member::hasJoined)) {
      joining.erase(name);
      group->changed.notify_all();
    }
  }
  auto missing = [&] { return std::ranges::find(group->members, false, &Group::Member::hasJoined); };
  std::unique_lock lock(group->mutex);
  if (!group->changed.wait_for(lock, std::chrono::nanoseconds(timeoutNs),
                               [&] { return missing() == group->members.end(); })) {
    const auto absent = missing() - group->members.begin();
    group->members[rank].hasJoined = false; // the others do not get on without it either
    lock.unlock();
    std::lock_guard registry(mutex);
    if (const auto known = joining.find(name); known != joining.end() && known->second == group)
      joining.erase(known);
    throwError<RuntimeError>("communicator '", name, "': rank ", absent, " of ", size, " has not come within ",
                             seconds(timeoutNs));
  }
  lock.unlock();
  return std::make_shared<LocalCommunicator>(std::move(group), rank, timeoutNs);
}

} // namespace
} // namespace tressel::runtime

extern "C" {
extern const tressel::runtime::CommunicatorLibrary tressel_communicator_library;
const tressel::runtime::CommunicatorLibrary tressel_communicator_library = {tressel::runtime::makeLocal};
}
