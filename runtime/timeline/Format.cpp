#include "Format.h"

#include <limits>
#include <algorithm>
#include <charconv>
#include <functional>
#include <queue>

namespace tressel::runtime::timeline {
namespace {

/// Decodes the next character of supposed UTF-8; 0xFFFFFFFF and one byte if it is invalid.
struct Decoded {
  uint32_t character;
  size_t bytes;
};
constexpr uint32_t kBroken = 0xFFFFFFFF;

Decoded decode(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80)
    return {first, 1};
  const size_t length = first >= 0xF0 && first < 0xF5   ? 4
                        : first >= 0xE0 && first < 0xF0 ? 3
                        : first >= 0xC2 && first < 0xE0 ? 2
                                                        : 0;
  if (!length || text.size() < length)
    return {kBroken, 1};
  uint32_t c = first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80)
      return {kBroken, 1};
    c = c << 6 | (next & 0x3F);
  }
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < least[length] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
    return {kBroken, 1};
  return {c, length};
}

bool isHarmful(uint32_t c) {
  return c == kBroken || (c >= 0x80 && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || (c >= 0xFDD0 && c < 0xFDF0) || c == 0xFEFF ||
         (c & 0xFFFE) == 0xFFFE;
}

bool isWide(uint32_t c) {
  return (c >= 0x1100 && c < 0x1160) || (c >= 0x2E80 && c < 0xA4D0) || (c >= 0xAC00 && c < 0xD7A4) ||
         (c >= 0xF900 && c < 0xFB00) || (c >= 0xFE30 && c < 0xFE70) || (c >= 0xFF00 && c < 0xFF61) || c >= 0x1F300;
}

} // namespace

std::string clean(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [c, bytes] = decode(text);
    if (c < 0x20 || c == 0x7F) {
      const auto picture = static_cast<char>(c == 0x7F ? 0x21 : c);
      out += {'\xE2', '\x90', static_cast<char>(0x80 + picture)};
    } else if (isHarmful(c)) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::string jsonQuoted(std::string_view text) {
  std::string out = "\"";
  for (char c : clean(text))
    switch (c) {
    case '"':
    case '\\':
      out += {'\\', c};
      break;
    case '<': // "</script>" ends a script even within a string, and so may "<!--"
      out += "\\u003c";
      break;
    case '>':
      out += "\\u003e";
      break;
    case '&':
      out += "\\u0026";
      break;
    default:
      out += c;
    }
  return out + "\"";
}

std::string xmlEscaped(std::string_view text) {
  std::string out;
  for (char c : clean(text))
    switch (c) {
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '&':
      out += "&amp;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += c;
    }
  return out;
}

std::string dotQuoted(std::string_view text) {
  std::string out = "\"";
  for (char c : clean(text)) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
    if (c == '&') // Graphviz decodes entities in labels
      out += "amp;";
  }
  return out + "\"";
}

int widthOf(std::string_view clean) {
  int width = 0;
  while (!clean.empty()) {
    const auto [c, bytes] = decode(clean);
    width += isWide(c) ? 2 : 1;
    clean.remove_prefix(bytes);
  }
  return width;
}

std::string elided(std::string_view clean, int columns, bool utf8) {
  if (widthOf(clean) <= columns)
    return std::string(clean);
  const std::string_view mark = utf8 ? "\xE2\x80\xA6" : "...";
  const int room = columns - (utf8 ? 1 : 3);
  if (room < 1)
    return {};
  size_t kept = 0;
  for (int width = 0;;) {
    const auto [c, bytes] = decode(clean.substr(kept));
    width += isWide(c) ? 2 : 1;
    if (width > room)
      return std::string(clean.substr(0, kept)) + std::string(mark);
    kept += bytes;
  }
}

std::string fixed(double value, int digits) {
  char text[400];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits).ptr};
}

