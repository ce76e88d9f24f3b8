// What the verifier proves of branches and loops.
#include "ScheduleBuilder.h"
#include "tressel/runtime/VerifySchedule.h"

#include <gtest/gtest.h>

using namespace tressel;
using namespace tressel::runtime;

namespace {

const TensorType t16 = ScheduleBuilder::floats(16), kFlag{DType::boolean, Shape{}};

void expectSafe(const ScheduleBuilder &b) {
  for (const Violation &v : verifySchedule(b.s))
    ADD_FAILURE() << v.message;
}
void expectViolation(const ScheduleBuilder &b, ViolationKind kind, const std::string &text) {
  const auto found = verifySchedule(b.s);
  ASSERT_FALSE(found.empty()) << "accepted; expected: " << text;
  EXPECT_EQ(found[0].kind, kind) << found[0].message;
  EXPECT_NE(found[0].message.find(text), std::string::npos) << found[0].message;
}

/// Slots of one arena, a flag in the first, x and out.
struct Builder : ScheduleBuilder {
  explicit Builder(int streams = 1) : ScheduleBuilder(streams) {
    arena(64 * 8);
    flag = buffer(Space::Arena, 0, 0, kFlag);
    for (int i = 1; i < 8; ++i)
      slots[i] = buffer(Space::Arena, 0, i * 64, t16);
    x = input("x", t16);
    out = output("out", t16);
    fill(flag, 1);
  }
  uint32_t flag, slots[8], x, out;
};

/// A loop of two streams: carried in slot 1; the body makes slot 2 on one stream and slot 3 on the other, and from both
/// the next carried value.
Builder twoStreams() {
  Builder b(2);
  b.copy(b.x, b.slots[1]);
  const uint32_t k2 = b.kernel("k2"), body = b.bodies();
  const uint32_t loop = b.loop(5, body, {}, {}, 0);
  b.into(body);
  const uint32_t left = b.copy(b.slots[1], b.slots[2], {}, 0), right = b.copy(b.slots[1], b.slots[3], {}, 1);
  const uint32_t both = b.launch(k2, {b.slots[2], b.slots[3]}, {b.slots[4]}, {left}, 1);
  (void)right;
  b.copy(b.slots[4], b.slots[1], {both}, 0);
  b.intoStep();
  b.copy(b.slots[1], b.out, {loop}, 1);
  return b;
}

} // namespace

TEST(VerifyBodies, BranchWritesWhatBothWrite) {
  Builder b;
  const uint32_t first = b.bodies(2);
  b.branch(b.flag, first);
  for (uint32_t body : {first, first + 1}) {
    b.into(body);
    b.copy(b.x, b.out);
  }
  expectSafe(b);
  b.s.bodies[1] = {};
  expectViolation(b, ViolationKind::OutputIncomplete, "of output 0 'out'");
}

TEST(VerifyBodies, WhatOneBranchWroteIsStillInTheWay) {
  // The first branch writes a slot, the other does not: nobody may read it, but whoever writes it waits for the branch.
  for (bool waits : {true, false}) {
    Builder b(2);
    b.copy(b.x, b.out);
    const uint32_t first = b.bodies(2);
    const uint32_t branch = b.branch(b.flag, first);
    b.into(first);
    b.copy(b.x, b.slots[1]);
    b.intoStep();
    if (waits)
      b.copy(b.x, b.slots[1], {branch}, 1);
    else
      b.copy(b.x, b.slots[1], {}, 1);
    if (waits)
      expectSafe(b);
    else
      expectViolation(b, ViolationKind::Race, "step command 3 on stream 'lane1' writes buffer 1");
  }
}

TEST(VerifyBodies, ManyStreamsAndNestedBodies) {
  Builder b(64);
  b.copy(b.x, b.out);
  uint32_t body = b.bodies();
  b.loop(2, body, {}, {}, 63);
  for (int depth = 0; depth < 3; ++depth) {
    b.into(body);
    body = b.bodies();
    b.loop(2, body, {}, {}, 63);
  }
  b.into(body);
  b.copy(b.x, b.slots[1], {}, 63);
  expectSafe(b);
}

