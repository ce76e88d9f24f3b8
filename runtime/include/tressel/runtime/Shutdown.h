// The library's own threads, and how a process with them ends.
//
// Threads. All threads that the library starts are made by startInternalThread: those of the pool, of lanes, of streams, of drivers, and the one that
// compiles in the background. They leave signals to the program's own threads.
//
// exit(), and the return from main. One sequence, in this order, before static objects are destroyed (see the exception below):
//
//   Report ─► Code ─► Tasks ─► compiler closed ─► the program's and libraries' static objects are destroyed
//
//   Report          what is being recorded is completed and written (TRESSEL_PROFILE)
//   Code            the background compiler finishes what queued tasks wait for
//   Tasks           the engine's lanes finish what is queued; failures that were not seen are printed
//   compiler closed compilations in other threads that have begun come to their end; none begins any more
//
// Each step has a bounded time, as a task may be stuck in the program's own code. Streams of devices and the pool have no step: a task or a caller
// waits for all that it gives them, so they are idle once there is none. Their threads, and those of lanes, sleep until the process is gone: no
// thread is joined, no object that they use is destroyed. The sequence runs in a thread of its own, since the one that called exit() has lost its
// thread-local objects; where a task holds it up for longer than its steps have, it is left behind.
//
// Work after that. Static destructors may hold tensors, compiled functions and contexts, destroy them and call them, in any thread: what needs no
// compilation is done as ever, and tasks that they queue are finished by the same sequence again. What needs the compiler throws RuntimeError. A
// thread other than that which ends the process first waits for some seconds: where nothing joins it, it is gone before it could see the error.
//
// Other ends. _exit(), quick_exit(), abort() and a fatal signal finish and print nothing. After fork() the child has none of the threads: there the
// engine throws RuntimeError, the pool computes in the caller's thread, exit() has nothing to finish; a child of a process that had
// used neither is like any other process. dlclose() has no effect: the libraries stay in the process (-z nodelete).
//
// The exception. Static objects that a compilation makes are destroyed by exit() before handlers that were registered earlier. The sequence is
// registered anew in each thread that ends and had used the library, when its thread-local objects are destroyed: that is exit()'s first act, so
// the sequence precedes all static destructors. Only where a thread that never used the library calls exit() while another compiles for one of the
// first times, objects of that compilation may be gone before the sequence begins.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

namespace tressel::runtime {

//--- Threads ----------------------------------------------------------------------------------------------------------

namespace detail {
/// Threads that are started while one lives have all signals blocked, but for those of a crash.
class BlocksSignals {
public:
  BlocksSignals();
  ~BlocksSignals();
  BlocksSignals(const BlocksSignals &) = delete;

private:
  alignas(8) unsigned char before_[128]; ///< a sigset_t
};
void becomeInternalThread(const char *name);
extern std::atomic<uint32_t> forks;
} // namespace detail

/// Starts a thread of the library's own. `name` is what debuggers and `top` show, at most 15 letters. Throws std::system_error.
template <typename Fn> std::thread startInternalThread(const char *name, Fn body) {
  const detail::BlocksSignals starting;
  return std::thread([name, body = std::move(body)]() mutable {
    detail::becomeInternalThread(name);
    body();
  });
}

bool isInternalThread();

/// How many forks lie between the process that loaded the library and this one. What was made at another number has its threads in another process.
inline uint32_t numForks() { return detail::forks.load(std::memory_order_relaxed); }

//--- The end (of libtressel_devices.so: the core alone has nothing to finish) ------------------------------------------

enum class ShutdownStage : uint8_t { Report, Code, Tasks };

/// Something to be finished. It may be called more than once: static destructors may have given it more work. Where it is still needed after a
/// call, it is stuck, and not called again.
struct ShutdownStep {
  ShutdownStage stage = ShutdownStage::Tasks;
  /// Whether there is anything to do; called in the thread that ends the process. Waits for nothing.
  bool (*isNeeded)() = nullptr;
  /// Called in a thread of the sequence, and ends by `until`. Throws nothing.
  void (*finish)(std::chrono::steady_clock::time_point until) = nullptr;
  std::chrono::milliseconds patience{2000};
};
/// From here on the step is part of the sequence: by stage, and within one in the order of the calls. The child of a fork has none of them.
void atShutdown(const ShutdownStep &step);

/// Whether the sequence has begun.
bool isShuttingDown();

/// This thread may be the one that ends the process: where it is, the sequence precedes all static destructors. Known of the thread that loads the
/// library, and of those that made a StaticsUse.
void watchExit();

/// While one lives, libraries with static objects are used: LLVM, MLIR. The end of the process waits until none does. One may be made within another.
class StaticsUse {
public:
  /// Throws RuntimeError when the process ends.
  StaticsUse();
  ~StaticsUse();
  StaticsUse(const StaticsUse &) = delete;
  StaticsUse &operator=(const StaticsUse &) = delete;
};

} // namespace tressel::runtime
