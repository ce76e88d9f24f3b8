// What ran when, on what: one object for a plan, a simulation and a measured call alike, so that all are drawn,
// compared and explained by the same code. The simulator and the profile of a call (Executable.h) make them, the
// writers below show them.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::runtime {

struct Profile;

/// Integer picoseconds since the call began: sums of them are exact, whatever their order.
using Picoseconds = int64_t;
constexpr double seconds(Picoseconds t) { return static_cast<double>(t) * 1e-12; }
/// Rounded up. Throws InputError for more than 10^6 s (eleven days), and for what is no number: figures of a machine
/// that lead there are wrong, and sums of such times would not fit.
Picoseconds picoseconds(double seconds);
/// As that does, for a time in picoseconds that is not yet a whole number.
Picoseconds wholePicoseconds(double picoseconds);

enum class TimelineKind : uint8_t { Planned, Simulated, Measured };
std::string_view nameOf(TimelineKind kind); ///< "planned", "simulated", "measured"

/// What does the work: a stream's engine, which does one thing at a time, or a link, which transfers share.
struct Resource {
  std::string name; ///< "cpu", "gpu0", "gpu0.in", "link pcie0.up"
  DeviceRef device;
  StreamKind kind = StreamKind::Compute;
  Picoseconds busy = 0; ///< with overlapping work counted once
};

/// Wait and HiddenWait: a thread of the program stands still, because it was told to wait or because of what else it does.
enum class SpanKind : uint8_t { Kernel, Copy, Fill, Host, Collective, Control, Wait, HiddenWait };
std::string_view nameOf(SpanKind kind); ///< "kernel", "copy", ...

/// One command at work.
struct Span {
  uint32_t command = 0; ///< of the schedule's step
  uint32_t resource = 0;
  SpanKind kind = SpanKind::Kernel;
  Picoseconds begin = 0, end = 0;
  std::string name;             ///< the kernel's symbol, or what is copied: "matmul_relu_0", "h2d x"
  uint32_t loc = 0;             ///< index into Schedule::locations
  int64_t flops = 0, bytes = 0; ///< 0: none, or not known
  /// The spans that it waited for by a wait of the schedule (indices into Timeline::spans), latest end last. What its
  /// resource did before it is not among them.
  std::vector<uint32_t> after;
};

struct Timeline {
  TimelineKind kind = TimelineKind::Simulated;
  std::string program; ///< the schedule's name
  std::string machine; ///< the model's name, or the processor's
  std::vector<Resource> resources;
  std::vector<Span> spans; ///< by begin, then resource
  std::vector<uint32_t>
      criticalPath;    ///< spans that follow each other and end with the last; empty where it is not known
  Picoseconds end = 0; ///< of the call
  /// Of accelerators, the time in which they compute and move bytes at once, over the time in which they compute or
  /// that in which they move bytes, whichever is shorter on each: unions of intervals, so what runs side by side counts
  /// once. Nothing where there is no such time.
  std::optional<double> sideBySide = {};
  Picoseconds lowerBound =
      0; ///< no order of these commands ends earlier: the longest chain, or the busiest resource; 0: not known
};

// Making them.

/// One resource per stream, in their order, nothing done yet.
std::vector<Resource> resourcesOf(const Schedule &schedule);
/// What a command of `step` is, without times and waits: on the resource of its stream. A command with bodies is one
/// span; how much is done in it depends on the run, so it has no flops and bytes. Sizes of the schedule that are
/// symbolic count as not known: give the instantiated one (Instantiate.h).
Span spanOf(const Schedule &schedule, uint32_t command);
/// Puts spans into their order (by begin, then resource, then command) with `after` and `criticalPath` renumbered and
/// sorted, counts `busy` of all resources and `sideBySide`, and moves `end` behind the last span.
void arrange(Timeline &timeline);
/// One call by the clock: the profile of it, of this schedule (with numbers for its symbols). Time begins with the
/// first command. Which chain of commands bounds the call is not known from this.
Timeline measured(const Schedule &schedule, const Profile &profile, std::string machine = {});

// Showing them. Lines and ops are those of the schedule that the timelines are of: every list is of one program; the
// first is the main one, the others are drawn beneath it for comparison, on one axis. The same timelines give the same
// bytes, anywhere. Names may hold anything: what cannot be shown, or would be read as a command, is replaced (control
// characters, broken UTF-8), the rest is quoted.

/// Trace events of the form that Perfetto and Chrome's tracing page open: one process per timeline, a thread per
/// resource (several where work overlaps on it) and one for the critical path, arrows for waits between resources.
std::string timelineJson(const Schedule &schedule, std::span<const Timeline> timelines);
/// One picture, 1200 points wide. What is narrower than half a point is drawn together.
std::string timelineSvg(const Schedule &schedule, std::span<const Timeline> timelines);
/// One self-contained page: the picture, zoomed and moved with the mouse and keys, details of a span where it is
/// pointed at, the table of resources, the critical path. Nothing is loaded from elsewhere.
std::string timelineHtml(const Schedule &schedule, std::span<const Timeline> timelines);
/// The commands of the first timeline and what they wait for, as a graph for Graphviz; the critical path is bold.
std::string timelineDot(const Schedule &schedule, std::span<const Timeline> timelines);
using TimelineWriter = std::string (*)(const Schedule &, std::span<const Timeline>);
/// Of the form that the end of a file's name says: .json, .svg, .html or .dot; null for other names.
TimelineWriter timelineWriter(std::string_view file);
/// A line per resource, `columns` characters wide (at least 40), for a terminal; with UTF-8 blocks if `utf8`, plain
/// ASCII otherwise.
std::string timelineText(const Schedule &schedule, std::span<const Timeline> timelines, int columns, bool utf8);

} // namespace tressel::runtime
