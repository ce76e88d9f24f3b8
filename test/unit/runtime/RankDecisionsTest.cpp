// What decides whether ranks run the collectives that they have in common.
#include "RankBuilder.h"
#include "test/support/RandomSchedule.h"

#include <random>

using namespace tressel;
using namespace tressel::runtime;

TEST(RankDecisions, FlagsAreTheSameOnAllRanks) {
  const char *why = "decides over collectives by a flag that may differ between ranks";
  { // of the whole mesh, then copied
    Decision b;
    const uint32_t agreed = b.collective(CollectiveKind::AllReduce, {0, 1}, b.near, b.nearCopy, {b.own});
    const uint32_t out = b.copy(b.nearCopy, b.flag, {agreed}, 2);
    b.decide({out});
    EXPECT_EQ(verdict(b.s), "");
    Decision late; // its last writer counts
    const uint32_t made = late.collective(CollectiveKind::AllReduce, {0, 1}, late.near, late.nearCopy, {late.own});
    const uint32_t copied = late.copy(late.nearCopy, late.flag, {made}, 2);
    late.decide({late.copy(late.given, late.flag, {copied})});
    expectFault(late.s, ViolationKind::Deadlock, why);
  }
  for (auto kind :
       {CollectiveKind::AllReduce, CollectiveKind::Broadcast, CollectiveKind::AllGather}) // over one axis of two
    for (bool one : {false, true}) {
      Decision b({{"data", 2}, {"tensor", one ? 1 : 2}});
      const uint32_t all = b.onGpu(64, {DType::boolean, Shape{2}});
      const bool gathers = kind == CollectiveKind::AllGather;
      const uint32_t agreed = b.collective(kind, {0}, b.near, gathers ? all : b.nearCopy, {b.own});
      b.decide({b.copy(b.nearCopy, b.flag, {agreed}, 2)});
      if (one)
        EXPECT_EQ(verdict(b.s), ""); // the other axis has one rank
      else
        expectFault(b.s, ViolationKind::Deadlock, why);
    }
  { // the input of the rank; a fill
    Decision b;
    b.decide({b.copy(b.given, b.flag)});
    expectFault(b.s, ViolationKind::Deadlock, why);
    Decision filled;
    filled.decide({filled.fill(filled.flag, 1)});
    EXPECT_EQ(verdict(filled.s), "");
  }
  { // its piece of what was gathered
    Decision b({{"data", 4}});
    const uint32_t all = b.onGpu(256, {DType::boolean, Shape{4}});
    const uint32_t agreed = b.collective(CollectiveKind::AllGather, {0}, b.near, all, {b.own});
    const uint32_t first = b.onGpu(256, kFlag);
    Decision mine = b;
    b.decide({b.copy(first, b.flag, {agreed}, 2)});
    EXPECT_EQ(verdict(b.s), "");
    mine.s.arenas[1].bytes = 8192;
    mine.s.buffers[all].offset = mine.s.buffers[first].offset = 1024;
    const uint32_t wide = mine.onGpu(2048, {DType::boolean, Shape{256}}), cut = mine.onGpu(0, kFlag);
    mine.s.buffers[cut].offset = 2048 + 64 * rankSymbol(mine.s.mesh[0]);
    const uint32_t written = mine.fill(wide, 0, {}, 2);
    mine.decide({mine.copy(cut, mine.flag, {written}, 2)});
    expectFault(mine.s, ViolationKind::Deadlock, why);
  }
  { // written at another place on each rank
    Decision b({{"data", 4}});
    const uint32_t wide = b.onGpu(1024, {DType::boolean, Shape{256}}), cut = b.onGpu(0, kFlag),
                   first = b.onGpu(1088, kFlag);
    b.s.buffers[cut].offset = 1024 + 64 * rankSymbol(b.s.mesh[0]);
    const uint32_t zeros = b.fill(wide, 0, {}, 2);
    Decision without = b;
    without.decide({without.copy(first, without.flag, {zeros}, 2)});
    EXPECT_EQ(verdict(without.s), "");
    const uint32_t one = b.fill(cut, 1, {}, 2);
    b.decide({b.copy(first, b.flag, {one}, 2)});
    expectFault(b.s, ViolationKind::Deadlock, why);
  }
}

