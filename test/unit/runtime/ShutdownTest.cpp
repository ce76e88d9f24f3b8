#include "tressel/runtime/Shutdown.h"

#include "tressel/runtime/Error.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <pthread.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tressel;
using namespace tressel::runtime;
using namespace std::chrono_literals;

namespace {

using ShutdownDeathTest = testing::Test;
auto always = [] { return true; };
template <typename Fn> void inProcess(Fn fn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  fn();
}

void say(const char *what) { std::fprintf(stderr, "%s;", what); }

void registerSteps() {
  using Until = std::chrono::steady_clock::time_point;
  atShutdown({.stage = ShutdownStage::Tasks, .isNeeded = always, .finish = [](Until) { say("tasks"); }});
  atShutdown({.stage = ShutdownStage::Report, .isNeeded = always, .finish = [](Until) { say("report"); }});
  atShutdown({.stage = ShutdownStage::Code, .isNeeded = always, .finish = [](Until) { say("code"); }});
  atShutdown({.stage = ShutdownStage::Tasks, .isNeeded = always, .finish = [](Until) { say("more tasks"); }});
  atShutdown({.stage = ShutdownStage::Tasks, .isNeeded = [] { return false; }, .finish = [](Until) { say("nothing"); }});
}

} // namespace

TEST(ShutdownDeathTest, StepsComeByStageBeforeStaticDestructors) {
  inProcess([] {
    EXPECT_EXIT(
        {
          registerSteps();
          static struct Static {
            ~Static() { say("static"); }
          } last; // made after all registrations
          std::exit(7);
        },
        testing::ExitedWithCode(7), "^report;code;tasks;more tasks;static;");
  });
}

TEST(ShutdownDeathTest, AThreadMayEndTheProcess) {
  inProcess([] {
    EXPECT_EXIT(
        {
          registerSteps();
          std::thread([] {
            { const StaticsUse use; }
            static struct Static {
              ~Static() { say("static"); }
            } last;
            std::exit(7);
          }).join();
        },
        testing::ExitedWithCode(7), "^report;code;tasks;more tasks;static;");
  });
}

TEST(ShutdownDeathTest, EndsThatFinishNothing) {
  inProcess([] {
    EXPECT_EXIT((registerSteps(), std::_Exit(7)), testing::ExitedWithCode(7), "^$");
    EXPECT_EXIT((registerSteps(), std::quick_exit(7)), testing::ExitedWithCode(7), "^$");
  });
}

TEST(ShutdownDeathTest, WaitsForCompilationsThatHaveBegun) {
  inProcess([] {
    EXPECT_EXIT(
        {
          static std::atomic<bool> begun{false};
          std::thread([] {
            const StaticsUse use;
            static struct Static {
              ~Static() { say("static"); }
            } madeByIt;
            begun = true;
            std::this_thread::sleep_for(200ms);
            say("compiled");
          }).detach();
          while (!begun)
            std::this_thread::yield();
          std::exit(7);
        },
        testing::ExitedWithCode(7), "^compiled;static;");
  });
}

TEST(ShutdownDeathTest, RefusesCompilationsInStaticDestructors) {
  inProcess([] {
    EXPECT_EXIT(
        {
          static struct Static {
            ~Static() {
              try {
                const StaticsUse use;
                say("compiles");
              } catch (const RuntimeError &e) {
                say(e.what());
              }
            }
          } compiles;
          { const StaticsUse use; }
          std::exit(7);
        },
        testing::ExitedWithCode(7), "^the process is ending: nothing can be compiled any more \\(compile before .*\\);$");
  });
}

TEST(ShutdownDeathTest, TellsThreadsThatAreJoinedThen) {
  inProcess([] {
    EXPECT_EXIT(
        {
          static struct Static {
            std::thread worker;
            ~Static() { worker.join(); }
          } joins;
          joins.worker = std::thread([] {
            try {
              for (;;) {
                const StaticsUse use;
                std::this_thread::sleep_for(1ms);
              }
            } catch (const RuntimeError &) {
              say("told");
            }
          });
          std::this_thread::sleep_for(20ms);
          std::exit(7);
        },
        testing::ExitedWithCode(7), "^told;$");
  });
}

TEST(ShutdownDeathTest, AUseMayEndTheProcessItself) {
  inProcess([] {
    EXPECT_EXIT(
        {
          registerSteps();
          const StaticsUse use; // a traced function that calls exit()
          std::exit(7);
        },
        testing::ExitedWithCode(7), "^report;code;tasks;more tasks;");
  });
}

TEST(ShutdownDeathTest, TheChildOfAForkHasNoSteps) {
  inProcess([] {
    EXPECT_EXIT(
        {
          registerSteps();
          const uint32_t before = numForks();
          const pid_t child = fork();
          if (child == 0)
            std::exit(numForks() == before + 1 && !isShuttingDown() ? 3 : 4);
          int status = 0;
          waitpid(child, &status, 0);
          say(WEXITSTATUS(status) == 3 ? "child" : "wrong");
          std::exit(7);
        },
        testing::ExitedWithCode(7), "^child;report;code;tasks;more tasks;");
  });
}

TEST(Shutdown, TheEndOfAThreadIsNone) {
  for (int i = 0; i < 100; ++i)
    std::thread([] { const StaticsUse outer, inner; }).join();
  EXPECT_FALSE(isShuttingDown());
  const StaticsUse use;
  EXPECT_FALSE(isShuttingDown());
}

TEST(Shutdown, InternalThreadsHaveANameAndNoSignals) {
  char name[32] = "";
  sigset_t blocked;
  startInternalThread("tressel.test", [&] {
    pthread_getname_np(pthread_self(), name, sizeof name);
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  }).join();
  EXPECT_STREQ(name, "tressel.test");
  EXPECT_TRUE(sigismember(&blocked, SIGALRM));
  EXPECT_FALSE(sigismember(&blocked, SIGSEGV));
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_FALSE(sigismember(&blocked, SIGALRM));
}
