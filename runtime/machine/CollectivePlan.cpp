#include "tressel/runtime/CollectivePlan.h"

#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

namespace tressel::runtime {
namespace {

bool isHalf(CollectiveKind kind) { return kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter; }

double secondsOf(const CollectivePhase &phase, const MessageCost &message) {
  return static_cast<double>(phase.steps) * message.seconds(phase.bytes);
}

CollectivePhase ring(CollectiveKind kind, int64_t members, int64_t bytes) {
  return {(isHalf(kind) ? 1 : 2) * (members - 1), dim::ceilDiv(bytes, members)};
}
CollectivePhase tree(CollectiveKind kind, int64_t members, int64_t bytes) {
  const int64_t rounds = std::bit_width(static_cast<uint64_t>(members)) - 1, most = int64_t(1) << rounds;
  if (kind == CollectiveKind::Broadcast)
    return {rounds + (most < members ? 1 : 0), bytes};
  const int64_t halves = isHalf(kind) ? 1 : 2;
  int64_t sent = halves * dim::ceilDiv(bytes * (most - 1), most), steps = halves * rounds;
  // one more exchange for members beyond the largest power of two: in, out, or for all_reduce both
  if (most < members) {
    steps += halves;
    sent += halves * bytes;
  }
  return {steps, dim::ceilDiv(sent, steps)};
}
/// all_reduce by recursive doubling: in round i, members 2^i apart exchange all their bytes.
CollectivePhase doubling(int64_t members, int64_t bytes) {
  const int64_t rounds = std::bit_width(static_cast<uint64_t>(members)) - 1;
  return {rounds + (int64_t(1) << rounds < members ? 2 : 0), bytes};
}

/// The faster of ring and tree algorithms between members that all have channels with this message cost.
CollectivePlan oneLevel(CollectiveKind kind, int64_t members, int64_t bytes, const MessageCost &message,
                        bool crossesHosts) {
  auto plan = [&](CollectiveAlgorithm algorithm, CollectivePhase phase) {
    phase.crossesHosts = crossesHosts;
    return CollectivePlan{algorithm, {phase}, secondsOf(phase, message)};
  };
  CollectivePlan around = plan(CollectiveAlgorithm::Ring, ring(kind, members, bytes));
  if (members < 2 || message.bytesPerSecond == 0) {
    around.seconds = 0;
    return around;
  }
  CollectivePlan best = std::move(around);
  auto consider = [&](CollectivePhase phase) {
    if (CollectivePlan other = plan(CollectiveAlgorithm::Tree, phase); other.seconds < best.seconds)
      best = std::move(other);
  };
  consider(tree(kind, members, bytes));
  if (kind == CollectiveKind::AllReduce)
    consider(doubling(members, bytes));
  return best;
}

/// `isWhole`: all_reduce exchanges all bytes in each phase, which takes fewer messages than exchanging parts.
CollectivePlan hierarchical(CollectiveKind kind, const CollectiveGroup &group, int64_t bytes, bool isWhole = false) {
  const int64_t ofHost = group.members / group.hosts, part = dim::ceilDiv(bytes, ofHost);
  CollectivePlan plan{.algorithm = CollectiveAlgorithm::Hierarchical};
  auto within = [&](CollectiveKind phase) {
    const CollectivePlan one = oneLevel(phase, ofHost, bytes, group.within.message, false);
    plan.phases.push_back(one.phases[0]);
    plan.seconds += one.seconds;
  };
  auto between = [&](int64_t ofEach) {
    const CollectivePlan one = oneLevel(kind, group.hosts, ofEach, group.between.message, true);
    plan.phases.push_back(one.phases[0]);
    plan.seconds += one.seconds;
  };
  switch (kind) {
  case CollectiveKind::AllReduce:
    if (isWhole) {
      within(kind);
      between(bytes);
      break;
    }
    within(CollectiveKind::ReduceScatter);
    between(part);
    within(CollectiveKind::AllGather);
    break;
  case CollectiveKind::ReduceScatter:
    within(kind);
    between(part);
    break;
  case CollectiveKind::AllGather:
    between(part);
    within(kind);
    break;
  case CollectiveKind::Broadcast:
    between(bytes);
    within(kind);
    break;
  }
  return plan;
}

using Senders = std::map<uint32_t, int64_t>; ///< by link: number of members of a host that send through it

/// The channel of a message from one device to another.
Channel channelOf(const MachineModel &machine, DeviceRef from, DeviceRef to, std::vector<uint32_t> links,
                  const Senders &senders, int64_t ofHost) {
  Channel channel{.links = std::move(links)};
  const double memory = std::min(machine.find(from)->bytesPerSecond, machine.find(to)->bytesPerSecond);
  channel.message.bytesPerSecond = channel.aloneBytesPerSecond = memory;
  for (uint32_t link : channel.links) {
    const LinkModel &each = machine.links[link];
    const auto found = senders.find(link);
    const int64_t all = found == senders.end() ? 1 : found->second;
    channel.message.latencySeconds += each.latencySeconds;
    channel.message.bytesPerSecond =
        std::min(channel.message.bytesPerSecond, each.bytesPerSecond / static_cast<double>(all));
    channel.aloneBytesPerSecond = std::min(
        channel.aloneBytesPerSecond, each.bytesPerSecond / static_cast<double>(dim::ceilDiv(all, ofHost)));
  }
  return channel;
}
Channel alongRoute(const MachineModel &machine, DeviceRef from, DeviceRef to,
                   const Senders &senders = {}, int64_t ofHost = 1) {
  const RouteModel *route = machine.route(from, to);
  return route ? channelOf(machine, from, to, route->links, senders, ofHost) : Channel();
}

/// By link, the number of messages that pass it when each device of a host sends to its counterpart on another.
Senders sendersOf(const MachineModel &machine, std::span<const DeviceRef> from, std::span<const DeviceRef> to) {
  Senders senders;
  for (size_t i = 0; i < std::min(from.size(), to.size()); ++i)
    if (const RouteModel *route = machine.route(from[i], to[i]))
      for (uint32_t link : route->links)
        ++senders[link];
  return senders;
}

/// Counts the hosts of a group, and tells whether each has the same number of members.
template <typename Hosts> void countHosts(CollectiveGroup &group, const Hosts &membersOf) {
  group.hosts = static_cast<int64_t>(membersOf.size());
  group.isEven = std::ranges::all_of(membersOf, [&](const auto &each) {
    return each.second.size() == membersOf.begin()->second.size();
  });
}

} // namespace

std::string_view nameOf(CollectiveAlgorithm algorithm) {
  switch (algorithm) {
  case CollectiveAlgorithm::Ring:
    return "ring";
  case CollectiveAlgorithm::Tree:
    return "tree";
  case CollectiveAlgorithm::Hierarchical:
    break;
  }
  return "hierarchical";
}

CollectiveGroup groupOf(const MachineModel &machine, std::span<const DeviceRef> members) {
  CollectiveGroup group{.members = static_cast<int64_t>(members.size())};
  std::map<int64_t, std::vector<DeviceRef>> membersOf;
  for (DeviceRef member : members)
    membersOf[machine.hostOf(member)].push_back(member);
  countHosts(group, membersOf);
  const std::vector<DeviceRef> &first = membersOf[machine.hostOf(members[0])];
  if (first.size() > 1)
    group.within = alongRoute(machine, first[0], first[1]);
  if (group.hosts > 1) {
    const auto second = std::ranges::find_if(
        members, [&](DeviceRef member) { return machine.hostOf(member) != machine.hostOf(members[0]); });
    const std::vector<DeviceRef> &others = membersOf[machine.hostOf(*second)];
    group.between = alongRoute(machine, first[0], others[0], sendersOf(machine, first, others),
                               static_cast<int64_t>(first.size()));
  }
  return group;
}

std::optional<CollectiveGroup> groupOfRanks(const MachineModel &machine, std::span<const int64_t> sizes,
                                            std::span<const uint32_t> axes, DeviceRef local,
                                            int64_t acceleratorsOfRank) {
  int64_t ranks = 1;
  std::vector<int64_t> strides(sizes.size());
  for (size_t axis = sizes.size(); axis-- > 0; ranks *= sizes[axis])
    strides[axis] = ranks;
  if (ranks * acceleratorsOfRank > machine.numAccelerators())
    return std::nullopt;
  // Members of the group that contains rank 0.
  std::vector<int64_t> members{0};
  for (uint32_t axis : axes) {
    std::vector<int64_t> more;
    for (int64_t member : members)
      for (int64_t at = 0; at < sizes[axis]; ++at)
        more.push_back(member + at * strides[axis]);
    members = std::move(more);
  }
  auto deviceOf = [&](int64_t rank) {
    return DeviceRef{local.kind, static_cast<uint16_t>(rank * acceleratorsOfRank + local.index)};
  };
  CollectiveGroup group{.members = static_cast<int64_t>(members.size())};
  std::map<int64_t, std::vector<int64_t>> membersOf;
  for (int64_t rank : members)
    membersOf[machine.hostOf(deviceOf(rank))].push_back(rank);
  countHosts(group, membersOf);
  const std::vector<int64_t> &first = membersOf.begin()->second;
  if (first.size() > 1)
    group.within = alongRoute(machine, local, deviceOf(first[1]));
  if (group.hosts > 1) {
    const auto ofHost = static_cast<int64_t>(first.size());
    const DeviceRef other = deviceOf(std::next(membersOf.begin())->second.front());
    if (machine.hosts == 1) { // the devices of all hosts are in the model
      auto acceleratorsBeside = [&](DeviceRef device) {
        std::vector<DeviceRef> found;
        for (const DeviceModel &each : machine.devices)
          if (each.device.kind == device.kind && each.host == machine.hostOf(device))
            found.push_back(each.device);
        return found;
      };
      group.between = alongRoute(machine, local, other,
                                 sendersOf(machine, acceleratorsBeside(local), acceleratorsBeside(other)), ofHost);
    } else if (const NetworkPort *port = machine.portOf(local)) {
      Senders senders;
      for (const NetworkPort &each : machine.network)
        if (each.device.kind == local.kind)
          for (const auto &list : {each.out, each.in})
            for (uint32_t link : list)
              ++senders[link];
      std::vector<uint32_t> links = port->out;
      links.insert(links.end(), port->in.begin(), port->in.end());
      group.between = channelOf(machine, local, local, std::move(links), senders, ofHost);
    }
  }
  return group;
}

CollectivePlan planCollective(CollectiveKind kind, const CollectiveGroup &group, int64_t bytes) {
  if (group.hosts == 1)
    return oneLevel(kind, group.members, bytes, group.within.message, false);
  if (group.hosts == group.members)
    return oneLevel(kind, group.members, bytes, group.between.message, true);
  // In each step of the ring one message leaves each host, and the step ends with the slowest.
  CollectivePlan around{.phases = {ring(kind, group.members, bytes)}};
  around.phases[0].crossesHosts = true;
  const MessageCost &within = group.within.message;
  MessageCost between = group.between.message;
  between.bytesPerSecond = group.between.aloneBytesPerSecond;
  if (between.bytesPerSecond == 0 || within.bytesPerSecond == 0)
    return around;
  const int64_t each = around.phases[0].bytes;
  around.seconds =
      static_cast<double>(around.phases[0].steps) * std::max(within.seconds(each), between.seconds(each));
  if (!group.isEven)
    return around;
  CollectivePlan best = hierarchical(kind, group, bytes);
  if (kind == CollectiveKind::AllReduce)
    if (CollectivePlan whole = hierarchical(kind, group, bytes, true); whole.seconds < best.seconds)
      best = std::move(whole);
  return best.seconds < around.seconds ? best : around;
}

size_t peerOf(const MachineModel &machine, std::span<const DeviceRef> members, size_t member,
              CollectiveAlgorithm algorithm, const CollectivePhase &phase) {
  const size_t n = members.size();
  if (algorithm != CollectiveAlgorithm::Hierarchical)
    return (member + 1) % n;
  auto hostOf = [&](size_t i) { return machine.hostOf(members[i]); };
  auto placeOf = [&](size_t i) {
    return std::ranges::count_if(members.first(i), [&](DeviceRef each) { return machine.hostOf(each) == hostOf(i); });
  };
  const auto own = placeOf(member);
  for (size_t i = (member + 1) % n; i != member; i = (i + 1) % n)
    if (phase.crossesHosts ? hostOf(i) != hostOf(member) && placeOf(i) == own : hostOf(i) == hostOf(member))
      return i;
  return member;
}

} // namespace tressel::runtime
