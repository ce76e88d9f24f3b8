#include "tressel/runtime/Shutdown.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <string>
#include <system_error>
#include <vector>

namespace tressel::runtime {
namespace {

/// For compilations that have begun, and for threads that must not begin one: a trace may be open that never ends.
constexpr auto kPatience = std::chrono::seconds(5);

struct Process {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ShutdownStep> steps; ///< by stage
  int held = 0;                    ///< threads with a StaticsUse
  uint64_t ended = 0;              ///< uses so far
  bool isRegistered = false;
  bool begun = false, closed = false;
  pthread_key_t threadEnd;
};

thread_local constinit int heldHere = 0;
thread_local constinit bool endsProcess = false;
/// The thread ends, and the process does not.
thread_local constinit bool onlyThreadEnds = false;

/// Never destroyed: threads may look at it until the process is gone.
Process &process() {
  static Process &process = *[] {
    auto *made = new Process();
    pthread_atfork([] { runtime::process().mutex.lock(); }, [] { runtime::process().mutex.unlock(); },
                   [] {
                     Process &p = runtime::process();
                     p.held = heldHere ? 1 : 0;
                     p.steps.clear();
                     p.begun = p.closed = false;
                     p.mutex.unlock();
                   });
    // Comes behind the destructors of what is local to a thread, at the thread's end alone. It takes the handler back that AtThreadEnd left.
    pthread_key_create(&made->threadEnd, [](void *registered) {
      onlyThreadEnds = true;
      abi::__cxa_finalize(registered);
    });
    return made;
  }();
  return process;
}

/// In a thread of their own: the one that ends the process has lost what is local to it. It is left behind if it is stuck, as a step may help with
/// tasks that do not end.
void finishAll(Process &p, const std::vector<ShutdownStep> &steps) {
  const auto finish = [](const std::vector<ShutdownStep> &all) {
    for (const ShutdownStep &step : all)
      step.finish(std::chrono::steady_clock::now() + step.patience);
  };
  auto patience = std::chrono::milliseconds(500);
  for (const ShutdownStep &step : steps)
    patience += step.patience;
  const auto isDone = std::make_shared<bool>(false); // guarded by the mutex
  try {
    startInternalThread("tressel.exit", [&p, steps, finish, isDone] {
      finish(steps);
      std::lock_guard lock(p.mutex);
      *isDone = true;
      p.changed.notify_all();
    }).detach();
  } catch (const std::system_error &) { // there are too many threads
    return finish(steps);
  }
  std::unique_lock lock(p.mutex);
  p.changed.wait_for(lock, patience, [&] { return *isDone; });
}

void shutdown() {
  Process &p = process();
  std::unique_lock lock(p.mutex);
  const bool isFirst = !std::exchange(p.begun, true);
  endsProcess = true;
  std::vector<ShutdownStep> needed = p.steps;
  lock.unlock();
  std::erase_if(needed, [](const ShutdownStep &step) { return !step.isNeeded(); });
  if (!needed.empty())
    finishAll(p, needed);
  std::erase_if(needed, [](const ShutdownStep &step) { return !step.isNeeded(); });
  lock.lock();
  std::erase_if(p.steps, [&](const ShutdownStep &step) { // what is stuck is waited for once
    return std::ranges::any_of(needed, [&](const ShutdownStep &stuck) { return stuck.finish == step.finish; });
  });
  if (!isFirst)
    return;
  p.closed = true;
  p.changed.wait_for(lock, kPatience, [&] { return p.held == (heldHere ? 1 : 0); });
}

/// exit() destroys what is local to its thread before all else, and the end of a thread does so too. A handler that is registered meanwhile is the
/// first that exit() runs. Where only the thread ends, it is taken back.
struct AtThreadEnd {
  bool isWatched = false;
  ~AtThreadEnd() {
    if (isWatched)
      abi::__cxa_atexit(
          [](void *) {
            if (!onlyThreadEnds)
              shutdown();
          },
          nullptr, this);
  }
};
thread_local AtThreadEnd atThreadEnd;

[[maybe_unused]] const bool isLoaderWatched = (watchExit(), true);

[[noreturn]] void refuse() {
  throw RuntimeError(Error::Details{.message = "the process is ending: nothing can be compiled any more",
                                    .hint = "compile before main returns or exit() is called, and wait for other threads that compile"});
}

void enter(Process &p) {
  watchExit();
  std::unique_lock lock(p.mutex);
  if (p.closed) {
    if (!isInternalThread() && !endsProcess)
      p.changed.wait_for(lock, kPatience, [] { return false; });
    refuse();
  }
  ++p.held;
}

} // namespace

void atShutdown(const ShutdownStep &step) {
  Process &p = process();
  std::unique_lock lock(p.mutex);
  p.steps.insert(std::ranges::upper_bound(p.steps, step.stage, {}, &ShutdownStep::stage), step);
  if (!std::exchange(p.isRegistered, true)) {
    lock.unlock();
    std::atexit(shutdown); // also for what static destructors leave behind
  }
}

bool isShuttingDown() {
  Process &p = process();
  std::lock_guard lock(p.mutex);
  return p.begun;
}

void watchExit() {
  if (!std::exchange(atThreadEnd.isWatched, true))
    pthread_setspecific(process().threadEnd, &atThreadEnd);
}

StaticsUse::StaticsUse() {
  if (heldHere == 0)
    enter(process());
  ++heldHere;
}

StaticsUse::~StaticsUse() {
  if (--heldHere)
    return;
  Process &p = process();
  bool isToRegister;
  {
    std::lock_guard lock(p.mutex);
    --p.held;
    // For exit() in a thread that is not watched. What was made later is destroyed before a handler runs, and compiling makes static objects, the
    // first times above all: so it is registered again and again, less and less often.
    isToRegister = !p.begun && std::has_single_bit(++p.ended);
  }
  p.changed.notify_all();
  if (isToRegister)
    std::atexit(shutdown);
}

} // namespace tressel::runtime
