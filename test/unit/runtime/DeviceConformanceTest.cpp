// What every device keeps, whoever implements it: one suite over all. What an implementation lacks is skipped, with the
// reason; a new one is a line in the table at the end.
#include "DeferredMachine.h"
#include "DeviceSchedules.h"
#include "GpuTestKernels.h"
#include "tressel/runtime/Device.h"
#include "tressel/runtime/DeviceStorage.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Simulated.h"
#include "tressel/runtime/ThreadPool.h"

#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

namespace tressel::runtime {
namespace {

using test::kCpu;
using test::kGpu0;
using test::kGpu1;
using State = Semaphore::State;

struct Implementation {
  const char *name;
  DeviceRef device; ///< the one under test
  std::shared_ptr<Machine> (*make)();
};
void PrintTo(const Implementation &i, std::ostream *os) { *os << i.name; }

std::shared_ptr<Machine> cpuMachine() { return makeMachine("threads", {makeCpuDevice()}); }
/// The processor's threads as accelerators: two, where it has so many.
std::shared_ptr<Machine> partsMachine() {
  return makeProcessorParts(processorParts(std::min(2, ThreadPool::global().numThreads())));
}
std::shared_ptr<Machine> simMachine() { return SimulatedMachine::create(machinePreset("2gpu-pcie3")); }
std::shared_ptr<Machine> timingMachine() {
  return SimulatedMachine::create(machinePreset("2gpu-pcie3"), {.computes = false});
}
std::shared_ptr<Machine> nullMachine() {
  return makeMachine("null", {makeNullDevice(kCpu), makeNullDevice(kGpu0), makeNullDevice(kGpu1)});
}

/// One that knows nothing but the seam.
std::shared_ptr<Machine> deferredMachine() { return std::make_shared<test::DeferredMachine>(); }

/// The cards of this computer; null where there is none.
std::shared_ptr<Machine> openCuda(bool stamps) {
  try {
    return openMachine("cuda", {.stamps = stamps});
  } catch (const Error &) {
    return nullptr;
  }
}
std::shared_ptr<Machine> cudaMachine() { return openCuda(true); }
/// Which keeps no times of commands, and runs recorded ones as graphs.
std::shared_ptr<Machine> cudaGraphsMachine() { return openCuda(false); }

constexpr int64_t kSoon = 10'000'000'000; // ns: far more than anything here takes

class DeviceConformance : public ::testing::TestWithParam<Implementation> {
protected:
  DeviceConformance() : made(GetParam().make()), machine(made ? made : nullMachine()), device(machine->at(GetParam().device)), host(machine->at(kCpu)) {}

  void SetUp() override {
    if (!made)
      GTEST_SKIP() << "no NVIDIA GPU";
  }
  bool computes() const { return device.caps().computes; }
  Home home() const { return {GetParam().device, memoryKind()}; }
  MemoryKind memoryKind() const {
    return GetParam().device.kind == DeviceKind::Cpu ? MemoryKind::Host : MemoryKind::Device;
  }
  static constexpr Home kPinned{kCpu, MemoryKind::Pinned}, kPageable{kCpu, MemoryKind::Host};
  std::unique_ptr<Stream> stream(StreamKind kind = StreamKind::Compute) { return device.makeStream(kind, "s", 0); }
  void expectReached(Event e) {
    ASSERT_EQ(machine->awaitAny({&e, 1}, kSoon), 0);
    ASSERT_EQ(e.state(), State::Reached) << (e.semaphore->failure() ? e.semaphore->failure()->message : "pending");
  }
  DeviceFailureRef failureOf(Event e) {
    EXPECT_EQ(machine->awaitAny({&e, 1}, kSoon), 0);
    EXPECT_EQ(e.state(), State::Failed);
    return e.semaphore->failure();
  }
  Event copy(Stream &s, Region from, Region to, std::vector<Event> waits = {}, uint64_t tag = 0) {
    from.access = Access::Read, to.access = Access::Write;
    const Region regions[] = {from, to};
    return s.submit({.kind = DeviceCommandKind::Copy, .regions = regions, .waits = waits, .tag = tag});
  }
  struct Kernel {
    KernelDesc desc;
    DeviceKernelRef loaded;
  };
  Event launch(Stream &s, const Kernel &k, const std::vector<Region> &regions, std::vector<Event> waits = {},
               uint64_t tag = 0) {
    return s.submit(
        {.kind = DeviceCommandKind::Launch, .regions = regions, .waits = waits, .kernel = k.loaded.get(), .desc = &k.desc, .tag = tag});
  }
  const Kernel &kernel(const std::string &name, int64_t n) {
    auto &kernel = kernels.emplace_back(std::make_unique<Kernel>());
    kernel->desc = {
        .symbol = name, .provider = "test", .target = KernelTarget::HostLibrary, .params = name, .range = n, .grain = n, .scratchBytes = 64, .flops = n};
    const LoadedKernel function = test::testKernel(kernel->desc);
    if (gpuCode())
      kernel->desc = test::onCard(kernel->desc);
    const KernelCode code{.desc = &kernel->desc, .fn = function.fn, .state = function.state};
    kernel->loaded = device.load({&code, 1}, gpuCode()).front();
    return *kernel;
  }
  /// Where kernels are not functions of this process.
  std::shared_ptr<const std::vector<GpuCode>> gpuCode() const {
    static const auto code = std::make_shared<const std::vector<GpuCode>>(1, test::gpuTestCode());
    return device.caps().runsGpuCode ? code : nullptr;
  }
  /// Whose kernels run on the device.
  std::shared_ptr<const Executable> executable(test::DeviceBuilder &b) const {
    if (gpuCode())
      for (KernelDesc &desc : b.s.kernels)
        desc = test::onCard(desc);
    return b.executable({.gpu = gpuCode()});
  }
  Region region(void *memory, int64_t bytes, Home where, Access access = Access::Read) {
    return {memory, bytes, access, where};
  }

