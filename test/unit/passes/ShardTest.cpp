// Programs cut over meshes at random compute what they compute whole: by the interpreter after each pass, and the
// schedule that comes out is proved.
#include "passes/Pipeline.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Stage.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "test/support/Placement.h"
#include "test/support/RandomGraph.h"
#include "tools/tressel-opt/ModelProviders.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/MachineModel.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace tressel;

namespace {

class ShardTest : public ::testing::Test {
protected:
  ShardTest() : handler(&context, [this](Diagnostic &d) { messages += d.str() + "\n"; }) {
    DialectRegistry registry;
    graph::registerDialects(registry);
    sched::registerDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  /// Interprets the program after each pass.
  static passes::PipelineOptions checked(const test::RandomGraph &random, uint64_t seed,
                                         const runtime::MachineModel &machine) {
    passes::PipelineOptions o;
    o.providers = tools::modelProviders();
    o.verifyEach = true;
    if (graph::symbolsOf(*random.module).empty())
      o.inputs = random.inputs;
    o.seed = seed;
    o.machine = &machine;
    return o;
  }
  MLIRContext context;
  std::string messages;
  ScopedDiagnosticHandler handler;
};

TEST_F(ShardTest, RandomProgramsKeepTheirResults) {
  struct Count {
    int64_t onRanks = 0, collected = 0, reduced = 0, uneven = 0, held = 0;
  } count;
  const char *meshes[] = {"data=2", "data=3", "data=2, model=2", "a=2", "data=4", "x=2, y=2, z=2"};
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const runtime::MachineModel machine = runtime::machinePreset("dgx-h100");
    test::RandomGraph random =
        test::randomGraph(context, seed, {.maxOps = 40, .dynamicShare = 0.2, .without = {"shard"}});
    test::cutAtRandom(*random.module, seed, meshes[seed % 6], /*hold=*/seed % 2 == 0);
    std::string text;
    llvm::raw_string_ostream(text) << *random.module;
    passes::PipelineOptions o = checked(random, seed, machine);
    o.afterPass = [&](ModuleOp module, StringRef pass) {
      if (pass == "shard") {
        module.walk([&](Operation *op) {
          count.onRanks += graph::isOnRanks(op);
          count.collected += isa<graph::CollectOp>(op);
          count.reduced += isa<graph::AllReduceOp>(op);
        });
        for (BlockArgument argument : (*module.getOps<func::FuncOp>().begin()).getArguments())
          count.held += graph::isArgumentOnRanks(*module.getOps<func::FuncOp>().begin(), argument.getArgNumber());
        for (Size symbol : graph::symbolsOf(module))
          count.uneven += dim::symbolName(symbol).starts_with("rank.");
      }
      return success();
    };
    messages.clear();
    ASSERT_TRUE(succeeded(passes::runPipeline(*random.module, o))) << messages << "\n" << text;
  }
  EXPECT_GT(count.onRanks, 500);
  EXPECT_GT(count.collected, 200);
  EXPECT_GT(count.reduced, 20);
  EXPECT_GT(count.uneven, 10);
  EXPECT_GT(count.held, 100);
  std::cout << count.onRanks << " ops on ranks, " << count.collected << " values collected, " << count.reduced
            << " all-reduced, " << count.uneven << " programs and axes with parts of different sizes\n";
}

// Micro-batches, one after the other on accelerators that compute stages of the program at random.
TEST_F(ShardTest, RandomPipelinesKeepTheirResults) {
  int64_t carried = 0, ofStages = 0, ordered = 0, held = 0;
  const char *meshes[] = {"micro=3", "data=2, micro=2", "micro=4", "micro=2, data=2"};
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const runtime::MachineModel machine = runtime::machinePreset("dgx-h100");
    test::RandomGraph random =
        test::randomGraph(context, seed, {.maxOps = 40, .dynamicShare = 0.2, .without = {"shard"}});
    test::cutAtRandom(*random.module, seed, meshes[seed % 4], /*hold=*/seed % 2 == 0, /*ofOneRank=*/false,
                      graph::pipelineAttr(&context, "micro", 1 + static_cast<int64_t>(seed / 4 % 3)));
    std::string text;
    llvm::raw_string_ostream(text) << *random.module;
    passes::PipelineOptions o = checked(random, seed, machine);
    o.afterPass = [&](ModuleOp module, StringRef pass) {
      module.walk([&](Operation *op) {
        carried += pass == "lower-collectives" && isa<graph::CarryOp>(op);
        ofStages += pass == "place-clusters" && graph::stageOf(op);
        ordered += pass == "place-clusters" && graph::microBatchOf(op);
      });
      if (pass == "shard")
        for (BlockArgument argument : (*module.getOps<func::FuncOp>().begin()).getArguments())
          held += graph::isArgumentOnRanks(*module.getOps<func::FuncOp>().begin(), argument.getArgNumber());
      return success();
    };
    messages.clear();
    ASSERT_TRUE(succeeded(passes::runPipeline(*random.module, o))) << messages << "\n" << text;
  }
  EXPECT_GT(carried, 10);
  EXPECT_GT(ofStages, 500);
  EXPECT_GT(ordered, 500);
  EXPECT_GT(held, 50);
  std::cout << carried << " sums over micro-batches, " << ofStages << " launches of stages, " << ordered
            << " of one micro-batch, " << held << " arguments on accelerators\n";
}

