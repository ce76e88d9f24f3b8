#include "codegen/onednn/Provider.h"

#include "codegen/CostModel.h"
#include "codegen/onednn/Params.h"
#include "ir/graph/Graph.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tressel::onednn {

namespace {

using op::LoopForm;
using passes::Bid;
using passes::Candidate;

/// What a root is, seen by its operands' and result's types and its loop form.
struct Root {
  const op::OpInfo *info;
  op::Attrs attrs;
  std::vector<TensorType> operands;
  TensorType result;
};

std::optional<Root> describe(const Candidate &c) {
  if (c.ops.size() != 1 || c.results.size() != 1 || c.inputs.size() != 2)
    return std::nullopt;
  mlir::Operation *o = c.ops[0];
  const op::OpInfo *info = graph::infoOf(o);
  if (!info || !info->loopForm || o->getNumOperands() != 2 || o->getNumResults() != 1)
    return std::nullopt;
  Root r{info, graph::attrsOf(o, *info), {}, graph::fromMlir(o->getResult(0).getType())};
  for (mlir::Value v : o->getOperands())
    r.operands.push_back(graph::fromMlir(v.getType()));
  auto fits = [](const TensorType &t) {
    return t.dtype == f32 && dim::isKnown(t.shape) && llvm::none_of(t.shape, [](int64_t size) { return size == 0; });
  };
  if (!fits(r.result) || !fits(r.operands[0]) || !fits(r.operands[1]))
    return std::nullopt;
  return r;
}

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
  int64_t size;
  std::array<int64_t, 3> stride; ///< left, right, result
};

/// Strides of one operand over the domain; nothing if its map is more than a permutation and broadcast.
std::optional<std::vector<int64_t>> stridesOf(const LoopForm &form, const op::OperandMap &map, const Shape &shape) {
  if (map.guarded || map.dims.size() != shape.size())
    return std::nullopt;
  std::vector<int64_t> strides(form.domain.size(), 0);
  int64_t step = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const op::IndexExpr &e = map.dims[static_cast<size_t>(d)];
    if (e.offset != 0 || e.indirect >= 0)
      return std::nullopt;
    for (const auto &term : e.terms)
      strides[static_cast<size_t>(term.dim)] =
          dim::add(strides[static_cast<size_t>(term.dim)], dim::mul(term.coef, step));
    step = dim::mul(step, shape[d]);
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
      if (d->stride[t] != dim::mul(all.stride[t], all.size))
        return std::nullopt;
    all.size = dim::mul(all.size, d->size);
  }
  return all;
}

/// Any contraction of two operands whose loops fall into batch, rows, columns and one reduced range.
std::optional<Params> asMatmul(const Root &root) {
  if (!root.info->loopForm)
    return std::nullopt;
  auto form = root.info->loopForm(*root.info, root.operands, std::span(&root.result, 1), root.attrs);
  if (!form || form->combine != op::Combine::Sum || form->scale != 1 || form->divisor != 1 || form->alternatives || form->operands.size() != 2 ||
      !isProduct(*form))
    return std::nullopt;
  auto left = stridesOf(*form, form->operands[0], root.operands[0].shape);
  auto right = stridesOf(*form, form->operands[1], root.operands[1].shape);
  if (!left || !right)
    return std::nullopt;
  std::vector<Dim> batch, rows, columns, reduced;
  std::vector<int64_t> result(form->domain.size(), 0);
  int64_t step = 1;
  for (int d = form->numParallel - 1; d >= 0; --d)
    result[static_cast<size_t>(d)] = step, step = dim::mul(step, form->domain[static_cast<size_t>(d)]);
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
  if (!b || !m || !n || !k || dim::bounds(k->size).lo < 1) // a sum of nothing is no call of oneDNN's
    return std::nullopt;
  Params p;
  // The result must be stored batch, rows, columns; if the columns come first, the product is taken the other way round.
  auto rowMajor = [&] {
    return (n->size == 1 || n->stride[2] == 1) && (m->size == 1 || m->stride[2] == n->size) &&
           (b->size == 1 || b->stride[2] == dim::mul(m->size, n->size));
  };
  int l = 0, r = 1;
  if (!rowMajor()) {
    std::swap(m, n), std::swap(l, r);
    if (!rowMajor())
      return std::nullopt;
  }
  auto stride = [](const Dim &d, int tensor) { return d.size == 1 ? 0 : d.stride[tensor]; };
  auto oneDense = [](int64_t outer, int64_t inner) { return outer == 1 || inner == 1; };
  p.left = l, p.right = r;
  p.matmul = {b->size, m->size, n->size, k->size,
              {stride(*b, l), stride(*m, l), stride(*k, l)}, {stride(*b, r), stride(*k, r), stride(*n, r)}, 1};
  p.matmul.callUnitSizesDense();
  if (!oneDense(p.matmul.a[1], p.matmul.a[2]) || !oneDense(p.matmul.b[1], p.matmul.b[2]))
    return std::nullopt;
  return p;
}

double hinted(int64_t size) { return static_cast<double>(dim::hint(size)); }

/// Rows per unit: some 4 Mflop, an even split, and with a batch whole matrices or equal blocks, so that units are contiguous.
void chooseRows(Matmul &m) {
  constexpr double flopsPerUnit = 4e6;
  auto rows = static_cast<int64_t>(flopsPerUnit / (2.0 * hinted(m.n) * hinted(m.k)));
  m.rows = std::clamp<int64_t>((rows + 15) / 16 * 16, 32, 128);
  if (dim::isConstant(m.m)) {
    int64_t blocks = (m.m + m.rows - 1) / m.rows;
    m.rows = (m.m + blocks - 1) / blocks;
  }
  if (m.batch != 1 && (!dim::isConstant(m.m) || m.m % m.rows != 0))
    m.rows = m.m;
}