TEST(RankDecisions, WhatOnlySomeRanksDoIsNotTheSameOnAll) {
  const char *why = "decides over collectives by a flag that may differ between ranks";
  for (bool agreed : {false, true}) { // a branch by the rank's own flag or by a common one sets the flag
    Decision b;
    const uint32_t other = b.onHost(64, kFlag), set = b.fill(b.flag, 0);
    const uint32_t read = agreed ? b.fill(other, 1) : b.copy(b.given, other);
    const uint32_t body = b.bodies(2), chosen = b.branch(other, body, {set, read});
    b.into(body);
    b.fill(b.flag, 1);
    b.intoStep();
    b.decide({chosen});
    if (agreed)
      EXPECT_EQ(verdict(b.s), "");
    else
      expectFault(b.s, ViolationKind::Deadlock, why);
  }
  for (bool differs : {false, true}) { // a loop that runs more often on some ranks
    Decision b({{"data", 4}});
    const uint32_t set = b.fill(b.flag, 0), body = b.bodies(1);
    const uint32_t loop = b.loop(differs ? rankSymbol(b.s.mesh[0]) : Size(2), body, {}, {set});
    b.into(body);
    b.fill(b.flag, 1);
    b.intoStep();
    b.decide({loop});
    if (differs)
      expectFault(b.s, ViolationKind::Deadlock, why);
    else
      EXPECT_EQ(verdict(b.s), "");
  }
  { // what moves on from iteration to iteration: common in the first two, the rank's own in the third
    Decision b;
    const uint32_t p = b.onHost(64, kFlag), q = b.onHost(128, kFlag), body = b.bodies(1);
    const uint32_t one = b.fill(b.flag, 0), two = b.fill(p, 0), three = b.copy(b.given, q);
    b.loop(5, body, {}, {one, two, three, b.filled});
    b.into(body);
    b.now = int64_t(body);
    b.filled = 0;
    b.fill(b.words, 1, {}, 1);
    b.decide({});
    b.copy(p, b.flag, {1});
    b.copy(q, p);
    expectFault(b.s, ViolationKind::Deadlock, why);
  }
}

TEST(RankDecisions, AWhileRunsByACommonFlag) {
  for (bool agreed : {true, false}) {
    Decision b;
    const uint32_t body = b.bodies(2);
    b.command({.kind = CommandKind::While, .body = body}, {{b.flag, Access::Read}}, {b.own, b.filled});
    b.into(body);
    if (agreed) {
      const uint32_t made = b.collective(CollectiveKind::AllReduce, {0, 1}, b.near, b.nearCopy);
      b.copy(b.nearCopy, b.flag, {made}, 2);
    } else {
      b.copy(b.near, b.flag, {}, 2);
    }
    b.into(body + 1);
    b.collective(CollectiveKind::AllReduce, {0}, b.words, b.words);
    if (agreed)
      EXPECT_EQ(verdict(b.s), "");
    else
      expectFault(b.s, ViolationKind::Deadlock, "decides over collectives by a flag");
  }
}

namespace {

/// Words that are filled, copied, exchanged and read from the rank's input, in branches and loops, on one stream.
/// Branches decide over collectives.
class RandomDecisions {
public:
  explicit RandomDecisions(uint64_t seed) : random(seed), b({{"a", 2}, {"b", 2}}, 8192) {
    const TensorType word{i32, Shape{1}}, several{i32, Shape{4}};
    const uint32_t in = b.input("x", {i32, Shape{8}}), out = b.output("y", word);
    for (uint32_t i = 0; i < kSlots; ++i) {
      words.push_back(b.onGpu(1024 * i, word));
      wide.push_back(b.onGpu(1024 * i, several));
      flags.push_back(b.onGpu(1024 * i, {DType::boolean, Shape{}}));
      wholes.push_back(b.onGpu(1024 * i, {i32, Shape{32}}));
      // At this slot or one of the next 64 bytes.
      const Size rank = pick(2) ? rankSymbol(b.s.mesh[0]) : rankSymbol(b.s.mesh[1]);
      elsewhere.push_back(b.buffer(Space::Arena, 1, 1024 * i + 64 * rank, word));
      given.push_back(b.buffer(Space::Input, 0, 4 * i, word));
    }
    (void)in;
    for (uint32_t i = 0; i < kSlots; ++i)
      b.fill(wholes[i], uint64_t(pick(2)), {}, 1);
    some(6 + pick(8), 0);
    b.copy(words[0], out, {}, 1);
  }
  RankBuilder &builder() { return b; }
  size_t decisions = 0; ///< branches

private:
  static constexpr uint32_t kSlots = 5;
  int pick(int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); }
  uint32_t any(const std::vector<uint32_t> &of) { return of[size_t(pick(int(of.size())))]; }

