#include "tressel/runtime/VerifySchedule.h"

#include "ScheduleBuilder.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace tressel;
using namespace tressel::runtime;

namespace {

std::string firstMessage(const Schedule &s) {
  const auto found = verifySchedule(s);
  return found.empty() ? "" : found[0].message;
}

void expectViolation(const ScheduleBuilder &b, ViolationKind kind, const std::string &text) {
  const auto found = verifySchedule(b.s);
  ASSERT_FALSE(found.empty()) << "accepted; expected: " << text;
  EXPECT_EQ(found[0].kind, kind) << found[0].message;
  EXPECT_NE(found[0].message.find(text), std::string::npos) << found[0].message;
}

const TensorType t16 = ScheduleBuilder::floats(16);

/// x -> h -> out over two streams, with the wait that makes it safe.
ScheduleBuilder safe(bool wait = true) {
  ScheduleBuilder b(2);
  const uint32_t x = b.input("x", t16), out = b.output("out", t16), h = b.buffer(Space::Arena, b.arena(64), 0, t16);
  b.copy(x, h);
  if (wait)
    b.copy(h, out, {0}, 1);
  else
    b.copy(h, out, {}, 1);
  b.s.step.commands[0].loc = b.location("copy", "a.cpp", 3);
  return b;
}

//--- An independent judgement of a whole program: reachability of all pairs, bytes one by one
//---------------------------

struct Oracle {
  const Schedule &s;
  std::vector<std::vector<bool>> before; // before[i][j]: j is finished when i starts

