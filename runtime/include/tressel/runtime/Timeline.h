// What ran when, on what: one object for a plan, a simulation and a measured call alike, so that all are drawn, compared and
// explained by the same code. No behaviour here; Simulate.h and Profile (Executable.h) make them, the writers below show them.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::runtime {

/// Integer picoseconds since the call began: sums of them are exact, whatever their order.
using Picoseconds = int64_t;
constexpr double seconds(Picoseconds t) { return static_cast<double>(t) * 1e-12; }

enum class TimelineKind : uint8_t { Planned, Simulated, Measured };
std::string_view nameOf(TimelineKind kind); ///< "planned", "simulated", "measured"

/// What can do one thing at a time: a stream's engine, or a link that transfers share.
struct Resource {
  std::string name;     ///< "cpu", "gpu0", "gpu0.in", "link pcie0.up"
  DeviceRef device;
  StreamKind kind = StreamKind::Compute;
  Picoseconds busy = 0; ///< with overlapping work counted once
};

enum class SpanKind : uint8_t { Kernel, Copy, Fill, Host, Collective, Control };
std::string_view nameOf(SpanKind kind); ///< "kernel", "copy", ...

/// One command at work.
struct Span {
  uint32_t command = 0; ///< of the schedule's step
  uint32_t resource = 0;
  SpanKind kind = SpanKind::Kernel;
  Picoseconds begin = 0, end = 0;
  std::string name;     ///< the kernel's symbol, or what is copied: "matmul_relu_0", "h2d x"
  uint32_t loc = 0;     ///< index into Schedule::locations
  int64_t flops = 0, bytes = 0;
  /// Spans that it waited for (indices into Timeline::spans), latest end last; and whether the last of them, or the resource, is what
  /// kept it from beginning earlier.
  std::vector<uint32_t> after;
};

struct Timeline {
  TimelineKind kind = TimelineKind::Simulated;
  std::string program; ///< the schedule's name
  std::string machine; ///< the model's name, or the processor's
  std::vector<Resource> resources;
  std::vector<Span> spans;             ///< by begin, then resource
  std::vector<uint32_t> criticalPath;  ///< spans that follow each other and end with the last; empty where it is not known
  Picoseconds end = 0;                 ///< of the call
  Picoseconds lowerBound = 0;          ///< no order of these commands ends earlier: the longest chain, or the busiest resource; 0: not known
};

/// What the writers show beside names and times: lines and ops of the schedule that the timelines are of. Every list of timelines is of
/// one program; the first is the main one, the others are drawn beneath it for comparison.

/// Trace events of the form that Perfetto and Chrome's tracing page open: one process per timeline, one thread per resource, arrows for
/// waits between resources.
std::string timelineJson(const Schedule &schedule, std::span<const Timeline> timelines);
/// One picture, 1200 points wide.
std::string timelineSvg(const Schedule &schedule, std::span<const Timeline> timelines);
/// One self-contained page: the picture, zoomed and moved with the mouse and keys, details of a span where it is pointed at, the table of
/// resources, the critical path. Nothing is loaded from elsewhere.
std::string timelineHtml(const Schedule &schedule, std::span<const Timeline> timelines);
/// The commands and what they wait for, as a graph for Graphviz; the critical path is bold.
std::string timelineDot(const Schedule &schedule, std::span<const Timeline> timelines);
/// A line per resource, `columns` characters wide, for a terminal; with UTF-8 blocks if `utf8`, plain ASCII otherwise.
std::string timelineText(const Schedule &schedule, std::span<const Timeline> timelines, int columns, bool utf8);

} // namespace tressel::runtime
