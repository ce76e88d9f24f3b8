// Ops that move, select or make elements: shapes, slices, constants.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
#include "frontend/onnx/TensorData.h"
#include "ir/op/Infer.h"
#include "onnx.pb.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tressel::onnx {

namespace {
using N = NodeImporter;
using op::Ints, op::Sizes;

/// A Shape of sizes from the model, after a check.
Shape shapeOf(N &n, const Sizes &dims) {
  if (dims.size() > static_cast<size_t>(kMaxRank))
    n.unsupported(std::to_string(dims.size()) + " dimensions, more than " + std::to_string(kMaxRank));
  TensorType type{f32, {}};
  for (Size d : dims) {
    if (d == kDynamic || d.numberOr(0) < 0) // unknown: the expression exceeds 64 bits
      n.fail("a dimension of size " + dim::str(d));
    type.shape.push_back(d);
  }
  if (!fitsMemory(type))
    n.fail("a tensor of shape " + type.shape.str() + " is larger than any memory");
  return type.shape;
}

void shapeOp(N &n) {
  const Value &v = n.in(0);
  int64_t rank = v.rank();
  auto bound = [&](const char *name, int64_t fallback) {
    int64_t b = n.intAttr(name, fallback);
    return std::clamp<int64_t>(b < 0 ? b + rank : b, 0, rank);
  };
  int64_t start = bound("start", 0), end = bound("end", rank);
  Sizes dims;
  for (int64_t i = start; i < end; ++i)
    dims.push_back(v.dim(static_cast<int>(i)));
  n.out(0, n.sizes(dims));
}
void sizeOp(N &n) { n.out(0, n.reshape(n.sizes({dim::numElements(n.in(0).type.shape)}), {})); }

void reshape(N &n) {
  const Value &v = n.in(0);
  Sizes dims = n.knownSizes(1, "the shape");
  bool allowZero = n.intAttr("allowzero", 0) != 0;
  Size known = 1;
  int64_t unknown = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !allowZero) {
      if (static_cast<int>(i) >= v.rank())
        n.fail("the shape copies dimension " + std::to_string(i) + " of " + v.type.str());
      dims[i] = v.dim(static_cast<int>(i));
    }
    if (dims[i] == -1) {
      if (unknown >= 0)
        n.fail("the shape has two dimensions of size -1");
      unknown = static_cast<int64_t>(i);
    } else if (dims[i].numberOr(0) < 0 || !op::multiply(known, dims[i])) {
      n.fail("the shape has a dimension of size " + dim::str(dims[i]));
    }
  }
  const Size total = dim::numElements(v.type.shape);
  if (unknown >= 0) {
    const auto rest = dim::divideExactly(total, known);
    if (!rest)
      n.fail(v.type.str() + " cannot be divided into the shape's other dimensions");
    dims[static_cast<size_t>(unknown)] = *rest;
    known = total;
  }
  Shape shape = shapeOf(n, dims);
  if (known != total)
    n.fail(v.type.str() + " does not have the elements of shape " + shape.str());
  n.out(0, n.reshape(v, shape));
}

void flatten(N &n) {
  const Value &v = n.in(0);
  int64_t at = n.intAttr("axis", 1);
  if (at < -v.rank() || at > v.rank())
    n.fail("axis " + std::to_string(at) + " is outside " + v.type.str());
  at = at < 0 ? at + v.rank() : at;
  Size rows = 1, columns = 1;
  for (int i = 0; i < v.rank(); ++i)
    (i < at ? rows : columns) = (i < at ? rows : columns) * v.dim(i);
  n.out(0, n.reshape(v, {rows, columns}));
}

void squeeze(N &n) {
  const Value &v = n.in(0);
  auto given = n.intsAttrOrInput("axes", 1);
  Shape shape;
  Ints axes = given ? n.axes(*given, v.rank()) : Ints();
  for (int i = 0; i < v.rank(); ++i) {
    bool drop = given ? std::ranges::find(axes, i) != axes.end() : v.dim(i) == 1;
    if (drop && v.dim(i) != 1)
      n.fail("dimension " + std::to_string(i) + " of " + v.type.str() + " is not 1");
    if (!drop)
      shape.push_back(v.dim(i));
  }
  n.out(0, n.reshape(v, shape));
}

