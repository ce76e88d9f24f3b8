// What the writers share: text made harmless, numbers and times as text, colours, lanes.
#pragma once

#include "tressel/runtime/Timeline.h"

#include <string>
#include <string_view>
#include <vector>

namespace tressel::runtime::timeline {

// Text that may come from a model's file, as the body of a quoted string or an element. All of them first replace what
// no format can hold or what would act on a reader or a terminal: broken UTF-8, noncharacters and marks that change the
// direction of writing become U+FFFD, control characters their pictures (U+2400 and on).
std::string clean(std::string_view text);
std::string jsonQuoted(std::string_view text); ///< with the quotes; safe inside an HTML script too
std::string xmlEscaped(std::string_view text);
std::string dotQuoted(std::string_view text); ///< with the quotes

/// Columns that clean text takes with a font of fixed width: one a character, two where it is wide.
int widthOf(std::string_view clean);
/// At most `columns` wide: the end gives way to an ellipsis ("..." or, if `utf8`, one character).
std::string elided(std::string_view clean, int columns, bool utf8 = true);

/// With so many digits behind the point, whatever the locale.
std::string fixed(double value, int digits);
/// "1.50 ms", "12 ps": three digits or more.
std::string timeText(Picoseconds t);
/// "12.3%".
std::string percent(double share);

/// Where an axis has its marks: every `step`, with texts in one unit.
struct Ticks {
  Picoseconds step = 1;
  Picoseconds unit = 1;
  std::string_view unitName = "ps";
  std::string text(Picoseconds at) const; ///< "2.5 ms"
};
/// So that about `count` marks stand from 0 to `end`: steps of 1, 2 or 5 times a power of ten.
Ticks ticksFor(Picoseconds end, int count);

constexpr SpanKind kAllKinds[] = {SpanKind::Kernel, SpanKind::Copy,       SpanKind::Fill,
                                  SpanKind::Host,   SpanKind::Collective, SpanKind::Control,
                                  SpanKind::Wait,   SpanKind::HiddenWait};
/// "#rrggbb": white text on it is readable, and it stands out from white and from black.
std::string_view colorOf(SpanKind kind);
/// Shades of the kernels' colour, the first is that colour: kernels of one title have one shade, so that they are found
/// again.
inline constexpr std::string_view kKernelShades[] = {"#2f6db5", "#1f5490", "#4558c0", "#1a7296",
                                                     "#5d5fb8", "#2b6a9e", "#24479a"};
size_t shadeOf(std::string_view title);

/// Of a timeline's spans: the lane within their resource, so that no two in a lane overlap; and how many lanes each
/// resource has, at least one.
struct Lanes {
  std::vector<uint32_t> of;
  std::vector<uint32_t> count;
};
Lanes lanesOf(const Timeline &timeline);

/// The span's location, or the unknown one.
const Location &locationOf(const Schedule &schedule, const Span &span);
/// "model.cpp:12", or nothing.
std::string placeOf(const Location &location);
/// What stands on a span: the op where it is known, else the span's name.
const std::string &titleOf(const Schedule &schedule, const Span &span);
/// The colour of a span alone.
std::string_view fillOf(const Schedule &schedule, const Span &span);
/// The latest end and bound: where an axis of all timelines ends. At least 1.
Picoseconds endOf(std::span<const Timeline> timelines);
/// Whether each span is on the critical path.
std::vector<bool> criticalSpans(const Timeline &timeline);
/// "simulated on dgx-h100".
std::string headingOf(const Timeline &timeline);

} // namespace tressel::runtime::timeline
