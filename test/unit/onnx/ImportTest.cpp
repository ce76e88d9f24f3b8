// Models become modules: what is computed at import, what is refused, and where ops say they come from.
#include "frontend/onnx/Import.h"
#include "ModelBuilder.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Interpreter.h"
#include "tressel/runtime/Dim.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>

namespace tressel {
using namespace test;
using onnx::ModelFile;

namespace {

class OnnxImport : public ::testing::Test {
protected:
  OnnxImport() {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  mlir::func::FuncOp import(const ModelBuilder &b, std::map<std::string, int64_t> dims = {}) {
    onnx::ImportOptions options;
    for (const auto &[name, size] : dims)
      options.dims[name] = {size, size};
    module = onnx::import(ModelFile::parse(b.bytes(), "m.onnx"), context, options).module;
    return module->lookupSymbol<mlir::func::FuncOp>("main");
  }
  std::string refusal(const ModelBuilder &b, std::map<std::string, int64_t> dims = {}) {
    try {
      import(b, std::move(dims));
      return "";
    } catch (const InputError &e) {
      return e.what();
    }
  }
  std::vector<std::string> ops(mlir::func::FuncOp func) {
    std::vector<std::string> names;
    for (mlir::Operation &op : func.getBody().front())
      names.push_back(op.getName().stripDialect().str());
    return names;
  }
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(OnnxImport, NamesAndLocations) {
  ModelBuilder b;
  b.input("x", {2, 3}).output("y");
  b.node("Relu", {"x"}, {"h"}, "act/0");
  b.node("Exp", {"h"}, {"y"}, "");
  mlir::func::FuncOp f = import(b);
  EXPECT_EQ(f.getArgAttrOfType<mlir::StringAttr>(0, graph::kNameAttr), "x");
  EXPECT_EQ(f.getResultAttrOfType<mlir::StringAttr>(0, graph::kNameAttr), "y");
  EXPECT_EQ(ops(f), (std::vector<std::string>{"relu", "exp", "return"}));
  mlir::Operation &relu = f.getBody().front().front();
  EXPECT_EQ(llvm::cast<mlir::NameLoc>(relu.getLoc()).getName(), "act/0");
  EXPECT_EQ(graph::fileLineOf(relu.getLoc()).file, "m.onnx");
  EXPECT_EQ(graph::fileLineOf(relu.getLoc()).line, 1u);
}

/// The arithmetic on shapes that exporters write around a Reshape: the batch is kept, the rest is flattened.
ModelBuilder flattenByArithmetic() {
  ModelBuilder b;
  b.input("x", {-1, 4, 6}).output("y");
  b.ints("start", {0});
  b.ints("end", {1});
  b.ints("rest", {24});
  b.node("Shape", {"x"}, {"shape"});
  setInt(b.node("Cast", {"shape"}, {"shape32"}), "to", ::onnx::TensorProto::INT32);
  b.node("Slice", {"shape32", "start", "end"}, {"batch32"});
  setInt(b.node("Cast", {"batch32"}, {"batch"}), "to", ::onnx::TensorProto::INT64);
  setInt(b.node("Concat", {"batch", "rest"}, {"wanted"}), "axis", 0);
  b.node("Reshape", {"x", "wanted"}, {"y"});
  return b;
}

TEST_F(OnnxImport, ComputesShapesAtImport) {
  mlir::func::FuncOp f = import(flattenByArithmetic(), {{"d1", 5}});
  EXPECT_EQ(ops(f), (std::vector<std::string>{"reshape", "return"}));
  EXPECT_EQ(graph::fromMlir(f.getResultTypes()[0]).str(), "f32[5, 24]");
}

/// y of x: f32[n, 4], imported with n as a symbol, computed for n = 1 to 6 and compared with the import for that size.
class OnnxSymbols : public OnnxImport {
protected:
  void expectSame(const ModelBuilder &b) {
    onnx::ImportOptions open;
    open.keepDynamic = true;
    const ModelFile model = ModelFile::parse(b.bytes(), "m.onnx");
    auto symbolic = onnx::import(model, context, open).module;
    for (int64_t n = 1; n <= 6; ++n) {
      op::HostTensor x = op::HostTensor::allocate({f32, {n, 4}});
      for (int64_t i = 0; i < n * 4; ++i)
        x.as<float>()[i] = static_cast<float>(i + 1);
      auto fixed = import(b, {{"d1", n}});
      auto want = graph::interpret(fixed, {{x}});
      auto got = graph::interpret(symbolic->lookupSymbol<mlir::func::FuncOp>("main"), {{x}});
      ASSERT_EQ(want.error, "");
      ASSERT_EQ(got.error, "") << "n = " << n;
      ASSERT_EQ(got.outputs[0].type.str(), want.outputs[0].type.str()) << "n = " << n;
      EXPECT_EQ(std::memcmp(got.outputs[0].data.get(), want.outputs[0].data.get(),
                            static_cast<size_t>(want.outputs[0].type.bytes())),
                0)
          << "n = " << n;
    }
  }
  ModelBuilder sliced(int64_t from, int64_t to, int64_t step) {
    ModelBuilder b;
    b.input("x", {-1, 4}).output("y");
    b.ints("from", {from});
    b.ints("to", {to});
    b.ints("axis", {0});
    b.ints("step", {step});
    b.node("Slice", {"x", "from", "to", "axis", "step"}, {"y"});
    return b;
  }
};

TEST_F(OnnxSymbols, SlicesAreClamped) {
  const int64_t farthest = std::numeric_limits<int64_t>::max();
  for (auto [from, to, step] : std::vector<std::array<int64_t, 3>>{{0, 1'000'000'000, 1},
                                                                   {0, farthest, 2},
                                                                   {1, 4, 1},
                                                                   {3, 5, 1},
                                                                   {-2, farthest, 1},
                                                                   {0, -1, 1},
                                                                   {-1, -farthest, -1}, // what names symbols elsewhere
                                                                   {farthest, -farthest - 1, -2}}) {
    SCOPED_TRACE(std::to_string(from) + ":" + std::to_string(to) + ":" + std::to_string(step));
    expectSame(sliced(from, to, step));
  }
}

TEST_F(OnnxSymbols, ArithmeticOnSizes) { // x as [sum(shape) - 4, prod(shape) / n], then every second row
  ModelBuilder b;
  b.input("x", {-1, 4}).output("y");
  b.ints("zero", {0});
  b.ints("four", {4});
  b.ints("two", {2});
  b.node("Shape", {"x"}, {"shape"});
  setInt(b.node("ReduceSum", {"shape"}, {"sum"}), "keepdims", 1);
  setInt(b.node("ReduceProd", {"shape"}, {"all"}), "keepdims", 1);
  b.node("Gather", {"shape", "zero"}, {"rows"});
  b.node("Sub", {"sum", "four"}, {"first"});
  b.node("Div", {"all", "rows"}, {"second"});
  setInt(b.node("Concat", {"first", "second"}, {"wanted"}), "axis", 0);
  b.node("Reshape", {"x", "wanted"}, {"r"});
  b.node("Slice", {"r", "zero", "rows", "zero", "two"}, {"y"});
  expectSame(b);
}

TEST_F(OnnxSymbols, SizesBecomeValues) { // Range(n) as numbers, and what no expression says: n > 3, n - 5
  ModelBuilder b;
  b.input("x", {-1, 4}).output("y", ::onnx::TensorProto::INT64);
  b.ints("index", {0});
  b.ints("scalar", {});
  b.model.mutable_graph()->mutable_initializer(1)->mutable_dims()->Clear();
  b.model.mutable_graph()->mutable_initializer(1)->add_int64_data(0);
  b.ints("three", {3});
  b.ints("five", {5});
  b.node("Shape", {"x"}, {"shape"});
  b.node("Gather", {"shape", "index"}, {"rows"});
  b.node("Squeeze", {"rows", "index"}, {"count"});
  b.model.mutable_graph()->mutable_node(2)->mutable_input()->RemoveLast();
  auto &one = b.ints("step", {1});
  one.clear_dims();
  b.node("Range", {"scalar", "count", "step"}, {"numbers"});
  b.node("Greater", {"rows", "three"}, {"many"});
  b.node("Sub", {"rows", "five"}, {"difference"});
  b.node("Where", {"many", "rows", "difference"}, {"chosen"});
  b.node("Add", {"numbers", "chosen"}, {"y"});
  expectSame(b);
}

TEST_F(OnnxSymbols, SizesAreOutputs) {
  ModelBuilder b;
  b.input("x", {-1, 4}).output("y", ::onnx::TensorProto::INT32);
  b.node("Shape", {"x"}, {"shape"});
  setInt(b.node("Cast", {"shape"}, {"y"}), "to", ::onnx::TensorProto::INT32);
  expectSame(b);
}

TEST_F(OnnxSymbols, MovesAndRepeats) {
  ModelBuilder b;
  b.input("x", {-1, 4}).output("y");
  b.ints("repeats", {3, 2});
  b.ints("sizes", {3, 5});
  b.node("Tile", {"x", "repeats"}, {"t"});
  setInt(b.node("Split", {"t", "sizes"}, {"left", "right"}), "axis", 1);
  setInt(b.node("Concat", {"right", "left"}, {"c"}), "axis", 1);
  auto &top = b.node("ArgMax", {"c"}, {"places"});
  setInt(top, "axis", 0);
  setInt(top, "select_last_index", 1);
  setInt(b.node("Cast", {"places"}, {"f"}), "to", ::onnx::TensorProto::FLOAT);
  b.node("Add", {"f", "c"}, {"y"});
  expectSame(b);
}

TEST_F(OnnxImport, AssumesOneForAnOpenDim) {
  onnx::Imported imported = onnx::import(ModelFile::parse(flattenByArithmetic().bytes(), "m.onnx"), context, {});
  ASSERT_EQ(imported.dims.size(), 1u);
  EXPECT_EQ(imported.dims[0].name, "d1");
  EXPECT_EQ(imported.dims[0].size, 1);
  EXPECT_TRUE(imported.dims[0].assumed);
}

TEST_F(OnnxImport, FixesTheFewestDims) {
  ModelBuilder b; // d2 and d3 cannot both be open
  b.input("x", {-1, -2, -3}).output("y");
  auto *perm = b.node("Transpose", {"x"}, {"t"}).add_attribute();
  perm->set_name("perm"), perm->set_type(::onnx::AttributeProto::INTS);
  for (int64_t d : {0, 2, 1})
    perm->add_ints(d);
  b.node("Add", {"x", "t"}, {"y"}, "sum");
  onnx::Imported imported = onnx::importOpen(ModelFile::parse(b.bytes(), "m.onnx"), context, {});
  ASSERT_EQ(imported.dims.size(), 3u);
  EXPECT_EQ(dim::str(imported.dims[0].size), "d1");
  EXPECT_FALSE(imported.dims[0].assumed);
  EXPECT_EQ(imported.dims[1].size, 1);
  EXPECT_TRUE(imported.dims[1].assumed);
  EXPECT_NE(imported.dims[1].why.find("node 'sum'"), std::string::npos) << imported.dims[1].why;
  EXPECT_EQ(dim::str(imported.dims[2].size), "d3");
  // A size that is given stays.
  imported = onnx::importOpen(ModelFile::parse(b.bytes(), "m.onnx"), context, {.dims = {{"d3", {7, 7}}}});
  EXPECT_EQ(imported.dims[1].size, 1);
  EXPECT_EQ(imported.dims[2].size, 7);
}

TEST_F(OnnxImport, DimsKeepTheirNames) {
  ModelBuilder b;
  b.input("x", {-1, -2, -3, -4}).output("y");
  auto *shape = b.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  const char *names[] = {"n.0", "a-b", "a b", "0"};
  for (int i = 0; i < 4; ++i)
    shape->mutable_dim(i)->set_dim_param(names[i]);
  b.node("Relu", {"x"}, {"y"});
  onnx::Imported imported = onnx::importOpen(ModelFile::parse(b.bytes(), "m.onnx"), context, {});
  const char *symbols[] = {"n.0", "a_b", "a_b_2", "_0"}; // two names are two sizes
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(imported.dims[i].name, names[i]);
    EXPECT_EQ(dim::str(imported.dims[i].size), symbols[i]);
  }
}

TEST_F(OnnxImport, RefusesWrongDims) {
  EXPECT_EQ(refusal(flattenByArithmetic(), {{"batch", 2}}), "m.onnx: has no symbolic dimension 'batch'; it has: d1");
  EXPECT_NE(refusal(flattenByArithmetic(), {{"d1", 0}}).find("must be at least 1"), std::string::npos);
  EXPECT_NE(refusal(flattenByArithmetic(), {{"d1", int64_t(1) << 60}}).find("larger than any memory"),
            std::string::npos);
}

TEST_F(OnnxImport, ListsEverythingUnsupportedAtOnce) {
  ModelBuilder b;
  b.input("x", {2, 3}).output("y");
  b.node("Unique", {"x"}, {"h"}, "memory");
  b.node("Relu", {"h"}, {"g"}, "depends");
  b.input("image", {1, 1, 4});
  setInts(b.node("MaxPool", {"image"}, {"p", "places"}, "pool"), "kernel_shape", {2});
  b.node("Relu", {"g"}, {"y"}, "last");
  setInt(b.node("Neg", {"x"}, {"q"}, "odd"), "mystery", 1);
  std::string text = refusal(b);
  EXPECT_EQ(text, "m.onnx: not supported:\n"
                  "  Unique (opset 17) at node 'memory'\n"
                  "  MaxPool (opset 17) at node 'pool': the indices of the maxima\n"
                  "  Neg (opset 17) at node 'odd': attribute 'mystery'");
}

TEST_F(OnnxImport, RefusesWrongAttributes) {
  ModelBuilder b;
  b.input("x", {2, 3}).output("y");
  auto &n = b.node("Flatten", {"x"}, {"y"}, "flat");
  auto *a = n.add_attribute();
  a->set_name("axis");
  a->set_type(::onnx::AttributeProto::STRING);
  a->set_s("1");
  EXPECT_EQ(refusal(b), "m.onnx: node 'flat' (Flatten): attribute 'axis' has the wrong type");
  n.clear_attribute();
  setInt(n, "axis", 7);
  EXPECT_EQ(refusal(b), "m.onnx: node 'flat' (Flatten): axis 7 is outside f32[2, 3]");
}

TEST_F(OnnxImport, RefusesWrongShapes) {
  ModelBuilder b;
  b.input("x", {2, 3}).input("w", {4, 5}).output("y");
  b.node("MatMul", {"x", "w"}, {"y"}, "mm");
  std::string text = refusal(b);
  EXPECT_EQ(text.rfind("m.onnx: node 'mm' (MatMul): ", 0), 0u) << text;
  EXPECT_NE(text.find("f32[2, 3]"), std::string::npos) << text;

  ModelBuilder mixed;
  mixed.input("x", {2}).input("i", {2}, ::onnx::TensorProto::INT32).output("y");
  mixed.node("Add", {"x", "i"}, {"y"}, "add");
  EXPECT_NE(refusal(mixed).find("input 1 'B' needs the element type of 'A', which is f32[2], but is i32[2]"), std::string::npos);

  ModelBuilder few;
  few.input("x", {2}).output("y");
  few.node("Add", {"x"}, {"y"}, "add");
  EXPECT_NE(refusal(few).find("input 1 is missing"), std::string::npos);
}

TEST_F(OnnxImport, RefusesOutputsDeclaredOtherwise) {
  auto declared = [](int type, const std::vector<int64_t> &dims, std::vector<int64_t> input) {
    ModelBuilder b;
    b.input("x", input).output("y", type);
    auto *shape = b.model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int64_t d : dims)
      d < 0 ? shape->add_dim()->set_dim_param("d" + std::to_string(-d)) : shape->add_dim()->set_dim_value(d);
    b.node("Neg", {"x"}, {"y"});
    return b;
  };
  const int f32 = ::onnx::TensorProto::FLOAT, i64 = ::onnx::TensorProto::INT64;
  EXPECT_EQ(refusal(declared(i64, {7, 7}, {3})), "m.onnx: output 'y' is declared as i64[7, 7], but what is computed is f32[3]");
  EXPECT_EQ(refusal(declared(i64, {3}, {3})), "m.onnx: output 'y' is declared as i64[3], but what is computed is f32[3]");
  EXPECT_EQ(refusal(declared(f32, {1, 3}, {3})), "m.onnx: output 'y' is declared as f32[1, 3], but what is computed is f32[3]");
  EXPECT_EQ(refusal(declared(f32, {4}, {3})), "m.onnx: output 'y' is declared as f32[4], but what is computed is f32[3]");
  EXPECT_EQ(refusal(declared(::onnx::TensorProto::UNDEFINED, {4}, {3})),
            "m.onnx: output 'y' is declared as a tensor of shape [4], but what is computed is f32[3]");
  EXPECT_EQ(refusal(declared(f32, {3}, {3})), "");
  EXPECT_EQ(refusal(declared(f32, {-2}, {3})), "");
  // What a size was when the model was exported says nothing of other sizes.
  EXPECT_EQ(refusal(declared(f32, {1, 3}, {-1, 3}), {{"d1", 4}}), "");
  EXPECT_NE(refusal(declared(f32, {3}, {-1, 3}), {{"d1", 4}}).find("f32[3], but what is computed is f32[4, 3]"), std::string::npos);
}

TEST_F(OnnxImport, RefusesLengthsBeyondTheSequence) {
  for (int32_t length : {-1, 0, 5, 6}) {
    ModelBuilder b;
    b.input("x", {5, 2, 3}).output("y");
    b.floats("w", {1, 4, 3}, std::vector<float>(12));
    b.floats("r", {1, 4, 4}, std::vector<float>(16));
    auto &lengths = b.ints("lengths", {2, length});
    lengths.set_data_type(::onnx::TensorProto::INT32);
    lengths.clear_int64_data();
    lengths.add_int32_data(2), lengths.add_int32_data(length);
    b.node("RNN", {"x", "w", "r", "", "lengths"}, {"y"}, "net");
    if (length == 0 || length == 5)
      EXPECT_EQ(refusal(b), "");
    else
      EXPECT_EQ(refusal(b), "m.onnx: node 'net' (RNN): 'sequence_lens' holds " + std::to_string(length) + ", but the sequences have 5 steps");
  }
  ModelBuilder b;
  b.input("x", {5, 2, 3}).output("y");
  b.floats("w", {1, 4, 3}, std::vector<float>(12));
  b.floats("r", {1, 4, 4}, std::vector<float>(16));
  auto *names = b.node("RNN", {"x", "w", "r"}, {"y"}, "net").add_attribute();
  names->set_name("activations");
  names->set_type(::onnx::AttributeProto::STRINGS);
  names->add_strings("Tanh"), names->add_strings("Relu");
  EXPECT_EQ(refusal(b), "m.onnx: node 'net' (RNN): 'activations' has 2 entries instead of 1");
}

TEST_F(OnnxImport, RefusesARangeWithoutSteps) {
  ModelBuilder b;
  b.input("x", {2}).output("y");
  for (const char *name : {"first", "end", "step"})
    b.floats(name, {}, {name[0] == 'e' ? 4.0f : 0.0f});
  b.node("Range", {"first", "end", "step"}, {"y"}, "count");
  EXPECT_EQ(refusal(b), "m.onnx: node 'count' (Range): its step is 0");
}

TEST_F(OnnxImport, RefusesHugeResults) {
  ModelBuilder b;
  b.input("x", {1, 1}).output("y");
  b.ints("shape", {int64_t(1) << 40, int64_t(1) << 40});
  b.node("Expand", {"x", "shape"}, {"y"}, "grow");
  EXPECT_NE(refusal(b).find("larger than any memory"), std::string::npos);

  ModelBuilder conv;
  conv.input("x", {1, 1, 4, 4}).output("y");
  conv.floats("w", {1, 1, 1, 1}, {1});
  setInts(conv.node("Conv", {"x", "w"}, {"y"}, "c"), "pads", {int64_t(1) << 62, 0, 0, 0});
  EXPECT_NE(refusal(conv).find("'pads' holds"), std::string::npos);
}

TEST_F(OnnxImport, RefusesAnIndexThatIsOutside) {
  ModelBuilder b;
  b.input("x", {2, 3}).output("y");
  b.ints("five", {5});
  b.node("Shape", {"x"}, {"shape"});
  b.node("Gather", {"shape", "five"}, {"wanted"}, "pick");
  b.node("Expand", {"x", "wanted"}, {"y"});
  EXPECT_EQ(refusal(b).rfind("m.onnx: node 'pick' (Gather): ", 0), 0u) << refusal(b);
}

TEST_F(OnnxImport, WeightsAreSharedConstants) {
  ModelBuilder b;
  b.input("x", {64, 64}).output("y");
  b.floats("w", {64, 64}, std::vector<float>(4096, 0.5f));
  b.node("MatMul", {"x", "w"}, {"h"});
  b.node("MatMul", {"h", "w"}, {"y"});
  EXPECT_EQ(ops(import(b)), (std::vector<std::string>{"constant", "matmul", "matmul", "return"}));
}

TEST_F(OnnxImport, OldVersionsOfAnOp) {
  // Axes were an attribute before version 13 and are an input since.
  ModelBuilder old(11);
  old.input("x", {2, 3}).output("y");
  setInts(old.node("Unsqueeze", {"x"}, {"y"}), "axes", {0, 3});
  EXPECT_EQ(graph::fromMlir(import(old).getResultTypes()[0]).str(), "f32[1, 2, 3, 1]");
  ModelBuilder recent(13);
  recent.input("x", {2, 3}).output("y");
  recent.ints("axes", {0, 3});
  recent.node("Unsqueeze", {"x", "axes"}, {"y"});
  EXPECT_EQ(graph::fromMlir(import(recent).getResultTypes()[0]).str(), "f32[1, 2, 3, 1]");
}

} // namespace
} // namespace tressel
