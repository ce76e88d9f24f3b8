#include "ir/op/Gradient.h"

#include "ir/op/Exprs.h"
#include "ir/op/Infer.h"
#include "ir/op/Slope.h"
#include "ir/op/Sym.h"
#include "ir/op/Table.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace tressel::op::expr {

ReverseRule::ReverseRule(Emitter &emitter, const GradientCall &call) : Fragment(emitter), call(call) {
  for (Emitter::Ref ref : call.operands)
    operands.push_back(take(ref));
  for (Emitter::Ref ref : call.results)
    results.push_back(take(ref));
  for (Emitter::Ref ref : call.cotangents)
    cotangents.push_back(take(ref));
}

const Expr &ReverseRule::operand(int i) const {
  static const Expr absent;
  return static_cast<size_t>(i) < operands.size() ? operands[static_cast<size_t>(i)] : absent;
}

std::vector<Emitter::Ref> ReverseRule::finish(const Cotangents &made) {
  std::vector<Emitter::Ref> refs(operands.size(), nullptr);
  for (size_t i = 0; i < std::min(refs.size(), made.values.size()); ++i)
    if (call.wanted[i] && made.values[i])
      refs[i] = emit(sumLike(made.values[i], operands[i].type()));
  return refs;
}

Expr sumLike(const Expr &x, const TensorType &like) {
  Expr result = x;
  const int leading = x.rank() - like.rank();
  Ints axes;
  for (int i = 0; i < x.rank(); ++i)
    if (i < leading || (like.shape[i - leading] == 1 && x.size(i) != 1))
      axes.push_back(i);
  if (!axes.empty())
    result = sum(result, axes, true);
  result = cast(result, like.dtype);
  if (leading > 0)
    return reshape(result, {like.shape.begin(), like.shape.end()});
  // A rule may return a smaller shape if the cotangent is the same for all elements.
  return result.type().shape == like.shape ? result : broadcast_to(result, {like.shape.begin(), like.shape.end()});
}

Expr unreduced(const Expr &reduced, const Expr &x, const Ints *axis) {
  const uint32_t mask = *normalizeAxes(axis, x.rank());
  Sizes shape = x.sizes();
  for (int i = 0; i < x.rank(); ++i)
    if (mask >> i & 1)
      shape[static_cast<size_t>(i)] = 1;
  return reduced.rank() == x.rank() ? reduced : reshape(reduced, shape);
}

Expr zeros(const TensorType &type) { return full({type.shape.begin(), type.shape.end()}, 0, type.dtype); }

Expr countAlong(const Expr &x, const Ints *axis) {
  const uint32_t mask = *normalizeAxes(axis, x.rank());
  Size n = 1;
  for (int i = 0; i < x.rank(); ++i)
    n = mask >> i & 1 ? n * x.size(i) : n;
  return Expr::number(n, accumulatorType(x.dtype())); // not in f16, which ends at 65504
}

Expr transposed(const Expr &matrices) { return swapaxes(matrices, -1, -2); }

namespace {
/// Translates scalar programs to elementwise ops.
class Translation {
public:
  Translation(const ScalarProgram &program, const std::vector<Expr> &operands, const Shape &shape)
      : program(program), operands(operands), shape(shape), made(program.nodes.size()) {}

  /// Uses `value` for a node of the program.
  void set(int32_t node, const Expr &value) { made[static_cast<size_t>(node)] = value; }

