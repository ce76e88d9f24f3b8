#include "codegen/loops/LoopPlan.h"

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

#include "ir/op/Infer.h"
#include <algorithm>
#include <cassert>
#include <map>

namespace tressel::codegen {
namespace {

using op::Combine;
using op::ScalarOp;

Size product(const std::vector<Size> &sizes, size_t from, size_t to) {
  Size n = 1;
  for (size_t i = from; i < to; ++i) {
    if (!op::multiply(n, sizes[i]))
      throw tressel::Error("the loops of an op have too many steps: their number leaves 64 bits");
  }
  return n;
}

bool isReduction(const KernelGraph::Op &o) {
  // A reduction over one point is its body: nothing is combined.
  return o.form.combine != Combine::None &&
         product(o.form.domain, static_cast<size_t>(o.form.numParallel), o.form.domain.size()) != 1;
}

/// Whether the order of the terms changes the bits of the result.
bool isOrderSensitive(const KernelGraph::Op &o, DType type) {
  return isReduction(o) && (o.form.combine == Combine::Sum || o.form.combine == Combine::Prod) && isFloat(type);
}

/// The index expression is one domain dimension, unchanged.
std::optional<int32_t> plainDim(const op::IndexExpr &e) {
  if (e.indirect >= 0 || e.offset != 0 || e.terms.size() != 1 || e.terms[0].coef != 1)
    return std::nullopt;
  return e.terms[0].dim;
}

/// Sets of (op, domain dimension) pairs and input dimensions that run together. Two dimensions of one op never join.
class DimClasses {
public:
  int add(int owner) {
    parent_.push_back(static_cast<int>(parent_.size()));
    owners_.push_back({owner});
    return parent_.back();
  }
  int find(int a) {
    while (parent_[static_cast<size_t>(a)] != a)
      a = parent_[static_cast<size_t>(a)] = parent_[static_cast<size_t>(parent_[static_cast<size_t>(a)])];
    return a;
  }
  void join(int a, int b) {
    a = find(a), b = find(b);
    if (a == b)
      return;
    auto &oa = owners_[static_cast<size_t>(a)], &ob = owners_[static_cast<size_t>(b)];
    for (int o : oa)
      if (std::find(ob.begin(), ob.end(), o) != ob.end())
        return;
    oa.insert(oa.end(), ob.begin(), ob.end());
    parent_[static_cast<size_t>(b)] = a;
  }

private:
  std::vector<int> parent_;
  std::vector<std::vector<int>> owners_;
};

class Builder {
public:
  Builder(const KernelGraph &graph, int rowDims) : graph_(graph), rowDims_(rowDims) {}
  std::optional<LoopPlan> run(std::string *why) {
    if (build())
      return std::move(plan_);
    if (why)
      *why = why_;
    return std::nullopt;
  }

private:
  bool fail(const char *why) {
    why_ = why;
    return false;
  }

  bool build();
  void classify();
  bool chooseDims();
  bool placeOp(const KernelGraph::Op &o, std::vector<Affine> &index, bool &full);
  bool emitRoots();
  bool fixOrder(const KernelGraph::Op &o, const std::vector<Affine> &index);
  void assignStages();
  void mergeDims();
  bool canMerge(size_t a, size_t b) const;
  void removeUnused();

  int32_t intern(Expr e);
  int32_t constant(DType type, double f, int64_t i);
  int32_t scalar(ScalarOp op, DType type, int32_t a, int32_t b = -1, int32_t c = -1);
  int32_t cast(int32_t e, DType type);
  int32_t select(int32_t cond, int32_t a, int32_t b);
  int32_t conjunction(int32_t a, int32_t b);
  int32_t inRange(const Affine &a, Size size);
  uint64_t dimsOf(const Affine &a) const;
  Affine zero() const { return {std::vector<Size>(plan_.dims.size()), 0, {}}; }

  // Each returns an expression, or -1 after fail().
  int32_t pull(int32_t value, const std::vector<Affine> &index, int32_t guard);
  int32_t pullOp(const KernelGraph::Op &o, const std::vector<Affine> &domain, int32_t guard);
  int32_t pullOperand(const KernelGraph::Op &o, size_t k, const std::vector<Affine> &domain, int32_t guard,
                      int32_t *holds);
  bool operandIndex(const KernelGraph::Op &o, size_t k, const std::vector<Affine> &domain, int32_t guard,
                    std::vector<Affine> &index);

