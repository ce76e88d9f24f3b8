// One order over all collectives that share devices: what the verifier accepts never hangs, whatever device begins what
// first.
#include "ScheduleBuilder.h"
#include "test/support/BlockingJudge.h"
#include "test/support/RandomSchedule.h"
#include "test/support/ScheduleMutations.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace tressel;
using namespace tressel::runtime;
using tressel::test::canHang;

namespace {

/// Collectives of nothing, so that order is all that matters. Stream 0 is the host's; device d has `streams` of its own
/// behind it.
struct Orders : ScheduleBuilder {
  Orders(int devices, int streams) : ScheduleBuilder(1), perDevice(streams) {
    for (int d = 0; d < devices; ++d) {
      const DeviceRef device{DeviceKind::Gpu, static_cast<uint16_t>(d)};
      s.arenas.push_back({device, MemoryKind::Device, 64});
      none.push_back(buffer(Space::Arena, uint32_t(d), 0, floats(0)));
      for (int k = 0; k < streams; ++k)
        s.streams.push_back({device, StreamKind::CopyOut, nameOf(device) + "." + std::to_string(k)});
    }
  }
  uint16_t stream(int device, int k) const { return static_cast<uint16_t>(1 + device * perDevice + k); }
  int deviceOf(uint16_t stream) const { return (stream - 1) / perDevice; }

  /// Of these streams, in their order; `waits` by member. Returns the command of the first part.
  uint32_t collective(const std::vector<uint32_t> &members, const std::vector<std::vector<uint32_t>> &waits = {}) {
    s.collectives.push_back({.name = "c" + std::to_string(s.collectives.size()), .members = members});
    for (size_t m = 0; m < members.size(); ++m) {
      const uint32_t b = none[size_t(deviceOf(uint16_t(members[m])))];
      command({.kind = CommandKind::Collective,
               .stream = uint16_t(members[m]),
               .kernel = uint32_t(s.collectives.size() - 1),
               .loc = location("collective", "net.cpp", uint32_t(s.collectives.size()))},
              {{b, Access::Read}, {b, Access::Write}}, m < waits.size() ? waits[m] : std::vector<uint32_t>());
    }
    return uint32_t(current().commands.size() - members.size());
  }
  uint32_t other(int device, int k, const std::vector<uint32_t> &waits = {}) {
    return command({.kind = CommandKind::Fill, .stream = stream(device, k)}, {{none[size_t(device)], Access::Write}},
                   waits);
  }
  int perDevice;
  std::vector<uint32_t> none; ///< by device: a buffer of no bytes
};

std::string verdict(const Schedule &s) {
  const auto found = verifySchedule(s, 1);
  return found.empty() ? "" : found[0].message;
}
void expectDeadlock(const Schedule &s, const std::string &text) {
  const auto found = verifySchedule(s);
  ASSERT_FALSE(found.empty()) << "accepted; expected: " << text;
  EXPECT_EQ(found[0].kind, ViolationKind::Deadlock) << found[0].message;
  EXPECT_NE(found[0].message.find(text), std::string::npos) << found[0].message;
}

} // namespace

TEST(CollectiveOrder, TwoGroupsInOppositeOrdersAreRefused) {
  Orders b(2, 2);
  b.collective({b.stream(0, 0), b.stream(1, 0)});
  b.collective({b.stream(0, 0), b.stream(1, 0)});
  EXPECT_EQ(verdict(b.s), "");
  EXPECT_EQ(canHang(b.s), false);
  std::swap(b.s.step.commands[1].kernel, b.s.step.commands[3].kernel); // member 1 begins with the second
  EXPECT_NE(verdict(b.s).find("is no part of collective 'c0'"), std::string::npos) << verdict(b.s);
  EXPECT_EQ(canHang(b.s), true);
}

TEST(CollectiveOrder, ConsistentOrdersOnTwoCommunicatorsThatBlockEachOtherAreRefused) {
  Orders b(2, 2);
  b.collective({b.stream(0, 0), b.stream(1, 0)});
  b.collective({b.stream(0, 1), b.stream(1, 1)});
  EXPECT_EQ(canHang(b.s), true);
  expectDeadlock(b.s, "step command 2 (collective at net.cpp:2) on stream 'gpu0.1' runs collective 'c1' in no order "
                      "with step command 0 "
                      "(collective at net.cpp:1) on stream 'gpu0.0', collective 'c0'");
  expectDeadlock(b.s, "Put them on one stream of gpu0, or let the later one wait");
  // In an order on one of the devices alone.
  Orders half(2, 2);
  half.collective({half.stream(0, 0), half.stream(1, 0)});
  half.collective({half.stream(0, 1), half.stream(1, 1)}, {{0}, {}});
  EXPECT_EQ(canHang(half.s), true);
  expectDeadlock(half.s, "on stream 'gpu1.1' runs collective 'c1' in no order");
  // On both.
  Orders both(2, 2);
  both.collective({both.stream(0, 0), both.stream(1, 0)});
  both.collective({both.stream(0, 1), both.stream(1, 1)}, {{0}, {1}});
  EXPECT_EQ(canHang(both.s), false);
  EXPECT_EQ(verdict(both.s), "");
}