void unsqueeze(N &n) {
  const Value &v = n.in(0);
  auto given = n.intsAttrOrInput("axes", 1);
  if (!given)
    n.fail("'axes' are missing");
  if (v.rank() + given->size() > static_cast<size_t>(kMaxRank))
    n.unsupported("more than " + std::to_string(kMaxRank) + " dimensions");
  int rank = v.rank() + static_cast<int>(given->size());
  Ints axes = n.axes(*given, rank);
  Shape shape;
  for (int i = 0, from = 0; i < rank; ++i)
    shape.push_back(std::ranges::find(axes, i) != axes.end() ? Size(1) : v.dim(from++));
  n.out(0, n.reshape(v, shape));
}

void transpose(N &n) {
  const Value &v = n.in(0);
  Ints perm(static_cast<size_t>(v.rank()));
  for (int i = 0; i < v.rank(); ++i)
    perm[static_cast<size_t>(i)] = v.rank() - 1 - i;
  if (auto given = n.intsAttr("perm")) {
    if (given->size() != perm.size())
      n.fail("'perm' has " + std::to_string(given->size()) + " entries for " + v.type.str());
    perm = n.axes(*given, v.rank());
  }
  n.out(0, n.transpose(v, perm));
}

void expand(N &n) {
  const Value &v = n.in(0);
  Shape wanted = shapeOf(n, n.knownSizes(1, "the shape"));
  auto shape = op::broadcastShapes(v.type.shape, wanted);
  if (!shape)
    n.fail(v.type.str() + " cannot be expanded to " + wanted.str());
  n.out(0, n.broadcastTo(v, *shape));
}

void tile(N &n) {
  const Value &v = n.in(0);
  Sizes repeats = n.knownSizes(1, "'repeats'");
  if (repeats.size() != static_cast<size_t>(v.rank()))
    n.fail("'repeats' has " + std::to_string(repeats.size()) + " entries for " + v.type.str());
  // [a, b] repeated [p, q] times is [1, a, 1, b] broadcast to [p, a, q, b]; only repeated dimensions are doubled.
  Sizes split, wide, flat;
  for (int i = 0; i < v.rank(); ++i) {
    const Size r = repeats[static_cast<size_t>(i)];
    Size size = v.dim(i);
    if (dim::bounds(r).hi < 0 || r.numberOr(0) > kMaxTensorBytes || !op::multiply(size, r))
      n.fail("'repeats' holds " + dim::str(r));
    if (r != 1) {
      split.push_back(1);
      wide.push_back(r);
    }
    split.push_back(v.dim(i));
    wide.push_back(v.dim(i));
    flat.push_back(size);
  }
  Shape result = shapeOf(n, flat);
  n.out(0, n.reshape(n.broadcastTo(n.reshape(v, shapeOf(n, split)), shapeOf(n, wide)), result));
}

void concat(N &n) {
  std::vector<Value> parts;
  for (int i = 0; i < n.numInputs(); ++i) {
    n.sameType(n.in(0), n.in(i));
    parts.push_back(n.in(i));
  }
  if (parts.empty())
    n.fail("has no inputs");
  int axis = n.axis(n.intAttr("axis"), parts[0].rank());
  n.out(0, parts.size() == 1 ? parts[0] : n.emit("concat", parts, {{"axis", int64_t(axis)}}));
}

Value slice(N &n, const Value &v, Sizes starts, Sizes stops, Ints steps) {
  return n.emit("slice", {v},
                {{"starts", std::move(starts)}, {"limits", std::move(stops)}, {"strides", std::move(steps)}});
}
/// Whether a place is beyond any tensor that fits memory: exporters write 10^9 and the like for the end.
bool isEnd(const Value &v, int d, Size place) {
  int64_t others = static_cast<int64_t>(sizeOf(v.dtype()));
  for (int i = 0; i < v.rank(); ++i)
    if (i != d)
      others *= std::max<int64_t>(dim::bounds(v.dim(i)).lo, 1); // of a type that fits memory
  return place.isNumber() && place >= kMaxTensorBytes / others;
}

