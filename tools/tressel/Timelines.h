// The files of --timeline.
#pragma once

#include "tressel/runtime/Timeline.h"

#include <span>
#include <string>

namespace tressel::tool {

/// Throws UsageError for a name that does not say which form is wanted: "-" (a terminal's), or one that ends with
/// .json, .svg, .html or .dot.
void checkTimelineFile(const std::string &file);
/// Writes them in the form that the name says. Throws EnvironmentError.
void writeTimelines(const std::string &file, const runtime::Schedule &schedule,
                    std::span<const runtime::Timeline> timelines);
/// What the processor calls itself: the machine of measured timelines.
std::string processorName();

} // namespace tressel::tool
