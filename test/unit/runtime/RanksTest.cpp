// Programs for the ranks of a mesh: what is refused, what they become for one process, and what is predicted for any
// number of ranks.
#include "tressel/runtime/Ranks.h"

#include "ScheduleBuilder.h"
#include "test/support/BlockingJudge.h"
#include "test/support/RunOnMachine.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/Package.h"
#include "tressel/runtime/Simulate.h"
#include "tressel/runtime/Simulated.h"
#include "tressel/runtime/Storage.h"
#include "tressel/runtime/VerifySchedule.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace tressel;
using namespace tressel::runtime;

namespace {

constexpr DeviceRef kGpu{DeviceKind::Gpu, 0};

std::string verdict(const Schedule &s) {
  const auto found = verifySchedule(s, 1);
  return found.empty() ? "" : found[0].message;
}
void expectFault(const Schedule &s, ViolationKind kind, const std::string &text) {
  const auto found = verifySchedule(s);
  ASSERT_FALSE(found.empty()) << "accepted; expected: " << text;
  EXPECT_EQ(found[0].kind, kind) << found[0].message;
  EXPECT_NE(found[0].message.find(text), std::string::npos) << found[0].message;
}

/// One rank: streams 0 cpu, 1 gpu, 2 gpu.comm; on the host one arena, on the accelerator another.
struct RankBuilder : ScheduleBuilder {
  explicit RankBuilder(std::vector<MeshAxis> mesh, int64_t arenaBytes = 4096) : ScheduleBuilder(1) {
    s.mesh = std::move(mesh);
    s.streams.push_back({kGpu, StreamKind::Compute, "gpu"});
    s.streams.push_back({kGpu, StreamKind::CopyOut, "comm"});
    s.arenas.push_back({{}, MemoryKind::Pinned, arenaBytes});
    s.arenas.push_back({kGpu, MemoryKind::Device, arenaBytes});
  }
  uint32_t onHost(int64_t offset, TensorType type) { return buffer(Space::Arena, 0, offset, type); }
  uint32_t onGpu(int64_t offset, TensorType type) { return buffer(Space::Arena, 1, offset, type); }
  uint32_t collective(CollectiveKind kind, std::vector<uint32_t> axes, uint32_t source, uint32_t target,
                      std::vector<uint32_t> waits = {}, uint16_t stream = 2) {
    s.collectives.push_back({.name = "c" + std::to_string(s.collectives.size()),
                             .members = {stream},
                             .kind = kind,
                             .axes = std::move(axes)});
    return command({.kind = CommandKind::Collective, .stream = stream, .kernel = uint32_t(s.collectives.size() - 1)},
                   {{source, Access::Read}, {target, Access::Write}}, waits);
  }
};

/// x goes to the accelerator, is summed over "data", gathered over "tensor", and comes back.
RankBuilder sample(int64_t data, int64_t tensor, int64_t count = 16) {
  RankBuilder b({{"data", data}, {"tensor", tensor}},
                dim::isConstant(tensor) ? 64 + (4 * count + 63) / 64 * 64 * (1 + tensor) : 4096);
  const TensorType one{i32, Shape{count}}, all{i32, Shape{dim::mul(count, tensor)}};
  const uint32_t x = b.input("x", one), y = b.output("y", all), near = b.onGpu(0, one),
                 many = b.onGpu((4 * count + 63) / 64 * 64, all);
  b.s.buffers[y].bytes = b.s.buffers[many].bytes = dim::bytes(all);
  if (!dim::isConstant(tensor))
    b.s.arenas[1].bytes = dim::add(4096, dim::bytes(all));
  const uint32_t in = b.copy(x, near, {}, 1);
  b.collective(CollectiveKind::AllReduce, {0}, near, near, {in});
  b.collective(CollectiveKind::AllGather, {1}, near, many);
  b.copy(many, y, {}, 2);
  return b;
}
std::shared_ptr<SimulatedMachine> machineFor(int64_t ranks, bool computes = true) {
  return SimulatedMachine::create(machinePreset(ranks <= 4 ? "4gpu-pcie3" : "dgx-h100"), {.computes = computes});
}

} // namespace