TEST(CollectiveOrder, ACircleOfGroupsThatShareOneDeviceEachIsRefused) {
  Orders b(3, 2);
  b.collective({b.stream(0, 0), b.stream(1, 0)});
  b.collective({b.stream(1, 1), b.stream(2, 0)});
  b.collective({b.stream(0, 1), b.stream(2, 1)});
  EXPECT_EQ(canHang(b.s), true);
  expectDeadlock(b.s, "in no order");
}

TEST(CollectiveOrder, HostCallsAndBodiesAreWaitedFor) {
  // c0, then a call of the host, then c1 on other streams.
  for (bool waits : {true, false}) {
    Orders b(2, 2);
    b.kernel("log");
    b.s.kernels[0].target = KernelTarget::HostFunction;
    b.collective({b.stream(0, 0), b.stream(1, 0)});
    const uint32_t call = b.command({.kind = CommandKind::HostCall, .stream = 0}, {}, {0, 1});
    b.collective({b.stream(0, 1), b.stream(1, 1)},
                 {{call}, waits ? std::vector<uint32_t>{call} : std::vector<uint32_t>{}});
    EXPECT_EQ(verdict(b.s).empty(), waits) << verdict(b.s);
    EXPECT_EQ(canHang(b.s), !waits);
  }
  // A loop that runs c0, beside or before c1.
  for (bool waits : {true, false}) {
    Orders b(2, 2);
    const uint32_t body = b.bodies(1);
    const uint32_t loop = b.loop(3, body);
    b.into(body);
    b.collective({b.stream(0, 0), b.stream(1, 0)});
    b.intoStep();
    const std::vector<uint32_t> after = waits ? std::vector<uint32_t>{loop} : std::vector<uint32_t>{};
    b.collective({b.stream(0, 0), b.stream(1, 0)}, {after, after});
    EXPECT_EQ(canHang(b.s), !waits);
    if (waits)
      EXPECT_EQ(verdict(b.s), "");
    else
      expectDeadlock(
          b.s, "(collective at net.cpp:2) on stream 'gpu0.0' runs collective 'c1' in no order with step command 0");
  }
}

TEST(CollectiveOrder, CallsInFlightFollowEachOtherOnEachDevice) {
  Orders b(2, 2);
  b.s.inFlight = 2;
  b.collective({b.stream(0, 0), b.stream(1, 0)});
  b.collective({b.stream(0, 1), b.stream(1, 1)}, {{0}, {1}});
  expectDeadlock(b.s, "of an earlier call");
  b.s.inFlight = 1;
  EXPECT_EQ(verdict(b.s), "");
}

namespace {

struct Tally {
  size_t cases = 0, accepted = 0, hang = 0, refusedThough = 0, unjudged = 0, mutants = 0, mutantsHang = 0;
};
/// What is accepted does not hang; the others are counted.
void compare(const Schedule &s, Tally &tally) {
  ++tally.cases;
  const std::string found = verdict(s);
  const auto hangs = canHang(s, 4000);
  tally.unjudged += !hangs;
  tally.accepted += found.empty();
  tally.hang += hangs.value_or(false);
  tally.refusedThough += hangs == false && !found.empty();
  if (found.empty()) {
    EXPECT_NE(hangs, std::optional(true)) << "accepted, but it can hang";
  }
}

/// Groups of several members on streams of shared devices, with other commands between; most parts wait for the latest
/// on their device.
Orders randomOrders(std::mt19937_64 &random, bool careful) {
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  const int devices = 2 + pick(3), streams = 1 + pick(3);
  Orders b(devices, streams);
  std::vector<std::vector<uint32_t>> groups;
  for (int g = 1 + pick(4); g > 0; --g) {
    std::vector<uint32_t> members;
    for (int d = 0; d < devices; ++d)
      if (pick(3) > 0)
        members.push_back(b.stream(d, pick(streams)));
    if (members.size() > 1) {
      std::ranges::shuffle(members, random);
      groups.push_back(members);
    }
  }
  std::vector<int64_t> last(size_t(devices), -1); // parts
  for (int i = 2 + pick(5); i > 0; --i) {
    const auto made = static_cast<uint32_t>(b.s.step.commands.size());
    auto someWaits = [&] {
      std::vector<uint32_t> waits;
      if (made && pick(4) == 0)
        waits.push_back(static_cast<uint32_t>(pick(int(made))));
      return waits;
    };
    if (groups.empty() || pick(4) == 0) {
      b.other(pick(devices), pick(streams), someWaits());
      continue;
    }
    const auto &members = groups[size_t(pick(int(groups.size())))];
    std::vector<std::vector<uint32_t>> waits;
    for (uint32_t member : members) {
      waits.push_back(someWaits());
      if (int64_t &before = last[size_t(b.deviceOf(uint16_t(member)))]; before >= 0 && (careful || pick(3) == 0))
        waits.back().push_back(uint32_t(before));
    }
    const uint32_t first = b.collective(members, waits);
    for (size_t m = 0; m < members.size(); ++m)
      last[size_t(b.deviceOf(uint16_t(members[m])))] = int64_t(first + m);
  }
  return b;
}

} // namespace

