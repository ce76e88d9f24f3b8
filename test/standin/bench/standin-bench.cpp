// What issuing costs the host, against the stand-in driver's null mode, in which launches, copies and waits do nothing: no figure of a card. Arms: run.py.
#include "test/bench/Bench.h"
#include "test/standin/StandIn.h"
#include "test/unit/runtime/DeviceSchedules.h"
#include "test/unit/runtime/GpuTestKernels.h"
#include "tressel/runtime/Executor.h"

#include <array>
#include <map>

using namespace tressel;
using namespace tressel::bench;
using namespace tressel::runtime;

namespace {

constexpr int kLaunches = 1000, kNodes = 100, kCalls = 200;
constexpr int64_t kForever = INT64_MAX;

/// A kernel of three operands on a card, and memory for it.
struct Prepared {
  Prepared() : machine(openMachine("cuda")), card(machine->at(test::kGpu0)), stream(card.makeStream(StreamKind::Compute, "s")) {
    desc = test::onCard({.symbol = "add", .provider = "test", .params = "add", .range = 1, .grain = 1});
    const KernelCode code{.desc = &desc};
    kernel = card.load({&code, 1}, std::make_shared<const std::vector<GpuCode>>(1, test::gpuTestCode())).front();
    for (Region &region : regions)
      region = {card.allocate(64, MemoryKind::Device), 64, Access::Read, {test::kGpu0, MemoryKind::Device}};
    regions[2].access = Access::Write;
  }
  DeviceCommand command() const { return {.kind = DeviceCommandKind::Launch, .regions = regions, .kernel = kernel.get(), .desc = &desc}; }
  std::shared_ptr<Machine> machine;
  Device &card;
  std::unique_ptr<Stream> stream;
  KernelDesc desc;
  DeviceKernelRef kernel;
  std::array<Region, 3> regions;
};

/// Nanoseconds a launch.
double issue() {
  static Prepared &p = *new Prepared;
  const DeviceCommand command = p.command();
  const double seconds = secondsOf([&] {
    for (int i = 0; i < kLaunches; ++i)
      p.stream->submit(command);
  });
  const Event last = p.stream->last();
  p.machine->awaitAny({&last, 1}, kForever);
  return seconds * 1e9 / kLaunches;
}

/// Nanoseconds until a submission of a recorded group of 100 kernels, a graph, returns.
double graph() {
  static Prepared &p = *new Prepared;
  static std::vector<Event> ends(kNodes);
  static std::array<void *, 3> addresses;
  static const std::unique_ptr<CommandGroup> group = [] {
    for (size_t i = 0; i < addresses.size(); ++i)
      addresses[i] = p.regions[i].address;
    const std::vector<GroupCommand> commands(kNodes, {.stream = 0, .command = p.command(), .addresses = addresses, .after = {}, .events = {}});
    Stream *const streams[] = {p.stream.get()};
    return p.machine->record(streams, commands);
  }();
  auto await = [] { p.machine->awaitAny({&ends.back(), 1}, kForever); };
  for (int i = 0; i < 3; ++i) // command by command, then built
    group->submit({}, 0, ends), await();
  double seconds = 0;
  for (int i = 0; i < kCalls; ++i) {
    seconds += secondsOf([&] { group->submit({}, 0, ends); });
    await();
  }
  return seconds * 1e9 / kCalls;
}

/// Nanoseconds until a call of a program of three kernels returns, its operands in the card's memory.
double call() {
  static Executor &executor = *[] {
    test::DeviceBuilder b(1);
    const TensorType type{f32, Shape{16}};
    const uint32_t x = b.input("x", type), y = b.output("y", type);
    b.s.inputs[0].home = b.s.outputs[0].home = homeOn(test::kGpu0);
    const uint32_t first = b.on(test::kGpu0, type), second = b.on(test::kGpu0, type);
    const uint16_t s = test::DeviceBuilder::compute(test::kGpu0);
    const uint32_t twice = b.twice(16);
    b.launch(twice, {x}, {first}, {}, s);
    b.launch(twice, {first}, {second}, {}, s);
    b.launch(twice, {second}, {y}, {}, s);
    for (KernelDesc &desc : b.s.kernels)
      desc = test::onCard(desc);
    ProgramCode code;
    code.gpu = std::make_shared<const std::vector<GpuCode>>(1, test::gpuTestCode());
    return new Executor(b.executable(code), openMachine("cuda"));
  }();
  static Prepared &p = *new Prepared;
  const void *inputs[] = {p.regions[0].address};
  void *outputs[] = {p.regions[2].address};
  for (int i = 0; i < 3; ++i)
    executor.run(inputs, outputs);
  return secondsOf([&] {
           for (int i = 0; i < kCalls; ++i)
             executor.run(inputs, outputs);
         }) *
         1e9 / kCalls;
}

} // namespace

int main(int argc, char **argv) {
  standin::requireStandIn(argv, "null=1");
  const std::map<std::string, double (*)()> rows{{"gpu.issue", issue}, {"gpu.graph.issue", graph}, {"gpu.call.host", call}};
  const auto row = argc > 1 ? rows.find(argv[1]) : rows.end();
  if (row == rows.end()) {
    std::cerr << "usage: standin-bench ROW\nrows:";
    for (const auto &[name, measure] : rows)
      std::cerr << " " << name;
    std::cerr << "\n";
    return 2;
  }
  return serve(Arms{{"tressel", Arm(row->second)}});
}
