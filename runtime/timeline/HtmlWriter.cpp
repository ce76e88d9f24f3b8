// The page: a frame with a style and a script (page.html, page.css, page.js, controls.js), and the timelines as data
// that the script draws.
#include "Format.h"
#include "Page.h"

#include <map>

namespace tressel::runtime {

using namespace timeline;

namespace {

/// Interned texts: each is written once.
class Strings {
public:
  std::string operator()(const std::string &text) {
    const auto [it, isNew] = numbers_.try_emplace(text, numbers_.size());
    if (isNew) {
      list_ += (list_.empty() ? "" : ",") + jsonQuoted(text);
      shades_ += (shades_.empty() ? "" : ",") + std::to_string(shadeOf(text));
    }
    return std::to_string(it->second);
  }
  const std::string &list() const { return list_; }
  const std::string &shades() const { return shades_; } ///< by text: shade of the kernels with this title

private:
  std::map<std::string, size_t> numbers_;
  std::string list_, shades_;
};

template <typename List, typename Fn> std::string array(const List &list, Fn item) {
  std::string text;
  for (const auto &element : list)
    (text += text.empty() ? "[" : ",") += item(element);
  return text.empty() ? "[]" : text + "]";
}

/// The data that page.js reads. Spans are arrays; page.js names their elements.
std::string dataOf(const Schedule &schedule, std::span<const Timeline> timelines) {
  Strings string;
  auto number = [](uint32_t n) { return std::to_string(n); };
  std::string locations = array(schedule.locations, [&](const Location &l) {
    return "[" + string(l.op) + "," + string(l.file) + "," + std::to_string(l.line) + "]";
  });
  std::string list = array(timelines, [&](const Timeline &t) {
    const Lanes lanes = lanesOf(t);
    std::string text = "{\"kind\":\"" + std::string(nameOf(t.kind)) + "\",\"program\":" + jsonQuoted(t.program) +
                       ",\"machine\":" + jsonQuoted(t.machine) + ",\"end\":" + std::to_string(t.end) +
                       ",\"lowerBound\":" + std::to_string(t.lowerBound) +
                       (t.sideBySide ? ",\"sideBySide\":" + fixed(*t.sideBySide, 3) : "");
    size_t r = 0;
    text += ",\n\"resources\":" + array(t.resources, [&](const Resource &resource) {
              return "{\"name\":" + jsonQuoted(resource.name) + ",\"busy\":" + std::to_string(resource.busy) +
                     ",\"lanes\":" + std::to_string(lanes.count[r++]) + "}";
            });
    size_t i = 0;
    text += ",\n\"spans\":" + array(t.spans, [&](const Span &span) {
              const Location &location = locationOf(schedule, span);
              const auto loc = location.op.empty() && location.file.empty() ? 0 : span.loc;
              return "\n[" + number(span.resource) + "," + number(lanes.of[i++]) + "," +
                     number(static_cast<uint32_t>(span.kind)) + "," + std::to_string(span.begin) + "," +
                     std::to_string(span.end - span.begin) + "," + string(span.name) + "," + number(loc) + "," +
                     std::to_string(span.flops) + "," + std::to_string(span.bytes) + "," + number(span.command) + "," +
                     array(span.after, number) + "]";
            });
    return text + ",\n\"criticalPath\":" + array(t.criticalPath, number) + "}";
  });
  const std::string kinds = array(kAllKinds, [](SpanKind kind) {
    return "[\"" + std::string(nameOf(kind)) + "\",\"" + std::string(colorOf(kind)) + "\"]";
  });
  const std::string shades =
      array(kKernelShades, [](std::string_view color) { return "\"" + std::string(color) + "\""; });
  return "{\"kinds\":" + kinds + ",\n\"shades\":" + shades + ",\n\"shadeOf\":[" + string.shades() + "]" +
         ",\n\"strings\":[" + string.list() + "],\n\"locations\":" + locations + ",\n\"timelines\":" + list + "}";
}

} // namespace

std::string timelineHtml(const Schedule &schedule, std::span<const Timeline> timelines) {
  const std::string title = timelines.empty() ? schedule.name : timelines.front().program;
  std::string page;
  std::string_view rest = kPageHtml;
  auto put = [&](std::string_view mark,
                 // in the order of the page, so that inserted text is not searched for the next mark
                 std::string_view by) {
    const size_t at = rest.find(mark);
    (page += rest.substr(0, at)) += by;
    rest.remove_prefix(at + mark.size());
  };
  put("{title}", xmlEscaped(title));
  put("{style}", kPageStyle);
  put("{data}", dataOf(schedule, timelines));
  put("{script}", kPageScript);
  page += rest;
  return page;
}

} // namespace tressel::runtime
