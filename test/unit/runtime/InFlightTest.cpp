// Calls in flight, executed: several at work at once on simulated machines and on threads, with the numbers of one
// after the other; what they gain; what goes wrong.
#include "DeviceSchedules.h"
#include "test/support/RunOnMachine.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Simulated.h"
#include "tressel/runtime/VerifySchedule.h"

#include <gtest/gtest.h>

namespace tressel::runtime {
namespace {

using test::DeviceBuilder;
using test::kGpu0;
using ::tressel::test::randomSchedule;
using ::tressel::test::Results;
using ::tressel::test::runAllSerially;
using ::tressel::test::runInFlight;

std::shared_ptr<SimulatedMachine> machineOf(const SimulatedOptions &options) {
  return SimulatedMachine::create(machinePreset("4gpu-pcie3"), options);
}

TEST(InFlight, EveryOrderGivesTheNumbersOfSerialExecution) {
  size_t commands = 0, bodies = 0, collectives = 0, writesState = 0, runs = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const auto inFlight = static_cast<uint32_t>(2 + seed % 3);
    const Schedule s = randomSchedule(
        seed, {.accelerators = static_cast<int>(seed % 4) + 1, .homes = seed % 3 == 0, .inFlight = inFlight});
    ASSERT_EQ(s.inFlight, inFlight);
    commands += s.step.commands.size(), bodies += s.bodies.size(), collectives += s.collectives.size();
    for (const Operand &o : s.step.operands)
      writesState += s.buffers[o.buffer].space == Space::State && o.access != Access::Read;
    const size_t calls = 2 * inFlight + 1; // every set of arenas is used again
    const Results expected = runAllSerially(s, seed, calls);
    for (uint64_t order = 0; order < 4; ++order, ++runs) {
      SimulatedOptions options{.interleaving = seed * 4 + order, .checkCopies = true};
      if (order == 3)
        options = {.interleaving = seed, .checkRaces = true, .poison = true, .isolate = true};
      ASSERT_TRUE(runInFlight(s, machineOf(options), seed, calls) == expected) << "seed " << seed << " order " << order;
    }
  }
  printf("%zu runs of 150 schedules from seed 1: %zu commands, %zu bodies, %zu collectives, %zu writes of states\n",
         runs, commands, bodies, collectives, writesState);
  EXPECT_GT(bodies, 100u);
  EXPECT_GT(collectives, 50u);
  EXPECT_GT(writesState, 50u);
}

TEST(InFlight, ThreadsGiveTheNumbersOfSerialExecution) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Schedule s = randomSchedule(seed, {.accelerators = 0, .lanes = 2, .inFlight = 3});
    ASSERT_TRUE(runInFlight(s, makeMachine("threads", {makeCpuDevice()}), seed, 7) == runAllSerially(s, seed, 7))
        << "seed " << seed;
  }
}

TEST(InFlight, TimeDoesNotDependOnTheOrderOfTheWork) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Schedule s = randomSchedule(seed, {.accelerators = 3, .bodies = false, .inFlight = 2});
    Picoseconds end = -1;
    for (uint64_t order = 0; order < 4; ++order) {
      const auto machine = machineOf({.interleaving = order});
      runInFlight(s, machine, seed, 5);
      const Picoseconds now = machine->times().total;
      EXPECT_TRUE(end < 0 || now == end) << "seed " << seed;
      end = now;
    }
  }
}

/// y = 2 x on gpu0: n floats there, computed, and back, which take about as long each.
DeviceBuilder threeStages(int64_t n, uint32_t inFlight) {
  DeviceBuilder b(1);
  b.s.inFlight = inFlight;
  const TensorType t = ScheduleBuilder::floats(n);
  const uint32_t x = b.input("x", t), y = b.output("y", t);
  for (ValueDesc *value : {&b.s.inputs[0], &b.s.outputs[0]})
    value->home.memory = MemoryKind::Pinned;
  const uint32_t x0 = b.on(kGpu0, t), y0 = b.on(kGpu0, t);
  const uint32_t in = b.copy(x, x0, {}, b.copyIn(kGpu0));
  const uint32_t twice = b.launch(b.twice(n), {x0}, {y0}, {in}, b.compute(kGpu0));
  b.copy(y0, y, {twice}, b.copyOut(kGpu0));
  for (uint32_t i = 0; i < 3; ++i)
    b.s.step.commands[i].loc = b.location("op" + std::to_string(i), "net.cpp", 10 + i);
  return b;
}

TEST(InFlight, CallsHideBehindEachOther) {
  constexpr int64_t n = 1 << 22;
  constexpr size_t calls = 12;
  auto timeOf = [&](uint32_t inFlight, std::vector<Timeline> *timelines = nullptr) {
    DeviceBuilder b = threeStages(n, inFlight);
    MachineModel model = machinePreset("2gpu-pcie3");
    for (DeviceModel &device : model.devices) // the kernel takes as long as a copy
      device.bytesPerSecond = device.device == kGpu0 ? 2 * 15.75e9 : 1e12, device.contention = 0;
    for (KernelDesc &kernel : b.s.kernels)
      kernel.flops = 0;
    const auto machine = SimulatedMachine::create(model, {.computes = false});
    Executor e(b.s, machine);
    const std::vector<Executor::Call> list(calls);
    e.runCalls(list);
    EXPECT_EQ(e.bytesOn(kGpu0), std::min<int64_t>(inFlight, calls) * 2 * n * 4);
    for (uint32_t call = 0; timelines && call < calls; ++call)
      timelines->push_back(timelineOf(e, call));
    return static_cast<double>(machine->times().total);
  };
  std::vector<Timeline> timelines;
  const double one = timeOf(1) / calls, two = timeOf(2), three = timeOf(3, &timelines), many = timeOf(16);
  // Of three equal stages two calls at once keep two busy, three all.
  EXPECT_NEAR(two / one, calls / 2.0, 0.5);
  EXPECT_NEAR(three / one, (calls + 2) / 3.0, 0.05);
  EXPECT_NEAR(many / one, (calls + 2) / 3.0, 0.05);
  // One behind the other, a stage apart.
  for (size_t k = 0; k + 1 < calls; ++k) {
    ASSERT_EQ(timelines[k].spans.size(), 3u);
    EXPECT_NEAR(static_cast<double>(timelines[k + 1].end - timelines[k].end) / one, 1 / 3.0, 0.01) << k;
    EXPECT_GE(timelines[k + 1].spans[0].begin, timelines[k].spans[0].end) << k;
  }
}

