// Derivatives of scalar programs, against differences of the programs themselves in more digits.
#include "ir/op/Slope.h"

#include "ir/op/OpInfo.h"
#include "ir/op/Sym.h"
#include "ir/op/Table.h"
#include "test/support/RandomOps.h"

#include <cmath>
#include <gtest/gtest.h>

namespace tressel::op {
namespace {

/// A value of a node: floats are computed in long double, whatever the node's type.
struct Value {
  long double f = 0;
  int64_t i = 0;
};

Value evaluate(const ScalarProgram &program, const std::vector<Value> &operands) {
  using enum ScalarOp;
  std::vector<Value> values;
  for (const ScalarNode &node : program.nodes) {
    auto at = [&](int k) { return values[static_cast<size_t>(node.args[k])]; };
    const bool floats = isFloat(node.args[0] < 0 ? node.dtype : program.nodes[static_cast<size_t>(node.args[0])].dtype);
    const Value a = node.args[0] < 0 ? Value() : at(0), b = node.args[1] < 0 ? Value() : at(1);
    const long double x = a.f, y = b.f;
    Value v;
    auto compare = [&](auto order) { v.i = floats ? order(x, y) : order(a.i, b.i); };
    switch (node.op) {
    case Operand:
      v = operands[static_cast<size_t>(node.i)];
      break;
    case Const:
      v = {node.f, node.i};
      break;
    case Index:
      v.i = node.i + 1;
      break; // one element, right of the diagonal
    case Size:
      v.i = node.size.number();
      break;
    case Cast:
      if (isFloat(node.dtype))
        v.f = floats ? x : static_cast<long double>(a.i);
      else
        v.i = !floats                        ? (node.dtype == DType::boolean ? a.i != 0 : a.i)
              : node.dtype == DType::boolean ? x != 0
                                             : static_cast<int64_t>(x);
      break;
    case Add:
      v = {x + y, a.i + b.i};
      break;
    case Sub:
      v = {x - y, a.i - b.i};
      break;
    case Mul:
      v = {x * y, a.i * b.i};
      break;
    case Div:
      v.f = x / y;
      break;
    case Rem:
      v.f = x - y * std::floor(x / y);
      break;
    case Pow:
      v.f = std::pow(x, y);
      break;
    case Min:
      v.f = std::isnan(x) || x < y ? x : y;
      break;
    case Max:
      v.f = std::isnan(x) || x > y ? x : y;
      break;
    case Atan2:
      v.f = std::atan2(x, y);
      break;
    case Neg:
      v = {-x, -a.i};
      break;
    case Abs:
      v.f = std::abs(x);
      break;
    case Sign:
      v.f = x > 0 ? 1 : x < 0 ? -1 : x;
      break;
    case Floor:
      v.f = std::floor(x);
      break;
    case Ceil:
      v.f = std::ceil(x);
      break;
    case Round:
      v.f = std::nearbyint(x);
      break;
    case Trunc:
      v.f = std::trunc(x);
      break;
    case Sqrt:
      v.f = std::sqrt(x);
      break;
    case Rsqrt:
      v.f = 1 / std::sqrt(x);
      break;
    case Exp:
      v.f = std::exp(x);
      break;
    case Expm1:
      v.f = std::expm1(x);
      break;
    case Log:
      v.f = std::log(x);
      break;
    case Log1p:
      v.f = std::log1p(x);
      break;
    case Sin:
      v.f = std::sin(x);
      break;
    case Cos:
      v.f = std::cos(x);
      break;
    case Tan:
      v.f = std::tan(x);
      break;
    case Asin:
      v.f = std::asin(x);
      break;
    case Acos:
      v.f = std::acos(x);
      break;
    case Atan:
      v.f = std::atan(x);
      break;
    case Sinh:
      v.f = std::sinh(x);
      break;
    case Cosh:
      v.f = std::cosh(x);
      break;
    case Tanh:
      v.f = std::tanh(x);
      break;
    case Erf:
      v.f = std::erf(x);
      break;
    case Logistic:
      v.f = 1 / (1 + std::exp(-x));
      break;
    case Eq:
      compare(std::equal_to<>());
      break;
    case Ne:
      compare(std::not_equal_to<>());
      break;
    case Lt:
      compare(std::less<>());
      break;
    case Le:
      compare(std::less_equal<>());
      break;
    case Gt:
      compare(std::greater<>());
      break;
    case Ge:
      compare(std::greater_equal<>());
      break;
    case IsNan:
      v.i = std::isnan(x);
      break;
    case And:
      v.i = a.i & b.i;
      break;
    case Or:
      v.i = a.i | b.i;
      break;
    case Xor:
      v.i = a.i ^ b.i;
      break;
    case Shl:
      v.i = int64_t(uint64_t(a.i) << b.i);
      break;
    case Shr:
      v.i = int64_t(uint64_t(a.i) >> b.i);
      break;
    case Not:
      v.i = node.dtype == DType::boolean ? !a.i : ~a.i;
      break;
    case Select:
      v = a.i ? b : at(2);
      break;
    default:
      ADD_FAILURE() << "is not evaluated here: " << int(node.op);
      break;
    }
    values.push_back(v);
  }
  return values[static_cast<size_t>(program.result)];
}

struct Differences {
  long double left = 0, middle = 0, right = 0;
  /// Whether they show a slope: near a kink, a jump or a pole they differ.
  bool isSmooth() const { return std::abs(left - right) <= 1e-2L * (1 + std::abs(middle)); }
};
/// Of the fourth order in the middle.
Differences differences(const ScalarProgram &program, std::vector<Value> at, size_t operand) {
  const long double x = at[operand].f, h = 1e-5L * std::max(1.L, std::abs(x));
  auto f = [&](long double steps) {
    at[operand].f = x + steps * h;
    return evaluate(program, at).f;
  };
  return {(f(0) - f(-2)) / (2 * h), (8 * (f(1) - f(-1)) - (f(2) - f(-2))) / (12 * h), (f(2) - f(0)) / (2 * h)};
}

class SlopesOf : public testing::TestWithParam<const OpInfo *> {};

TEST_P(SlopesOf, AreWhatDifferencesShow) {
  const OpInfo &info = *GetParam();
  tressel::test::Random random(11);
  int calls = 0, compared = 0, skipped = 0;
  for (int tries = 0; tries < 40 && calls < 8; ++tries) {
    const auto call = tressel::test::proposeCall(info, f64, random, {});
    if (!call || call->results[0].dtype != f64)
      continue;
    ++calls;
    const ScalarProgram program = recordElementwise(info, call->operands, call->results[0], call->attrs);
    for (size_t operand = 0; operand < call->operands.size(); ++operand) {
      if (call->operands[operand].dtype != f64)
        continue;
      const auto slope = slopeOf(program, static_cast<int>(operand));
      for (int point = 0; point < 50; ++point) {
        std::vector<Value> at;
        for (size_t i = 0; i < call->operands.size(); ++i) {
          const Domain domain = info.domains.empty() ? Domain() : info.domains[i];
          const double drawn = domain.low + (domain.high - domain.low) * random.unit();
          at.push_back({drawn, call->operands[i].dtype == DType::boolean ? drawn > 0 : int64_t(drawn)});
        }
        const Differences want = differences(program, at, operand);
        if (!want.isSmooth()) {
          ++skipped;
          continue;
        }
        const long double got = slope ? evaluate(*slope, at).f : 0;
        EXPECT_TRUE(std::abs(got - want.middle) <= 1e-9L * (1 + std::abs(want.middle)))
            << "operand " << operand << " at " << static_cast<double>(at[0].f) << ", "
            << (at.size() > 1 ? static_cast<double>(at[1].f) : 0) << ": " << static_cast<double>(got) << ", not "
            << static_cast<double>(want.middle);
        ++compared;
      }
    }
  }
  EXPECT_LE(skipped, compared / 4);
}

std::vector<const OpInfo *> elementwiseOps() {
  std::vector<const OpInfo *> ops;
  for (const OpInfo *info : allOps())
    if (info->elementwise && !info->operands.empty())
      ops.push_back(info);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Ops, SlopesOf, testing::ValuesIn(elementwiseOps()),
                         [](const auto &info) { return std::string(info.param->name); });

ScalarProgram programOf(const OpInfo &info, std::vector<TensorType> operands, Attrs attrs = {}) {
  EXPECT_EQ(completeAttrs(info, attrs), "");
  const Inferred inferred = info.infer(info, operands, attrs);
  EXPECT_TRUE(inferred) << inferred.error;
  return recordElementwise(info, operands, inferred.types[0], attrs);
}
double slopeAt(const OpInfo &info, double x, Attrs attrs = {}) {
  const auto slope = slopeOf(programOf(info, {{f64, {}}}, std::move(attrs)), 0);
  return slope ? static_cast<double>(evaluate(*slope, {{x, 0}}).f) : 0;
}
double slopeAt(const OpInfo &info, int operand, double x, double y) {
  const auto slope = slopeOf(programOf(info, {{f64, {}}, {f64, {}}}), operand);
  return slope ? static_cast<double>(evaluate(*slope, {{x, 0}, {y, 0}}).f) : 0;
}

TEST(Slope, ValuesAtKinks) {
  EXPECT_EQ(slopeAt(table::abs, 0), 0);
  EXPECT_EQ(slopeAt(table::relu, 0), 0);
  EXPECT_EQ(slopeAt(table::relu, 1e-300), 1);
  EXPECT_EQ(slopeAt(table::maximum, 0, 3, 3), 0.5);
  EXPECT_EQ(slopeAt(table::maximum, 1, 3, 3), 0.5);
  EXPECT_EQ(slopeAt(table::minimum, 0, 3, 4), 1);
  EXPECT_EQ(slopeAt(table::minimum, 1, 3, 4), 0);
}

/// 0 * inf is NaN, which must not come out of a branch that is not taken, nor of powers at their ends.
TEST(Slope, UntakenBranchesDoNotReachTheResult) {
  EXPECT_EQ(slopeAt(table::pow, 0, 0, 0), 0);
  EXPECT_EQ(slopeAt(table::pow, 0, 0, 1), 1);
  EXPECT_EQ(slopeAt(table::pow, 0, 0, 2), 0);
  EXPECT_EQ(slopeAt(table::pow, 1, 0, 2), 0);
  EXPECT_EQ(slopeAt(table::pow, 0, -2, 3), 12);
  // sqrt(where(x > 0, x, 0)): 0.5 / sqrt(0) is infinite, and the branch with x is not taken.
  ScalarRecorder recorder;
  const Sym x(&recorder, recorder.add({ScalarOp::Operand, f64}));
  recorder.program.result = sqrt(select(x > 0, x, 0)).node;
  const auto slope = slopeOf(recorder.program, 0);
  ASSERT_TRUE(slope);
  EXPECT_EQ(evaluate(*slope, {{-1, 0}}).f, 0);
  EXPECT_EQ(evaluate(*slope, {{4, 0}}).f, 0.25);
}

TEST(Slope, StepsAndIntegersHaveNone) {
  for (const OpInfo *info : {&table::floor, &table::ceil, &table::round, &table::trunc, &table::sign})
    EXPECT_FALSE(slopeOf(programOf(*info, {{f32, {4}}}), 0)) << info->name;
  EXPECT_FALSE(slopeOf(programOf(table::less, {{f32, {4}}, {f32, {4}}}), 0));
  EXPECT_FALSE(slopeOf(programOf(table::add, {{i32, {4}}, {i32, {4}}}), 1));
  EXPECT_TRUE(slopeOf(programOf(table::add, {{i32, {4}}, {f32, {4}}}), 1));
  EXPECT_FALSE(slopeOf(programOf(table::add, {{i32, {4}}, {f32, {4}}}), 0));
}

/// A slope is a program of the same kind: it has slopes itself.
TEST(Slope, SecondOrder) {
  const ScalarProgram sine = programOf(table::sin, {{f64, {}}});
  const auto second = slopeOf(*slopeOf(sine, 0), 0);
  ASSERT_TRUE(second);
  EXPECT_NEAR(static_cast<double>(evaluate(*second, {{0.7, 0}}).f), -std::sin(0.7), 1e-15);
  const ScalarProgram tanh = programOf(table::tanh, {{f64, {}}});
  const auto curve = slopeOf(*slopeOf(tanh, 0), 0);
  ASSERT_TRUE(curve);
  const double y = std::tanh(0.7);
  EXPECT_NEAR(static_cast<double>(evaluate(*curve, {{0.7, 0}}).f), -2 * y * (1 - y * y), 1e-15);
}

} // namespace
} // namespace tressel::op
