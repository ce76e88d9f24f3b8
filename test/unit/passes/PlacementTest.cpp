// Where launches go on machines of round figures: small programs whose times are computed by hand.
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/sched/Sched.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/schedule/ListSchedule.h"
#include "passes/Passes.h"
#include "passes/Util.h"
#include "tressel/runtime/MachineModel.h"
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace tressel;
using runtime::DeviceKind;
using runtime::StreamKind;
using runtime::MachineModel;

namespace {

/// A host of 1 GFLOP/s and accelerators of 10, a link of 1 GB/s and 1 us to each and from each.
MachineModel machineWith(int accelerators, int64_t memoryBytes = int64_t(1) << 34) {
  MachineModel machine{.name = "round"};
  auto device = [&](DeviceKind kind, int index, double flops) {
    runtime::DeviceModel d;
    d.device = {kind, static_cast<uint16_t>(index)};
    d.name = runtime::nameOf(d.device);
    d.flopsPerSecond[f32] = flops;
    d.bytesPerSecond = 1e15;
    d.memoryBytes = kind == DeviceKind::Cpu ? int64_t(1) << 40 : memoryBytes;
    d.commandSeconds = 1e-9;
    machine.devices.push_back(d);
  };
  device(DeviceKind::Cpu, 0, 1e9);
  for (int i = 0; i < accelerators; ++i) {
    device(DeviceKind::Gpu, i, 10e9);
    for (bool in : {true, false}) {
      machine.links.push_back({(in ? "down" : "up") + std::to_string(i), 1e9, 1e-6});
      const runtime::DeviceRef gpu{DeviceKind::Gpu, static_cast<uint16_t>(i)}, cpu{};
      machine.routes.push_back({in ? cpu : gpu, in ? gpu : cpu, {static_cast<uint32_t>(machine.links.size() - 1)}});
    }
  }
  return machine;
}

class PlacementTest : public ::testing::Test {
protected:
  PlacementTest() : handler(&context, [this](Diagnostic &d) { messages += d.str() + "\n"; }) {
    DialectRegistry registry;
    graph::registerDialects(registry);
    sched::registerDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// @main with `body`, which may launch @work_<kilo>: a kernel of so many thousand flops from one 4 MB tensor to
  /// another.
  void parse(const std::string &body, const std::string &results = "%r") {
    std::string text;
    for (int kilo : {1, 1000, 102000, 1000000})
      text += "tressel.kernel @work_" + std::to_string(kilo) +
              "(%a: tensor<1000000xf32>) -> tensor<1000000xf32> attributes " +
              "{provider = \"generated\", flops = " + std::to_string(kilo) + "000 : i64, bytes = 8000000 : i64} {\n" +
              "  %0 = tressel.exp %a : (tensor<1000000xf32>) -> tensor<1000000xf32>\n  tressel.yield %0 : "
              "tensor<1000000xf32>\n}\n";
    std::string types, declared;
    for (size_t i = 0; i < 1 + static_cast<size_t>(std::count(results.begin(), results.end(), ',')); ++i) {
      types += (i ? ", " : "") + std::string("tensor<1000000xf32>");
      declared += (i ? ", " : "") + std::string("tensor<1000000xf32> {tressel.name = \"y") + std::to_string(i) + "\"}";
    }
    text += "func.func @main(%x: tensor<1000000xf32> {tressel.name = \"x\"}) -> (" + declared + ") {\n" + body +
            "  return " + results + " : " + types + "\n}\n";
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << messages;
  }
  static std::string launch(const std::string &result, int kilo, const std::string &operand,
                            const std::string &device = "") {
    return "  " + result + " = tressel.launch @work_" + std::to_string(kilo) + "(" + operand + ") " +
           (device.empty() ? "" : "{tressel.device = \"" + device + "\"} ") +
           ": (tensor<1000000xf32>) -> tensor<1000000xf32>\n";
  }
  bool place(const MachineModel &machine) {
    PassManager pm(&context);
    pm.addPass(passes::createPlaceClusters({}, &machine, &decisions));
    return succeeded(pm.run(*module));
  }
  /// The devices of the launches in program order: "cpu gpu0".
  std::string devices() {
    std::string text;
    module->walk([&](graph::LaunchOp op) {
      text += (text.empty() ? "" : " ") + runtime::nameOf(graph::deviceOf(op).value_or(graph::kHost));
    });
    return text;
  }

  MLIRContext context;
  std::string messages;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
  runtime::Decisions decisions;
};

TEST_F(PlacementTest, LongWorkGoesWhereItIsFast) {
  // 1 s on the host; 4 ms there, 0.1 s, and 4 ms back on an accelerator.
  parse(launch("%r", 1000000, "%x"));
  const MachineModel machine = machineWith(1);
  ASSERT_TRUE(place(machine)) << messages;
  EXPECT_EQ(devices(), "gpu0");
  ASSERT_FALSE(decisions.empty());
  EXPECT_EQ(decisions[0].text, "gpu0; done on cpu at 1.00 s, on gpu0 at 108 ms");
}

TEST_F(PlacementTest, ShortWorkStaysWhereItsDataIs) {
  // 1 ms on the host; 8.1 ms with both ways.
  parse(launch("%r", 1000, "%x"));
  const MachineModel machine = machineWith(1);
  ASSERT_TRUE(place(machine)) << messages;
  EXPECT_EQ(devices(), "cpu");
}

TEST_F(PlacementTest, ManyShortOnesGoTogether) {
  // Each alone is done sooner on the host (1 ms; 4.1 ms with the way there), but ten take 10 ms there and 9 ms, with
  // both ways, on the accelerator.
  std::string body, last = "%x";
  for (int i = 0; i < 10; ++i) {
    const std::string next = i == 9 ? "%r" : "%v" + std::to_string(i);
    body += launch(next, 1000, last);
    last = next;
  }
  parse(body);
  const MachineModel machine = machineWith(1);
  ASSERT_TRUE(place(machine)) << messages;
  EXPECT_EQ(devices(), "gpu0 gpu0 gpu0 gpu0 gpu0 gpu0 gpu0 gpu0 gpu0 gpu0");
  EXPECT_EQ(decisions.back().text,
            "all on gpu0; predicted: each op where it finishes first 10.0 ms, all on cpu 10.0 ms, all on gpu0 9.00 ms");
}

TEST_F(PlacementTest, IndependentChainsGoToDifferentDevices) {
  parse(launch("%a", 1000000, "%x") + launch("%b", 1000000, "%x") + launch("%c", 1000000, "%a") +
            launch("%d", 1000000, "%b"),
        "%c, %d");
  const MachineModel machine = machineWith(2);
  ASSERT_TRUE(place(machine)) << messages;
  EXPECT_EQ(devices(), "gpu0 gpu1 gpu0 gpu1");
}

TEST_F(PlacementTest, AnnotationsStayAndOthersFollowTheirData) {
  // On the host it would be there after 4 ms for the way back, and 1 ms; on the accelerator after 0.1 ms and that way.
  parse(launch("%a", 1000, "%x", "gpu1") + launch("%r", 1000, "%a"));
  const MachineModel machine = machineWith(2);
  ASSERT_TRUE(place(machine)) << messages;
  EXPECT_EQ(devices(), "gpu1 gpu1");
}

TEST_F(PlacementTest, WhatDoesNotFitGoesElsewhereOrIsAnError) {
  parse(launch("%r", 1000000, "%x"));
  const MachineModel small = machineWith(1, 7000000); // the kernel has 8 MB of operands
  ASSERT_TRUE(place(small)) << messages;
  EXPECT_EQ(devices(), "cpu");
  EXPECT_NE(decisions[0].text.find("on gpu0 never: it does not fit"), std::string::npos) << decisions[0].text;
  parse(launch("%r", 1000000, "%x", "gpu0")); // its result may take its operand's place there
  EXPECT_TRUE(place(small)) << messages;
  parse(launch("%r", 1000000, "%x", "gpu0"));
  const MachineModel smaller = machineWith(1, 3900000);
  EXPECT_FALSE(place(smaller));
  EXPECT_NE(messages.find("'exp' needs 4000000 bytes of gpu0 at once, which has 3900000: 4000000 for its result, 4000000 for the input 'x'"),
            std::string::npos)
      << messages;
}

TEST_F(PlacementTest, WhatIsTooMuchForAMemoryAtOnceMayStillBeFastestThere) {
  // Six results of 4 MB; the host takes 1 s for each, the accelerator 0.1 s, and has room for two beside x. What has been
  // copied back leaves it.
  std::string body, results;
  for (char name = 'a'; name <= 'f'; ++name) {
    const std::string result = std::string("%") + name;
    body += launch(result, 1000000, "%x");
    results += (results.empty() ? "" : ", ") + result;
  }
  parse(body, results);
  const MachineModel machine = machineWith(1, 12000000);
  ASSERT_TRUE(place(machine)) << messages;
  EXPECT_EQ(devices(), "gpu0 gpu0 gpu0 gpu0 gpu0 gpu0");
}

/// The steps of a placed program with its transfers in the order in which they are predicted to begin: "x>gpu0 ...".
std::vector<passes::Planned> planned(ModuleOp module, const MachineModel &machine, MLIRContext &context) {
  PassManager pm(&context);
  pm.addPass(passes::createInsertTransfers(&machine));
  EXPECT_TRUE(succeeded(pm.run(module)));
  std::vector<Operation *> step;
  for (Operation &op : (*module.getOps<func::FuncOp>().begin()).getBody().front().without_terminator())
    step.push_back(&op);
  passes::MachineCosts costs(machine);
  return passes::listSchedule(
      step, costs, [](Value) { return false; }, SmallVector<int64_t>(machine.devices.size(), 0));
}

TEST_F(PlacementTest, CopiesRunBesideWork) {
  // Two kernels of 100 ms, one after the other; the first result's way back (4 ms) hides behind the second.
  parse(launch("%a", 1000000, "%x", "gpu0") + launch("%r", 1000000, "%x", "gpu0"), "%a, %r");
  const MachineModel machine = machineWith(1);
  const auto order = planned(*module, machine, context);
  ASSERT_EQ(order.size(), 5u);
  EXPECT_NEAR(order[1].begin, 4.001e-3, 1e-6); // as soon as x is there
  EXPECT_NEAR(order.back().end, 4.001e-3 + 0.2 + 4.001e-3, 1e-6);
  EXPECT_EQ(order[2].begin, order[1].end); // the second kernel, and the copy of the first result
  EXPECT_EQ(order[3].begin, order[1].end);
}

TEST_F(PlacementTest, TheLongestWayGoesFirst) {
  // %b is written first, but the host has a second of work to do after %a.
  parse(launch("%b", 1000000, "%x", "gpu0") + launch("%a", 1000000, "%x", "gpu0") + launch("%r", 1000000, "%a", "cpu"),
        "%b, %r");
  const MachineModel machine = machineWith(1);
  const auto order = planned(*module, machine, context);
  double end = 0;
  for (const passes::Planned &p : order)
    end = std::max(end, p.end);
  EXPECT_NEAR(end, 4.001e-3 + 0.1 + 4.001e-3 + 1, 1e-6);
}

TEST_F(PlacementTest, TransfersShareTheirLinks) {
  // x goes to both at once, over one link for both: 8 ms, not 4.
  parse(launch("%a", 1000000, "%x", "gpu0") + launch("%b", 1000000, "%x", "gpu1"), "%a, %b");
  MachineModel machine = machineWith(2);
  for (bool isShared : {false, true}) {
    if (isShared)
      for (runtime::RouteModel &route : machine.routes)
        if (route.from == graph::kHost)
          route.links = {0};
    auto copy = OwningOpRef<ModuleOp>(module->clone());
    const auto order = planned(*copy, machine, context);
    ASSERT_EQ(order.size(), 6u);
    EXPECT_NEAR(order[2].begin, isShared ? 8.001e-3 : 4.001e-3, 1e-6);
    EXPECT_NEAR(order[3].begin, isShared ? 8.001e-3 : 4.001e-3, 1e-6);
  }
}

TEST_F(PlacementTest, DevicesBehindOneLinkAreNoFasterThanOne) {
  // Four chains of ten, 0.1 ms each on an accelerator. With a link each, x is on four of them after 4 ms; with one for
  // all after 16.
  std::string body;
  for (int chain = 0; chain < 4; ++chain)
    for (int i = 0; i < 10; ++i) {
      const std::string name = "%v" + std::to_string(chain) + "_";
      body += launch(name + std::to_string(i), 1000, i ? name + std::to_string(i - 1) : "%x");
    }
  for (bool isShared : {false, true}) {
    parse(body, "%v0_9, %v1_9, %v2_9, %v3_9");
    MachineModel machine = machineWith(4);
    if (isShared)
      for (runtime::RouteModel &route : machine.routes)
        route.links = {route.from == graph::kHost ? 0u : 1u};
    ASSERT_TRUE(place(machine)) << messages;
    std::set<std::string> used;
    module->walk([&](graph::LaunchOp op) { used.insert(runtime::nameOf(graph::deviceOf(op).value_or(graph::kHost))); });
    EXPECT_EQ(used.size(), isShared ? 1u : 4u) << devices();
  }
}

TEST_F(PlacementTest, NothingIsChosenWhereAllIsAnnotated) {
  parse(launch("%a", 1000, "%x", "gpu0") + launch("%r", 1000, "%a", "cpu"));
  const MachineModel machine = machineWith(1);
  ASSERT_TRUE(place(machine)) << messages;
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].text, "gpu0, as annotated");
  EXPECT_EQ(decisions[1].text, "cpu, as annotated");
}

