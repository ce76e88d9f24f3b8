// The part of Shutdown.h that the core needs for its pool.
#include "tressel/runtime/Shutdown.h"

#include <csignal>
#include <initializer_list>
#include <pthread.h>

namespace tressel::runtime {

static thread_local constinit bool isInternal = false;

std::atomic<uint32_t> detail::forks{[] {
  pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  return 0u;
}()};

detail::BlocksSignals::BlocksSignals() {
  static_assert(sizeof(sigset_t) <= sizeof(before_));
  sigset_t all;
  sigfillset(&all);
  for (int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    sigdelset(&all, crash);
  pthread_sigmask(SIG_SETMASK, &all, reinterpret_cast<sigset_t *>(before_));
}
detail::BlocksSignals::~BlocksSignals() { pthread_sigmask(SIG_SETMASK, reinterpret_cast<sigset_t *>(before_), nullptr); }

void detail::becomeInternalThread(const char *name) {
  isInternal = true;
  pthread_setname_np(pthread_self(), name);
}

bool isInternalThread() { return isInternal; }

} // namespace tressel::runtime