TEST(VerifyBodies, BranchMayReadInOneWhatWasWrittenBefore) {
  Builder b;
  b.copy(b.x, b.slots[1]);
  const uint32_t first = b.bodies(2);
  b.branch(b.flag, first);
  b.into(first);
  b.copy(b.slots[1], b.out);
  b.into(first + 1);
  b.copy(b.slots[2], b.out);
  expectViolation(b, ViolationKind::ReadBeforeWrite, "body 1 command 0");
  b.s.bodies[1].operands[0].buffer = b.x;
  expectSafe(b);
}

TEST(VerifyBodies, LoopReadsWhatOnlyALaterIterationCould) {
  Builder b;
  b.copy(b.x, b.out);
  const uint32_t body = b.bodies();
  b.loop(4, body);
  b.into(body);
  b.copy(b.slots[1], b.slots[2]); // written below: too late for the first iteration
  b.copy(b.x, b.slots[1]);
  expectViolation(b, ViolationKind::ReadBeforeWrite, "body 0 command 0");
}

TEST(VerifyBodies, LoopOverwritesWhatTheNextIterationReads) {
  // Slot 1 is carried; slot 2, a temporary, must not lie on it. A single walk of the body would not see that.
  Builder b;
  b.copy(b.x, b.slots[1]);
  const uint32_t half = b.buffer(Space::Arena, 0, 64, ScheduleBuilder::floats(8)), body = b.bodies();
  (void)half;
  b.loop(4, body);
  b.into(body);
  b.copy(b.slots[1], b.slots[2]);
  b.intoStep();
  b.copy(b.slots[1], b.out);
  expectSafe(b);
}

TEST(VerifyBodies, WhileMayRunNoIteration) {
  Builder b;
  const uint32_t first = b.bodies(2);
  b.whileLoop(b.flag, first);
  b.into(first);
  b.fill(b.flag, 0);
  b.into(first + 1);
  b.copy(b.x, b.out);
  expectViolation(b, ViolationKind::OutputIncomplete, "of output 0 'out'");
  b.intoStep();
  b.copy(b.x, b.out);
  expectSafe(b);
}

TEST(VerifyBodies, WhileNeedsItsFlag) {
  Builder b;
  b.s.step.commands.clear(); // nothing fills the flag
  b.copy(b.x, b.out);
  const uint32_t first = b.bodies(2);
  b.whileLoop(b.flag, first);
  expectViolation(b, ViolationKind::ReadBeforeWrite, "step command 1");
}

TEST(VerifyBodies, MovingBuffersCoverTheirWay) {
  Builder b;
  b.s.outputs[0].type = ScheduleBuilder::floats(48);
  const uint32_t body = b.bodies();
  b.loop(3, body, {{b.out, 64}});
  b.into(body);
  b.copy(b.x, b.out);
  expectSafe(b);
  b.s.step.scalars[0] = 2;
  expectViolation(b, ViolationKind::OutputIncomplete, "bytes 128 to 192 of output 0");
  b.s.step.scalars[0] = 4;
  expectViolation(b, ViolationKind::Structure, "out of its output");
}

TEST(VerifyBodies, MovingBuffersLeaveNoGaps) {
  Builder b;
  b.s.outputs[0].type = ScheduleBuilder::floats(64);
  const uint32_t body = b.bodies();
  b.loop(3, body, {{b.out, 96}});
  b.into(body);
  b.copy(b.x, b.out);
  expectViolation(b, ViolationKind::Structure, "leaves gaps");
  b.s.step.scalars[1] = 32;
  expectViolation(b, ViolationKind::Structure, "moves by 32 bytes");
}

TEST(VerifyBodies, MovingByNothingIsStandingStill) {
  Builder b;
  const uint32_t body = b.bodies();
  b.loop(3, body, {{b.out, 0}});
  b.into(body);
  b.copy(b.x, b.out);
  expectSafe(b);
}

