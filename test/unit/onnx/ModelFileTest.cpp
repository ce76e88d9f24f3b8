// What is refused before anything is imported, and how it is said.
#include "frontend/onnx/ModelFile.h"
#include "ModelBuilder.h"
#include "frontend/onnx/TensorData.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace tressel {
using namespace test;
using onnx::ModelFile;

namespace {

/// The message of the InputError that the model gives, or "" if it is accepted.
std::string refusal(const std::string &bytes) {
  try {
    ModelFile::parse(bytes, "m.onnx");
    return "";
  } catch (const InputError &e) {
    return e.what();
  }
}
#define EXPECT_REFUSED(bytes, part)                                                                                    \
  do {                                                                                                                 \
    std::string said = refusal(bytes);                                                                                 \
    EXPECT_TRUE(said.find(part) != std::string::npos) << "got: " << said;                                              \
    EXPECT_EQ(said.rfind("m.onnx: ", 0), 0u) << "got: " << said;                                                       \
  } while (0)

ModelBuilder good() {
  ModelBuilder b;
  b.input("x", {2, 3}).output("y");
  b.node("Relu", {"x"}, {"h"}, "first");
  b.node("Neg", {"h"}, {"y"}, "second");
  return b;
}

TEST(OnnxModel, AcceptsAGoodOne) {
  ModelFile m = ModelFile::parse(good().bytes(), "m.onnx");
  ASSERT_EQ(m.inputs().size(), 1u);
  EXPECT_EQ(m.inputs()[0].type(), "f32[2, 3]");
  EXPECT_EQ(m.opset(""), 17);
  EXPECT_EQ(m.opset("ai.onnx"), 17);
  EXPECT_EQ(m.opset("com.example"), 0);
  EXPECT_TRUE(m.unsupportedOps().empty());
  EXPECT_EQ(m.opCounts(), (std::map<std::string, int>{{"Neg", 1}, {"Relu", 1}}));
}

TEST(OnnxModel, NamesSymbolicDims) {
  ModelBuilder b;
  b.input("x", {-1, 3, -2}).output("x");
  ModelFile m = ModelFile::parse(b.bytes(), "m.onnx");
  EXPECT_EQ(m.inputs()[0].type(), "f32[d1, 3, d2]");
}

TEST(OnnxModel, AQuestionMarkNamesNothing) {
  ModelBuilder b = good();
  auto *shape = b.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int i : {0, 1})
    shape->mutable_dim(i)->set_dim_param("?");
  const ModelFile model = ModelFile::parse(b.bytes(), "m.onnx");
  EXPECT_EQ(model.inputs()[0].dims[0].name, "x.0");
  EXPECT_EQ(model.inputs()[0].dims[1].name, "x.1");
}

TEST(OnnxModel, AnInitializerIsNoInput) {
  ModelBuilder b;
  b.input("x", {2}).input("w", {2}).output("y");
  b.floats("w", {2}, {1, 2});
  b.node("Add", {"x", "w"}, {"y"});
  ModelFile m = ModelFile::parse(b.bytes(), "m.onnx");
  ASSERT_EQ(m.inputs().size(), 1u);
  EXPECT_EQ(m.weightBytes(), 8);
}

TEST(OnnxModel, RefusesWhatIsNoModel) {
  EXPECT_REFUSED("", "no graph");
  EXPECT_REFUSED("hello, world", "not an ONNX model");
  EXPECT_REFUSED(std::string(100, '\xff'), "not an ONNX model");
}

TEST(OnnxModel, RefusesEveryTruncation) {
  const std::string bytes = good().bytes();
  int refused = 0;
  for (size_t n = 0; n < bytes.size(); ++n)
    refused += !refusal(bytes.substr(0, n)).empty();
  // What remains acceptable ends exactly at the end of a field behind the graph.
  EXPECT_GT(refused, static_cast<int>(bytes.size()) - 8);
}

TEST(OnnxModel, RefusesDeepNesting) {
  // A graph in an attribute of a node of a graph, 300 levels deep.
  ::onnx::GraphProto inner;
  for (int i = 0; i < 300; ++i) {
    ::onnx::GraphProto outer;
    auto *node = outer.add_node();
    node->set_op_type("If");
    *node->add_attribute()->mutable_g() = inner;
    inner = outer;
  }
  ModelBuilder b = good();
  *b.model.mutable_graph()->add_node()->add_attribute()->mutable_g() = inner;
  EXPECT_REFUSED(b.bytes(), "not an ONNX model, or damaged");
}