  /// The node's value times g; empty if it is zero everywhere.
  Expr times(int32_t at, const Expr &g) {
    const ScalarNode &node = nodeAt(at);
    auto constant = [&](int32_t arg, double value) {
      return nodeAt(arg).op == ScalarOp::Const && isFloat(nodeAt(arg).dtype) && nodeAt(arg).f == value;
    };
    switch (node.op) {
    case ScalarOp::Const:
      return node.f == 0 ? Expr() : node.f == 1 ? g : g * node.f;
    case ScalarOp::Neg: {
      const Expr inner = times(node.args[0], g);
      return inner ? negative(inner) : inner;
    }
    case ScalarOp::Cast:
      if (isFloat(nodeAt(node.args[0]).dtype))
        return times(node.args[0], cast(g, nodeAt(node.args[0]).dtype));
      break;
    case ScalarOp::Div:
      if (constant(node.args[0], 1))
        return g / value(node.args[1]);
      break;
    case ScalarOp::Select: {
      const Expr yes = times(node.args[1], g), no = times(node.args[2], g);
      if (!yes && !no)
        return {};
      const Expr zero = Expr::scalar(0, (yes ? yes : no).dtype());
      return where(value(node.args[0]), yes ? yes : zero, no ? no : zero);
    }
    default:
      break;
    }
    return g * value(at);
  }

private:
  const ScalarNode &nodeAt(int32_t i) const { return program.nodes[static_cast<size_t>(i)]; }
  Expr value(int32_t i) {
    Expr &e = made[static_cast<size_t>(i)];
    if (!e) {
      const Expr built = build(nodeAt(i)); // a copy: entries of `made` change meanwhile
      made[static_cast<size_t>(i)] = built;
      return built;
    }
    return e;
  }
  Expr build(const ScalarNode &node) {
    using enum ScalarOp;
    const DType type = node.dtype;
    switch (node.op) {
    case Operand:
      return operands[static_cast<size_t>(node.i)];
    case Index: {
      Sizes along{shape[static_cast<int>(node.i)]};
      along.resize(static_cast<size_t>(shape.rank() - node.i), 1);
      return iota(along, 0, DType::i64);
    }
    case Size:
      return Expr::number(node.size);
    case Const:
      return Expr::scalar(isFloat(type) ? node.f : static_cast<double>(node.i), type);
    case Cast:
      return cast(value(node.args[0]), type);
    default:
      break;
    }
    const Expr a = value(node.args[0]), b = node.args[1] >= 0 ? value(node.args[1]) : Expr();
    const bool isBool = type == DType::boolean;
    switch (node.op) {
    case Add: return a + b;
    case Sub: return a - b;
    case Mul: return a * b;
    case Div: return isFloat(type) ? a / b : floor_divide(a, b);
    case Rem: return remainder(a, b);
    case Pow: return pow(a, b);
    case Min: return minimum(a, b);
    case Max: return maximum(a, b);
    case Atan2: return atan2(a, b);
    case Neg: return negative(a);
    case Abs: return abs(a);
    case Sign: return sign(a);
    case Floor: return floor(a);
    case Ceil: return ceil(a);
    case Round: return round(a);
    case Trunc: return trunc(a);
    case Sqrt: return sqrt(a);
    case Rsqrt: return rsqrt(a);
    case Exp: return exp(a);
    case Expm1: return expm1(a);
    case Log: return log(a);
    case Log1p: return log1p(a);
    case Sin: return sin(a);
    case Cos: return cos(a);
    case Tan: return tan(a);
    case Asin: return asin(a);
    case Acos: return acos(a);
    case Atan: return atan(a);
    case Sinh: return sinh(a);
    case Cosh: return cosh(a);
    case Tanh: return tanh(a);
    case Erf: return erf(a);
    case Logistic: return sigmoid(a);
    case Eq: return equal(a, b);
    case Ne: return not_equal(a, b);
    case Lt: return less(a, b);
    case Le: return less_equal(a, b);
    case Gt: return greater(a, b);
    case Ge: return greater_equal(a, b);
    case IsNan: return isnan(a);
    case And: return isBool ? logical_and(a, b) : bitwise_and(a, b);
    case Or: return isBool ? logical_or(a, b) : bitwise_or(a, b);
    case Xor: return isBool ? logical_xor(a, b) : bitwise_xor(a, b);
    case Not: return isBool ? logical_not(a) : bitwise_not(a);
    case Shl: return left_shift(a, b);
    case Select: return where(a, b, value(node.args[2]));
    default:
      throw InternalError("a slope has an instruction that no op computes");
    }
  }

  const ScalarProgram &program;
  const std::vector<Expr> &operands;
  const Shape &shape;
  std::vector<Expr> made; ///< by node
};

/// The node of `in` that computes the same as `node` of `of`, or -1.
int32_t findNode(const ScalarProgram &of, int32_t node, const ScalarProgram &in) {
  ScalarNode wanted = of.nodes[static_cast<size_t>(node)];
  for (int32_t &arg : wanted.args)
    if (arg >= 0 && (arg = findNode(of, arg, in)) < 0)
      return -1;
  const auto found = std::ranges::find(in.nodes, wanted);
  return found == in.nodes.end() ? -1 : static_cast<int32_t>(found - in.nodes.begin());
}

class ElementwiseRule : ReverseRule {
public:
  ElementwiseRule(const OpInfo &info, Emitter &emitter, const GradientCall &call) : ReverseRule(emitter, call), info(info), call(call) {}

  std::vector<Emitter::Ref> run() {
    const size_t n = call.operands.size();
    std::vector<Expr> operands = operandsFrom(0), made(n);
    std::vector<TensorType> types;
    for (const Expr &e : operands)
      types.push_back(e.type());
    const ScalarProgram program = recordElementwise(info, types, result(0).type(), call.attrs);
    for (size_t i = 0; i < n; ++i) {
      if (!call.wanted[i])
        continue;
      const std::optional<ScalarProgram> slope = slopeOf(program, static_cast<int>(i));
      if (!slope)
        continue;
      Translation translation(*slope, operands, result(0).type().shape);
      // The slope of exp and the like is computed from the result, which exists already.
      const ScalarOp top = program.nodes[static_cast<size_t>(program.result)].op;
      if (top != ScalarOp::Operand && top != ScalarOp::Const && top != ScalarOp::Cast)
        if (const int32_t at = findNode(program, program.result, *slope); at >= 0)
          translation.set(at, result(0));
      made[i] = translation.times(slope->result, cotangent(0));
    }
    return finish(made);
  }

private:
  const OpInfo &info;
  const GradientCall &call;
};
} // namespace
} // namespace tressel::op::expr

