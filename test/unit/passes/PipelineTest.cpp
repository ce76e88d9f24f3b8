// Random programs through the whole pipeline: the interpreter finds no pass that changed a result, the schedule is
// proved, and no wait of it can be spared.
#include "passes/Pipeline.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/sched/Export.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Util.h"
#include "passes/verify/VerifyEach.h"
#include "test/support/Placement.h"
#include "test/support/RandomGraph.h"
#include "tools/tressel-opt/ModelProviders.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/VerifySchedule.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace tressel;

namespace {

class PipelineTest : public ::testing::Test {
protected:
  PipelineTest() : handler(&context, [this](Diagnostic &d) { messages += d.str() + "\n"; }) {
    DialectRegistry registry;
    graph::registerDialects(registry);
    sched::registerDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  passes::PipelineOptions options(int64_t streams) {
    passes::PipelineOptions o;
    o.providers = tools::modelProviders();
    o.streams = streams;
    return o;
  }
  MLIRContext context;
  std::string messages;
  ScopedDiagnosticHandler handler;
};

sched::ProgramOp programOf(ModuleOp module) { return *module.getOps<sched::ProgramOp>().begin(); }

TEST_F(PipelineTest, RandomProgramsKeepTheirResults) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::RandomGraph random = test::randomGraph(context, seed);
    passes::PipelineOptions o = options(seed % 2 ? 1 : 3);
    o.verifyEach = true;
    o.seed = seed;
    messages.clear();
    ASSERT_TRUE(succeeded(passes::runPipeline(*random.module, o))) << messages;
    auto program = programOf(*random.module);
    EXPECT_GE(dim::hint(*program.getPeakBytes()), dim::hint(*program.getPeakLowerBoundBytes())); // may be symbolic
  }
}

TEST_F(PipelineTest, RandomProgramsKeepTheirResultsOnSeveralDevices) {
  int64_t copies = 0, bodies = 0, launches = 0, blocks = 0;
  for (uint64_t seed = 200; seed < 290; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    runtime::MachineModel machine = runtime::machinePreset(seed % 3 == 0 ? "cluster-10gbe" : seed % 3 == 1 ? "2gpu-pcie3" : "4gpu-pcie3");
    if (seed % 2) // copies of small tensors take long, but begin at once: it pays to cut what waits for them
      for (runtime::LinkModel &link : machine.links)
        link.bytesPerSecond = 1e6, link.latencySeconds = 1e-12;
    test::RandomGraph random = test::randomGraph(context, seed, {.largeShare = seed % 4 == 1 ? 1 : 0.04});
    test::placeAtRandom(*random.module, seed, static_cast<unsigned>(seed % 3 == 2 ? 4 : 2));
    passes::PipelineOptions o = options(1);
    o.verifyEach = true;
    o.seed = seed;
    o.machine = &machine;
    messages.clear();
    ASSERT_TRUE(succeeded(passes::runPipeline(*random.module, o))) << messages;
    programOf(*random.module).walk([&](sched::CommandOpInterface command) {
      if (command.getStream().getDefiningOp<sched::StreamOp>().getDevice() != sched::DeviceKind::Gpu)
        return;
      copies += isa<sched::CopyOp>(*command);
      if (auto launch = dyn_cast<sched::LaunchOp>(*command)) {
        ++launches;
        blocks += launch.getKernel().ends_with("_rows");
      }
      bodies += command->getNumRegions() > 0;
    });
  }
  EXPECT_GT(copies, 100);
  EXPECT_GT(launches, 100);
  EXPECT_GT(bodies, 3);
  EXPECT_GT(blocks, 10) << "of " << launches << " launches";
}

/// Bids as another provider, but next to nothing for images with channels last, and a lot for others.
class LikesChannelsLast final : public passes::KernelProvider {
public:
  explicit LikesChannelsLast(const passes::KernelProvider *other) : other(other) {}
  StringRef name() const override { return other->name(); }
  graph::KernelTarget target() const override { return other->target(); }
  bool writesEpilogues() const override { return other->writesEpilogues(); }
  std::optional<passes::Bid> bid(const passes::Candidate &candidate, ArrayRef<bool> parameterOnly) const override {
    std::optional<passes::Bid> bid = other->bid(candidate, parameterOnly);
    const op::OpInfo &info = *graph::infoOf(candidate.root);
    if (const int last = info.attrIndex("channels_last"); bid && last >= 0)
      bid->seconds = std::get<bool>(graph::attrsOf(candidate.root, info)[static_cast<size_t>(last)]) ? 1e-9 : 1;
    return bid;
  }

private:
  const passes::KernelProvider *other;
};

