#include "NcclCommunicator.h"

#include "CudaMachine.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <thread>

namespace tressel::runtime::cuda {
namespace {

using Clock = NcclCommunicator::Clock;
constexpr std::chrono::microseconds kNap{50};

std::string seconds(int64_t ns) { return concat(ns / 1'000'000'000, ".", ns / 100'000'000 % 10, " s"); }

/// A collective over the control, of memory of the host, that the caller waits for. Throws RuntimeError.
void share(Communicator &control, CollectiveRun run, void *from, int64_t fromBytes, void *to, int64_t toBytes) {
  const Region regions[] = {{from, fromBytes, Access::Read}, {to, toBytes, Access::Write}};
  void *const addresses[] = {from, to};
  run.type = DType::u8;
  DeviceCommand command{.kind = DeviceCommandKind::Collective,
                        .regions = run.work == RankWork::Barrier ? std::span<const Region>() : regions,
                        .collective = std::make_shared<const CollectiveRun>(std::move(run))};
  command.turn = control.takeTurn();
  if (const DeviceFailureRef failure = control.perform(command, addresses))
    throwError<RuntimeError>(failure->message);
}

/// What a rank notes that could not do what all have to.
constexpr uint64_t kGaveUp = 1;

/// Waits until NCCL has done what it began. Throws RuntimeError when it fails, when a rank does, and after the time;
/// with `heedsNotes` also when a rank gives up.
void await(const Nccl &library, Communicator &control, nccl::Comm comm, nccl::Status status, const char *what,
           bool heedsNotes = false) {
  const auto until = Clock::now() + std::chrono::nanoseconds(control.timeoutNs());
  while (status == nccl::kInProgress) {
    if (const DeviceFailureRef failure = control.failure())
      throwError<RuntimeError>(what, " failed: ", failure->message);
    for (uint32_t r = 0; heedsNotes && r < control.size(); ++r)
      if (control.noted(r) == kGaveUp)
        throwError<RuntimeError>(what, " failed on another rank");
    if (Clock::now() >= until)
      throwError<RuntimeError>(what, " was not done within ", seconds(control.timeoutNs()));
    std::this_thread::sleep_for(kNap);
    if (const nccl::Status asked = library.ncclCommGetAsyncError(comm, &status); asked != nccl::kDone)
      status = asked;
  }
  if (status != nccl::kDone)
    throwError<RuntimeError>(what, " failed: ", library.describe(status, comm));
}

nccl::Comm begin(const Nccl &library, Communicator &control, CudaDevice &device) {
  nccl::UniqueId id = {};
  if (control.rank() == 0)
    if (const nccl::Status status = library.ncclGetUniqueId(&id); status != nccl::kDone)
      throwError<RuntimeError>("ncclGetUniqueId failed: ", library.describe(status, nullptr));
  share(control, {.kind = CollectiveKind::Broadcast}, &id, sizeof id, &id, sizeof id);
  device.card().use(device.machine().driver());
  nccl::Config config;
  config.blocking = 0;
  nccl::Comm comm = nullptr;
  const nccl::Status status = library.ncclCommInitRankConfig(&comm, static_cast<int>(control.size()), id,
                                                             static_cast<int>(control.rank()), &config);
  try {
    await(library, control, comm, status, "ncclCommInitRankConfig");
  } catch (const Error &) {
    if (comm)
      library.ncclCommAbort(comm);
    throw;
  }
  return comm;
}

/// Returns when all ranks have theirs: a rank that goes on may end it, and the others could not tell that from a
/// failure to make it.
std::shared_ptr<Communicator> complete(const Nccl &library, const std::shared_ptr<Communicator> &control,
                                       CudaDevice &device, nccl::Comm comm) {
  auto made = std::make_shared<NcclCommunicator>(library, control, device, comm);
  share(*control, {.work = RankWork::Barrier}, nullptr, 0, nullptr, 0);
  return made;
}

nccl::Type typeOf(DType type) {
  switch (type) {
  case DType::f32:
    return nccl::kF32;
  case DType::f64:
    return nccl::kF64;
  case DType::f16:
    return nccl::kF16;
  case DType::bf16:
    return nccl::kBf16;
  case DType::i32:
    return nccl::kI32;
  case DType::i64:
    return nccl::kI64;
  case DType::u8:
  case DType::boolean:
    return nccl::kU8;
  case DType::i8:
  case DType::i16:
    break; // refused by `check`
  }
  return nccl::kI8;
}
/// Of bools a sum is whether any is, a product whether all are.
nccl::Operation operationOf(Reduction reduction, DType type) {
  const bool isBool = type == DType::boolean;
  switch (reduction) {
  case Reduction::Sum:
    return isBool ? nccl::kMax : nccl::kSum;
  case Reduction::Product:
    return isBool ? nccl::kMin : nccl::kProduct;
  case Reduction::Min:
    return nccl::kMin;
  case Reduction::Max:
    break;
  }
  return nccl::kMax;
}
std::vector<std::string> hostsOf(const Communicator &control) {
  std::vector<std::string> hosts;
  for (uint32_t r = 0; r < control.size(); ++r)
    hosts.push_back(control.hostOf(r));
  return hosts;
}

} // namespace

NcclCommunicator::NcclCommunicator(const Nccl &library, std::shared_ptr<Communicator> control, CudaDevice &device,
                                   nccl::Comm comm)
    : Communicator("nccl", control->rank(), hostsOf(*control), control->timeoutNs()), library_(library),
      control_(std::move(control)), device_(device), comm_(comm) {
  try {
    word_ = device.allocate(sizeof(int32_t), MemoryKind::Device);
  } catch (const Error &) {
    abort(comm);
    throw;
  }
}

NcclCommunicator::~NcclCommunicator() {
  if (wasForked())
    return;
  abort(std::exchange(comm_, nullptr)); // no part is left
  device_.release(word_, {});
}

void NcclCommunicator::check(const CollectiveRun &part, std::span<const Region> regions) const {
  Communicator::check(part, regions);
  const bool reduces = part.kind == CollectiveKind::AllReduce || part.kind == CollectiveKind::ReduceScatter;
  if (part.work == RankWork::Collective && reduces && part.type == DType::i16)
    throwError<Error>("NCCL reduces no i16 (", describe(part, regions), "): cast to i32 before");
}

DeviceFailureRef NcclCommunicator::perform(const DeviceCommand &part, std::span<void *const>) {
  auto failure =
      std::make_shared<DeviceFailure>(FailureKind::Unsupported, concat("a communicator by NCCL is for streams of ",
                                                                       device_.caps().name, ", not of a host"));
  failure->tag = part.tag;
  skip(part.turn, failure);
  return failure;
}

void NcclCommunicator::skip(uint64_t, const DeviceFailureRef &failure) {
  ended();
  if (!control_->failure())
    control_->expel(rank(), concat("has skipped a part: ", failure->message));
}

//--- Parts ------------------------------------------------------------------------------------------------------------
nccl::Status NcclCommunicator::give(const DeviceCommand &c, StreamHandle stream) {
  const CollectiveRun &run = *c.collective;
  if (run.work == RankWork::Barrier) // a rank's sum is there when all have begun
    return library_.ncclAllReduce(word_, word_, 1, nccl::kI32, nccl::kMax, comm_, stream);
  if (run.work == RankWork::Exchange) {
    nccl::Status status = library_.ncclGroupStart();
    for (size_t i = 0; i < run.peers.size() && status == nccl::kDone; ++i) {
      const Region &region = c.regions[i];
      const auto bytes = static_cast<size_t>(region.bytes);
      const int peer = static_cast<int>(run.peers[i]);
      if (bytes == 0)
        continue;
      status = region.access == Access::Read ? library_.ncclSend(region.address, bytes, nccl::kI8, peer, comm_, stream)
                                             : library_.ncclRecv(region.address, bytes, nccl::kI8, peer, comm_, stream);
      if (status == nccl::kInProgress) // within a group it says no more than that
        status = nccl::kDone;
    }
    const nccl::Status end = library_.ncclGroupEnd();
    return status != nccl::kDone ? status : end;
  }
  const Region &from = c.regions.front(), &to = c.regions.back();
  const auto element = static_cast<size_t>(sizeOf(run.type)), fromBytes = static_cast<size_t>(from.bytes),
             toBytes = static_cast<size_t>(to.bytes);
  switch (run.kind) {
  case CollectiveKind::AllReduce:
    return library_.ncclAllReduce(from.address, to.address, toBytes / element, typeOf(run.type),
                                  operationOf(run.reduction, run.type), comm_, stream);
  case CollectiveKind::ReduceScatter:
    return library_.ncclReduceScatter(from.address, to.address, toBytes / element, typeOf(run.type),
                                      operationOf(run.reduction, run.type), comm_, stream);
  case CollectiveKind::AllGather:
    return library_.ncclAllGather(from.address, to.address, fromBytes, nccl::kI8, comm_, stream);
  case CollectiveKind::Broadcast:
    break;
  }
  return library_.ncclBroadcast(from.address, to.address, toBytes, nccl::kI8, static_cast<int>(run.root), comm_,
                                stream);
}

DeviceFailureRef NcclCommunicator::launch(const DeviceCommand &c, StreamHandle stream) {
  if (const DeviceFailureRef failure = control_->failure())
    return failure;
  if (!comm_)
    return blame(FailureKind::Revoked, rank(), "has closed the communicator");
  ++begun_;
  if (c.collective->work != RankWork::Exchange)
    control_->note(++collectives_);
  const nccl::Status status = give(c, stream);
  isLaunching_ = status == nccl::kInProgress;
  if (status != nccl::kDone && !isLaunching_)
    control_->expel(
        rank(), concat("cannot begin ", describe(*c.collective, c.regions), ": ", library_.describe(status, comm_)));
  return isLaunching_ ? nullptr : control_->failure();
}

DeviceFailureRef NcclCommunicator::look(const CollectiveRun &part, Clock::time_point since) {
  if (!control_->failure() && comm_) {
    nccl::Status status = nccl::kDone;
    if (const nccl::Status asked = library_.ncclCommGetAsyncError(comm_, &status); asked != nccl::kDone)
      status = asked;
    if (status == nccl::kDone)
      isLaunching_ = false;
    else if (status != nccl::kInProgress)
      control_->revoke(concat("NCCL reports ", library_.describe(status, comm_)));
    if (Clock::now() - since > std::chrono::nanoseconds(timeoutNs()))
      blameForTime(part);
  }
  const DeviceFailureRef failure = control_->failure();
  if (failure && comm_ && !isRevoked_ && !isLaunching_ && library_.ncclCommRevoke) {
    isRevoked_ = true;
    library_.ncclCommRevoke(comm_,
                            0); // whether it serves or not: the card is free of it when it is ended at the latest
  }
  return failure;
}

void NcclCommunicator::blameForTime(const CollectiveRun &part) {
  uint32_t last = rank();
  for (uint32_t r = 0; r < size(); ++r)
    if ((part.work != RankWork::Exchange || std::ranges::find(part.peers, r) != part.peers.end()) &&
        control_->noted(r) < control_->noted(last))
      last = r;
  const std::string within = concat(describe(part, {}), " within ", seconds(timeoutNs()));
  if (last != rank())
    control_->expel(last, concat("has not come to ", within));
  else
    control_->revoke(concat("did not get to the end of ", within, ": the ranks may differ in what they do"));
}

//--- Ending -----------------------------------------------------------------------------------------------------------
nccl::Comm NcclCommunicator::take() {
  std::lock_guard lock(device_.machine().mutex());
  return std::exchange(comm_, nullptr);
}

void NcclCommunicator::abort(nccl::Comm comm) {
  if (comm && device_.machine().driver().cuCtxSetCurrent(device_.card().context) == kSuccess)
    library_.ncclCommAbort(comm);
}

void NcclCommunicator::stop() {
  if (!control_->failure())
    control_->expel(rank(), "has aborted a stream with a part of the communicator");
  abort(take());
  std::lock_guard lock(device_.machine().mutex());
  isLaunching_ = false;
  device_.machine().wakeIssuer();
}

void NcclCommunicator::close() {
  if (std::exchange(isClosed_, true))
    return;
  const auto until = Clock::now() + std::chrono::nanoseconds(timeoutNs());
  while (!control_->failure() && ended_.load() < turns()) {
    if (Clock::now() >= until)
      control_->expel(rank(), concat("closes the communicator, and ", turns() - ended_.load(),
                                     " of its parts have not ended within ", seconds(timeoutNs())));
    std::this_thread::sleep_for(kNap);
  }
  nccl::Comm comm = nullptr;
  if (!control_->failure() && (comm = take())) {
    device_.card().use(device_.machine().driver());
    try {
      await(library_, *control_, comm, library_.ncclCommFinalize(comm), "ncclCommFinalize");
      library_.ncclCommDestroy(comm);
    } catch (const Error &) {
      abort(comm);
    }
  }
  if (control_->failure())
    stop();
  control_->close();
}

std::shared_ptr<Communicator> NcclCommunicator::shrink() {
  std::shared_ptr<Communicator> survivors = control_->shrink(); // parts in flight fail with that
  try {
    uint32_t own = rank();
    std::vector<uint32_t> alive(survivors->size());
    share(*survivors, {.kind = CollectiveKind::AllGather}, &own, sizeof own, alive.data(),
          static_cast<int64_t>(alive.size() * sizeof own));
    std::vector<int> lost;
    for (uint32_t r = 0; r < size(); ++r)
      if (std::ranges::find(alive, r) == alive.end())
        lost.push_back(static_cast<int>(r));
    const nccl::Comm parent = take();
    // NCCL shrinks if there is a rank to leave out, and only what no survivor has aborted. Where it cannot, all begin
    // anew.
    const bool shrinks = survivors->agree(parent != nullptr) != 0 && !lost.empty();
    nccl::Comm child = nullptr;
    bool isThere = false;
    if (shrinks) {
      device_.card().use(device_.machine().driver());
      nccl::Config config;
      config.blocking = 0;
      try {
        if (isRevoked_) // it is quiet before it is shrunk
          await(library_, *survivors, parent, nccl::kInProgress, "ncclCommRevoke", true);
        const nccl::Status status = library_.ncclCommShrink(parent, lost.data(), static_cast<int>(lost.size()), &child,
                                                            &config, nccl::kShrinkAborting);
        // The child is there when the parent is ready again.
        await(library_, *survivors, parent, status, "ncclCommShrink", true);
        await(library_, *survivors, child, nccl::kInProgress, "ncclCommShrink", true);
        isThere = true;
      } catch (const Error &) {
        survivors->note(kGaveUp);
      }
    }
    abort(parent); // until then NCCL may be about to make the child
    stop();        // what was being launched ends
    if (shrinks)
      isThere = survivors->agree(isThere) != 0;
    survivors->note(0);
    if (!isThere) {
      abort(child);
      child = begin(library_, *survivors, device_);
    }
    return complete(library_, survivors, device_, child);
  } catch (const Error &error) {
    survivors->abort(error.message());
    throw;
  }
}

std::shared_ptr<Communicator> makeCommunicator(std::shared_ptr<Communicator> control, Device &device) {
  try {
    auto *card = dynamic_cast<CudaDevice *>(&device);
    if (!card)
      throwError<InputError>("a communicator by NCCL is for a card of the machine 'cuda', and ", device.caps().name,
                             " (", device.caps().implementation, ") is none");
    std::string why;
    const Nccl *library = Nccl::find(&why);
    if (!library)
      throwError<InputError>("a communicator of cards needs NCCL 2.28 or later: ", why);
    const nccl::Comm comm = begin(*library, *control, *card);
    return complete(*library, control, *card, comm);
  } catch (const Error &error) {
    control->abort(error.message()); // the other ranks wait for this one
    throw;
  }
}

} // namespace tressel::runtime::cuda
