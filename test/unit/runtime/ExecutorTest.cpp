// Schedules over several devices, written by hand, on simulated machines and on threads: numbers, virtual time,
// failures.
#include "tressel/runtime/Executor.h"
#include "DeviceSchedules.h"
#include "tressel/runtime/CommandLog.h"
#include "tressel/runtime/DeviceStorage.h"
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
  const Timeline t = timelineOf(e);
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

//--- Homes ------------------------------------------------------------------------------------------------------------
/// y = x + m, m = 2 m on gpu0, where x, m and y live.
DeviceBuilder atHome(int64_t n = 1000) {
  DeviceBuilder b(2);
  const TensorType t = ScheduleBuilder::floats(n);
  const uint32_t x = b.input("x", t), m = b.state("m", t, StateKind::Mutable), y = b.output("y", t);
  b.s.inputs[0].home = b.s.states[0].home = b.s.outputs[0].home = homeOn(kGpu0);
  b.launch(b.add(n), {x, m}, {y}, {}, b.compute(kGpu0));
  const uint32_t doubled = b.on(kGpu0, t);
  b.launch(b.twice(n), {m}, {doubled}, {}, b.compute(kGpu0));
  b.copy(doubled, m, {}, b.compute(kGpu0));
  for (uint32_t i = 0; i < 3; ++i)
    b.s.step.commands[i].loc = b.location("op" + std::to_string(i), "net.cpp", 10 + i);
  return b;
}

TEST(Executor, TakesWhatLiesOnADeviceWhereItIs) {
  DeviceBuilder b = atHome();
  const auto machine = simulated();
  const auto memory = DeviceMemory::of(machine);
  EXPECT_EQ(DeviceMemory::of(machine), memory);
  std::vector<float> x(1000), m(1000, 3.0f), y(1000);
  std::iota(x.begin(), x.end(), 0.0f);
  const StorageRef xThere = memory->allocate(4000, kGpu0), mThere = memory->allocate(4000, kGpu0),
                   yThere = memory->allocate(4000, kGpu0);
  EXPECT_EQ(xThere->device(), kGpu0);
  EXPECT_FALSE(xThere->adopted());
  memory->copy(xThere->data(), kGpu0, x.data(), {}, 4000);
  memory->copy(mThere->data(), kGpu0, m.data(), {}, 4000);
  Executor e(b.executable(), machine);
  void *states[] = {mThere->data()};
  e.bindStates(states);
  const void *in[] = {xThere->data()};
  void *out[] = {yThere->data()};
  for (int i = 0; i < 3; ++i)
    e.run(in, out);
  EXPECT_EQ(e.bytesOn(kGpu0), 4000);             // of the arena alone
  ASSERT_EQ(machine->log().commands.size(), 3u); // nothing comes or goes
  for (const LoggedCommand &c : machine->log().commands)
    if (c.kind == DeviceCommandKind::Copy)
      EXPECT_EQ(c.from, c.to);
  memory->copy(y.data(), {}, yThere->data(), kGpu0, 4000);
  memory->copy(m.data(), {}, mThere->data(), kGpu0, 4000);
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(y[i], x[i] + 12);
    ASSERT_EQ(m[i], 24);
  }
  // From one accelerator to another that it has no route to, by way of the host.
  const StorageRef other = memory->allocate(4000, kGpu1);
  memory->copy(other->data(), kGpu1, yThere->data(), kGpu0, 4000);
  const StorageRef back = DeviceMemory::onHost(other);
  EXPECT_EQ(static_cast<const float *>(back->data())[7], y[7]);
  EXPECT_EQ(DeviceMemory::onHost(other), back); // copied once
  DeviceMemory::forgetHostCopy(*other);
  EXPECT_NE(DeviceMemory::onHost(other), back);
}