// Up to where the ranks' program is one rank's, it is interpreted for all; then its schedule is proved.
TEST_F(ShardTest, RandomProgramsOfOneRankKeepTheirResults) {
  int64_t reduced = 0, gathered = 0, scattered = 0, commands = 0;
  const char *meshes[] = {"data=2", "data=3", "data=2, model=2", "data=64", "x=2, y=2, z=2"};
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const runtime::MachineModel machine = runtime::machinePreset("dgx-h100");
    test::RandomGraph random =
        test::randomGraph(context, seed, {.maxOps = 40, .dynamicShare = 0.2, .without = {"shard"}});
    test::cutAtRandom(*random.module, seed, meshes[seed % 5], /*hold=*/false, /*ofOneRank=*/true);
    std::string text;
    llvm::raw_string_ostream(text) << *random.module;
    passes::PipelineOptions o = checked(random, seed, machine);
    o.afterPass = [&](ModuleOp module, StringRef pass) {
      if (pass == "shard")
        module.walk([&](Operation *op) {
          EXPECT_FALSE((isa<graph::DealOp, graph::CollectOp>(op)));
          reduced += isa<graph::AllReduceOp>(op);
          gathered += isa<graph::AllGatherOp>(op);
          scattered += isa<graph::ReduceScatterOp>(op);
        });
      module.walk([&](sched::CollectiveOp) { commands += pass == "build-schedule"; });
      return success();
    };
    messages.clear();
    ASSERT_TRUE(succeeded(passes::runPipeline(*random.module, o))) << messages << "\n" << text;
  }
  EXPECT_GT(reduced, 20);
  EXPECT_GT(gathered, 50);
  EXPECT_GT(commands, 50);
  std::cout << reduced << " values all-reduced, " << gathered << " gathered, " << scattered << " in parts, " << commands
            << " collectives in schedules\n";
}

// Means and variances of what ranks have parts of: where parts are equal, from those of the parts, in one exchange.
TEST_F(ShardTest, StatisticsOfPartsMakeThoseOfTheWhole) {
  int fromParts = 0, whole = 0;
  uint64_t seed = 0;
  for (const char *mesh : {"data=2, model=2", "data=4, model=2", "data=3, model=2"})
    for (const char *sharding : {"data, -, -", "-, -, data", "data, model, -", "data, -, model", "data+model, -, -"})
      for (const std::vector<int> &axes : {std::vector{0}, {0, 2}, {0, 1, 2}, {1}, {2}})
        for (const bool keepdims : {false, true})
          for (const bool ofOneRank : {false, true}) {
            if (ofOneRank && mesh[5] == '3')
              continue; // parts of different sizes, which ranks with one program do not have
            constexpr int sizes[] = {24, 12, 8};
            std::string list, type;
            for (int d : axes)
              list += (list.empty() ? "" : ", ") + std::to_string(d);
            for (int d = 0; d < 3; ++d)
              if (const bool isReduced = llvm::is_contained(axes, d); keepdims || !isReduced)
                type += std::to_string(isReduced ? 1 : sizes[d]) + "x";
            type = "tensor<" + type + "f32>";
            std::string text =
                "func.func @main(%x: tensor<24x12x8xf32> {tressel.name = \"x\", tressel.sharding = \"" +
                std::string(sharding) + "\"}) -> (" + type + " {tressel.name = \"mean\"}, " + type +
                " {tressel.name = \"variance\"}, tensor<24x12x8xf32> {tressel.name = \"y\"}) attributes " +
                "{tressel.mesh = \"" + mesh + "\"" + (ofOneRank ? ", tressel.rank_program" : "") +
                "} {\n  %0:2 = tressel.moments %x {axis = array<i64: " + list + ">" +
                (keepdims ? ", keepdims = true" : "") + "} : (tensor<24x12x8xf32>) -> (" + type + ", " + type + ")\n";
            const std::string scaled = keepdims ? "%0#1, %x : (" + type + ", " : "%x, %x : (tensor<24x12x8xf32>, ";
            text += "  %1 = tressel.mul " + scaled + "tensor<24x12x8xf32>) -> tensor<24x12x8xf32>\n  return %0#0, " +
                    "%0#1, %1 : " + type + ", " + type + ", tensor<24x12x8xf32>\n}\n";
            SCOPED_TRACE(text);
            const runtime::MachineModel machine = runtime::machinePreset("dgx-h100");
            OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
            ASSERT_TRUE(module) << messages;
            passes::Decisions decisions;
            passes::PipelineOptions o;
            o.providers = tools::modelProviders();
            o.verifyEach = true;
            o.seed = ++seed;
            o.machine = &machine;
            o.decisions = &decisions;
            messages.clear();
            ASSERT_TRUE(succeeded(passes::runPipeline(*module, o))) << messages;
            const bool isFromParts = llvm::any_of(decisions, [](const runtime::Decision &decision) {
              return StringRef(decision.text).ends_with("one exchange");
            });
            ++(isFromParts ? fromParts : whole);
          }
  EXPECT_GT(fromParts, 100);
  EXPECT_GT(whole, 50);
  std::cout << fromParts << " from parts, " << whole << " otherwise\n";
}

} // namespace