std::optional<Params> asConv(const Root &root) {
  if (root.info->family != op::Family::Convolution)
    return std::nullopt;
  const TensorType &x = root.operands[0], &w = root.operands[1];
  auto rank = static_cast<size_t>(x.rank() - 2);
  auto ints = [&](std::string_view name, int64_t otherwise) {
    int i = root.info->attrIndex(name);
    const auto *v = i < 0 ? nullptr : std::get_if<op::Ints>(&root.attrs[static_cast<size_t>(i)]);
    return v && !v->empty() ? *v : op::Ints(rank, otherwise);
  };
  int g = root.info->attrIndex("groups");
  Params p;
  p.kind = Kind::Conv;
  Conv &c = p.conv;
  c.batch = x.shape[0], c.inChannels = x.shape[1], c.outChannels = w.shape[0];
  c.groups = g < 0 ? 1 : std::get<int64_t>(root.attrs[static_cast<size_t>(g)]);
  for (int d = 2; d < x.rank(); ++d)
    c.in.push_back(x.shape[d]), c.window.push_back(w.shape[d]), c.out.push_back(root.result.shape[d]);
  c.strides = ints("strides", 1), c.dilations = ints("dilations", 1);
  c.padLow = ints("pad_low", 0), c.padHigh = ints("pad_high", 0);
  // A small batch of large images leaves threads idle: then ranges of features are units of their own.
  if (!w.shape.isStatic() || llvm::any_of(c.in, [](int64_t size) { return dim::bounds(size).lo < 1; }))
    return std::nullopt;
  double flopsPerImage = 2.0 * hinted(dim::numElements(root.result.shape)) / hinted(c.batch) *
                         static_cast<double>(w.shape.numElements()) / static_cast<double>(c.outChannels);
  if (c.groups == 1 && dim::hint(c.batch) < 4 && flopsPerImage > 20e6)
    for (int64_t blocks : {4, 2})
      if (c.outChannels % (blocks * 32) == 0) {
        c.blocks = blocks;
        break;
      }
  return p;
}

class Provider final : public passes::KernelProvider {
public:
  llvm::StringRef name() const override { return "onednn"; }
  bool takesEpilogue() const override { return true; }

  std::optional<Bid> bid(const Candidate &candidate, llvm::ArrayRef<bool> parameterOnly) const override {
    auto root = describe(candidate);
    if (!root)
      return std::nullopt;
    bool isConv = true;
    auto params = asConv(*root);
    if (!params) {
      isConv = false;
      params = asMatmul(*root);
    }
    if (!params)
      return std::nullopt;
    double flops = 2.0 * hinted(dim::numElements(root->result.shape));
    if (isConv)
      flops *= static_cast<double>(root->operands[1].shape.numElements()) / static_cast<double>(params->conv.outChannels);
    else
      flops *= hinted(params->matmul.k);
    // The candidate's inputs stand in some order of their own.
    mlir::Operation *o = candidate.ops[0];
    auto inputOf = [&](int32_t operand) {
      return static_cast<int32_t>(llvm::find(candidate.inputs, o->getOperand(static_cast<unsigned>(operand))) - candidate.inputs.begin());
    };
    params->left = inputOf(params->left), params->right = inputOf(params->right);
    int64_t range;
    if (isConv) {
      range = params->conv.units();
      params->unit = params->conv.outChannels / params->conv.blocks;
      for (int64_t size : params->conv.out)
        params->unit = dim::mul(params->unit, size);
    } else {
      chooseRows(params->matmul);
      range = params->matmul.units();
      params->unit = dim::mul(params->matmul.rows, params->matmul.n);
    }
    params->symbols = graph::symbolsOf(candidate.ops[0]);
    const int64_t units = std::max<int64_t>(1, dim::hint(range));
    // Batched right sides are read as they are: packing serves weights that all rows share.
    if (parameterOnly[static_cast<size_t>(params->right)] && (isConv || params->matmul.batch == 1))
      params->packed = static_cast<int32_t>(candidate.inputs.size());
    Query answer = query(*params);
    if (!answer.supported)
      return std::nullopt;
    Bid bid;
    const codegen::CpuModel &cpu = codegen::hostCpuModel();
    double bytes = hinted(dim::bytes(root->operands[0])) + hinted(dim::bytes(root->operands[1])) +
                   hinted(dim::bytes(root->result));
    // Shares of peak as measured on one core: large products 0.85, small blocks less.
    double efficiency =
        isConv
            ? (params->conv.inChannels / params->conv.groups >= 16 ? 0.6 : 0.1)
            : std::min(0.85, 0.2 + 0.01 * static_cast<double>(std::min<int64_t>(dim::hint(params->matmul.rows), 64)));
    bid.seconds = codegen::predictSeconds(cpu, flops, bytes, efficiency) + static_cast<double>(units) * cpu.libraryCallSeconds;
    bid.params = params->toJson();
    bid.range = range;
    bid.grain = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(units) * 40e-6 / (bid.seconds * cpu.threads)));
    bid.grain = std::min(bid.grain, units);
    bid.scratchBytes = params->symbols.empty() ? answer.needs.scratchBytes : 0;
    if (params->packed >= 0) {
      Params pack = params->typical();
      pack.kind = isConv ? Kind::PackConv : Kind::PackMatmul;
      pack.left = pack.right = 0, pack.packed = -1;
      bid.packs.push_back({static_cast<unsigned>(params->right), pack.toJson(), answer.needs.packedBytes});
    }
    return bid;
  }
};

} // namespace

std::unique_ptr<passes::KernelProvider> makeProvider() {
  registerKernels();
  return std::make_unique<Provider>();
}

} // namespace tressel::onednn
