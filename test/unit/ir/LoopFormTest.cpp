// Every op's loop form, run by the book, must give what the reference evaluation gives, on calls made up at random. This
// judges maps, guards, scalar programs and combiners together, without code generation.
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Evaluate.h"
#include "ir/op/TableSupport.h"
#include "ir/op/Num.h"
#include "test/support/RandomOps.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace tressel;
using namespace tressel::op;
using interp::Element;

namespace {

using Point = std::vector<int64_t>; // a domain may have more dimensions than a tensor

/// An element of `type` computed by `fn` on typed numbers.
template <class Fn> Element typed(DType type, Fn fn) {
  return interp::dispatch(type, [&]<class T>(std::type_identity<T>) -> Element { return fn(std::type_identity<T>()); });
}

Element scalarNode(const ScalarNode &node, const std::vector<Element> &values, const Point &point,
                   const std::vector<DType> &types) {
  auto arg = [&](int i) { return values[static_cast<size_t>(node.args[i])]; };
  switch (node.op) {
  case ScalarOp::Size: return Element(node.i);
  case ScalarOp::Index: return Element(point[static_cast<size_t>(node.i)]);
  case ScalarOp::Const: return isFloat(node.dtype) ? Element(node.f) : Element(node.i);
  default: break;
  }
  DType operands = types[static_cast<size_t>(node.args[node.op == ScalarOp::Select ? 1 : 0])];
  return typed(operands, [&]<class T>(std::type_identity<T>) -> Element {
    auto num = [&](int i) { return Num<T>(arg(i).template as<T>()); };
    auto real = [&](auto f) { return Num<T>(num::convert<T>(f(static_cast<double>(num(0).v)))); };
    switch (node.op) {
    case ScalarOp::Cast: return interp::roundTo(node.dtype, typed(node.dtype, [&]<class R>(std::type_identity<R>) {
      return Element(num::convert<R>(num(0).v)); }));
    case ScalarOp::Add: return num(0) + num(1);
    case ScalarOp::Sub: return num(0) - num(1);
    case ScalarOp::Mul: return num(0) * num(1);
    case ScalarOp::Div: return num(0) / num(1);
    case ScalarOp::Rem: return num(0) % num(1);
    case ScalarOp::Pow: return pow(num(0), num(1));
    case ScalarOp::Min: return min(num(0), num(1));
    case ScalarOp::Max: return max(num(0), num(1));
    case ScalarOp::Atan2: return atan2(num(0), num(1));
    case ScalarOp::Neg: return -num(0);
    case ScalarOp::Abs: return abs(num(0));
    case ScalarOp::Sign: return sign(num(0));
    case ScalarOp::Floor: return floor(num(0));
    case ScalarOp::Ceil: return ceil(num(0));
    case ScalarOp::Round: return round(num(0));
    case ScalarOp::Trunc: return trunc(num(0));
    case ScalarOp::Sqrt: return real([](double x) { return std::sqrt(x); });
    case ScalarOp::Rsqrt: return real([](double x) { return 1 / std::sqrt(x); });
    case ScalarOp::Exp: return real([](double x) { return std::exp(x); });
    case ScalarOp::Expm1: return real([](double x) { return std::expm1(x); });
    case ScalarOp::Log: return real([](double x) { return std::log(x); });
    case ScalarOp::Log1p: return real([](double x) { return std::log1p(x); });
    case ScalarOp::Sin: return real([](double x) { return std::sin(x); });
    case ScalarOp::Cos: return real([](double x) { return std::cos(x); });
    case ScalarOp::Tan: return real([](double x) { return std::tan(x); });
    case ScalarOp::Asin: return real([](double x) { return std::asin(x); });
    case ScalarOp::Acos: return real([](double x) { return std::acos(x); });
    case ScalarOp::Atan: return real([](double x) { return std::atan(x); });
    case ScalarOp::Sinh: return real([](double x) { return std::sinh(x); });
    case ScalarOp::Cosh: return real([](double x) { return std::cosh(x); });
    case ScalarOp::Tanh: return real([](double x) { return std::tanh(x); });
    case ScalarOp::Erf: return real([](double x) { return std::erf(x); });
    case ScalarOp::Logistic: return real([](double x) { return 1 / (1 + std::exp(-x)); });
    case ScalarOp::Eq: return num(0) == num(1);
    case ScalarOp::Ne: return num(0) != num(1);
    case ScalarOp::Lt: return num(0) < num(1);
    case ScalarOp::Le: return num(0) <= num(1);
    case ScalarOp::Gt: return num(0) > num(1);
    case ScalarOp::Ge: return num(0) >= num(1);
    case ScalarOp::IsNan: return isnan(num(0));
    case ScalarOp::Select: return arg(0).as<bool>() ? num(1) : num(2);
    case ScalarOp::Not:
      if constexpr (std::is_same_v<T, bool>)
        return !num(0);
      else if constexpr (std::is_integral_v<T>)
        return ~num(0);
      break;
    case ScalarOp::And:
      if constexpr (std::is_same_v<T, bool>)
        return num(0) && num(1);
      else if constexpr (std::is_integral_v<T>)
        return num(0) & num(1);
      break;
    case ScalarOp::Or:
      if constexpr (std::is_same_v<T, bool>)
        return num(0) || num(1);
      else if constexpr (std::is_integral_v<T>)
        return num(0) | num(1);
      break;
    case ScalarOp::Xor:
      if constexpr (std::is_integral_v<T>)
        return num(0) ^ num(1);
      break;
    case ScalarOp::Shl:
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        return num(0) << num(1);
      break;
    case ScalarOp::Shr:
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        return num(0) >> num(1);
      break;
    default: break;
    }
    ADD_FAILURE() << "scalar op " << static_cast<int>(node.op) << " on " << nameOf(operands);
    return {};
  });
}

class LoopRunner {
public:
  LoopRunner(const LoopForm &loop, const std::vector<HostTensor> &inputs, HostTensor &out)
      : loop(loop), inputs(inputs), out(out) {}

