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

/// How long to wait for compilations that have begun, and for threads that block new ones: an open trace may never end.
constexpr auto kPatience = std::chrono::seconds(5);

struct Process {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ShutdownStep> steps; ///< by stage
  int held = 0;                    ///< threads with a StaticsUse
  uint64_t ended = 0;              ///< number of StaticsUse that have ended
  bool isRegistered = false;
  bool begun = false, closed = false;
  pthread_key_t threadEnd;
};

thread_local constinit int heldHere = 0;
thread_local constinit bool endsProcess = false;
/// The thread ends, but not the process.
thread_local constinit bool onlyThreadEnds = false;

/// Never destroyed: threads may use it until the process ends.
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
    // Runs at the end of a thread only, after the destructors of thread-local objects. Removes the handler that
    // AtThreadEnd registered.
    pthread_key_create(&made->threadEnd, [](void *registered) {
      onlyThreadEnds = true;
      abi::__cxa_finalize(registered);
    });
    return made;
  }();
  return process;
}

/// Runs the steps in a thread of its own, as the one that called exit() has lost its thread-local objects. If a step is
/// stuck, for example on a task that does not end, the thread is abandoned.
void finishAll(Process &p, const std::vector<ShutdownStep> &steps) {
  const auto finish = [](const std::vector<ShutdownStep> &all) {
    for (const ShutdownStep &step : all)
      step.finish(std::chrono::steady_clock::now() + step.patience);
  };
  auto patience = std::chrono::milliseconds(500);
  for (const ShutdownStep &step : steps)
    patience += step.patience;
  const auto isDone = std::make_shared<bool>(false); // guarded by Process::mutex
  try {
    startInternalThread("tressel.exit", [&p, steps, finish, isDone] {
      finish(steps);
      std::lock_guard lock(p.mutex);
      *isDone = true;
      p.changed.notify_all();
    }).detach();
  } catch (const std::system_error &) { // no thread can be created
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
  std::erase_if(p.steps, [&](const ShutdownStep &step) { // a step that is stuck is waited for only once
    return std::ranges::any_of(needed, [&](const ShutdownStep &stuck) { return stuck.finish == step.finish; });
  });
  if (!isFirst)
    return;
  p.closed = true;
  p.changed.wait_for(lock, kPatience, [&] { return p.held == (heldHere ? 1 : 0); });
}

/// exit() first destroys the calling thread's thread-local objects, as the end of any thread does, and then runs the
/// handler registered last. So a handler registered by such a destructor runs first. If only the thread ends, the
/// handler is removed again.
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
    std::atexit(shutdown); // also for tasks that static destructors submit
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
    // For exit() in a thread that AtThreadEnd does not watch. Objects created after a handler was registered are
    // destroyed before it runs, and compiling creates static objects, mostly in its first runs. So the handler is
    // registered again after the 1st, 2nd, 4th, ... use.
    isToRegister = !p.begun && std::has_single_bit(++p.ended);
  }
  p.changed.notify_all();
  if (isToRegister)
    std::atexit(shutdown);
}

} // namespace tressel::runtime
