// Threads of the library's own.
#pragma once

#include <csignal>
#include <initializer_list>
#include <pthread.h>

namespace tressel::runtime {

/// Threads that are started while one lives leave signals to the program's own threads, but for those of a crash.
class StartsInternalThreads {
public:
  StartsInternalThreads() {
    sigset_t all;
    sigfillset(&all);
    for (int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      sigdelset(&all, crash);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~StartsInternalThreads() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StartsInternalThreads(const StartsInternalThreads &) = delete;

private:
  sigset_t before_;
};

} // namespace tressel::runtime
