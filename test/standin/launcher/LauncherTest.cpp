// The launcher against the stand-in driver: programs over two cards when calls of the driver fail, one after the other; graphs; planted mistakes.
#include "test/standin/StandIn.h"
#include "test/unit/runtime/DeviceSchedules.h"
#include "test/unit/runtime/GpuTestKernels.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executor.h"

#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <sys/wait.h>
#include <unistd.h>

namespace tressel::runtime {
namespace {

using test::DeviceBuilder;
using test::kCpu;
using test::kGpu0;
using test::kGpu1;

const standin::Control &driver() { return *standin::control(); }

std::shared_ptr<const std::vector<GpuCode>> gpuCode() {
  static const auto code = std::make_shared<const std::vector<GpuCode>>(1, test::gpuTestCode());
  return code;
}

/// y = 2 (x + w) by gpu0, z = 2 (2 x + w) by gpu1 with x + w from gpu0 by way of pinned memory.
std::shared_ptr<const Executable> twoCards(int64_t n) {
  DeviceBuilder b(2);
  const TensorType t = ScheduleBuilder::floats(n);
  const uint32_t x = b.input("x", t), w = b.state("w", t, StateKind::Parameter);
  const uint32_t y = b.output("y", t), z = b.output("z", t);
  const uint32_t w0 = b.derivedOn(kGpu0, "w.gpu0", t);
  b.copy(w, w0, {}, b.copyIn(kGpu0), true);
  const uint32_t x0 = b.on(kGpu0, t), x1 = b.on(kGpu1, t), sum0 = b.on(kGpu0, t), sum1 = b.on(kGpu1, t), staged = b.pinned(t);
  const uint32_t y0 = b.on(kGpu0, t), z1 = b.on(kGpu1, t);
  const uint32_t in0 = b.copy(x, x0, {}, b.copyIn(kGpu0));
  const uint32_t in1 = b.copy(x, x1, {}, b.copyIn(kGpu1));
  const uint32_t add = b.add(n);
  const uint32_t add0 = b.launch(add, {x0, w0}, {sum0}, {in0}, b.compute(kGpu0));
  const uint32_t out0 = b.copy(sum0, staged, {add0}, b.copyOut(kGpu0));
  const uint32_t in2 = b.copy(staged, sum1, {out0}, b.copyIn(kGpu1));
  const uint32_t doubling = b.twice(n), twice = b.launch(doubling, {sum0}, {y0}, {}, b.compute(kGpu0));
  const uint32_t add1 = b.launch(add, {sum1, x1}, {z1}, {in1, in2}, b.compute(kGpu1));
  const uint32_t back0 = b.copy(y0, y, {twice}, b.copyOut(kGpu0));
  // In the bytes of x1: where add1 fails and this is skipped, the copy of its result must not run.
  const uint32_t twice1 = b.launch(doubling, {z1}, {x1}, {}, b.compute(kGpu1));
  const uint32_t back1 = b.copy(x1, z, {twice1}, b.copyOut(kGpu1));
  for (uint32_t i : {in0, in1, add0, out0, in2, twice, add1, twice1, back0, back1})
    b.s.step.commands[i].loc = b.location("op" + std::to_string(i), "net.cpp", 10 + i);
  for (KernelDesc &desc : b.s.kernels)
    desc = test::onCard(desc);
  return b.executable({.gpu = gpuCode()});
}

struct Calls {
  explicit Calls(int64_t n) : n(n), x(size_t(n)), w(size_t(n)), y(size_t(n)), z(size_t(n)) {
    std::iota(x.begin(), x.end(), 0.0f);
    std::iota(w.begin(), w.end(), 7.0f);
  }
  /// Several calls: one by one, then as graphs, with other addresses.
  bool isRight(const std::shared_ptr<const Executable> &program) {
    Executor e(program, openMachine("cuda"));
    void *states[] = {w.data()};
    e.bindStates(states);
    for (int call = 0; call < 4; ++call) {
      std::vector<float> &mine = call == 3 ? other : x;
      other = x;
      std::ranges::fill(y, -1.0f);
      std::ranges::fill(z, -1.0f);
      const void *in[] = {mine.data()};
      void *out[] = {y.data(), z.data()};
      e.run(in, out);
      for (size_t i = 0; i < x.size(); ++i)
        if (y[i] != 2 * (x[i] + w[i]) || z[i] != 2 * (x[i] + w[i] + x[i]))
          return false;
    }
    return true;
  }
  void run(const std::shared_ptr<const Executable> &program) { EXPECT_TRUE(isRight(program)); }
  int64_t n;
  std::vector<float> x, w, y, z, other;
};

uint64_t countOf(const standin::Alive &a) { return a.allocations + a.pinned + a.registered + a.streams + a.events + a.modules + a.graphs + a.pending; }

class Launcher : public ::testing::Test {
protected:
  void SetUp() override { driver().configure("forget=1 fail=0 fail-kernel=0 error=0 order=eager seed=0 patience=3"); }
};

TEST_F(Launcher, ProgramsAreRightInEveryOrder) {
  const auto program = twoCards(40);
  for (const char *order : {"eager", "late", "random", "reversed"})
    for (int seed = 1; seed <= 25; ++seed) {
      driver().configure(("forget=1 order=" + std::string(order) + " seed=" + std::to_string(seed)).c_str());
      Calls(40).run(program);
      ASSERT_EQ(standin::findings(driver()), "") << order << " " << seed;
    }
}

TEST_F(Launcher, NothingIsLeftBehind) {
  const auto program = twoCards(40);
  Calls(40).run(program);
  const standin::Alive before = driver().alive();
  Calls(40).run(program);
  const standin::Alive after = driver().alive();
  EXPECT_EQ(std::memcmp(&before, &after, sizeof before), 0);
  EXPECT_EQ(countOf(after), 0u);
}

/// Each call of the driver fails once: the program says what has failed and where, or does without; nothing hangs, nothing is used after it was freed.
TEST_F(Launcher, EveryCallMayFail) {
  const auto program = twoCards(40);
  Calls(40).run(program); // cards are listed once for the process
  int failed = 0, withPlace = 0;
  for (uint64_t n = 1;; ++n) {
    driver().configure(("forget=1 seed=" + std::to_string(n) + " order=random fail=" + std::to_string(n)).c_str());
    const auto begin = std::chrono::steady_clock::now();
    std::string message;
    const uint64_t before = countOf(driver().alive());
    try {
      Calls(40).run(program);
    } catch (const Error &problem) {
      message = problem.what();
    }
    const std::string call = driver().failedCall();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << call;
    EXPECT_EQ(standin::findings(driver()), "") << n << ": " << call;
    if (call.empty())
      break; // there are no more
    const standin::Alive left = driver().alive();
    EXPECT_EQ(left.pending, 0u) << call;
    const bool isFree = call.find("Free") != std::string::npos || call.find("Destroy") != std::string::npos || call.find("Unregister") != std::string::npos ||
                        call == "cuCtxSetCurrent" || call == "cuModuleUnload";
    if (!isFree)
      EXPECT_EQ(countOf(left), before) << n << ": " << call << ": " << message;
    if (message.empty())
      continue;
    ++failed;
    withPlace += message.find("net.cpp:") != std::string::npos;
    EXPECT_NE(message.find("out of memory"), std::string::npos) << call << ": " << message;
    ASSERT_LT(n, 2000u);
  }
  EXPECT_GT(failed, 20);
  EXPECT_GT(withPlace, 5);
}

[[noreturn]] void breakACard() {
  const auto program = twoCards(40);
  driver().configure("order=late fail-kernel=2");
  for (const char *when : {"first: ", "again: "}) // the card is lost for the process
    try {
      Calls(40).run(program);
      _exit(1);
    } catch (const Error &problem) {
      std::fprintf(stderr, "%s%s\n", when, problem.what());
    }
  _exit(0);
}
TEST_F(Launcher, AnErrorOfAKernelNamesItsOpAndLine) {
  EXPECT_EXIT(breakACard(), ::testing::ExitedWithCode(0), "first: (.|\n)*net.cpp:1[0-9](.|\n)*again: ");
}

TEST_F(Launcher, MemoryThatIsNotThereIsRefusedWithItsBytes) {
  driver().configure("bytes=4096");
  std::string message;
  try {
    Calls(4000).run(twoCards(4000));
  } catch (const Error &problem) {
    message = problem.what();
  }
  driver().configure("bytes=8589934592");
  EXPECT_NE(message.find("16000 bytes"), std::string::npos) << message;
}

/// What the driver is told is changed on its way, as a mistake of the launcher would.
TEST_F(Launcher, PlantedMistakesAreNoticed) {
  const auto program = twoCards(40);
  for (const char *mistake : {"swapped-parameters", "early-event", "no-wait", "no-edge", "lost-edge"})
    for (const char *order : {"eager", "late", "random", "reversed"}) {
      driver().configure(("forget=1 seed=3 patience=1000 order=" + std::string(order) + " plant=" + mistake).c_str());
      Calls calls(40);
      std::string noticed;
      try {
        noticed = calls.isRight(program) ? "" : "other numbers";
      } catch (const Error &problem) {
        noticed = problem.what();
      }
      driver().configure("plant=none patience=3");
      noticed += standin::findings(driver());
      EXPECT_NE(noticed, "") << mistake << ", " << order;
    }
}

/// Memory that is given back while a copy from it may still run.
TEST_F(Launcher, ACopyFromFreedMemoryIsNoticed) {
  for (const char *order : {"eager", "late", "random", "reversed"}) {
    driver().configure(("forget=1 seed=3 patience=1000 order=" + std::string(order)).c_str());
    {
      const auto machine = openMachine("cuda");
      Device &card = machine->at(kGpu0), &host = machine->at(kCpu);
      void *from = host.allocate(4096, MemoryKind::Pinned), *to = card.allocate(4096, MemoryKind::Device);
      const auto stream = card.makeStream(StreamKind::CopyIn, "s");
      const Region regions[] = {{from, 4096, Access::Read, {kCpu, MemoryKind::Pinned}}, {to, 4096, Access::Write, {kGpu0, MemoryKind::Device}}};
      const Event copied = stream->submit({.kind = DeviceCommandKind::Copy, .regions = regions});
      host.release(from); // without copied
      EXPECT_NE(standin::findings(driver()).find("cuMemFreeHost frees"), std::string::npos) << order << standin::findings(driver());
      driver().configure("patience=3");
      machine->awaitAny({&copied, 1}, int64_t(10) * 1'000'000'000);
      card.release(to);
    }
  }
}

TEST_F(Launcher, AForkedChildIsTold) {
  const auto machine = openMachine("cuda");
  const pid_t child = fork();
  if (child == 0) {
    try {
      openMachine("cuda");
    } catch (const Error &problem) {
      _exit(std::strstr(problem.what(), "forked") ? 0 : 1);
    }
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace
} // namespace tressel::runtime

int main(int argc, char **argv) {
  tressel::standin::requireStandIn(argv, "cards=2 findings=keep");
  ::testing::InitGoogleTest(&argc, argv);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  return RUN_ALL_TESTS();
}