TEST(Ranks, CoordinatesAreRowMajor) {
  const std::vector<MeshAxis> mesh{{"data", 4}, {"tensor", 2}, {"one", 1}};
  EXPECT_EQ(numRanks(mesh), 8);
  dim::Values values;
  bindRank(values, mesh, 5);
  EXPECT_EQ(dim::evaluate(rankSymbol(mesh[0]), values), 2);
  EXPECT_EQ(dim::evaluate(rankSymbol(mesh[1]), values), 1);
  EXPECT_EQ(rankSymbol(mesh[2]), 0);
  EXPECT_EQ(dim::spell(rankSymbol(mesh[0])), "rank.data[0..3]");
  EXPECT_THROW(bindRank(values, mesh, 8), Error);
}

TEST(Ranks, MeshesAreChecked) {
  EXPECT_EQ(verdict(sample(4, 2).s), "");
  const int64_t n = dim::symbol("n", 1, 64);
  for (const std::vector<MeshAxis> &mesh :
       std::vector<std::vector<MeshAxis>>{{{"data", 0}, {"tensor", 2}},
                                          {{"data", -1}, {"tensor", 2}},
                                          {{"data", 2}, {"data", 2}},
                                          {{"data", n}, {"tensor", n}},
                                          {{"", 2}, {"tensor", 2}},
                                          {{"da ta", 2}, {"tensor", 2}},
                                          {{"n[1..3]", 2}, {"tensor", 2}},
                                          {{"7", 2}, {"tensor", 2}},
                                          {{"data", int64_t(1) << 20}, {"tensor", int64_t(1) << 20}},
                                          {{"data", dim::mul(n, 2)}, {"tensor", 2}},
                                          {{"data", kDynamic}, {"tensor", 2}},
                                          {{"data", dim::symbol("z", 0, 4)}, {"tensor", 2}},
                                          std::vector<MeshAxis>(9, {"a", 1}),
                                          {{"data", 2}},
                                          {}}) {
    Schedule s = sample(4, 2).s;
    s.mesh = mesh;
    EXPECT_NE(verdict(s), "") << mesh.size() << " axes, " << (mesh.empty() ? "" : mesh[0].name);
  }
  for (const std::vector<uint32_t> &axes : std::vector<std::vector<uint32_t>>{{1, 0}, {0, 0}, {2}}) {
    Schedule s = sample(4, 2).s;
    s.collectives[0].axes = axes;
    expectFault(s, ViolationKind::Structure, "names axes that the mesh does not have");
  }
  Schedule two = sample(4, 2).s;
  two.collectives[0].members = {1, 2};
  expectFault(two, ViolationKind::Structure, "or has several streams");
  Schedule root = sample(4, 2).s;
  root.collectives[0].root = 4;
  expectFault(root, ViolationKind::Structure, "collective 0 is of an unknown kind");
  Schedule wide = sample(4, 2).s; // what is gathered has another size
  wide.mesh[1].size = 3;
  expectFault(wide, ViolationKind::Structure, "are not what collective 'c1' wants");
}

TEST(Ranks, LengthDoesNotDependOnTheirNumber) {
  const int64_t data = dim::symbol("replicas", 1, 4096);
  const Schedule few = sample(8, 2).s, many = sample(1024, 2).s, any = sample(data, 2).s;
  for (const Schedule *s : {&few, &many, &any}) {
    EXPECT_EQ(verdict(*s), "");
    EXPECT_EQ(s->step.commands.size(), 4u);
    EXPECT_EQ(s->streams.size(), 3u);
  }
  const Schedule rank = scheduleOfRank(any, 2047, [&] {
    dim::Values values;
    values.bind(data, 1024);
    return values;
  }());
  EXPECT_EQ(rank.mesh[0].size, 1024);
  EXPECT_EQ(verdict(rank), "");
  dim::Values tooMany;
  tooMany.bind(data, 5000);
  EXPECT_THROW(scheduleOfRank(any, 0, tooMany), Error);
}

