#include "codegen/MatrixProduct.h"

#include "ir/graph/Graph.h"

#include <algorithm>

namespace tressel::codegen {

using op::LoopForm;

double hinted(Size size) { return static_cast<double>(dim::hint(size)); }

int32_t inputOf(const passes::Candidate &candidate, int32_t operand) {
  mlir::Value value = candidate.ops[0]->getOperand(static_cast<unsigned>(operand));
  return static_cast<int32_t>(llvm::find(candidate.inputs, value) - candidate.inputs.begin());
}

std::optional<BinaryRoot> binaryRootOf(const passes::Candidate &c) {
  if (c.ops.size() != 1 || c.results.size() != 1 || c.inputs.size() != 2)
    return std::nullopt;
  mlir::Operation *o = c.ops[0];
  const op::OpInfo *info = graph::infoOf(o);
  if (!info || !(info->loopForm || op::isProduct(info->family)) || o->getNumOperands() != 2 || o->getNumResults() != 1)
    return std::nullopt;
  BinaryRoot r{info, graph::attrsOf(o, *info), {}, graph::fromMlir(o->getResult(0).getType())};
  for (mlir::Value v : o->getOperands())
    r.operands.push_back(graph::fromMlir(v.getType()));
  auto fits = [&](const TensorType &t) {
    return t.dtype == r.type() && (t.dtype == f32 || t.dtype == f16 || t.dtype == bf16) && dim::isKnown(t.shape) &&
           llvm::none_of(t.shape, [](Size size) { return size == 0; });
  };
  if (!fits(r.result) || !fits(r.operands[0]) || !fits(r.operands[1]))
    return std::nullopt;
  return r;
}

namespace {

/// Is the body the product of the two operands, whatever casts to f32 surround them?
bool isProduct(const LoopForm &form) {
  const auto &nodes = form.body.nodes;
  auto skipCasts = [&](int32_t i) {
    while (nodes[i].op == op::ScalarOp::Cast && nodes[i].dtype == f32)
      i = nodes[i].args[0];
    return i;
  };
  const op::ScalarNode &product = nodes[skipCasts(form.body.result)];
  if (product.op != op::ScalarOp::Mul || product.dtype != f32)
    return false;
  const op::ScalarNode &a = nodes[skipCasts(product.args[0])], &b = nodes[skipCasts(product.args[1])];
  return a.op == op::ScalarOp::Operand && b.op == op::ScalarOp::Operand && a.i + b.i == 1;
}

/// A domain dimension with the element stride each tensor moves by along it.
struct Dim {
  Size size;
  std::array<Size, 3> stride; ///< left, right, result
};

/// Strides of one operand over the domain; nothing if its map is more than a permutation and broadcast.
std::optional<std::vector<Size>> stridesOf(const LoopForm &form, const op::OperandMap &map, const Shape &shape) {
  if (map.guarded || map.dims.size() != shape.size())
    return std::nullopt;
  std::vector<Size> strides(form.domain.size());
  Size step = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const op::IndexExpr &e = map.dims[static_cast<size_t>(d)];
    if (e.offset != 0 || e.indirect >= 0)
      return std::nullopt;
    for (const auto &term : e.terms)
      strides[static_cast<size_t>(term.dim)] += term.coef * step;
    step *= shape[d];
  }
  return strides;
}

/// Joins neighbouring dimensions that one stride describes in all three tensors. Empty becomes one dimension of size 1.
std::optional<Dim> merge(const std::vector<Dim> &dims) {
  Dim all{1, {0, 0, 0}};
  bool first = true;
  for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
    if (first) {
      all = *d, first = false;
      continue;
    }
    for (int t = 0; t < 3; ++t)
      if (d->stride[t] != all.stride[t] * all.size)
        return std::nullopt;
    all.size *= d->size;
  }
  return all;
}

} // namespace

std::optional<MatrixProduct> asMatrixProduct(const BinaryRoot &root) {
  if (!root.info->loopForm)
    return std::nullopt;
  auto form = root.info->loopForm(*root.info, root.operands, std::span(&root.result, 1), root.attrs);
  if (!form || form->combine != op::Combine::Sum || form->scale != 1 || form->divisor != 1 || form->alternatives ||
      form->operands.size() != 2 || !isProduct(*form))
    return std::nullopt;
  auto left = stridesOf(*form, form->operands[0], root.operands[0].shape);
  auto right = stridesOf(*form, form->operands[1], root.operands[1].shape);
  if (!left || !right)
    return std::nullopt;
  std::vector<Dim> batch, rows, columns, reduced;
  std::vector<Size> result(form->domain.size());
  Size step = 1;
  for (int d = form->numParallel - 1; d >= 0; --d)
    result[static_cast<size_t>(d)] = step, step *= form->domain[static_cast<size_t>(d)];
  for (size_t d = 0; d < form->domain.size(); ++d) {
    Dim dim{form->domain[d], {(*left)[d], (*right)[d], result[d]}};
    if (dim.size == 1)
      continue;
    bool inLeft = dim.stride[0] != 0, inRight = dim.stride[1] != 0;
    if (static_cast<int>(d) >= form->numParallel) {
      if (!inLeft || !inRight)
        return std::nullopt;
      reduced.push_back(dim);
    } else if (inLeft && inRight) {
      batch.push_back(dim);
    } else if (inLeft) {
      rows.push_back(dim);
    } else if (inRight) {
      columns.push_back(dim);
    } else {
      return std::nullopt;
    }
  }
  auto b = merge(batch), m = merge(rows), n = merge(columns), k = merge(reduced);
  if (!b || !m || !n || !k || dim::bounds(k->size).lo < 1)
    return std::nullopt;
  // The result must be stored batch, rows, columns; if the columns come first, the product is taken the other way
  // round.
  auto rowMajor = [&] {
    return (n->size == 1 || n->stride[2] == 1) && (m->size == 1 || m->stride[2] == n->size) &&
           (b->size == 1 || b->stride[2] == m->size * n->size);
  };
  int l = 0, r = 1;
  if (!rowMajor()) {
    std::swap(m, n), std::swap(l, r);
    if (!rowMajor())
      return std::nullopt;
  }
  auto stride = [](const Dim &d, int tensor) { return d.size == 1 ? 0 : d.stride[tensor]; };
  return MatrixProduct{b->size,
                       m->size,
                       n->size,
                       k->size,
                       {stride(*b, l), stride(*m, l), stride(*k, l)},
                       {stride(*b, r), stride(*k, r), stride(*n, r)},
                       l,
                       r};
}

} // namespace tressel::codegen
