// Writes trace events: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (the format's
// specification). Times are in microseconds there; readers keep whole nanoseconds.
#include "Format.h"

#include <algorithm>

namespace tressel::runtime {

using namespace timeline;

namespace {

/// Picoseconds as microseconds, exactly.
std::string micros(Picoseconds t) {
  std::string digits = std::to_string(t % 1'000'000);
  digits.insert(0, 6 - digits.size(), '0');
  while (digits.ends_with('0'))
    digits.pop_back();
  return std::to_string(t / 1'000'000) + (digits.empty() ? "" : "." + digits);
}

class Events {
public:
  explicit Events(const Schedule &schedule) : schedule_(schedule) {}

  void add(const Timeline &t, size_t pid) {
    pid_ = std::to_string(pid);
    meta("process_name", "0", "\"name\":" + jsonQuoted(t.program + ": " + headingOf(t)));
    meta("process_sort_index", "0", "\"sort_index\":" + pid_);
    // One thread per lane, in the order of resources, with the critical path first.
    const Lanes lanes = lanesOf(t);
    std::vector<uint32_t> firstThread;
    uint32_t next = 1;
    if (!t.criticalPath.empty())
      thread(0, "critical path");
    for (size_t r = 0; r < t.resources.size(); ++r) {
      firstThread.push_back(next);
      for (uint32_t lane = 0; lane < lanes.count[r]; ++lane)
        thread(next++, t.resources[r].name + (lane ? " (" + std::to_string(lane + 1) + ")" : ""));
    }
    auto threadOf = [&](uint32_t span) { return firstThread[t.spans[span].resource] + lanes.of[span]; };

    const std::vector<bool> critical = criticalSpans(t);
    for (uint32_t i = 0; i < t.spans.size(); ++i)
      complete(t.spans[i], threadOf(i), critical[i]);
    for (uint32_t i : t.criticalPath)
      complete(t.spans[i], 0, true);
    for (uint32_t i = 0; i < t.spans.size(); ++i)
      for (uint32_t before : t.spans[i].after)
        if (t.spans[before].resource != t.spans[i].resource)
          arrow(t.spans[before], threadOf(before), t.spans[i], threadOf(i));
    if (t.lowerBound)
      event("\"ph\":\"i\",\"s\":\"p\",\"name\":\"lower bound\",\"ts\":" + micros(t.lowerBound) + ",\"tid\":0");
  }

  std::string finish() && {
    return "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":" + jsonQuoted(schedule_.name) +
           "},\"traceEvents\":[" + std::move(text_) + "\n]}\n";
  }

private:
  void event(const std::string &fields) {
    text_ += text_.empty() ? "\n{\"pid\":" : ",\n{\"pid\":";
    text_ += pid_ + "," + fields + "}";
  }
  void meta(const char *name, const std::string &tid, const std::string &args) {
    event("\"ph\":\"M\",\"name\":\"" + std::string(name) + "\",\"tid\":" + tid + ",\"args\":{" + args + "}");
  }
  void thread(uint32_t tid, const std::string &name) {
    meta("thread_name", std::to_string(tid), "\"name\":" + jsonQuoted(name));
    meta("thread_sort_index", std::to_string(tid), "\"sort_index\":" + std::to_string(tid));
  }
  void complete(const Span &span, uint32_t tid, bool critical) {
    const Location &location = locationOf(schedule_, span);
    std::string fields = "\"ph\":\"X\",\"name\":" + jsonQuoted(span.name) + ",\"cat\":\"";
    fields += std::string(nameOf(span.kind)) + "\",\"tid\":" + std::to_string(tid) + ",\"ts\":" + micros(span.begin) +
              ",\"dur\":" + micros(span.end - span.begin);
    fields += ",\"args\":{\"command\":" + std::to_string(span.command);
    if (!location.op.empty())
      fields += ",\"op\":" + jsonQuoted(location.op);
    if (!location.file.empty())
      fields += ",\"file\":" + jsonQuoted(location.file) + ",\"line\":" + std::to_string(location.line);
    fields += ",\"flops\":" + std::to_string(span.flops) + ",\"bytes\":" + std::to_string(span.bytes);
    event(fields + (critical ? ",\"critical\":true}" : "}"));
  }
  /// A flow arrow begins in the last nanosecond of one span and ends at the begin of the other: readers attach it to
  /// the spans that contain these points.
  void arrow(const Span &from, uint32_t fromThread, const Span &to, uint32_t toThread) {
    const std::string id = std::to_string(++arrows_);
    const std::string fields = ",\"name\":\"wait\",\"cat\":\"wait\",\"id\":" + id + ",\"ts\":";
    event("\"ph\":\"s\"" + fields + micros(std::max(from.begin, from.end - 1000)) +
          ",\"tid\":" + std::to_string(fromThread));
    event("\"ph\":\"f\",\"bp\":\"e\"" + fields + micros(to.begin) + ",\"tid\":" + std::to_string(toThread));
  }

  const Schedule &schedule_;
  std::string text_, pid_;
  uint64_t arrows_ = 0;
};

} // namespace

std::string timelineJson(const Schedule &schedule, std::span<const Timeline> timelines) {
  Events events(schedule);
  for (size_t i = 0; i < timelines.size(); ++i)
    events.add(timelines[i], i + 1);
  return std::move(events).finish();
}

} // namespace tressel::runtime