TEST(Executor, WhatIsSaidToLieOnADeviceMustBeThere) {
  DeviceBuilder b = atHome();
  const auto machine = simulated();
  Executor e(b.executable(), machine);
  std::vector<float> mine(1000);
  void *states[] = {mine.data()};
  e.bindStates(states);
  const void *in[] = {mine.data()};
  const StorageRef there = DeviceMemory::of(machine)->allocate(4000, kGpu0);
  void *out[] = {there->data()};
  try {
    e.run(in, out);
    FAIL();
  } catch (const RuntimeError &error) {
    EXPECT_NE(std::string(error.what()).find("4000 bytes that are said to be in the memory of gpu0, but are nowhere"),
              std::string::npos)
        << error.what();
  }
  b.s.outputs[0].home = homeOn({DeviceKind::Gpu, 7});
  b.s.step.commands[0].stream = 0; // of no matter: the machine is asked first
  try {
    Executor other(b.unverifiedExecutable(), machine);
    FAIL();
  } catch (const InputError &error) {
    EXPECT_NE(std::string(error.what()).find("gpu7"), std::string::npos) << error.what();
  }
}

TEST(Executor, WhatALostDeviceHadHasFailed) {
  DeviceBuilder b = atHome();
  const auto machine = simulated();
  const auto memory = DeviceMemory::of(machine);
  const StorageRef x = memory->allocate(4000, kGpu0), m = memory->allocate(4000, kGpu0),
                   y = memory->allocate(4000, kGpu0), elsewhere = memory->allocate(4000, kGpu1);
  const std::vector<float> zeros(1000);
  memory->copy(x->data(), kGpu0, zeros.data(), {}, 4000);
  memory->copy(m->data(), kGpu0, zeros.data(), {}, 4000);
  Executor e(b.executable(), machine);
  void *states[] = {m->data()};
  e.bindStates(states);
  const void *in[] = {x->data()};
  void *out[] = {y->data()};
  e.run(in, out);
  DeviceBuilder others = twoGpus();
  Executor other(others.executable(), machine); // has memory there too
  Call call;
  call.bind(other);
  call.run(other);
  machine->inject({Fault::Kind::DeviceLost, kGpu0, 0});
  EXPECT_THROW(e.run(in, out), RuntimeError);
  for (const StorageRef &lost : {x, m, y}) {
    ASSERT_TRUE(lost->failure());
    EXPECT_NE(lost->failure()->message.find("gpu0 was lost, with all that was in its memory"), std::string::npos);
  }
  EXPECT_FALSE(elsewhere->failure());
  // The device works again, with memory that is made anew.
  const StorageRef again = memory->allocate(4000, kGpu0);
  memory->copy(again->data(), kGpu0, zeros.data(), {}, 4000);
  void *anew[] = {again->data()};
  e.bindStates(anew);
  const StorageRef x2 = memory->allocate(4000, kGpu0), y2 = memory->allocate(4000, kGpu0);
  memory->copy(x2->data(), kGpu0, zeros.data(), {}, 4000);
  const void *in2[] = {x2->data()};
  void *out2[] = {y2->data()};
  e.run(in2, out2);
  // Another program's memory is made anew with its next call.
  call.run(other);
  call.check();
  EXPECT_EQ(DeviceMemory::onHost(y2)->bytes(), 4000);
}

