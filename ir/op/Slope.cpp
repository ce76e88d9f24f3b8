#include "ir/op/Slope.h"

#include "ir/op/Sym.h"

namespace tressel::op {
namespace {

/// Forward mode: computes the derivative (tangent) of each node. A tangent that is zero everywhere is absent.
class Slopes {
public:
  using Tangent = std::optional<Sym>;

  Slopes(const ScalarProgram &program, int operand) : operand_(operand) {
    for (const ScalarNode &node : program.nodes)
      add(node);
    result_ = tangents_[static_cast<size_t>(program.result)];
  }

  std::optional<ScalarProgram> take() {
    if (!result_)
      return {};
    return pruned(recorder_.program, result_->node);
  }

private:
  void add(ScalarNode node) {
    Tangent in[3];
    std::optional<Sym> args[3];
    for (int i = 0; i < 3; ++i)
      if (node.args[i] >= 0) {
        args[i] = values_[static_cast<size_t>(node.args[i])];
        in[i] = tangents_[static_cast<size_t>(node.args[i])];
        node.args[i] = args[i]->node;
      }
    const Sym value{&recorder_, recorder_.add(node)};
    values_.push_back(value);
    tangents_.push_back(isFloat(node.dtype) ? rule(node, value, args, in) : std::nullopt);
  }

  /// The tangent of a node with result `value`; `in` are the tangents of its operands `args`.
  Tangent rule(const ScalarNode &node, Sym value, const std::optional<Sym> (&args)[3], const Tangent (&in)[3]) {
    using enum ScalarOp;
    switch (node.op) {
    case Operand:
      return node.i == operand_ ? Tangent(value.literal(1)) : std::nullopt;
    case Cast:
      return in[0] ? Tangent(in[0]->to(node.dtype)) : std::nullopt;
    case Select:
      if (!in[1] && !in[2])
        return {};
      return select(*args[0], in[1].value_or(value.literal(0)), in[2].value_or(value.literal(0)));
    default:
      break;
    }
    if (!in[0] && !in[1])
      return {};
    const Sym a = *args[0], b = args[1].value_or(a);
    const Tangent &ta = in[0], &tb = in[1];
    switch (node.op) {
    case Add:
      return sum(ta, tb);
    case Sub:
      return sum(ta, negated(tb));
    case Mul:
      return sum(times(ta, [&] { return b; }), times(tb, [&] { return a; }));
    case Div:
      return sum(over(ta, b), negated(times(tb, [&] { return value / b; })));
    case Rem: // a - floor(a / b) * b
      return sum(ta, negated(times(tb, [&] { return floor(a / b); })));
    case Pow: // at b = 0, or where the power is 0, the other factor may be infinite
      return sum(times(ta, [&] { return guarded(b == 0, b * pow(a, b - 1)); }),
                 times(tb, [&] { return guarded(value == 0, value * log(a)); }));
    case Min:
      return extreme(a < b, b < a, *args[0], *args[1], ta, tb);
    case Max:
      return extreme(a > b, b > a, *args[0], *args[1], ta, tb);
    case Atan2:
      return sum(times(ta, [&] { return b / (a * a + b * b); }),
                 negated(times(tb, [&] { return a / (a * a + b * b); })));
    case Neg:
      return negated(ta);
    case Abs:
      return times(ta, [&] { return sign(a); });
    case Sqrt:
      return times(ta, [&] { return 0.5 / value; });
    case Rsqrt:
      return times(ta, [&] { return -0.5 * value * value * value; });
    case Exp:
      return times(ta, [&] { return value; });
    case Expm1: // not value + 1, which cancels for large negative numbers
      return times(ta, [&] { return exp(a); });
    case Log:
      return over(ta, a);
    case Log1p:
      return over(ta, 1 + a);
    case Sin:
      return times(ta, [&] { return cos(a); });
    case Cos:
      return negated(times(ta, [&] { return sin(a); }));
    case Tan:
      return times(ta, [&] { return 1 + value * value; });
    case Asin: // (1 - a)(1 + a) is exact near the ends, where 1 - a^2 is not
      return times(ta, [&] { return rsqrt((1 - a) * (1 + a)); });
    case Acos:
      return negated(times(ta, [&] { return rsqrt((1 - a) * (1 + a)); }));
    case Atan:
      return over(ta, 1 + a * a);
    case Sinh:
      return times(ta, [&] { return cosh(a); });
    case Cosh:
      return times(ta, [&] { return sinh(a); });
    case Tanh:
      return times(ta, [&] { return (1 - value) * (1 + value); });
    case Erf: // 2 / sqrt(pi)
      return times(ta, [&] { return 1.12837916709551257390 * exp(-(a * a)); });
    case Logistic:
      return times(ta, [&] { return value * (1 - value); });
    default: // Sign, Floor, Ceil, Round, Trunc are steps; the others have no float result
      return {};
    }
  }

