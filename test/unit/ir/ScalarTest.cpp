// Scalar programs: what a fragment leaves when it is applied to recorded scalars.
#include "ir/op/Sym.h"
#include "ir/op/Table.h"

#include <gtest/gtest.h>

using namespace tressel;
using namespace tressel::op;

namespace {

std::string text(const ScalarProgram &p) {
  static const char *names[] = {
      "operand", "index", "size", "const", "cast",  "add",  "sub",  "mul",  "div",  "rem",  "pow", "min",  "max",      "atan2",
      "neg",     "abs",   "sign",  "floor", "ceil", "round", "trunc", "sqrt", "rsqrt", "exp", "expm1", "log",   "log1p",
      "sin",     "cos",   "tan",   "asin",  "acos", "atan", "sinh", "cosh", "tanh", "erf", "logistic", "eq",    "ne",
      "lt",      "le",    "gt",    "ge",    "isnan", "and", "or",   "xor",  "not",  "shl", "shr",  "select"};
  std::string s;
  for (size_t i = 0; i < p.nodes.size(); ++i) {
    const ScalarNode &n = p.nodes[i];
    s += "%" + std::to_string(i) + " = " + names[static_cast<int>(n.op)] + " " + std::string(nameOf(n.dtype));
    if (n.op == ScalarOp::Const)
      s += " " + (isFloat(n.dtype) ? std::to_string(n.f) : std::to_string(n.i));
    if (n.op == ScalarOp::Operand || n.op == ScalarOp::Index || n.op == ScalarOp::Size)
      s += " #" + std::to_string(n.i);
    for (int a : n.args)
      if (a >= 0)
        s += " %" + std::to_string(a);
    s += "\n";
  }
  return s + "result %" + std::to_string(p.result) + "\n";
}

ScalarProgram record(const OpInfo &op, std::vector<TensorType> operands, Attrs attrs = {}) {
  EXPECT_EQ(completeAttrs(op, attrs), "");
  Inferred inferred = op.infer(op, operands, attrs);
  EXPECT_TRUE(inferred) << inferred.error;
  return recordElementwise(op, operands, inferred.types[0], attrs);
}

TEST(ScalarProgram, PromotesOperands) {
  EXPECT_EQ(text(record(table::add, {{f32, {2}}, {i32, {2}}})), "%0 = operand f32 #0\n"
                                                                "%1 = operand i32 #1\n"
                                                                "%2 = cast f32 %1\n"
                                                                "%3 = add f32 %0 %2\n"
                                                                "result %3\n");
}

TEST(ScalarProgram, HalfComputesInSingle) {
  EXPECT_EQ(text(record(table::exp, {{f16, {2}}})), "%0 = operand f16 #0\n"
                                                    "%1 = cast f32 %0\n"
                                                    "%2 = exp f32 %1\n"
                                                    "%3 = cast f16 %2\n"
                                                    "result %3\n");
}

TEST(ScalarProgram, ComparisonGivesBoolAndIntegersStayIntegers) {
  EXPECT_EQ(text(record(table::less, {{i64, {2}}, {u8, {2}}})), "%0 = operand i64 #0\n"
                                                                "%1 = operand u8 #1\n"
                                                                "%2 = cast i64 %1\n"
                                                                "%3 = lt bool %0 %2\n"
                                                                "result %3\n");
}

TEST(ScalarProgram, ConditionsAreNotPromoted) {
  EXPECT_EQ(text(record(table::where, {{i32, {2}}, {f64, {2}}, {f32, {}}})), "%0 = operand i32 #0\n"
                                                                             "%1 = cast bool %0\n"
                                                                             "%2 = operand f64 #1\n"
                                                                             "%3 = operand f32 #2\n"
                                                                             "%4 = cast f64 %3\n"
                                                                             "%5 = select f64 %1 %2 %4\n"
                                                                             "result %5\n");
}

TEST(ScalarProgram, AttributesAreConstantsAndEqualNodesAreOne) {
  EXPECT_EQ(text(record(table::leaky_relu, {{f32, {2}}}, {Attr(0.25)})), "%0 = operand f32 #0\n"
                                                                         "%1 = const f32 0.000000\n"
                                                                         "%2 = ge bool %0 %1\n"
                                                                         "%3 = const f32 0.250000\n"
                                                                         "%4 = mul f32 %0 %3\n"
                                                                         "%5 = select f32 %2 %0 %4\n"
                                                                         "result %5\n");
  EXPECT_EQ(record(table::square, {{f32, {2}}}).nodes.size(), 2u);
}

TEST(ScalarProgram, CastTakesItsTypeFromTheAttribute) {
  EXPECT_EQ(text(record(table::cast, {{i64, {2}}}, {Attr(DType::boolean)})), "%0 = operand i64 #0\n"
                                                                             "%1 = cast bool %0\n"
                                                                             "result %1\n");
}

TEST(ScalarProgram, LargeIntegerLiteralsAreExact) {
  ScalarProgram p = record(table::random_uniform, {{i64, {}}}, {Attr(Ints{2, 3}), Attr(DType::f32)});
  bool found = false;
  for (const ScalarNode &n : p.nodes)
    found |= n.op == ScalarOp::Const && n.dtype == i64 && n.i == 0xffffffff;
  EXPECT_TRUE(found);
  EXPECT_LT(p.nodes.size(), 300u);
}

} // namespace
