// Between MLIR and the op table.
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/op/Infer.h"
#include "ir/op/Table.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "test/support/RandomOps.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tressel;


namespace {

class GraphTest : public testing::Test {
protected:
  GraphTest() : context([] {
      DialectRegistry registry;
      graph::registerDialects(registry);
      return registry;
    }()), builder(&context) {
    context.loadAllAvailableDialects();
    module = ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToStart(module->getBody());
  }
  Value constant(const tressel::TensorType &type, std::vector<float> values) {
    return graph::createConstant(builder, builder.getUnknownLoc(), type, std::as_bytes(std::span(values)));
  }
  MLIRContext context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
};

TEST_F(GraphTest, TypesGoThereAndBack) {
  for (int i = 0; i < kNumDTypes; ++i) {
    tressel::TensorType type{static_cast<DType>(i), {2, kDynamic}};
    RankedTensorType mlirType = graph::toMlir(&context, type);
    EXPECT_TRUE(graph::isSupported(mlirType));
    EXPECT_EQ(graph::fromMlir(mlirType), type);
  }
  EXPECT_FALSE(graph::isSupported(builder.getF32Type()));
  EXPECT_FALSE(graph::isSupported(RankedTensorType::get({2}, builder.getIntegerType(8, true))));
}

TEST_F(GraphTest, CreateInfersTypesAndKeepsAttributes) {
  Value x = constant({f32, {2, 3}}, {1, 2, 3, 4, 5, 6});
  Operation *op = graph::createOp(builder, builder.getUnknownLoc(), op::table::sum, x, {op::Attr(op::Ints{1}), op::Attr(true)});
  EXPECT_TRUE(succeeded(verify(op)));
  EXPECT_EQ(graph::infoOf(op), &op::table::sum);
  EXPECT_EQ(graph::fromMlir(op->getResult(0).getType()), (tressel::TensorType{f32, {2, 1}}));
  EXPECT_EQ(graph::attrsOf(op, op::table::sum), (op::Attrs{op::Attr(op::Ints{1}), op::Attr(true)}));
  EXPECT_EQ(graph::infoOf(x.getDefiningOp()), nullptr);
  EXPECT_EQ(graph::infoOf(*module), nullptr);
}

TEST_F(GraphTest, DefaultsAreNotStored) {
  Value x = constant({f32, {2, 3}}, {1, 2, 3, 4, 5, 6});
  Operation *given = graph::createOp(builder, builder.getUnknownLoc(), op::table::softmax, x, {op::Attr(int64_t(-1))});
  Operation *absent = graph::createOp(builder, builder.getUnknownLoc(), op::table::softmax, x, {});
  EXPECT_TRUE(given->getAttrs().empty() && absent->getAttrs().empty()); // so that equal ops look equal
  EXPECT_EQ(graph::attrsOf(absent, op::table::softmax), op::Attrs{op::Attr(int64_t(-1))});
}

TEST_F(GraphTest, TableOpsArePure) {
  Value x = constant({f32, {2}}, {1, 2});
  Operation *op = graph::createOp(builder, builder.getUnknownLoc(), op::table::exp, x, {});
  EXPECT_TRUE(isPure(op));
  EXPECT_TRUE(isOpTriviallyDead(op));
}

TEST_F(GraphTest, ConstantsKeepTheirBytes) {
  std::vector<float> few{1, -0.0f, 3}, many, same(1000, 2.5f);
  for (int i = 0; i < 1000; ++i)
    many.push_back(static_cast<float>(i));
  for (const std::vector<float> &values : {few, many, same}) {
    tressel::TensorType type{f32, {static_cast<int64_t>(values.size())}};
    Value v = constant(type, values);
    std::optional<op::HostTensor> back = graph::constantValue(v);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->type, type);
    EXPECT_EQ(std::memcmp(back->data.get(), values.data(), values.size() * sizeof(float)), 0);
  }
  auto attribute = [](Value v) { return v.getDefiningOp()->getAttr("value"); };
  EXPECT_TRUE(isa<DenseResourceElementsAttr>(attribute(constant({f32, {1000}}, many))));
  EXPECT_TRUE(isa<SplatElementsAttr>(attribute(constant({f32, {1000}}, same))));
}

TEST_F(GraphTest, BlobsHaveNamesOfTheirOwn) { // found at once: MLIR would try all numbers below
  std::vector<float> values(1000);
  for (int i = 0; i < 5; ++i) {
    values[0] = static_cast<float>(i + 1);
    auto blob = cast<DenseResourceElementsAttr>(constant({f32, {1000}}, values).getDefiningOp()->getAttr("value"));
    EXPECT_EQ(blob.getRawHandle().getKey(), "tensor_" + std::to_string(i));
  }
}

TEST_F(GraphTest, BoolConstantsAreBytes) {
  std::vector<std::byte> bytes{std::byte{1}, std::byte{0}, std::byte{1}};
  Value v = graph::createConstant(builder, builder.getUnknownLoc(), {bool_, {3}}, bytes);
  std::optional<op::HostTensor> back = graph::constantValue(v);
  ASSERT_TRUE(back);
  EXPECT_EQ(std::memcmp(back->data.get(), bytes.data(), 3), 0);
}

TEST_F(GraphTest, EmptyConstants) {
  Value v = graph::createConstant(builder, builder.getUnknownLoc(), {f32, {0, 3}}, {});
  ASSERT_TRUE(graph::constantValue(v));
  EXPECT_TRUE(succeeded(verify(v.getDefiningOp())));
}

