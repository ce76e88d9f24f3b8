// What the verifier proves of collectives, host calls and calls in flight.
#include "ScheduleBuilder.h"
#include "tressel/runtime/VerifySchedule.h"

#include <gtest/gtest.h>

using namespace tressel;
using namespace tressel::runtime;

namespace {

constexpr DeviceRef kGpu0{DeviceKind::Gpu, 0}, kGpu1{DeviceKind::Gpu, 1};
const TensorType t16 = ScheduleBuilder::floats(16), t32 = ScheduleBuilder::floats(32);

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

/// Streams 0 cpu, 1 gpu0, 2 gpu1; three slots of 64 bytes on each accelerator, filled but for the last.
struct Builder : ScheduleBuilder {
  Builder() : ScheduleBuilder(1) {
    s.streams.push_back({kGpu0, StreamKind::Compute, "gpu0"});
    s.streams.push_back({kGpu1, StreamKind::Compute, "gpu1"});
    for (uint32_t g = 0; g < 2; ++g) {
      s.arenas.push_back({g ? kGpu1 : kGpu0, MemoryKind::Device, 256});
      for (uint32_t i = 0; i < 3; ++i)
        slots[g][i] = buffer(Space::Arena, g, i * 64, t16);
      wide[g] = buffer(Space::Arena, g, 128, t32);
      for (uint32_t i = 0; i < 2; ++i)
        fill(slots[g][i], 1, {}, uint16_t(1 + g));
    }
  }
  uint32_t collective(CollectiveKind kind, std::string name = "c") {
    s.collectives.push_back({.name = std::move(name), .members = {1, 2}, .kind = kind});
    return uint32_t(s.collectives.size() - 1);
  }
  void part(uint32_t which, uint32_t member, std::vector<uint32_t> reads, uint32_t write,
            std::vector<uint32_t> waits = {}) {
    std::vector<Operand> operands;
    for (uint32_t b : reads)
      operands.push_back({b, Access::Read});
    operands.push_back({write, Access::Write});
    command({.kind = CommandKind::Collective, .stream = uint16_t(1 + member), .kernel = which}, operands, waits);
  }
  uint32_t slots[2][3], wide[2];
};

} // namespace

TEST(VerifyCollectives, KindsHaveTheirElements) {
  Builder b;
  const uint32_t reduce = b.collective(CollectiveKind::AllReduce), gather = b.collective(CollectiveKind::AllGather),
                 scatter = b.collective(CollectiveKind::ReduceScatter),
                 broadcast = b.collective(CollectiveKind::Broadcast);
  b.s.collectives[broadcast].root = 1;
  for (uint32_t m = 0; m < 2; ++m)
    b.part(reduce, m, {b.slots[m][0]}, b.slots[m][0]);
  for (uint32_t m = 0; m < 2; ++m)
    b.part(gather, m, {b.slots[m][0]}, b.wide[m]);
  for (uint32_t m = 0; m < 2; ++m)
    b.part(scatter, m, {b.wide[m]}, b.slots[m][1]);
  b.part(broadcast, 0, {}, b.slots[0][2]);
  b.part(broadcast, 1, {b.slots[1][1]}, b.slots[1][2]);
  expectSafe(b);
  for (size_t i = 4; i < b.s.step.commands.size(); ++i) { // another number of elements, on one member
    Builder wrong = b;
    Command &c = wrong.s.step.commands[i];
    uint32_t &to = wrong.s.step.operands[c.firstOperand + c.numOperands - 1u].buffer;
    to = to == wrong.wide[0] ? wrong.slots[0][2] : to == wrong.wide[1] ? wrong.slots[1][2] : wrong.wide[c.stream - 1u];
    EXPECT_FALSE(verifySchedule(wrong.s).empty()) << "command " << i;
  }
  Builder none = b;
  none.s.step.commands.back().numOperands = 1; // the root's source
  none.s.step.commands.back().firstOperand += 1;
  expectViolation(none, ViolationKind::Structure, "are not what collective 'c' wants");
  Builder other = b;
  other.s.buffers[other.slots[1][0]].type.dtype = i32;
  expectViolation(other, ViolationKind::Structure, "are not what collective");
}

TEST(VerifyCollectives, MembersIssueThemInOneOrder) {
  Builder b;
  const uint32_t first = b.collective(CollectiveKind::AllReduce, "first"),
                 second = b.collective(CollectiveKind::AllReduce, "second");
  for (uint32_t m = 0; m < 2; ++m)
    b.part(first, m, {b.slots[m][0]}, b.slots[m][0]);
  for (uint32_t m = 0; m < 2; ++m)
    b.part(second, m, {b.slots[m][1]}, b.slots[m][1]);
  expectSafe(b);
  Builder swapped = b;
  std::swap(swapped.s.step.commands[5].kernel, swapped.s.step.commands[7].kernel);
  expectViolation(swapped, ViolationKind::Structure, "is no part of collective 'first'");
  Builder missing = b;
  missing.s.step.commands.pop_back();
  expectViolation(missing, ViolationKind::Structure, "is no part of collective 'second'");
  Builder waiting = b; // one member for the other: neither could begin
  waiting.s.step.commands[5].firstWait = uint32_t(waiting.s.step.waits.size());
  waiting.s.step.commands[5].numWaits = 1;
  waiting.s.step.waits.push_back({4, WaitReason::Rank});
  expectViolation(waiting, ViolationKind::Structure, "is no part");
  Builder elsewhere = b;
  elsewhere.s.step.commands[4].stream = 0;
  EXPECT_FALSE(verifySchedule(elsewhere.s).empty());
  Builder unknown = b;
  unknown.s.step.commands[4].kernel = 9;
  expectViolation(unknown, ViolationKind::Structure, "collective 9 does not exist");
}