void sliceOp(N &n) {
  const Value &v = n.in(0);
  bool inputs = n.opset() >= 10;
  auto places = [&](const char *name, int i, const char *what) {
    return inputs ? n.knownSizes(i, what) : n.sizesAttrOrInput(name, -1).value_or(Sizes());
  };
  Sizes starts = places("starts", 1, "'starts'"), ends = places("ends", 2, "'ends'");
  auto axes = inputs ? (n.has(3) ? std::optional(n.knownInts(3, "'axes'")) : std::nullopt) : n.intsAttr("axes");
  Ints steps = inputs && n.has(4) ? n.knownInts(4, "'steps'") : Ints(starts.size(), 1);
  if (!axes) {
    axes.emplace(starts.size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (starts.size() != ends.size() || starts.size() != axes->size() || starts.size() != steps.size())
    n.fail("'starts', 'ends', 'axes' and 'steps' differ in length");
  *axes = n.axes(*axes, v.rank());
  Sizes from(static_cast<size_t>(v.rank())), to = op::sizesOf(v.type.shape);
  Ints by(static_cast<size_t>(v.rank()), 1);
  for (size_t k = 0; k < starts.size(); ++k) { // what is negative or outside means the same to the op
    const auto d = static_cast<size_t>((*axes)[k]);
    if (steps[k] == 0)
      n.fail("a step is 0");
    for (Size *place : {&starts[k], &ends[k]})
      if (const dim::Bounds range = dim::bounds(*place); place->isSymbolic() && range.lo < 0) {
        if (range.hi >= 0)
          n.unsupported("from or to " + dim::str(*place) + ", which may count from the end or not");
        *place += v.dim(static_cast<int>(d));
      }
    from[d] = starts[k];
    to[d] =
        steps[k] > 0 && isEnd(v, static_cast<int>(d), ends[k]) ? Size(std::numeric_limits<int64_t>::max()) : ends[k];
    by[d] = steps[k];
  }
  n.out(0, slice(n, v, from, to, by));
}

void split(N &n) {
  const Value &v = n.in(0);
  int axis = n.axis(n.intAttr("axis", 0), v.rank());
  auto sizes = n.sizesAttrOrInput("split", 1);
  int64_t parts = n.numOutputs();
  const Size size = v.dim(axis);
  if (n.opset() >= 18)
    parts = n.intAttr("num_outputs", parts);
  if (parts != n.numOutputs() || parts < 1)
    n.fail("'num_outputs' is " + std::to_string(parts) + ", but there are " + std::to_string(n.numOutputs()));
  if (!sizes) {
    const int64_t whole = n.number(v, axis); // the last part's size depends on it
    if (n.opset() < 18 && whole % parts)
      n.fail("dimension " + std::to_string(axis) + " of " + v.type.str() + " cannot be split into " +
             std::to_string(parts) + " equal parts");
    int64_t each = (whole + parts - 1) / parts;
    sizes.emplace();
    for (int64_t i = 0, left = whole; i < parts; ++i, left -= sizes->back().number())
      sizes->push_back(std::min(each, left));
  }
  Size sum;
  for (Size s : *sizes) {
    if (dim::bounds(s).hi < 0 || s.numberOr(0) > kMaxTensorBytes)
      n.fail("a part has size " + dim::str(s));
    sum += s;
  }
  if (static_cast<int>(sizes->size()) != n.numOutputs() || sum != size)
    n.fail("'split' does not divide dimension " + std::to_string(axis) + " of " + v.type.str());
  Size at;
  for (int i = 0; i < n.numOutputs(); ++i) {
    const Size end = at + (*sizes)[static_cast<size_t>(i)];
    n.out(i, n.sliceAxis(v, axis, at, end));
    at = end;
  }
}

void gather(N &n) {
  const Value &v = n.in(0), &index = n.in(1);
  if (index.dtype() != i64 && index.dtype() != i32)
    n.fail("indices must be integers, not " + index.type.str());
  int axis = n.axis(n.intAttr("axis", 0), v.rank());
  n.out(0, n.emit("take", {v, index}, {{"axis", int64_t(axis)}}));
}

void pad(N &n) {
  Value v = n.in(0);
  std::string mode = n.stringAttr("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    n.fail("attribute 'mode' is '" + mode + "'");
  Sizes pads = n.opset() >= 11 ? n.knownSizes(1, "'pads'") : n.sizesAttrOrInput("pads", -1).value_or(Sizes());
  double value = n.opset() >= 11 ? 0 : n.floatAttr("value", 0);
  if (n.opset() >= 11 && n.has(2)) {
    auto known = n.knownScalar(n.in(2));
    if (!known)
      n.unsupported("a padding value computed from the input's values");
    value = *known;
  }
  Ints axes(static_cast<size_t>(v.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  if (n.opset() >= 18 && n.has(3))
    axes = n.axes(n.knownInts(3, "'axes'"), v.rank());
  if (pads.size() != 2 * axes.size())
    n.fail("'pads' has " + std::to_string(pads.size()) + " entries for " + std::to_string(axes.size()) + " dimensions");
  Sizes low(static_cast<size_t>(v.rank())), high = low, from = low, to = op::sizesOf(v.type.shape);
  bool crops = false, pads1 = false;
  for (size_t k = 0; k < axes.size(); ++k) {
    size_t d = static_cast<size_t>(axes[k]);
    const Size before = pads[k], after = pads[k + axes.size()];
    for (Size p : {before, after})
      if (std::abs(p.numberOr(0)) > kMaxTensorBytes)
        n.fail("'pads' holds " + dim::str(p));
    from[d] = dim::max(-before, 0);
    to[d] -= dim::max(-after, 0);
    low[d] = dim::max(before, 0);
    high[d] = dim::max(after, 0);
    crops |= from[d] != 0 || dim::max(-after, 0) != 0;
    pads1 |= low[d] != 0 || high[d] != 0;
    if (dim::less(to[d], from[d]).value_or(false))
      n.fail("negative 'pads' remove more than dimension " + std::to_string(d) + " of " + v.type.str());
  }
  if (crops)
    v = slice(n, v, from, to, Ints(static_cast<size_t>(v.rank()), 1));
  if (pads1)
    v = n.emit("pad", {v}, {{"low", low}, {"high", high}, {"value", value}, {"mode", mode}});
  n.out(0, v);
}

void constantOp(N &n) {
  auto floats = [&](const std::vector<double> &values, Shape shape) {
    op::HostTensor t = op::HostTensor::allocate({f32, shape});
    std::copy(values.begin(), values.end(), t.as<float>());
    return n.constant(std::move(t));
  };
  if (n.hasAttr("value"))
    n.out(0, n.constant(*n.tensorAttr("value")));
  else if (n.hasAttr("value_float"))
    n.out(0, floats({n.floatAttr("value_float")}, {}));
  else if (n.hasAttr("value_floats")) {
    auto values = *n.floatsAttr("value_floats");
    n.out(0, floats(values, {static_cast<int64_t>(values.size())}));
  } else if (n.hasAttr("value_int"))
    n.out(0, n.reshape(n.ints({n.intAttr("value_int")}), {}));
  else if (n.hasAttr("value_ints"))
    n.out(0, n.ints(*n.intsAttr("value_ints")));
  else if (n.node().attribute_size() == 0)
    n.fail("holds no value");
}

void constantOfShape(N &n) {
  Shape shape = shapeOf(n, n.knownSizes(0, "the shape"));
  op::HostTensor value = n.tensorAttr("value").value_or(op::HostTensor::allocate({f32, {1}}));
  if (value.type.shape.numElements() != 1)
    n.fail("'value' must hold one element, not " + value.type.str());
  n.out(0, n.broadcastTo(n.reshape(n.constant(value), {}), shape));
}

/// A range whose bounds are sizes: as many elements as an expression says.
void rangeOfSizes(N &n) {
  Size at[3];
  for (int i = 0; i < 3; ++i) {
    const Sizes value = n.knownSizes(i, "a range's bounds and step");
    if (value.size() != 1)
      n.fail("needs single numbers, not " + n.in(i).type.str());
    at[i] = value[0];
  }
  const auto [start, limit, step] = at;
  if (step == 0)
    n.fail("its step is 0");
  if (!step.isNumber())
    n.unsupported("a range in steps of " + dim::str(step));
  const int64_t delta = step.number();
  const Size distance = delta > 0 ? limit - start : start - limit;
  const Size count = dim::max(dim::ceilDiv(distance, Size(std::abs(delta))), 0);
  Value steps = n.emit("mul", {n.iota(count, {count}), n.reshape(n.ints({delta}), {})});
  n.out(0, n.emit("add", {steps, n.reshape(n.sizes({start}), {})}));
}

void range(N &n) {
  n.sameType(n.in(0), n.in(1));
  n.sameType(n.in(0), n.in(2));
  if (n.in(0).symbolic || n.in(1).symbolic || n.in(2).symbolic)
    return rangeOfSizes(n);
  auto start = n.knownScalar(n.in(0)), limit = n.knownScalar(n.in(1)), delta = n.knownScalar(n.in(2));
  if (!start || !limit || !delta)
    n.unsupported("a range computed from the input's values");
  if (*delta == 0)
    n.fail("its step is 0");
  double count = std::max(0.0, std::ceil((*limit - *start) / *delta));
  if (!(count <= 1e8)) // also when it is no number
    n.fail("a range of " + std::to_string(count) + " elements");
  op::HostTensor t = op::HostTensor::allocate({f64, {static_cast<int64_t>(count)}});
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
    t.as<double>()[i] = *start + static_cast<double>(i) * *delta;
  n.out(0, n.cast(n.constant(std::move(t)), n.in(0).dtype()));
}

void oneHot(N &n) {
  Value index = n.in(0);
  auto depth = n.knownScalar(n.in(1));
  const Value &values = n.in(2);
  if (!depth)
    n.unsupported("a depth computed from the input's values");
  if (*depth < 1 || *depth > 1e8 || values.rank() != 1 || values.dim(0) != 2)
    n.fail("needs a depth of at least 1 and two values");
  if (index.rank() >= kMaxRank)
    n.unsupported("more than " + std::to_string(kMaxRank) + " dimensions");
  int64_t size = static_cast<int64_t>(*depth);
  int axis = n.axis(n.intAttr("axis", -1), index.rank() + 1);
  Shape wide, classes;
  for (int i = 0; i <= index.rank(); ++i) {
    wide.push_back(i == axis ? 1 : index.dim(i < axis ? i : i - 1));
    classes.push_back(i == axis ? size : 1);
  }
  index = n.reshape(n.cast(index, i64), wide);
  Value negative = n.emit("less", {index, n.scalar(i64, 0)});
  index = n.emit("where", {negative, n.emit("add", {index, n.scalar(i64, static_cast<double>(size))}), index});
  Value hit = n.emit("equal", {index, n.iota(size, classes)});
  auto pick = [&](int64_t i) { return n.reshape(n.sliceAxis(values, 0, i, i + 1), {}); };
  n.out(0, n.emit("where", {hit, pick(1), pick(0)}));
}

/// The first elements of each sequence in reverse order, the rest as they are.
void reverseSequence(N &n) {
  const Value &v = n.in(0);
  const int64_t time = n.intAttr("time_axis", 0), batch = n.intAttr("batch_axis", 1);
  if (v.rank() < 2 || (time != 0 && time != 1) || batch != 1 - time || n.in(1).rank() != 1 ||
      n.in(1).dim(0) != v.dim(static_cast<int>(batch)))
    n.fail("axes " + std::to_string(time) + " and " + std::to_string(batch) + " with lengths " + n.in(1).type.str() + " for " + v.type.str());
  const Size steps = v.dim(static_cast<int>(time)), sequences = v.dim(static_cast<int>(batch));
  const bool batchFirst = batch == 0;
  // Every (batch, time) is a row; which row comes from where is arithmetic on the lengths.
  Value t = n.iota(steps, batchFirst ? Shape{1, steps} : Shape{steps, 1});
  Value b = n.iota(sequences, batchFirst ? Shape{sequences, 1} : Shape{1, sequences});
  Value length = n.reshape(n.cast(n.in(1), i64), b.type.shape);
  Value turned = n.emit("sub", {n.emit("sub", {length, n.scalar(i64, 1)}), t});
  Value from = n.emit("where", {n.emit("less", {t, length}), turned, t});
  auto times = [&](const Value &x, Size factor) { return n.emit("mul", {x, n.reshape(n.sizes({factor}), {})}); };
  Value row = n.emit("add", {batchFirst ? from : times(from, sequences), batchFirst ? times(b, steps) : b});
  const Size rows = steps * sequences;
  Size rest = 1;
  for (int i = 2; i < v.rank(); ++i)
    rest *= v.dim(i);
  Value y = n.emit("take", {n.reshape(v, {rows, rest}), n.reshape(row, {rows})}, {{"axis", int64_t(0)}});
  n.out(0, n.reshape(y, v.type.shape));
}

/// The slices whose condition, known at import, is true.
void compress(N &n) {
  Value v = n.in(0);
  const Value condition = n.cast(n.in(1), i64);
  if (!condition.host)
    n.unsupported("a condition computed from the input's values: the result's size depends on it");
  if (!n.hasAttr("axis"))
    v = n.reshape(v, {dim::numElements(v.type.shape)});
  const int axis = n.axis(n.intAttr("axis", 0), v.rank());
  Ints kept;
  for (int64_t i = 0; i < condition.type.shape.numElements(); ++i)
    if (condition.host->as<int64_t>()[i])
      kept.push_back(i);
  if (condition.rank() != 1 || (!kept.empty() && kept.back() >= n.number(v, axis)))
    n.fail("a condition of type " + condition.type.str() + " does not fit " + v.type.str());
  n.out(0, n.emit("take", {v, n.ints(kept)}, {{"axis", int64_t(axis)}}));
}

/// Where a matrix of these sizes is on or above the diagonal number `k`, or on or below it.
Value triangle(N &n, const char *compare, Size rows, Size columns, const Value &k) {
  return n.emit(compare, {n.iota(columns, {columns}), n.emit("add", {n.iota(rows, {rows, 1}), k})});
}
void trilu(N &n) {
  const Value &v = n.in(0);
  if (v.rank() < 2)
    n.fail("needs a matrix, not " + v.type.str());
  Value k = n.has(1) ? n.reshape(n.cast(n.in(1), i64), {}) : n.scalar(i64, 0);
  const bool upper = n.intAttr("upper", 1) != 0;
  Value kept = triangle(n, upper ? "greater_equal" : "less_equal", v.dim(v.rank() - 2), v.dim(v.rank() - 1), k);
  n.out(0, n.emit("where", {kept, v, n.scalar(v.dtype(), 0)}));
}
void eyeLike(N &n) {
  const Value &v = n.in(0);
  if (v.rank() != 2)
    n.fail("needs a matrix, not " + v.type.str());
  const DType type = n.hasAttr("dtype") ? n.typeAttr("dtype") : v.dtype();
  Value k = n.scalar(i64, static_cast<double>(n.intAttr("k", 0)));
  n.out(0, n.cast(triangle(n, "equal", v.dim(0), v.dim(1), k), type));
}

/// Blocks of the channels become blocks of the image, or back.
void depthToSpace(N &n) {
  const Value &v = n.in(0);
  int64_t b = n.intAttr("blocksize");
  std::string mode = n.stringAttr("mode", "DCR");
  if (v.rank() != 4 || b < 1 || b > 1 << 20 || n.number(v, 1) % (b * b) || (mode != "DCR" && mode != "CRD"))
    n.fail(v.type.str() + " with block size " + std::to_string(b) + " and mode '" + mode + "'");
  Size c = v.dim(1) / (b * b);
  bool dcr = mode == "DCR";
  Value split = dcr ? n.reshape(v, {v.dim(0), b, b, c, v.dim(2), v.dim(3)})
                    : n.reshape(v, {v.dim(0), c, b, b, v.dim(2), v.dim(3)});
  Value mixed = n.transpose(split, dcr ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
  n.out(0, n.reshape(mixed, {v.dim(0), c, v.dim(2) * b, v.dim(3) * b}));
}
void spaceToDepth(N &n) {
  const Value &v = n.in(0);
  int64_t b = n.intAttr("blocksize");
  std::string mode = n.stringAttr("mode", "DCR");
  if (v.rank() != 4 || b < 1 || b > 1 << 20 || n.number(v, 2) % b || n.number(v, 3) % b || mode != "DCR")
    n.fail(v.type.str() + " with block size " + std::to_string(b) + " and mode '" + mode + "'");
  Size h = v.dim(2) / b, w = v.dim(3) / b;
  Value mixed = n.transpose(n.reshape(v, {v.dim(0), v.dim(1), h, b, w, b}), {0, 3, 5, 1, 2, 4});
  n.out(0, n.reshape(mixed, {v.dim(0), v.dim(1) * (b * b), h, w}));
}

constexpr OpEntry kTable[] = {
    {"Shape", 1, shapeOp},
    {"Size", 1, sizeOp},
    {"Reshape", 5, reshape},
    {"Flatten", 1, flatten},
    {"Squeeze", 1, squeeze},
    {"Unsqueeze", 1, unsqueeze},
    {"Transpose", 1, transpose},
    {"Expand", 8, expand},
    {"Tile", 6, tile},
    {"Concat", 4, concat},
    {"Slice", 1, sliceOp},
    {"Split", 2, split},
    {"Gather", 1, gather},
    {"Pad", 2, pad},
    {"Constant", 1, constantOp},
    {"ConstantOfShape", 9, constantOfShape},
    {"Range", 11, range},
    {"OneHot", 9, oneHot},
    {"Trilu", 14, trilu},
    {"ReverseSequence", 10, reverseSequence},
    {"Compress", 9, compress},
    {"EyeLike", 9, eyeLike},
    {"DepthToSpace", 1, depthToSpace},
    {"SpaceToDepth", 1, spaceToDepth},
};
} // namespace

std::span<const OpEntry> shapeOps() { return kTable; }

} // namespace tressel::onnx
