// What an op may be given is checked before its importer runs, by one table.
#include "frontend/onnx/Schema.h"
#include "ModelBuilder.h"
#include "frontend/onnx/Import.h"
#include "frontend/onnx/OpTable.h"
#include "ir/graph/Graph.h"

#include <gtest/gtest.h>

namespace tressel {
using namespace test;
using onnx::ModelFile;

namespace {

class OnnxSchema : public ::testing::Test {
protected:
  OnnxSchema() {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  std::string refusal(const ModelBuilder &b) {
    try {
      onnx::import(ModelFile::parse(b.bytes(), "m.onnx"), context, {});
      return "";
    } catch (const InputError &e) {
      return e.what();
    }
  }
  /// One node `op` of these inputs, which are the model's.
  static ModelBuilder single(const std::string &op, const std::vector<std::pair<std::vector<int64_t>, int>> &inputs, int64_t opset = 17) {
    ModelBuilder b(opset);
    std::vector<std::string> names;
    for (const auto &[shape, type] : inputs) {
      names.push_back("x" + std::to_string(names.size()));
      b.input(names.back(), shape, type);
    }
    b.outputs({"y"}); // of whatever type is computed
    b.node(op, names, {"y"}, "n");
    return b;
  }
  static constexpr int F32 = ::onnx::TensorProto::FLOAT, F64 = ::onnx::TensorProto::DOUBLE, I32 = ::onnx::TensorProto::INT32,
                       I64 = ::onnx::TensorProto::INT64, Bool = ::onnx::TensorProto::BOOL;
  mlir::MLIRContext context;
};

TEST_F(OnnxSchema, EveryImportedOpHasOne) {
  int ops = 0;
  for (auto family : {onnx::elementwiseOps, onnx::shapeOps, onnx::reductionOps, onnx::linearOps, onnx::windowOps, onnx::normOps, onnx::attentionOps,
                      onnx::lossOps, onnx::resizeOps, onnx::recurrentOps, onnx::signalOps, onnx::quantizeOps, onnx::selectOps, onnx::controlOps})
    for (const onnx::OpEntry &entry : family()) {
      ++ops;
      const onnx::OpSchema *schema = onnx::findSchema(entry.type, entry.since);
      ASSERT_NE(schema, nullptr) << entry.type;
      for (const onnx::InputSchema &input : schema->inputs) {
        EXPECT_NE(input.types, 0u) << entry.type << " " << input.name;
        EXPECT_FALSE(input.ranks.empty()) << entry.type << " " << input.name;
      }
    }
  EXPECT_GT(ops, 150);
}

/// An LSTM of hidden size 3 whose peepholes are a vector.
ModelBuilder vectorOfPeepholes() {
  ModelBuilder b;
  b.input("x", {5, 1, 2}).output("y");
  b.floats("w", {1, 12, 2}, std::vector<float>(24, 0.1f));
  b.floats("r", {1, 12, 3}, std::vector<float>(36, 0.1f));
  b.floats("p", {2}, {1, 2});
  setInt(b.node("LSTM", {"x", "w", "r", "", "", "", "", "p"}, {"y"}, "lstm"), "hidden_size", 3);
  return b;
}

TEST_F(OnnxSchema, PeepholesOfAnLstm) {
  EXPECT_EQ(refusal(vectorOfPeepholes()), "m.onnx: node 'lstm' (LSTM): input 7 'P' needs 2 dimensions, but is f32[2]");
  ModelBuilder narrow = vectorOfPeepholes();
  narrow.floats("q", {1, 6}, std::vector<float>(6, 1));
  narrow.model.mutable_graph()->mutable_node(0)->set_input(7, "q");
  EXPECT_NE(refusal(narrow).find("peepholes of type f32[1, 6] do not fit 3 hidden values"), std::string::npos) << refusal(narrow);
  narrow.model.mutable_graph()->mutable_initializer(3)->set_dims(1, 9);
  narrow.model.mutable_graph()->mutable_initializer(3)->mutable_float_data()->Resize(9, 1);
  EXPECT_EQ(refusal(narrow), "");
}

TEST_F(OnnxSchema, ElementTypes) {
  EXPECT_EQ(refusal(single("Relu", {{{2}, I64}}, 13)),
            "m.onnx: node 'n' (Relu): input 0 'X' needs elements of type f32, f64, f16 or bf16 from operator set 13 on, but is i64[2]");
  EXPECT_EQ(refusal(single("Relu", {{{2}, I64}}, 14)), "");
  EXPECT_EQ(refusal(single("Add", {{{2}, F32}, {{2}, F64}})),
            "m.onnx: node 'n' (Add): input 1 'B' needs the element type of 'A', which is f32[2], but is f64[2]");
  EXPECT_EQ(refusal(single("Where", {{{2}, I32}, {{2}, F32}, {{2}, F32}})),
            "m.onnx: node 'n' (Where): input 0 'condition' needs elements of type bool from operator set 16 on, but is i32[2]");
  // Any number of inputs of one type.
  EXPECT_NE(refusal(single("Max", {{{2}, F32}, {{2}, F32}, {{2}, I64}})).find("input 2 'data_0' needs the element type of 'data_0'"), std::string::npos);
}

TEST_F(OnnxSchema, Ranks) {
  EXPECT_NE(refusal(single("Conv", {{{1, 3, 8, 8}, F32}, {{4, 3, 3}, F32}})).find("input 1 'W' needs 4 dimensions, as 'X' is f32[1, 3, 8, 8], but is f32[4, 3, 3]"),
            std::string::npos);
  EXPECT_NE(refusal(single("MatMul", {{{}, F32}, {{2}, F32}})).find("input 0 'A' needs at least 1 dimension, but is f32[]"), std::string::npos);
  EXPECT_NE(refusal(single("Gemm", {{{2, 2}, F32}, {{2, 2}, F32}, {{1, 2, 2}, F32}})).find("needs 0 to 2 dimensions"), std::string::npos);
  EXPECT_NE(refusal(single("Clip", {{{4}, F32}, {{2}, F32}})).find("input 1 'min' needs one element in no or one dimension, but is f32[2]"), std::string::npos);
  EXPECT_EQ(refusal(single("Clip", {{{4}, F32}, {{1}, F32}})), "");
  EXPECT_NE(refusal(single("LayerNormalization", {{{2, 3}, F32}, {{1, 2, 3}, F32}})).find("at most 2 dimensions, as 'X' is f32[2, 3]"), std::string::npos);
  EXPECT_NE(refusal(single("DequantizeLinear", {{{2, 3, 4}, ::onnx::TensorProto::INT8}, {{3, 4}, F32}}, 21))
                .find("needs 0 or 1 dimension or 3 dimensions, as 'x' is i8[2, 3, 4], but is f32[3, 4]"),
            std::string::npos);
}

TEST_F(OnnxSchema, Numbers) {
  EXPECT_EQ(refusal(single("Abs", {{{2}, F32}, {{2}, F32}})),
            "m.onnx: node 'n' (Abs): has an input 1, but 1 are all that the op takes from operator set 13 on");
  EXPECT_EQ(refusal(single("Add", {{{2}, F32}})), "m.onnx: node 'n' (Add): input 1 is missing: 'B'");
}

TEST_F(OnnxSchema, AllOfAModelAreFound) {
  ModelBuilder b = vectorOfPeepholes();
  b.input("i", {-1, 4}, I64).input("flag", {}, Bool);
  b.node("Erf", {"i"}, {"e"}, "erf");
  b.node("Exp", {"e"}, {"f"}, "behind"); // of a value that no node gives
  ModelBuilder body;
  body.node("Sigmoid", {"i"}, {"s"}, "in-body");
  body.outputs({"s"});
  auto &choice = b.node("If", {"flag"}, {"c"}, "choice");
  setBody(choice, "then_branch", body);
  setBody(choice, "else_branch", body); // not reached behind the other
  const auto found = onnx::findMalformed(ModelFile::parse(b.bytes(), "m.onnx"), context);
  std::vector<std::string> nodes;
  for (const onnx::Malformed &m : found)
    nodes.push_back(m.node);
  EXPECT_EQ(nodes, (std::vector<std::string>{"lstm", "erf", "choice.then_branch/in-body"}));
  EXPECT_TRUE(onnx::findMalformed(ModelFile::parse(single("Abs", {{{-1}, F32}}).bytes(), "m.onnx"), context).empty());
}

} // namespace
} // namespace tressel