namespace tressel::op {

std::vector<Emitter::Ref> gradientOfElementwise(const OpInfo &info, Emitter &emitter, const GradientCall &call) {
  return expr::ElementwiseRule(info, emitter, call).run();
}

static std::vector<Emitter::Ref> pullBackUnnamed(const OpInfo &op, Emitter &emitter, const GradientCall &call) {
  expr::NoGradient none(std::string("the op ") + op.name);
  if (op.gradient) {
    try {
      return op.gradient(op, emitter, call);
    } catch (const expr::NoGradient &reason) { // no rule for these attributes; the decomposition may have one
      none = reason;
    }
  }
  if (!op.decompose)
    throw none;
  std::vector<Emitter::Ref> inputs;
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (call.wanted[i])
      inputs.push_back(call.operands[i]);
  Tape tape(emitter, inputs);
  const std::vector<Emitter::Ref> results = op.decompose(op, tape, call.operands, call.attrs);
  if (tape.isOnly(op, call.attrs)) // the decomposition only converts operands, so it gives no new rule
    throw none;
  const std::vector<Emitter::Ref> all = tape.backward(results, call.cotangents, call.operands);
  std::vector<Emitter::Ref> cotangents(all.size(), nullptr);
  for (size_t i = 0; i < all.size(); ++i) // a value that occurs several times has one cotangent, which counts once
    if (call.wanted[i] &&
        std::find(call.operands.begin(), call.operands.begin() + i, call.operands[i]) == call.operands.begin() + i)
      cotangents[i] = all[i];
  return cotangents;
}

std::vector<Emitter::Ref> pullBack(const OpInfo &op, Emitter &emitter, const GradientCall &call) {
  try {
    return pullBackUnnamed(op, emitter, call);
  } catch (const expr::WrongOp &wrong) {
    throw expr::WrongOp(std::string("gradient of ") + op.name + ": " + wrong.why);
  }
}

std::vector<Emitter::Ref> Tape::emit(const OpInfo &op, std::span<const Ref> inputs, const Attrs &attrs) {
  std::vector<Ref> results = emitter_.emit(op, inputs, attrs);
  note(op, inputs, results, attrs);
  return results;
}

void Tape::note(const OpInfo &op, std::span<const Ref> operands, std::span<const Ref> results, const Attrs &attrs,
                const void *origin) {
  if (!anyIsActive(operands))
    return;
  active_.insert(results.begin(), results.end());
  calls_.push_back({&op, {operands.begin(), operands.end()}, {results.begin(), results.end()}, attrs, {}, origin});
}

void Tape::note(PullBack pull, std::span<const Ref> operands, std::span<const Ref> results, const void *origin) {
  if (!anyIsActive(operands))
    return;
  active_.insert(results.begin(), results.end());
  calls_.push_back(
      {nullptr, {operands.begin(), operands.end()}, {results.begin(), results.end()}, {}, std::move(pull), origin});
}

bool Tape::isOnly(const OpInfo &op, const Attrs &attrs) const {
  auto isIt = [&](const Call &call) { return call.op == &op && call.attrs == attrs; };
  return std::ranges::any_of(calls_, isIt) &&
         std::ranges::all_of(calls_, [&](const Call &call) { return isIt(call) || call.op == &table::cast; });
}

std::vector<Emitter::Ref> Tape::backward(std::span<const Ref> results, std::span<const Ref> cotangents,
                                         std::span<const Ref> inputs) {
  std::unordered_map<Ref, Ref> sums;
  auto accumulate = [&](Ref value, Ref cotangent) {
    if (!cotangent)
      return;
    Ref &sum = sums[value];
    sum = sum ? emitter_.emit(table::add, std::array{sum, cotangent}, {})[0] : cotangent;
  };
  auto sumOf = [&](Ref value) {
    const auto found = sums.find(value);
    return found == sums.end() ? nullptr : found->second;
  };
  for (size_t i = 0; i < results.size(); ++i)
    accumulate(results[i], cotangents[i]);
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    std::vector<Ref> given;
    for (Ref result : call->results)
      given.push_back(isFloat(emitter_.typeOf(result).dtype) ? sumOf(result) : nullptr);
    if (std::ranges::all_of(given, [](Ref ref) { return !ref; }))
      continue;
    std::vector<uint8_t> wanted;
    for (Ref operand : call->operands)
      wanted.push_back(isActive(operand));
    enter(call->origin);
    const GradientCall gradientCall{call->operands, call->results, given, call->attrs, wanted};
    const std::vector<Ref> made = call->pull ? call->pull(gradientCall) : pull(*call->op, gradientCall);
    for (size_t i = 0; i < made.size(); ++i)
      accumulate(call->operands[i], made[i]);
  }
  std::vector<Ref> found;
  for (Ref input : inputs)
    found.push_back(sumOf(input));
  return found;
}

} // namespace tressel::op
