// Records what a program did between two points, in real time: which op ran when, in which thread, and where the
// program's own threads waited. Ops that are called one by one are recorded individually; a call of a compiled function
// is one op.
//
//   profile_start();
//   train_some_steps();
//   ProfileReport report = profile_stop("steps.svg");   // or .html, .json for Perfetto, .dot
//   std::cout << report;                                // how much was where, the drawing, who waited for what
//
// The timeline has a row per thread of the program, with its calls, the ops that ran in it, and its waits; and a row
// per lane. Hidden waits, which no line of the program asked for by name (for reading an element, for printing, for
// room in the queue, for memory), are listed apart, as they are the ones to remove. Recording reads the clock twice per
// op.
//
// TRESSEL_PROFILE=FILE.svg in the environment records a whole program without a change to it: the file is written, and
// the report printed on standard error, when it ends. Such a program must not call these functions itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <source_location>
#include <string>
#include <vector>

namespace tressel {

/// All waits for one reason at one line.
struct ProfiledWait {
  std::string what;    ///< "wait", "item", "printing", "room in the queue", ...
  std::string where;   ///< "train.cpp:42"; empty where it is not known
  bool hidden = false; ///< no wait is written there
  uint64_t times = 0;
  double seconds = 0;
};

/// Operands that were copied to the device of an op, at one line. A `to()` ahead of a loop copies them only once.
struct ProfiledMove {
  std::string where; ///< "train.cpp:42"; empty where it is not known
  uint64_t times = 0;
  double seconds = 0;
};

struct ProfileReport {
  double seconds = 0;   ///< from the first thing that was recorded to the end of the last
  uint64_t inlined = 0; ///< ops that ran in the thread that called them
  uint64_t queued = 0;  ///< ops that were handed over
  uint64_t helped = 0;  ///< of those, how many a waiting thread of the program ran
  uint64_t failed = 0;
  double busy_seconds = 0;         ///< of all ops together
  double waiting_seconds = 0;      ///< of all waits together
  std::vector<ProfiledWait> waits; ///< those of the most time first
  std::vector<ProfiledMove> moves; ///< those of the most time first
  bool complete = true;            ///< false: the recording was full, and the rest is missing
  std::string drawing;             ///< the timeline, a line per row, 100 columns
};
/// For people: several lines.
std::ostream &operator<<(std::ostream &out, const ProfileReport &report);

/// From here on all ops and waits of all threads are recorded, at most `most` of them. Throws Error while a recording
/// is on.
void profile_start(size_t most = size_t(1) << 20, std::source_location where = std::source_location::current());
/// Ends the recording and reports it; ops that are still queued are not waited for. With a path it is drawn too:
/// FILE.svg, FILE.html, FILE.json (Perfetto) or FILE.dot. Throws Error when no recording is on, for other names (the
/// recording then goes on) and when the file cannot be written.
ProfileReport profile_stop(const std::string &path = {}, std::source_location where = std::source_location::current());

namespace detail {
/// Starts what TRESSEL_PROFILE asks for.
bool profileByEnvironment();
inline const bool isProfiledByEnvironment = profileByEnvironment(); // before main, in every program that includes this
} // namespace detail

} // namespace tressel