TEST(VerifyBodies, MovingBuffersReadAllOfTheirWay) {
  // Slots 1 to 3 are read on the way; only two of them are written.
  Builder b;
  b.copy(b.x, b.slots[1]);
  b.copy(b.x, b.slots[2]);
  const uint32_t moving = b.buffer(Space::Arena, 0, 64, t16), body = b.bodies();
  b.loop(3, body, {{moving, 64}});
  b.into(body);
  b.copy(moving, b.out);
  expectViolation(b, ViolationKind::ReadBeforeWrite, "bytes 192 to 256");
}

TEST(VerifyBodies, MovingBuffersMeetNothingElse) {
  for (bool meets : {false, true}) {
    Builder b;
    b.copy(b.x, b.slots[meets ? 3 : 5]);
    const uint32_t moving = b.buffer(Space::Arena, 0, 64, t16), body = b.bodies();
    b.loop(4, body, {{moving, 64}}); // over slots 1 to 4
    b.into(body);
    b.copy(b.slots[meets ? 3 : 5], moving);
    b.intoStep();
    b.copy(b.slots[1], b.out);
    if (meets)
      expectViolation(b, ViolationKind::Race, "which it touches in other iterations");
    else
      expectSafe(b);
  }
}

TEST(VerifyBodies, EachWaitOfTwoStreamsIsNeeded) {
  const Builder safe = twoStreams();
  expectSafe(safe);
  int removed = 0;
  for (int program = -1; program < int(safe.s.bodies.size()); ++program) {
    const CommandList &p = program < 0 ? safe.s.step : safe.s.bodies[size_t(program)];
    for (size_t i = 0; i < p.commands.size(); ++i)
      for (uint16_t w = 0; w < p.commands[i].numWaits; ++w) {
        Builder b = safe;
        CommandList &mutated = program < 0 ? b.s.step : b.s.bodies[size_t(program)];
        Command &c = mutated.commands[i];
        std::swap(mutated.waits[c.firstWait + w], mutated.waits[c.firstWait + c.numWaits - 1u]);
        --c.numWaits;
        EXPECT_FALSE(verifySchedule(b.s).empty()) << "program " << program << " command " << i << " wait " << w;
        ++removed;
      }
  }
  EXPECT_EQ(removed, 3);
}

TEST(VerifyBodies, LoopsOfTwoStreamsAreNotOrdered) {
  // Two loops side by side that write the same slot; only a wait orders them.
  for (bool ordered : {true, false}) {
    Builder b(2);
    b.copy(b.x, b.out);
    const uint32_t bodies = b.bodies(2);
    const uint32_t first = b.loop(2, bodies, {}, {}, 0);
    if (ordered)
      b.loop(2, bodies + 1, {}, {first}, 1);
    else
      b.loop(2, bodies + 1, {}, {}, 1);
    for (uint32_t body : {bodies, bodies + 1}) {
      b.into(body);
      b.fill(b.slots[1], 0);
    }
    if (ordered)
      expectSafe(b);
    else
      expectViolation(b, ViolationKind::Race, "body 1 command 0");
  }
}

TEST(VerifyBodies, StructureIsATree) {
  Builder b;
  b.copy(b.x, b.out);
  const uint32_t body = b.bodies();
  b.loop(2, body);
  b.loop(2, body);
  expectViolation(b, ViolationKind::Structure, "belongs to another command");
  b.s.step.commands.pop_back();
  expectSafe(b);
  b.bodies();
  expectViolation(b, ViolationKind::Structure, "body 1 belongs to no command");
  b.s.bodies.pop_back();
  b.into(body);
  b.loop(2, body);
  expectViolation(b, ViolationKind::Structure, "belongs to another command");
  b.s.bodies[0].commands[0].body = 7;
  expectViolation(b, ViolationKind::Structure, "do not exist");
}

TEST(VerifyBodies, DeepNestingIsRefused) {
  Builder b;
  b.copy(b.x, b.out);
  for (int depth = 0; depth < 9; ++depth) {
    const uint32_t body = b.bodies();
    b.loop(2, body);
    b.into(body);
    if (depth == 7)
      expectSafe(b);
  }
  expectViolation(b, ViolationKind::Structure, "nested deeper");
}