//--- What goes wrong --------------------------------------------------------------------------------------------------
/// The error of a call.
template <typename E = RuntimeError> std::string errorOf(Executor &e, Call &call) {
  try {
    call.run(e);
  } catch (const E &error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Executor, EveryFaultIsToldToTheWaiterWithOpAndLineAndTheNextCallRuns) {
  struct Case {
    Fault fault;
    std::string message;
    SimulatedOptions options = {};
  };
  const Case cases[] = {
      {{Fault::Kind::LaunchFails, kGpu0, 1}, "net.cpp:15: op5: gpu0 of 2gpu-pcie3 refused kernel 'twice1'"},
      {{Fault::Kind::LaunchFails, kGpu1, 0}, "net.cpp:16: op6: gpu1 of 2gpu-pcie3 refused kernel 'add2'"},
      {{Fault::Kind::DeviceLost, kGpu1, 1}, "net.cpp:14: op4: gpu1 of 2gpu-pcie3 was lost"},
      {{Fault::Kind::DeviceLost, kGpu0, 2}, "net.cpp:13: op3: gpu0 of 2gpu-pcie3 was lost"},
      {{Fault::Kind::CopyCorrupted, kGpu1, 1},
       "net.cpp:14: op4: a copy of 4000 bytes arrived with other contents",
       {.checkCopies = true}},
      {{Fault::Kind::CopyCorrupted, kGpu0, 2},
       "net.cpp:17: op7: a copy of 4000 bytes arrived with other contents",
       {.checkCopies = true}},
      {{Fault::Kind::Hangs, kGpu0, 3}, "net.cpp:15: op5: gpu0 has not done within 30 ms what it was given"},
  };
  DeviceBuilder b = twoGpus();
  const auto executable = b.executable();
  for (const Case &c : cases)
    for (const bool seeded : {false, true}) {
      SimulatedOptions options = c.options;
      if (seeded)
        options.interleaving = 3;
      const auto machine = simulated(options);
      Executor e(executable, machine, {.timeoutNs = 30'000'000});
      Call call;
      call.bind(e);
      call.run(e);
      call.check();
      machine->inject(c.fault);
      const std::string message = errorOf(e, call);
      if (!seeded) // which command meets the fault is a matter of order
        EXPECT_EQ(message, c.message);
      else
        EXPECT_EQ(message.substr(0, 8), "net.cpp:") << message;
      call.run(e);
      call.check();
      Executor another(executable, machine);
      call.bind(another);
      call.run(another);
      call.check();
    }
}

TEST(Executor, MemoryThatIsNotThereIsToldWithOpAndLine) {
  DeviceBuilder b = twoGpus();
  const auto executable = b.executable();
  const auto machine = simulated();
  machine->inject({Fault::Kind::OutOfMemory, kGpu0, 2});
  try {
    Executor e(executable, machine);
    FAIL();
  } catch (const OutOfMemory &e) {
    EXPECT_EQ(std::string(e.what()),
              "net.cpp:12: op2: 'test' needs 4000 bytes: gpu0 of 2gpu-pcie3 has no 4000 bytes left");
  }
  MachineModel small = machinePreset("2gpu-pcie3");
  small.devices[2].memoryBytes = 9000;
  try {
    Executor e(executable, SimulatedMachine::create(small));
    FAIL();
  } catch (const OutOfMemory &e) {
    EXPECT_EQ(std::string(e.what()),
              "net.cpp:16: op6: 'test' needs 4000 bytes: gpu1 of 2gpu-pcie3 has no 4000 bytes left; "
              "of its 9000 are 8000 taken");
  }
  Executor e(executable, machine); // nothing of the first is left
  Call call;
  call.bind(e);
  call.run(e);
  call.check();
}

TEST(Executor, AFailingPrepareIsTold) {
  DeviceBuilder b = twoGpus();
  b.s.prepare.commands[0].loc = b.location("load", "net.cpp", 3);
  const auto machine = simulated();
  Executor e(b.executable(), machine);
  machine->inject({Fault::Kind::DeviceLost, kGpu0, 0});
  Call call;
  try {
    call.bind(e);
    FAIL();
  } catch (const RuntimeError &error) {
    EXPECT_EQ(std::string(error.what()), "net.cpp:3: load: gpu0 of 2gpu-pcie3 was lost");
  }
  call.bind(e);
  call.run(e);
  call.check();
}

TEST(Executor, SymbolsWithoutAValueAreToldByName) {
  const Size n = dim::symbol("n", 1, 64);
  DeviceBuilder b(1);
  const TensorType t{f32, Shape{n}};
  const uint32_t x = b.input("x", t), y = b.output("y", t), there = b.on(kGpu0, {f32, Shape{64}});
  b.s.arenas[0].bytes = 256;
  b.s.buffers[there].type = t, b.s.buffers[there].bytes = n * 4;
  b.s.dims = {n};
  b.copy(x, there, {}, b.copyIn(kGpu0));
  b.copy(there, y, {0}, b.copyOut(kGpu0));
  Executor e(b.executable(), simulated());
  std::vector<float> in{1, 2, 3}, out(3);
  const void *inputs[] = {in.data()};
  void *outputs[] = {out.data()};
  const Executor::Call call{inputs, outputs};
  auto isTold = [](const Error &error) { EXPECT_NE(error.message().find("'n'"), std::string::npos) << error.message(); };
  try {
    e.runCalls({&call, 1});
    FAIL();
  } catch (const Error &error) {
    isTold(error);
  }
  EXPECT_THROW(e.run(inputs, outputs), Error);
  dim::Values values;
  values.bind(n, 3);
  e.runCalls({&call, 1}, values);
  EXPECT_EQ(out, in);
}

TEST(Executor, SlowLinksTakeLonger) {
  DeviceBuilder b = twoGpus(1 << 20);
  const auto machine = simulated();
  Executor e(b.executable(), machine);
  Call call(1 << 20);
  call.bind(e);
  call.run(e);
  const Picoseconds before = timelineOf(e).end;
  machine->setTime({.slowLinks = 0.5});
  call.run(e);
  EXPECT_GT(timelineOf(e).end, before + before / 2);
}

TEST(Executor, KernelsTouchWhatTheyDeclare) {
  auto run = [](const std::string &kernel, const SimulatedOptions &options) -> std::string {
    DeviceBuilder b(1);
    const TensorType t = ScheduleBuilder::floats(16);
    const uint32_t x = b.input("x", t), y = b.output("y", t);
    // One arena: the operands stand side by side, as plans put them.
    b.s.arenas.push_back({kGpu0, MemoryKind::Device, 256});
    const uint32_t a = b.buffer(Space::Arena, 0, 0, t), out = b.buffer(Space::Arena, 0, 64, t);
    b.copy(x, a, {}, b.compute(kGpu0));
    const uint32_t l = b.launch(b.function(kernel, 16, 1), {a}, {out}, {}, b.compute(kGpu0));
    b.s.step.commands[l].loc = b.location("op", "net.cpp", 5);
    b.copy(out, y, {}, b.compute(kGpu0));
    Executor e(b.executable(), simulated(options));
    std::vector<float> in(16, 3), result(16);
    const void *inputs[] = {in.data()};
    void *outputs[] = {result.data()};
    try {
      e.run(inputs, outputs);
    } catch (const RuntimeError &error) {
      return error.what();
    }
    return "last is " + std::to_string(result[15]);
  };
  EXPECT_EQ(run("twice", {.isolate = true}), "last is 6.000000");
  EXPECT_EQ(run("overruns", {.isolate = true}), "net.cpp:5: op: kernel 'overruns0' writes beyond operand 1");
  EXPECT_EQ(run("writes-input", {.isolate = true}),
            "net.cpp:5: op: kernel 'writes-input0' writes operand 0, which it only reads");
  // What a kernel leaves out is no number.
  EXPECT_NE(run("half", {.poison = true}).find("nan"), std::string::npos);
  EXPECT_NE(run("half", {.isolate = true}).find("nan"), std::string::npos);
}

TEST(Executor, PoisonLeavesAloneWhatIsUpdatedInPlace) {
  for (const SimulatedOptions &options : {SimulatedOptions{.poison = true}, SimulatedOptions{.isolate = true}}) {
    DeviceBuilder b(1);
    const TensorType t = ScheduleBuilder::floats(16);
    const uint32_t x = b.input("x", t), y = b.output("y", t), a = b.on(kGpu0, t);
    b.copy(x, a, {}, b.compute(kGpu0));
    b.launch(b.twice(16), {a}, {a}, {}, b.compute(kGpu0));
    b.copy(a, y, {}, b.compute(kGpu0));
    Executor e(b.executable(), simulated(options));
    std::vector<float> in(16, 3), result(16);
    const void *inputs[] = {in.data()};
    void *outputs[] = {result.data()};
    e.run(inputs, outputs);
    EXPECT_EQ(result[15], 6);
  }
}

TEST(Executor, AMissingWaitIsFoundWithBothLines) {
  DeviceBuilder b = twoGpus();
  b.s.step.commands[3].numWaits = 0; // out0 no longer waits for add0
  test::DeviceBuilder sound = twoGpus();
  const auto machine = simulated({.checkRaces = true});
  Executor e(b.unverifiedExecutable(), machine);
  Call call;
  call.bind(e);
  EXPECT_EQ(errorOf(e, call),
            "net.cpp:13: op3: reads 4000 bytes that an earlier command writes, without waiting for it (the "
            "other is op2 at net.cpp:12)");
  Executor good(sound.executable(), machine);
  call.bind(good);
  call.run(good);
  call.check();
}

TEST(Executor, ReadingWhatNobodyWroteIsFound) {
  DeviceBuilder b(1);
  const TensorType t = ScheduleBuilder::floats(4);
  const uint32_t y = b.output("y", t), a = b.on(kGpu0, t);
  const uint32_t c = b.copy(a, y, {}, b.copyOut(kGpu0));
  b.s.step.commands[c].loc = b.location("op", "net.cpp", 4);
  Executor e(b.unverifiedExecutable(), simulated({.checkRaces = true}));
  std::vector<float> out(4);
  void *outputs[] = {out.data()};
  try {
    e.run({}, outputs);
    FAIL();
  } catch (const RuntimeError &error) {
    EXPECT_EQ(std::string(error.what()), "net.cpp:4: op: reads 16 bytes, of which some were never written");
  }
}

TEST(Executor, SizesBeyondThisComputerRunInTimeAlone) {
  const int64_t n = int64_t(1) << 33; // 32 GiB an operand
  MachineModel model = machinePreset("2gpu-pcie3");
  for (DeviceModel &device : model.devices)
    device.memoryBytes = int64_t(1) << 45;
  DeviceBuilder b = twoGpus(n);
  const auto machine = SimulatedMachine::create(model, {.computes = false});
  Executor e(b.s, machine);
  e.run({}, {});
  const Timeline log = timelineOf(e), plan = simulate(b.s, model);
  EXPECT_EQ(log.end, plan.end);
  EXPECT_GT(seconds(log.end), 4);
}

TEST(Executor, APerturbedTruthIsTheSameForItsSeed) {
  DeviceBuilder b = twoGpus(100000);
  const auto machine = SimulatedMachine::create(machinePreset("2gpu-pcie3"), {.computes = false});
  Executor e(b.s, machine);
  e.run({}, {});
  const Picoseconds plain = machine->times().total;
  std::vector<Picoseconds> ends;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const VirtualTimeOptions options{.perturbation = 0.2, .seed = seed};
    ends.push_back(virtualTimes(machine->log(), machine->model(), options).total);
    EXPECT_EQ(ends.back(), virtualTimes(machine->log(), machine->model(), options).total);
    EXPECT_NEAR(double(ends.back()), double(plain), 0.2 * double(plain));
  }
  EXPECT_NE(ends[0], ends[1]);
}

