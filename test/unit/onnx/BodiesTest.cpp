// If, Loop and Scan: what their bodies see, which op they become, and what that computes.
#include "ModelBuilder.h"
#include "frontend/onnx/Import.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace tressel {
using namespace test;
using onnx::ModelFile;
using op::HostTensor;

namespace {

HostTensor floats(const Shape &shape, const std::vector<float> &values) {
  HostTensor t = HostTensor::allocate({f32, shape});
  std::copy(values.begin(), values.end(), t.as<float>());
  return t;
}
HostTensor flag(bool value) {
  HostTensor t = HostTensor::allocate({DType::boolean, {}});
  *t.as<uint8_t>() = value;
  return t;
}
HostTensor number(int64_t value) {
  HostTensor t = HostTensor::allocate({i64, {}});
  *t.as<int64_t>() = value;
  return t;
}

class OnnxBodies : public ::testing::Test {
protected:
  OnnxBodies() {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  mlir::func::FuncOp import(const ModelBuilder &b, bool keepDynamic = false) {
    onnx::ImportOptions options;
    options.keepDynamic = keepDynamic;
    module = onnx::import(ModelFile::parse(b.bytes(), "m.onnx"), context, options).module;
    return module->lookupSymbol<mlir::func::FuncOp>("main");
  }
  std::string refusal(const ModelBuilder &b) {
    try {
      import(b);
      return "";
    } catch (const InputError &e) {
      return e.what();
    }
  }
  /// How often each op stands in the imported program, in bodies too.
  int count(llvm::StringRef op) {
    int n = 0;
    module->walk([&](mlir::Operation *o) { n += o->getName().stripDialect() == op; });
    return n;
  }
  std::vector<std::vector<float>> run(const std::vector<HostTensor> &inputs) {
    auto result = graph::interpret(module->lookupSymbol<mlir::func::FuncOp>("main"), inputs);
    EXPECT_EQ(result.error, "");
    std::vector<std::vector<float>> outputs;
    for (const HostTensor &t : result.outputs)
      outputs.emplace_back(t.as<float>(), t.as<float>() + t.type.shape.numElements());
    return outputs;
  }
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

using Floats = std::vector<float>;

/// A branch: what `op` makes of x and a constant.
ModelBuilder branch(const std::string &op, float constant) {
  ModelBuilder b;
  b.floats("k", {1}, {constant});
  b.node(op, {"x", "k"}, {"r"});
  b.outputs({"r"});
  return b;
}

TEST_F(OnnxBodies, IfByAnInputIsACond) {
  ModelBuilder b;
  b.input("p", {}, ::onnx::TensorProto::BOOL).input("x", {2}).output("y");
  auto &node = b.node("If", {"p"}, {"h"});
  setBody(node, "then_branch", branch("Add", 10));
  setBody(node, "else_branch", branch("Mul", 3));
  b.floats("k", {1}, {100}); // of the same name as those inside
  b.node("Add", {"h", "k"}, {"y"});
  import(b);
  EXPECT_EQ(count("cond"), 1);
  EXPECT_EQ(run({flag(true), floats({2}, {1, 2})})[0], (Floats{111, 112}));
  EXPECT_EQ(run({flag(false), floats({2}, {1, 2})})[0], (Floats{103, 106}));
}

TEST_F(OnnxBodies, IfByAConstantIsItsBranch) {
  ModelBuilder b;
  b.flag("p", false);
  b.input("x", {2}).output("y");
  auto &node = b.node("If", {"p"}, {"y"});
  setBody(node, "then_branch", branch("Unique", 10)); // would be unsupported
  setBody(node, "else_branch", branch("Mul", 3));
  import(b);
  EXPECT_EQ(count("cond"), 0);
  EXPECT_EQ(run({floats({2}, {1, 2})})[0], (Floats{3, 6}));
}

TEST_F(OnnxBodies, WhatBothBranchesKnowStaysKnown) {
  ModelBuilder shape;
  shape.ints("s", {3, 2});
  shape.outputs({"s"});
  ModelBuilder b;
  b.input("p", {}, ::onnx::TensorProto::BOOL).input("x", {2, 3}).output("y");
  auto &node = b.node("If", {"p"}, {"h"});
  setBody(node, "then_branch", shape);
  setBody(node, "else_branch", shape);
  b.node("Reshape", {"x", "h"}, {"y"});
  import(b);
  EXPECT_EQ(count("cond"), 0);
  EXPECT_EQ(count("reshape"), 1);
}

TEST_F(OnnxBodies, RefusesBranchesOfDifferentTypes) {
  ModelBuilder wide;
  wide.node("Concat", {"x", "x"}, {"r"}).add_attribute()->set_name("axis");
  wide.model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->set_i(0);
  wide.outputs({"r"});
  ModelBuilder b;
  b.input("p", {}, ::onnx::TensorProto::BOOL).input("x", {2}).output("y");
  auto &node = b.node("If", {"p"}, {"y"}, "choice");
  setBody(node, "then_branch", branch("Add", 10));
  setBody(node, "else_branch", wide);
  EXPECT_EQ(refusal(b),
            "m.onnx: not supported:\n  If (opset 17) at node 'choice': result 0 is f32[2] in one branch and "
            "f32[4] in the other, and which one runs is known only when the program does");
}

TEST_F(OnnxBodies, ListsWhatIsUnsupportedInBodies) {
  ModelBuilder inner;
  inner.node("Unique", {"x"}, {"u"}, "memory");
  inner.node("Neg", {"u"}, {"r"}, "");
  inner.outputs({"r"});
  ModelBuilder b;
  b.input("p", {}, ::onnx::TensorProto::BOOL).input("x", {2}).output("y");
  auto &node = b.node("If", {"p"}, {"y"}, "choice");
  setBody(node, "then_branch", inner);
  setBody(node, "else_branch", branch("Add", 10));
  EXPECT_EQ(refusal(b), "m.onnx: not supported:\n  Unique (opset 17) at node 'choice.then_branch/memory'");
}

/// (i, p, a, ...) -> (goes on, ...): a + step, and what is stacked.
ModelBuilder counting() {
  ModelBuilder b;
  b.input("i", {}, ::onnx::TensorProto::INT64).input("p", {}, ::onnx::TensorProto::BOOL).input("a", {2});
  b.node("Add", {"a", "step"}, {"next"});
  b.node("Identity", {"p"}, {"goes"});
  b.node("Neg", {"next"}, {"seen"});
  b.outputs({"goes", "next", "seen"});
  return b;
}
ModelBuilder loopModel(const ModelBuilder &body, const std::vector<std::string> &inputs,
                       const std::vector<std::string> &outputs) {
  ModelBuilder b;
  b.input("x", {2});
  b.floats("step", {2}, {1, 10});
  setBody(b.node("Loop", inputs, outputs, "loop"), "body", body);
  for (const std::string &name : outputs)
    if (!name.empty())
      b.output(name);
  return b;
}

TEST_F(OnnxBodies, LoopOfAKnownCountIsAScan) {
  ModelBuilder b = loopModel(counting(), {"n", "", "x"}, {"last", "all"});
  b.ints("n", {3});
  import(b);
  EXPECT_EQ(count("scan"), 1);
  auto out = run({floats({2}, {0, 1})});
  EXPECT_EQ(out[0], (Floats{3, 31}));
  EXPECT_EQ(out[1], (Floats{-1, -11, -2, -21, -3, -31}));
}

TEST_F(OnnxBodies, LoopWithoutIterations) {
  ModelBuilder b = loopModel(counting(), {"n", "", "x"}, {"last", "all"});
  b.ints("n", {-3});
  import(b);
  auto out = run({floats({2}, {0, 1})});
  EXPECT_EQ(out[0], (Floats{0, 1}));
  EXPECT_EQ(out[1], Floats{});
}

TEST_F(OnnxBodies, LoopOfASymbolicCount) {
  ModelBuilder b;
  b.input("x", {2}).input("rows", {-1, 2}).output("last").output("all");
  b.floats("step", {2}, {1, 10});
  b.ints("zero", {0});
  b.node("Shape", {"rows"}, {"shape"});
  b.node("Gather", {"shape", "zero"}, {"n"});
  setBody(b.node("Loop", {"n", "", "x"}, {"last", "all"}), "body", counting());
  import(b, true);
  EXPECT_EQ(count("scan"), 1);
  auto out = run({floats({2}, {0, 1}), floats({2, 2}, {0, 0, 0, 0})});
  EXPECT_EQ(out[0], (Floats{2, 21}));
  EXPECT_EQ(out[1], (Floats{-1, -11, -2, -21}));
}

TEST_F(OnnxBodies, LoopOfAnUnknownCountCarries) {
  ModelBuilder b = loopModel(counting(), {"n", "", "x"}, {"last"});
  b.input("n", {}, ::onnx::TensorProto::INT64);
  import(b);
  EXPECT_EQ(count("while"), 1);
  EXPECT_EQ(run({floats({2}, {0, 1}), number(4)})[0], (Floats{4, 41}));
  EXPECT_EQ(run({floats({2}, {0, 1}), number(0)})[0], (Floats{0, 1}));
}

/// As long as the first element is below 2.5.
ModelBuilder limited() {
  ModelBuilder b = counting();
  b.model.mutable_graph()->mutable_node(1)->Clear();
  auto &node = *b.model.mutable_graph()->mutable_node(1);
  node.set_op_type("ReduceMin"); // of [n, 10 n + 1] that is the first
  node.add_input("next");
  node.add_output("least");
  setInt(node, "keepdims", 0);
  b.floats("limit", {}, {2.5});
  b.node("Less", {"least", "limit"}, {"goes"});
  return b;
}

TEST_F(OnnxBodies, LoopThatDecidesWhenToEnd) {
  import(loopModel(limited(), {"", "", "x"}, {"last"}));
  EXPECT_EQ(count("while"), 1);
  EXPECT_EQ(run({floats({2}, {0, 1})})[0], (Floats{3, 31}));
  EXPECT_EQ(run({floats({2}, {5, 6})})[0], (Floats{6, 16}));
}

TEST_F(OnnxBodies, RefusesStacksOfUnknownLength) {
  std::string text = refusal(loopModel(limited(), {"", "", "x"}, {"last", "all"}));
  EXPECT_NE(text.find("Loop (opset 17) at node 'loop': whether it goes on depends on the input's values"),
            std::string::npos)
      << text;
  ModelBuilder b = loopModel(counting(), {"n", "", "x"}, {"last", "all"});
  b.input("n", {}, ::onnx::TensorProto::INT64);
  text = refusal(b);
  EXPECT_NE(text.find("number of iterations that depends on the input's values"), std::string::npos) << text;
}

TEST_F(OnnxBodies, RefusesALoopWithoutEnd) {
  ModelBuilder body = counting();
  body.model.mutable_graph()->mutable_output(0)->set_name("p");
  EXPECT_NE(refusal(loopModel(body, {"", "", "x"}, {"last"})).find("never ends"), std::string::npos);
}

TEST_F(OnnxBodies, LoopThatNeedsItsNumberIsUnrolled) {
  ModelBuilder body;
  body.input("i", {}, ::onnx::TensorProto::INT64).input("p", {}, ::onnx::TensorProto::BOOL).input("a", {-1});
  body.ints("one", {1});
  body.ints("shape1", {1});
  body.node("Reshape", {"i", "shape1"}, {"from"});
  body.node("Add", {"from", "one"}, {"to"});
  body.node("Slice", {"x", "from", "to"}, {"part"}); // x[i : i + 1]
  setInt(body.node("Concat", {"a", "part"}, {"longer"}), "axis", 0);
  body.outputs({"p", "longer", "part"});
  ModelBuilder b = loopModel(body, {"n", "", "x"}, {"last", "all"});
  b.ints("n", {2});
  import(b);
  EXPECT_EQ(count("scan"), 0);
  auto out = run({floats({2}, {3, 4})});
  EXPECT_EQ(out[0], (Floats{3, 4, 3, 4}));
  EXPECT_EQ(out[1], (Floats{3, 4}));
}

TEST_F(OnnxBodies, BodiesSeeAllNamesAround) {
  ModelBuilder inner; // x from outside of all, a from the loop, k its own
  inner.floats("k", {1}, {1000});
  inner.node("Add", {"x", "a"}, {"s"});
  inner.node("Add", {"s", "k"}, {"r"});
  inner.outputs({"r"});
  ModelBuilder same;
  same.outputs({"a"}); // a name from outside, as it is
  ModelBuilder body;
  body.input("i", {}, ::onnx::TensorProto::INT64).input("p", {}, ::onnx::TensorProto::BOOL).input("a", {2});
  body.ints("one", {1});
  body.node("Equal", {"i", "one"}, {"second"});
  auto &choice = body.node("If", {"second"}, {"next"});
  setBody(choice, "then_branch", inner);
  setBody(choice, "else_branch", same);
  body.outputs({"p", "next"});
  ModelBuilder b = loopModel(body, {"n", "", "step"}, {"last"});
  b.ints("n", {3});
  import(b);
  EXPECT_EQ(count("scan"), 1);
  EXPECT_EQ(count("cond"), 1);
  EXPECT_EQ(run({floats({2}, {100, 200})})[0], (Floats{1101, 1210}));
}

ModelBuilder summing(int64_t opset = 17) {
  ModelBuilder b(opset);
  b.input("sum", {2}).input("next", {2});
  b.node("Add", {"sum", "next"}, {"s"});
  b.node("Identity", {"s"}, {"seen"});
  b.outputs({"s", "seen"});
  return b;
}

TEST_F(OnnxBodies, ScanAlongAnyAxisInAnyDirection) {
  ModelBuilder b;
  b.input("start", {2}).input("xs", {2, 3}).output("last").output("all");
  auto &node = b.node("Scan", {"start", "xs"}, {"last", "all"});
  setInt(node, "num_scan_inputs", 1);
  setInts(node, "scan_input_axes", {1});
  setInts(node, "scan_input_directions", {1});
  setInts(node, "scan_output_axes", {-1});
  setInts(node, "scan_output_directions", {1});
  setBody(node, "body", summing());
  import(b);
  auto out = run({floats({2}, {100, 200}), floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(out[0], (Floats{106, 215}));
  EXPECT_EQ(out[1], (Floats{106, 105, 103, 215, 211, 206})); // of 3, 3 + 2, 3 + 2 + 1, the last first
}

TEST_F(OnnxBodies, OldScanHasABatch) {
  ModelBuilder b(8);
  b.input("start", {2, 2}).input("xs", {2, 3, 2}).output("last").output("all");
  auto &node = b.node("Scan", {"", "start", "xs"}, {"last", "all"});
  setInt(node, "num_scan_inputs", 1);
  setInts(node, "directions", {1});
  setBody(node, "body", summing(8));
  import(b);
  auto out = run({floats({2, 2}, {0, 0, 100, 100}), floats({2, 3, 2}, {1, 2, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1})});
  EXPECT_EQ(out[0], (Floats{9, 12, 103, 103}));
  EXPECT_EQ(out[1], (Floats{5, 6, 8, 10, 9, 12, 101, 101, 102, 102, 103, 103}));
}

/// Hidden states h[t] = tanh(x[t] + h[t - 1]), in both directions.
ModelBuilder recurrent(int64_t steps) {
  ModelBuilder b;
  b.input("x", {steps, 1, 1}).output("y").output("last");
  b.floats("w", {2, 1, 1}, {1, 1});
  b.floats("r", {2, 1, 1}, {1, 1});
  b.node("RNN", {"x", "w", "r"}, {"y", "last"}).add_attribute()->set_name("direction");
  auto &direction = *b.model.mutable_graph()->mutable_node(0)->mutable_attribute(0);
  direction.set_type(::onnx::AttributeProto::STRING);
  direction.set_s("bidirectional");
  return b;
}

TEST_F(OnnxBodies, RecurrentNetworksAreOneScanPerDirection) {
  import(recurrent(3));
  EXPECT_EQ(count("scan"), 2);
  const HostTensor x = floats({3, 1, 1}, {0.5, -1, 2});
  const float a = std::tanh(0.5f), b = std::tanh(-1 + a), c = std::tanh(2 + b);
  const float r = std::tanh(2.f), q = std::tanh(-1 + r), p = std::tanh(0.5f + q);
  auto out = run({x});
  const Floats want{a, p, b, q, c, r}; // [steps, directions]
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(out[0][i], want[i], 1e-6) << i;
  EXPECT_NEAR(out[1][0], c, 1e-6);
  EXPECT_NEAR(out[1][1], p, 1e-6);

  int ops = 0;
  module->walk([&](mlir::Operation *) { ++ops; });
  import(recurrent(3000)); // of the same size
  module->walk([&](mlir::Operation *) { --ops; });
  EXPECT_EQ(ops, 0);

  import(recurrent(-1), true); // of any length
  EXPECT_EQ(count("scan"), 2);
  auto open = run({x});
  EXPECT_EQ(open, out);
}

TEST_F(OnnxBodies, RefusesBodiesThatDoNotFit) {
  ModelBuilder b = loopModel(summing(), {"n", "", "x"}, {"last"});
  b.ints("n", {3});
  EXPECT_EQ(refusal(b), "m.onnx: node 'loop' (Loop): its body takes 2 values and gives 2 for 1 that are carried");

  ModelBuilder wide = counting();
  wide.model.mutable_graph()->mutable_output(0)->set_name("next");
  ModelBuilder flags = loopModel(wide, {"n", "", "x"}, {"last"});
  flags.ints("n", {3});
  EXPECT_EQ(refusal(flags), "m.onnx: node 'loop' (Loop): the body's condition must be one bool, not f32[2]");
}

TEST_F(OnnxBodies, NestingIsBounded) {
  ModelBuilder body = branch("Add", 1);
  for (int depth = 0; depth < 12; ++depth) {
    ModelBuilder outer;
    auto &node = outer.node("If", {"p"}, {"r"}, "level");
    setBody(node, "then_branch", body);
    setBody(node, "else_branch", branch("Mul", 2));
    outer.outputs({"r"});
    body = outer;
  }
  ModelBuilder b;
  b.input("p", {}, ::onnx::TensorProto::BOOL).input("x", {2}).output("y");
  auto &node = b.node("If", {"p"}, {"y"});
  setBody(node, "then_branch", body);
  setBody(node, "else_branch", body);
  EXPECT_NE(refusal(b).find("bodies within more than 8 others"), std::string::npos) << refusal(b);
}

/// Loops within loops, each of which must be unrolled: a small file that asks for more work than there is time.
TEST_F(OnnxBodies, LargeBodiesAreNoUnrolledOnes) {
  ModelBuilder large;
  large.node("Neg", {"x"}, {"v0"});
  for (int i = 1; i < 60'000; ++i)
    large.node("Neg", {"v" + std::to_string(i - 1)}, {"v" + std::to_string(i)});
  large.outputs({"v59999"});
  ModelBuilder b;
  b.flag("p", true);
  b.input("x", {1}).output("y");
  auto &node = b.node("If", {"p"}, {"y"});
  setBody(node, "then_branch", large);
  setBody(node, "else_branch", branch("Mul", 3));
  EXPECT_EQ(refusal(b), "");
}

TEST_F(OnnxBodies, UnrollingIsBounded) {
  ModelBuilder body;
  body.input("i", {}, ::onnx::TensorProto::INT64).input("p", {}, ::onnx::TensorProto::BOOL).input("a", {-1});
  setInt(body.node("Concat", {"a", "x"}, {"longer"}), "axis", 0);
  body.outputs({"p", "longer"});
  for (int depth = 0; depth < 5; ++depth) {
    ModelBuilder outer;
    outer.input("i", {}, ::onnx::TensorProto::INT64).input("p", {}, ::onnx::TensorProto::BOOL).input("a", {-1});
    setBody(outer.node("Loop", {"n", "", "a"}, {"longer"}), "body", body);
    outer.outputs({"p", "longer"});
    body = outer;
  }
  ModelBuilder b = loopModel(body, {"n", "", "x"}, {"last"});
  b.ints("n", {200});
  EXPECT_NE(refusal(b).find("where loops are unrolled"), std::string::npos) << refusal(b);
}

} // namespace
} // namespace tressel