  void run() {
    Shape parallel, reduced;
    for (size_t i = 0; i < loop.domain.size(); ++i)
      (static_cast<int>(i) < loop.numParallel ? parallel : reduced).push_back(loop.domain[i]);
    for (interp::Walk at(parallel); at; ++at) {
      if (loop.combine == Combine::None) {
        interp::store(out, at.position(), body({at.index().begin(), at.index().end()}));
        continue;
      }
      Element result;
      int64_t best = 0;
      bool first = true;
      for (interp::Walk r(reduced); r; ++r) {
        Point point(at.index().begin(), at.index().end());
        point.insert(point.end(), r.index().begin(), r.index().end());
        Element value = body(point);
        if (bool better = false; isArg()) {
          if (first || wins(value, result, better))
            best = r.position();
          if (first || better)
            result = value;
        } else {
          result = first ? value : combine(result, value);
        }
        first = false;
      }
      if (first)
        result = neutral();
      if (isArg())
        result = Element(best);
      else if (loop.scale != 1 || loop.divisor != 1)
        result = Element(result.as<double>() * loop.scale * (1 / static_cast<double>(loop.divisor)));
      interp::store(out, at.position(), result);
    }
  }

private:
  bool isArg() const { return loop.combine == Combine::ArgMax || loop.combine == Combine::ArgMin; }
  DType bodyType() const { return loop.body.nodes[static_cast<size_t>(loop.body.result)].dtype; }
  Element neutral() const {
    switch (loop.combine) {
    case Combine::Prod: return isFloat(bodyType()) ? Element(1.0) : Element(int64_t(1));
    case Combine::All: return Element(true);
    default: return isFloat(bodyType()) ? Element(0.0) : Element(int64_t(0));
    }
  }
  /// Whether `value` replaces `best`: NaN wins once, the first of equals stays.
  bool wins(Element value, Element best, bool &better) const {
    better = typed(bodyType(), [&]<class T>(std::type_identity<T>) -> Element {
      T v = value.as<T>(), b = best.as<T>();
      if (b != b)
        return false;
      return v != v || (loop.combine == Combine::ArgMax ? v > b : v < b);
    }).as<bool>();
    return better;
  }
  Element combine(Element a, Element b) const {
    return typed(bodyType(), [&]<class T>(std::type_identity<T>) -> Element {
      Num<T> x(a.as<T>()), y(b.as<T>());
      switch (loop.combine) {
      case Combine::Sum: // in double: the order of sums is not what is tested here
        return isFloat(bodyType()) ? Element(a.as<double>() + b.as<double>()) : Element(x + y);
      case Combine::Prod: return isFloat(bodyType()) ? Element(a.as<double>() * b.as<double>()) : Element(x * y);
      case Combine::Max: return max(x, y);
      case Combine::Min: return min(x, y);
      case Combine::Any: return a.as<bool>() || b.as<bool>();
      case Combine::All: return a.as<bool>() && b.as<bool>();
      default: ADD_FAILURE() << "combiner"; return {};
      }
    });
  }

