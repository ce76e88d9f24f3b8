#include "codegen/UntilExit.h"

#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <mutex>
#include <unistd.h>
#include <utility>

namespace tressel::codegen {
namespace {

/// Somebody may have a trace open that never ends.
constexpr auto kPatience = std::chrono::seconds(5);

struct Uses {
  std::mutex mutex;
  std::condition_variable changed;
  int held = 0;
  bool ending = false;
  uint64_t ended = 0; ///< uses so far
  const pid_t process = getpid();
};
/// Never destroyed: threads stand still in it.
Uses &uses() {
  static Uses &uses = *new Uses();
  return uses;
}
thread_local constinit int heldHere = 0;

/// Waits once. In the child of a fork the threads that held something are not there, and their locks may be locked for
/// ever.
void end() {
  Uses &u = uses();
  if (getpid() != u.process)
    return;
  std::unique_lock lock(u.mutex);
  if (std::exchange(u.ending, true))
    return;
  u.changed.wait_for(lock, kPatience, [&] { return u.held == (heldHere ? 1 : 0); });
  ++heldHere; // this thread's later destructors may compile
}

/// Whether this is the process's end and not just the thread's: both destroy what is local to the thread.
bool isInsideExit() {
  if (gettid() == getpid())
    return true;
  void *frames[24];
  const int n = backtrace(frames, 24);
  for (int i = 0; i < n; ++i) {
    Dl_info info;
    if (dladdr(static_cast<const char *>(frames[i]) - 1, &info) && info.dli_sname &&
        std::strcmp(info.dli_sname, "exit") == 0)
      return true;
  }
  return false;
}

/// exit() destroys what is local to its thread before all else: before static objects that somebody made a moment ago,
/// which no handler that was registered earlier precedes.
struct AtEnd {
  bool armed = false;
  ~AtEnd() {
    if (armed && isInsideExit())
      end();
  }
};
thread_local AtEnd atEnd;
const bool armed = [] { return atEnd.armed = true; }(); // the main thread, which loads the library

} // namespace

void watchExit() { atEnd.armed = true; }

CompilerUse::CompilerUse() {
  watchExit();
  if (heldHere++)
    return;
  Uses &u = uses();
  std::unique_lock lock(u.mutex);
  while (u.ending) {
    lock.unlock();
    pause(); // the process is about to be gone
    lock.lock();
  }
  ++u.held;
}

CompilerUse::~CompilerUse() {
  if (--heldHere)
    return;
  Uses &u = uses();
  {
    std::lock_guard lock(u.mutex);
    --u.held;
    // For exit() in a thread that has nothing to do with this library. What was made later is destroyed before a
    // handler runs, and compiling makes static objects, the first times above all: so it is registered again and again,
    // less and less often.
    if (std::has_single_bit(++u.ended))
      std::atexit(end);
  }
  u.changed.notify_all();
}

} // namespace tressel::codegen
