// The engine's records as a timeline.
#pragma once

#include "tressel/runtime/Engine.h"
#include "tressel/runtime/Timeline.h"

#include <tressel/profile.h>

#include <span>

namespace tressel::detail {

/// A timeline, and the schedule that holds the names of ops and lines for its writers; it has no commands.
struct EagerTimeline {
  runtime::Schedule names;
  runtime::Timeline timeline;
};

/// Rows: each thread of the program by when it is first seen, then each lane. Time begins with the first record.
EagerTimeline timelineOf(std::span<const runtime::TaskRecord> records, std::string name);
/// The figures, without the drawing.
ProfileReport reportOf(std::span<const runtime::TaskRecord> records);

} // namespace tressel::detail
