// Reductions and reductions over windows, their bodies recognised by structure.
#include "frontend/stablehlo/Body.h"
#include "frontend/stablehlo/OpImporter.h"
#include "frontend/stablehlo/OpTable.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tressel::stablehlo {

namespace {
using N = OpImporter;
using V = mlir::Value;

/// A combiner of two values, with the reduction and the elementwise op that apply it.
struct Combiner {
  std::string_view name, reduction, elementwise;
  double unit; ///< combining with it changes nothing
};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Combiner kNumbers[] = {{"add", "sum", "add", 0},
                                 {"multiply", "prod", "mul", 1},
                                 {"maximum", "max", "maximum", -kInf},
                                 {"minimum", "min", "minimum", kInf}};
constexpr Combiner kBools[] = {{"add", "any", "logical_or", 0},     {"or", "any", "logical_or", 0},
                               {"maximum", "any", "logical_or", 0}, {"multiply", "all", "logical_and", 1},
                               {"and", "all", "logical_and", 1},    {"minimum", "all", "logical_and", 1}};

const Combiner *findCombiner(const std::string &name, DType type) {
  std::span<const Combiner> table = type == bool_ ? std::span<const Combiner>(kBools) : kNumbers;
  auto it = std::ranges::find(table, name, &Combiner::name);
  return it == table.end() ? nullptr : &*it;
}

double lowest(DType type) {
  switch (type) {
  case DType::i8:
    return -128;
  case DType::i16:
    return -32768;
  case DType::i32:
    return -2147483648.0;
  case DType::i64:
    return -9223372036854775808.0;
  default:
    return isFloat(type) ? -kInf : 0;
  }
}

/// Whether a reduction's initial value is the combiner's unit.
bool isUnit(const Combiner &combiner, V init) {
  std::optional<double> value = knownScalar(init);
  DType type = typeOf(init).dtype;
  if (!value)
    return false;
  if (std::isfinite(combiner.unit) || isFloat(type))
    return *value == combiner.unit;
  return combiner.unit < 0 ? *value == lowest(type) : isSigned(type) ? *value == -lowest(type) - 1 : *value == 255;
}

// The comparator of argmax and argmin (a NaN counts as extreme, ties go to the first): (a0, a1) is the current value
// and index, (a2, a3) the next.
std::string better(const char *direction) {
  return std::string("or(compare.") + direction + "(a0,a2),compare.NE(a0,a0))";
}
std::string pickedValue(const char *direction) { return "select(" + better(direction) + ",a0,a2)"; }
std::string pickedIndex(const char *direction) {
  return "select(or(and(compare.EQ(a0,a2),compare.LT(a1,a3))," + better(direction) + "),a1,a3)";
}

/// The source's op that counts along dimension `d`.
bool countsAlong(mlir::Value source, int64_t d) {
  mlir::Operation *op = source.getDefiningOp();
  if (!op || op->getName().getStringRef() != "stablehlo.iota")
    return false;
  auto own = llvm::dyn_cast_or_null<mlir::DictionaryAttr>(op->getPropertiesAsAttribute());
  auto axis =
      own ? own.getAs<mlir::IntegerAttr>("iota_dimension") : op->getAttrOfType<mlir::IntegerAttr>("iota_dimension");
  return axis && axis.getInt() == d;
}

bool reduceWithIndex(N &n, const std::vector<std::string> &body, const Ints &dims) {
  if (n.numInputs() != 4 || dims.size() != 1 || body.size() != 2)
    return false;
  for (auto [direction, index, value] : {std::tuple("GT", "argmax", "max"), std::tuple("LT", "argmin", "min")}) {
    if (body[0] != pickedValue(direction) || body[1] != pickedIndex(direction) ||
        !countsAlong(n.operation()->getOperand(1), dims[0]))
      continue;
    DType type = typeOf(n.in(0)).dtype;
    const Combiner *combiner = findCombiner(direction[0] == 'G' ? "maximum" : "minimum", type);
    if (typeOf(n.in(0)).shape[static_cast<int>(dims[0])] == 0 || (type != bool_ && !isUnit(*combiner, n.in(2))))
      return false;
    n.out(0, n.emit(value, {n.in(0)}, {{"axis", dims}}));
    n.out(1, n.cast(n.emit(index, {n.in(0)}, {{"axis", dims[0]}}), n.resultType(1).dtype));
    return true;
  }
  return false;
}

std::string listOf(const std::vector<std::string> &body) {
  std::string text;
  for (const std::string &expression : body)
    text += (text.empty() ? "" : ", ") + expression;
  return text;
}

void reduce(N &n) {
  const int count = n.numInputs() / 2;
  n.wantInputs(2 * count);
  if (count == 0 || n.numResults() != count)
    n.fail("has " + std::to_string(n.numInputs()) + " operands and " + std::to_string(n.numResults()) + " results");
  Ints dims = n.ints("dimensions").value_or(Ints());
  std::vector<std::string> body = expressionsOf(n.region(0));
  for (int64_t d : dims)
    if (d < 0 || d >= typeOf(n.in(0)).rank())
      n.fail("dimension " + std::to_string(d) + " is not there");
  if (body.size() != static_cast<size_t>(count))
    n.fail("its body returns " + std::to_string(body.size()) + " values");
  if (reduceWithIndex(n, body, dims))
    return;
  // Several operands are fine as long as each is reduced for itself.
  for (int i = 0; i < count; ++i) {
    V x = n.in(i), init = n.in(count + i);
    n.sameElementType(x, init);
    auto at = static_cast<size_t>(i);
    const Combiner *combiner = findCombiner(combinerOf(body[at], at, at + static_cast<size_t>(count)), typeOf(x).dtype);
    if (!combiner)
      n.unsupported("a reduction by " + listOf(body));
    TensorType type = typeOf(x);
    bool empty = std::ranges::any_of(dims, [&](int64_t d) { return type.shape[static_cast<int>(d)] == 0; });
    V result;
    if (empty) {
      result = n.broadcastTo(init, n.resultType(i).shape);
    } else {
      result = dims.empty() ? x : n.cast(n.emit(combiner->reduction, {x}, {{"axis", dims}}), type.dtype);
      if (!isUnit(*combiner, init))
        result = n.emit(combiner->elementwise, {result, init});
    }
    n.out(i, result);
  }
}

/// A window along every dimension.
struct Window {
  Ints size, stride, dilation, low, high;
  int64_t extent(size_t d) const { return (size[d] - 1) * dilation[d] + 1; }
  bool trivial(size_t d) const { return size[d] == 1 && stride[d] == 1 && low[d] == 0 && high[d] == 0; }
};

/// Over one dimension without padding: combines strided slices of the window's elements one by one.
V combineShifted(N &n, V x, const Combiner &combiner, const Window &w, size_t d) {
  TensorType type = typeOf(x);
  const int64_t room = type.shape.extent(static_cast<int>(d)) - w.extent(d),
                count = room < 0 ? 0 : room / w.stride[d] + 1;
  V sum;
  for (int64_t k = 0; k < w.size[d]; ++k) {
    Ints starts(type.shape.size(), 0), limits(type.shape.begin(), type.shape.end()), strides(type.shape.size(), 1);
    starts[d] = k * w.dilation[d];
    limits[d] = starts[d] + (count ? (count - 1) * w.stride[d] + 1 : 0);
    strides[d] = w.stride[d];
    V part = n.slice(x, starts, limits, strides);
    sum = k ? n.emit(combiner.elementwise, {sum, part}) : part;
  }
  return sum;
}

/// Pools cover sums of floats and maxima over up to three dimensions; other dimensions become one in front.
V pool(N &n, V x, const char *op, const Window &w, const Ints &dims) {
  TensorType type = typeOf(x);
  Ints order;
  int64_t outer = 1;
  for (int i = 0; i < type.rank(); ++i)
    if (std::ranges::find(dims, i) == dims.end()) {
      order.push_back(i);
      outer *= type.shape.extent(i);
    }
  Shape front;
  for (int64_t d : order)
    front.push_back(type.shape[static_cast<int>(d)]);
  Shape pooled{outer, 1};
  Ints size, stride, dilation, low, high;
  for (int64_t d : dims) {
    auto at = static_cast<size_t>(d);
    order.push_back(d);
    pooled.push_back(type.shape[static_cast<int>(d)]);
    size.push_back(w.size[at]);
    stride.push_back(w.stride[at]);
    dilation.push_back(w.dilation[at]);
    low.push_back(w.low[at]);
    high.push_back(w.high[at]);
  }
  V y = n.emit(op, {n.reshape(n.transpose(x, order), pooled)},
               {{"window", size}, {"strides", stride}, {"pad_low", low}, {"pad_high", high}, {"dilations", dilation}});
  for (size_t i = 0; i < dims.size(); ++i)
    front.push_back(typeOf(y).shape[static_cast<int>(i) + 2]);
  Ints back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return n.transpose(n.reshape(y, front), back);
}

V reduceWindows(N &n, V x, V init, const Combiner &combiner, Window w, const Ints &baseDilation) {
  const auto rank = static_cast<size_t>(typeOf(x).rank());
  const bool unit = isUnit(combiner, init);
  Ints dims, none(rank, 0), between(rank);
  bool fits = true, spread = false;
  for (size_t d = 0; d < rank; ++d) {
    between[d] = baseDilation[d] - 1;
    spread |= between[d] != 0;
    if (!w.trivial(d))
      dims.push_back(static_cast<int64_t>(d));
    // A pool's padding is less than its window.
    fits &= w.low[d] >= 0 && w.high[d] >= 0 && w.low[d] < w.extent(d) && w.high[d] < w.extent(d);
  }
  DType type = typeOf(x).dtype;
  const bool sum = combiner.reduction == "sum" && isFloat(type), largest = combiner.reduction == "max" && isFloat(type);
  const bool asPool = (sum || largest) && dims.size() <= 3;
  if (!(asPool && fits && unit) || spread) { // padding is the initial value
    x = n.pad(x, w.low, w.high, between, init);
    w.low = w.high = none;
  }
  for (size_t d = 0; d < rank; ++d)
    if (typeOf(x).shape[static_cast<int>(d)] + w.low[d] + w.high[d] < w.extent(d))
      return n.broadcastTo(init, n.resultType().shape); // no window fits: all results are the initial value
  if (asPool && !dims.empty()) {
    x = pool(n, x, sum ? "sum_pool" : "max_pool", w, dims);
  } else {
    for (int64_t d : dims) {
      if (w.size[static_cast<size_t>(d)] > 4096)
        n.unsupported("a window of " + std::to_string(w.size[static_cast<size_t>(d)]) + " elements");
      x = combineShifted(n, x, combiner, w, static_cast<size_t>(d));
    }
  }
  return unit ? x : n.emit(combiner.elementwise, {x, init});
}

void reduceWindow(N &n) {
  const int count = n.numInputs() / 2;
  n.wantInputs(2 * count);
  if (count == 0 || n.numResults() != count)
    n.fail("has " + std::to_string(n.numInputs()) + " operands and " + std::to_string(n.numResults()) + " results");
  const int rank = typeOf(n.in(0)).rank();
  Window w{n.intsPerDim("window_dimensions", rank, 0),
           n.intsPerDim("window_strides", rank, 1),
           n.intsPerDim("window_dilations", rank, 1),
           {},
           {}};
  Ints baseDilation = n.intsPerDim("base_dilations", rank, 1);
  Ints padding = n.intsPerDim("padding", 2 * rank, 0);
  for (int d = 0; d < rank; ++d) {
    auto at = static_cast<size_t>(d);
    w.low.push_back(padding[2 * at]);
    w.high.push_back(padding[2 * at + 1]);
    for (int64_t v : {w.size[at], w.stride[at], w.dilation[at], baseDilation[at]})
      if (v < 1 || v > std::numeric_limits<int32_t>::max())
        n.fail("sizes, strides and dilations of windows must be at least 1");
  }
  std::vector<std::string> body = expressionsOf(n.region(0));
  if (body.size() != static_cast<size_t>(count))
    n.fail("its body returns " + std::to_string(body.size()) + " values");
  for (int i = 0; i < count; ++i) {
    n.sameElementType(n.in(i), n.in(count + i));
    auto at = static_cast<size_t>(i);
    const Combiner *combiner =
        findCombiner(combinerOf(body[at], at, at + static_cast<size_t>(count)), typeOf(n.in(i)).dtype);
    if (!combiner)
      n.unsupported("windows reduced by " + listOf(body));
    n.out(i, reduceWindows(n, n.in(i), n.in(count + i), *combiner, w, baseDilation));
  }
}

constexpr OpEntry kTable[] = {
    {"stablehlo.reduce", reduce},
    {"stablehlo.reduce_window", reduceWindow},
};
} // namespace

std::span<const OpEntry> reductionOps() { return kTable; }

} // namespace tressel::stablehlo
