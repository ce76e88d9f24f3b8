// Schedules over several devices, written by hand, on simulated machines and on threads: numbers, virtual time,
// failures.
#include "tressel/runtime/Executor.h"
#include "DeviceSchedules.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Simulate.h"
#include "tressel/runtime/Simulated.h"

#include <gtest/gtest.h>
#include <numeric>

namespace tressel::runtime {
namespace {

using test::DeviceBuilder;
using test::kCpu;
using test::kGpu0;
using test::kGpu1;

/// y = 2 * (x + w) on gpu0, z = (x + w) + x on gpu1 with x + w from gpu0 by way of the host, both copied back.
DeviceBuilder twoGpus(int64_t n = 1000) {
  DeviceBuilder b(2);
  const TensorType t = ScheduleBuilder::floats(n);
  const uint32_t x = b.input("x", t), w = b.state("w", t, StateKind::Parameter);
  const uint32_t y = b.output("y", t), z = b.output("z", t);
  const uint32_t w0 = b.derivedOn(kGpu0, "w.gpu0", t);
  b.copy(w, w0, {}, b.copyIn(kGpu0), true);
  const uint32_t x0 = b.on(kGpu0, t), x1 = b.on(kGpu1, t), sum0 = b.on(kGpu0, t), sum1 = b.on(kGpu1, t),
                 staged = b.pinned(t);
  const uint32_t y0 = b.on(kGpu0, t), z1 = b.on(kGpu1, t);
  const uint32_t in0 = b.copy(x, x0, {}, b.copyIn(kGpu0));
  const uint32_t in1 = b.copy(x, x1, {}, b.copyIn(kGpu1));
  const uint32_t add0 = b.launch(b.add(n), {x0, w0}, {sum0}, {in0}, b.compute(kGpu0));
  const uint32_t out0 = b.copy(sum0, staged, {add0}, b.copyOut(kGpu0));
  const uint32_t in2 = b.copy(staged, sum1, {out0}, b.copyIn(kGpu1));
  const uint32_t twice = b.launch(b.twice(n), {sum0}, {y0}, {}, b.compute(kGpu0));
  const uint32_t add1 = b.launch(b.add(n), {sum1, x1}, {z1}, {in1, in2}, b.compute(kGpu1));
  const uint32_t back0 = b.copy(y0, y, {twice}, b.copyOut(kGpu0));
  const uint32_t back1 = b.copy(z1, z, {add1}, b.copyOut(kGpu1));
  for (uint32_t i : {in0, in1, add0, out0, in2, twice, add1, back0, back1})
    b.s.step.commands[i].loc = b.location("op" + std::to_string(i), "net.cpp", 10 + i);
  return b;
}

struct Call {
  std::vector<float> x, w, y, z;
  explicit Call(int64_t n = 1000) : x(size_t(n)), w(size_t(n)), y(size_t(n)), z(size_t(n)) {
    std::iota(x.begin(), x.end(), 0.0f);
    std::iota(w.begin(), w.end(), 7.0f);
  }
  void bind(Executor &e) {
    void *states[] = {w.data()};
    e.bindStates(states);
  }
  void run(Executor &e) {
    std::ranges::fill(y, -1.0f);
    std::ranges::fill(z, -1.0f);
    const void *in[] = {x.data()};
    void *out[] = {y.data(), z.data()};
    e.run(in, out);
  }
  void check() const {
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], 2 * (x[i] + w[i])) << i;
      ASSERT_EQ(z[i], x[i] + w[i] + x[i]) << i;
    }
  }
};

std::shared_ptr<SimulatedMachine> simulated(const SimulatedOptions &options = {}) {
  return SimulatedMachine::create(machinePreset("2gpu-pcie3"), options);
}

TEST(Executor, TwoSimulatedGpus) {
  DeviceBuilder b = twoGpus();
  const auto machine = simulated();
  Executor e(b.executable(), machine);
  Call call;
  call.bind(e);
  for (int i = 0; i < 3; ++i) {
    call.run(e);
    call.check();
  }
  EXPECT_EQ(e.bytesOn(kGpu0), 4 * 4000);
  const Timeline t = timelineOf(e, *machine);
  ASSERT_EQ(t.spans.size(), 9u);
  EXPECT_EQ(t.kind, TimelineKind::Simulated);
  const Timeline plan = simulate(b.s, machine->model());
  EXPECT_EQ(t.end, plan.end);
  for (size_t i = 0; i < t.spans.size(); ++i) {
    EXPECT_EQ(t.spans[i].command, plan.spans[i].command);
    EXPECT_EQ(t.spans[i].begin, plan.spans[i].begin);
    EXPECT_EQ(t.spans[i].end, plan.spans[i].end);
  }
}

} // namespace
} // namespace tressel::runtime
