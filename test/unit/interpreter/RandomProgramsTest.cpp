// Random programs are the same for a seed, stay as they are when run, and shrink to the op at fault.
#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Interpreter.h"
#include "test/support/Blur.h"
#include "test/support/RandomGraph.h"
#include "test/support/ShrinkGraph.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

#include <cmath>

using namespace tressel;

namespace {

class RandomPrograms : public testing::Test {
protected:
  RandomPrograms() {
    load(context);
    load(another);
  }
  static void load(mlir::MLIRContext &context) {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  static std::string text(mlir::ModuleOp module) {
    std::string result;
    llvm::raw_string_ostream(result) << module;
    return result;
  }
  mlir::MLIRContext context, another; // names of large constants are unique in a context
};

TEST_F(RandomPrograms, ASeedIsAProgram) {
  test::RandomGraph a = test::randomGraph(context, 5), b = test::randomGraph(another, 5),
                    c = test::randomGraph(context, 6);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*a.module)));
  EXPECT_EQ(text(*a.module), text(*b.module));
  EXPECT_NE(text(*a.module), text(*c.module));
  ASSERT_EQ(a.inputs.size(), b.inputs.size());
  for (size_t i = 0; i < a.inputs.size(); ++i)
    EXPECT_EQ(op::interp::compare(a.inputs[i], b.inputs[i]), "");
  EXPECT_GE(test::countOps(*a.module), 5);
}

TEST_F(RandomPrograms, ValuesAreFinite) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    test::RandomGraph g = test::randomGraph(context, seed);
    auto function = g.module->lookupSymbol<mlir::func::FuncOp>("main");
    graph::Interpretation run = graph::interpret(function, g.inputs, [&](mlir::Operation *, auto, auto results) {
      for (const op::HostTensor &tensor : results)
        for (int64_t i = 0; i < tensor.type.shape.numElements() && tensor.type.dtype == f32; ++i)
          ASSERT_TRUE(std::isfinite(tensor.as<float>()[i]));
    });
    EXPECT_EQ(run.error, "");
  }
}

TEST_F(RandomPrograms, NoSeedHidesWhatRoundingDecides) {
  // f64 of what f32 rounded: two who compute the first op well differ in the second. A single element decides.
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
func.func @main(%x: tensor<f32>, %y: tensor<f64>) -> tensor<f64> {
  %0 = tressel.silu %x : (tensor<f32>) -> tensor<f32>
  %1 = tressel.atan2 %0, %y : (tensor<f32>, tensor<f64>) -> tensor<f64>
  return %1 : tensor<f64>
})", &context);
  ASSERT_TRUE(module);
  op::HostTensor x = op::HostTensor::allocate({f32, {}}), y = op::HostTensor::allocate({f64, {}});
  *x.as<float>() = 0.7f, *y.as<double>() = -1.3;
  test::Computed computed;
  for (uint64_t seed = 1; seed <= 2000; ++seed)
    ASSERT_FALSE(test::isHarmless(module->lookupSymbol<mlir::func::FuncOp>("main"), {x, y}, seed, computed)) << seed;
}

TEST_F(RandomPrograms, HaveBranchesAndLoopsInEachOther) {
  int conds = 0, whiles = 0, scans = 0, inner = 0, changing = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    test::RandomGraph g = test::randomGraph(context, seed);
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*g.module)));
    auto function = g.module->lookupSymbol<mlir::func::FuncOp>("main");
    function.walk([&](graph::ControlOpInterface op) {
      conds += llvm::isa<graph::CondOp>(*op);
      whiles += llvm::isa<graph::WhileOp>(*op);
      scans += llvm::isa<graph::ScanOp>(*op);
      inner += op->getParentOp() != function;
    });
    // Another iteration computes something else: what an op in a body gave last is not what it gives now.
    test::Computed last;
    bool differs = false;
    EXPECT_EQ(graph::interpret(function, g.inputs,
                               [&](mlir::Operation *op, auto, auto results) {
                                 for (auto [value, result] : llvm::zip_equal(op->getResults(), results)) {
                                   auto [at, isNew] = last.try_emplace(value, result);
                                   differs |= !isNew && graph::infoOf(op) && isFloat(result.type.dtype) &&
                                              !op::interp::compare(result, at->second).empty();
                                   at->second = result;
                                 }
                               })
                  .error,
              "");
    changing += differs;
  }
  for (int count : {conds, whiles, scans, inner, changing})
    EXPECT_GE(count, 5);
}

/// The fault is "holds an op whose result is a reduction": whatever surrounds it goes.
TEST_F(RandomPrograms, ShrinkToTheOpAtFault) {
  auto holdsReduction = [](mlir::ModuleOp module) {
    bool found = false;
    module.walk([&](mlir::Operation *op) {
      const op::OpInfo *info = graph::infoOf(op);
      found |= info && info->family == op::Family::Reduction;
    });
    return found;
  };
  int shrunk = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    test::RandomGraph g = test::randomGraph(context, seed);
    if (!holdsReduction(*g.module) || test::countOps(*g.module) < 15)
      continue;
    test::RandomGraph small = test::shrinkGraph(*g.module, g.inputs, [&](mlir::ModuleOp module, auto) {
      EXPECT_TRUE(mlir::succeeded(mlir::verify(module)));
      return holdsReduction(module);
    });
    EXPECT_TRUE(holdsReduction(*small.module));
    EXPECT_LE(test::countOps(*small.module), 4 /* of a loop, say */) << text(*small.module);
    auto function = small.module->lookupSymbol<mlir::func::FuncOp>("main");
    EXPECT_EQ(graph::interpret(function, small.inputs).error, "");
    ++shrunk;
  }
  EXPECT_GT(shrunk, 0);
}

} // namespace