TEST(Ranks, PackagesHoldMeshes) {
  const int64_t data = dim::symbol("replicas", 1, 4096);
  RankBuilder b = sample(data, 2);
  // A slice of the rank's own.
  const TensorType piece{i32, Shape{8}};
  b.s.arenas[1].bytes = dim::add(8192, dim::mul(64, data));
  const uint32_t slot = b.onGpu(dim::add(4096, dim::mul(64, rankSymbol(b.s.mesh[0]))), piece);
  b.fill(slot, 3, {}, 1);
  ASSERT_EQ(verdict(b.s), "");
  const PackageFunction f{.schedule = &b.s};
  const auto bytes = packageBytes({&f, 1});
  const auto aligned = Storage::allocate(static_cast<int64_t>(bytes.size()));
  std::memcpy(aligned->data(), bytes.data(), bytes.size());
  const Package package = Package::open(std::span(static_cast<const std::byte *>(aligned->data()), bytes.size()));
  const Schedule &read = package.schedule();
  ASSERT_EQ(read.mesh.size(), 2u);
  EXPECT_EQ(read.mesh[0].name, "data");
  EXPECT_EQ(read.mesh[0].size, data);
  EXPECT_EQ(read.mesh[1].size, 2);
  ASSERT_EQ(read.collectives.size(), 2u);
  EXPECT_EQ(read.collectives[1].axes, std::vector<uint32_t>{1});
  EXPECT_EQ(read.buffers[slot].offset, b.s.buffers[slot].offset);
  EXPECT_THROW(Context(package.executable()), InputError);
}

TEST(Ranks, CommandsNeedTheSameSizesOnAllRanks) {
  auto program = [](bool sizes) {
    RankBuilder b({{"data", 4}});
    const int64_t rank = rankSymbol(b.s.mesh[0]), count = sizes ? dim::add(rank, 1) : 8;
    const TensorType type{i32, Shape{count}};
    const uint32_t slot = b.onGpu(sizes ? 0 : dim::mul(rank, 64), {i32, Shape{8}});
    b.s.buffers[slot].type = type;
    b.s.buffers[slot].bytes = dim::bytes(type);
    const uint32_t filled = b.fill(slot, 1, {}, 1);
    b.collective(CollectiveKind::AllReduce, {0}, slot, slot, {filled});
    return b;
  };
  EXPECT_EQ(verdict(program(false).s), ""); // elsewhere on each rank, as large on all
  expectFault(program(true).s, ViolationKind::Structure, "whose size depends on the rank");
  RankBuilder outside = program(false); // of the last rank, not of the first
  outside.s.arenas[1].bytes = 128;
  expectFault(outside.s, ViolationKind::Structure, "leave arena");
}

TEST(Ranks, LoopsRunCollectivesAsOftenOnAllRanks) {
  for (bool collective : {false, true})
    for (bool differs : {false, true}) {
      RankBuilder b({{"data", 4}});
      const uint32_t slot = b.onGpu(0, {i32, Shape{8}}), filled = b.fill(slot, 1, {}, 1), body = b.bodies(1);
      b.loop(differs ? dim::add(rankSymbol(b.s.mesh[0]), 1) : 3, body, {}, {filled}, 1);
      b.into(int(body));
      if (collective)
        b.collective(CollectiveKind::AllReduce, {0}, slot, slot);
      else
        b.fill(slot, 2, {}, 1);
      if (collective && differs)
        expectFault(b.s, ViolationKind::Deadlock, "runs collectives as often as the rank says");
      else
        EXPECT_EQ(verdict(b.s), "");
    }
}

