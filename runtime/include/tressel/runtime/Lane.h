// Points: how "when is it done" is said. A lane runs its tasks in order, so one number says how far it is.
#pragma once

#include <cstdint>

namespace tressel::runtime {

class Lane;

/// A task of a lane, by its sequence number from 1 on. Reached when the lane has finished that task. Sequence 0 is
/// reached from the beginning.
struct Point {
  Lane *lane = nullptr;
  uint64_t sequence = 0;
  explicit operator bool() const { return sequence != 0; }
};

} // namespace tressel::runtime
