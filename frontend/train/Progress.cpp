// Lines, records and curves of a training.
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"

#include <tressel/progress.h>
#include "frontend/train/EventFile.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tressel {
namespace {

std::string format(const char *pattern, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, pattern, value);
  return buffer;
}

/// "1:02:03", "2:03".
std::string clock(double seconds) {
  const auto all = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  char buffer[48];
  if (all >= 3600)
    std::snprintf(buffer, sizeof buffer, "%lld:%02d:%02d", static_cast<long long>(all / 3600), static_cast<int>(all / 60 % 60), static_cast<int>(all % 60));
  else
    std::snprintf(buffer, sizeof buffer, "%d:%02d", static_cast<int>(all / 60), static_cast<int>(all % 60));
  return buffer;
}

/// JSON has no infinity and no NaN: they are strings there.
std::string json(double value) { return std::isfinite(value) ? format("%.9g", value) : "\"" + format("%g", value) + "\""; }
std::string unicode(unsigned code) {
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "\\u%04x", code);
  return buffer;
}
std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text)
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += unicode(static_cast<unsigned char>(c));
    else
      out += c;
  return out + '"';
}
std::string escaped(const std::string &text) {
  std::string out;
  for (char c : text)
    out += c == '<'                               ? "&lt;"
           : c == '>'                             ? "&gt;"
           : c == '&'                             ? "&amp;"
           : static_cast<unsigned char>(c) < 0x20 ? " "
                                                  : std::string(1, c);
  return out;
}

/// A name's values over the steps. If there are too many to draw, neighbours are averaged.
struct Series {
  std::vector<std::pair<double, double>> points;
  int64_t each = 1, pending = 0; ///< values per point; values in the incomplete point
  double x = 0, y = 0;
  bool isNote = false;

  void add(double step, double value) {
    if (!std::isfinite(value))
      return;
    x += step, y += value;
    if (++pending < each)
      return;
    points.emplace_back(x / static_cast<double>(pending), y / static_cast<double>(pending));
    x = y = 0, pending = 0;
    if (points.size() < 1000 || isNote)
      return;
    std::vector<std::pair<double, double>> half;
    for (size_t i = 0; i + 1 < points.size(); i += 2)
      half.emplace_back((points[i].first + points[i + 1].first) / 2, (points[i].second + points[i + 1].second) / 2);
    points = std::move(half);
    each *= 2;
  }
};

/// One panel per name, one below the other.
std::string draw(const std::map<std::string, Series> &all) {
  constexpr double width = 640, height = 200, left = 64, right = 16, top = 28, bottom = 28;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + format("%g", width) + "\" height=\"" +
                    format("%g", height * static_cast<double>(all.size())) + "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  double y0 = 0;
  for (const auto &[name, series] : all) {
    std::vector<std::pair<double, double>> points = series.points;
    if (points.empty())
      points.emplace_back(0, 0);
    auto [minX, maxX] = std::minmax_element(points.begin(), points.end());
    double low = points[0].second, high = low;
    for (const auto &[x, y] : points)
      low = std::min(low, y), high = std::max(high, y);
    const double x1 = minX->first, x2 = maxX->first > x1 ? maxX->first : x1 + 1;
    if (high <= low)
      high = low + std::max(1e-12, std::abs(low) * 0.1);
    auto px = [&](double x) { return left + (x - x1) / (x2 - x1) * (width - left - right); };
    auto py = [&](double y) { return y0 + top + (high - y) / (high - low) * (height - top - bottom); };
    svg += "<text x=\"" + format("%g", left) + "\" y=\"" + format("%g", y0 + 18) + "\" font-weight=\"bold\">" + escaped(name) + "</text>\n";
    for (int i = 0; i <= 4; ++i) {
      const double y = low + (high - low) * i / 4;
      svg += "<line x1=\"" + format("%g", left) + "\" x2=\"" + format("%g", width - right) + "\" y1=\"" + format("%.1f", py(y)) + "\" y2=\"" + format("%.1f", py(y)) +
             "\" stroke=\"#ddd\"/><text x=\"" + format("%g", left - 6) + "\" y=\"" + format("%.1f", py(y) + 4) + "\" text-anchor=\"end\" fill=\"#555\">" +
             format("%.3g", y) + "</text>\n";
      const double x = x1 + (x2 - x1) * i / 4;
      svg += "<text x=\"" + format("%.1f", px(x)) + "\" y=\"" + format("%g", y0 + height - 10) + "\" text-anchor=\"" + (i == 0 ? "start" : i == 4 ? "end" : "middle") +
             "\" fill=\"#555\">" + format("%.0f", x) + "</text>\n";
    }
    svg += "<polyline fill=\"none\" stroke=\"#1f5fbf\" stroke-width=\"1.5\" points=\"";
    for (const auto &[x, y] : points)
      svg += format("%.1f", px(x)) + "," + format("%.1f", py(y)) + " ";
    svg += "\"/>\n";
    if (points.size() <= 30)
      for (const auto &[x, y] : points)
        svg += "<circle r=\"2.5\" fill=\"#1f5fbf\" cx=\"" + format("%.1f", px(x)) + "\" cy=\"" + format("%.1f", py(y)) + "\"/>\n";
    y0 += height;
  }
  return svg + "</svg>\n";
}

} // namespace

struct Progress::Impl {
  using Clock = std::chrono::steady_clock;
  struct Record {
    int64_t step;
    double seconds;
    bool isNote;
    Values values;
  };