TEST(OnnxModel, RefusesBadNames) {
  ModelBuilder dangling = good();
  dangling.node("Add", {"y", "ghost"}, {"z"}, "bad");
  EXPECT_REFUSED(dangling.bytes(), "node 'bad' (Add) uses 'ghost', which nothing defines");

  ModelBuilder twice = good();
  twice.node("Abs", {"x"}, {"h"}, "again");
  EXPECT_REFUSED(twice.bytes(), "value 'h' is produced twice, by nodes 'first' and 'again'");

  ModelBuilder shadow = good();
  shadow.floats("h", {1}, {1});
  EXPECT_REFUSED(shadow.bytes(), "initializer 'h' is also produced by node 'first'");

  ModelBuilder inputs = good();
  inputs.input("x", {2, 3});
  EXPECT_REFUSED(inputs.bytes(), "input 'x' is defined twice");

  ModelBuilder output = good();
  output.output("nowhere");
  EXPECT_REFUSED(output.bytes(), "output 'nowhere' is defined by nothing");

  ModelBuilder none = good();
  none.model.mutable_graph()->clear_output();
  EXPECT_REFUSED(none.bytes(), "no outputs");
}

TEST(OnnxModel, RefusesBadNamesInBodies) {
  auto model = [](const ModelBuilder &body) {
    ModelBuilder b = good();
    auto &node = b.node("If", {"p"}, {"z"}, "choice");
    b.input("p", {}, ::onnx::TensorProto::BOOL);
    setBody(node, "then_branch", body);
    b.node("Abs", {"x"}, {"later"}, "after");
    return b.bytes();
  };
  ModelBuilder fine;
  fine.node("Neg", {"h"}, {"r"}, "inner");
  fine.outputs({"r"});
  EXPECT_NO_THROW(ModelFile::parse(model(fine), "m.onnx"));

  ModelBuilder ghost = fine;
  ghost.node("Add", {"r", "ghost"}, {"s"}, "");
  EXPECT_REFUSED(model(ghost), "node 'choice.then_branch/Add2' (Add) uses 'ghost', which nothing defines");
  ModelBuilder early = fine;
  early.node("Abs", {"later"}, {"s"}, "early");
  EXPECT_REFUSED(model(early), "node 'choice.then_branch/early' (Abs) uses 'later' before node 'after' produces it");
  ModelBuilder twice = fine;
  twice.node("Abs", {"h"}, {"r"}, "again");
  EXPECT_REFUSED(model(twice), "value 'r' is produced twice, by nodes 'choice.then_branch/inner' and "
                               "'choice.then_branch/again'");
  ModelBuilder nowhere = fine;
  nowhere.outputs({"nowhere"});
  EXPECT_REFUSED(model(nowhere), "output 'nowhere' of the body choice.then_branch/ is defined by nothing");
  ModelBuilder input = fine;
  input.input("r", {1});
  EXPECT_REFUSED(model(input), "input 'r' is also produced by node 'choice.then_branch/inner'");
}

TEST(OnnxModel, CountsTheNodesOfBodies) {
  ModelBuilder inner;
  inner.node("Unique", {"x"}, {"r"}, "");
  inner.outputs({"r"});
  ModelBuilder b = good();
  b.input("p", {}, ::onnx::TensorProto::BOOL);
  setBody(b.node("If", {"p"}, {"z"}, "choice"), "then_branch", inner);
  ModelFile m = ModelFile::parse(b.bytes(), "m.onnx");
  EXPECT_EQ(m.opCounts()["Unique"], 1);
  ASSERT_EQ(m.unsupportedOps().size(), 1u);
  EXPECT_EQ(m.unsupportedOps()[0].node, "choice.then_branch/Unique1");
}

TEST(OnnxModel, RefusesCyclesAndDisorder) {
  ModelBuilder b;
  b.input("x", {2}).output("b");
  b.node("Add", {"x", "b"}, {"a"}, "one");
  b.node("Relu", {"a"}, {"b"}, "two");
  EXPECT_REFUSED(b.bytes(), "node 'one' (Add) uses 'b' before node 'two' produces it");
  ModelBuilder self;
  self.input("x", {2}).output("a");
  self.node("Add", {"x", "a"}, {"a"}, "one");
  EXPECT_REFUSED(self.bytes(), "before node 'one' produces it");
}

TEST(OnnxModel, RefusesBadInputs) {
  ModelBuilder negative;
  negative.input("x", {1}).output("x");
  negative.model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(-5);
  EXPECT_REFUSED(negative.bytes(), "input 'x' has a dimension of size -5");

  ModelBuilder rank;
  rank.input("x", std::vector<int64_t>(9, 1)).output("x");
  EXPECT_REFUSED(rank.bytes(), "9 dimensions");

  ModelBuilder text;
  text.input("x", {1}, ::onnx::TensorProto::STRING).output("x");
  EXPECT_REFUSED(text.bytes(), "element type string");

  ModelBuilder opset(kMaxRank + 1000);
  opset.input("x", {1}).output("x");
  EXPECT_REFUSED(opset.bytes(), "newer than");
}

TEST(OnnxModel, ListsUnsupportedOpsAtOnce) {
  ModelBuilder b = good();
  b.node("Unique", {"y"}, {"z"}, "memory");
  b.node("FusedConv", {"z"}, {"w"}, "").set_domain("com.microsoft");
  auto list = ModelFile::parse(b.bytes(), "m.onnx").unsupportedOps();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].op, "Unique");
  EXPECT_EQ(list[0].node, "memory");
  EXPECT_EQ(list[0].opset, 17);
  EXPECT_EQ(list[1].op, "com.microsoft.FusedConv");
}

