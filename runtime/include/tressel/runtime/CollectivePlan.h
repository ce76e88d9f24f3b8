// The messages of a collective: which algorithm is the shortest between its members on a machine, and how long it
// takes. Placement, predictions and simulated devices all ask here.
#pragma once

#include "tressel/runtime/MachineModel.h"

#include <optional>
#include <span>
#include <vector>

namespace tressel::runtime {

/// What one message costs where nothing else is sent: latencySeconds + bytes / bytesPerSecond.
struct MessageCost {
  double latencySeconds = 0, bytesPerSecond = 0;
  double seconds(int64_t bytes) const { return latencySeconds + static_cast<double>(bytes) / bytesPerSecond; }
};

/// The way of messages between two kinds of members: those of one host, or of two.
struct Channel {
  std::vector<uint32_t> links; ///< of the machine; empty: there is no way
  MessageCost message;         ///< while every member of a host sends such a message
  /// While one member of a host alone sends: members of one host may share an adapter.
  double aloneBytesPerSecond = 0;
};

/// The members of a collective by the hosts that they are on.
struct CollectiveGroup {
  int64_t members = 1;
  int64_t hosts = 1;  ///< that have members
  bool isEven = true; ///< as many members on each host
  Channel within;     ///< from a member to another of its host, where a host has several
  Channel between;    ///< from a member to one of another host, where there are several
};
/// Of members in the order given, where neighbours on one host stand for all, and so for two hosts.
CollectiveGroup groupOf(const MachineModel &machine, std::span<const DeviceRef> members);
/// Of ranks along `axes` of a mesh of `sizes` (a program that every rank runs, Ranks.h): rank r has the accelerators from
/// r times `acceleratorsOfRank` on, of which `local` is the same one on each rank. As all ranks send at once, an adapter
/// is shared by all accelerators of a host. Nothing where the machine has fewer accelerators than the mesh needs.
std::optional<CollectiveGroup> groupOfRanks(const MachineModel &machine, std::span<const int64_t> sizes,
                                            std::span<const uint32_t> axes, DeviceRef local,
                                            int64_t acceleratorsOfRank);

enum class CollectiveAlgorithm : uint8_t {
  Ring,         ///< around all members, each sending to the next
  Tree,         ///< recursive halving and doubling, or doubling alone; of a broadcast, a binomial tree
  Hierarchical, ///< within each host, and between members at the same place of each host
};
std::string_view nameOf(CollectiveAlgorithm algorithm);

/// So many steps, in each of which every member sends so many bytes to one other and gets as many.
struct CollectivePhase {
  int64_t steps = 0, bytes = 0;
  bool crossesHosts = false; ///< messages take CollectiveGroup::between
  bool operator==(const CollectivePhase &) const = default;
};
struct CollectivePlan {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring;
  std::vector<CollectivePhase> phases; ///< one after the other
  double seconds = 0;                  ///< where nothing else is sent; 0 where there is no way
};
/// The shortest way for members of which each ends with `bytes` (of reduce_scatter: begins with them). The ring and the
/// tree are those of Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH"
/// (2005): a tree takes log2 n steps, for all_reduce twice as many, or as many with all bytes in each; where n is no
/// power of two, the members beyond the last one send theirs to others first, and get the result from them. Hierarchical
/// all_reduce is a reduce_scatter within hosts, an all_reduce of each part between hosts, an all_gather within hosts; or,
/// of few bytes, an all_reduce within hosts and one between them. reduce_scatter and all_gather are the first two and the
/// last two parts of that; a broadcast goes between hosts, then within them. Of equal times the ring is taken.
CollectivePlan planCollective(CollectiveKind kind, const CollectiveGroup &group, int64_t bytes);

/// To whom a member sends in a phase, as an index into `members`: the next one; of a hierarchical plan the next one of
/// its host, or the one at the same place of the next host.
size_t peerOf(const MachineModel &machine, std::span<const DeviceRef> members, size_t member,
              CollectiveAlgorithm algorithm, const CollectivePhase &phase);

} // namespace tressel::runtime
