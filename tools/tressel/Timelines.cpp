#include "tools/tressel/Timelines.h"

#include "tools/tressel/Tool.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tressel::tool {

namespace {

/// As wide as the terminal; whole blocks where the locale has them.
std::string forTerminal(const runtime::Schedule &schedule, std::span<const runtime::Timeline> timelines) {
  winsize size = {};
  const bool known = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  std::string locale;
  for (const char *name : {"LC_ALL", "LC_CTYPE", "LANG"}) // the first that is set decides
    if (const char *value = std::getenv(name); value && *value && locale.empty())
      locale = value;
  std::ranges::transform(locale, locale.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool utf8 = locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  return runtime::timelineText(schedule, timelines, known ? std::min<int>(size.ws_col, 200) : 100, utf8);
}

runtime::TimelineWriter writerFor(const std::string &file) {
  if (file == "-")
    return forTerminal;
  if (const runtime::TimelineWriter writer = runtime::timelineWriter(file))
    return writer;
  throw UsageError("--timeline: the name says which form is wanted, and '" + file +
                   "' does not: it ends with .json (Perfetto), .svg, .html or .dot; - draws in the terminal");
}

} // namespace

void checkTimelineFile(const std::string &file) { writerFor(file); }

void writeTimelines(const std::string &file, const runtime::Schedule &schedule,
                    std::span<const runtime::Timeline> timelines) {
  writeFile(file, writerFor(file)(schedule, timelines));
}

std::string processorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.find(':') + 2, line.size()));
  return "x86-64";
}

} // namespace tressel::tool