  /// The operand's element at the point; nothing when guarded and outside.
  std::optional<Element> read(size_t operand, const Point &point) {
    const OperandMap &map = loop.operands[operand];
    const HostTensor &tensor = inputs[operand];
    EXPECT_EQ(map.dims.size(), tensor.type.shape.size());
    interp::Index index;
    for (size_t d = 0; d < map.dims.size(); ++d) {
      const IndexExpr &expr = map.dims[d];
      int64_t i = expr.offset.number();
      for (const IndexExpr::Term &term : expr.terms)
        i += (term.coef * point[static_cast<size_t>(term.dim)]).number();
      int64_t size = tensor.type.shape[static_cast<int>(d)].number();
      if (expr.indirect >= 0) {
        i += read(static_cast<size_t>(expr.indirect), point)->as<int64_t>();
        if (i < 0)
          i += size;
      }
      if (i < 0 || i >= size) {
        EXPECT_TRUE(map.guarded) << "operand " << operand << " read outside, at " << i << " of " << size;
        return std::nullopt;
      }
      index.push_back(i);
    }
    return interp::load(tensor, interp::positionOf(tensor.type.shape, index));
  }

  Element body(const Point &point) {
    std::vector<Element> values;
    std::vector<DType> types;
    for (const ScalarNode &node : loop.body.nodes) {
      if (node.op == ScalarOp::Operand) {
        std::optional<Element> value;
        if (loop.alternatives)
          for (size_t i = 0; i < loop.operands.size() && !value; ++i)
            value = read(i, point);
        else
          value = read(static_cast<size_t>(node.i), point);
        double outside = loop.operands[loop.alternatives ? 0 : static_cast<size_t>(node.i)].outside;
        EXPECT_EQ(node.dtype, inputs[static_cast<size_t>(node.i)].type.dtype);
        values.push_back(value ? *value : typed(node.dtype, [&]<class T>(std::type_identity<T>) {
          return Element(num::convert<T>(outside));
        }));
      } else {
        values.push_back(scalarNode(node, values, point, types));
      }
      types.push_back(node.dtype);
    }
    return values[static_cast<size_t>(loop.body.result)];
  }

  const LoopForm &loop;
  const std::vector<HostTensor> &inputs;
  HostTensor &out;
};

class LoopForms : public testing::TestWithParam<const OpInfo *> {};

TEST_P(LoopForms, AgreeWithReference) {
  const OpInfo &info = *GetParam();
  int compared = 0;
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::i64, DType::i32, DType::i8, DType::u8, DType::boolean}) {
    test::Random random(17 + static_cast<uint64_t>(dtype));
    for (int round = 0; round < 12; ++round) {
      std::optional<test::OpCall> call = test::proposeCall(info, dtype, random, {4, 4, round % 4 == 3 ? 0.3 : 0.0});
      if (!call)
        continue;
      std::optional<LoopForm> loop = info.loopForm(info, call->operands, call->results, call->attrs);
      if (!loop)
        continue;
      ASSERT_EQ(loop->operands.size(), call->operands.size());
      ASSERT_GE(loop->domain.size(), call->results[0].shape.size());
      ASSERT_EQ(loop->numParallel, call->results[0].rank());
      if (loop->combine == Combine::None)
        ASSERT_EQ(loop->body.nodes[static_cast<size_t>(loop->body.result)].dtype, call->results[0].dtype);
      std::vector<HostTensor> inputs;
      for (size_t i = 0; i < call->operands.size(); ++i)
        inputs.push_back(test::randomOperand(*call, i, random));
      interp::Evaluation want = interp::run(info, inputs, call->attrs);
      if (!want && info.family == Family::Indexing)
        continue; // nothing to index
      ASSERT_TRUE(want) << want.error;
      HostTensor got = HostTensor::allocate(call->results[0]);
      LoopRunner(*loop, inputs, got).run();
      std::string difference = interp::compare(got, want.outputs[0], {1e-5, 1e-6, 4});
      EXPECT_EQ(difference, "") << info.name << " of " << call->operands.size() << " operands, first "
                                << (call->operands.empty() ? "none" : call->operands[0].str()) << ", result "
                                << call->results[0].str();
      ++compared;
    }
  }
  EXPECT_EQ(compared > 0, info.loopForm != noLoopForm) << "no call has the loop form that the record names";
  const bool isPrimitive = !info.isView && !info.decompose;
  EXPECT_TRUE(!isPrimitive || info.loopForm != noLoopForm || info.kernelForm) << "nothing can run the op";
}

INSTANTIATE_TEST_SUITE_P(Ops, LoopForms, testing::ValuesIn(allOps().begin(), allOps().end()),
                         [](const auto &param) { return std::string(param.param->name); });

} // namespace