TEST_F(PipelineTest, RandomProgramsKeepTheirResultsInOtherLayouts) {
  std::vector<std::unique_ptr<LikesChannelsLast>> providers;
  for (const passes::KernelProvider *provider : tools::modelProviders())
    providers.push_back(std::make_unique<LikesChannelsLast>(provider));
  int64_t moved = 0;
  for (uint64_t seed = 100; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::RandomGraph random = test::randomGraph(context, seed);
    auto countFirst = [&] {
      int64_t n = 0;
      random.module->walk([&](Operation *op) {
        const op::OpInfo *info = graph::infoOf(op);
        n += info && info->family == op::Family::Convolution && !op->hasAttr("channels_last");
      });
      return n;
    };
    passes::PipelineOptions o = options(1);
    o.providers.clear();
    for (auto &provider : providers)
      o.providers.push_back(provider.get());
    o.verifyEach = true;
    o.seed = seed;
    o.stopAfter = "form-clusters";
    int64_t before = 0;
    o.beforePass = [&](StringRef pass) { before = pass == "assign-layouts" ? countFirst() : before; };
    o.afterPass = [&](ModuleOp, StringRef pass) {
      moved += pass == "assign-layouts" ? before - countFirst() : 0;
      return success();
    };
    messages.clear();
    ASSERT_TRUE(succeeded(passes::runPipeline(*random.module, o))) << messages;
  }
  EXPECT_GT(moved, 0);
}

TEST_F(PipelineTest, EveryWaitIsNeeded) {
  int removed = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::RandomGraph random = test::randomGraph(context, seed, {.minOps = 40, .maxOps = 80});
    passes::PipelineOptions o = options(3);
    const runtime::MachineModel machine = runtime::machinePreset("2gpu-pcie3");
    if (seed % 2) {
      test::placeAtRandom(*random.module, seed, 2);
      o.machine = &machine;
    }
    ASSERT_TRUE(succeeded(passes::runPipeline(*random.module, o))) << messages;
    runtime::Schedule schedule = sched::exportSchedule(programOf(*random.module));
    ASSERT_TRUE(runtime::verifySchedule(schedule).empty());
    for (runtime::Command &command : schedule.step.commands)
      for (uint16_t i = 0; i < command.numWaits; ++i) {
        // The last wait of the command in the place of the removed one.
        std::swap(schedule.step.waits[command.firstWait + i],
                  schedule.step.waits[command.firstWait + command.numWaits - 1u]);
        --command.numWaits;
        EXPECT_FALSE(runtime::verifySchedule(schedule).empty())
            << "wait " << i << " of command " << &command - schedule.step.commands.data();
        ++command.numWaits;
        std::swap(schedule.step.waits[command.firstWait + i],
                  schedule.step.waits[command.firstWait + command.numWaits - 1u]);
        ++removed;
      }
  }
  EXPECT_GT(removed, 50); // else the test proves nothing
}

const char *kProgram = R"(
  func.func @main(%x: tensor<8x16xf32> {tressel.name = "x"}, %w: tensor<16x16xf32> {tressel.state = "w"})
      -> (tensor<8x16xf32> {tressel.name = "y"}, tensor<16x16xf32> {tressel.state = "w"}) {
    %0 = tressel.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %1 = tressel.softmax %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = tressel.add %w, %w : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    return %1, %2 : tensor<8x16xf32>, tensor<16x16xf32>
  })";

/// The differential check on a program, and on what `damage` made of it at the stage where `stopAfter` ended.
std::string culprit(MLIRContext &context, std::string &messages, passes::PipelineOptions options, const char *stopAfter,
                    llvm::function_ref<void(ModuleOp)> damage) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kProgram, &context);
  passes::DifferentialCheck check(*module, options);
  options.stopAfter = stopAfter;
  if (failed(passes::runPipeline(*module, options)))
    return "pipeline: " + messages;
  messages.clear();
  if (failed(check.check(*module, "the part before", passes::Contract::Reassociates)))
    return messages;
  damage(*module);
  if (failed(verify(*module)))
    return "invalid: " + messages;
  (void)check.check(*module, "broken-pass", passes::Contract::Exact);
  return messages;
}

TEST_F(PipelineTest, NamesThePassThatChangedTheGraph) {
  std::string found = culprit(context, messages, options(1), "simplify", [](ModuleOp module) {
    module.walk([](Operation *op) {
      if (op->getName().getStringRef() == "tressel.add") // w + w becomes w + w * w, say
        op->setOperand(1, OpBuilder(op).clone(*op)->getResult(0));
    });
  });
  EXPECT_NE(found.find("the pass 'broken-pass' changed the state \"w\""), std::string::npos) << found;
}