  void some(int count, int depth) {
    for (; count > 0; --count) {
      switch (pick(depth < 2 ? 9 : 6)) {
      case 0:
        b.fill(any(words), uint64_t(pick(2)), {}, 1);
        break;
      case 1:
        if (pick(2))
          b.copy(any(given), any(words), {}, 1);
        break;
      case 2:
        move(any(words), any(words));
        break;
      case 3:
        pick(2) ? move(any(elsewhere), any(words)) : move(any(words), any(elsewhere));
        break;
      case 4:
      case 5:
        exchange();
        break;
      case 6:
      case 7: {
        const uint32_t body = b.bodies(2), flag = any(flags);
        ++decisions;
        b.branch(flag, body, {}, 1);
        inside(body, depth);
        inside(body + 1, depth);
        break;
      }
      default: {
        const uint32_t body = b.bodies(1);
        b.loop(pick(6) ? Size(1 + pick(4)) : rankSymbol(b.s.mesh[0]), body, {}, {}, 1);
        inside(body, depth);
      }
      }
    }
  }
  void move(uint32_t from, uint32_t to) {
    if (from != to)
      b.copy(from, to, {}, 1);
  }
  void exchange() {
    std::vector<uint32_t> axes;
    for (uint32_t axis : {0u, 1u})
      if (pick(4))
        axes.push_back(axis);
    if (axes.empty())
      axes = {1};
    const auto kind = std::vector{CollectiveKind::AllReduce, CollectiveKind::Broadcast, CollectiveKind::AllGather,
                                  CollectiveKind::ReduceScatter}[size_t(pick(4))];
    const bool all = axes.size() == 2;
    const uint32_t i = uint32_t(pick(kSlots)), k = uint32_t(pick(kSlots));
    if (kind == CollectiveKind::AllGather && all && i != k)
      b.collective(kind, axes, words[i], wide[k], {}, 1);
    else if (kind == CollectiveKind::ReduceScatter && all && i != k)
      b.collective(kind, axes, wide[i], words[k], {}, 1);
    else
      b.collective(kind == CollectiveKind::Broadcast ? kind : CollectiveKind::AllReduce, axes, words[i], words[k], {},
                   1);
    b.s.collectives.back().reduction = pick(2) ? Reduction::Max : Reduction::Sum;
  }
  void inside(uint32_t body, int depth) {
    const int64_t before = now;
    b.into(body);
    now = body;
    some(1 + pick(3), depth + 1);
    before < 0 ? b.intoStep() : b.into(uint32_t(before));
    now = before;
  }

  std::mt19937_64 random;
  RankBuilder b;
  std::vector<uint32_t> words, wide, flags, wholes, elsewhere, given;
  int64_t now = -1;
};

bool ranksAgree(const Schedule &s, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int run = 0; run < 6; ++run) {
    std::vector<std::vector<std::vector<std::byte>>> inputs(1);
    for (int64_t rank = 0; rank < numRanks(s.mesh); ++rank) {
      auto &x = inputs[0].emplace_back(32, std::byte(0));
      for (size_t i = 0; i < 8; ++i)
        x[4 * i] = std::byte(random() % 2);
    }
    std::vector<test::States> states(size_t(numRanks(s.mesh)));
    try {
      test::runRanksSerially(s, states, inputs);
    } catch (const std::logic_error &) {
      return false;
    }
  }
  return true;
}

} // namespace

/// The rule for flags against what ranks with inputs of their own compute.
TEST(RankDecisions, AreAlikeWhereProgramsAreAccepted) {
  size_t accepted = 0, withDecisions = 0, differ = 0, refusedThough = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    RandomDecisions made(seed);
    const Schedule &s = made.builder().s;
    const auto found = verifySchedule(s, 1);
    const bool agree = ranksAgree(s, seed);
    if (!found.empty()) {
      ASSERT_EQ(found[0].kind, ViolationKind::Deadlock) << "seed " << seed << ": " << found[0].message;
      ++(agree ? refusedThough : differ);
      continue;
    }
    ++accepted;
    withDecisions += made.decisions > 0;
    ASSERT_TRUE(agree) << "seed " << seed;
  }
  printf("%zu accepted (%zu with branches), %zu refused and ranks differ, %zu refused where these inputs did not show "
         "why\n",
         accepted, withDecisions, differ, refusedThough);
  EXPECT_GT(withDecisions, 500u);
  EXPECT_GT(differ, 200u);
}
