#include "codegen/UntilExit.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unistd.h>

namespace tressel::codegen {
namespace {

/// Somebody may have a trace open that never ends.
constexpr auto kPatience = std::chrono::seconds(10);

struct Uses {
  std::mutex mutex;
  std::condition_variable changed;
  int held = 0;
  bool ending = false;
};
/// Never destroyed: threads stand still in it.
Uses &uses() {
  static Uses &uses = *new Uses();
  return uses;
}
thread_local constinit int heldHere = 0;

/// exit() destroys what is local to its thread before all else: before static objects that somebody made a moment ago,
/// which no handler that was registered earlier precedes.
struct AtEnd {
  bool armed = false;
  ~AtEnd() {
    if (!armed)
      return;
    Uses &u = uses();
    std::unique_lock lock(u.mutex);
    u.ending = true;
    u.changed.wait_for(lock, kPatience, [&] { return u.held == (heldHere ? 1 : 0); });
    ++heldHere; // this thread's later destructors may compile
  }
};
thread_local AtEnd atEnd;

/// The library is loaded by the main thread, whose end is the process's. Where another thread loads it, or calls
/// exit(), nothing is waited for.
const bool armed = [] { return atEnd.armed = gettid() == getpid(); }();

} // namespace

CompilerUse::CompilerUse() {
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
  }
  u.changed.notify_all();
}

} // namespace tressel::codegen