TEST(Executor, MachinesThatLackSomethingAreRefused) {
  auto refused = [](const DeviceBuilder &b, const std::shared_ptr<Machine> &machine) -> std::string {
    try {
      Executor e(b.executable(), machine);
    } catch (const InputError &error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refused(twoGpus(), makeMachine("this computer", {makeCpuDevice()})), "there is no gpu0 in this computer");
  DeviceBuilder b(2);
  const TensorType t = ScheduleBuilder::floats(4);
  const uint32_t y = b.output("y", t), a = b.on(kGpu0, t), c = b.on(kGpu1, t);
  b.fill(a, 0, {}, b.compute(kGpu0));
  b.copy(a, c, {0}, b.copyOut(kGpu0));
  b.copy(c, y, {1}, b.copyOut(kGpu1));
  MachineModel apart = machinePreset("2gpu-pcie3");
  std::erase_if(apart.routes, [](const RouteModel &r) { return r.from == kGpu0 && r.to == kGpu1; });
  EXPECT_EQ(refused(b, SimulatedMachine::create(apart)),
            "'test' copies from gpu0 to gpu1, but 2gpu-pcie3 has no route there");
  EXPECT_EQ(refused(b, simulated()), "accepted");
}

/// Loops over devices: the flag of a while on an accelerator, a branch between copies, a loop in a loop with moving
/// buffers.
TEST(Executor, BodiesSpanDevices) {
  const int64_t n = 4;
  const TensorType t = ScheduleBuilder::floats(n), flagType{DType::boolean, Shape{1}};
  DeviceBuilder b(2);
  const uint16_t c0 = b.compute(kGpu0), c1 = b.compute(kGpu1);
  const uint32_t x = b.input("x", {f32, Shape{3, 2, n}}), limit = b.input("limit", t),
                 z = b.output("z", {f32, Shape{3, 2, n}});
  const uint32_t row = b.buffer(Space::Input, 0, 0, t), outRow = b.buffer(Space::Output, 0, 0, t);
  const uint32_t a = b.on(kGpu0, t), d = b.on(kGpu0, t), bound = b.on(kGpu0, t), flag = b.on(kGpu0, flagType);
  const uint32_t far = b.on(kGpu1, t), farther = b.on(kGpu1, t), staged = b.pinned(t);
  b.copy(limit, bound, {}, b.copyIn(kGpu0));
  const uint32_t outer = b.bodies(1), inner = b.bodies(1), test = b.bodies(2);
  b.into(outer);
  b.loop(2, inner, {{row, n * 4}, {outRow, n * 4}}, {}, c0);
  b.into(inner);
  const uint32_t in = b.copy(row, a, {}, b.copyIn(kGpu0));
  const uint32_t loop = b.whileLoop(flag, test, {in}, c0);
  const uint32_t out = b.copy(a, staged, {loop}, b.copyOut(kGpu0));
  const uint32_t over = b.copy(staged, far, {out}, b.copyIn(kGpu1));
  const uint32_t more = b.launch(b.twice(n), {far}, {farther}, {over}, c1);
  b.copy(farther, outRow, {more}, b.copyOut(kGpu1));
  b.into(test);
  b.launch(b.function("less", 1, 2), {a, bound}, {flag}, {}, c0);
  b.into(test + 1);
  b.launch(b.twice(n), {a}, {d}, {}, c0);
  b.copy(d, a, {}, c0);
  b.intoStep();
  b.loop(3, outer, {{row, 2 * n * 4}, {outRow, 2 * n * 4}}, {0}, c0);
  (void)x, (void)z;
  const auto executable = b.executable();
  std::vector<float> in0(6 * n), most{50, 0, 0, 0}, result(6 * n), expected;
  for (size_t r = 0; r < 6; ++r) {
    float factor = 1;
    while (float(r + 1) * factor < 50)
      factor *= 2;
    for (size_t i = 0; i < size_t(n); ++i) {
      in0[r * n + i] = float(r + 1 + 10 * i);
      expected.push_back(2 * factor * in0[r * n + i]);
    }
  }
  const void *inputs[] = {in0.data(), most.data()};
  void *outputs[] = {result.data()};
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SimulatedOptions options{.interleaving = seed, .checkRaces = true, .poison = true, .isolate = true};
    Executor e(executable, simulated(options));
    for (int call = 0; call < 2; ++call) {
      e.run(inputs, outputs);
      EXPECT_EQ(result, expected);
    }
  }
}