// --- Tensors
// ----------------------------------------------------------------------------------------------------------

std::string tensorRefusal(const ::onnx::TensorProto &t, const std::string &folder = ".") {
  try {
    onnx::tensorData(t, "m.onnx", folder);
    return "";
  } catch (const InputError &e) {
    return e.what();
  }
}

TEST(OnnxTensor, ReadsTypedAndRawData) {
  ModelBuilder b;
  auto &t = b.floats("w", {2, 2}, {1, 2, 3, 4});
  op::HostTensor typed = onnx::tensorData(t, "m", ".");
  EXPECT_EQ(typed.as<float>()[3], 4);
  float values[] = {5, 6, 7, 8};
  t.clear_float_data();
  t.set_raw_data(values, sizeof values);
  EXPECT_EQ(onnx::tensorData(t, "m", ".").as<float>()[0], 5);
  // Booleans of any nonzero byte become 1.
  t.set_data_type(::onnx::TensorProto::BOOL);
  t.set_raw_data(std::string("\x00\x02\xff\x01", 4));
  op::HostTensor bools = onnx::tensorData(t, "m", ".");
  EXPECT_EQ(bools.as<uint8_t>()[1], 1);
  EXPECT_EQ(bools.as<uint8_t>()[2], 1);
}

TEST(OnnxTensor, ReadsHalves) {
  ::onnx::TensorProto t;
  t.set_name("h");
  t.set_data_type(::onnx::TensorProto::FLOAT16);
  t.add_dims(1);
  t.add_int32_data(0x3c00);
  EXPECT_EQ(onnx::tensorData(t, "m", ".").as<uint16_t>()[0], 0x3c00);
}

TEST(OnnxTensor, RefusesWrongSizes) {
  ModelBuilder b;
  auto &t = b.floats("w", {2, 2}, {1, 2, 3});
  EXPECT_NE(tensorRefusal(t).find("tensor 'w' of type f32[2, 2] holds 3 values"), std::string::npos);
  t.clear_float_data();
  t.set_raw_data("abc");
  EXPECT_NE(tensorRefusal(t).find("holds 3 bytes"), std::string::npos);
  t.set_dims(0, int64_t(1) << 40);
  t.set_dims(1, int64_t(1) << 40);
  EXPECT_NE(tensorRefusal(t).find("larger than any memory"), std::string::npos);
  t.set_dims(0, int64_t(1) << 30); // 4 GiB that are not there must not be allocated
  t.set_dims(1, 1);
  EXPECT_NE(tensorRefusal(t).find("holds 3 bytes"), std::string::npos);
  t.set_dims(0, -1);
  EXPECT_NE(tensorRefusal(t).find("dimension of size -1"), std::string::npos);
  t.set_data_type(::onnx::TensorProto::STRING);
  EXPECT_NE(tensorRefusal(t).find("element type string"), std::string::npos);
}

TEST(OnnxTensor, ExternalDataStaysInTheFolder) {
  namespace fs = std::filesystem;
  fs::path root = fs::path(::testing::TempDir()) / "onnx-external";
  fs::remove_all(root);
  fs::create_directories(root / "model");
  float values[] = {1, 2, 3, 4};
  for (auto file : {root / "secret.bin", root / "model" / "w.bin"})
    std::ofstream(file, std::ios::binary).write(reinterpret_cast<char *>(values), sizeof values);
  fs::create_symlink(root / "secret.bin", root / "model" / "link.bin");

  ::onnx::TensorProto t;
  t.set_name("w");
  t.set_data_type(::onnx::TensorProto::FLOAT);
  t.add_dims(2);
  t.set_data_location(::onnx::TensorProto::EXTERNAL);
  auto *location = t.add_external_data();
  location->set_key("location");
  auto *offset = t.add_external_data();
  offset->set_key("offset");
  auto *length = t.add_external_data();
  length->set_key("length");
  auto set = [&](const std::string &path, const std::string &from, const std::string &count) {
    location->set_value(path);
    offset->set_value(from);
    length->set_value(count);
    return tensorRefusal(t, (root / "model").string());
  };
  EXPECT_EQ(set("w.bin", "8", "8"), "");
  EXPECT_EQ(onnx::tensorData(t, "m", (root / "model").string()).as<float>()[0], 3);
  EXPECT_NE(set("../secret.bin", "0", "8").find("leads out of the model's folder"), std::string::npos);
  EXPECT_NE(set("link.bin", "0", "8").find("leads out of the model's folder"), std::string::npos);
  EXPECT_NE(set((root / "secret.bin").string(), "0", "8").find("is not a relative path"), std::string::npos);
  EXPECT_NE(set("missing.bin", "0", "8").find("does not exist"), std::string::npos);
  EXPECT_NE(set("w.bin", "12", "8").find("is shorter"), std::string::npos);
  EXPECT_NE(set("w.bin", "-4", "8").find("offset or length"), std::string::npos);
  EXPECT_NE(set("w.bin", "0", "4").find("holds 4 bytes"), std::string::npos);
}

} // namespace
} // namespace tressel
