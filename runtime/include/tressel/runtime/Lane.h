// Points: how "when is it done" is said. A lane runs its tasks in order, so one number says how far it is.
#pragma once

#include <cstdint>

namespace tressel::runtime {

/// A task of a lane, by its sequence number from 1 on. Reached when the lane has finished that task. Sequence 0 is
/// reached from the beginning.
struct Point {
  uint16_t lane = 0; ///< number of the lane in the process
  uint64_t sequence = 0;
  explicit operator bool() const { return sequence != 0; }
  bool operator==(const Point &) const = default;
};

/// A point in one word, for atomics: 2^48 tasks a lane last for years.
constexpr uint64_t pack(Point point) { return uint64_t(point.lane) << 48 | point.sequence; }
constexpr Point unpack(uint64_t word) { return {static_cast<uint16_t>(word >> 48), word & ((uint64_t(1) << 48) - 1)}; }

} // namespace tressel::runtime