/// y = the sum of x on gpu0 and 2 x on gpu1, from both.
DeviceBuilder reduction(int64_t n) {
  DeviceBuilder b(2);
  const TensorType t = ScheduleBuilder::floats(n);
  const uint32_t x = b.input("x", t), y = b.output("y", t), z = b.output("z", t);
  const uint32_t x0 = b.on(kGpu0, t), x1 = b.on(kGpu1, t), d1 = b.on(kGpu1, t), y0 = b.on(kGpu0, t),
                 y1 = b.on(kGpu1, t);
  const uint32_t in0 = b.copy(x, x0, {}, b.copyIn(kGpu0));
  const uint32_t in1 = b.copy(x, x1, {}, b.copyIn(kGpu1));
  const uint32_t twice = b.launch(b.twice(n), {x1}, {d1}, {in1}, b.compute(kGpu1));
  CollectiveDesc sum;
  sum.name = "sum";
  sum.members = {b.compute(kGpu0), b.compute(kGpu1)};
  b.s.collectives.push_back(sum);
  const uint32_t part0 = b.command({.kind = CommandKind::Collective, .stream = b.compute(kGpu0)},
                                   {{x0, Access::Read}, {y0, Access::Write}}, {in0});
  const uint32_t part1 = b.command({.kind = CommandKind::Collective, .stream = b.compute(kGpu1)},
                                   {{d1, Access::Read}, {y1, Access::Write}}, {});
  b.copy(y0, y, {part0}, b.copyOut(kGpu0));
  b.copy(y1, z, {part1}, b.copyOut(kGpu1));
  for (uint32_t i : {twice, part0, part1})
    b.s.step.commands[i].loc = b.location("op" + std::to_string(i), "net.cpp", 10 + i);
  return b;
}

