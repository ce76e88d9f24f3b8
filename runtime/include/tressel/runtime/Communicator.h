// Collectives between ranks, which may be threads of one process or processes on several hosts: beside Device in the
// seam.
//
//   makeLocalCommunicator, makeNcclCommunicator ─> Communicator
//   Communicator ─> CollectiveRun ─> stream.submit(part) ─> Event: this rank's part has ended
//                                                        ─> DeviceFailure: names the rank to blame and its host
//
// A part is a command of a stream, of kind Collective, whose CollectiveRun names the communicator instead of members:
// it has waits and an event as each command has.
//
//   CollectiveRun sum{.kind = CollectiveKind::AllReduce};
//   sum.communicator = comm;
//   DeviceCommand part{.kind = DeviceCommandKind::Collective};
//   part.regions = sourceAndTarget;
//   part.collective = std::make_shared<const CollectiveRun>(sum);
//   Event done = stream.submit(part);
//
// Work. Collective: regions are source and target. AllReduce: as many bytes each. AllGather: the target has a source of
// each rank, in their order. ReduceScatter: the source has a target for each rank. Broadcast: all targets are as large,
// the root has a source besides, the others may have one, which is not read. Source and target may be the same bytes,
// also where one is this rank's part of the other. Elements are of CollectiveRun::type; the sizes are the same on all
// ranks, and 0 is one. Exchange: a group of sends (regions to be read) and receives (regions to be written), each with
// a peer; the sends of one rank to another meet its receives in their order, of as many bytes. It may end before the
// peer has received. Only ranks that are peers of each other take part. Barrier: ends when all ranks have begun theirs.
// The target has its contents, and the source may be changed, when the event is reached.
//
// Order. All ranks give the same works to a communicator in the same order. A rank's parts begin in the order in which
// they were submitted, on whichever of its streams: a part that may not begin yet holds back those behind it. A
// caller that submits from several threads orders its submissions. Communicators that share devices need one order over
// all of them, on all ranks: a device may be occupied by a part until the other ranks' parts have begun.
//
// Bounds. No wait is longer than the time that was given when the communicator was made: a part whose predecessors have
// ended and that has waited as long for other ranks fails, and so does every call here. The time is the same on all
// ranks.
//
// Failures. The first one ends the communicator on all ranks: parts that have not ended fail with it, and so do later
// ones, as does what waits for them. It says which rank is to blame, and the name of its host. A rank fails that is
// expelled or aborts, that does not come in time, that gives another work than the others, or whose part is skipped
// because its stream has failed or is aborted. What is in the targets is undefined then. After a failure, `agree` and
// `shrink` work as before: the survivors go on with a new communicator.
// A failed part, and what waits for it, may be on a card until the communicator is shrunk or closed, or their streams
// are aborted or destroyed: memory of the card that was released with their events is kept as long, and the caller's
// own has to stay as long.
//
// Ownership. Parts keep their communicator until they have ended; it keeps nothing of them. `close` ends it in order;
// a communicator that is dropped without it is ended for the other ranks when its last part has ended. Devices outlive
// their communicators.
//
// Threads. `agree`, `shrink` and `close` are called by one thread of a rank; everything else is safe from any thread.
#pragma once

#include "tressel/runtime/Device.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::runtime {

class Communicator {
public:
  virtual ~Communicator();
  Communicator(const Communicator &) = delete;

  const char *implementation() const { return implementation_; } ///< "local", "nccl"
  uint32_t rank() const { return rank_; }
  uint32_t size() const { return static_cast<uint32_t>(hosts_.size()); }
  const std::string &hostOf(uint32_t rank) const { return hosts_.at(rank); }
  int64_t timeoutNs() const { return timeoutNs_; }

  /// Why it has ended; null while it has not.
  virtual DeviceFailureRef failure() const = 0;
  /// Tells all ranks that this one is lost: it takes part in nothing more, and is not among the survivors. Also for
  /// callers that know it from elsewhere.
  virtual void expel(uint32_t rank, std::string_view why) = 0;
  void abort(std::string_view why) { expel(rank_, why); }
  /// Ends it for all ranks, of which none is lost by that.
  virtual void revoke(std::string_view why) = 0;
  /// The bits that all survivors give. Each of them calls it, also after a failure; a rank that does not in time is
  /// lost. Throws RuntimeError where this rank is.
  virtual uint64_t agree(uint64_t bits) = 0;
  /// Ends it, and returns the communicator of the survivors in the order of their ranks. They call it as `agree`.
  virtual std::shared_ptr<Communicator> shrink() = 0;
  /// Returns when all parts have ended, at most after the time; those that have not, fail. Without effect the second
  /// time.
  virtual void close() = 0;

  /// Publishes a count of this rank, its progress, which the other ranks read by `noted`.
  virtual void note(uint64_t count) = 0;
  virtual uint64_t noted(uint32_t rank) const = 0;

  //--- For streams ----------------------------------------------------------------------------------------------------
  /// Throws Error for a part that means nothing.
  virtual void check(const CollectiveRun &part, std::span<const Region> regions) const;
  /// The place of a part that is submitted, from 1 on.
  uint64_t takeTurn() { return turns_.fetch_add(1) + 1; }
  uint64_t turns() const { return turns_.load(); }
  /// Does a part whose waits are reached on memory of the host, and returns when it has ended, or why it has failed.
  virtual DeviceFailureRef perform(const DeviceCommand &part, std::span<void *const> addresses) = 0;
  /// A part that will not be done.
  virtual void skip(uint64_t turn, const DeviceFailureRef &failure) = 0;

protected:
  Communicator(const char *implementation, uint32_t rank, std::vector<std::string> hosts, int64_t timeoutNs);
  /// "rank 2 (node7)"
  std::string nameOf(uint32_t rank) const;
  DeviceFailureRef blame(FailureKind kind, uint32_t rank, std::string_view what) const;

private:
  const char *implementation_;
  uint32_t rank_;
  std::vector<std::string> hosts_;
  int64_t timeoutNs_;
  std::atomic<uint64_t> turns_{0};
};

/// "an all-reduce of 64 bytes of f32": of a part, for messages.
std::string describe(const CollectiveRun &part, std::span<const Region> regions);

inline constexpr int64_t kCommunicatorTimeoutNs = int64_t(600) * 1'000'000'000;

/// Of threads of this process, for memory of the host: the reference of the others. Sums are added up in the order of
/// the ranks. All ranks give the same name, which no other communicator that is being made has. Returns when all ranks
/// have come. Throws RuntimeError when one does not in time, and InputError for a rank or size that cannot be.
std::shared_ptr<Communicator> makeLocalCommunicator(const std::string &name, uint32_t rank, uint32_t size,
                                                    int64_t timeoutNs = kCommunicatorTimeoutNs);
/// By NVIDIA's NCCL, for memory of cards of the machine "cuda", each rank's of a card of its own. `control` is a
/// communicator of the same ranks for memory of hosts, which it owns from then on: NCCL says that some rank has failed,
/// and leaves it to others to find out which; this one carries that, names, and what the ranks agree on. Each rank
/// calls it. Throws InputError where NCCL 2.28 or a later one is not there, and RuntimeError when a rank fails.
std::shared_ptr<Communicator> makeNcclCommunicator(std::shared_ptr<Communicator> control, Device &card);

} // namespace tressel::runtime