  bool isConstant(Sym s) const { return nodeOf(s).op == ScalarOp::Const; }
  bool isNumber(Sym s, double number) const { return isConstant(s) && nodeOf(s).f == number; }
  const ScalarNode &nodeOf(Sym s) const { return recorder_.program.nodes[static_cast<size_t>(s.node)]; }

  Tangent sum(const Tangent &a, const Tangent &b) { return a && b ? Tangent(*a + *b) : a ? a : b; }
  Tangent negated(const Tangent &t) {
    return through(t, [](Sym s) { return -s; });
  }
  Tangent over(const Tangent &t, Sym divisor) {
    return through(t, [&](Sym s) { return s / divisor; });
  }
  /// Creates the factor only if the tangent is not absent.
  template <typename Factor> Tangent times(const Tangent &t, Factor factor) {
    return through(t, [&](Sym s) { return isNumber(s, 1) ? factor() : s * factor(); });
  }
  /// Applies `fn` under the masks of a tangent: where a condition sets it to zero it stays zero, as 0 * inf would be
  /// NaN.
  template <typename Fn> Tangent through(const Tangent &t, Fn fn) {
    if (!t)
      return {};
    const ScalarNode node = nodeOf(*t);
    if (node.op == ScalarOp::Select) {
      const Sym condition{&recorder_, node.args[0]}, yes{&recorder_, node.args[1]}, no{&recorder_, node.args[2]};
      if (isNumber(no, 0))
        return select(condition, *through(yes, fn), no);
      if (isNumber(yes, 0))
        return select(condition, yes, *through(no, fn));
    }
    return fn(*t);
  }
  Sym guarded(Sym isZero, Sym value) {
    if (const ScalarNode &node = nodeOf(isZero);
        isConstant({&recorder_, node.args[0]}) && isConstant({&recorder_, node.args[1]}))
      return nodeOf({&recorder_, node.args[0]}).f == nodeOf({&recorder_, node.args[1]}).f ? value.literal(0) : value;
    return select(isZero, value.literal(0), value);
  }
  /// Min and Max: the slope of the selected operand.
  Tangent extreme(Sym first, Sym second, Sym a, Sym b, const Tangent &ta, const Tangent &tb) {
    if (isConstant(b) && ta)
      return select(first, *ta, ta->literal(0));
    if (isConstant(a) && tb)
      return select(second, *tb, tb->literal(0));
    const Sym x = ta.value_or(a.literal(0)), y = tb.value_or(a.literal(0));
    return select(first, x, select(second, y, 0.5 * (x + y)));
  }

  /// The nodes that `result` depends on, in their order.
  static ScalarProgram pruned(const ScalarProgram &program, int32_t result) {
    std::vector<int32_t> place(program.nodes.size(), -1);
    place[static_cast<size_t>(result)] = 0;
    for (size_t i = program.nodes.size(); i-- > 0;)
      for (int32_t arg : program.nodes[i].args)
        if (place[i] >= 0 && arg >= 0)
          place[static_cast<size_t>(arg)] = 0;
    ScalarProgram out;
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      if (place[i] < 0)
        continue;
      ScalarNode node = program.nodes[i];
      for (int32_t &arg : node.args)
        arg = arg < 0 ? arg : place[static_cast<size_t>(arg)];
      place[i] = static_cast<int32_t>(out.nodes.size());
      out.nodes.push_back(node);
    }
    out.result = place[static_cast<size_t>(result)];
    return out;
  }

  ScalarRecorder recorder_;
  int operand_;
  std::vector<Sym> values_;
  std::vector<Tangent> tangents_; ///< by node
  Tangent result_;
};

} // namespace

std::optional<ScalarProgram> slopeOf(const ScalarProgram &program, int operand) {
  return Slopes(program, operand).take();
}

} // namespace tressel::op
