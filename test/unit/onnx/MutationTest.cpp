// Damaged models are refused or imported, and nothing else: no crash, no other exception. Seeded; a failure prints the
// seed and the mutation.
#include "ModelBuilder.h"
#include "frontend/onnx/Import.h"
#include "ir/graph/Graph.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>

namespace tressel {
using namespace test;

namespace {

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Flips, overwrites, inserts, removes or repeats some bytes.
std::string mutate(std::string bytes, std::mt19937_64 &random) {
  auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  int count = 1 + static_cast<int>(below(4));
  for (int i = 0; i < count && !bytes.empty(); ++i) {
    // Most damage goes to the start and the end, where the structure is; the middle is weights.
    size_t at = below(3) ? (below(2) ? below(std::min<size_t>(bytes.size(), 400))
                                     : bytes.size() - 1 - below(std::min<size_t>(bytes.size(), 600)))
                         : below(bytes.size());
    switch (below(6)) {
    case 0:
      bytes[at] ^= static_cast<char>(1 << below(8));
      break;
    case 1:
      bytes[at] = static_cast<char>(random());
      break;
    case 2:
      bytes.insert(at, 1 + below(3), static_cast<char>(random()));
      break;
    case 3:
      bytes.erase(at, 1 + below(16));
      break;
    case 4:
      bytes.insert(at, bytes.substr(at, 1 + below(64)));
      break;
    case 5:
      bytes.resize(at);
      break;
    }
  }
  return bytes;
}

/// Changes the message instead of its bytes: the result always parses, so the damage gets further.
void mutateStructure(::onnx::ModelProto &model, std::mt19937_64 &random) {
  auto below = [&](int n) { return n > 0 ? static_cast<int>(random() % static_cast<uint64_t>(n)) : 0; };
  static const int64_t odd[] = {0, 1, -1, 2, 7, -9, 1 << 20, int64_t(1) << 31, int64_t(1) << 62, INT64_MIN, INT64_MAX};
  auto strange = [&] { return odd[below(static_cast<int>(std::size(odd)))]; };
  auto *inside = model.mutable_graph(); // the graph, or the body of a node
  while (inside->node_size() && below(3)) {
    auto &owner = *inside->mutable_node(below(inside->node_size()));
    if (!owner.attribute_size() || !owner.attribute(0).has_g())
      break;
    inside = owner.mutable_attribute(below(owner.attribute_size()))->mutable_g();
  }
  auto &graph = *inside;
  auto *node = graph.node_size() ? graph.mutable_node(below(graph.node_size())) : nullptr;
  auto *tensor = graph.initializer_size() ? graph.mutable_initializer(below(graph.initializer_size())) : nullptr;
  auto *attr = node && node->attribute_size() ? node->mutable_attribute(below(node->attribute_size())) : nullptr;
  static const char *ops[] = {"Reshape",
                              "Conv",
                              "Slice",
                              "Concat",
                              "Gather",
                              "Expand",
                              "Split",
                              "Pad",
                              "Softmax",
                              "ReduceSum",
                              "MaxPool",
                              "Tile",
                              "Squeeze",
                              "Gemm",
                              "ArgMax",
                              "OneHot",
                              "ConstantOfShape",
                              "Transpose",
                              "BatchNormalization",
                              "LayerNormalization",
                              "Range",
                              "Clip",
                              "Cast",
                              "AveragePool",
                              "Where",
                              "If",
                              "Loop",
                              "Scan"};
  switch (below(13)) {
  case 0:
    if (node)
      node->set_op_type(ops[below(static_cast<int>(std::size(ops)))]);
    break;
  case 1:
    if (node && node->input_size())
      node->mutable_input()->RemoveLast();
    break;
  case 2:
    if (node && node->input_size())
      node->add_input(node->input(below(node->input_size())));
    break;
  case 3:
    if (node && node->input_size() && tensor)
      node->set_input(below(node->input_size()), tensor->name());
    break;
  case 4:
    if (attr)
      attr->set_i(strange());
    break;
  case 5:
    if (attr && attr->ints_size())
      attr->set_ints(below(attr->ints_size()), strange());
    break;
  case 6:
    if (attr)
      attr->add_ints(strange());
    break;
  case 7:
    if (tensor && tensor->dims_size())
      tensor->set_dims(below(tensor->dims_size()), strange());
    break;
  case 8:
    if (tensor)
      tensor->set_data_type(below(24));
    break;
  case 9:
    if (tensor && tensor->int64_data_size())
      tensor->set_int64_data(below(tensor->int64_data_size()), strange());
    break;
  case 11:
    if (node && node->output_size())
      node->set_output(below(node->output_size()), graph.node(below(graph.node_size())).output_size()
                                                       ? graph.node(0).output(0)
                                                       : "nobody");
    break;
  case 12:
    if (graph.output_size() > 0)
      below(2) ? graph.mutable_output()->RemoveLast() : void(*graph.add_output() = graph.output(0));
    break;
  case 10:
    if (graph.input_size() && graph.input(0).type().tensor_type().shape().dim_size())
      graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(
          strange());
    break;
  }
}

/// A model that touches most importers.
ModelBuilder varied() {
  ModelBuilder b(17);
  b.input("x", {-1, 4, 8, 8}).output("y");
  b.floats("w", {4, 4, 3, 3}, std::vector<float>(144, 0.1f));
  b.floats("c", {4}, {1, 2, 3, 4});
  b.ints("shape", {1, 4, -1});
  b.ints("starts", {0, 1});
  b.ints("ends", {4, 9});
  b.ints("axes", {1, 2});
  b.ints("steps", {1, 2});
  b.ints("index", {1, 0, 2});
  b.ints("pads", {0, 0, 1, 0, 0, 1});
  b.ints("sizes", {1, 2});
  b.ints("repeats", {1, 1, 2});
  b.ints("last", {2});
  auto &conv = b.node("Conv", {"x", "w", "c"}, {"a"});
  setInts(conv, "pads", {1, 1, 1, 1});
  setInts(conv, "strides", {1, 1});
  setInts(b.node("MaxPool", {"a"}, {"p"}), "kernel_shape", {2, 2});
  b.node("BatchNormalization", {"p", "c", "c", "c", "c"}, {"n"});
  b.node("Reshape", {"n", "shape"}, {"r"});
  b.node("Slice", {"r", "starts", "ends", "axes", "steps"}, {"s"});
  setInt(b.node("Gather", {"s", "index"}, {"g"}), "axis", 1);
  b.node("Pad", {"g", "pads"}, {"d"});
  b.node("Tile", {"d", "repeats"}, {"t"});
  setInts(b.node("Transpose", {"t"}, {"tr"}), "perm", {0, 2, 1});
  auto &split = b.node("Split", {"tr", "sizes"}, {"s1", "s2"});
  setInt(split, "axis", 2);
  setInt(b.node("Concat", {"s1", "s2"}, {"cc"}), "axis", 2);
  setInt(b.node("Softmax", {"cc"}, {"sm"}), "axis", -1);
  auto &sum = b.node("ReduceSum", {"sm", "last"}, {"rs"});
  setInt(sum, "keepdims", 1);
  b.node("Unsqueeze", {"rs", "last"}, {"y"});
  return b;
}

/// Branches and loops within each other, of the kinds that are imported differently.
ModelBuilder nested() {
  auto branch = [](const std::string &op) {
    ModelBuilder b;
    b.floats("k", {1}, {2});
    b.node(op, {"a", "k"}, {"r"});
    b.outputs({"r"});
    return b;
  };
  auto body = [&](int64_t size) {
    ModelBuilder b;
    b.input("i", {}, ::onnx::TensorProto::INT64).input("p", {}, ::onnx::TensorProto::BOOL).input("a", {size});
    return b;
  };
  ModelBuilder choosing = body(2);
  choosing.ints("one", {1});
  choosing.node("Equal", {"i", "one"}, {"second"});
  auto &choice = choosing.node("If", {"second"}, {"r"});
  setBody(choice, "then_branch", branch("Add"));
  setBody(choice, "else_branch", branch("Mul"));
  choosing.outputs({"p", "r", "r"});
  ModelBuilder growing = body(-1);
  setInt(growing.node("Concat", {"a", "x"}, {"r"}), "axis", 0);
  growing.outputs({"p", "r"});
  ModelBuilder summing;
  summing.input("s", {2}).input("e", {2});
  summing.node("Add", {"s", "e"}, {"r"});
  summing.outputs({"r", "r"});

  ModelBuilder b;
  b.input("x", {2}).input("rows", {-1, 2}).input("q", {}, ::onnx::TensorProto::BOOL).input("n", {}, ::onnx::TensorProto::INT64).output("y");
  b.ints("three", {3});
  b.ints("shape", {3, 2});
  setBody(b.node("Loop", {"three", "", "x"}, {"l", "all"}), "body", choosing);
  setBody(b.node("Loop", {"n", "q", "l"}, {"w"}), "body", choosing);
  setBody(b.node("Loop", {"three", "", "w"}, {"u"}), "body", growing);
  auto &scan = b.node("Scan", {"x", "all"}, {"s", "sums"});
  setBody(scan, "body", summing);
  setInt(scan, "num_scan_inputs", 1);
  b.ints("zero", {0});
  b.node("Shape", {"rows"}, {"shape2"});
  b.node("Gather", {"shape2", "zero"}, {"count"});
  setBody(b.node("Loop", {"count", "", "w"}, {"v", "open"}), "body", choosing);
  b.node("Slice", {"u", "three", "three"}, {"part"});
  b.node("Add", {"sums", "s"}, {"y"});
  return b;
}

class OnnxMutation : public ::testing::Test {
protected:
  OnnxMutation() { graph::registerDialects(registry); }
  /// True if imported, false if refused; anything else fails the test.
  bool survives(const std::string &bytes, const std::string &what) {
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([](mlir::Diagnostic &) {});
    onnx::ImportOptions options;
    options.keepDynamic = bytes.size() % 2; // with sizes that are symbols, or 1
    try {
      onnx::import(onnx::ModelFile::parse(bytes, "mutant.onnx"), context, options);
      return true;
    } catch (const InputError &e) {
      EXPECT_EQ(std::string(e.what()).rfind("mutant.onnx: ", 0), 0u) << what << ": " << e.what();
    } catch (const std::exception &e) {
      ADD_FAILURE() << what << ": " << e.what();
    }
    return false;
  }
  void bytesOf(const std::string &bytes, int count, uint64_t seed) {
    int imported = 0;
    for (int i = 0; i < count; ++i) {
      std::mt19937_64 random(seed + static_cast<uint64_t>(i));
      imported += survives(mutate(bytes, random), "bytes, seed " + std::to_string(seed + static_cast<uint64_t>(i)));
    }
    EXPECT_LT(imported, count) << "the mutations damage nothing";
  }
  void structureOf(const ::onnx::ModelProto &model, int count, uint64_t seed) {
    int imported = 0;
    for (int i = 0; i < count; ++i) {
      std::mt19937_64 random(seed + static_cast<uint64_t>(i));
      ::onnx::ModelProto mutant = model;
      for (uint64_t k = 0; k <= random() % 3; ++k)
        mutateStructure(mutant, random);
      imported +=
          survives(mutant.SerializeAsString(), "structure, seed " + std::to_string(seed + static_cast<uint64_t>(i)));
    }
    EXPECT_LT(imported, count) << "the mutations damage nothing";
    EXPECT_GT(imported, 0) << "nothing gets past the checks";
  }
  mlir::DialectRegistry registry;
};

TEST_F(OnnxMutation, TheModelItselfIsImported) { EXPECT_TRUE(survives(varied().bytes(), "unchanged")); }
TEST_F(OnnxMutation, BytesOfASmallModel) { bytesOf(varied().bytes(), 1500, 1); }
TEST_F(OnnxMutation, StructureOfBodies) {
  EXPECT_TRUE(survives(nested().bytes(), "unchanged"));
  structureOf(nested().model, 1500, 3);
}
TEST_F(OnnxMutation, StructureOfASmallModel) { structureOf(varied().model, 3000, 2); }

class RealOnnxMutation : public OnnxMutation, public ::testing::WithParamInterface<const char *> {};
TEST_P(RealOnnxMutation, BytesAndStructure) {
  std::string path = std::string(TRESSEL_SOURCE_DIR) + "/build/models/" + GetParam();
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << "no " << path << "; ./dev setup gets it";
  std::string bytes = readFile(path);
  bytesOf(bytes, 100, 3);
  ::onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  structureOf(model, 100, 4);
}
INSTANTIATE_TEST_SUITE_P(Models, RealOnnxMutation,
                         ::testing::Values("openwakeword/alexa_v0.1.onnx", "openwakeword/timer_v0.1.onnx",
                                           "magika/model.onnx"),
                         [](const auto &info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('/')) + std::to_string(info.index);
                         });

} // namespace
} // namespace tressel
