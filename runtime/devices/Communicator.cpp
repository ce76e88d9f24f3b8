// What all communicators share, and the libraries that have them.
#include "tressel/runtime/Communicator.h"

#include "CommunicatorLibrary.h"
#include "CudaLibrary.h"

#include "runtime/executable/Library.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

namespace tressel::runtime {

Communicator::Communicator(const char *implementation, uint32_t rank, std::vector<std::string> hosts, int64_t timeoutNs)
    : implementation_(implementation), rank_(rank), hosts_(std::move(hosts)), timeoutNs_(timeoutNs) {}
Communicator::~Communicator() = default;

std::string Communicator::nameOf(uint32_t rank) const { return concat("rank ", rank, " (", hosts_[rank], ")"); }

DeviceFailureRef Communicator::blame(FailureKind kind, uint32_t rank, std::string_view what) const {
  DeviceFailure failure;
  failure.kind = kind;
  failure.message = concat(nameOf(rank), " ", what);
  failure.rank = static_cast<int32_t>(rank);
  failure.host = hosts_[rank];
  return std::make_shared<const DeviceFailure>(std::move(failure));
}

void Communicator::check(const CollectiveRun &part, std::span<const Region> regions) const {
  const int64_t source = regions.size() == 2 ? regions[0].bytes : -1,
                target = regions.empty() ? 0 : regions.back().bytes;
  const auto n = static_cast<int64_t>(size());
  const char *wrong = nullptr;
  if (part.work == RankWork::Barrier)
    wrong = regions.empty() ? nullptr : "a barrier has no regions";
  else if (part.work == RankWork::Exchange) {
    if (part.peers.size() != regions.size())
      wrong = "an exchange has a peer for each region";
    for (uint32_t peer : part.peers)
      if (peer >= n || peer == rank_)
        wrong = "peers of an exchange are other ranks of the communicator";
  } else if (part.kind == CollectiveKind::Broadcast) {
    if (part.root >= n)
      wrong = "the root of a broadcast is a rank of the communicator";
    else if (regions.empty() || regions.size() > 2 || (source >= 0 && source != target) ||
             (source < 0 && part.root == rank_))
      wrong = "a part of a broadcast has a target, and at the root a source of as many bytes";
  } else if (regions.size() != 2)
    wrong = "a part of a collective between ranks has a source and a target";
  else if (part.kind == CollectiveKind::AllReduce && source != target)
    wrong = "source and target of an all-reduce have as many bytes";
  else if (part.kind == CollectiveKind::AllGather && target != n * source)
    wrong = "the target of an all-gather has as many bytes as the sources of all ranks";
  else if (part.kind == CollectiveKind::ReduceScatter && source != n * target)
    wrong = "the source of a reduce-scatter has as many bytes as the targets of all ranks";
  if (!wrong && part.work == RankWork::Collective && target % sizeOf(part.type) != 0)
    wrong = "regions hold whole elements";
  if (wrong)
    throwError<Error>("a command that means nothing: ", wrong, " (", describe(part, regions), " of ", n, " ranks)");
}

std::string describe(const CollectiveRun &part, std::span<const Region> regions) {
  if (part.work == RankWork::Barrier)
    return "a barrier";
  if (part.work == RankWork::Exchange)
    return concat("an exchange of ", part.peers.size(), " regions");
  const char *const kinds[] = {"an all-reduce", "an all-gather", "a reduce-scatter", "a broadcast"};
  const char *const reductions[] = {"sum", "product", "minimum", "maximum"};
  const bool reduces = part.kind == CollectiveKind::AllReduce || part.kind == CollectiveKind::ReduceScatter;
  return concat(kinds[static_cast<size_t>(part.kind)], " of ",
                regions.empty() ? "" : concat(regions.front().bytes, " bytes of "), nameOf(part.type),
                reduces ? ", " : "", reduces ? reductions[static_cast<size_t>(part.reduction)] : "",
                part.kind == CollectiveKind::Broadcast ? concat(", root ", part.root) : "");
}

std::shared_ptr<Communicator> makeLocalCommunicator(const std::string &name, uint32_t rank, uint32_t size,
                                                    int64_t timeoutNs) {
  static const auto &library = *static_cast<const CommunicatorLibrary *>(
      libraryEntry("tressel_communicators", "tressel_communicator_library", "a communicator"));
  return library.local(name, rank, size, timeoutNs);
}

std::shared_ptr<Communicator> makeNcclCommunicator(std::shared_ptr<Communicator> control, Device &card) {
  return cudaLibrary().communicator(std::move(control), card);
}

} // namespace tressel::runtime
