// Points: how "when is it done" is said. A lane runs its tasks in order, so one number says how far it is. The tasks of an
// engine are numbered through over all of its lanes, so of two points of different lanes it is known which came first.
#pragma once

#include <cstdint>

namespace tressel::runtime {

/// Lanes that one engine may have, and engines that a process may have at a time.
inline constexpr uint32_t kLanesPerEngine = 8, kMaxEngines = 32;

/// A task of a lane, by its number from 1 on. Reached when the lane has finished that task. Number 0 is reached from the
/// beginning.
struct Point {
  uint16_t lane = 0; ///< number of the lane in the process: engine * kLanesPerEngine + lane of the engine
  uint64_t sequence = 0;
  explicit operator bool() const { return sequence != 0; }
  bool operator==(const Point &) const = default;
};

/// A point in one word, for atomics: 2^48 tasks last for years.
constexpr uint64_t pack(Point point) { return uint64_t(point.lane) << 48 | point.sequence; }
constexpr Point unpack(uint64_t word) { return {static_cast<uint16_t>(word >> 48), word & ((uint64_t(1) << 48) - 1)}; }

/// Tasks of several lanes of one engine: those of `lanes` that came no later than the task `sequence`. Who waits for
/// them may wait for a few more than used the bytes, but never for a later one.
struct Uses {
  uint8_t engine = 0;
  uint8_t lanes = 0; ///< a bit for each
  uint64_t sequence = 0;
  explicit operator bool() const { return lanes != 0; }
  bool operator==(const Uses &) const = default;
};
static_assert(kLanesPerEngine == 8 && kMaxEngines <= 256, "Uses has a bit for each lane and a byte for the engine");

constexpr uint64_t pack(Uses uses) { return uint64_t(uses.engine) << 56 | uint64_t(uses.lanes) << 48 | uses.sequence; }
constexpr Uses unpackUses(uint64_t word) {
  return {static_cast<uint8_t>(word >> 56), static_cast<uint8_t>(word >> 48), word & ((uint64_t(1) << 48) - 1)};
}

} // namespace tressel::runtime