TEST(VerifyCollectives, MembersTouchTheirOwnMemory) {
  Builder b;
  const uint32_t reduce = b.collective(CollectiveKind::AllReduce);
  b.part(reduce, 0, {b.slots[0][0]}, b.slots[0][0]);
  b.part(reduce, 1, {b.slots[1][0]}, b.slots[0][1]);
  expectViolation(b, ViolationKind::Access, "lies in the memory of gpu0, from a stream of gpu1");
}

TEST(VerifyCollectives, NoFlagDecides) {
  for (bool loop : {true, false}) {
    Builder b;
    const uint32_t body = b.bodies(loop ? 1 : 2), reduce = b.collective(CollectiveKind::AllReduce);
    b.arena(64);
    const uint32_t flag = b.buffer(Space::Arena, 2, 0, {DType::boolean, Shape{}});
    const uint32_t filled = b.fill(flag, 1);
    if (loop)
      b.loop(3, body, {}, {filled, 1, 3}, 0);
    else
      b.command({.kind = CommandKind::Branch, .body = body}, {{flag, Access::Read}}, {1, 3});
    b.into(body);
    for (uint32_t m = 0; m < 2; ++m)
      b.part(reduce, m, {b.slots[m][0]}, b.slots[m][0]);
    if (loop)
      expectSafe(b);
    else
      expectViolation(b, ViolationKind::Structure, "where a flag decides");
  }
}

TEST(VerifyCollectives, MembersAreOfSeveralDevices) {
  Builder b;
  const uint32_t c = b.collective(CollectiveKind::Broadcast);
  expectSafe(b);
  for (const CollectiveDesc &wrong :
       {CollectiveDesc{.name = "c", .members = {1, 1}}, CollectiveDesc{.name = "c", .members = {}},
        CollectiveDesc{.name = "c", .members = {1, 7}},
        CollectiveDesc{.name = "c", .members = {1, 2}, .kind = CollectiveKind(9)},
        CollectiveDesc{.name = "c", .members = {1, 2}, .reduction = Reduction(9)},
        CollectiveDesc{.name = "c", .members = {1, 2}, .root = 2}}) {
    b.s.collectives[c] = wrong;
    expectViolation(b, ViolationKind::Structure, "collective 0 is of an unknown kind, or its members");
  }
}

TEST(VerifyHostCalls, TouchTheHostsMemory) {
  Builder b;
  b.arena(128);
  const uint32_t from = b.buffer(Space::Arena, 2, 0, t16), to = b.buffer(Space::Arena, 2, 64, t16);
  b.kernel("log");
  b.s.kernels[0].target = KernelTarget::HostFunction;
  b.fill(from, 1);
  auto call = [&](uint16_t stream, uint32_t read) {
    b.command({.kind = CommandKind::HostCall, .stream = stream}, {{read, Access::Read}, {to, Access::Write}}, {});
  };
  call(0, from);
  expectSafe(b);
  b.s.step.commands.back().stream = 1;
  EXPECT_FALSE(verifySchedule(b.s).empty());
  b.s.step.commands.pop_back();
  call(0, b.slots[0][0]);
  expectViolation(b, ViolationKind::Access, "lies in the memory of gpu0");
  b.s.step.commands.pop_back();
  call(0, from);
  b.s.kernels[0].target = KernelTarget::Host;
  expectViolation(b, ViolationKind::Structure, "functions of the host");
  b.s.step.commands.back().kernel = 3;
  expectViolation(b, ViolationKind::Structure, "kernel 3 does not exist");
}

TEST(VerifyCallsInFlight, StatesAreSharedArenasAreNot) {
  auto program = [](uint32_t inFlight, bool oneStream) {
    ScheduleBuilder b(2);
    b.s.inFlight = inFlight;
    const uint32_t state = b.state("m", t16, StateKind::Mutable), x = b.input("x", t16), out = b.output("out", t16);
    const uint32_t slot = b.buffer(Space::Arena, b.arena(64), 0, t16);
    b.copy(state, out, {}, 0);
    b.copy(x, slot, {}, 1);
    b.copy(slot, state, {0}, oneStream ? 0 : 1);
    if (oneStream) { // what it read
      b.s.step.waits[b.s.step.commands[2].firstWait].command = 1;
    }
    return b;
  };
  expectSafe(program(1, false));
  expectSafe(program(1, true));
  expectSafe(program(3, true));
  // The next call reads the state in stream 0, while this one may still write it in stream 1.
  expectViolation(program(2, false), ViolationKind::Race,
                  "without waiting for step command 2 on stream 'lane1' of an earlier call, which writes buffer 0");
  expectViolation(program(0, true), ViolationKind::Structure, "0 calls in flight");
  expectViolation(program(100, true), ViolationKind::Structure, "100 calls in flight");
}
