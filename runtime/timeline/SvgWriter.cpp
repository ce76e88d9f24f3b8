// Draws all timelines in one picture, one above the other on a common axis. It is for documents and reports: bounded in
// size for any number of commands, and without a script.
#include "Format.h"

#include <algorithm>
#include <map>

namespace tressel::runtime {

using namespace timeline;

namespace {

constexpr double kWidth = 1200, kLeft = 150,
                 kRight = 1126; // width of the picture; begin and end of the time axis in it
constexpr double kLaneHeight = 20, kLaneGap = 2,
                 kRowGap = 8;       // height of a lane; gaps between lanes and between resources
constexpr double kMostHeight = 132; // most height of a resource: many lanes become thinner
constexpr double kCharacter = 6.05; // width of a character, 10 point, fixed width
constexpr double kStripe = 2.5;     // height of the critical path's stripe within its boxes
constexpr double kLeast = 0.5;      // narrower spans share a box, ...
constexpr size_t kMostBoxes = 600;  // ... and so do wider ones if there are more than this

std::string number(double value) {
  std::string text = fixed(value, 2);
  while (text.ends_with('0'))
    text.pop_back();
  if (text.ends_with('.'))
    text.pop_back();
  return text;
}

constexpr std::string_view kStyle = R"(<style>
text { font: 11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2937 }
.title { font-size: 15px; font-weight: 600 }
.heading { font-size: 12px; font-weight: 600 }
.faint { fill: #6b7280 }
.end { text-anchor: end }
.middle { text-anchor: middle }
.on { font: 10px "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #fff }
.page { fill: #fff }
.row { fill: #f3f4f6 }
.grid { stroke: #d1d5db; stroke-width: 0.75 }
.critical { fill: #e11d48 }
.path { fill: none; stroke: #e11d48; stroke-width: 1.25 }
.bound { stroke: #1f2937; stroke-width: 1.5; stroke-dasharray: 5 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb }
  .faint { fill: #9ca3af }
  .on { fill: #fff }
  .page { fill: #14171c }
  .row { fill: #1f242c }
  .grid { stroke: #374151 }
  .critical { fill: #fb7185 }
  .path { stroke: #fb7185 }
  .bound { stroke: #e5e7eb }
}
</style>
)";

class Picture {
public:
  Picture(const Schedule &schedule, std::span<const Timeline> timelines)
      : schedule_(schedule), timelines_(timelines), end_(endOf(timelines)), ticks_(ticksFor(end_, 9)) {}

  std::string draw() && {
    line(text(16, 26, "title", timelines_.empty() ? schedule_.name : timelines_.front().program, 100));
    legend();
    y_ = 44;
    for (const Timeline &t : timelines_)
      panel(t);
    axis();
    const std::string height = number(y_);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(kWidth) + " " + height + "\" width=\"" +
           number(kWidth) + "\" height=\"" + height + "\">\n" + std::string(kStyle) + "<rect class=\"page\" width=\"" +
           number(kWidth) + "\" height=\"" + height + "\"/>\n" + body_ + "</svg>\n";
  }

private:
  void line(std::string_view element) { (body_ += element) += '\n'; }
  double x(Picoseconds t) const {
    return kLeft + static_cast<double>(t) / static_cast<double>(end_) * (kRight - kLeft);
  }

  static std::string text(double x, double y, std::string_view style, std::string_view what, int columns) {
    return "<text class=\"" + std::string(style) + "\" x=\"" + number(x) + "\" y=\"" + number(y) + "\">" +
           xmlEscaped(elided(clean(what), columns)) + "</text>";
  }
  static std::string straight(std::string_view style, double x1, double y1, double x2, double y2) {
    return "<line class=\"" + std::string(style) + "\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" +
           number(x2) + "\" y2=\"" + number(y2) + "\"/>";
  }

  /// The kinds that occur, at the right of the title, drawn from right to left.
  void legend() {
    bool bound = false, path = false, kinds[std::size(kAllKinds)] = {};
    for (const Timeline &t : timelines_) {
      bound |= t.lowerBound > 0;
      path |= !t.criticalPath.empty();
      for (const Span &span : t.spans)
        kinds[static_cast<size_t>(span.kind)] = true;
    }
    double right = kWidth - 16;
    auto entry = [&](std::string_view name, const std::string &mark) {
      right -= 5.6 * static_cast<double>(name.size()) + 8; // about as wide as the text
      line(text(right, 26, "faint", name, 20));
      line("<g transform=\"translate(" + number(right - 17) + " 16)\">" + mark + "</g>");
      right -= 29;
    };
    if (bound)
      entry("lower bound", "<line class=\"bound\" x1=\"6\" x2=\"6\" y1=\"-1\" y2=\"13\"/>");
    if (path)
      entry("critical path", "<rect class=\"critical\" x=\"0\" y=\"5\" width=\"12\" height=\"3\"/>");
    for (size_t k = std::size(kAllKinds); k-- > 0;)
      if (kinds[k])
        entry(nameOf(kAllKinds[k]),
              "<rect rx=\"2\" width=\"12\" height=\"12\" fill=\"" + std::string(colorOf(kAllKinds[k])) + "\"/>");
  }

  void panel(const Timeline &t) {
    std::string times = timeText(t.end);
    if (t.lowerBound)
      times += ", " + fixed(static_cast<double>(t.end) / static_cast<double>(t.lowerBound), 3) +
               " times the lower bound of " + timeText(t.lowerBound);
    if (t.sideBySide)
      times += ", side by side " + fixed(*t.sideBySide, 2);
    line(text(16, y_ + 14, "heading", headingOf(t), 90));
    line(text(kWidth - 16, y_ + 14, "faint end", times, 80));
    y_ += 24;
    const double top = y_;
    if (t.spans.empty()) {
      line(text(16, y_ + 14, "faint", "no commands", 80));
      y_ += 22;
      return;
    }
    // Rows first, then the grid over them, then the spans.
    const Lanes lanes = lanesOf(t);
    std::vector<double> rowTop, laneHeight;
    for (size_t r = 0; r < t.resources.size(); ++r) {
      const double step = std::min(kLaneHeight + kLaneGap, kMostHeight / lanes.count[r]);
      const double height = step * lanes.count[r] + kLaneGap;
      rowTop.push_back(y_ + kLaneGap);
      laneHeight.push_back(step);
      line("<rect class=\"row\" x=\"" + number(kLeft) + "\" y=\"" + number(y_) + "\" width=\"" +
           number(kRight - kLeft) + "\" height=\"" + number(height) + "\"/>");
      line(text(kLeft - 10, y_ + height / 2 + 4, "end", t.resources[r].name, 22));
      const double share = t.end ? static_cast<double>(t.resources[r].busy) / static_cast<double>(t.end) : 0;
      line(text(kWidth - 16, y_ + height / 2 + 4, "faint end", percent(share), 8));
      y_ += height + kRowGap;
    }
    y_ -= kRowGap;
    for (Picoseconds at = 0; at <= end_; at += ticks_.step)
      line(straight("grid", x(at), top, x(at), y_));

    const std::vector<bool> critical = criticalSpans(t);
    std::vector<std::vector<uint32_t>> byLane;
    std::vector<size_t> firstLane;
    for (size_t r = 0; r < t.resources.size(); ++r) {
      firstLane.push_back(byLane.size());
      byLane.resize(byLane.size() + lanes.count[r]);
    }
    auto laneTop = [&](uint32_t i) {
      const uint32_t r = t.spans[i].resource;
      return rowTop[r] + laneHeight[r] * lanes.of[i];
    };
    for (uint32_t i = 0; i < t.spans.size(); ++i)
      byLane[firstLane[t.spans[i].resource] + lanes.of[i]].push_back(i);
    auto numBoxes = [&] {
      size_t count = 0;
      for (const std::vector<uint32_t> &spans : byLane)
        for (size_t i = 0; i < spans.size(); ++count)
          i = boxAt(t, spans, i, critical).next;
      return count;
    };
    for (least_ = kLeast; least_ < kRight - kLeft && numBoxes() > kMostBoxes;)
      least_ *= 1.5;
    std::string stripes; // drawn over the boxes
    for (const std::vector<uint32_t> &spans : byLane)
      for (size_t i = 0; i < spans.size();) {
        const uint32_t r = t.spans[spans[i]].resource;
        const double gap = std::min(kLaneGap, laneHeight[r] / 4);
        i = drawSome(t, spans, i, critical, laneTop(spans[i]), laneHeight[r] - gap, stripes);
      }
    body_ += stripes;
    drawPath(t, [&](uint32_t i) { // from stripe to stripe
      return laneTop(i) + laneHeight[t.spans[i].resource] - kLaneGap - kStripe / 2;
    });
    if (t.lowerBound)
      line(straight("bound", x(t.lowerBound), top - 4, x(t.lowerBound), y_ + 4));
    y_ += 18;
  }

  struct Box {
    size_t next; ///< the first span after the box
    double left, right;
    bool isCritical;
    SpanKind kind; ///< the kind that takes most of its time
  };
  /// A box for the span at `first` of a lane. If it is too narrow to see, the box also covers the spans that follow,
  /// until it is wide enough.
  Box boxAt(const Timeline &t, const std::vector<uint32_t> &spans, size_t first,
            const std::vector<bool> &critical) const {
    const Span &span = t.spans[spans[first]];
    Box box{first + 1, x(span.begin), x(span.end), critical[spans[first]], span.kind};
    if (box.right - box.left >= least_)
      return box;
    std::map<SpanKind, Picoseconds> work{{box.kind, span.end - span.begin}};
    for (; box.next < spans.size() && box.right - box.left < least_; ++box.next) {
      const Span &other = t.spans[spans[box.next]];
      if (x(other.end) - x(other.begin) >= least_ || x(other.begin) - box.right >= least_)
        break;
      box.right = std::max(box.right, x(other.end));
      box.isCritical |= critical[spans[box.next]];
      work[other.kind] += other.end - other.begin;
    }
    box.kind = std::ranges::max_element(work, {}, [](const auto &w) { return w.second; })->first;
    box.right = std::max(box.right, box.left + kLeast);
    return box;
  }

  /// Draws the box of boxAt. Returns the next span.
  size_t drawSome(const Timeline &t, const std::vector<uint32_t> &spans, size_t first,
                  const std::vector<bool> &critical, double top, double height, std::string &stripes) {
    const Span &span = t.spans[spans[first]];
    const auto [next, left, right, isCritical, kind] = boxAt(t, spans, first, critical);
    const std::string box = " x=\"" + number(left) + "\" y=\"" + number(top) + "\" width=\"" + number(right - left) +
                            "\" height=\"" + number(height) + "\"" + (right - left > 6 ? " rx=\"2\"" : "");
    const bool alone = next == first + 1;
    const int room = alone ? static_cast<int>((right - left - 5) / kCharacter) : 0;
    std::string element = "<rect" + box + " fill=\"" + std::string(alone ? fillOf(schedule_, span) : colorOf(kind)) +
                          "\"><title>" + (alone ? details(span) : std::to_string(next - first) + " commands") +
                          "</title></rect>";
    if (room >= 3 && height >= 12)
      element += text(left + 3, top + height / 2 + 3.5, "on", titleOf(schedule_, span), room);
    line(element);
    if (isCritical) {
      const double thick = std::min(kStripe, height / 2);
      stripes += "<rect class=\"critical\" pointer-events=\"none\" x=\"" + number(left) + "\" y=\"" +
                 number(top + height - thick) + "\" width=\"" + number(right - left) + "\" height=\"" + number(thick) +
                 "\"/>\n";
    }
    return next;
  }

  std::string details(const Span &span) const {
    const Location &location = locationOf(schedule_, span);
    std::string out = span.name;
    if (!location.op.empty() && location.op != span.name)
      out += "\n" + location.op;
    if (!location.file.empty())
      out += "\n" + placeOf(location);
    std::string escaped;
    for (size_t at = 0; at <= out.size();) { // splits the text at line ends
      const size_t end = std::min(out.find('\n', at), out.size());
      escaped += xmlEscaped(std::string_view(out).substr(at, end - at)) + "\n";
      at = end + 1;
    }
    return escaped + timeText(span.end - span.begin) + " from " + timeText(span.begin);
  }

  /// Draws the lines where the critical path changes to another resource.
  template <typename Height> void drawPath(const Timeline &t, Height heightOf) {
    std::string path, last;
    for (size_t k = 1; k < t.criticalPath.size(); ++k) {
      const Span &from = t.spans[t.criticalPath[k - 1]], &to = t.spans[t.criticalPath[k]];
      const double y1 = heightOf(t.criticalPath[k - 1]), y2 = heightOf(t.criticalPath[k]);
      if (y1 == y2)
        continue;
      std::string piece =
          "M" + fixed(x(from.end), 1) + " " + fixed(y1, 1) + "L" + fixed(x(to.begin), 1) + " " + fixed(y2, 1);
      if (piece != last)
        path += last = std::move(piece);
    }
    if (!path.empty())
      line("<path class=\"path\" d=\"" + path + "\"/>");
  }

  void axis() {
    for (Picoseconds at = 0; at <= end_; at += ticks_.step)
      line(text(x(at), y_ + 2,
                at == 0                 ? "faint"
                : end_ - at < end_ / 50 ? "faint end"
                                        : "faint middle",
                ticks_.text(at), 20));
    y_ += 14;
  }

  const Schedule &schedule_;
  std::span<const Timeline> timelines_;
  const Picoseconds end_;
  const Ticks ticks_;
  std::string body_;
  double y_ = 0, least_ = kLeast; ///< narrower spans of this timeline share a box
};

} // namespace

std::string timelineSvg(const Schedule &schedule, std::span<const Timeline> timelines) {
  return Picture(schedule, timelines).draw();
}

} // namespace tressel::runtime
