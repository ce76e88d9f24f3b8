// Virtual time by hand: small schedules whose times follow from the rule in a line of arithmetic.
#include "tressel/runtime/Simulate.h"
#include "test/unit/runtime/ScheduleBuilder.h"
#include "tressel/runtime/Error.h"

#include <cmath>
#include <gtest/gtest.h>

namespace tressel::runtime {
namespace {

constexpr DeviceRef kCpu{DeviceKind::Cpu, 0}, kGpu0{DeviceKind::Gpu, 0}, kGpu1{DeviceKind::Gpu, 1};

/// Round figures: 1e9 flops and 1e10 bytes a second per accelerator, links of 1e9 bytes a second without latency worth
/// naming.
MachineModel machine(double latency = 1e-12) {
  MachineModel m{.name = "round"};
  auto device = [&](std::string name, DeviceRef ref) {
    DeviceModel d{.name = std::move(name), .device = ref};
    d.flopsPerSecond[f32] = 1e9;
    d.bytesPerSecond = 1e10;
    d.memoryBytes = int64_t(1) << 40;
    d.commandSeconds = 1e-12;
    m.devices.push_back(d);
  };
  device("cpu", kCpu);
  device("gpu0", kGpu0);
  device("gpu1", kGpu1);
  m.links = {{"down0", 1e9, latency}, {"up0", 1e9, latency}, {"down1", 1e9, latency}, {"up1", 1e9, latency}};
  m.routes = {{kCpu, kGpu0, {0}}, {kGpu0, kCpu, {1}}, {kCpu, kGpu1, {2}}, {kGpu1, kCpu, {3}}};
  return m;
}

/// Streams: 0 cpu, 1 to 3 gpu0's kernels, copies in and out, 4 to 6 gpu1's.
class Simulation : public ::testing::Test {
protected:
  Simulation() : b(0) {
    b.s.streams.push_back({kCpu, StreamKind::Compute, "cpu"});
    for (DeviceRef gpu : {kGpu0, kGpu1})
      for (StreamKind kind : {StreamKind::Compute, StreamKind::CopyIn, StreamKind::CopyOut})
        b.s.streams.push_back({gpu, kind, ""});
  }
  uint32_t on(DeviceRef device, int64_t bytes) {
    b.s.arenas.push_back({device, MemoryKind::Device, bytes});
    return b.buffer(Space::Arena, uint32_t(b.s.arenas.size() - 1), 0, {u8, Shape{bytes}});
  }
  uint32_t host(int64_t bytes) { return on(kCpu, bytes); }
  /// A kernel of so many flops: as many nanoseconds.
  uint32_t work(int64_t flops, uint16_t stream, std::initializer_list<uint32_t> waits = {}) {
    const uint32_t k = b.kernel("k" + std::to_string(b.s.kernels.size()));
    b.s.kernels[k].flops = flops;
    return b.launch(k, {}, {}, waits, stream);
  }
  Timeline run(const MachineModel &m = machine(), const SimulateOptions &options = {}) {
    return simulate(b.s, m, options);
  }
  static const Span &of(const Timeline &t, uint32_t command) {
    return *std::find_if(t.spans.begin(), t.spans.end(), [&](const Span &s) { return s.command == command; });
  }
  /// Nanoseconds; what commands cost beside their work is a picosecond or two each.
  static double ns(Picoseconds t) { return std::round(static_cast<double>(t) * 1e-3); }
  ScheduleBuilder b;
};

TEST_F(Simulation, AStreamRunsInOrder) {
  work(100, 1);
  work(50, 1);
  const Timeline t = run();
  EXPECT_EQ(ns(t.end), 150);
  EXPECT_EQ(ns(of(t, 1).begin), 100);
  EXPECT_EQ(t.lowerBound, t.end);
  EXPECT_EQ(t.criticalPath, (std::vector<uint32_t>{0, 1}));
  ASSERT_EQ(t.resources.size(), 7u);
  EXPECT_EQ(t.resources[1].name, "gpu0");
  EXPECT_EQ(t.resources[2].name, "gpu0.in");
  EXPECT_EQ(ns(t.resources[1].busy), 150);
}

TEST_F(Simulation, TimesBeyondAllMeasureAreRefused) {
  work(2'000'000'000, 1);
  work(2'000'000'000, 1);
  for (double flops : {1e-3, 1500.0}) { // one of them takes too long; both together do
    MachineModel slow = machine();
    slow.devices[1].flopsPerSecond[f32] = flops;
    try {
      run(slow);
      FAIL() << "times that do not fit";
    } catch (const InputError &e) {
      EXPECT_NE(std::string(e.what()).find("up to 1000000 s"), std::string::npos) << e.what();
    }
  }
}

TEST_F(Simulation, DevicesRunBesideEachOther) {
  work(100, 1);
  work(70, 4);
  work(5, 1, {1}); // waits for both, as its stream is busy until 100
  const Timeline t = run();
  EXPECT_EQ(ns(t.end), 105);
  EXPECT_EQ(ns(of(t, 1).end), 70);
}

TEST_F(Simulation, ACopyHidesBehindAKernel) {
  const uint32_t from = on(kGpu0, 80), to = host(80);
  const uint32_t first = work(100, 1);
  b.copy(from, to, {first}, 3);
  work(100, 1);
  const Timeline t = run();
  EXPECT_EQ(ns(t.end), 200);
  EXPECT_EQ(ns(of(t, 1).begin), 100);
  EXPECT_EQ(ns(of(t, 1).end), 180);
  EXPECT_EQ(of(t, 1).kind, SpanKind::Copy);
  const Timeline serial = run(machine(), {.transferTime = false});
  EXPECT_EQ(ns(serial.end), 200);
  const Timeline moving = run(machine(), {.computeTime = false});
  EXPECT_EQ(ns(moving.end), 80);
}

TEST_F(Simulation, OneEngineCopiesOneThingAtATime) {
  b.copy(on(kGpu0, 100), host(100), {}, 3);
  b.copy(host(40), on(kGpu0, 40), {}, 2);
  EXPECT_EQ(ns(run().end), 100); // each way has an engine
  MachineModel m = machine();
  m.devices[1].engines = {{"copy", {StreamKind::CopyIn, StreamKind::CopyOut}}};
  const Timeline t = run(m);
  EXPECT_EQ(ns(t.end), 140);
  EXPECT_EQ(ns(t.lowerBound), 140); // the engine's work
  ASSERT_EQ(t.resources.size(), 6u);
  EXPECT_EQ(t.resources[2].name, "gpu0.copy");
}

/// The link is shared in halves until the shorter one has ended.
TEST_F(Simulation, TransfersShareALinkFairly) {
  MachineModel m = machine();
  m.routes[3].links = {1}; // gpu1 sends through gpu0's link
  b.copy(on(kGpu0, 100), host(100), {}, 3);
  b.copy(on(kGpu1, 40), host(40), {}, 6);
  const Timeline t = run(m);
  EXPECT_EQ(ns(of(t, 1).end), 80);
  EXPECT_EQ(ns(of(t, 0).end), 140);
  EXPECT_EQ(ns(t.lowerBound), 140); // the link's bytes
  const std::vector<Picoseconds> links = linkTimes(b.s, m);
  ASSERT_EQ(links.size(), m.links.size());
  EXPECT_EQ(ns(links[1]), 140);
  EXPECT_EQ(links[0] + links[2] + links[3], 0);
}

/// What one transfer cannot use, since it is slower elsewhere, the other one can.
TEST_F(Simulation, AFasterTransferTakesWhatASlowerOneLeaves) {
  MachineModel m = machine();
  m.links.push_back({"root", 1e9, 1e-12});
  m.links[1].bytesPerSecond = 2.5e8;
  m.links[3].bytesPerSecond = 2e9;
  m.routes[1].links = {1, 4};
  m.routes[3].links = {3, 4};
  b.copy(on(kGpu0, 100), host(100), {}, 3); // a quarter byte a nanosecond throughout
  b.copy(on(kGpu1, 75), host(75), {}, 6);   // three quarters
  const Timeline t = run(m);
  EXPECT_EQ(ns(of(t, 0).end), 400);
  EXPECT_EQ(ns(of(t, 1).end), 100);
}

TEST_F(Simulation, PageableMemoryIsSlower) {
  MachineModel m = machine();
  m.routes[1].pageableBytesPerSecond = 5e8;
  const uint32_t from = on(kGpu0, 100);
  b.s.arenas.push_back({kCpu, MemoryKind::Pinned, 100});
  const uint32_t pinned = b.buffer(Space::Arena, 1, 0, {u8, Shape{100}});
  b.copy(from, pinned, {}, 3);
  EXPECT_EQ(ns(run(m).end), 100);
  b.s.step = {};
  b.copy(from, host(100), {}, 3);
  EXPECT_EQ(ns(run(m).end), 200);
}

TEST_F(Simulation, LatencyComesBeforeBytes) {
  b.copy(on(kGpu0, 100), host(100), {}, 3);
  EXPECT_EQ(ns(run(machine(1e-6)).end), 1100);
}

TEST_F(Simulation, CopiesSlowWhatKernelsReadAndWrite) {
  MachineModel m = machine();
  m.devices[1].contention = 10; // a copy at a tenth of the memory's rate halves the speed
  work(0, 1);
  b.s.kernels[0].bytes = 1000; // 100 ns
  b.copy(on(kGpu0, 50), host(50), {}, 3);
  Timeline t = run(m);
  EXPECT_EQ(ns(of(t, 1).end), 50);
  EXPECT_EQ(ns(of(t, 0).end), 125); // 25 of its work in the first 50, 75 after
  // What arithmetic bounds has time for as many bytes again.
  b.s.kernels[0].flops = 100;
  b.s.kernels[0].bytes = 500;
  t = run(m);
  EXPECT_EQ(ns(of(t, 0).end), 100);
}

TEST_F(Simulation, TheHostIssuesOneCommandAfterAnother) {
  MachineModel m = machine();
  m.devices[1].issueSeconds = 30e-9;
  work(10, 1);
  work(10, 1);
  work(10, 1);
  const Timeline t = run(m);
  EXPECT_EQ(ns(of(t, 2).begin), 90);
  EXPECT_EQ(ns(t.end), 100);
}

TEST_F(Simulation, TheEngineTakesWhatHasWaitedLongest) {
  b.s.streams.push_back({kGpu0, StreamKind::Compute, ""}); // 7: a second stream of the same engine
  work(100, 1);
  const uint32_t other = work(20, 4);
  work(10, 1);          // ready at 100
  work(10, 7, {other}); // ready at 20
  const Timeline t = run();
  EXPECT_EQ(ns(of(t, 3).begin), 100);
  EXPECT_EQ(ns(of(t, 2).begin), 110);
}

TEST_F(Simulation, BodiesTakeAsLongAsTheyRun) {
  const uint32_t body = b.bodies(1);
  b.into(body);
  work(10, 1);
  b.intoStep();
  b.loop(5, body, {}, {}, 1);
  work(1, 1);
  const Timeline t = run();
  EXPECT_EQ(ns(t.end), 51);
  EXPECT_EQ(of(t, 0).kind, SpanKind::Control);
  EXPECT_EQ(of(t, 0).name, "loop");
}

/// Both send half of it to the other, twice: 50 bytes each way, then the sums, beside each other. Or all of it once, which takes as
/// long but has one latency.
TEST_F(Simulation, CollectivesGoAroundTheRing) {
  MachineModel m = machine();
  m.routes.push_back({kGpu0, kGpu1, {1, 2}});
  m.routes.push_back({kGpu1, kGpu0, {3, 0}});
  b.s.collectives.push_back({.name = "w", .members = {3, 6}});
  const uint32_t a0 = on(kGpu0, 100), a1 = on(kGpu1, 100);
  auto part = [&](uint16_t stream, uint32_t buffer, std::vector<uint32_t> waits) {
    b.command({.kind = CommandKind::Collective, .stream = stream}, {{buffer, Access::Read}, {buffer, Access::Write}}, waits);
  };
  const uint32_t first = work(10, 1), second = work(30, 4);
  part(3, a0, {first});
  part(6, a1, {second});
  const Timeline t = run(m);
  EXPECT_EQ(ns(of(t, 2).begin), 30); // the latest that is ready
  EXPECT_EQ(ns(of(t, 3).begin), 30);
  EXPECT_EQ(ns(of(t, 2).end), 130);
  EXPECT_EQ(ns(of(t, 3).end), 130);
  EXPECT_EQ(of(t, 2).kind, SpanKind::Collective);
  EXPECT_EQ(of(t, 2).name, "all_reduce w");
  EXPECT_EQ(ns(t.lowerBound), 100); // no bytes say that the kernels come first
  EXPECT_EQ(t.criticalPath.size(), 2u); // the second kernel, a part
  EXPECT_EQ(ns(run(m, {.transferTime = false}).end), 30);
  for (auto [kind, end] : {std::pair(CollectiveKind::AllGather, 80), {CollectiveKind::Broadcast, 130}}) {
    b.s.collectives[0].kind = kind;
    EXPECT_EQ(ns(run(m).end), end);
  }
  b.s.collectives[0].kind = CollectiveKind::ReduceScatter; // of 200 bytes
  EXPECT_EQ(ns(run(m).end), 130);
  for (LinkModel &link : m.links)
    link.latencySeconds = 5e-9; // of two links a step
  b.s.collectives[0].kind = CollectiveKind::AllReduce;
  EXPECT_EQ(ns(run(m).end), 140);
}

TEST_F(Simulation, ACollectiveSharesLinksWithCopies) {
  MachineModel m = machine();
  m.routes.push_back({kGpu0, kGpu1, {1, 2}});
  m.routes.push_back({kGpu1, kGpu0, {3, 0}});
  b.s.collectives.push_back({.name = "w", .members = {3, 6}, .kind = CollectiveKind::AllGather});
  const uint32_t a0 = on(kGpu0, 100), a1 = on(kGpu1, 100);
  for (auto [stream, buffer] : {std::pair(uint16_t(3), a0), {uint16_t(6), a1}})
    b.command({.kind = CommandKind::Collective, .stream = stream}, {{buffer, Access::Read}, {buffer, Access::Write}}, {});
  b.copy(host(25), on(kGpu0, 25), {}, 2); // down0, which gpu1's piece comes through too
  const Timeline t = run(m);
  EXPECT_EQ(ns(of(t, 2).end), 50);
  EXPECT_EQ(ns(of(t, 0).end), 75); // 25 bytes in the first 50, 25 alone
}

/// Two groups whose engines are free at different times: none waits for the other for ever.
TEST_F(Simulation, CollectivesHoldEnginesInOneOrder) {
  MachineModel m = machine();
  m.routes.push_back({kGpu0, kGpu1, {1, 2}});
  m.routes.push_back({kGpu1, kGpu0, {3, 0}});
  b.s.streams.push_back({kGpu1, StreamKind::CopyOut, ""}); // 7
  b.s.streams.push_back({kGpu0, StreamKind::CopyOut, ""}); // 8
  b.s.collectives.push_back({.name = "a", .members = {3, 6}});
  b.s.collectives.push_back({.name = "b", .members = {7, 8}});
  const uint32_t a0 = on(kGpu0, 100), a1 = on(kGpu1, 100), c0 = on(kGpu0, 100), c1 = on(kGpu1, 100);
  auto part = [&](uint32_t which, uint16_t stream, uint32_t buffer) {
    b.command({.kind = CommandKind::Collective, .stream = stream, .kernel = which}, {{buffer, Access::Read}, {buffer, Access::Write}}, {});
  };
  b.copy(on(kGpu0, 10), host(10), {}, 3); // gpu0's engine is busy at first
  part(0, 3, a0), part(0, 6, a1);
  part(1, 7, c1), part(1, 8, c0);
  const Timeline t = run(m);
  EXPECT_EQ(t.spans.size(), 5u);
  EXPECT_EQ(ns(t.end), 210);
}

TEST_F(Simulation, HostCallsTakeNoTime) {
  const uint32_t f = b.kernel("log");
  b.s.kernels[f].target = KernelTarget::HostFunction;
  b.s.kernels[f].flops = 1000;
  b.command({.kind = CommandKind::HostCall, .kernel = f}, {}, {});
  const Timeline t = run();
  EXPECT_EQ(t.end, 0);
  EXPECT_EQ(of(t, 0).kind, SpanKind::Host);
  EXPECT_EQ(of(t, 0).name, "log");
}

TEST_F(Simulation, WhatTheMachineLacksIsSaid) {
  auto refused = [&](const MachineModel &m) -> std::string {
    try {
      run(m);
    } catch (const InputError &e) {
      return e.message();
    }
    return "accepted";
  };
  b.copy(on(kGpu0, 100), on(kGpu1, 100), {}, 3);
  EXPECT_EQ(refused(machine()), "'test' copies from gpu0 to gpu1, but round has no route there");
  MachineModel small = machine();
  small.devices[2].memoryBytes = 64;
  EXPECT_EQ(refused(small), "'test' needs 100 bytes on gpu1, which has 64 on round");
  small.devices.pop_back();
  EXPECT_EQ(refused(small), "'test' uses gpu1, which round does not have");
}

TEST_F(Simulation, NothingTakesNoTime) {
  const Timeline t = run();
  EXPECT_EQ(t.end, 0);
  EXPECT_TRUE(t.spans.empty());
  EXPECT_TRUE(t.criticalPath.empty());
}

TEST_F(Simulation, ManyCommandsTwiceTheSame) {
  for (uint32_t i = 0; i < 20000; ++i) {
    const auto stream = static_cast<uint16_t>(1 + 3 * (i % 2));
    i > 1 && i % 3 == 0 ? work(7 + i % 11, stream, {i - 2}) : work(5 + i % 7, stream);
  }
  const Timeline a = run(), c = run();
  ASSERT_EQ(a.spans.size(), c.spans.size());
  for (size_t i = 0; i < a.spans.size(); ++i) {
    EXPECT_EQ(a.spans[i].begin, c.spans[i].begin);
    EXPECT_EQ(a.spans[i].end, c.spans[i].end);
  }
  EXPECT_GE(a.end, a.lowerBound);
}

} // namespace
} // namespace tressel::runtime