  explicit Oracle(const Schedule &schedule) : s(schedule) {
    const auto &p = s.step;
    const size_t n = p.commands.size();
    before.assign(n, std::vector<bool>(n, false));
    for (size_t i = 0; i < n; ++i) {
      auto after = [&](size_t j) {
        before[i][j] = true;
        for (size_t k = 0; k < j; ++k)
          if (before[j][k])
            before[i][k] = true;
      };
      for (size_t j = 0; j < i; ++j)
        if (p.commands[j].stream == p.commands[i].stream)
          after(j);
      for (size_t w = 0; w < p.commands[i].numWaits; ++w)
        after(p.waits[p.commands[i].firstWait + w].command);
    }
  }
  bool touches(size_t command, const BufferDesc &other, bool onlyWrites, bool onlyReads) const {
    const Command &c = s.step.commands[command];
    for (size_t o = 0; o < c.numOperands; ++o) {
      const Operand &operand = s.step.operands[c.firstOperand + o];
      const BufferDesc &b = s.buffers[operand.buffer];
      if ((onlyWrites && operand.access == Access::Read) || (onlyReads && operand.access == Access::Write))
        continue;
      if (b.space == other.space && b.index == other.index && b.offset < other.offset + other.bytes &&
          other.offset < b.offset + b.bytes)
        return true;
    }
    return false;
  }
  bool isSafe() const {
    const auto &p = s.step;
    std::vector<std::vector<bool>> written(s.arenas.size());
    for (size_t a = 0; a < s.arenas.size(); ++a)
      written[a].resize(size_t(s.arenas[a].bytes), false);
    for (size_t i = 0; i < p.commands.size(); ++i) {
      const Command &c = p.commands[i];
      for (size_t o = 0; o < c.numOperands; ++o) {
        const Operand &operand = p.operands[c.firstOperand + o];
        const BufferDesc &b = s.buffers[operand.buffer];
        for (size_t j = 0; j < i; ++j)
          if (!before[i][j] && touches(j, b, operand.access == Access::Read, false))
            return false;
        if (b.space == Space::Arena && operand.access == Access::Read)
          for (int64_t k = 0; k < b.bytes; ++k)
            if (!written[b.index][size_t(b.offset + k)])
              return false;
      }
      for (size_t o = 0; o < c.numOperands; ++o) {
        const Operand &operand = p.operands[c.firstOperand + o];
        const BufferDesc &b = s.buffers[operand.buffer];
        if (b.space == Space::Arena && operand.access == Access::Write)
          for (int64_t k = 0; k < b.bytes; ++k)
            written[b.index][size_t(b.offset + k)] = true;
      }
    }
    return true;
  }
};

/// A random program over `streams` streams: launches that read a few ranges of two arenas and write one that differs
/// from them. `waits` picks the earlier commands that command i waits for.
template <typename Waits> Schedule randomSchedule(std::mt19937 &random, int streams, int commands, Waits waits) {
  ScheduleBuilder b(streams);
  const uint32_t x = b.input("x", t16), out = b.output("out", t16);
  for (int a = 0; a < 2; ++a)
    b.arena(64 * 8);
  auto pick = [&](int n) { return int(random() % unsigned(n)); };
  std::vector<uint32_t> ranges;
  for (uint32_t a = 0; a < 2; ++a)
    for (int start = 0; start < 8; ++start)
      for (int length = 1; length <= 2 && start + length <= 8; ++length)
        ranges.push_back(b.buffer(Space::Arena, a, start * 64, ScheduleBuilder::floats(16 * length)));
  b.fill(out);
  auto overlap = [&](uint32_t u, uint32_t v) {
    const BufferDesc &p = b.s.buffers[u], &q = b.s.buffers[v];
    return p.space == q.space && p.index == q.index && p.offset < q.offset + q.bytes && q.offset < p.offset + p.bytes;
  };
  for (int i = 1; i < commands; ++i) {
    std::vector<Operand> operands{{x, Access::Read}};
    const uint32_t target = ranges[size_t(pick(int(ranges.size())))];
    for (int r = pick(3); r > 0 && i > 20; --r) {
      const uint32_t source = ranges[size_t(pick(int(ranges.size())))];
      if (!overlap(source, target) || source == target)
        operands.push_back({source, Access::Read});
    }
    operands.push_back({target, Access::Write});
    const uint32_t kernel = b.kernel("k" + std::to_string(i));
    b.command({.stream = uint16_t(pick(streams)), .kernel = kernel}, operands, {});
    Command &c = b.s.step.commands.back();
    c.firstWait = uint32_t(b.s.step.waits.size());
    for (uint32_t w : waits(b.s, uint32_t(i)))
      b.s.step.waits.push_back({w, WaitReason::Data});
    c.numWaits = uint16_t(b.s.step.waits.size() - c.firstWait);
  }
  return b.s;
}

/// Every earlier command of another stream that conflicts with command i.
std::vector<uint32_t> conflicts(const Schedule &s, uint32_t i) {
  std::vector<uint32_t> result;
  const Command &c = s.step.commands[i];
  for (uint32_t j = 0; j < i; ++j) {
    const Command &d = s.step.commands[j];
    bool conflict = false;
    for (uint32_t o = 0; o < c.numOperands && d.stream != c.stream; ++o)
      for (uint32_t q = 0; q < d.numOperands; ++q) {
        const Operand &mine = s.step.operands[c.firstOperand + o], &theirs = s.step.operands[d.firstOperand + q];
        const BufferDesc &a = s.buffers[mine.buffer], &b = s.buffers[theirs.buffer];
        conflict |= (mine.access != Access::Read || theirs.access != Access::Read) && a.space == b.space &&
                    a.index == b.index && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      }
    if (conflict)
      result.push_back(j);
  }
  return result;
}

void removeWait(CommandList &p, size_t wait) {
  p.waits.erase(p.waits.begin() + long(wait));
  for (Command &c : p.commands)
    if (c.firstWait > wait)
      --c.firstWait;
    else if (c.firstWait + c.numWaits > wait)
      --c.numWaits;
}

} // namespace

TEST(VerifySchedule, AcceptsASafeSchedule) { EXPECT_EQ(firstMessage(safe().s), ""); }

TEST(VerifySchedule, NamesBothCommandsOfARace) {
  const auto found = verifySchedule(safe(false).s);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, ViolationKind::Race);
  EXPECT_EQ(found[0].command, 1);
  EXPECT_EQ(found[0].otherCommand, 0);
  EXPECT_EQ(found[0].otherLoc, 1u);
  EXPECT_EQ(found[0].message,
            "step command 1 on stream 'lane1' reads buffer 2 (arena 0, bytes 0 to 64) without waiting for "
            "step command 0 (copy at a.cpp:3) on stream 'lane0', which writes buffer 2 (arena 0, bytes 0 to 64)");
}

TEST(VerifySchedule, WriteAfterReadNeedsOrder) {
  ScheduleBuilder b = safe();
  b.copy(0, 2); // x into h again, on stream 0, while stream 1 may still read h
  expectViolation(b, ViolationKind::Race, "writes buffer 2");
  b.s.step.commands.pop_back();
  b.copy(0, 2, {1});
  EXPECT_EQ(firstMessage(b.s), "");
}