TEST_F(PlacementTest, CopiesOfOneEngineTakeTurns) {
  // Until 104 ms %a is made, and goes back for 4 ms; from 102 ms on %h comes.
  parse(launch("%a", 1000000, "%x", "gpu0") + launch("%h", 102000, "%x", "cpu") + launch("%b", 1000000, "%h", "gpu0"), "%a, %b");
  for (bool isShared : {false, true}) {
    auto copy = OwningOpRef<ModuleOp>(module->clone());
    MachineModel machine = machineWith(1);
    if (isShared)
      machine.devices[1].engines = {{"copy", {StreamKind::CopyIn, StreamKind::CopyOut}}};
    std::vector<passes::Planned> copies;
    for (const passes::Planned &p : planned(*copy, machine, context))
      if (p.stream != StreamKind::Compute)
        copies.push_back(p);
    ASSERT_GE(copies.size(), 3u);
    bool overlap = false;
    for (const passes::Planned &one : copies)
      for (const passes::Planned &other : copies)
        if (one.op != other.op && one.begin < other.end && other.begin < one.end) {
          overlap = true;
          EXPECT_NE(one.engine, other.engine);
        }
    EXPECT_EQ(overlap, !isShared);
  }
}

TEST_F(PlacementTest, MemoryHoldsCopiesBack) {
  // Where there is room for two tensors, what the host made of x comes when the first kernel has ended and x is gone.
  parse(launch("%h", 1, "%x", "cpu") + launch("%a", 1000000, "%x", "gpu0") + launch("%b", 1000000, "%a", "gpu0") +
            launch("%c", 1000000, "%h", "gpu0"),
        "%b, %c");
  for (int64_t room : {20000000, 8000000}) {
    auto copy = OwningOpRef<ModuleOp>(module->clone());
    const MachineModel machine = machineWith(1, room);
    double comes = 0, firstEnds = 0;
    for (const passes::Planned &p : planned(*copy, machine, context)) {
      if (p.stream == StreamKind::CopyIn && p.op->getOperand(0).getDefiningOp())
        comes = p.begin;
      if (p.stream == StreamKind::Compute && p.device == 1 && firstEnds == 0)
        firstEnds = p.end;
    }
    EXPECT_EQ(comes >= firstEnds, room == 8000000) << room << ": " << comes << " " << firstEnds;
  }
}

} // namespace
