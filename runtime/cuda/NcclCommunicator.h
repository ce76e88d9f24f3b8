// A communicator by NCCL, for streams of one card. What ranks tell each other beside NCCL goes over a communicator of
// their hosts (`control`): the library's unique id, which rank has failed, how far each one is, what they agree on.
//
//   tryIssue ──> launch ──in progress──> look, look ... ──> an event behind it
//                                          ^
//   settle, while that event has not been reached: failures of the control, of NCCL, the time
//
// NCCL's communicators are made non-blocking, so its calls return at once, and a part may be in the stream only later:
// the stream issues nothing behind it until then. A part that has failed may stay on the card until the communicator is
// revoked, shrunk, closed or aborted, or its stream is; what waits for it is told before.
#pragma once

#include "../devices/HostWork.h"
#include "Nccl.h"
#include "tressel/runtime/Communicator.h"

#include <chrono>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class CudaDevice;

class NcclCommunicator final : public Communicator {
public:
  using Clock = std::chrono::steady_clock;
  /// Takes `comm`, which is ready.
  NcclCommunicator(const Nccl &library, std::shared_ptr<Communicator> control, CudaDevice &device, nccl::Comm comm);
  ~NcclCommunicator() override;

  DeviceFailureRef failure() const override { return control_->failure(); }
  void expel(uint32_t rank, std::string_view why) override { control_->expel(rank, why); }
  void revoke(std::string_view why) override { control_->revoke(why); }
  uint64_t agree(uint64_t bits) override { return control_->agree(bits); }
  std::shared_ptr<Communicator> shrink() override;
  void close() override;
  void note(uint64_t count) override { control_->note(count); }
  uint64_t noted(uint32_t rank) const override { return control_->noted(rank); }
  void check(const CollectiveRun &part, std::span<const Region> regions) const override;
  DeviceFailureRef perform(const DeviceCommand &part, std::span<void *const> addresses) override;
  void skip(uint64_t turn, const DeviceFailureRef &failure) override;

  /// Stops what it has on the card, without waiting for other ranks. Not under the machine's lock.
  void stop();

  //--- Under the machine's lock ---------------------------------------------------------------------------------------
  const CudaDevice &device() const { return device_; }
  /// Whether a part may begin: those before it have, or it will not be done.
  bool isNext(uint64_t turn) const { return begun_ + 1 == turn || control_->failure(); }
  /// Gives a part to NCCL, which may still be at it on return. Returns why it could not.
  DeviceFailureRef launch(const DeviceCommand &part, StreamHandle stream);
  bool isLaunching() const { return isLaunching_; }
  /// Of a part that has waited since then: why it fails; null if it does not.
  DeviceFailureRef look(const CollectiveRun &part, Clock::time_point since);
  /// Of a part that has left the card: why its results may be missing; null: they are there.
  DeviceFailureRef interruption() const { return isRevoked_ || !comm_ ? control_->failure() : nullptr; }
  void ended() { ended_.fetch_add(1); }

private:
  nccl::Status give(const DeviceCommand &part, StreamHandle stream);
  /// Blames a rank for a part that did not end in time.
  void blameForTime(const CollectiveRun &part);
  /// Takes the library's communicator away, so that it can be ended without the lock; null: it is gone.
  nccl::Comm take();
  void abort(nccl::Comm comm);
  const Nccl &library_;
  const std::shared_ptr<Communicator> control_;
  CudaDevice &device_;
  nccl::Comm comm_;
  void *word_ = nullptr; ///< of the card, which barriers reduce
  uint64_t begun_ = 0, collectives_ = 0;
  bool isLaunching_ = false, isRevoked_ = false, isClosed_ = false;
  std::atomic<uint64_t> ended_{0};
};

/// Of a part of such a one; null: it is none.
inline NcclCommunicator *ncclOf(const CollectiveRun *part) {
  return part ? dynamic_cast<NcclCommunicator *>(part->communicator.get()) : nullptr;
}
/// CudaLibrary::communicator.
std::shared_ptr<Communicator> makeCommunicator(std::shared_ptr<Communicator> control, Device &card);

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