TEST(VerifySchedule, KernelsStayInTheirDevicesMemory) {
  constexpr DeviceRef gpu{DeviceKind::Gpu, 0}, other{DeviceKind::Gpu, 1};
  auto program = [&](uint16_t copyStream, uint16_t launchStream) {
    ScheduleBuilder b(1);
    b.s.streams.push_back({gpu, StreamKind::CopyIn, "gpu0.in"});
    b.s.streams.push_back({gpu, StreamKind::Compute, "gpu0"});
    b.s.streams.push_back({other, StreamKind::Compute, "gpu1"});
    const uint32_t x = b.input("x", t16), out = b.output("out", t16);
    b.s.arenas.push_back({gpu, MemoryKind::Device, 128});
    const uint32_t near = b.buffer(Space::Arena, 0, 0, t16), result = b.buffer(Space::Arena, 0, 64, t16);
    b.copy(x, near, {}, copyStream);
    b.launch(b.kernel("k"), {near}, {result}, {0}, launchStream);
    b.copy(result, out, {1}, 0);
    return b;
  };
  EXPECT_EQ(firstMessage(program(1, 2).s), "");
  EXPECT_EQ(firstMessage(program(0, 2).s), ""); // either end's stream may copy
  expectViolation(program(3, 2), ViolationKind::Access, "from a stream of gpu1");
  expectViolation(program(1, 3), ViolationKind::Access, "which lies in the memory of gpu0, from a stream of gpu1");
  expectViolation(program(1, 0), ViolationKind::Access, "which lies in the memory of gpu0, from a stream of cpu");
  ScheduleBuilder b(1);
  b.s.arenas.push_back({gpu, MemoryKind::Pinned, 64});
  expectViolation(b, ViolationKind::Structure, "arena 0 lies in memory of an unknown kind");
}

TEST(VerifySchedule, WhatCallersBindHasAHome) {
  constexpr DeviceRef gpu{DeviceKind::Gpu, 0};
  auto program = [&](const Home &input, const Home &state, const Home &output, uint16_t stream) {
    ScheduleBuilder b(1);
    b.s.streams.push_back({gpu, StreamKind::Compute, "gpu0"});
    const uint32_t x = b.input("x", t16), m = b.state("m", t16, StateKind::Mutable), out = b.output("out", t16);
    b.s.inputs[0].home = input, b.s.states[0].home = state, b.s.outputs[0].home = output;
    b.launch(b.kernel("k"), {x, m}, {out}, {}, stream);
    b.copy(x, m, {}, stream);
    return b;
  };
  const Home host, there{gpu, MemoryKind::Device};
  EXPECT_EQ(firstMessage(program(there, there, there, 1).s), "");
  EXPECT_EQ(firstMessage(program(host, host, host, 0).s), "");
  expectViolation(program(host, there, there, 1), ViolationKind::Access, "input 0");
  expectViolation(program(there, host, there, 1), ViolationKind::Access,
                  "which lies in the memory of cpu, from a stream of gpu0");
  expectViolation(program(there, there, host, 1), ViolationKind::Access, "output 0");
  expectViolation(program(there, there, there, 0), ViolationKind::Access,
                  "which lies in the memory of gpu0, from a stream of cpu");
  // Of a kind that no device has.
  expectViolation(program(Home{gpu, MemoryKind::Pinned}, there, there, 1), ViolationKind::Structure,
                  "input 0 lies in memory of an unknown kind");
  expectViolation(program(there, Home{{static_cast<DeviceKind>(7), 0}, MemoryKind::Device}, there, 1),
                  ViolationKind::Structure, "state 0 lies in memory of an unknown kind");
}

TEST(VerifySchedule, OrderIsTransitive) {
  ScheduleBuilder b(3);
  const uint32_t x = b.input("x", t16), out = b.output("out", t16), h = b.buffer(Space::Arena, b.arena(128), 0, t16),
                 other = b.buffer(Space::Arena, 0, 64, t16);
  b.copy(x, h, {}, 0);
  b.copy(x, other, {0}, 1);
  b.copy(h, out, {1}, 2);
  EXPECT_EQ(firstMessage(b.s), "");
}