//--- What decides -----------------------------------------------------------------------------------------------------
namespace {

const TensorType kFlag{DType::boolean, Shape{}}, kWords{i32, Shape{8}};

/// A branch on the host by a flag, with a collective in its first body.
struct Decision : RankBuilder {
  explicit Decision(std::vector<MeshAxis> mesh = {{"data", 2}, {"tensor", 2}}) : RankBuilder(std::move(mesh)) {
    near = onGpu(0, kFlag);
    nearCopy = onGpu(64, kFlag);
    words = onGpu(128, kWords);
    flag = onHost(0, kFlag);
    given = input("stop", kFlag);
    own = copy(given, near, {}, 1);
    filled = fill(words, 1, {}, 1);
  }
  void decide(std::vector<uint32_t> waits, bool isWhile = false) {
    const uint32_t body = bodies(2);
    waits.push_back(filled);
    command({.kind = isWhile ? CommandKind::While : CommandKind::Branch, .body = body}, {{flag, Access::Read}}, waits);
    const int64_t before = now;
    into(body + isWhile);
    now = int64_t(body) + isWhile;
    collective(CollectiveKind::AllReduce, {0}, words, words);
    before < 0 ? intoStep() : into(uint32_t(before));
    now = before;
  }
  uint32_t near, nearCopy, words, flag, given, own, filled;
  int64_t now = -1;
};

} // namespace

TEST(Ranks, FlagsThatDecideAreTheSameOnAllRanks) {
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
    mine.s.buffers[cut].offset = dim::add(2048, dim::mul(64, rankSymbol(mine.s.mesh[0])));
    const uint32_t written = mine.fill(wide, 0, {}, 2);
    mine.decide({mine.copy(cut, mine.flag, {written}, 2)});
    expectFault(mine.s, ViolationKind::Deadlock, why);
  }
  { // written at another place on each rank
    Decision b({{"data", 4}});
    const uint32_t wide = b.onGpu(1024, {DType::boolean, Shape{256}}), cut = b.onGpu(0, kFlag),
                   first = b.onGpu(1088, kFlag);
    b.s.buffers[cut].offset = dim::add(1024, dim::mul(64, rankSymbol(b.s.mesh[0])));
    const uint32_t zeros = b.fill(wide, 0, {}, 2);
    Decision without = b;
    without.decide({without.copy(first, without.flag, {zeros}, 2)});
    EXPECT_EQ(verdict(without.s), "");
    const uint32_t one = b.fill(cut, 1, {}, 2);
    b.decide({b.copy(first, b.flag, {one}, 2)});
    expectFault(b.s, ViolationKind::Deadlock, why);
  }
}