TEST(CollectiveOrder, WhatIsAcceptedNeverHangs) {
  Tally tally;
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    compare(randomOrders(random, seed % 3 == 0).s, tally);
    if (::testing::Test::HasFailure())
      return;
  }
  printf("%zu cases: %zu accepted, %zu can hang, %zu refused though they cannot hang, %zu not judged\n", tally.cases,
         tally.accepted, tally.hang, tally.refusedThough, tally.unjudged);
  EXPECT_GT(tally.accepted, 2000u);
  EXPECT_GT(tally.hang, 500u);
  EXPECT_LT(tally.unjudged, 100u);
}

/// With the waits that order collectives and no other, each of them is needed; so is the order of parts, and the
/// stream.
TEST(CollectiveOrder, MistakesInOrderAreRefused) {
  size_t removed = 0, removedHang = 0, swapped = 0, moved = 0, movedHang = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Orders b = randomOrders(random, true);
    Schedule &s = b.s;
    // The waits of parts for the latest part on their device alone.
    std::vector<Wait> kept;
    for (size_t i = 0; i < s.step.commands.size(); ++i) {
      Command &c = s.step.commands[i];
      const auto from = kept.size();
      for (uint32_t w = 0; w < c.numWaits; ++w) {
        const Wait wait = s.step.waits[c.firstWait + w];
        const Command &before = s.step.commands[wait.command];
        if (c.kind == CommandKind::Collective && before.kind == CommandKind::Collective &&
            b.deviceOf(c.stream) == b.deviceOf(before.stream))
          kept.push_back(wait);
      }
      c.firstWait = uint32_t(from);
      c.numWaits = uint16_t(kept.size() - from);
    }
    s.step.waits = kept;
    reduceWaits(s.step, s.streams.size());
    ASSERT_EQ(verdict(s), "");
    for (size_t i = 0; i < s.step.commands.size(); ++i)
      for (uint32_t w = 0; w < s.step.commands[i].numWaits; ++w) {
        Schedule without = s;
        Command &c = without.step.commands[i];
        std::swap(without.step.waits[c.firstWait + w], without.step.waits[c.firstWait + c.numWaits - 1u]);
        --c.numWaits;
        ++removed;
        EXPECT_NE(verdict(without), "") << "command " << i << " without wait " << w;
        removedHang += canHang(without).value_or(false);
      }
    for (size_t i = 0; i < s.step.commands.size(); ++i)
      for (size_t k = i + 1; k < s.step.commands.size(); ++k)
        if (const Command &a = s.step.commands[i], &c = s.step.commands[k];
            a.kind == CommandKind::Collective && c.kind == CommandKind::Collective && a.stream == c.stream &&
            a.kernel != c.kernel) {
          Schedule other = s;
          std::swap(other.step.commands[i].kernel, other.step.commands[k].kernel);
          ++swapped;
          EXPECT_NE(verdict(other), "") << "commands " << i << " and " << k << " exchanged";
        }
    // A collective on streams of its own, behind nothing, with another before it on one of its devices.
    for (size_t which = 0; which < s.collectives.size(); ++which) {
      Schedule other = s;
      bool follows = false;
      for (uint32_t &member : other.collectives[which].members) {
        const uint32_t from = member;
        other.streams.push_back(s.streams[from]);
        member = uint32_t(other.streams.size() - 1);
        for (size_t i = 0; i < other.step.commands.size(); ++i) {
          Command &c = other.step.commands[i];
          if (c.kind != CommandKind::Collective || c.kernel != which || c.stream != from)
            continue;
          c.stream = uint16_t(member);
          c.numWaits = 0;
          follows |=
              std::any_of(s.step.commands.begin(), s.step.commands.begin() + ptrdiff_t(i), [&](const Command &before) {
                return before.kind == CommandKind::Collective && before.kernel != which &&
                       s.streams[before.stream].device == s.streams[from].device;
              });
        }
      }
      if (!follows)
        continue;
      ++moved;
      EXPECT_NE(verdict(other), "") << "collective " << which << " on streams of its own";
      movedHang += canHang(other).value_or(false);
    }
    if (::testing::Test::HasFailure())
      return;
  }
  printf("%zu waits left out (%zu can hang), %zu parts exchanged, %zu collectives moved (%zu can hang): all refused\n",
         removed, removedHang, swapped, moved, movedHang);
  EXPECT_GT(removed, 300u);
  EXPECT_GT(removedHang, 100u);
  EXPECT_GT(swapped, 300u);
  EXPECT_GT(moved, 300u);
}