TEST(VerifySchedule, ReadsNeedWrites) {
  ScheduleBuilder b;
  const uint32_t out = b.output("out", t16), h = b.buffer(Space::Arena, b.arena(128), 0, ScheduleBuilder::floats(32)),
                 half = b.buffer(Space::Arena, 0, 0, t16), wide = b.output("wide", ScheduleBuilder::floats(32));
  b.fill(half);
  b.fill(out);
  b.copy(h, wide);
  expectViolation(b, ViolationKind::ReadBeforeWrite, "nothing has written bytes 64 to 128");
}

TEST(VerifySchedule, OutputsAreComplete) {
  ScheduleBuilder b;
  b.output("out", ScheduleBuilder::floats(32));
  b.fill(b.buffer(Space::Output, 0, 64, t16));
  expectViolation(b, ViolationKind::OutputIncomplete, "bytes 0 to 64 of output 0 'out'");
  b.fill(b.buffer(Space::Output, 0, 0, t16));
  EXPECT_EQ(firstMessage(b.s), "");
}

TEST(VerifySchedule, AccessRules) {
  auto check = [](auto build, const std::string &text) {
    ScheduleBuilder b;
    build(b);
    expectViolation(b, ViolationKind::Access, text);
  };
  check([](auto &b) { b.fill(b.input("x", t16)); }, "inputs are only read");
  check([](auto &b) { b.fill(b.constant(0, t16)); }, "constants are only read");
  check([](auto &b) { b.fill(b.state("w", t16, StateKind::Parameter)); },
        "'w', bytes 0 to 64): parameters are only read");
  check([](auto &b) { b.fill(b.state("d", t16, StateKind::Derived)); }, "only prepare writes derived states");
  check([](auto &b) { b.copy(b.input("x", t16), b.state("d", t16, StateKind::Derived), {}, 0, true); },
        "no inputs in prepare");
  check(
      [](auto &b) {
        b.copy(b.state("m", t16, StateKind::Mutable), b.state("d", t16, StateKind::Derived), {}, 0, true);
      },
      "mutable states belong to the step");
  check([](auto &b) { b.copy(b.constant(0, t16), b.output("o", t16), {}, 0, true); }, "no outputs in prepare");
}

TEST(VerifySchedule, DerivedStatesComeFromPrepare) {
  ScheduleBuilder b;
  const uint32_t w = b.state("w", t16, StateKind::Parameter), d = b.state("d", t16, StateKind::Derived);
  b.copy(d, b.output("out", t16));
  expectViolation(b, ViolationKind::ReadBeforeWrite, "'d'");
  b.copy(w, d, {}, 0, true);
  EXPECT_EQ(firstMessage(b.s), "");
}

TEST(VerifySchedule, ArenasHoldNothingBetweenThePrograms) {
  ScheduleBuilder b;
  const uint32_t w = b.state("w", t16, StateKind::Parameter), h = b.buffer(Space::Arena, b.arena(64), 0, t16);
  b.copy(w, h, {}, 0, true);
  b.copy(h, b.output("out", t16));
  expectViolation(b, ViolationKind::ReadBeforeWrite, "arena 0");
}

TEST(VerifySchedule, MutableStatesAreReadAndWritten) {
  ScheduleBuilder b(2);
  const uint32_t x = b.input("x", t16), m = b.state("m", t16, StateKind::Mutable);
  b.copy(m, b.output("last", t16));
  b.copy(x, m, {}, 1);
  expectViolation(b, ViolationKind::Race, "'m'");
  b.s.step = {};
  b.copy(m, 2);
  b.copy(x, m, {0}, 1);
  EXPECT_EQ(firstMessage(b.s), "");
}

TEST(VerifySchedule, InPlaceOnlyOverTheSameRange) {
  auto overlap = [](int64_t readOffset, int64_t elements) {
    ScheduleBuilder b;
    const uint32_t wide = b.buffer(Space::Arena, b.arena(192), 0, ScheduleBuilder::floats(48));
    const uint32_t in = b.buffer(Space::Arena, 0, readOffset, ScheduleBuilder::floats(elements)),
                   out = b.buffer(Space::Arena, 0, 0, t16);
    b.fill(wide);
    b.launch(b.kernel("k"), {wide, in}, {out}); // reads all: never in place
    b.s.step.operands[b.s.step.commands[1].firstOperand] = {in, Access::Read};
    return b;
  };
  EXPECT_EQ(firstMessage(overlap(0, 16).s), "");
  EXPECT_EQ(firstMessage(overlap(64, 16).s), "");
  expectViolation(overlap(0, 32), ViolationKind::Race, "of the same command");
  ScheduleBuilder mixed = overlap(0, 16); // the same bytes through two ranges, one of which fits
  mixed.s.step.operands[mixed.s.step.commands[1].firstOperand] = {0, Access::Read};
  expectViolation(mixed, ViolationKind::Race, "of the same command");
  ScheduleBuilder twice;
  const uint32_t h = twice.buffer(Space::Arena, twice.arena(64), 0, t16);
  twice.launch(twice.kernel("k"), {}, {h, h});
  expectViolation(twice, ViolationKind::Race, "of the same command");
}