TEST(Executor, CollectivesCombineAndFailTogether) {
  const int64_t n = 1000;
  const auto executable = reduction(n).executable();
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const auto machine = simulated({.interleaving = seed, .checkRaces = true, .poison = true});
    Executor e(executable, machine, {.timeoutNs = 30'000'000});
    std::vector<float> x(n), y(n), z(n);
    std::iota(x.begin(), x.end(), 1.0f);
    const void *inputs[] = {x.data()};
    void *outputs[] = {y.data(), z.data()};
    auto check = [&] {
      e.run(inputs, outputs);
      for (size_t i = 0; i < size_t(n); ++i) {
        ASSERT_EQ(y[i], 3 * x[i]);
        ASSERT_EQ(z[i], 3 * x[i]);
      }
    };
    check();
    EXPECT_EQ(timelineOf(e).end, simulate(e.schedule(), machine->model()).end);
    auto failure = [&](const Fault &fault) -> std::string {
      machine->inject(fault);
      try {
        e.run(inputs, outputs);
      } catch (const RuntimeError &error) {
        return error.what();
      }
      return "nothing thrown";
    };
    // Before a part of gpu1's: gpu0's part fails with it, and nobody waits for ever.
    EXPECT_EQ(failure({Fault::Kind::LaunchFails, kGpu1}),
              "net.cpp:12: op2: gpu1 of 2gpu-pcie3 refused kernel 'twice0'");
    check();
    EXPECT_EQ(failure({Fault::Kind::DeviceLost, kGpu0, 1}), "net.cpp:13: op3: gpu0 of 2gpu-pcie3 was lost");
    check();
    // The collective, by its first part.
    EXPECT_EQ(failure({Fault::Kind::Hangs, kGpu1, 2}),
              "net.cpp:13: op3: gpu0 has not done within 30 ms what it was given");
    check();
  }
}

} // namespace
} // namespace tressel::runtime