  /// Memory that is released when the test has ended.
  void *memory(Device &from, int64_t bytes, MemoryKind kind) {
    acquired.emplace_back(&from, from.allocate(bytes, kind));
    return acquired.back().second;
  }
  void TearDown() override {
    for (const auto &[from, p] : acquired)
      from->release(p);
  }

  std::shared_ptr<Machine> made, machine;
  Device &device, &host;
  std::vector<std::pair<Device *, void *>> acquired;
  std::vector<std::unique_ptr<Kernel>> kernels;
};

TEST_P(DeviceConformance, AllocatesAlignedMemoryThatIsApart) {
  std::vector<std::pair<uintptr_t, int64_t>> blocks;
  std::vector<void *> all;
  for (int64_t bytes : {0, 1, 63, 64, 1000, 1 << 20}) {
    void *p = device.allocate(bytes, memoryKind());
    const auto at = reinterpret_cast<uintptr_t>(p);
    EXPECT_EQ(at % 64, 0u);
    for (const auto &[begin, size] : blocks)
      EXPECT_TRUE(at + uintptr_t(bytes) <= begin || begin + uintptr_t(size) <= at);
    blocks.emplace_back(at, bytes);
    all.push_back(p);
  }
  for (void *p : all)
    device.release(p);
}

/// What programs bind there between calls: inputs, mutable states and outputs.
TEST_P(DeviceConformance, ProgramsTakeWhatIsAtHomeOnTheDevice) {
  const DeviceRef ref = GetParam().device;
  if (isHost(ref))
    GTEST_SKIP() << "of accelerators";
  const int64_t n = 4096;
  test::DeviceBuilder b(1);
  const TensorType t = ScheduleBuilder::floats(n);
  const uint32_t x = b.input("x", t), m = b.state("m", t, StateKind::Mutable), y = b.output("y", t);
  b.s.inputs[0].home = b.s.states[0].home = b.s.outputs[0].home = homeOn(ref);
  b.launch(b.add(n), {x, m}, {y}, {}, b.compute(kGpu0));
  b.copy(y, m, {}, b.compute(kGpu0)); // m += x
  const auto memory = DeviceMemory::of(machine);
  const std::vector<float> ones(n, 1.0f);
  const StorageRef xThere = memory->allocate(n * 4, ref), mThere = memory->allocate(n * 4, ref),
                   yThere = memory->allocate(n * 4, ref);
  memory->copy(xThere->data(), ref, ones.data(), {}, n * 4);
  memory->copy(mThere->data(), ref, ones.data(), {}, n * 4);
  Executor executor(executable(b), machine);
  void *states[] = {mThere->data()};
  executor.bindStates(states);
  const void *in[] = {xThere->data()};
  void *out[] = {yThere->data()};
  for (int i = 0; i < 3; ++i)
    executor.run(in, out);
  std::vector<float> got(n, -1.0f);
  memory->copy(got.data(), {}, mThere->data(), ref, n * 4);
  if (computes())
    EXPECT_EQ(got, std::vector<float>(n, 4.0f));
  EXPECT_EQ(DeviceMemory::of(*yThere), memory);
}

TEST_P(DeviceConformance, MemoryThatIsNotThereIsRefusedWithItsSize) {
  if (device.caps().memoryBytes == 0)
    GTEST_SKIP() << GetParam().name << " has no end of memory";
  const int64_t bytes = device.caps().memoryBytes + 1;
  try {
    device.allocate(bytes, memoryKind());
    FAIL();
  } catch (const OutOfMemory &e) {
    EXPECT_NE(e.message().find(std::to_string(bytes)), std::string::npos) << e.message();
  }
  device.release(device.allocate(64, memoryKind())); // and goes on
}

TEST_P(DeviceConformance, CopiesGoEveryWay) {
  const int64_t n = 5000;
  std::vector<uint8_t> in(n), out(n, 0), out2(n, 0);
  std::iota(in.begin(), in.end(), uint8_t(3));
  void *pinned = memory(host, n, MemoryKind::Pinned);
  void *a = memory(device, n, memoryKind()), *b = memory(device, n, memoryKind());
  host.registerMemory(in.data(), n, MemoryKind::Host);
  host.registerMemory(out.data(), n, MemoryKind::Host);
  const auto s = stream(StreamKind::CopyIn);
  copy(*s, region(in.data(), n, kPageable), region(a, n, home()));
  copy(*s, region(a, n, home()), region(b, n, home()));
  copy(*s, region(b, n, home()), region(pinned, n, kPinned));
  if (GetParam().device != kCpu) {
    copy(*s, region(pinned, n, kPinned), region(a, n, home()));
    copy(*s, region(a, n, home()), region(out.data(), n, kPageable));
  } else {
    copy(*s, region(pinned, n, kPinned), region(out.data(), n, kPageable));
  }
  expectReached(s->last());
  if (computes())
    EXPECT_EQ(in, out);
  host.unregisterMemory(in.data(), n, MemoryKind::Host);
  host.unregisterMemory(out.data(), n, MemoryKind::Host);
}

TEST_P(DeviceConformance, CopiesBetweenDevicesThatReachEachOther) {
  Device *other = nullptr;
  for (const auto &each : machine->devices())
    if (each.get() != &device && each->caps().device.kind == DeviceKind::Gpu && device.reaches(each->caps().device))
      other = each.get();
  if (!other)
    GTEST_SKIP() << GetParam().name << " reaches no other accelerator";
  void *a = memory(device, 64, memoryKind()), *b = memory(*other, 64, MemoryKind::Device);
  const auto s = stream(StreamKind::CopyOut);
  expectReached(copy(*s, region(a, 64, home()), region(b, 64, {other->caps().device, MemoryKind::Device})));
}

TEST_P(DeviceConformance, AStreamKeepsItsOrder) {
  const int64_t n = 16, bytes = n * 4;
  void *a = memory(device, bytes, memoryKind()), *b = memory(device, bytes, memoryKind());
  const auto s = stream();
  const Region fill[] = {region(a, bytes, home(), Access::Write)};
  uint64_t one = 0;
  const float value = 1;
  std::memcpy(&one, &value, 4);
  s->submit({.kind = DeviceCommandKind::Fill, .regions = fill, .type = f32, .fillValue = one});
  const Kernel &twice = kernel("twice", n);
  for (int i = 0; i < 20; ++i) {
    launch(*s, twice, {region(a, bytes, home()), region(b, bytes, home(), Access::Write)});
    std::swap(a, b);
  }
  expectReached(s->last());
  if (!computes())
    return;
  std::vector<float> out(n);
  device.read(out.data(), a, bytes);
  EXPECT_EQ(out, std::vector<float>(n, float(1 << 20)));
}

TEST_P(DeviceConformance, FillsElementsOfEverySize) {
  void *a = memory(device, 24, memoryKind());
  const auto s = stream();
  for (const auto &[type, value, bytes] :
       {std::tuple(u8, uint64_t(0x5A), 21), std::tuple(i16, uint64_t(0x1234), 22),
        std::tuple(i32, uint64_t(0x12345678), 20), std::tuple(i64, uint64_t(0x123456789ABCDEF0), 24)}) {
    const Region to[] = {region(a, bytes, home(), Access::Write)};
    s->submit({.kind = DeviceCommandKind::Fill, .regions = to, .type = type, .fillValue = value});
    expectReached(s->last());
    std::vector<uint8_t> out(size_t(bytes), 0);
    device.read(out.data(), a, bytes);
    for (int i = 0; computes() && i < bytes; ++i)
      EXPECT_EQ(out[size_t(i)], uint8_t(value >> (8 * (i % int(sizeOf(type)))))) << i;
  }
}

TEST_P(DeviceConformance, WaitsOrderStreams) {
  const auto first = stream(), second = stream(StreamKind::CopyOut);
  Semaphore gate;
  const Event open[] = {{&gate, 1}};
  const Event begun = first->submit({.waits = open});
  const Event behind[] = {begun};
  const Event after = second->submit({.waits = behind});
  EXPECT_EQ(machine->awaitAny({&after, 1}, 5'000'000), -1); // nothing may pass the gate
  EXPECT_EQ(begun.state(), State::Pending);
  gate.signal(1);
  expectReached(after);
  EXPECT_EQ(begun.state(), State::Reached);
}

TEST_P(DeviceConformance, SignalsAreGivenWhenTheirTurnComes) {
  const auto first = stream(), second = stream();
  Semaphore gate, done;
  const Event open[] = {{&gate, 7}}, signalled[] = {{&done, 3}};
  first->submit({.waits = open});
  first->submit({.kind = DeviceCommandKind::Signal, .signal = {&done, 3}});
  const Event behind = second->submit({.waits = signalled});
  EXPECT_EQ(machine->awaitAny({&behind, 1}, 5'000'000), -1);
  gate.signal(6);
  EXPECT_EQ(machine->awaitAny({&behind, 1}, 5'000'000), -1);
  gate.signal(7);
  expectReached(behind);
  EXPECT_EQ(done.value(), 3u);
}

TEST_P(DeviceConformance, AwaitAnyTellsWhich) {
  const auto first = stream(), second = stream();
  Semaphore never;
  const Event closed[] = {{&never, 1}};
  const Event blocked = first->submit({.waits = closed}), free = second->submit({});
  const Event both[] = {blocked, free};
  EXPECT_EQ(machine->awaitAny(both, kSoon), 1);
  EXPECT_EQ(machine->awaitAny({&free, 1}, 0), 0); // reached already
  never.signal(1);
  expectReached(blocked);
}

TEST_P(DeviceConformance, WaitingEndsInTime) {
  const auto s = stream();
  Semaphore never;
  const Event closed[] = {{&never, 1}};
  const Event e = s->submit({.waits = closed});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(machine->awaitAny({&e, 1}, 20'000'000), -1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  s->abort(std::make_shared<DeviceFailure>(FailureKind::TimedOut, "given up", device.caps().device, 1));
  EXPECT_EQ(failureOf(e)->message, "given up");
}

TEST_P(DeviceConformance, HostCallsRunInOrder) {
  const auto s = stream();
  std::vector<int> seen;
  struct Args {
    std::vector<int> *seen;
    int number;
  };
  std::vector<Args> args;
  for (int i = 0; i < 5; ++i)
    args.push_back({&seen, i});
  for (Args &a : args)
    s->submit({.kind = DeviceCommandKind::HostCall,
               .host = [](void *user) -> int32_t {
                 auto &a = *static_cast<Args *>(user);
                 a.seen->push_back(a.number);
                 return kKernelOk;
               },
               .user = &a});
  expectReached(s->last());
  if (computes())
    EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST_P(DeviceConformance, AFailureGoesWhereItsResultsGo) {
  if (!computes())
    GTEST_SKIP() << GetParam().name << " computes nothing that could fail";
  const int64_t bytes = 64;
  void *a = memory(device, bytes, memoryKind()), *b = memory(device, bytes, memoryKind());
  const auto first = stream(), second = stream(), apart = stream();
  const std::vector<Region> regions = {region(a, bytes, home()), region(b, bytes, home(), Access::Write)};
  // What is behind a failure may still run on a card, and write b.
  void *c = memory(device, bytes, memoryKind()), *d = memory(device, bytes, memoryKind());
  const std::vector<Region> apartRegions = {region(a, bytes, home()), region(c, bytes, home(), Access::Write)},
                            otherRegions = {region(a, bytes, home()), region(d, bytes, home(), Access::Write)};
  const Kernel &good = kernel("half", 16), &bad = kernel("fails", 16);
  const Event before = launch(*first, good, regions);
  const Event failing = launch(*first, bad, regions, {}, 77);
  const Event behind = launch(*first, good, regions);
  const Event other = launch(*second, good, otherRegions, {failing});
  const Event free = launch(*apart, good, apartRegions, {before});
  Semaphore done;
  second->submit({.kind = DeviceCommandKind::Signal, .signal = {&done, 1}});
  const DeviceFailureRef why = failureOf(failing);
  EXPECT_EQ(why->kind, FailureKind::Kernel);
  EXPECT_EQ(why->tag, 77u);
  EXPECT_EQ(why->message, "an index, or a label of a class, is out of range in kernel 'fails'");
  EXPECT_EQ(failureOf(behind), why);
  EXPECT_EQ(failureOf(other), why);
  EXPECT_EQ(failureOf({&done, 1}), why);
  expectReached(free);
  EXPECT_EQ(before.state(), State::Reached);
  EXPECT_EQ(failureOf(launch(*first, good, regions)), why); // for good
  const auto fresh = stream();
  expectReached(launch(*fresh, good, apartRegions, {free}));
}

TEST_P(DeviceConformance, MemoryIsReleasedBehindItsLastUse) {
  const auto s = stream();
  Semaphore gate;
  const Event open[] = {{&gate, 1}};
  s->submit({.waits = open});
  void *a = device.allocate(64, memoryKind());
  const Region to[] = {region(a, 64, home(), Access::Write)};
  const Event use = s->submit({.kind = DeviceCommandKind::Fill, .regions = to, .type = u8});
  device.release(a, {&use, 1}); // returns at once
  gate.signal(1);
  expectReached(use);
  device.release(device.allocate(64, memoryKind()));
}

TEST_P(DeviceConformance, WhatIsAbortedDoesNotRun) {
  const auto s = stream();
  Semaphore gate;
  const Event open[] = {{&gate, 1}};
  s->submit({.waits = open});
  int calls = 0;
  const Event e = s->submit({.kind = DeviceCommandKind::HostCall,
                             .host = [](void *user) -> int32_t { return ++*static_cast<int *>(user), kKernelOk; },
                             .user = &calls});
  s->abort(std::make_shared<DeviceFailure>(FailureKind::TimedOut, "given up", device.caps().device, 5));
  gate.signal(1);
  EXPECT_EQ(failureOf(e)->tag, 5u);
  EXPECT_EQ(calls, 0);
}

TEST_P(DeviceConformance, StampsAreInOrder) {
  if (std::string_view(GetParam().name) == "cuda_graphs")
    GTEST_SKIP() << "it was opened without them";
  const auto s = stream();
  void *a = memory(device, 64, memoryKind());
  const Region to[] = {region(a, 64, home(), Access::Write)};
  for (uint64_t tag = 1; tag <= 3; ++tag)
    s->submit({.kind = DeviceCommandKind::Fill, .regions = to, .type = u8, .tag = tag});
  const int64_t before = device.caps().isVirtualTime ? 0 : device.nowPs();
  expectReached(s->last());
  const std::vector<Stamp> stamps = device.takeStamps();
  ASSERT_EQ(stamps.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(stamps[i].tag, i + 1);
    EXPECT_LE(stamps[i].beginPs, stamps[i].endPs);
    if (i)
      EXPECT_LE(stamps[i - 1].endPs, stamps[i].beginPs);
  }
  EXPECT_GE(device.nowPs(), before);
  EXPECT_GE(device.nowPs(), stamps[2].endPs);
  EXPECT_TRUE(device.takeStamps().empty());
}

TEST_P(DeviceConformance, CommandsThatMeanNothingAreErrors) {
  const auto s = stream();
  const Region one[] = {region(nullptr, 4, home())};
  EXPECT_THROW(s->submit({.kind = DeviceCommandKind::Copy, .regions = one}), Error);
  EXPECT_THROW(s->submit({.kind = DeviceCommandKind::Launch}), Error);
  EXPECT_THROW(s->submit({.kind = DeviceCommandKind::Signal}), Error);
  const Event none[] = {{}};
  EXPECT_THROW(s->submit({.waits = none}), Error);
  expectReached(s->submit({})); // and the stream goes on
}

TEST_P(DeviceConformance, AddressesAreCheckedAgainstTheMemoryTheyAreSaidToBeIn) {
  if (!device.caps().checksMemory)
    GTEST_SKIP() << GetParam().name << " trusts addresses";
  void *a = device.allocate(64, memoryKind());
  std::vector<float> mine(16);
  auto failure = [&](const Region &from, const Region &to) {
    const auto s = stream();
    return failureOf(copy(*s, from, to, {}, 9));
  };
  // Memory that nobody told the host about; a range that is too long; memory that was released.
  auto why = failure(region(mine.data(), 64, kPageable), region(a, 64, home()));
  EXPECT_EQ(why->kind, FailureKind::Memory);
  EXPECT_EQ(why->tag, 9u);
  EXPECT_EQ(why->message, "reads 64 bytes that are said to be in the memory of cpu, but are nowhere");
  host.registerMemory(mine.data(), 64, MemoryKind::Host);
  why = failure(region(mine.data(), 64, kPageable), region(static_cast<char *>(a) + 4, 64, home()));
  EXPECT_NE(why->message.find("are nowhere"), std::string::npos) << why->message;
  if (GetParam().device != kCpu) {
    const auto s = stream();
    why = failureOf(
        launch(*s, kernel("half", 16), {region(mine.data(), 64, home()), region(a, 64, home(), Access::Write)}));
    EXPECT_EQ(why->message, "reads 64 bytes that are said to be in the memory of gpu0, but are in the memory of cpu");
    const auto t = stream();
    why = failureOf(
        launch(*t, kernel("half", 16), {region(mine.data(), 64, kPageable), region(a, 64, home(), Access::Write)}));
    EXPECT_EQ(why->message, "on gpu0 touches 64 bytes in the memory of cpu");
  }
  device.release(a);
  why = failure(region(a, 64, home()), region(mine.data(), 64, kPageable));
  EXPECT_EQ(why->kind, FailureKind::Memory);
  host.unregisterMemory(mine.data(), 64, MemoryKind::Host);
}

TEST_P(DeviceConformance, KernelsAreLoadedFromCodeThatTheDeviceTakes) {
  if (!computes())
    GTEST_SKIP() << GetParam().name << " runs no code";
  KernelDesc desc{.symbol = "unknown", .provider = "test", .target = KernelTarget::Gpu, .params = "{\"threads\":32}", .range = 1, .grain = 1};
  const KernelCode none{.desc = &desc}; // no function, and no code for GPUs
  try {
    device.load({&none, 1});
    FAIL();
  } catch (const InputError &e) {
    EXPECT_NE(e.message().find("'unknown'"), std::string::npos) << e.message();
  }
  // Several at once; and what another kind of device has loaded is refused where it is launched.
  const Kernel &half = kernel("half", 16), &twice = kernel("twice", 16);
  const KernelCode both[] = {{.desc = &half.desc, .fn = test::testKernel({.params = "half"}).fn},
                             {.desc = &twice.desc, .fn = test::testKernel({.params = "twice"}).fn}};
  EXPECT_EQ(device.load(both, gpuCode()).size(), 2u);
  struct Foreign final : DeviceKernel {};
  void *a = memory(device, 64, memoryKind());
  const Kernel foreign{half.desc, std::make_shared<Foreign>()};
  const auto s = stream();
  const DeviceFailureRef why = failureOf(launch(*s, foreign, {region(a, 64, home()), region(a, 64, home(), Access::ReadWrite)}));
  EXPECT_EQ(why->kind, FailureKind::Unsupported);
  EXPECT_NE(why->message.find("'" + half.desc.symbol + "' was not loaded for"), std::string::npos) << why->message;
}

/// x -> a on one stream, y = 2 a on another, y -> out on the first: what is between is the group's own order.
class RecordedGroup {
public:
  static constexpr int64_t kCount = 64, kBytes = kCount * 4;
  RecordedGroup(Machine &machine, Stream &copies, Stream &computes, const KernelDesc &desc, const DeviceKernel *kernel, Home there, void *a, void *y)
      : fromHost_{nullptr, a}, twice_{a, y}, toHost_{y, nullptr} {
    constexpr Home kPageable{kCpu, MemoryKind::Host};
    const Region in[] = {{nullptr, kBytes, Access::Read, kPageable}, {nullptr, kBytes, Access::Write, there}},
                 work[] = {{nullptr, kBytes, Access::Read, there}, {nullptr, kBytes, Access::Write, there}},
                 out[] = {{nullptr, kBytes, Access::Read, there}, {nullptr, kBytes, Access::Write, kPageable}};
    const uint32_t first[] = {0}, second[] = {1};
    const GroupCommand commands[] = {
        {.stream = 0, .command = {.kind = DeviceCommandKind::Copy, .regions = in, .tag = 1}, .addresses = fromHost_, .after = {}, .events = first},
        {.stream = 1, .command = {.kind = DeviceCommandKind::Launch, .regions = work, .kernel = kernel, .desc = &desc, .tag = 2}, .addresses = twice_, .after = first, .events = {}},
        {.stream = 0, .command = {.kind = DeviceCommandKind::Copy, .regions = out, .tag = 3}, .addresses = toHost_, .after = second, .events = {}}};
    Stream *const streams[] = {&copies, &computes};
    group_ = machine.record(streams, commands);
  }
  std::array<Event, 3> submit(const float *x, float *out, std::span<const Event> begin, uint64_t tag) {
    fromHost_[0] = const_cast<float *>(x), toHost_[1] = out;
    std::array<Event, 3> ends;
    const std::span<const Event> lists[] = {begin};
    group_->submit(lists, tag, ends);
    return ends;
  }

private:
  std::array<void *, 2> fromHost_, twice_, toHost_;
  std::unique_ptr<CommandGroup> group_;
};

TEST_P(DeviceConformance, GroupsAreRecordedOnceAndSubmittedOften) {
  const auto copies = stream(StreamKind::CopyIn), computing = stream();
  const Kernel &twice = kernel("twice", RecordedGroup::kCount);
  RecordedGroup group(*machine, *copies, *computing, twice.desc, twice.loaded.get(), home(), memory(device, RecordedGroup::kBytes, memoryKind()),
                      memory(device, RecordedGroup::kBytes, memoryKind()));
  std::vector<std::vector<float>> in, out;
  for (int i = 0; i < 5; ++i) {
    in.emplace_back(RecordedGroup::kCount, float(i + 1));
    out.emplace_back(RecordedGroup::kCount, 0.0f);
  }
  std::vector<RegisteredMemory> known;
  for (auto *list : {&in, &out})
    for (std::vector<float> &each : *list)
      known.emplace_back(host, each.data(), RecordedGroup::kBytes);
  // Nothing begins before what the submission waits for; other addresses with each.
  Semaphore gate;
  const Event open{&gate, 1};
  std::array<Event, 3> last = group.submit(in[0].data(), out[0].data(), {&open, 1}, 100);
  EXPECT_EQ(machine->awaitAny({last.data(), 1}, 5'000'000), -1);
  gate.signal(1);
  expectReached(last[2]);
  for (size_t i = 1; i < 5; ++i) {
    const Event before = last[2];
    last = group.submit(in[i].data(), out[i].data(), {&before, 1}, 100 * (i + 1));
  }
  expectReached(last[2]);
  EXPECT_EQ(last[0].state(), State::Reached);
  EXPECT_EQ(last[1].state(), State::Reached);
  if (computes())
    for (size_t i = 0; i < 5; ++i)
      EXPECT_EQ(out[i], std::vector<float>(RecordedGroup::kCount, 2.0f * float(i + 1))) << i;
}

TEST_P(DeviceConformance, AFailureInAGroupIsThatOfItsCommand) {
  if (!computes())
    GTEST_SKIP() << GetParam().name << " computes nothing that could fail";
  const auto copies = stream(StreamKind::CopyIn), computing = stream();
  const Kernel &fails = kernel("fails", RecordedGroup::kCount);
  RecordedGroup group(*machine, *copies, *computing, fails.desc, fails.loaded.get(), home(), memory(device, RecordedGroup::kBytes, memoryKind()),
                      memory(device, RecordedGroup::kBytes, memoryKind()));
  std::vector<float> in(RecordedGroup::kCount), out(RecordedGroup::kCount);
  const RegisteredMemory known[] = {{host, in.data(), RecordedGroup::kBytes}, {host, out.data(), RecordedGroup::kBytes}};
  const std::array<Event, 3> ends = group.submit(in.data(), out.data(), {}, 700);
  const DeviceFailureRef why = failureOf(ends[2]);
  EXPECT_EQ(why->kind, FailureKind::Kernel);
  EXPECT_EQ(why->tag, 702u);
}

TEST_P(DeviceConformance, GroupsThatMeanNothingAreErrors) {
  const auto s = stream();
  Stream *const streams[] = {s.get()};
  const uint32_t later[] = {1};
  auto isRefused = [&](const GroupCommand &command) { EXPECT_THROW(machine->record(streams, {&command, 1}), Error); };
  isRefused({.stream = 1, .command = {}, .addresses = {}, .after = {}, .events = {}});
  isRefused({.stream = 0, .command = {}, .addresses = {}, .after = later, .events = {}});
  isRefused({.stream = 0, .command = {.kind = DeviceCommandKind::Launch}, .addresses = {}, .after = {}, .events = {}});
  const Region one[] = {region(nullptr, 4, home())};
  isRefused({.stream = 0, .command = {.kind = DeviceCommandKind::Fill, .regions = one}, .addresses = {}, .after = {}, .events = {}});
}

TEST_P(DeviceConformance, CallersRegisterMemoryOnce) {
  std::vector<float> mine(1024, 1.0f);
  const auto bytes = static_cast<int64_t>(mine.size() * 4);
  {
    const RegisteredMemory known(host, mine.data(), bytes);
    EXPECT_TRUE(host.knowsMemory(mine.data() + 1, bytes - 4, MemoryKind::Host));
    {
      const RegisteredMemory again(host, mine.data(), bytes), part(host, mine.data(), 64), pinned(host, mine.data(), bytes, MemoryKind::Pinned); // counted, each by itself
    }
    EXPECT_TRUE(host.knowsMemory(mine.data(), bytes, MemoryKind::Host));
    void *a = memory(device, bytes, memoryKind());
    const auto s = stream(StreamKind::CopyIn);
    for (int i = 0; i < 3; ++i)
      copy(*s, region(mine.data(), bytes, kPageable), region(a, bytes, home()));
    expectReached(s->last());
  }
  if (host.caps().checksMemory)
    EXPECT_FALSE(host.knowsMemory(mine.data(), bytes, MemoryKind::Host));
  if (!isHost(GetParam().device))
    EXPECT_THROW(device.registerMemory(mine.data(), bytes, MemoryKind::Host), Error);
}

TEST_P(DeviceConformance, EventsHaveTheDriversOwnWhereThereIsADriver) {
  const auto s = stream();
  Semaphore gate;
  const Event open[] = {{&gate, 1}};
  const Event held = s->submit({.waits = open});
  NativeEvents *native = held.semaphore->native();
  if (!native) {
    gate.signal(1);
    expectReached(held);
    GTEST_SKIP() << GetParam().name << " has no driver with events of its own";
  }
  EXPECT_STREQ(native->driver(), device.caps().implementation.c_str());
  int calls = 0;
  auto use = [&](void *event) { calls += event != nullptr; };
  EXPECT_FALSE(native->withEvent(held.value, use)); // not issued: the host's semaphore holds it back
  gate.signal(1);
  expectReached(held);
  EXPECT_FALSE(native->withEvent(held.value, use)); // recycled
  EXPECT_EQ(calls, 0);
  // Issued at once, it has one until it has ended, which a machine that defers its work leaves to the wait.
  const Event issued = s->submit({});
  const bool has = native->withEvent(issued.value, use);
  EXPECT_EQ(calls, has ? 1 : 0);
  EXPECT_TRUE(has || device.caps().implementation != "deferred");
  expectReached(issued);
}

/// The executor's side: bodies on this kind of device.
TEST_P(DeviceConformance, BranchesAndLoopsRun) {
  if (!computes())
    GTEST_SKIP() << GetParam().name << " computes no flags";
  const int64_t n = 4;
  const TensorType t = ScheduleBuilder::floats(n), flagType{DType::boolean, Shape{1}}, indexType{i64, Shape{1}};
  const DeviceRef d = GetParam().device;
  test::DeviceBuilder b(d == kCpu ? 0 : 1);
  const uint16_t s = b.compute(d);
  auto bring = [&](uint32_t from, uint32_t to) { b.copy(from, to, {}, s); };
  const uint32_t x = b.input("x", t), limit = b.input("limit", t), y = b.output("y", t),
                 z = b.output("z", {f32, Shape{3, n}});
  const uint32_t a = b.on(d, t), c = b.on(d, t), bound = b.on(d, t), flag = b.on(d, flagType),
                 index = b.on(d, indexType);
  const uint32_t rows = b.on(d, {f32, Shape{3, n}});
  const uint32_t row = b.buffer(Space::Arena, b.s.buffers[rows].index, 0, t);
  bring(x, a);
  bring(limit, bound);
  // while a < limit: a = 2 a
  const uint32_t bodies = b.bodies(2);
  const uint32_t less = b.function("less", 1, 2), twice = b.twice(n);
  b.into(bodies);
  b.launch(less, {a, bound}, {flag}, {}, s);
  b.into(bodies + 1);
  b.launch(twice, {a}, {c}, {}, s);
  b.copy(c, a, {}, s);
  b.intoStep();
  b.whileLoop(flag, bodies, {}, s);
  b.copy(a, y, {}, s);
  // z[i] = i
  const uint32_t body = b.bodies(1);
  b.into(body);
  b.launch(b.function("number", n, 1), {index}, {row}, {}, s);
  b.intoStep();
  b.loop(3, body, {{row, n * 4}}, {}, s, index);
  b.copy(rows, z, {}, s);
  Executor e(executable(b), machine);
  std::vector<float> in{1, 2, 3, 4}, most{50, 0, 0, 0}, doubled(n), numbers(3 * n);
  const void *inputs[] = {in.data(), most.data()};
  void *outputs[] = {doubled.data(), numbers.data()};
  for (int call = 0; call < 2; ++call) {
    e.run(inputs, outputs);
    EXPECT_EQ(doubled, (std::vector<float>{64, 128, 192, 256}));
    EXPECT_EQ(numbers, (std::vector<float>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
  }
  most[0] = 0;
  e.run(inputs, outputs);
  EXPECT_EQ(doubled, in);
}

/// Sides of several commands, of none, and of some that overwrite the flag.
TEST_P(DeviceConformance, BranchesTakeTheSideThatTheFlagSays) {
  if (!computes())
    GTEST_SKIP() << GetParam().name << " computes no flags";
  const int64_t n = 4;
  const TensorType t = ScheduleBuilder::floats(n), flagType{DType::boolean, Shape{1}};
  const DeviceRef d = GetParam().device;
  test::DeviceBuilder b(d == kCpu ? 0 : 1);
  const uint16_t s = b.compute(d), other = d == kCpu ? s : b.copyOut(d);
  const uint32_t x = b.input("x", t), limit = b.input("limit", t), y = b.output("y", t), z = b.output("z", t);
  const uint32_t a = b.on(d, t), c = b.on(d, t), e = b.on(d, t), bound = b.on(d, t), flag = b.on(d, flagType);
  b.copy(x, a, {}, s);
  b.copy(limit, bound, {}, s);
  b.copy(x, e, {}, s);
  b.launch(b.function("less", 1, 2), {a, bound}, {flag}, {}, s);
  const uint32_t twice = b.twice(n), both = b.bodies(2), one = b.bodies(2), last = b.bodies(2);
  b.into(both);
  const uint32_t doubled = b.launch(twice, {a}, {c}, {}, s);
  b.copy(c, e, {doubled}, other);
  b.launch(twice, {c}, {a}, {}, s);
  b.into(both + 1);
  b.copy(bound, a, {}, s);
  b.into(one);
  b.launch(twice, {e}, {c}, {}, s);
  b.copy(c, e, {}, s);
  b.into(one + 1);
  b.into(last); // overwrites the flag, which nothing reads any more
  b.launch(twice, {e}, {c}, {}, s);
  b.copy(c, e, {}, s);
  b.fill(flag, 0, {}, s);
  b.into(last + 1);
  b.fill(flag, 1, {}, s);
  b.intoStep();
  b.branch(flag, both, {}, s);
  b.branch(flag, one, {}, s);
  b.branch(flag, last, {}, s);
  b.copy(a, y, {}, s);
  b.copy(e, z, {}, s);
  Executor executor(executable(b), machine);
  std::vector<float> in{1, 2, 3, 4}, most(n), first(n), second(n);
  const void *inputs[] = {in.data(), most.data()};
  void *outputs[] = {first.data(), second.data()};
  for (int call = 0; call < 6; ++call) {
    const bool isLess = call % 3 != 1;
    most = {isLess ? 50.0f : 0.0f, 7, 8, 9};
    executor.run(inputs, outputs);
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      EXPECT_EQ(first[i], isLess ? 4 * in[i] : most[i]) << call;
      EXPECT_EQ(second[i], isLess ? 8 * in[i] : in[i]) << call;
    }
  }
}

/// Iterations one behind the other, over two streams, in a loop in a loop, with what moves and what stays; and none at
/// all.
TEST_P(DeviceConformance, LoopsRunInLoops) {
  if (!computes())
    GTEST_SKIP() << GetParam().name << " computes nothing";
  const int64_t n = 4, outerTrips = 3, innerTrips = 2, rows = outerTrips * innerTrips;
  const TensorType t = ScheduleBuilder::floats(n);
  const DeviceRef d = GetParam().device;
  test::DeviceBuilder b(d == kCpu ? 0 : 1);
  const uint16_t s = b.compute(d), other = d == kCpu ? s : b.copyOut(d);
  const uint32_t x = b.input("x", t), z = b.output("z", {f32, Shape{rows, n}});
  const uint32_t a = b.on(d, t), c = b.on(d, t), all = b.on(d, {f32, Shape{rows, n}});
  const uint32_t row = b.buffer(Space::Arena, b.s.buffers[all].index, 0, t);
  b.copy(x, a, {}, s);
  const uint32_t outer = b.bodies(1), inner = b.bodies(1), never = b.bodies(1), twice = b.twice(n);
  b.into(outer);
  b.loop(innerTrips, inner, {{row, n * 4}}, {}, s);
  b.into(inner);
  const uint32_t doubled = b.launch(twice, {a}, {c}, {}, s);
  b.copy(c, row, {doubled}, other); // read by nothing in the loop: only the next iteration's begin keeps `c` for it
  b.copy(c, a, {}, s);
  b.into(never);
  b.launch(twice, {a}, {c}, {}, s);
  b.copy(c, a, {}, s);
  b.intoStep();
  b.loop(0, never, {}, {}, s);
  const uint32_t loop = b.loop(outerTrips, outer, {{row, innerTrips * n * 4}}, {}, s);
  b.copy(all, z, {loop}, s);
  Executor e(executable(b), machine);
  std::vector<float> in{1, 2, 3, 4}, out(static_cast<size_t>(rows * n));
  const void *inputs[] = {in.data()};
  void *outputs[] = {out.data()};
  for (int call = 0; call < 4; ++call) {
    in[0] = static_cast<float>(call);
    e.run(inputs, outputs);
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r)
      for (size_t i = 0; i < static_cast<size_t>(n); ++i)
        ASSERT_EQ(out[r * static_cast<size_t>(n) + i], in[i] * static_cast<float>(2 << r))
            << "call " << call << ", row " << r;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DeviceConformance,
    ::testing::Values(
        Implementation{"cpu", kCpu, cpuMachine}, Implementation{"part", kGpu0, partsMachine},
        Implementation{"part_host", kCpu, partsMachine}, Implementation{"sim_gpu", kGpu0, simMachine},
        Implementation{"sim_host", kCpu, simMachine}, Implementation{"sim_timing", kGpu0, timingMachine},
        Implementation{"cuda", kGpu0, cudaMachine}, Implementation{"cuda_graphs", kGpu0, cudaGraphsMachine},
        Implementation{"cuda_host", kCpu, cudaMachine}, Implementation{"deferred", kGpu0, deferredMachine},
        Implementation{"deferred_host", kCpu, deferredMachine}, Implementation{"null", kGpu0, nullMachine}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace tressel::runtime
