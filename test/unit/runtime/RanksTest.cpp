// Programs for the ranks of a mesh: what is refused, what they become for one process, and what is predicted for any
// number of ranks.
#include "tressel/runtime/Ranks.h"
#include "tressel/runtime/CollectivePlan.h"

#include "RankBuilder.h"
#include "test/support/RunOnMachine.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/Package.h"
#include "tressel/runtime/Simulate.h"
#include "tressel/runtime/Simulated.h"
#include "tressel/runtime/Storage.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace tressel;
using namespace tressel::runtime;

namespace {

/// x goes to the accelerator, is summed over "data", gathered over "tensor", and comes back.
RankBuilder sample(Size data, Size tensor, int64_t count = 16) {
  RankBuilder b({{"data", data}, {"tensor", tensor}},
                tensor.isNumber() ? 64 + (4 * count + 63) / 64 * 64 * (1 + tensor) : 4096);
  const TensorType one{i32, Shape{count}}, all{i32, Shape{count * tensor}};
  const uint32_t x = b.input("x", one), y = b.output("y", all), near = b.onGpu(0, one),
                 many = b.onGpu((4 * count + 63) / 64 * 64, all);
  b.s.buffers[y].bytes = b.s.buffers[many].bytes = dim::bytes(all);
  if (!tensor.isNumber())
    b.s.arenas[1].bytes = 4096 + dim::bytes(all);
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
  const Size n = dim::symbol("n", 1, 64);
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
                                          {{"data", n * 2}, {"tensor", 2}},
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
  const Size data = dim::symbol("replicas", 1, 4096);
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
  const Size data = dim::symbol("replicas", 1, 4096);
  RankBuilder b = sample(data, 2);
  // A slice of the rank's own.
  const TensorType piece{i32, Shape{8}};
  b.s.arenas[1].bytes = 8192 + 64 * data;
  const uint32_t slot = b.onGpu(4096 + 64 * rankSymbol(b.s.mesh[0]), piece);
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

/// Nothing in a file is believed: whatever stands there, the verifier says something and neither throws nor reads what
/// is not there.
TEST(Ranks, DamagedProgramsAreRefusedQuietly) {
  size_t refused = 0;
  const Size replicas = dim::symbol("replicas", 1, 4096);
  for (uint64_t seed = 1; seed <= 20000; ++seed) {
    std::mt19937_64 random(seed);
    auto pick = [&](size_t n) { return n ? static_cast<size_t>(random() % n) : 0; };
    RankBuilder b = sample(pick(2) ? replicas : Size(4), 2);
    const uint32_t body = b.bodies(1);
    b.loop(pick(2) ? rankSymbol(b.s.mesh[0]) + 1 : Size(2), body, {}, {}, 1);
    b.into(body);
    b.fill(b.onGpu(64 * rankSymbol(b.s.mesh[1]), {i32, Shape{4}}), 1, {}, 1);
    Schedule &s = b.s;
    const Size odd[] = {-1,
                        0,
                        1,
                        2,
                        3,
                        64,
                        INT64_MAX,
                        Size::clamped(INT64_MIN),
                        int64_t(1) << 24,
                        kDynamic,
                        replicas,
                        rankSymbol({"data", 4}),
                        rankSymbol({"tensor", 2}),
                        replicas * replicas};
    auto number = [&] { return odd[pick(std::size(odd))]; };
    auto index = [&] { return static_cast<uint32_t>(pick(4) ? pick(5) : pick(2) ? UINT32_MAX : 1u << pick(20)); };
    auto &p = pick(4) ? s.step : s.bodies[0];
    Command &c = p.commands[pick(p.commands.size())];
    for (size_t changes = 1 + pick(2); changes > 0; --changes)
      switch (pick(16)) {
      case 0:
        s.mesh[pick(s.mesh.size())].size = number();
        break;
      case 1:
        s.mesh[pick(s.mesh.size())].name =
            std::vector<std::string>{"", "tensor", "a b", "n[1..2]", "rank.data", "7"}[pick(6)];
        break;
      case 2:
        s.mesh.resize(1 + pick(12), {"more", 2});
        break;
      case 3:
        s.collectives[pick(2)].axes = {index(), index()};
        break;
      case 4:
        s.collectives[pick(2)].axes = {index()};
        break;
      case 5:
        s.collectives[pick(2)].members = std::vector<uint32_t>(pick(3), index());
        break;
      case 6:
        s.collectives[pick(2)].root = index();
        break;
      case 7:
        s.collectives[pick(2)].kind = CollectiveKind(pick(6));
        break;
      case 8:
        s.buffers[pick(s.buffers.size())].offset = number();
        break;
      case 9:
        s.buffers[pick(s.buffers.size())].bytes = number();
        break;
      case 10:
        s.buffers[pick(s.buffers.size())].index = index();
        break;
      case 11:
        c.kernel = index();
        break;
      case 12:
        c.body = index();
        break;
      case 13:
        c.kind = CommandKind(pick(12));
        break;
      case 14:
        c.firstScalar = index(), c.numScalars = uint16_t(pick(3));
        break;
      default:
        s.step.scalars[pick(s.step.scalars.size())] = number();
      }
    refused += !verdict(s).empty();
  }
  EXPECT_GT(refused, 10000u);
}

TEST(Ranks, CommandsNeedTheSameSizesOnAllRanks) {
  auto program = [](bool sizes) {
    RankBuilder b({{"data", 4}});
    const Size rank = rankSymbol(b.s.mesh[0]), count = sizes ? rank + 1 : Size(8);
    const TensorType type{i32, Shape{count}};
    const uint32_t slot = b.onGpu(sizes ? Size(0) : rank * 64, {i32, Shape{8}});
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
      b.loop(differs ? rankSymbol(b.s.mesh[0]) + 1 : Size(3), body, {}, {filled}, 1);
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
  const uint32_t mine = b.buffer(Space::Input, 0, 64 * rankSymbol(b.s.mesh[0]), part);
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
    b.kernel("k", rankSymbol(b.s.mesh[0]) + 1);
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
/// The longest collective.
double collectiveOf(const Timeline &t) {
  Picoseconds longest = 0;
  for (const Span &span : t.spans)
    if (span.kind == SpanKind::Collective)
      longest = std::max(longest, span.end - span.begin);
  return double(longest);
}

TEST(Ranks, OneRankSaysWhatAllTake) {
  const MachineModel machine = machinePreset("dgx-h100");
  for (int64_t n : {2, 4, 8}) {
    const Schedule s = sample(n, 1, 1 << 20).s;
    // The steps of a collective are the same; the copies of all ranks share the host's memory.
    EXPECT_NEAR(collectiveOf(simulate(s, machine)) / collectiveOf(simulate(expandRanks(s), machine)), 1, 1e-6)
        << n << " ranks";
  }
}

TEST(Ranks, OneRankSaysWhatAllTakeOnSeveralHosts) {
  struct Case {
    const char *machine;
    int64_t hosts, ranks;
  };
  // Adapters of their own, and one adapter that the accelerators of a host share; full hosts, and some of one.
  for (const Case &c : {Case{"dgx-h100:1024", 2, 16}, Case{"dgx-h100:1024", 4, 32}, Case{"dgx-h100:32x4", 2, 8},
                        Case{"dgx-h100:32x4", 2, 6}, Case{"4gpu-pcie3:128", 2, 8}, Case{"4gpu-pcie3:128", 3, 12},
                        Case{"cluster-10gbe:128", 5, 5}, Case{"cluster-10gbe:128", 8, 8}})
    for (int64_t values : {1 << 10, 1 << 22}) {
      MachineModel few = machinePreset(c.machine);
      few.hosts = c.hosts; // of which one is listed
      const Schedule s = sample(c.ranks, 1, values).s;
      const double one = collectiveOf(simulate(s, few)),
                   all = collectiveOf(simulate(expandRanks(s), withAllHosts(few))),
                   oneOfAll = collectiveOf(simulate(s, withAllHosts(few)));
      EXPECT_NEAR(one / all, 1, 1e-6) << c.ranks << " ranks on " << c.hosts << " hosts of " << c.machine;
      EXPECT_NEAR(oneOfAll / all, 1, 1e-6) << c.ranks << " ranks on " << c.hosts << " hosts of " << c.machine;
    }
}

TEST(Ranks, ManyRanksTakeAsManyCommands) {
  const MachineModel machine = machinePreset("dgx-h100:1024");
  auto seconds = [&](int64_t n) { return double(simulate(sample(n, 1, 1 << 22).s, machine).end) * 1e-12; };
  EXPECT_GT(seconds(16), seconds(8)) << "beyond the host";
  EXPECT_GT(seconds(1024), seconds(16)) << "more latencies";
  const Schedule large = sample(1024, 1, 1 << 22).s;
  EXPECT_EQ(large.step.commands.size(), sample(8, 1).s.step.commands.size());
  // By hand: seven steps of an eighth over NVLink each way, between them log2 128 halvings and doublings of the eighth
  // through PCIe and adapters.
  const double bytes = 4 << 22, eighth = bytes / 8, nvlink = 4e-6 + eighth / 450e9, network = 14e-6;
  const double seconds1024 = 2 * 3 * 4e-6 + 2 * 7 * eighth / 450e9 + 14 * network + 2 * eighth * 127 / 128 / 50e9;
  EXPECT_NEAR(collectiveOf(simulate(large, machine)) * 1e-12 / seconds1024, 1, 0.01) << nvlink;
}

TEST(Ranks, CollectivesTakeTheShortestWay) {
  constexpr auto kReduce = CollectiveKind::AllReduce, kGather = CollectiveKind::AllGather,
                 kBroadcast = CollectiveKind::Broadcast;
  struct Case {
    CollectiveKind kind;
    int64_t members, bytes, steps, each;
  };
  const Channel slow{{0}, {1e-6, 1e9}, 1e9};
  // By hand, with a latency of 1 us and 1 GB/s. Of as many steps the ring is taken.
  const Case cases[] = {{kReduce, 2, 1000, 1, 1000},    {kReduce, 8, 800, 3, 800},
                        {kReduce, 2, 8000, 1, 8000},    {kReduce, 8, 8000, 6, 2334},
                        {kReduce, 1024, 1024, 10, 1024}, {kReduce, 1024, 8192, 20, 819},
                        {kReduce, 3, 3000, 4, 1000},
                        {kReduce, 6, 60, 4, 60},        {kGather, 8, 800, 3, 234},
                        {kGather, 1, 8, 0, 8},          {kBroadcast, 16, 160, 4, 160},
                        {kBroadcast, 5, 10, 3, 10},     {kReduce, 6, 60'000'000, 10, 10'000'000}};
  for (const Case &c : cases) {
    const CollectivePlan within = planCollective(c.kind, {.members = c.members, .within = slow}, c.bytes),
                         between = planCollective(
                             c.kind, {.members = c.members, .hosts = c.members, .within = {}, .between = slow}, c.bytes);
    ASSERT_EQ(within.phases.size(), 1u);
    EXPECT_EQ(within.phases[0], (CollectivePhase{c.steps, c.each, false})) << c.members << " members, " << c.bytes << " bytes";
    if (c.members > 1) {
      EXPECT_EQ(between.phases[0], (CollectivePhase{c.steps, c.each, true})) << c.members << " members, " << c.bytes << " bytes";
    }
  }
  // Eight members on two hosts: within each quarters of 1,000 bytes, of which each goes to the other host.
  const Channel fast{{0}, {1e-7, 1e11}, 1e11};
  const CollectiveGroup hosts{.members = 8, .hosts = 2, .within = fast, .between = slow};
  const CollectivePlan reduce = planCollective(kReduce, hosts, 1000), gather = planCollective(kGather, hosts, 1000),
                       scatter = planCollective(CollectiveKind::ReduceScatter, hosts, 1000),
                       broadcast = planCollective(kBroadcast, hosts, 1000);
  using Phases = std::vector<CollectivePhase>;
  EXPECT_EQ(reduce.algorithm, CollectiveAlgorithm::Hierarchical);
  EXPECT_EQ(reduce.phases, (Phases{{2, 375}, {1, 250, true}, {2, 375}}));
  EXPECT_EQ(gather.phases, (Phases{{1, 125, true}, {2, 375}}));
  EXPECT_EQ(scatter.phases, (Phases{{2, 375}, {1, 125, true}}));
  EXPECT_EQ(broadcast.phases, (Phases{{1, 1000, true}, {2, 1000}}));
  EXPECT_NEAR(reduce.seconds, 4 * (1e-7 + 375e-11) + 1e-6 + 250e-9, 1e-12);
  EXPECT_EQ(planCollective(kReduce, hosts, 80).phases, (Phases{{2, 80}, {1, 80, true}})); // fewer messages
  // Where a host's members share an adapter, each has a quarter of it, and the ring uses it alone: it is as good.
  CollectiveGroup shared = hosts;
  shared.between.message.bytesPerSecond /= 4;
  EXPECT_EQ(planCollective(kReduce, shared, 1 << 30).algorithm, CollectiveAlgorithm::Hierarchical);
  shared.isEven = false;
  const CollectivePlan around = planCollective(kReduce, shared, 800);
  EXPECT_EQ(around.algorithm, CollectiveAlgorithm::Ring);
  EXPECT_EQ(around.phases, (Phases{{14, 100, true}}));
}

TEST(Ranks, NoPredictionWithoutAcceleratorsOrWays) {
  auto refusedFor = [](const MachineModel &machine, const char *why) {
    try {
      simulate(sample(4, 2).s, machine);
      ADD_FAILURE() << "predicted, though: " << why;
    } catch (const InputError &e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  refusedFor(machinePreset("4gpu-pcie3"),
             "is for 8 ranks with 1 accelerator each, but 4gpu-pcie3 has 4 in all; presets "
             "with a network take a size, as sim:dgx-h100:8, and files say \"hosts\"");
  MachineModel machine = machinePreset("dgx-h100");
  std::erase_if(machine.routes, [](const RouteModel &r) { return r.from.index > 0 || r.to.index > 0; });
  refusedFor(machine, "has no way from gpu0 to the other accelerators of its host");
  machine = machinePreset("cluster-10gbe:128");
  machine.network.clear();
  refusedFor(machine, "has no way from gpu0 to the accelerators of another host");
}
