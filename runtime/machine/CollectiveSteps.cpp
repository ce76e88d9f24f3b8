#include "tressel/runtime/CollectiveSteps.h"

#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <bit>

namespace tressel::runtime {

CollectiveSteps ringSteps(CollectiveKind kind, int64_t members, int64_t bytes) {
  const bool isHalf = kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter;
  return {(isHalf ? 1 : 2) * (members - 1), dim::ceilDiv(bytes, members), true};
}

CollectiveSteps shortestSteps(CollectiveKind kind, int64_t members, int64_t bytes, double latencySeconds,
                              double bytesPerSecond) {
  const CollectiveSteps ring = ringSteps(kind, members, bytes);
  if (members < 2)
    return ring;
  const auto unsignedMembers = static_cast<uint64_t>(members);
  const int64_t rounds = std::bit_width(unsignedMembers) - 1, most = int64_t(1) << rounds;
  CollectiveSteps other{.isRing = false};
  if (kind == CollectiveKind::Broadcast) {
    other.steps = rounds + (most < members ? 1 : 0);
    other.bytes = bytes;
  } else {
    const int64_t halves = kind == CollectiveKind::AllReduce ? 2 : 1;
    int64_t sent = halves * dim::ceilDiv(bytes * (most - 1), most);
    other.steps = halves * rounds;
    if (most < members) { // in, or out, of the largest power of two; all_reduce both
      other.steps += halves;
      sent += halves * bytes;
    }
    other.bytes = dim::ceilDiv(sent, other.steps);
  }
  auto seconds = [&](const CollectiveSteps &way) {
    return static_cast<double>(way.steps) * (latencySeconds + static_cast<double>(way.bytes) / bytesPerSecond);
  };
  return seconds(other) < seconds(ring) ? other : ring;
}

CollectiveSteps stepsAlong(const MachineModel &machine, DeviceRef from, DeviceRef to, CollectiveKind kind, int64_t members,
                           int64_t bytes, double *seconds) {
  const RouteModel *route = machine.route(from, to);
  if (!route)
    return ringSteps(kind, members, bytes);
  double latency = 0, rate = std::min(machine.find(from)->bytesPerSecond, machine.find(to)->bytesPerSecond);
  for (uint32_t link : route->links) {
    latency += machine.links[link].latencySeconds;
    rate = std::min(rate, machine.links[link].bytesPerSecond);
  }
  const CollectiveSteps steps = shortestSteps(kind, members, bytes, latency, rate);
  if (seconds)
    *seconds = static_cast<double>(steps.steps) * (latency + static_cast<double>(steps.bytes) / rate);
  return steps;
}

} // namespace tressel::runtime