/// What the verifier refuses, since calls share states, goes wrong in some order, and is found in any.
TEST(InFlight, AStateThatNothingOrdersIsARace) {
  auto program = [](uint32_t inFlight) {
    DeviceBuilder b(1);
    b.s.inFlight = inFlight;
    const TensorType t{i32, Shape{16}};
    const uint32_t state = b.state("m", t, StateKind::Mutable), x = b.input("x", t), y = b.output("y", t);
    const uint32_t x0 = b.on(kGpu0, t);
    const uint32_t first = b.copy(state, y, {}, 0);
    const uint32_t there = b.copy(x, x0, {}, b.copyIn(kGpu0));
    const uint32_t back = b.copy(x0, state, {first, there}, b.copyOut(kGpu0));
    b.s.step.commands[back].loc = b.location("update", "net.cpp", 7);
    return b.s;
  };
  const Schedule one = program(1), two = program(2);
  EXPECT_TRUE(verifySchedule(one).empty());
  EXPECT_FALSE(verifySchedule(two).empty());
  const Results expected = runAllSerially(one, 1, 4);
  EXPECT_TRUE(runInFlight(one, machineOf({.interleaving = 1, .checkRaces = true}), 1, 4) == expected);
  int wrong = 0;
  for (uint64_t order = 0; order < 8; ++order) {
    wrong += runInFlight(two, machineOf({.interleaving = order}), 1, 4, /*verified=*/false) != expected;
    try {
      runInFlight(two, machineOf({.interleaving = order, .checkRaces = true}), 1, 4, /*verified=*/false);
      ADD_FAILURE() << "order " << order;
    } catch (const RuntimeError &e) {
      EXPECT_NE(std::string(e.what()).find("update"), std::string::npos) << e.what();
    }
  }
  EXPECT_GT(wrong, 0);
}

struct Values {
  std::vector<std::vector<float>> x, y;
  std::vector<const void *> in;
  std::vector<void *> out;
  std::vector<Executor::Call> calls;
  Values(size_t count, size_t n) : x(count), y(count, std::vector<float>(n, -1)), in(count), out(count) {
    for (size_t k = 0; k < count; ++k) {
      for (size_t i = 0; i < n; ++i)
        x[k].push_back(static_cast<float>(k * 100 + i));
      in[k] = x[k].data(), out[k] = y[k].data();
      calls.push_back({{&in[k], 1}, {&out[k], 1}});
    }
  }
  bool isRight(size_t k) const {
    for (size_t i = 0; i < x[k].size(); ++i)
      if (y[k][i] != 2 * x[k][i])
        return false;
    return true;
  }
};

TEST(InFlight, AFailureSparesTheCallsBeforeItAndTheNextOnesRun) {
  DeviceBuilder b = threeStages(1000, 2);
  for (uint64_t order = 0; order < 6; ++order)
    for (Fault::Kind kind : {Fault::Kind::LaunchFails, Fault::Kind::DeviceLost, Fault::Kind::Hangs}) {
      const auto machine = SimulatedMachine::create(machinePreset("2gpu-pcie3"), {.interleaving = order});
      Executor e(b.executable(), machine, {.timeoutNs = 30'000'000});
      e.bindStates({});
      Values values(5, 1000);
      machine->inject({kind, kGpu0, kind == Fault::Kind::LaunchFails ? 2u : 7u});
      try {
        e.runCalls(values.calls);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const RuntimeError &error) {
        EXPECT_NE(std::string(error.what()).find("net.cpp:1"), std::string::npos) << error.what();
      }
      EXPECT_TRUE(values.isRight(0)) << order; // 7 of 3 + 3 + ... commands were well: the first call is over
      EXPECT_FALSE(values.isRight(4)) << order;
      Values again(5, 1000);
      e.runCalls(again.calls);
      e.run(values.calls[4].inputs, values.calls[4].outputs);
      EXPECT_TRUE(values.isRight(4)) << order;
      for (size_t k = 0; k < 5; ++k)
        EXPECT_TRUE(again.isRight(k)) << k;
    }
}

TEST(InFlight, CallsThatMeetInMemoryAreRefused) {
  DeviceBuilder b = threeStages(1000, 2);
  Executor e(b.executable(), SimulatedMachine::create(machinePreset("2gpu-pcie3")));
  e.bindStates({});
  Values values(3, 1000);
  e.runCalls({});
  values.in[1] = values.x[0].data(); // both may read it
  e.runCalls(values.calls);
  EXPECT_EQ(values.y[1], values.y[0]);
  values.out[2] = values.y[0].data();
  EXPECT_THROW(e.runCalls(values.calls), Error);
  values.out[2] = values.x[0].data();
  EXPECT_THROW(e.runCalls(values.calls), Error);
  values.calls[2].outputs = {};
  EXPECT_THROW(e.runCalls(values.calls), Error);
}

} // namespace
} // namespace tressel::runtime