TEST(VerifySchedule, StructureErrorsAreFound) {
  struct Case {
    const char *text;
    void (*damage)(Schedule &);
  };
  const Case cases[] = {
      {"stream 9 does not exist", [](Schedule &s) { s.step.commands[0].stream = 9; }},
      {"kernel 0 does not exist", [](Schedule &s) { s.step.commands[0].kind = CommandKind::Launch; }},
      {"unknown kind of command", [](Schedule &s) { s.step.commands[0].kind = CommandKind(77); }},
      {"operands leave", [](Schedule &s) { s.step.commands[1].firstOperand = UINT32_MAX; }},
      {"operands leave", [](Schedule &s) { s.step.commands[1].numOperands = UINT16_MAX; }},
      {"waits leave", [](Schedule &s) { s.step.commands[1].numWaits = 2; }},
      {"location 5 does not exist", [](Schedule &s) { s.step.commands[1].loc = 5; }},
      {"not before it", [](Schedule &s) { s.step.waits[0].command = 1; }},
      {"not before it", [](Schedule &s) { s.step.waits[0].command = UINT32_MAX; }},
      {"does not exist", [](Schedule &s) { s.step.operands[0].buffer = 100; }},
      {"unknown way", [](Schedule &s) { s.step.operands[0].access = Access(9); }},
      {"as many bytes", [](Schedule &s) { s.step.commands[0].numOperands = 1; }},
      {"as many bytes", [](Schedule &s) { s.buffers[2].bytes = 32, s.buffers[2].type.shape = {8}; }},
      {"leave arena 0 of 64", [](Schedule &s) { s.buffers[2].offset = 64; }},
      {"leave arena 0 of 64", [](Schedule &s) { s.buffers[2].bytes = INT64_MAX, s.buffers[2].offset = 64; }},
      {"leave arena 0", [](Schedule &s) { s.buffers[2].offset = -64; }},
      {"leave arena 0", [](Schedule &s) { s.buffers[2].bytes = -1; }},
      {"multiple of 64", [](Schedule &s) { s.arenas[0].bytes = 128, s.buffers[2].offset = 32; }},
      {"arena 3, which does not exist", [](Schedule &s) { s.buffers[2].index = 3; }},
      {"unknown space", [](Schedule &s) { s.buffers[2].space = Space(5); }},
      {"impossible type", [](Schedule &s) { s.buffers[2].type.dtype = DType(200); }},
      {"impossible type",
       [](Schedule &s) {
         s.buffers[2].type.shape = {INT64_MAX, INT64_MAX};
       }},
      {"the size ? is no number", [](Schedule &s) { s.inputs[0].type.shape = {kDynamic}; }},
      {"impossible type",
       [](Schedule &s) {
         s.inputs[0].type.shape = {int64_t(1) << 40, int64_t(1) << 40};
       }},
      {"needs 128", [](Schedule &s) { s.buffers[2].type.shape = {32}; }},
      {"impossible size", [](Schedule &s) { s.arenas[0].bytes = -1; }},
      {"impossible size", [](Schedule &s) { s.arenas[0].bytes = INT64_MAX; }},
      {"impossible place",
       [](Schedule &s) {
         s.constants.push_back({32, 4});
       }},
      {"impossible place",
       [](Schedule &s) {
         s.constants.push_back({INT64_MAX - 63, 4});
       }},
      {"no symbol", [](Schedule &s) { s.kernels.push_back({}); }},
      {"of kernel 0", [](Schedule &s) { s.kernels.assign(2, {.symbol = "k", .provider = "generated"}); }},
      {"impossible range", [](Schedule &s) { s.kernels.push_back({.symbol = "k", .provider = "p", .grain = 0}); }},
      {"impossible range, grain, scratch size, target",
       [](Schedule &s) { s.kernels.push_back({.symbol = "k", .provider = "p", .target = KernelTarget(9)}); }},
      {"unknown kind", [](Schedule &s) { s.streams[0].kind = StreamKind(9); }},
      {"more than 256 streams", [](Schedule &s) { s.streams.resize(1000); }},
  };
  for (const Case &c : cases) {
    ScheduleBuilder b = safe();
    ASSERT_EQ(firstMessage(b.s), "");
    c.damage(b.s);
    expectViolation(b, ViolationKind::Structure, c.text);
  }
}