TEST(Ranks, WhatOnlySomeRanksDoIsNotTheSameOnAll) {
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
    const uint32_t loop = b.loop(differs ? rankSymbol(b.s.mesh[0]) : 2, body, {}, {set});
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

TEST(Ranks, AWhileRunsByACommonFlag) {
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
      const int64_t rank = pick(2) ? rankSymbol(b.s.mesh[0]) : rankSymbol(b.s.mesh[1]);
      elsewhere.push_back(b.buffer(Space::Arena, 1, dim::add(1024 * i, dim::mul(64, rank)), word));
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
        b.loop(pick(6) ? 1 + pick(4) : rankSymbol(b.s.mesh[0]), body, {}, {}, 1);
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
TEST(Ranks, WhereProgramsAreAcceptedRanksDecideAlike) {
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

//--- For one process --------------------------------------------------------------------------------------------------
TEST(Ranks, OneProcessRunsThemAll) {
  for (auto [data, tensor] : {std::pair<int64_t, int64_t>{2, 1}, {1, 2}, {2, 2}, {4, 2}, {2, 4}, {8, 1}}) {
    const Schedule all = expandRanks(sample(data, tensor).s);
    ASSERT_EQ(verdict(all), "");
    const auto n = static_cast<size_t>(data * tensor);
    EXPECT_EQ(all.step.commands.size(), 4 * n);
    EXPECT_EQ(all.inputs[n - 1].name, "rank" + std::to_string(n - 1) + ".x");
    std::vector<std::vector<int32_t>> x(n, std::vector<int32_t>(16)), y(n, std::vector<int32_t>(size_t(16 * tensor)));
    std::vector<const void *> in;
    std::vector<void *> out;
    for (size_t r = 0; r < n; ++r) {
      for (size_t i = 0; i < 16; ++i)
        x[r][i] = int32_t(100 * r + i);
      in.push_back(x[r].data()), out.push_back(y[r].data());
    }
    Executor e(test::executableOf(all), machineFor(int64_t(n)));
    e.run(in, out);
    for (size_t r = 0; r < n; ++r)
      for (size_t t = 0; t < size_t(tensor); ++t)
        for (size_t i = 0; i < 16; ++i) {
          int32_t sum = 0;
          for (size_t d = 0; d < size_t(data); ++d)
            sum += x[d * size_t(tensor) + t][i];
          ASSERT_EQ(y[r][t * 16 + i], sum) << data << " x " << tensor << " rank " << r;
        }
  }
}

TEST(Ranks, EachReadsItsPart) {
  RankBuilder b({{"data", 4}});
  const TensorType all{i32, Shape{64}}, part{i32, Shape{16}};
  b.input("x", all);
  const uint32_t y = b.output("y", all), slot = b.onGpu(0, part), many = b.onGpu(64, all);
  const uint32_t mine = b.buffer(Space::Input, 0, dim::mul(64, rankSymbol(b.s.mesh[0])), part);
  const uint32_t in = b.copy(mine, slot, {}, 1);
  b.collective(CollectiveKind::AllGather, {0}, slot, many, {in});
  b.copy(many, y, {}, 2);
  ASSERT_EQ(verdict(b.s), "");
  const Schedule expanded = expandRanks(b.s);
  ASSERT_EQ(verdict(expanded), "");
  std::vector<int32_t> x(64), outputs(4 * 64);
  for (int i = 0; i < 64; ++i)
    x[size_t(i)] = 7 * i;
  std::vector<const void *> ins(4, x.data());
  std::vector<void *> outs;
  for (size_t r = 0; r < 4; ++r)
    outs.push_back(outputs.data() + 64 * r);
  Executor e(test::executableOf(expanded), machineFor(4));
  e.run(ins, outs);
  for (size_t i = 0; i < outputs.size(); ++i)
    ASSERT_EQ(outputs[i], x[i % 64]);
}

TEST(Ranks, RandomProgramsEqualAPlainComputation) {
  size_t programs = 0, collectives = 0, inLoops = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const std::vector<std::vector<int64_t>> meshes{{2}, {4}, {2, 2}, {8}, {4, 2}, {2, 2, 2}};
    const std::vector<int64_t> &mesh = meshes[seed % meshes.size()];
    const Schedule s = test::randomSchedule(seed, {.accelerators = 1,
                                                   .commands = 30,
                                                   .lanes = 0,
                                                   .bodies = seed % 3 != 0,
                                                   .groups = 1 + int(seed % 2),
                                                   .mesh = mesh});
    ASSERT_EQ(verdict(s), "") << "seed " << seed;
    const Schedule all = expandRanks(s);
    ASSERT_EQ(verdict(all), "") << "seed " << seed;
    ++programs;
    collectives += s.collectives.size();
    for (const CommandList &body : s.bodies)
      for (const Command &c : body.commands)
        inLoops += c.kind == CommandKind::Collective;
    const int64_t n = numRanks(s.mesh);
    const test::Results expected = test::runRanksTwiceSerially(s, seed);
    ASSERT_TRUE(test::runTwiceSerially(all, seed) == expected) << "seed " << seed;
    for (uint64_t order = 0; order < 2; ++order) {
      const auto machine = SimulatedMachine::create(machinePreset(n <= 4 ? "4gpu-pcie3" : "dgx-h100"),
                                                    {.interleaving = seed * 2 + order, .checkRaces = order == 1});
      ASSERT_TRUE(test::runTwice(all, machine, seed) == expected) << "seed " << seed << " order " << order;
    }
  }
  printf("%zu programs, %zu collectives over axes, %zu of them in loops\n", programs, collectives, inLoops);
  EXPECT_GT(collectives, 200u);
  EXPECT_GT(inLoops, 10u);
}

TEST(Ranks, WhatOneProcessCannotHaveIsSaid) {
  auto refused = [](const Schedule &s, const std::string &text) {
    ASSERT_EQ(verdict(s), "");
    try {
      expandRanks(s);
      ADD_FAILURE() << "expanded; expected: " << text;
    } catch (const InputError &e) {
      EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
    }
  };
  {
    Decision b;
    b.decide({b.fill(b.flag, 1)});
    refused(b.s, "has a collective over axes in a branch");
  }
  {
    RankBuilder b({{"data", 4}});
    const uint32_t slot = b.onGpu(0, kWords), filled = b.fill(slot, 1, {}, 1), number = b.onGpu(64, {i64, Shape{}}),
                   body = b.bodies(1);
    b.loop(3, body, {}, {filled}, 1, number);
    b.into(body);
    b.collective(CollectiveKind::AllReduce, {0}, slot, slot);
    refused(b.s, "loop that writes its number");
  }
  {
    RankBuilder b({{"data", 4}});
    const uint32_t slot = b.onHost(0, kWords);
    b.fill(slot, 1);
    b.collective(CollectiveKind::AllReduce, {0}, slot, slot, {}, 0);
    refused(b.s, "runs on cpu, which several ranks of one process share");
  }
  {
    RankBuilder b({{"data", 4}});
    b.kernel("k", dim::add(rankSymbol(b.s.mesh[0]), 1));
    refused(b.s, "has other sizes on rank 1 than on rank 0");
  }
  refused(sample(64, 2).s, "has 128 ranks of 3 streams");
  try {
    Executor e(test::executableOf(sample(2, 2).s), machineFor(4));
    ADD_FAILURE() << "runs";
  } catch (const InputError &e) {
    EXPECT_NE(std::string(e.what()).find("is the program of one rank of a mesh"), std::string::npos) << e.what();
  }
}

//--- Predicted --------------------------------------------------------------------------------------------------------
TEST(Ranks, OneRankSaysWhatAllTake) {
  const MachineModel machine = machinePreset("dgx-h100");
  for (int64_t n : {2, 4, 8}) {
    const Schedule s = sample(n, 1, 1 << 20).s;
    const Timeline one = simulate(s, machine), all = simulate(expandRanks(s), machine);
    // The way around the ring is the same; the copies of all ranks share the host's memory.
    auto collective = [](const Timeline &t) {
      Picoseconds longest = 0;
      for (const Span &span : t.spans)
        if (span.kind == SpanKind::Collective)
          longest = std::max(longest, span.end - span.begin);
      return double(longest);
    };
    EXPECT_NEAR(collective(one) / collective(all), 1, 1e-6) << n << " ranks";
  }
  // Ring steps: 2 (n - 1) of an n-th of the bytes; from 8 to 1,024 ranks hardly more bytes, but many more latencies.
  auto seconds = [&](int64_t n) { return double(simulate(sample(n, 1, 1 << 22).s, machine).end) * 1e-12; };
  EXPECT_GT(seconds(1024), seconds(8));
  const Schedule large = sample(1024, 1, 1 << 22).s;
  EXPECT_EQ(large.step.commands.size(), sample(8, 1).s.step.commands.size());
  const RouteModel *route = machine.route({DeviceKind::Gpu, 0}, {DeviceKind::Gpu, 1});
  double latency = 0, rate = 1e30;
  for (uint32_t link : route->links) {
    latency += machine.links[link].latencySeconds;
    rate = std::min(rate, machine.links[link].bytesPerSecond);
  }
  const double ring = 2 * 1023 * (latency + double((1 << 24) / 1024) / rate);
  const Timeline t = simulate(large, machine);
  for (const Span &span : t.spans)
    if (span.kind == SpanKind::Collective && span.end > span.begin) {
      EXPECT_NEAR(double(span.end - span.begin) * 1e-12 / ring, 1, 0.01);
      break;
    }
}

TEST(Ranks, NoRouteNoPrediction) {
  MachineModel machine = machinePreset("dgx-h100");
  std::erase_if(machine.devices,
                [](const DeviceModel &d) { return d.device.kind == DeviceKind::Gpu && d.device.index > 0; });
  std::erase_if(machine.routes, [](const RouteModel &r) { return r.from.index > 0 || r.to.index > 0; });
  try {
    simulate(sample(4, 2).s, machine);
    ADD_FAILURE() << "predicted";
  } catch (const InputError &e) {
    EXPECT_NE(
        std::string(e.what()).find("has no route from gpu0 to gpu1, which would stand for the way to the next one"),
        std::string::npos)
        << e.what();
  }
}
