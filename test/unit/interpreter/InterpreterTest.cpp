// Functions on host tensors: the graph, clusters, outlined kernels, and errors with their place.
#include "ir/interpreter/Interpreter.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Element.h"

#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace tressel;

namespace {

op::HostTensor tensor(DType type, Shape shape, std::vector<double> values) {
  op::HostTensor t = op::HostTensor::allocate({type, shape});
  for (size_t i = 0; i < values.size(); ++i)
    op::interp::store(t, static_cast<int64_t>(i), values[i]);
  return t;
}

class Interpreter : public testing::Test {
protected:
  Interpreter() {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  graph::Interpretation run(const char *text, std::vector<op::HostTensor> inputs) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << "the text does not parse";
    if (!module)
      return {{}, "the text does not parse"};
    auto function = module->lookupSymbol<mlir::func::FuncOp>("main");
    return graph::interpret(function, inputs);
  }
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

const char *const kGraph = R"(
  func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %c = tressel.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %0 = tressel.add %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %1 = tressel.mul %0, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %1, %0 : tensor<2xf32>, tensor<2xf32>
  })";

TEST_F(Interpreter, RunsAGraph) {
  auto result = run(kGraph, {tensor(f32, {2}, {1, 2}), tensor(f32, {2}, {10, 20})});
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(op::interp::compare(result.outputs[0], tensor(f32, {2}, {11, 44})), "");
  EXPECT_EQ(op::interp::compare(result.outputs[1], tensor(f32, {2}, {11, 22})), "");
}

TEST_F(Interpreter, RefusesOtherInputs) {
  EXPECT_NE(run(kGraph, {tensor(f32, {2}, {1, 2})}).error.find("takes 2 inputs, not 1"), std::string::npos);
  EXPECT_NE(
      run(kGraph, {tensor(f32, {2}, {1, 2}), tensor(f32, {3}, {1, 2, 3})}).error.find("argument 1 is given f32[3]"),
      std::string::npos);
}

TEST_F(Interpreter, RunsClustersKernelsAndPacks) {
  auto result = run(R"(
    tressel.kernel @double_0(%a: tensor<2xf32>) -> tensor<2xf32> attributes {provider = "generated"} {
      %0 = tressel.add %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      tressel.yield %0 : tensor<2xf32>
    }
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tressel.cluster(%x) {provider = "generated"} : (tensor<2xf32>) -> tensor<2xf32> {
      ^bb0(%a: tensor<2xf32>):
        %1 = tressel.negative %a : (tensor<2xf32>) -> tensor<2xf32>
        tressel.yield %1 : tensor<2xf32>
      }
      %p = tressel.pack %x provider "library" params "{}" : tensor<2xf32> -> tensor<8xui8>
      %2 = tressel.launch @double_0(%0) : (tensor<2xf32>) -> tensor<2xf32>
      return %2 : tensor<2xf32>
    })",
                    {tensor(f32, {2}, {1, 2})});
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(op::interp::compare(result.outputs[0], tensor(f32, {2}, {-2, -4})), "");
}

TEST_F(Interpreter, ErrorsNameThePlaceAndTheOp) {
  auto result = run(R"(
    func.func @main(%x: tensor<2xf32>, %i: tensor<i64>) -> tensor<f32> {
      %0 = tressel.take %x, %i {axis = 0 : i64} : (tensor<2xf32>, tensor<i64>) -> tensor<f32> loc("model.cpp":42:1)
      return %0 : tensor<f32>
    })",
                    {tensor(f32, {2}, {1, 2}), tensor(i64, {}, {7})});
  EXPECT_EQ(result.error, "model.cpp:42: take: index 7 is outside the dimension of size 2");
}

TEST_F(Interpreter, ShowsEveryValue) {
  module = mlir::parseSourceString<mlir::ModuleOp>(kGraph, &context);
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<op::HostTensor> inputs = graph::randomInputs(function, 1);
  int seen = 0;
  ASSERT_TRUE(graph::interpret(function, inputs, [&](mlir::Operation *op, auto operands, auto results) {
    ASSERT_EQ(operands.size(), op->getNumOperands());
    for (auto [value, tensor] : llvm::zip_equal(op->getOperands(), operands))
      EXPECT_EQ(graph::fromMlir(value.getType()), tensor.type);
    for (auto [value, tensor] : llvm::zip_equal(op->getResults(), results))
      EXPECT_EQ(graph::fromMlir(value.getType()), tensor.type);
    ++seen;
  }));
  EXPECT_EQ(seen, 3);
}

TEST_F(Interpreter, GoesOnWithWhatAnObserverPutsInPlaceOfAResult) {
  module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tressel.negative %x : (tensor<2xf32>) -> tensor<2xf32>
      %1 = tressel.negative %0 : (tensor<2xf32>) -> tensor<2xf32>
      return %1 : tensor<2xf32>
    })",
                                                   &context);
  ASSERT_TRUE(module);
  const op::HostTensor x = tensor(f32, {2}, {1, 2}), other = tensor(f32, {2}, {3, 4});
  bool first = true;
  auto result = graph::interpret(module->lookupSymbol<mlir::func::FuncOp>("main"), x,
                                 [&](mlir::Operation *, auto, llvm::MutableArrayRef<op::HostTensor> results) {
                                   if (std::exchange(first, false))
                                     results[0] = other;
                                 });
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(op::interp::compare(result.outputs[0], tensor(f32, {2}, {-3, -4})), "");
}

TEST_F(Interpreter, ALoopThatRunsMoreOftenThanItPromisesFails) {
  for (const auto &[bound, fails] : {std::pair{"3", true}, {"4", false}}) { // 1, 2, 4, 8, 16
    module = mlir::parseSourceString<mlir::ModuleOp>(std::string(R"(
    func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
      %0 = tressel.while at most )") + bound + R"( carries(%x : tensor<1xf32>) -> tensor<1xf32> {
      ^bb0(%a: tensor<1xf32>):
        %limit = tressel.constant dense<10.0> : tensor<1xf32>
        %1 = tressel.less %a, %limit : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
        tressel.yield %1 : tensor<1xi1>
      } do {
      ^bb0(%a: tensor<1xf32>):
        %1 = tressel.add %a, %a : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
        tressel.yield %1 : tensor<1xf32>
      }
      return %0 : tensor<1xf32>
    })",
                                                     &context);
    ASSERT_TRUE(module);
    const auto result = graph::interpret(module->lookupSymbol<mlir::func::FuncOp>("main"), tensor(f32, {1}, {1}));
    EXPECT_EQ(result.error.find("more often than the 3 times") != std::string::npos, fails) << result.error;
  }
}

} // namespace
