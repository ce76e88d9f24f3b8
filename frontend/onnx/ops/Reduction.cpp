// Reductions along axes, arg-reductions, softmax.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tressel::onnx {

namespace {
using N = NodeImporter;
using Ints = std::vector<int64_t>;

constexpr char kMean[] = "mean", kMax[] = "max", kMin[] = "min", kProd[] = "prod";

struct Reduced {
  Ints axes;
  bool keepdims;
  bool nothing; ///< no axes were given, and the node then leaves the operand as it is
};
/// Reads axes from an attribute, or from an input: since version 13 for sums, 18 for the others.
Reduced readAxes(N &n, int64_t inputSince) {
  Reduced r{{}, n.intAttr("keepdims", 1) != 0, false};
  auto given = n.opset() >= inputSince ? (n.has(1) ? std::optional(n.knownInts(1, "'axes'")) : std::nullopt)
                                       : n.intsAttr("axes");
  bool noop = n.opset() >= inputSince && n.intAttr("noop_with_empty_axes", 0) != 0;
  if (given && !given->empty())
    r.axes = n.axes(*given, n.in(0).rank());
  else if (noop)
    r.nothing = true;
  else {
    r.axes.resize(static_cast<size_t>(n.in(0).rank()));
    std::iota(r.axes.begin(), r.axes.end(), 0);
  }
  return r;
}
Value reduce(N &n, const char *op, Value v, const Reduced &r) {
  if (r.nothing || r.axes.empty())
    return v;
  return n.cast(n.emit(op, {v}, {{"axis", r.axes}, {"keepdims", r.keepdims}}), v.dtype()); // sums of integers are i64
}

Shape reducedShape(const Value &v, const Reduced &r) {
  Shape shape;
  for (int i = 0; i < v.rank(); ++i) {
    bool gone = std::ranges::find(r.axes, i) != r.axes.end();
    if (!gone || r.keepdims)
      shape.push_back(gone ? 1 : v.dim(i));
  }
  return shape;
}

template <const char *Op> void simple(N &n) { n.out(0, reduce(n, Op, n.in(0), readAxes(n, 18))); }
/// The extreme of an empty dimension is the type's least (or greatest) value; Tressel's op refuses it.
template <const char *Op> void extreme(N &n) {
  const Value &v = n.in(0);
  Reduced r = readAxes(n, 18);
  if (r.nothing || std::ranges::none_of(r.axes, [&](int64_t a) { return v.dim(static_cast<int>(a)) == 0; }))
    return n.out(0, reduce(n, Op, v, r));
  n.requireFloat(v);
  double inf = std::numeric_limits<double>::infinity();
  n.out(0, n.broadcastTo(n.scalar(v.dtype(), Op == kMax ? -inf : inf), reducedShape(v, r)));
}
void sum(N &n) { n.out(0, reduce(n, "sum", n.in(0), readAxes(n, 13))); }

Value square(N &n, const Value &v) { return n.emit("mul", {v, v}); }
void sumSquare(N &n) {
  Reduced r = readAxes(n, 18);
  n.out(0, reduce(n, "sum", square(n, n.in(0)), r));
}
void l1(N &n) {
  Reduced r = readAxes(n, 18);
  n.out(0, reduce(n, "sum", n.emit("abs", {n.in(0)}), r));
}
void l2(N &n) {
  Reduced r = readAxes(n, 18);
  n.requireFloat(n.in(0));
  n.out(0, n.emit("sqrt", {reduce(n, "sum", square(n, n.in(0)), r)}));
}
void logSum(N &n) {
  Reduced r = readAxes(n, 18);
  n.requireFloat(n.in(0));
  n.out(0, n.emit("log", {reduce(n, "sum", n.in(0), r)}));
}
/// Subtracts the maximum first, so that large values do not overflow.
void logSumExp(N &n) {
  const Reduced r = readAxes(n, 18);
  n.requireFloat(n.in(0));
  if (dim::numElements(n.in(0).type.shape) == 0) // nothing to take a maximum of
    return n.out(0, n.emit("log", {reduce(n, "sum", n.emit("exp", {n.in(0)}), r)}));
  n.out(0, reduce(n, "logsumexp", n.in(0), r));
}

template <const char *Op> void argReduce(N &n) {
  const Value &v = n.in(0);
  const bool last = n.intAttr("select_last_index", 0) != 0;
  int axis = n.axis(n.intAttr("axis", 0), v.rank());
  bool keep = n.intAttr("keepdims", 1) != 0;
  const NamedAttrs attrs{{"axis", int64_t(axis)}, {"keepdims", keep}};
  if (!last)
    return n.out(0, n.cast(n.emit(Op, {v}, attrs), i64));
  // The last maximum is the first one of the reversed tensor.
  Value reversed = n.emit("flip", {v}, {{"axis", Ints{axis}}});
  Value fromEnd = n.cast(n.emit(Op, {reversed}, attrs), i64);
  n.out(0, n.emit("sub", {n.reshape(n.sizes({v.dim(axis) - 1}), {}), fromEnd}));
}
constexpr char kArgMax[] = "argmax", kArgMin[] = "argmin";

/// Since version 13 along one axis; before, over all dimensions from the axis on.
template <const char *Op> void softmax(N &n) {
  const Value &v = n.in(0);
  n.requireFloat(v);
  int64_t raw = n.intAttr("axis", n.opset() >= 13 ? -1 : 1);
  if (n.opset() >= 13) {
    int axis = n.axis(raw, v.rank());
    return n.out(0, n.emit(Op, {v}, {{"axis", int64_t(axis)}}));
  }
  int axis = raw == v.rank() ? v.rank() : n.axis(raw, v.rank());
  Size rows = 1, columns = 1;
  for (int i = 0; i < v.rank(); ++i)
    (i < axis ? rows : columns) = (i < axis ? rows : columns) * v.dim(i);
  Value flat = n.emit(Op, {n.reshape(v, {rows, columns})}, {{"axis", int64_t(1)}});
  n.out(0, n.reshape(flat, v.type.shape));
}
/// 1 at the first of the largest elements, 0 elsewhere.
void hardmax(N &n) {
  const Value &v = n.in(0);
  n.requireFloat(v);
  const int64_t raw = n.intAttr("axis", n.opset() >= 13 ? -1 : 1);
  const int axis = n.opset() < 13 && raw == v.rank() ? v.rank() : n.axis(raw, v.rank());
  Value flat = v; // before version 13 over all dimensions from the axis on
  int along = axis;
  if (n.opset() < 13) {
    Size rows = 1, columns = 1;
    for (int i = 0; i < v.rank(); ++i)
      (i < axis ? rows : columns) = (i < axis ? rows : columns) * v.dim(i);
    flat = n.reshape(v, {rows, columns});
    along = 1;
  }
  const Size size = flat.dim(along);
  Shape places;
  for (int i = along; i < flat.rank(); ++i)
    places.push_back(i == along ? size : 1);
  Value top = n.cast(n.emit("argmax", {flat}, {{"axis", int64_t(along)}, {"keepdims", true}}), i64);
  Value hit = n.emit("equal", {n.iota(size, places), top});
  n.out(0, n.reshape(n.cast(hit, v.dtype()), v.type.shape));
}

constexpr char kSoftmax[] = "softmax", kLogSoftmax[] = "log_softmax";

/// All dimensions behind the first two.
template <const char *Op> void globalPool(N &n) {
  const Value &v = n.in(0);
  if (v.rank() < 3)
    n.fail("needs an image, not " + v.type.str());
  Ints axes(static_cast<size_t>(v.rank() - 2));
  std::iota(axes.begin(), axes.end(), 2);
  n.out(0, n.emit(Op, {v}, {{"axis", axes}, {"keepdims", true}}));
}

constexpr OpEntry kTable[] = {
    {"ReduceSum", 1, sum},
    {"ReduceMean", 1, simple<kMean>},
    {"ReduceMax", 1, extreme<kMax>},
    {"ReduceMin", 1, extreme<kMin>},
    {"ReduceProd", 1, simple<kProd>},
    {"ReduceSumSquare", 1, sumSquare},
    {"ReduceL1", 1, l1},
    {"ReduceL2", 1, l2},
    {"ReduceLogSum", 1, logSum},
    {"ReduceLogSumExp", 1, logSumExp},
    {"ArgMax", 1, argReduce<kArgMax>},
    {"ArgMin", 1, argReduce<kArgMin>},
    {"Softmax", 1, softmax<kSoftmax>},
    {"LogSoftmax", 1, softmax<kLogSoftmax>},
    {"Hardmax", 1, hardmax},
    {"GlobalMaxPool", 1, globalPool<kMax>},
    {"GlobalAveragePool", 1, globalPool<kMean>},
};
} // namespace

std::span<const OpEntry> reductionOps() { return kTable; }

} // namespace tressel::onnx
