// Shared by the writers: escaping of text, formatting of numbers and times, colours, lanes.
#pragma once

#include "tressel/runtime/Timeline.h"

#include <string>
#include <string_view>
#include <vector>

namespace tressel::runtime::timeline {

// Escaping of text that may come from a model's file, for a quoted string or an element. All functions first replace
// what no format can hold, or what a reader or terminal would interpret: broken UTF-8, noncharacters and marks that
// change the direction of writing become U+FFFD, control characters their pictures (U+2400 and on).
std::string clean(std::string_view text);
std::string jsonQuoted(std::string_view text); ///< with the quotes; safe inside an HTML script too
std::string xmlEscaped(std::string_view text);
std::string dotQuoted(std::string_view text); ///< with the quotes

/// Columns of clean text in a font of fixed width: one per character, two for wide characters.
int widthOf(std::string_view clean);
/// Text of at most `columns`, with an ellipsis in place of a longer end ("..." or, if `utf8`, one character).
std::string elided(std::string_view clean, int columns, bool utf8 = true);

/// A number with `digits` decimals, independent of the locale.
std::string fixed(double value, int digits);
/// "1.50 ms", "12 ps": three digits or more.
std::string timeText(Picoseconds t);
/// "12.3%".
std::string percent(double share);

/// The marks of an axis: every `step`, with labels in one unit.
struct Ticks {
  Picoseconds step = 1;
  Picoseconds unit = 1;
  std::string_view unitName = "ps";
  std::string text(Picoseconds at) const; ///< "2.5 ms"
};
/// About `count` marks from 0 to `end`, at steps of 1, 2 or 5 times a power of ten.
Ticks ticksFor(Picoseconds end, int count);

constexpr SpanKind kAllKinds[] = {SpanKind::Kernel, SpanKind::Copy,       SpanKind::Fill,
                                  SpanKind::Host,   SpanKind::Collective, SpanKind::Control,
                                  SpanKind::Wait,   SpanKind::HiddenWait};
/// The colour of a kind, "#rrggbb". White text on it is readable, and it contrasts with white and with black.
std::string_view colorOf(SpanKind kind);
/// Shades of the kernels' colour, the first that colour itself. Kernels of one title have the same shade, so that the
/// eye finds them again.
inline constexpr std::string_view kKernelShades[] = {"#2f6db5", "#1f5490", "#4558c0", "#1a7296",
                                                     "#5d5fb8", "#2b6a9e", "#24479a"};
size_t shadeOf(std::string_view title);

/// Assigns each span a lane within its resource, so that spans of a lane do not overlap; and the number of lanes of
/// each resource, at least one.
struct Lanes {
  std::vector<uint32_t> of;
  std::vector<uint32_t> count;
};
Lanes lanesOf(const Timeline &timeline);

/// The span's location, or the unknown one.
const Location &locationOf(const Schedule &schedule, const Span &span);
/// "model.cpp:12", or nothing.
std::string placeOf(const Location &location);
/// The label of a span: the op where it is known, else the span's name.
const std::string &titleOf(const Schedule &schedule, const Span &span);
/// The fill colour of a span, independent of other spans.
std::string_view fillOf(const Schedule &schedule, const Span &span);
/// The latest end or bound of all timelines, where their common axis ends. At least 1.
Picoseconds endOf(std::span<const Timeline> timelines);
/// Whether each span is on the critical path.
std::vector<bool> criticalSpans(const Timeline &timeline);
/// "simulated on dgx-h100".
std::string headingOf(const Timeline &timeline);

} // namespace tressel::runtime::timeline