TEST_F(PipelineTest, NamesThePassThatOverlaidBuffers) {
  // A wrong offset: the buffer of the first result lies where the kernel after it writes another.
  std::string found = culprit(context, messages, options(1), "plan-memory", [](ModuleOp module) {
    sched::ProgramOp program = programOf(module);
    auto commands = program.getStep().getBody().getOps<sched::LaunchOp>();
    SmallVector<sched::LaunchOp> launches(commands.begin(), commands.end());
    launches.front().getReadsMutable()[0].set(launches.front().getReads()[0]);
    launches.back()->moveBefore(launches.front()); // and an order that reads before it is written
  });
  EXPECT_NE(found.find("the pass 'broken-pass' changed the"), std::string::npos) << found;
}

TEST_F(PipelineTest, ChecksLargeProgramsInPieces) {
  const char *text = R"(func.func @main(%x: tensor<8x8xf32> {tressel.name = "x"}) -> (tensor<8x8xf32> {tressel.name = "y"}) {
    %one = tressel.constant dense<1.0> : tensor<f32>
    %a = tressel.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %b = tressel.add %a, %one : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
    %c = tressel.matmul %b, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = tressel.sub %c, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %d : tensor<8x8xf32>
  })";
  // Each piece holds an op or two; the product is too large even alone.
  passes::PipelineOptions o = options(1);
  o.verifyEach = true;
  o.verifyWork = 700;
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(succeeded(passes::runPipeline(*module, o))) << messages;
  EXPECT_NE(messages.find("is not checked after each pass: interpreting it takes "), std::string::npos) << messages;
  // A fault is found in the piece that has it.
  messages.clear();
  o.afterPass = [](ModuleOp m, StringRef pass) {
    if (pass == "form-clusters")
      m.walk([](Operation *op) {
        if (op->getName().getStringRef() == "tressel.sub")
          op->setOperand(1, op->getOperand(0));
      });
    return success();
  };
  module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(failed(passes::runPipeline(*module, o)));
  EXPECT_NE(messages.find("the pass 'form-clusters' changed the output \"y0\""), std::string::npos) << messages;
}

TEST_F(PipelineTest, AcceptsWhatIsSound) {
  EXPECT_EQ(culprit(context, messages, options(2), "insert-waits", [](ModuleOp) {}), "");
}

TEST_F(PipelineTest, TimesEachPass) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kProgram, &context);
  std::vector<passes::PassTime> times;
  passes::PipelineOptions o = options(1);
  o.timings = &times;
  o.disabled = {"verify-schedule"};
  ASSERT_TRUE(succeeded(passes::runPipeline(*module, o))) << messages;
  std::vector<std::string> names;
  for (const passes::PassTime &time : times)
    names.push_back(time.pass);
  EXPECT_EQ(names, (std::vector<std::string>{"resolve-devices", "simplify",         "decompose-composites",
                                             "simplify",        "autocast",         "decompose-composites",
                                             "shard",           "lower-collectives", "expand-ranks",
                                             "assign-layouts",  "simplify",         "split-reductions",
                                             "recompute-cheap", "form-clusters",    "outline-kernels",
                                             "expand-ranks",    "place-clusters",  "insert-transfers", "stage-copies",
                                             "split-producers", "fit-memory",       "fit-budget",
                                             "settle-kernels",  "build-schedule",   "plan-memory",
                                             "insert-waits",    "form-graphs"}));
}

TEST_F(PipelineTest, ExportsKernelsOperandsAndLines) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kProgram, &context, "net.mlir");
  ASSERT_TRUE(succeeded(passes::runPipeline(*module, options(1)))) << messages;
  runtime::Schedule s = sched::exportSchedule(programOf(*module));
  ASSERT_EQ(s.inputs.size(), 1u);
  EXPECT_EQ(s.inputs[0].name, "x");
  ASSERT_EQ(s.states.size(), 1u);
  EXPECT_EQ(s.states[0].kind, runtime::StateKind::Mutable);
  bool found = false;
  for (const runtime::Command &c : s.step.commands) {
    const runtime::KernelDesc &kernel = s.kernels[c.kernel];
    if (kernel.symbol != "matmul_0")
      continue;
    found = true;
    EXPECT_EQ(kernel.provider, "library");
    EXPECT_EQ(kernel.numInputs, 2);
    EXPECT_EQ(kernel.range, 8);
    ASSERT_EQ(c.numOperands, 3);
    EXPECT_EQ(s.step.operands[c.firstOperand].access, runtime::Access::Read);
    EXPECT_EQ(s.step.operands[c.firstOperand + 2].access, runtime::Access::Write);
    EXPECT_EQ(s.locations[c.loc].op, "matmul");
    EXPECT_EQ(s.locations[c.loc].file, "net.mlir");
    EXPECT_EQ(s.locations[c.loc].line, 4u);
  }
  EXPECT_TRUE(found);
}

} // namespace