namespace {
struct Unit {
  Picoseconds size;
  std::string_view name;
};
constexpr Unit kUnits[] = {{1'000'000'000'000, "s"}, {1'000'000'000, "ms"}, {1'000'000, "us"}, {1000, "ns"}, {1, "ps"}};
const Unit &unitOf(Picoseconds t) {
  for (const Unit &unit : kUnits)
    if (t >= unit.size)
      return unit;
  return kUnits[4];
}
} // namespace

std::string timeText(Picoseconds t) {
  if (t < 0)
    return "-" + timeText(-std::max(t, -std::numeric_limits<Picoseconds>::max()));
  const Unit &unit = unitOf(t);
  const double value = static_cast<double>(t) / static_cast<double>(unit.size);
  return fixed(value, unit.size == 1 || value >= 100 ? 0 : value >= 10 ? 1 : 2) + " " + std::string(unit.name);
}

std::string percent(double share) { return fixed(100 * share, 1) + "%"; }

std::string Ticks::text(Picoseconds at) const {
  std::string number = fixed(static_cast<double>(at) / static_cast<double>(unit), 3);
  while (number.ends_with('0'))
    number.pop_back();
  if (number.ends_with('.'))
    number.pop_back();
  return number + " " + std::string(unitName);
}

Ticks ticksFor(Picoseconds end, int count) {
  const Picoseconds least = std::max<Picoseconds>(1, end / std::max(1, count));
  Picoseconds step = 1;
  while (step <= least / 10)
    step *= 10;
  for (int factor : {1, 2, 5, 10})
    if (step * factor >= least) {
      step *= factor;
      break;
    }
  const Unit &unit = unitOf(end);
  return {step, unit.size, unit.name};
}

std::string_view colorOf(SpanKind kind) {
  switch (kind) {
  case SpanKind::Kernel:
    return kKernelShades[0];
  case SpanKind::Copy:
    return "#c2570c";
  case SpanKind::Fill:
    return "#6b7280";
  case SpanKind::Host:
    return "#15803d";
  case SpanKind::Collective:
    return "#8b45d6";
  case SpanKind::Control:
    return "#0f7a80";
  case SpanKind::Wait:
    return "#8c5566";
  case SpanKind::HiddenWait:
    return "#c81e3a";
  }
  return "#6b7280";
}

size_t shadeOf(std::string_view title) {
  uint32_t hash = 2166136261; // FNV-1a
  for (char c : title)
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return (hash ^ hash >> 16) % std::size(kKernelShades);
}

Lanes lanesOf(const Timeline &t) {
  // By resource: busy lanes by the time at which they become free, and free lanes, of which the lowest is taken.
  using Later = std::greater<>;
  struct State {
    std::priority_queue<std::pair<Picoseconds, uint32_t>, std::vector<std::pair<Picoseconds, uint32_t>>, Later> busy;
    std::priority_queue<uint32_t, std::vector<uint32_t>, Later> free;
  };
  std::vector<State> states(t.resources.size());
  Lanes lanes{std::vector<uint32_t>(t.spans.size()), std::vector<uint32_t>(t.resources.size(), 0)};
  for (size_t i = 0; i < t.spans.size(); ++i) {
    const Span &span = t.spans[i];
    State &state = states[span.resource];
    for (; !state.busy.empty() && state.busy.top().first <= span.begin; state.busy.pop())
      state.free.push(state.busy.top().second);
    uint32_t lane = lanes.count[span.resource];
    if (state.free.empty()) {
      ++lanes.count[span.resource];
    } else {
      lane = state.free.top();
      state.free.pop();
    }
    state.busy.emplace(span.end, lane);
    lanes.of[i] = lane;
  }
  for (uint32_t &count : lanes.count)
    count = std::max(1u, count);
  return lanes;
}

const Location &locationOf(const Schedule &schedule, const Span &span) {
  static const Location unknown;
  return span.loc < schedule.locations.size() ? schedule.locations[span.loc] : unknown;
}

std::string placeOf(const Location &location) {
  if (location.file.empty())
    return {};
  return location.line ? location.file + ":" + std::to_string(location.line) : location.file;
}

const std::string &titleOf(const Schedule &schedule, const Span &span) {
  const Location &location = locationOf(schedule, span);
  return span.kind == SpanKind::Kernel && !location.op.empty() ? location.op : span.name;
}

std::string_view fillOf(const Schedule &schedule, const Span &span) {
  return span.kind == SpanKind::Kernel ? kKernelShades[shadeOf(titleOf(schedule, span))] : colorOf(span.kind);
}

Picoseconds endOf(std::span<const Timeline> timelines) {
  Picoseconds end = 1;
  for (const Timeline &t : timelines)
    end = std::max({end, t.end, t.lowerBound});
  return end;
}

std::vector<bool> criticalSpans(const Timeline &timeline) {
  std::vector<bool> critical(timeline.spans.size());
  for (uint32_t span : timeline.criticalPath)
    critical[span] = true;
  return critical;
}

std::string headingOf(const Timeline &timeline) {
  return std::string(nameOf(timeline.kind)) + (timeline.machine.empty() ? "" : " on " + timeline.machine);
}

} // namespace tressel::runtime::timeline
