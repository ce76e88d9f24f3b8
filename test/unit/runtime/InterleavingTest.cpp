// Random schedules on simulated machines: whatever the order, the numbers of serial execution; whatever wait is
// missing, it is found; and the plan's clock agrees with that of the log.
#include "test/support/RunOnMachine.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Simulate.h"
#include "tressel/runtime/Simulated.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace tressel::runtime {
namespace {

using test::randomSchedule;
using test::Results;
using test::runTwice;
using test::runTwiceSerially;

std::shared_ptr<SimulatedMachine> machineOf(const SimulatedOptions &options) {
  return SimulatedMachine::create(machinePreset("4gpu-pcie3"), options);
}

TEST(Interleaving, EveryOrderGivesTheNumbersOfSerialExecution) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const Schedule s = randomSchedule(seed, {.accelerators = static_cast<int>(seed % 4) + 1, .homes = seed % 2 == 0});
    const Results expected = runTwiceSerially(s, seed);
    for (uint64_t order = 0; order < 4; ++order) {
      SimulatedOptions options{.interleaving = seed * 4 + order, .checkCopies = true};
      if (order == 3)
        options = {.checkRaces = true, .poison = true, .isolate = true};
      ASSERT_TRUE(runTwice(s, machineOf(options), seed) == expected) << "seed " << seed << " order " << order;
    }
  }
}

TEST(Interleaving, ThreadsGiveTheNumbersOfSerialExecution) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Schedule s = randomSchedule(seed, {.accelerators = 0, .lanes = 2});
    ASSERT_TRUE(runTwice(s, makeMachine("threads", {makeCpuDevice()}), seed) == runTwiceSerially(s, seed))
        << "seed " << seed;
  }
}

TEST(Interleaving, OneRunFindsEveryMissingWait) {
  int removed = 0, skippedInBodies = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    const Schedule s = randomSchedule(seed, {.accelerators = 2, .commands = 25});
    const auto machine = machineOf({.checkRaces = true});
    for (size_t i = 0; i < s.step.commands.size(); ++i)
      for (uint32_t w = 0; w < s.step.commands[i].numWaits; ++w) {
        Schedule without = s;
        Command &c = without.step.commands[i];
        std::swap(without.step.waits[c.firstWait + w], without.step.waits[c.firstWait + c.numWaits - 1u]);
        --c.numWaits;
        if (hasBodies(c.kind) || hasBodies(s.step.commands[s.step.waits[c.firstWait + w].command].kind)) {
          ++skippedInBodies; // needed perhaps only by what this run does not do: a branch not taken
          continue;
        }
        ++removed;
        try {
          runTwice(without, machine, seed, false);
          ADD_FAILURE() << "seed " << seed << ": command " << i << " without wait " << w;
        } catch (const RuntimeError &e) {
          EXPECT_NE(std::string(e.what()), "");
        }
      }
  }
  EXPECT_GT(removed, 300);
  RecordProperty("waits_removed", removed);
  RecordProperty("skipped_at_bodies", skippedInBodies);
}

/// The orders differ enough: without a wait the numbers are wrong in one of a few.
TEST(Interleaving, AMissingWaitShowsInSomeOrder) {
  int removed = 0, shown = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Schedule s = randomSchedule(seed, {.accelerators = 2, .commands = 25, .bodies = false});
    const Results expected = runTwiceSerially(s, seed);
    for (size_t i = 0; i < s.step.commands.size(); ++i)
      if (s.step.commands[i].numWaits > 0) {
        Schedule without = s;
        without.step.commands[i].numWaits = 0;
        ++removed;
        for (uint64_t order = 0; order < 16; ++order)
          if (runTwice(without, machineOf({.interleaving = order}), seed, false) != expected) {
            ++shown;
            break;
          }
      }
  }
  EXPECT_GT(removed, 50);
  EXPECT_GT(shown, removed / 3) << removed; // many a wrong value reaches no output
}

/// Without bodies both clocks keep one rule, on what should be the same commands.
TEST(VirtualTime, PlanAndLogAgree) {
  std::vector<double> differences;
  MachineModel model = machinePreset("4gpu-pcie3");
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Schedule s = randomSchedule(seed, {.accelerators = 4, .commands = 60, .bodies = false});
    if (seed == 101) // accelerators whose copies share an engine
      for (DeviceModel &device : model.devices)
        device.engines = {{"copy", {StreamKind::CopyIn, StreamKind::CopyOut}}};
    const auto machine = SimulatedMachine::create(model, {.computes = false});
    Executor e(s, machine);
    e.run({}, {});
    const Timeline log = timelineOf(e), plan = simulate(s, machine->model());
    differences.push_back(std::abs(double(log.end) - double(plan.end)) / std::max(1.0, double(plan.end)));
    EXPECT_LE(differences.back(), 1e-3) << "seed " << seed << ": " << plan.end << " planned, " << log.end
                                        << " simulated";
  }
  std::ranges::sort(differences);
  EXPECT_LE(differences[differences.size() / 2], 1e-6);
}

TEST(VirtualTime, DoesNotDependOnTheOrderOfTheWork) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Schedule s = randomSchedule(seed, {.accelerators = 3});
    Picoseconds end = -1;
    for (uint64_t order = 0; order < 5; ++order) {
      const auto machine = machineOf({.interleaving = order});
      runTwice(s, machine, seed);
      const Picoseconds now = machine->times().total;
      EXPECT_TRUE(end < 0 || now == end) << "seed " << seed;
      end = now;
    }
  }
}

} // namespace
} // namespace tressel::runtime