TEST(VerifySchedule, LaunchesOfOneKernelAgree) {
  ScheduleBuilder b;
  const uint32_t x = b.input("x", t16), out = b.output("out", t16),
                 more = b.output("more", ScheduleBuilder::floats(32));
  const uint32_t k = b.kernel("k");
  b.launch(k, {x}, {out});
  b.launch(k, {x}, {more});
  expectViolation(b, ViolationKind::Structure, "with other operands than step command 0");
}

TEST(VerifySchedule, KernelsForGpusStayOffProcessors) {
  ScheduleBuilder b;
  const uint32_t x = b.input("x", t16), out = b.output("out", t16);
  const uint32_t k = b.kernel("k");
  b.launch(k, {x}, {out});
  for (const KernelTarget target : {KernelTarget::Host, KernelTarget::HostLibrary}) {
    b.s.kernels[k].target = target;
    EXPECT_EQ(firstMessage(b.s), "");
  }
  for (const KernelTarget target : {KernelTarget::Gpu, KernelTarget::GpuLibrary}) {
    b.s.kernels[k].target = target;
    expectViolation(b, ViolationKind::Structure, "which is for a GPU, on a processor");
  }
}

TEST(VerifySchedule, KernelsHaveTheirInputs) {
  ScheduleBuilder b;
  b.launch(b.kernel("k"), {}, {b.output("out", t16)});
  EXPECT_EQ(firstMessage(b.s), "");
  b.s.kernels[0].numInputs = 2;
  expectViolation(b, ViolationKind::Structure, "has 1 operands, kernel 'k' has 2 inputs alone");
}

TEST(VerifySchedule, TheNumberOfViolationsIsLimited) {
  ScheduleBuilder b;
  for (int i = 0; i < 100; ++i)
    b.output("out" + std::to_string(i), t16);
  EXPECT_EQ(verifySchedule(b.s, 7).size(), 7u);
}

TEST(VerifySchedule, AgreesWithReachabilityOnRandomSchedules) {
  int safeOnes = 0, unsafeOnes = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    // Mostly the right waits, with some left out, so that both verdicts occur.
    const unsigned dropOneIn = seed % 4 == 0 ? 1000000 : 40;
    const Schedule s = randomSchedule(random, 1 + int(seed % 5), 40, [&](const Schedule &so, uint32_t i) {
      std::vector<uint32_t> waits = conflicts(so, i);
      std::erase_if(waits, [&](uint32_t) { return random() % dropOneIn == 0; });
      return waits;
    });
    const bool expected = Oracle(s).isSafe();
    ++(expected ? safeOnes : unsafeOnes);
    ASSERT_EQ(verifySchedule(s).empty(), expected) << firstMessage(s);
  }
  EXPECT_GT(safeOnes, 40);
  EXPECT_GT(unsafeOnes, 40);
}

TEST(ReduceWaits, EveryRemainingWaitIsNeeded) {
  size_t removals = 0, dropped = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    // Programs that read only what was written: earlier commands fill all ranges.
    Schedule s = randomSchedule(random, 2 + int(seed % 5), 60, conflicts);
    if (!Oracle(s).isSafe())
      continue; // reads bytes that nobody wrote
    const auto order = Oracle(s).before;
    const size_t waits = s.step.waits.size();
    reduceWaits(s.step, s.streams.size());
    ASSERT_EQ(Oracle(s).before, order) << "the order changed";
    ASSERT_EQ(firstMessage(s), "");
    dropped += waits - s.step.waits.size();
    for (size_t w = 0; w < s.step.waits.size(); ++w) {
      Schedule mutant = s;
      removeWait(mutant.step, w);
      const auto found = verifySchedule(mutant);
      ASSERT_FALSE(found.empty()) << "wait " << w << " for command " << s.step.waits[w].command << " is not needed";
      ASSERT_EQ(found[0].kind, ViolationKind::Race);
      ++removals;
    }
  }
  EXPECT_GT(removals, 200u);
  EXPECT_GT(dropped, 200u);
}
