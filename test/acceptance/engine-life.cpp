// Ends and interruptions of a process with work in flight, one per mode: engine-life.test says what must come of it.
#include <tressel/tressel.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tressel;

namespace {

constexpr int64_t kLarge = 1 << 20;

Tensor work(int steps) {
  Tensor x = ones({kLarge});
  for (int i = 0; i < steps; ++i)
    x = x + 1;
  return x;
}

/// Computes when the process is nearly over, and is destroyed with a value in flight.
struct Static {
  Tensor value;
  bool computes = false;
  std::function<Tensor(Tensor)> function;
  std::thread joined;
  ~Static() {
    if (computes)
      std::printf("in a static destructor: %g\n", (value + 1).to_vector<float>()[0]);
    if (function)
      try {
        std::printf("called in a static destructor: %g\n", function(value).to_vector<float>()[0]);
      } catch (const Error &e) {
        std::printf("refused in a static destructor: %s\n", e.message().c_str());
      }
    if (joined.joinable())
      joined.join();
  }
} lastWords;

std::atomic<int> signals{0};
std::atomic<bool> inForeignThread{false};
std::atomic<bool> stuckTaskRuns{false};
pthread_t mainThread;

int run(const char *mode) {
  auto is = [&](const char *name) { return std::strcmp(mode, name) == 0; };
  if (is("exit-busy")) { // leaves main with a queue; static tensors hold what it makes
    lastWords.value = work(300);
    return 7;
  }
  if (is("exit-call")) {
    Tensor x = work(300);
    std::exit(7);
  }
  if (is("quick-exit")) {
    Tensor x = work(300);
    std::_Exit(7);
  }
  if (is("exit-static")) {
    lastWords.value = work(10);
    lastWords.computes = true;
    return 7;
  }
  if (is("exit-threads")) { // other threads go on submitting and waiting while the process ends
    for (int t = 0; t < 4; ++t)
      std::thread([] {
        for (;;)
          work(5).wait();
      }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::exit(7);
  }
  if (is("exit-compiling")) { // the first call of an op in flight
    std::thread([] {
      for (int64_t n = 3;; ++n) {
        auto f = jit([](Tensor x) { return exp(x) * 2; });
        f(ones({n})).wait();
      }
    }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::exit(7);
  }
  if (is("exit-thread")) { // a thread ends the process while the main one computes, and compiles
    std::thread([] {
      work(5).wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      std::exit(7);
    }).detach();
    for (int64_t n = 3;; ++n) {
      auto f = jit([](Tensor x) { return matmul(x, x) * 2; });
      f(ones({n, n})).wait();
    }
  }
  if (is("exit-background")) { // ops whose kernels are being compiled, that are not waited for
    clear_compile_caches();
    const Tensor x = ones({100}, i16);
    lastWords.value = cumsum(hypot(x, x) + sinh(x), 0);
    for (int64_t n = 1; n < 6; ++n)
      lastWords.value = sum(erf(ones({n, 7}, f64)), {0}) + sinh(ones({n, 7}, f16));
    return 7;
  }
  if (is("exit-stuck")) { // a task that does not end by itself
    const CustomOp &stuck = register_op({.name = "test.stuck",
                                         .infer = [](auto in) { return std::vector{in[0]}; },
                                         .cpu = [](const tressel_call *, int64_t, int64_t) -> int32_t {
                                           stuckTaskRuns = true;
                                           std::this_thread::sleep_for(std::chrono::seconds(60));
                                           return 0;
                                         },
                                         .symbol = "test_stuck"});
    lastWords.value = stuck(ones({kLarge}));
    while (!stuckTaskRuns) // a task that has not begun is dropped at the end
      std::this_thread::yield();
    return 7;
  }
  if (is("exit-foreign")) { // by a thread that never used the library
    work(5).wait();
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      std::exit(7);
    }).detach();
    for (;;)
      work(5).wait();
  }
  if (is("exit-function") || is("exit-uncompiled")) {
    auto f = jit([](Tensor x) { return exp(x) * 2; });
    if (is("exit-function"))
      f(zeros({3})).wait();
    lastWords.value = zeros({3});
    lastWords.function = [f](Tensor x) mutable { return f(x); };
    return 7;
  }
  if (is("exit-joined")) { // a static destructor joins a thread that goes on with what it does
    static std::atomic<bool> stop{false};
    lastWords.joined = std::thread([] {
      try {
        for (int64_t n = 3; !stop; ++n)
          jit([](Tensor x) { return exp(x) * 2; })(ones({n})).wait();
      } catch (const Error &e) {
        std::printf("joined: %s\n", e.message().c_str());
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return 7;
  }
  if (is("exit-failed")) {
    Tensor bad = take(zeros({kLarge}), arange(kLarge) + kLarge);
    Tensor behind = exp(bad) + 1;
    return 7;
  }
  if (is("throw")) // out of main, with a queue
    throw work(300);
  if (is("fork")) { // the parent goes on; the child is told what it cannot do, and ends by itself
    Tensor x = work(50);
    const pid_t child = fork();
    if (child == 0) {
      try {
        (x + 1).wait();
        std::printf("child: computed\n");
      } catch (const Error &e) {
        std::printf("child: %s\n", e.message().c_str());
      }
      std::fflush(stdout);
      std::exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("child ended with %d, parent has %g\n", WEXITSTATUS(status), x.to_vector<float>()[0]);
    return 7;
  }
  if (is("signals")) { // a timer interrupts everything; handlers run in the program's own threads, calls go on
    mainThread = pthread_self();
    struct sigaction action {};
    action.sa_handler = [](int) {
      ++signals;
      if (!pthread_equal(pthread_self(), mainThread))
        inForeignThread = true;
    };
    sigaction(SIGALRM, &action, nullptr);
    const itimerval every{{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &every, nullptr);
    float sum = 0;
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    int rounds = 0;
    while (rounds < 5 || std::chrono::steady_clock::now() < until)
      sum = work(5).to_vector<float>()[3], ++rounds;
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    std::printf("signals: %s, in other threads: %s, value %g\n", signals > 10 ? "many" : "few",
                inForeignThread ? "yes" : "no", sum);
    return 7;
  }
  if (is("waits")) {
    sum(work(1)).wait(); // compiled, so that the caller is not held by that below
    Tensor x = work(200);
    const float first = x.to_vector<float>()[0];
    Tensor y = work(200);
    y.wait();
    Tensor z = sum(work(200));
    std::printf("%g %g\n", first, z.item<float>());
    return 7;
  }
  std::fprintf(stderr, "engine-life: no mode '%s'\n", mode);
  return 2;
}

} // namespace

int main(int argc, char **argv) { return run(argc == 2 ? argv[1] : ""); }