TEST_F(GraphTest, DecompositionsVerifyAndKeepTheLocation) {
  Location loc = FileLineColLoc::get(&context, "net.cpp", 7, 1);
  Value x = constant({f32, {2, 3}}, {1, 2, 3, 4, 5, 6});
  Operation *op = graph::createOp(builder, loc, op::table::softmax, x, {});
  SmallVector<Value> values = graph::buildDecomposition(builder, op);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].getType(), op->getResult(0).getType());
  EXPECT_TRUE(succeeded(verify(*module)));
  std::vector<std::string> names;
  for (Operation &part : *module->getBody())
    if (const op::OpInfo *info = graph::infoOf(&part); info && info != &op::table::softmax) {
      names.push_back(info->name);
      EXPECT_EQ(part.getLoc(), loc);
    }
  EXPECT_EQ(names, (std::vector<std::string>{"max", "sub", "exp", "sum", "div"}));
}

/// Integers next to the smallest one stand for symbolic sizes. In a text they stand for nothing: not for whatever
/// expression is numbered that way in this process.
TEST_F(GraphTest, NumbersAreNoHandlesOfSizes) {
  dim::symbol("n"); // the first handle exists
  std::string message;
  ScopedDiagnosticHandler keep(&context, [&](Diagnostic &d) { message = d.str(); });
  test::Random random(3);
  int checked = 0;
  for (const op::OpInfo *info : op::allOps()) {
    const auto call = test::proposeCall(*info, f32, random);
    for (size_t i = 0; call && i < call->attrs.size(); ++i) {
      auto *number = std::get_if<tressel::Size>(&call->attrs[i]);
      auto *list = std::get_if<op::Sizes>(&call->attrs[i]);
      if (!number && (!list || list->empty()))
        continue;
      Block block;
      for (const tressel::TensorType &type : call->operands)
        block.addArgument(graph::toMlir(&context, type), builder.getUnknownLoc());
      for (int64_t offset :
           {int64_t(1), int64_t(2), int64_t(255), int64_t(257), int64_t(1) << 20, (int64_t(1) << 32) - 1}) {
        OpBuilder inside(&context);
        inside.setInsertionPointToEnd(&block);
        Operation *made = graph::createOp(inside, builder.getUnknownLoc(), *info, block.getArguments(), call->attrs);
        ASSERT_TRUE(succeeded(verify(made))) << info->name << ": " << message;
        op::Ints values = list ? op::numbersOf(*list) : op::Ints{0};
        values.back() = INT64_MIN + offset;
        made->setAttr(info->attrs[i].name, list ? Attribute(builder.getDenseI64ArrayAttr(values))
                                                : Attribute(builder.getI64IntegerAttr(values.back())));
        EXPECT_TRUE(failed(verify(made))) << info->name;
        EXPECT_NE(message.find(std::string("attribute '") + info->attrs[i].name + "' cannot be"), std::string::npos)
            << message;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 100);
}

TEST_F(GraphTest, FindsTheUsersLine) {
  Location user = FileLineColLoc::get(&context, "user.cpp", 3, 1), inner = FileLineColLoc::get(&context, "nn.cpp", 9, 1);
  EXPECT_EQ(graph::fileLineOf(CallSiteLoc::get(inner, user)).file, "user.cpp");
  EXPECT_EQ(graph::fileLineOf(FusedLoc::get(&context, {builder.getUnknownLoc(), user, inner})).line, 3u);
  EXPECT_EQ(graph::fileLineOf(NameLoc::get(builder.getStringAttr("x"), inner)).file, "nn.cpp");
  EXPECT_EQ(graph::fileLineOf(CallSiteLoc::get(inner, builder.getUnknownLoc())).line, 9u);
  EXPECT_EQ(graph::fileLineOf(builder.getUnknownLoc()).file, "");
}

TEST_F(GraphTest, KernelsHaveKeysByWhatTheyCompute) {
  auto kernel = [](const std::string &name, const std::string &type, const std::string &op,
                   const std::string &more = "") {
    return "tressel.kernel @" + name + "(%a: " + type + ") -> " + type + " attributes {provider = \"generated\"" +
           more + "} {\n  %0 = " + op + " : (" + type + ") -> " + type + "\n  tressel.yield %0 : " + type + "\n}\n";
  };
  const std::string flat = "tensor<4x4xf32>";
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(
      kernel("a", flat, "tressel.exp %a") + kernel("b", flat, "tressel.exp %a", ", grain = 7 : i64, flops = 9 : i64") +
          kernel("c", flat, "tressel.tanh %a") + kernel("d", "tensor<4x4xf64>", "tressel.exp %a") +
          kernel("e", flat, "tressel.transpose %a {permutation = array<i64: 1, 0>}"),
      &context);
  ASSERT_TRUE(parsed);
  auto find = [&](StringRef name) { return parsed->lookupSymbol<graph::KernelOp>(name); };
  const std::string key = graph::keyOf(find("a"));
  EXPECT_EQ(key.size(), 16u);
  EXPECT_EQ(graph::keyOf(find("b")), key); // other names, another grain
  for (StringRef other : {"c", "d", "e"})
    EXPECT_NE(graph::keyOf(find(other)), key) << other.str();
  EXPECT_TRUE(graph::movesElements(find("e")));
  for (StringRef other : {"a", "c", "d"})
    EXPECT_FALSE(graph::movesElements(find(other))) << other.str();
}

} // namespace