  const int64_t steps;
  const ProgressOptions options;
  const bool isTerminal;
  const Clock::time_point begin = Clock::now();
  int64_t done;
  std::deque<Record> waiting; ///< in order; the values of the first are not there yet
  std::map<std::string, double> latest;
  std::vector<std::string> order; ///< names as they came
  std::map<std::string, Series> curves;
  std::FILE *log = nullptr;
  std::optional<EventFile> events;
  const double beginOfEvents = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  double shown = -1e9;
  bool finished = false, lineIsOpen = false;

  Impl(int64_t steps, ProgressOptions given)
      : steps(steps), options(std::move(given)), isTerminal(!options.quiet && ::isatty(options.descriptor) == 1), done(options.begin) {
    if (!options.log.empty() && !(log = std::fopen(options.log.c_str(), "ae")))
      throw RuntimeError(options.log + ": cannot be written: " + std::strerror(errno));
    if (!options.curve.empty() && !options.curve.ends_with(".svg"))
      throw Error({.message = options.curve + ": curves are drawn as .svg"});
    if (!options.events.empty())
      events.emplace(options.events);
  }
  ~Impl() {
    if (log)
      std::fclose(log);
  }

  double now() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
  static bool isThere(const Value &value) {
    const Tensor *tensor = std::get_if<Tensor>(&value.value_);
    return !tensor || !tensor->defined() || tensor->ready();
  }
  static std::optional<double> numberOf(const Value &value) {
    if (const double *number = std::get_if<double>(&value.value_))
      return *number;
    const Tensor &tensor = std::get<Tensor>(value.value_);
    return tensor.defined() ? std::optional(tensor.item<double>()) : std::nullopt;
  }

  void add(bool isNote, const Values &values) {
    waiting.push_back({done, now(), isNote, values});
    drain(false);
  }
  /// Takes the records whose values are ready; all of them if `waits`.
  void drain(bool waits) {
    while (!waiting.empty() &&
           (waits || std::all_of(waiting.front().values.begin(), waiting.front().values.end(), [](const auto &v) { return isThere(v.second); }))) {
      const Record record = std::move(waiting.front());
      waiting.pop_front();
      std::string line = "{\"step\": " + std::to_string(record.step) + ", \"seconds\": " + format("%.3f", record.seconds), text;
      std::vector<std::pair<std::string, double>> figures;
      for (const auto &[name, value] : record.values) {
        const std::optional<double> number = numberOf(value);
        if (!number)
          continue;
        line += ", " + quoted(name) + ": " + json(*number);
        figures.emplace_back(name, *number);
        text += "  " + name + " " + format("%.4g", *number);
        if (!options.curve.empty()) {
          Series &series = curves[name];
          series.isNote = record.isNote;
          series.add(static_cast<double>(record.step), *number);
        }
        if (!record.isNote && !latest.contains(name))
          order.push_back(name);
        if (!record.isNote)
          latest[name] = *number;
      }
      if (log && !record.values.empty() && (std::fputs((line + "}\n").c_str(), log) < 0 || std::fflush(log) != 0))
        throw RuntimeError(options.log + ": cannot be written: " + std::strerror(errno));
      if (events && !figures.empty())
        events->write(record.step, beginOfEvents + record.seconds, figures);
      if (record.isNote)
        print(position(record.step) + text, /*stays=*/true);
    }
  }

  std::string position(int64_t step) const {
    return (options.label.empty() ? "" : options.label + "  ") + std::to_string(step) + (steps > 0 ? "/" + std::to_string(steps) : "");
  }
  void show(bool last) {
    const double at = now();
    if (options.quiet || (!last && at - shown < (isTerminal ? 0.1 : options.seconds)))
      return;
    shown = at;
    std::string line = position(done);
    for (const std::string &name : order)
      line += "  " + name + " " + format("%.4g", latest[name]);
    const auto here = static_cast<double>(done - options.begin);
    if (here > 0 && at > 0)
      line += "  " + format(here / at >= 10 ? "%.0f" : "%.2g", here / at) + " steps/s";
    if (last)
      line += "  in " + clock(at);
    else if (steps > 0 && here > 0)
      line += "  " + clock(at / here * static_cast<double>(steps - done)) + " left";
    print(line, last);
  }
  /// On a terminal the next line overwrites this one, unless it stays.
  void print(std::string line, bool stays) {
    if (options.quiet)
      return;
    if (isTerminal) {
      winsize size{};
      if (!stays && ::ioctl(options.descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && line.size() >= size.ws_col)
        line.resize(size.ws_col - 1u);
      line = "\r\x1b[K" + line + (stays ? "\n" : "");
      lineIsOpen = !stays;
    } else {
      line += '\n';
    }
    std::span<const char> rest(line);
    while (!rest.empty()) {
      const ssize_t n = ::write(options.descriptor, rest.data(), rest.size());
      if (n <= 0 && errno != EINTR)
        return; // the pipe's reader has closed it
      if (n > 0)
        rest = rest.subspan(static_cast<size_t>(n));
    }
  }

  void finish() {
    if (std::exchange(finished, true))
      return;
    drain(true);
    show(true);
    if (!options.curve.empty()) {
      const std::string svg = draw(curves);
      runtime::writeFile(options.curve, std::as_bytes(std::span(svg)));
    }
  }
};

Progress::Progress(int64_t steps, ProgressOptions options) : impl_(std::make_unique<Impl>(steps, std::move(options))) {}
Progress::~Progress() {
  try {
    finish();
  } catch (const std::exception &) { // a failed value, or a failed write: finish() reports it
  }
}

void Progress::step(const Values &values) {
  ++impl_->done;
  impl_->add(false, values);
  impl_->show(false);
}
void Progress::note(const Values &values) { impl_->add(true, values); }
void Progress::finish() { impl_->finish(); }

} // namespace tressel