  const KernelGraph &graph_;
  const int rowDims_;
  LoopPlan plan_;
  std::string why_ = "no plan";
  std::vector<int> producer_;    // op of each value, -1
  std::vector<int> splat_;       // splat of each value, -1
  std::vector<int> inputNumber_; // kernel operand of each value, -1
  DimClasses classes_;
  std::vector<std::vector<int>> opDims_;            // class node of each domain dim of each op
  std::map<int, size_t> loopOf_;                    // class to loop dim
  std::vector<int> reductionOf_;                    // op to its number in plan_.reductions
  std::vector<std::vector<Affine>> reductionIndex_; // its result's index in loop dims
  std::map<std::string, int32_t> interned_;
  std::map<std::string, int32_t> pulled_;
};

void appendBytes(std::string &s, const void *p, size_t n) { s.append(static_cast<const char *>(p), n); }
template <typename T> void appendKey(std::string &s, T v) { appendBytes(s, &v, sizeof v); }
void appendKey(std::string &s, const Affine &a) {
  for (Size c : a.coef)
    appendKey(s, c);
  appendKey(s, a.offset);
  for (const auto &i : a.indirect)
    appendKey(s, i.expr), appendKey(s, i.scale);
  s += ';';
}

uint64_t Builder::dimsOf(const Affine &a) const {
  uint64_t mask = 0;
  for (size_t d = 0; d < a.coef.size(); ++d)
    if (a.coef[d] != 0)
      mask |= uint64_t(1) << d;
  for (const auto &i : a.indirect)
    mask |= plan_.exprs[static_cast<size_t>(i.expr)].dims;
  return mask;
}

int32_t Builder::intern(Expr e) {
  e.dims |= dimsOf(e.index);
  for (int32_t a : e.args)
    if (a >= 0)
      e.dims |= plan_.exprs[static_cast<size_t>(a)].dims;
  if (e.guard >= 0)
    e.dims |= plan_.exprs[static_cast<size_t>(e.guard)].dims;
  std::string key;
  appendKey(key, e.kind), appendKey(key, e.dtype), appendKey(key, e.op);
  for (int32_t a : e.args)
    appendKey(key, a);
  appendKey(key, e.f), appendKey(key, e.i), appendKey(key, e.size), appendKey(key, e.buffer), appendKey(key, e.guard),
      appendKey(key, e.index);
  auto [it, fresh] = interned_.try_emplace(std::move(key), static_cast<int32_t>(plan_.exprs.size()));
  if (fresh)
    plan_.exprs.push_back(std::move(e));
  return it->second;
}

int32_t Builder::constant(DType type, double f, int64_t i) {
  Expr e;
  e.index = zero();
  e.dtype = type;
  e.op = ScalarOp::Const;
  e.f = isFloat(type) ? f : 0;
  e.i = isFloat(type) ? 0 : i;
  return intern(std::move(e));
}

int32_t Builder::scalar(ScalarOp op, DType type, int32_t a, int32_t b, int32_t c) {
  if (op == ScalarOp::Pow && isFloat(type)) { // a square is exact, and one instruction instead of a hundred
    const Expr &power = plan_.exprs[static_cast<size_t>(b)];
    if (power.kind == ExprKind::Scalar && power.op == ScalarOp::Const && power.f == 2)
      return scalar(ScalarOp::Mul, type, a, a);
  }
  Expr e;
  e.index = zero();
  e.dtype = type;
  e.op = op;
  e.args[0] = a, e.args[1] = b, e.args[2] = c;
  return intern(std::move(e));
}

int32_t Builder::cast(int32_t e, DType type) {
  return plan_.exprs[static_cast<size_t>(e)].dtype == type ? e : scalar(ScalarOp::Cast, type, e);
}

int32_t Builder::select(int32_t cond, int32_t a, int32_t b) {
  return scalar(ScalarOp::Select, plan_.exprs[static_cast<size_t>(a)].dtype, cond, a, b);
}

int32_t Builder::conjunction(int32_t a, int32_t b) {
  if (a < 0 || a == b)
    return b;
  return b < 0 ? a : scalar(ScalarOp::And, DType::boolean, a, b);
}

/// -1 when the index cannot leave the range.
int32_t Builder::inRange(const Affine &a, Size size) {
  if (a.indirect.empty()) {
    Size low = a.offset, high = a.offset;
    bool decided = true;
    for (size_t d = 0; d < a.coef.size(); ++d) {
      const dim::Bounds sign = dim::bounds(a.coef[d]);
      decided &= sign.lo >= 0 || sign.hi <= 0;
      Size &end = sign.lo < 0 ? low : high;
      end += a.coef[d] * (plan_.dims[d].size - 1);
    }
    if (decided && dim::atMost(0, low) && dim::less(high, size).value_or(false))
      return -1;
  }
  Expr e;
  e.kind = ExprKind::InRange;
  e.dtype = DType::boolean;
  e.index = a;
  e.size = size;
  return intern(std::move(e));
}

bool Builder::operandIndex(const KernelGraph::Op &o, size_t k, const std::vector<Affine> &domain, int32_t guard,
                           std::vector<Affine> &index) {
  const Shape &shape = graph_.types[static_cast<size_t>(o.operands[k])].shape;
  const op::OperandMap &map = o.form.operands[k];
  if (map.dims.size() != shape.size())
    return fail("an operand's map does not match its rank");
  for (size_t d = 0; d < map.dims.size(); ++d) {
    const op::IndexExpr &e = map.dims[d];
    Affine a = zero();
    a.offset = e.offset;
    for (const auto &term : e.terms) {
      const Affine &of = domain[static_cast<size_t>(term.dim)];
      for (size_t i = 0; i < a.coef.size(); ++i)
        a.coef[i] += term.coef * of.coef[i];
      a.offset += term.coef * of.offset;
      for (const auto &i : of.indirect)
        a.indirect.push_back({i.expr, i.scale * term.coef});
    }
    if (e.indirect >= 0) {
      const int32_t value = pullOperand(o, static_cast<size_t>(e.indirect), domain, guard, nullptr);
      if (value < 0)
        return false;
      Expr checked;
      checked.kind = ExprKind::Checked;
      checked.dtype = DType::i64;
      checked.args[0] = cast(value, DType::i64);
      checked.guard = guard;
      checked.size = shape[static_cast<int>(d)];
      checked.index = zero();
      a.indirect.push_back({intern(std::move(checked)), 1});
    }
    index.push_back(std::move(a));
  }
  return true;
}

/// The value of operand k at a point of the domain. `holds`, if wanted, gets the operand's own guard (-1: always).
int32_t Builder::pullOperand(const KernelGraph::Op &o, size_t k, const std::vector<Affine> &domain, int32_t guard,
                             int32_t *holds) {
  std::vector<Affine> index;
  if (!operandIndex(o, k, domain, guard, index))
    return -1;
  const op::OperandMap &map = o.form.operands[k];
  const int32_t value = o.operands[k];
  int32_t own = -1;
  if (map.guarded) {
    const Shape &shape = graph_.types[static_cast<size_t>(value)].shape;
    for (size_t d = 0; d < index.size(); ++d)
      own = conjunction(own, inRange(index[d], shape[static_cast<int>(d)]));
  }
  if (holds)
    *holds = own;
  const int32_t inside = pull(value, index, conjunction(guard, own));
  if (inside < 0 || own < 0 || holds)
    return inside;
  const DType type = plan_.exprs[static_cast<size_t>(inside)].dtype;
  const int64_t whole = type == bool_ ? map.outside != 0 : isFloat(type) ? 0 : static_cast<int64_t>(map.outside);
  return select(own, inside, constant(type, map.outside, whole));
}

int32_t Builder::pullOp(const KernelGraph::Op &o, const std::vector<Affine> &domain, int32_t guard) {
  const DType resultType = graph_.types[static_cast<size_t>(o.result)].dtype;
  if (o.form.alternatives) {
    // The last alternative ends the chain: one of the guards holds at every point of the domain.
    int32_t value = -1;
    for (size_t k = o.operands.size(); k-- > 0;) {
      int32_t holds = -1;
      const int32_t v = pullOperand(o, k, domain, guard, &holds);
      if (v < 0)
        return -1;
      const int32_t typed = cast(v, resultType);
      value = value < 0 || holds < 0 ? typed : select(holds, typed, value);
    }
    return value;
  }
  std::vector<int32_t> at(o.form.body.nodes.size(), -1);
  for (size_t n = 0; n < at.size(); ++n) {
    const op::ScalarNode &node = o.form.body.nodes[n];
    if (node.op == ScalarOp::Operand) {
      const int32_t v = pullOperand(o, static_cast<size_t>(node.i), domain, guard, nullptr);
      if (v < 0)
        return -1;
      at[n] = cast(v, node.dtype);
    } else if (node.op == ScalarOp::Index) {
      Expr e;
      e.kind = ExprKind::Index;
      e.dtype = DType::i64;
      e.index = domain[static_cast<size_t>(node.i)];
      at[n] = cast(intern(std::move(e)), node.dtype);
    } else if (node.op == ScalarOp::Size) {
      Expr e; // an index that is the same everywhere
      e.kind = ExprKind::Index;
      e.dtype = DType::i64;
      e.index = zero();
      e.index.offset = node.size;
      at[n] = cast(intern(std::move(e)), node.dtype);
    } else if (node.op == ScalarOp::Const) {
      at[n] = constant(node.dtype, node.f, node.i);
    } else {
      auto arg = [&](int k) { return node.args[k] < 0 ? -1 : at[static_cast<size_t>(node.args[k])]; };
      at[n] =
          node.op == ScalarOp::Cast ? cast(arg(0), node.dtype) : scalar(node.op, node.dtype, arg(0), arg(1), arg(2));
    }
  }
  return at[static_cast<size_t>(o.form.body.result)];
}

int32_t Builder::pull(int32_t value, const std::vector<Affine> &index, int32_t guard) {
  std::string key;
  appendKey(key, value), appendKey(key, guard);
  for (const Affine &a : index)
    appendKey(key, a);
  if (auto it = pulled_.find(key); it != pulled_.end())
    return it->second;
  const TensorType &type = graph_.types[static_cast<size_t>(value)];
  int32_t result = -1;
  if (const int s = splat_[static_cast<size_t>(value)]; s >= 0) {
    result = constant(type.dtype, graph_.splats[static_cast<size_t>(s)].f, graph_.splats[static_cast<size_t>(s)].i);
    for (const Affine &a : index) // whether an index is in range counts even where all elements are the same
      for (const auto &i : a.indirect)
        result = select(scalar(ScalarOp::Lt, DType::boolean, i.expr, constant(DType::i64, 0, 0)), result, result);
  } else if (const int in = inputNumber_[static_cast<size_t>(value)]; in >= 0) {
    Expr e;
    e.kind = ExprKind::Load;
    e.dtype = type.dtype;
    e.buffer = in;
    e.guard = guard;
    e.index = zero();
    Size stride = 1;
    for (size_t d = index.size(); d-- > 0; stride *= type.shape[static_cast<int>(d)]) {
      if (type.shape[static_cast<int>(d)] == 1 && index[d].indirect.empty())
        continue; // in range, it is 0; out of range, the guard does not hold
      for (size_t i = 0; i < e.index.coef.size(); ++i)
        e.index.coef[i] += stride * index[d].coef[i];
      e.index.offset += stride * index[d].offset;
      for (const auto &i : index[d].indirect)
        e.index.indirect.push_back({i.expr, i.scale * stride});
    }
    result = intern(std::move(e));
  } else {
    const int p = producer_[static_cast<size_t>(value)];
    const KernelGraph::Op &o = graph_.ops[static_cast<size_t>(p)];
    if (isReduction(o)) {
      const int r = reductionOf_[static_cast<size_t>(p)];
      for (size_t d = 0; d < index.size(); ++d)
        if (type.shape[static_cast<int>(d)] != 1 && index[d] != reductionIndex_[static_cast<size_t>(r)][d]) {
          fail("a reduction's result is read at another point than it is computed for");
          return -1;
        }
      Expr e;
      e.kind = ExprKind::Reduced;
      e.dtype = type.dtype;
      e.i = r;
      e.index = zero();
      for (int32_t d = 0; d < plan_.numParallel; ++d)
        e.dims |= uint64_t(1) << d;
      result = intern(std::move(e));
    } else {
      std::vector<Affine> domain = index;
      domain.resize(o.form.domain.size(), zero()); // reduced dims of size 1
      result = pullOp(o, domain, guard);
      if (result < 0)
        return -1;
      if (o.form.scale != 1) {
        const DType t = plan_.exprs[static_cast<size_t>(result)].dtype;
        result = scalar(ScalarOp::Mul, t, result, constant(t, o.form.scale, 0));
      }
      if (o.form.combine == Combine::ArgMax || o.form.combine == Combine::ArgMin)
        result = constant(type.dtype, 0, 0);
      result = cast(result, type.dtype);
    }
  }
  return pulled_[key] = result;
}

void Builder::classify() {
  const size_t numOps = graph_.ops.size();
  opDims_.resize(numOps);
  for (size_t o = 0; o < numOps; ++o)
    for (size_t d = 0; d < graph_.ops[o].form.domain.size(); ++d)
      opDims_[o].push_back(classes_.add(static_cast<int>(o)));
  // First along the edges between ops, then through inputs that several ops read.
  std::map<int32_t, std::vector<int>> inputDims;
  for (bool throughInputs : {false, true})
    for (size_t o = 0; o < numOps; ++o) {
      const KernelGraph::Op &user = graph_.ops[o];
      for (size_t k = 0; k < user.operands.size(); ++k) {
        const int32_t value = user.operands[k];
        const Shape &shape = graph_.types[static_cast<size_t>(value)].shape;
        const int p = producer_[static_cast<size_t>(value)];
        if ((p < 0) != throughInputs)
          continue;
        std::vector<int> *dims = nullptr;
        if (p >= 0) {
          dims = &opDims_[static_cast<size_t>(p)];
        } else {
          dims = &inputDims[value];
          if (dims->empty())
            for (int d = 0; d < shape.rank(); ++d)
              dims->push_back(classes_.add(-1 - value));
        }
        for (size_t d = 0; d < user.form.operands[k].dims.size(); ++d)
          if (auto dim = plainDim(user.form.operands[k].dims[d]);
              dim && shape[static_cast<int>(d)] != 1 &&
              shape[static_cast<int>(d)] == user.form.domain[static_cast<size_t>(*dim)])
            classes_.join((*dims)[d], opDims_[o][static_cast<size_t>(*dim)]);
      }
    }
}

/// The nest's dimensions are those of the largest reduction, or of the largest result.
bool Builder::chooseDims() {
  int root = -1;
  int64_t best = -1;
  bool reduces = false;
  for (size_t o = 0; o < graph_.ops.size(); ++o) {
    const KernelGraph::Op &candidate = graph_.ops[o];
    const bool r = isReduction(candidate);
    const bool isResult =
        std::find(graph_.results.begin(), graph_.results.end(), candidate.result) != graph_.results.end();
    if (!r && !isResult)
      continue;
    const int64_t points = dim::hint(product(candidate.form.domain, 0, candidate.form.domain.size()));
    if (std::make_pair(r, points) > std::make_pair(reduces, best))
      root = static_cast<int>(o), best = points, reduces = r;
  }
  if (root < 0)
    return fail("no op makes a result");
  const op::LoopForm &form = graph_.ops[static_cast<size_t>(root)].form;
  int leading = 0;
  for (size_t d = 0; d < form.domain.size(); ++d) {
    const bool reduced = static_cast<int32_t>(d) >= form.numParallel;
    if (form.domain[d] == 1)
      continue;
    if (plan_.dims.size() >= 60)
      return fail("too many dimensions");
    loopOf_[classes_.find(opDims_[static_cast<size_t>(root)][d])] = plan_.dims.size();
    plan_.dims.push_back({form.domain[d], reduced});
    plan_.numParallel += !reduced;
    leading += static_cast<int>(d) < rowDims_;
  }
  plan_.unitDims = rowDims_ < 0 ? -1 : leading;
  return true;
}

/// Maps the op's domain to loop dimensions; `full`: it uses reduced ones.
bool Builder::placeOp(const KernelGraph::Op &o, std::vector<Affine> &index, bool &full) {
  const size_t number = static_cast<size_t>(&o - graph_.ops.data());
  uint64_t parallel = 0, reduced = 0;
  for (size_t d = 0; d < o.form.domain.size(); ++d) {
    Affine a = zero();
    if (o.form.domain[d] != 1) {
      auto it = loopOf_.find(classes_.find(opDims_[number][d]));
      if (it == loopOf_.end())
        return fail("an op runs over a dimension that the others do not have");
      a.coef[it->second] = 1;
      const bool isReduced = plan_.dims[it->second].reduced;
      (isReduced ? reduced : parallel) |= uint64_t(1) << it->second;
      if (isReduction(o) && isReduced != (static_cast<int32_t>(d) >= o.form.numParallel))
        return fail("one op reduces a dimension that another one keeps");
    }
    index.push_back(std::move(a));
  }
  full = reduced != 0;
  const uint64_t allParallel = (uint64_t(1) << plan_.numParallel) - 1;
  const uint64_t all = (uint64_t(1) << plan_.dims.size()) - 1;
  if (parallel != allParallel || (reduced != 0 && (parallel | reduced) != all))
    return fail("the ops have different domains");
  if (isReduction(o) && !full)
    return fail("the ops reduce different dimensions");
  return true;
}

/// The op's own form gives the order of its terms. All reductions of the nest run in one pass, so they must agree.
bool Builder::fixOrder(const KernelGraph::Op &o, const std::vector<Affine> &index) {
  int32_t last = -1; // the innermost reduced dimension that has a length
  size_t outer = 0;
  for (size_t d = static_cast<size_t>(o.form.numParallel); d < o.form.domain.size(); ++d) {
    if (o.form.domain[d] == 1)
      continue;
    last = static_cast<int32_t>(d);
    const auto loop = static_cast<size_t>(std::ranges::find(index[d].coef, Size(1)) - index[d].coef.begin());
    if (loop < outer)
      return fail("a reduction's dimensions run in another order than it adds up its terms");
    outer = loop;
  }
  // Vectors suit operands that lie along it.
  bool along = true;
  for (size_t k = 0; k < o.operands.size(); ++k) {
    const Shape &shape = graph_.types[static_cast<size_t>(o.operands[k])].shape;
    int d = shape.rank();
    while (d > 0 && shape[d - 1] == 1)
      --d;
    along &= d == 0 || plainDim(o.form.operands[k].dims[static_cast<size_t>(d - 1)]) == last;
  }
  const TermOrder order = along ? TermOrder::AlongLanes : TermOrder::OneByOne;
  if (plan_.order != TermOrder::Free && plan_.order != order)
    return fail("the reductions add up their terms in different orders");
  plan_.order = order;
  return true;
}

bool Builder::emitRoots() {
  reductionOf_.assign(graph_.ops.size(), -1);
  for (size_t o = 0; o < graph_.ops.size(); ++o) {
    const KernelGraph::Op &op = graph_.ops[o];
    if (!isReduction(op))
      continue;
    std::vector<Affine> index;
    bool full = false;
    if (!placeOp(op, index, full))
      return false;
    if (graph_.deterministic && isOrderSensitive(op, graph_.types[static_cast<size_t>(op.result)].dtype) &&
        !fixOrder(op, index))
      return false;
    const int32_t body = pullOp(op, index, -1);
    if (body < 0)
      return false;
    index.resize(static_cast<size_t>(op.form.numParallel));
    reductionOf_[o] = static_cast<int>(plan_.reductions.size());
    reductionIndex_.push_back(std::move(index));
    Reduction r;
    DType type = plan_.exprs[static_cast<size_t>(body)].dtype;
    if (type == DType::f16 || type == DType::bf16)
      type = DType::f32;
    r.body = cast(body, type);
    r.combine = op.form.combine;
    r.scale = op.form.scale;
    if (op.form.divisor.isNumber())
      r.scale /= static_cast<double>(op.form.divisor);
    else
      r.divisor = op.form.divisor;
    r.accumulate = type;
    r.dtype = graph_.types[static_cast<size_t>(op.result)].dtype;
    plan_.reductions.push_back(r);
  }
  for (size_t i = 0; i < graph_.results.size(); ++i) {
    const int32_t value = graph_.results[i];
    const int p = producer_[static_cast<size_t>(value)];
    if (p < 0)
      return fail("a result is an operand");
    const KernelGraph::Op &op = graph_.ops[static_cast<size_t>(p)];
    std::vector<Affine> index;
    Store s;
    if (!placeOp(op, index, s.full))
      return false;
    index.resize(static_cast<size_t>(op.form.numParallel));
    if (isReduction(op))
      s.full = false;
    s.buffer = static_cast<int32_t>(graph_.inputs.size() + i);
    s.value = pull(value, index, -1);
    if (s.value < 0)
      return false;
    s.index = zero();
    const Shape &shape = graph_.types[static_cast<size_t>(value)].shape;
    Size stride = 1;
    for (int d = shape.rank(); d-- > 0; stride *= shape[d])
      for (size_t c = 0; c < s.index.coef.size(); ++c)
        s.index.coef[c] += stride * index[static_cast<size_t>(d)].coef[c];
    plan_.stores.push_back(std::move(s));
  }
  return true;
}

void Builder::assignStages() {
  // Depth of every expression in reductions; expressions are in post-order and reductions in program order.
  std::vector<int> depth(plan_.exprs.size(), 0);
  auto update = [&](size_t from) {
    for (size_t e = from; e < plan_.exprs.size(); ++e) {
      const Expr &x = plan_.exprs[e];
      int d = 0;
      for (int32_t a : x.args)
        if (a >= 0)
          d = std::max(d, depth[static_cast<size_t>(a)]);
      if (x.guard >= 0)
        d = std::max(d, depth[static_cast<size_t>(x.guard)]);
      for (const auto &i : x.index.indirect)
        d = std::max(d, depth[static_cast<size_t>(i.expr)]);
      if (x.kind == ExprKind::Reduced)
        d = std::max(d, plan_.reductions[static_cast<size_t>(x.i)].stage + 1);
      depth[e] = d;
    }
  };
  for (Reduction &r : plan_.reductions) {
    update(0);
    r.stage = depth[static_cast<size_t>(r.body)];
    plan_.numStages = std::max(plan_.numStages, r.stage + 1);
  }
}

bool Builder::canMerge(size_t a, size_t b) const {
  if (plan_.dims[a].reduced != plan_.dims[b].reduced)
    return false;
  if (plan_.dims[a].reduced && plan_.order != TermOrder::Free) // another nest might not merge them
    return false;
  if (static_cast<int32_t>(a) < plan_.unitDims && static_cast<int32_t>(b) >= plan_.unitDims)
    return false;
  const Size size = plan_.dims[b].size;
  auto fits = [&](const Affine &x) { return x.coef[a] == x.coef[b] * size; };
  for (const Expr &e : plan_.exprs)
    if (!fits(e.index))
      return false;
  for (const Store &s : plan_.stores)
    if (!fits(s.index))
      return false;
  return true;
}

void Builder::mergeDims() {
  auto drop = [&](size_t a) {
    for (Expr &e : plan_.exprs) {
      e.index.coef.erase(e.index.coef.begin() + static_cast<int64_t>(a));
      const uint64_t low = (uint64_t(1) << a) - 1;
      const bool had = e.dims >> a & 1;
      e.dims = (e.dims & low) | (e.dims >> 1 & ~low);
      if (had)
        e.dims |= uint64_t(1) << a;
    }
    for (Store &s : plan_.stores)
      s.index.coef.erase(s.index.coef.begin() + static_cast<int64_t>(a));
    plan_.dims.erase(plan_.dims.begin() + static_cast<int64_t>(a));
  };
  for (size_t b = plan_.dims.size(); b-- > 1;) {
    const size_t a = b - 1;
    if (!canMerge(a, b))
      continue;
    plan_.dims[b].size *= plan_.dims[a].size;
    plan_.numParallel -= !plan_.dims[a].reduced;
    if (static_cast<int32_t>(a) < plan_.unitDims)
      --plan_.unitDims;
    drop(a);
  }
}

/// Pulling leaves expressions behind that nothing uses in the end.
void Builder::removeUnused() {
  std::vector<char> used(plan_.exprs.size(), 0);
  for (const Reduction &r : plan_.reductions)
    used[static_cast<size_t>(r.body)] = 1;
  for (const Store &s : plan_.stores)
    used[static_cast<size_t>(s.value)] = 1;
  for (size_t e = plan_.exprs.size(); e-- > 0;) {
    if (!used[e])
      continue;
    for (int32_t a : plan_.exprs[e].args)
      if (a >= 0)
        used[static_cast<size_t>(a)] = 1;
    if (plan_.exprs[e].guard >= 0)
      used[static_cast<size_t>(plan_.exprs[e].guard)] = 1;
    for (const auto &i : plan_.exprs[e].index.indirect)
      used[static_cast<size_t>(i.expr)] = 1;
  }
  std::vector<int32_t> renamed(plan_.exprs.size(), -1);
  std::vector<Expr> kept;
  for (size_t e = 0; e < used.size(); ++e) {
    if (!used[e])
      continue;
    Expr x = std::move(plan_.exprs[e]);
    for (int32_t &a : x.args)
      a = a < 0 ? -1 : renamed[static_cast<size_t>(a)];
    x.guard = x.guard < 0 ? -1 : renamed[static_cast<size_t>(x.guard)];
    for (auto &i : x.index.indirect)
      i.expr = renamed[static_cast<size_t>(i.expr)];
    renamed[e] = static_cast<int32_t>(kept.size());
    kept.push_back(std::move(x));
  }
  plan_.exprs = std::move(kept);
  for (Reduction &r : plan_.reductions)
    r.body = renamed[static_cast<size_t>(r.body)];
  for (Store &s : plan_.stores)
    s.value = renamed[static_cast<size_t>(s.value)];
}

bool Builder::build() {
  const size_t numValues = graph_.types.size();
  producer_.assign(numValues, -1), splat_.assign(numValues, -1), inputNumber_.assign(numValues, -1);
  for (size_t o = 0; o < graph_.ops.size(); ++o) {
    producer_[static_cast<size_t>(graph_.ops[o].result)] = static_cast<int>(o);
    for (Size size : graph_.ops[o].form.domain)
      if (size == kDynamic)
        return fail("a dimension of unknown size");
  }
  for (size_t s = 0; s < graph_.splats.size(); ++s)
    splat_[static_cast<size_t>(graph_.splats[s].value)] = static_cast<int>(s);
  for (size_t i = 0; i < graph_.inputs.size(); ++i)
    inputNumber_[static_cast<size_t>(graph_.inputs[i])] = static_cast<int>(i);
  plan_.numInputs = static_cast<int32_t>(graph_.inputs.size());
  for (const auto *list : {&graph_.inputs, &graph_.results})
    for (int32_t v : *list) {
      const TensorType &t = graph_.types[static_cast<size_t>(v)];
      plan_.buffers.push_back({t.dtype, dim::numElements(t.shape)});
      if (dim::bounds(plan_.buffers.back().elements).lo > int64_t(1) << 40)
        return fail("a tensor is too large");
    }
  classify();
  if (!chooseDims() || !emitRoots())
    return false;
  removeUnused();
  assignStages();
  mergeDims();
  return true;
}

} // namespace

int64_t LoopPlan::parallelPoints() const {
  int64_t n = 1;
  for (int32_t d = 0; d < numParallel; ++d)
    n *= dim::hint(dims[static_cast<size_t>(d)].size);
  return n;
}

int64_t LoopPlan::reducedPoints() const {
  int64_t n = 1;
  for (size_t d = static_cast<size_t>(numParallel); d < dims.size(); ++d)
    n *= dim::hint(dims[d].size);
  return n;
}

int64_t LoopPlan::bytes() const {
  // Of an operand that is read here and there (a slice, rows of a table) only what the loads can reach.
  std::vector<double> reached(buffers.size(), 0);
  for (const Expr &e : exprs) {
    if (e.kind != ExprKind::Load)
      continue;
    uint64_t along = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      along |= e.index.coef[d] != 0 ? uint64_t(1) << d : 0;
    for (const Affine::Indirect &indirect : e.index.indirect)
      along |= exprs[static_cast<size_t>(indirect.expr)].dims;
    double points = 1;
    for (size_t d = 0; d < dims.size(); ++d)
      if (along >> d & 1)
        points *= static_cast<double>(dim::hint(dims[d].size));
    reached[static_cast<size_t>(e.buffer)] += points;
  }
  int64_t n = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int64_t elements = dim::hint(buffers[i].elements);
    const bool isInput = static_cast<int32_t>(i) < numInputs;
    n += (isInput && reached[i] < static_cast<double>(elements) ? static_cast<int64_t>(reached[i]) : elements) *
         sizeOf(buffers[i].dtype);
  }
  return n;
}

std::optional<LoopPlan> buildLoopPlan(const KernelGraph &graph, std::string *why, int rowDims) {
  std::optional<LoopPlan> plan = Builder(graph, rowDims).run(why);
  if (plan)
    plan->keepSubnormals = graph.keepSubnormals, plan->deterministic = graph.deterministic;
  return plan;
}

} // namespace tressel::codegen