/// Ranks of a mesh: what is accepted for one rank never hangs on all of them.
TEST(CollectiveOrder, RanksThatAreAcceptedNeverHang) {
  Tally tally;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
    const int devices = 1 + pick(2), streams = 1 + pick(3);
    Orders b(devices, streams);
    b.s.mesh = {{"data", 2}};
    if (pick(3) > 0)
      b.s.mesh.push_back({"tensor", 2});
    std::vector<int64_t> last(size_t(devices), -1);
    const bool careful = pick(3) == 0;
    const uint32_t body = pick(5) == 0 ? b.bodies(1) : UINT32_MAX;
    auto some = [&](int count) {
      for (int i = 0; i < count; ++i) {
        const int d = pick(devices);
        std::vector<uint32_t> waits;
        if (last[size_t(d)] >= 0 && (careful || pick(2)))
          waits.push_back(uint32_t(last[size_t(d)]));
        if (const auto made = b.current().commands.size(); made && pick(4) == 0)
          waits.push_back(uint32_t(pick(int(made))));
        if (pick(5) == 0) {
          b.other(d, pick(streams), waits);
          continue;
        }
        if (devices == 2 && pick(4) == 0) { // of both accelerators of a rank
          std::vector<std::vector<uint32_t>> each(2);
          for (size_t k = 0; k < 2; ++k)
            if (last[k] >= 0 && (careful || pick(3) > 0))
              each[k].push_back(uint32_t(last[k]));
          const uint32_t first = b.collective({b.stream(0, pick(streams)), b.stream(1, pick(streams))}, each);
          last = {first, first + 1};
          continue;
        }
        last[size_t(d)] = b.collective({b.stream(d, pick(streams))}, {waits});
        auto &axes = b.s.collectives.back().axes;
        for (uint32_t axis = 0; axis < b.s.mesh.size(); ++axis)
          if (pick(2))
            axes.push_back(axis);
        if (axes.empty())
          axes = {0};
      }
    };
    some(1 + pick(3));
    if (body != UINT32_MAX) {
      const auto before = last;
      std::vector<uint32_t> waits;
      for (int64_t each : last)
        if (each >= 0 && (careful || pick(2)))
          waits.push_back(uint32_t(each));
      const uint32_t loop = b.command({.kind = CommandKind::Loop, .body = body, .numScalars = 1}, {}, waits);
      b.s.step.commands.back().firstScalar = uint32_t(b.s.step.scalars.size());
      b.s.step.scalars.push_back(2);
      b.into(int(body));
      std::ranges::fill(last, -1);
      some(1 + pick(2));
      b.intoStep();
      for (int64_t &each : last)
        each = loop;
      some(pick(3));
    }
    compare(b.s, tally);
    if (::testing::Test::HasFailure())
      return;
  }
  printf("%zu cases: %zu accepted, %zu can hang, %zu refused though they cannot hang, %zu not judged\n", tally.cases,
         tally.accepted, tally.hang, tally.refusedThough, tally.unjudged);
  EXPECT_GT(tally.accepted, 1000u);
  EXPECT_GT(tally.hang, 300u);
  EXPECT_LT(tally.unjudged, 200u);
}

/// Several groups on streams of their own, among everything else that schedules have.
TEST(CollectiveOrder, MistakesInSchedulesOfSeveralGroupsAreRefused) {
  test::MutationTally tally;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    const Schedule s = test::randomSchedule(
        seed,
        {.accelerators = 2 + int(seed % 2), .commands = 50, .bodies = seed % 4 != 0, .groups = 2 + int(seed % 2)});
    ASSERT_EQ(test::tryMutations(s, tally), "") << "seed " << seed;
  }
  printf("%s\n", tally.text().c_str());
}
