// Schedules made up at random, and mistakes made in them: the verifier and an oracle that shares nothing with it agree.
#include "test/support/RandomSchedule.h"
#include "test/support/ScheduleMutations.h"
#include "test/support/ScheduleOracle.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace tressel::test {
namespace {

using namespace runtime;

std::string verdict(const Schedule &s) {
  const auto found = verifySchedule(s, 1);
  return found.empty() ? "" : found[0].message;
}

/// Programs of all sorts: seeds stand for options too.
RandomScheduleOptions optionsOf(uint64_t seed) {
  RandomScheduleOptions o;
  o.accelerators = 1 + static_cast<int>(seed % 3);
  o.commands = 20 + static_cast<int>(seed % 5) * 8;
  o.bodies = seed % 4 != 0;
  o.inFlight = seed % 7 == 0 ? 2 : 1;
  o.homes = seed % 3 == 1;
  return o;
}

/// Moving buffers are checked more strictly than they need be: by what all iterations but the first touch together.
bool hasMovingBuffers(const Schedule &s) {
  auto has = [](const CommandList &p) {
    return std::ranges::any_of(p.commands,
                               [](const Command &c) { return c.kind == CommandKind::Loop && c.numScalars > 1; });
  };
  return has(s.step) || std::ranges::any_of(s.bodies, has);
}

struct Tally {
  size_t programs = 0, commands = 0, inBodies = 0, waits = 0, made[kNumMutations] = {}, rejected[kNumMutations] = {},
         equivalent[kNumMutations] = {}, kinds[8] = {}, judged = 0, stricter = 0;
};

void checkMutations(uint64_t first, uint64_t count, Tally &tally) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Schedule s = randomSchedule(seed, optionsOf(seed));
    ++tally.programs;
    auto countList = [&](const CommandList &p, bool isBody) {
      tally.commands += p.commands.size();
      tally.inBodies += isBody ? p.commands.size() : 0;
      tally.waits += p.waits.size();
      for (const Command &c : p.commands)
        ++tally.kinds[static_cast<size_t>(c.kind)];
    };
    countList(s.prepare, false), countList(s.step, false);
    for (const CommandList &body : s.bodies)
      countList(body, true);
    ASSERT_EQ(verdict(s), "");
    ASSERT_EQ(judge(s).value_or(""), "");
    const bool moves = hasMovingBuffers(s);
    forEachMutation(s, [&](Mutation kind, const std::string &where, const Schedule &mutant) {
      ++tally.made[static_cast<size_t>(kind)];
      const std::string found = verdict(mutant);
      if (!found.empty())
        ++tally.rejected[static_cast<size_t>(kind)];
      if (kind == Mutation::RemovedWait || kind == Mutation::SwappedCollectives || kind == Mutation::ShortenedArena ||
          kind == Mutation::ShortenedSlot) {
        EXPECT_NE(found, "") << nameOf(kind) << " survives: " << where;
        return;
      }
      if (tally.made[static_cast<size_t>(kind)] % 8 != 0) // the oracle is slow
        return;
      const auto judged = judge(mutant, 60);
      if (!judged)
        return;
      ++tally.judged;
      if (found.empty()) {
        ++tally.equivalent[static_cast<size_t>(kind)];
        EXPECT_EQ(*judged, "") << nameOf(kind) << " survives: " << where;
      } else if (judged->empty()) {
        ++tally.stricter;
        EXPECT_TRUE(moves) << nameOf(kind) << " is refused, but safe: " << where << ": " << found;
      }
    });
  }
}

/// A fifth of 1,000 programs. What survives is a slot moved to where it does no harm, as the oracle says of one in
/// eight.
void checkFifth(uint64_t first) {
  Tally tally;
  checkMutations(first, 200, tally);
  printf("%zu programs, %zu commands (%zu in bodies), %zu waits\n", tally.programs, tally.commands, tally.inBodies,
         tally.waits);
  for (int k = 0; k < kNumMutations; ++k)
    printf("%s: %zu made, %zu rejected\n", nameOf(Mutation(k)), tally.made[k], tally.rejected[k]);
  printf("moved slots that the oracle judged: %zu, of these %zu safe and accepted, %zu safe but refused\n",
         tally.judged, tally.equivalent[static_cast<size_t>(Mutation::MovedSlot)], tally.stricter);
  for (size_t kind = 0; kind < 8; ++kind)
    EXPECT_GT(tally.kinds[kind], 50u) << "commands of kind " << kind;
  EXPECT_GT(tally.made[static_cast<size_t>(Mutation::SwappedCollectives)], 100u);
}
TEST(RandomSchedules, MistakesAreRejected1) { checkFifth(1); }
TEST(RandomSchedules, MistakesAreRejected2) { checkFifth(201); }
TEST(RandomSchedules, MistakesAreRejected3) { checkFifth(401); }
TEST(RandomSchedules, MistakesAreRejected4) { checkFifth(601); }
TEST(RandomSchedules, MistakesAreRejected5) { checkFifth(801); }

TEST(RandomSchedules, AreTheSameForASeed) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const Schedule a = randomSchedule(seed, optionsOf(seed)), b = randomSchedule(seed, optionsOf(seed));
    std::vector<std::vector<std::vector<std::byte>>> inputs(2);
    for (auto &call : inputs)
      for (const ValueDesc &input : a.inputs)
        call.push_back(someBytes(input.type.bytes(), seed + call.size()));
    auto run = [&](const Schedule &s) {
      States states;
      for (size_t i = 0; i < s.states.size(); ++i)
        states.bytes.push_back(someBytes(s.states[i].type.bytes(), i));
      auto outputs = runSerially(s, states, inputs);
      outputs.push_back(states.bytes);
      return outputs;
    };
    EXPECT_EQ(run(a), run(b)) << "seed " << seed;
  }
}

} // namespace
} // namespace tressel::test
