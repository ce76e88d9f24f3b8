// Draws timelines in a terminal: one line of characters per resource.
#include "Format.h"

#include <algorithm>
#include <array>

namespace tressel::runtime {

using namespace timeline;

namespace {

struct Glyphs {
  std::array<std::string_view, std::size(kAllKinds)> kinds;
  std::string_view little, idle, edge, mark, bound;
};
constexpr Glyphs kBlocks = {{"█", "▒", "░", "▓", "▚", "▞", "┄", "╳"}, "·", " ", "│", "┴", "▲"};
constexpr Glyphs kPlain = {{"#", "=", "-", "h", "@", "%", "w", "!"}, ".", " ", "|", "+", "^"};

/// Time of each kind in each of `columns` equal parts of the time up to `end`.
using Cell = std::array<double, std::size(kAllKinds)>;
void addWork(std::vector<Cell> &cells, const Span &span, Picoseconds end) {
  const double scale = static_cast<double>(cells.size()) / static_cast<double>(end);
  const double begin = static_cast<double>(span.begin) * scale, finish = static_cast<double>(span.end) * scale;
  for (auto c = static_cast<size_t>(begin); c < cells.size() && static_cast<double>(c) <= finish; ++c) {
    const double part = std::min(finish, static_cast<double>(c + 1)) - std::max(begin, static_cast<double>(c));
    cells[c][static_cast<size_t>(span.kind)] += std::max(part, 1e-9); // a span of no time must show too
  }
}

std::string row(const std::vector<Cell> &cells, const Glyphs &glyphs) {
  std::string text;
  for (const Cell &cell : cells) {
    double all = 0;
    for (double part : cell)
      all += part;
    const auto most = static_cast<size_t>(std::ranges::max_element(cell) - cell.begin());
    text += all >= 0.5 ? glyphs.kinds[most] : all > 0 ? glyphs.little : glyphs.idle;
  }
  return text;
}

} // namespace

std::string timelineText(const Schedule &schedule, std::span<const Timeline> timelines, int columns, bool utf8) {
  const Glyphs &glyphs = utf8 ? kBlocks : kPlain;
  const Picoseconds end = endOf(timelines);
  int label = 0;
  for (const Timeline &t : timelines) {
    for (const Resource &resource : t.resources)
      label = std::max(label, widthOf(clean(resource.name)));
    label = std::max(label, t.criticalPath.empty() ? 0 : 13);
  }
  columns = std::max(columns, 40);
  label = std::min(label, columns / 4);
  const int width = columns - label - 10; // " |", "| 100.0%"
  auto labelled = [&](std::string_view name) {
    std::string text = elided(clean(name), label, utf8);
    return text.append(static_cast<size_t>(std::max(0, label - widthOf(text))), ' ') + " " + std::string(glyphs.edge);
  };

  std::string out;
  bool used[std::size(kAllKinds)] = {};
  for (const Timeline &t : timelines) {
    std::string heading = clean(t.program + ": " + headingOf(t)) + ", " + timeText(t.end);
    if (t.lowerBound)
      heading += ", at least " + timeText(t.lowerBound);
    if (t.sideBySide)
      heading += ", side by side " + fixed(*t.sideBySide, 2);
    out += heading + "\n";
    std::vector<std::vector<Cell>> rows(t.resources.size(), std::vector<Cell>(static_cast<size_t>(width)));
    std::vector<Picoseconds> until(t.resources.size(), 0);
    for (Span span : t.spans) {
      used[static_cast<size_t>(span.kind)] = true;
      span.begin = std::max(span.begin, until[span.resource]); // concurrent spans of a resource count once
      span.end = std::max(span.begin, span.end);
      until[span.resource] = span.end;
      addWork(rows[span.resource], span, end);
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      std::string share = percent(t.end ? static_cast<double>(t.resources[r].busy) / static_cast<double>(t.end) : 0);
      share.insert(0, 7 - std::min<size_t>(7, share.size()), ' ');
      out += labelled(t.resources[r].name) + row(rows[r], glyphs) + std::string(glyphs.edge) + share + "\n";
    }
    if (!t.criticalPath.empty()) {
      std::vector<Cell> cells(static_cast<size_t>(width));
      for (uint32_t i : t.criticalPath)
        addWork(cells, t.spans[i], end);
      out += labelled("critical path") + row(cells, glyphs) + std::string(glyphs.edge) + "\n";
    }
    if (t.lowerBound) {
      const auto at =
          std::min(width - 1, static_cast<int>(static_cast<double>(t.lowerBound) / static_cast<double>(end) * width));
      const bool left = at + 5 > width; // the label does not fit at the right
      out += std::string(static_cast<size_t>(label + 2 + at - (left ? 12 : 0)), ' ') +
             (left ? "lower bound " + std::string(glyphs.bound) : std::string(glyphs.bound) + " lower bound") + "\n";
    }
  }

  // The axis: marks, then their labels where they do not overlap.
  const Ticks ticks = ticksFor(end, std::max(2, width / 9));
  std::string marks, texts(static_cast<size_t>(label + 2), ' ');
  int at = 0;
  for (Picoseconds time = 0; time <= end; time += ticks.step) {
    const auto column = static_cast<int>(static_cast<double>(time) / static_cast<double>(end) * width);
    if (column >= width)
      break;
    for (; at < column; ++at)
      marks += utf8 ? "─" : "-";
    marks += glyphs.mark;
    ++at;
    const std::string text = ticks.text(time);
    if (label + 2 + column >= static_cast<int>(texts.size()) &&
        label + 2 + column + static_cast<int>(text.size()) <= columns)
      texts += std::string(static_cast<size_t>(label + 2 + column) - texts.size(), ' ') + text + " ";
  }
  for (; at < width; ++at)
    marks += utf8 ? "─" : "-";
  out += std::string(static_cast<size_t>(label + 2), ' ') + marks + "\n" +
         texts.substr(0, texts.find_last_not_of(' ') + 1) + "\n";

  std::string legend;
  for (SpanKind kind : kAllKinds)
    if (used[static_cast<size_t>(kind)])
      legend += std::string(glyphs.kinds[static_cast<size_t>(kind)]) + " " + std::string(nameOf(kind)) + "   ";
  return out + std::string(static_cast<size_t>(label + 2), ' ') + legend + std::string(glyphs.little) +
         " less than half of the time\n";
}

} // namespace tressel::runtime
