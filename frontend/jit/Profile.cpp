// Recording what the engine does, for people.
#include <tressel/profile.h>
#include <tressel/tensor.h>

#include "frontend/eager/EagerTimeline.h"
#include "frontend/tensor/Fail.h"
#include "runtime/engine/Finish.h"

#include "tressel/runtime/File.h"
#include "tressel/runtime/Shutdown.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <ostream>
#include <sstream>

namespace tressel {
namespace {

struct Recording {
  std::mutex mutex;
  bool on = false;
  size_t most = 0;
};
Recording &recording() {
  static auto *recording = new Recording; // threads may outlive static destruction
  return *recording;
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  return text;
}

} // namespace

void profile_start(size_t most, std::source_location where) {
  Recording &r = recording();
  std::lock_guard lock(r.mutex);
  if (r.on)
    detail::fail<Error>("what the program does is being recorded already", detail::toLoc(where), "profile_start",
                        "call profile_stop first");
  runtime::Engine::global().startRecording(most);
  r.on = true;
  r.most = most;
}

namespace detail {

/// The process ends, so failures can only be printed.
static void reportAtExit(const char *path, std::chrono::steady_clock::time_point until) {
  try {
    if (runtime::finishQueued(until))
      wait_all(std::source_location());
    else
      std::fprintf(stderr, "tressel: some tasks have not ended, and are not in the recording\n");
  } catch (const Error &e) {
    std::fprintf(stderr, "tressel: %s\n", e.what());
  }
  try {
    std::ostringstream text;
    text << profile_stop(path);
    std::fprintf(stderr, "tressel: recorded in %s\n%s", path, text.str().c_str());
  } catch (const std::exception &e) {
    std::fprintf(stderr, "tressel: %s\n", e.what());
  }
}

bool profileByEnvironment() {
  static const char *path = std::getenv("TRESSEL_PROFILE");
  if (!path || !*path)
    return false;
  if (!runtime::timelineWriter(path)) {
    std::fprintf(stderr,
                 "tressel: TRESSEL_PROFILE is '%s', which is no name of a .svg, .html, .json or .dot file; nothing is "
                 "recorded\n",
                 path);
    return false;
  }
  profile_start();
  runtime::atShutdown({.stage = runtime::ShutdownStage::Report,
                       .isNeeded =
                           [] {
                             std::lock_guard lock(recording().mutex);
                             return recording().on;
                           },
                       .finish = [](std::chrono::steady_clock::time_point until) { reportAtExit(path, until); },
                       .patience = std::chrono::seconds(5)});
  return true;
}

} // namespace detail

ProfileReport profile_stop(const std::string &path, std::source_location where) {
  Recording &r = recording();
  std::lock_guard lock(r.mutex);
  if (!r.on)
    detail::fail<Error>("nothing is being recorded", detail::toLoc(where), "profile_stop", "call profile_start first");
  const runtime::TimelineWriter write = path.empty() ? nullptr : runtime::timelineWriter(path);
  if (!path.empty() && !write)
    detail::fail<Error>("'" + path + "' does not say in which form the timeline is to be drawn", detail::toLoc(where),
                        "profile_stop", "name it .svg, .html, .json (Perfetto) or .dot");
  const std::vector<runtime::TaskRecord> records = runtime::Engine::global().stopRecording();
  r.on = false;
  ProfileReport report = detail::reportOf(records);
  report.complete = records.size() < r.most;
  const std::string name = path.empty() ? "profile" : std::filesystem::path(path).stem().string();
  const detail::EagerTimeline t = detail::timelineOf(records, name);
  report.drawing = timelineText(t.names, {&t.timeline, 1}, 100, /*utf8=*/false);
  if (write) {
    const std::string text = write(t.names, {&t.timeline, 1});
    runtime::writeFile(path, std::as_bytes(std::span(text)));
  }
  return report;
}

std::ostream &operator<<(std::ostream &out, const ProfileReport &report) {
  out << milliseconds(report.seconds) << ": " << report.inlined << " ops ran where they were called, " << report.queued
      << " were handed over, " << report.helped << " of which a waiting thread ran; "
      << milliseconds(report.busy_seconds) << " of work, " << milliseconds(report.waiting_seconds) << " of waiting\n"
      << report.drawing;
  if (report.failed)
    out << report.failed << " ops failed\n";
  if (!report.complete)
    out << "more happened than was kept: give profile_start a larger number\n";
  for (const ProfiledWait &wait : report.waits)
    out << (wait.hidden ? "hidden wait: " : "wait: ") << wait.what << (wait.where.empty() ? "" : " at " + wait.where)
        << ", " << wait.times << (wait.times == 1 ? " time, " : " times, ") << milliseconds(wait.seconds) << "\n";
  for (const ProfiledMove &move : report.moves)
    out << "operands moved between devices" << (move.where.empty() ? "" : " at " + move.where) << ", " << move.times
        << (move.times == 1 ? " time, " : " times, ") << milliseconds(move.seconds) << "\n";
  return out;
}

} // namespace tressel
