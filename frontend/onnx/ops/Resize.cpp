// Images brought to other sizes and read at computed places.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
#include "frontend/onnx/TensorData.h"
#include "ir/op/Resample.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

namespace tressel::onnx {

namespace {
using N = NodeImporter;
using Ints = std::vector<int64_t>;

/// The values of a list of floats that must be known at import.
std::vector<double> knownFloats(N &n, int i, const char *what) {
  const Value v = n.cast(n.in(i), f64);
  if (v.rank() != 1)
    n.fail(std::string(what) + " must be a list, not " + v.type.str());
  if (!v.host)
    n.unsupported(std::string(what) + " computed from the input's values");
  return {v.host->as<double>(), v.host->as<double>() + v.dim(0).number()};
}

/// Expressions over ops of the graph, made of values that are being imported.
class ExprImporter final : public op::Emitter {
public:
  explicit ExprImporter(N &n) : n(n) {}
  Ref keep(Value v) { return &values_.emplace_back(std::move(v)); }
  static const Value &of(Ref ref) { return *static_cast<const Value *>(ref); }

  std::vector<Ref> emit(const op::OpInfo &op, std::span<const Ref> inputs, const op::Attrs &attrs) override {
    std::vector<Value> operands;
    for (Ref ref : inputs)
      operands.push_back(of(ref));
    NamedAttrs named;
    for (size_t i = 0; i < attrs.size(); ++i)
      named.push_back({op.attrs[i].name, attrs[i]});
    std::vector<Ref> results;
    for (Value &v : n.emitAll(op.name, std::move(operands), named))
      results.push_back(keep(std::move(v)));
    return results;
  }
  Ref constant(double value, DType type) override { return keep(n.scalar(type, value)); }
  Ref constant(const op::HostTensor &value) override { return keep(n.constant(value)); }
  TensorType typeOf(Ref value) override { return of(value).type; }

private:
  N &n;
  std::deque<Value> values_;
};

/// Resamples one dimension by a table of places and weights, as the op `resize` does.
Value resampled(N &n, const Value &x, int dim, const op::Taps &taps, double outside) {
  ExprImporter importer(n);
  const op::Emitter::Ref input = importer.keep(x);
  const op::Attrs none;
  op::expr::Decomposition d(*op::findOp("resize"), importer, {&input, 1}, none);
  const Value result = ExprImporter::of(d.finish(op::expr::resample(d.input(0), dim, taps))[0]);
  if (std::ranges::none_of(taps.outside, [](bool b) { return b; }))
    return result;
  Shape along{static_cast<int64_t>(taps.outside.size())};
  for (int i = dim + 1; i < x.rank(); ++i)
    along.push_back(1);
  std::vector<double> flags(taps.outside.begin(), taps.outside.end());
  return n.emit("where", {n.table(flags, along, bool_), n.scalar(x.dtype(), outside), result});
}

/// Whether one of the sizes is known only at run time. Then the scale is their quotient, as the op `resize` has it.
bool isOpen(Size size, Size other) { return size.isSymbolic() || other.isSymbolic(); }

/// The attributes and inputs of a Resize node.
struct ResizeNode {
  explicit ResizeNode(N &n);
  op::Resample how;
  double outside = 0;
  std::string policy;
  Ints axes;
  op::Sizes sizes; ///< of the axes
  std::vector<double> scales;
  std::vector<double> region; ///< empty unless it crops

private:
  template <typename T> std::vector<T> checked(N &n, std::vector<T> values, const char *what) const {
    if (values.size() != axes.size())
      n.fail(std::string(what) + " has " + std::to_string(values.size()) + " entries for " + std::to_string(axes.size()) + " dimensions");
    return values;
  }
  void readSizes(N &n, const Value &x);
  void readScales(N &n, const Value &x, int scalesAt);
};

ResizeNode::ResizeNode(N &n) {
  const Value x = n.in(0);
  const bool hasRegion = n.opset() >= 11; // inputs: x, region, scales, sizes; before: x, scales
  how.mode = n.stringAttr("mode", "nearest");
  how.coordinates = n.stringAttr("coordinate_transformation_mode", n.opset() >= 11 ? "half_pixel" : "asymmetric");
  if (how.coordinates == "tf_half_pixel_for_nn")
    n.unsupported("coordinates 'tf_half_pixel_for_nn'");
  how.nearest = n.stringAttr("nearest_mode", n.opset() >= 11 ? "round_prefer_floor" : "floor");
  how.cubicA = n.floatAttr("cubic_coeff_a", -0.75);
  how.antialias = n.intAttr("antialias", 0) != 0;
  how.excludeOutside = n.intAttr("exclude_outside", 0) != 0;
  outside = n.floatAttr("extrapolation_value", 0);
  policy = n.stringAttr("keep_aspect_ratio_policy", "stretch");
  if (!how.isValid() || (policy != "stretch" && policy != "not_larger" && policy != "not_smaller"))
    n.fail("attributes 'mode', 'coordinate_transformation_mode', 'nearest_mode' and 'keep_aspect_ratio_policy' do not go together");
  axes.resize(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  if (auto given = n.intsAttr("axes"))
    axes = n.axes(*given, x.rank());
  if (hasRegion && n.has(3) && !(n.in(3).rank() == 1 && n.in(3).dim(0) == 0))
    readSizes(n, x);
  else
    readScales(n, x, hasRegion ? 2 : 1);
  if (how.coordinates == "tf_crop_and_resize") {
    region = knownFloats(n, 1, "the region");
    if (region.size() != 2 * axes.size())
      n.fail("the region has " + std::to_string(region.size()) + " entries for " + std::to_string(axes.size()) + " dimensions");
  }
}

void ResizeNode::readSizes(N &n, const Value &x) {
  sizes = checked(n, n.knownSizes(3, "'sizes'"), "'sizes'");
  for (size_t i = 0; i < axes.size(); ++i) {
    const Size size = x.dim(static_cast<int>(axes[i]));
    if (dim::bounds(sizes[i]).lo < 1 && sizes[i].isSymbolic())
      n.unsupported("'sizes' with " + dim::str(sizes[i]) + ", which may not be positive");
    if (isOpen(sizes[i], size) && policy != "stretch")
      n.unsupported("'keep_aspect_ratio_policy' for sizes that are only known when the program runs");
    scales.push_back(isOpen(sizes[i], size) ? 1 : static_cast<double>(sizes[i]) / static_cast<double>(size));
  }
  if (policy == "stretch")
    return;
  const double scale = policy == "not_larger" ? std::ranges::min(scales) : std::ranges::max(scales);
  for (size_t i = 0; i < axes.size(); ++i) {
    scales[i] = scale;
    sizes[i] = static_cast<int64_t>(std::floor(scale * static_cast<double>(n.number(x, static_cast<int>(axes[i]))) + 0.5));
  }
}

void ResizeNode::readScales(N &n, const Value &x, int scalesAt) {
  scales = checked(n, knownFloats(n, scalesAt, "'scales'"), "'scales'");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int d = static_cast<int>(axes[i]);
    if (x.dim(d).isSymbolic() && scales[i] >= 1 && scales[i] <= 1 << 20 && scales[i] == std::floor(scales[i])) {
      sizes.push_back(x.dim(d) * static_cast<int64_t>(scales[i])); // so the scale is the quotient of the sizes
      continue;
    }
    const double size = std::floor(scales[i] * static_cast<double>(n.number(x, d)));
    if (!(scales[i] > 0 && size < 1e9))
      n.fail("'scales' holds " + std::to_string(scales[i]));
    sizes.push_back(static_cast<int64_t>(size));
  }
}

void resize(N &n) {
  ResizeNode node(n);
  Value x = n.in(0);
  const DType type = x.dtype();
  if (node.how.mode != "nearest" && (!isFloat(type) || sizeOf(type) < 4))
    x = n.cast(x, f32);
  bool plain = node.region.empty() && !node.how.excludeOutside;
  op::Sizes whole(x.type.shape.begin(), x.type.shape.end());
  for (size_t i = 0; i < node.axes.size(); ++i) {
    const int d = static_cast<int>(node.axes[i]);
    const Size size = node.sizes[i];
    whole[static_cast<size_t>(d)] = size;
    if (isOpen(size, x.dim(d)))
      continue;
    if (size < 0 || (x.dim(d) == 0 && size > 0))
      n.fail("cannot bring " + x.type.str() + " to size " + dim::str(size));
    // A scale that is not the quotient of the sizes places the elements differently.
    plain &= size > 0 && node.scales[i] == static_cast<double>(size) / static_cast<double>(x.dim(d));
  }
  if (plain) {
    x = n.emit("resize", {x}, {{"sizes", whole}, {"mode", node.how.mode}, {"coordinates", node.how.coordinates},
                               {"nearest", node.how.nearest}, {"cubic_a", node.how.cubicA}, {"antialias", node.how.antialias}});
    return n.out(0, n.cast(x, type));
  }
  for (size_t i = 0; i < node.axes.size(); ++i) {
    const int d = static_cast<int>(node.axes[i]);
    const Size size = node.sizes[i];
    if (size == x.dim(d) && size.isSymbolic() && node.region.empty())
      continue;
    if (size.isSymbolic())
      n.unsupported("this way to resize to " + dim::str(size) + ", which is only known when the program runs");
    n.number(x, d);
    if (!node.region.empty()) {
      node.how.roiStart = node.region[i];
      node.how.roiEnd = node.region[i + node.axes.size()];
    }
    const bool same = node.scales[i] == 1 && (node.region.empty() || (node.how.roiStart == 0 && node.how.roiEnd == 1));
    if (!same)
      x = resampled(n, x, d, op::resampleTaps(node.how, x.dim(d).number(), size.number(), node.scales[i]),
                    node.outside);
  }
  n.out(0, n.cast(x, type));
}

/// The predecessor of Resize: scales as an attribute, then as an input; places are rounded down.
void upsample(N &n) {
  Value x = n.in(0);
  op::Resample how;
  how.mode = n.stringAttr("mode", "nearest");
  how.coordinates = "asymmetric";
  how.nearest = "floor";
  const std::vector<double> scales = n.opset() >= 9 ? knownFloats(n, 1, "'scales'") : n.floatsAttr("scales").value_or(std::vector<double>());
  if (scales.size() != static_cast<size_t>(x.rank()) || (how.mode != "nearest" && how.mode != "linear"))
    n.fail("'scales' or 'mode' does not fit " + x.type.str());
  const DType type = x.dtype();
  if (how.mode == "linear") {
    n.requireFloat(x);
    x = n.cast(x, type == f64 ? f64 : f32);
  }
  for (int d = 0; d < x.rank(); ++d) {
    const double scale = scales[static_cast<size_t>(d)];
    if (scale == 1)
      continue;
    const double size = std::floor(scale * static_cast<double>(n.number(x, d)));
    if (!(scale > 0 && size < 1e9) || (x.dim(d) == 0))
      n.fail("'scales' holds " + std::to_string(scale));
    x = resampled(n, x, d, op::resampleTaps(how, x.dim(d).number(), static_cast<int64_t>(size), scale), 0);
  }
  n.out(0, n.cast(x, type));
}

/// What a place reads along one dimension.
struct Reading {
  Value index;  ///< i64, inside
  Value weight; ///< none: 1
};

/// Values of x [batch, channels, spatial...] at the places of `grid` [batch, out..., spatial], from -1 to 1.
class GridSampler {
public:
  GridSampler(N &n, const Value &x, const Value &grid, std::string padding, bool corners)
      : n_(n), x_(x), grid_(grid), padding_(std::move(padding)), corners_(corners) {}

  Value run(const std::string &mode) {
    const int spatial = x_.rank() - 2;
    std::vector<std::vector<Reading>> readings;
    for (int d = 0; d < spatial; ++d)
      readings.push_back(along(d, mode));
    // Channels last and everything else in one dimension: a place is a row.
    Ints order{0}, sizes;
    for (int d = 0; d < spatial; ++d)
      order.push_back(d + 2);
    order.push_back(1);
    Value rows = n_.transpose(x_, order);
    const int64_t channels = x_.type.shape.extent(1),
                  places = x_.type.shape.numElements() / std::max<int64_t>(channels * x_.type.shape.extent(0), 1);
    rows = n_.reshape(rows, {x_.dim(0) * places, channels});
    Shape batch{x_.dim(0)};
    for (int d = 0; d < spatial; ++d)
      batch.push_back(1);
    op::HostTensor starts = op::HostTensor::allocate({i64, batch});
    for (int64_t b = 0; b < x_.dim(0); ++b)
      starts.as<int64_t>()[b] = b * places;
    Value y = combine(rows, readings, 0, n_.constant(std::move(starts)), {});
    Ints back{0, y.rank() - 1};
    for (int d = 1; d < y.rank() - 1; ++d)
      back.push_back(d);
    return n_.transpose(y, back);
  }

private:
  Value number(double v) { return n_.scalar(grid_.dtype(), v); }
  Value add(const Value &a, const Value &b) { return n_.emit("add", {a, b}); }
  Value sub(const Value &a, const Value &b) { return n_.emit("sub", {a, b}); }
  Value mul(const Value &a, const Value &b) { return n_.emit("mul", {a, b}); }

  /// The sum over all combinations of readings, from dimension `d` on.
  Value combine(const Value &rows, const std::vector<std::vector<Reading>> &readings, size_t d, const Value &index,
                const std::optional<Value> &weight) {
    if (d == readings.size()) {
      Value v = n_.emit("take", {rows, index}, {{"axis", int64_t(0)}});
      if (!weight)
        return v;
      Shape wide = weight->type.shape;
      wide.push_back(1);
      return mul(v, n_.cast(n_.reshape(*weight, wide), v.dtype()));
    }
    int64_t stride = 1;
    for (int i = static_cast<int>(d) + 3; i < x_.rank(); ++i)
      stride *= x_.type.shape.extent(i);
    std::optional<Value> total;
    for (const Reading &r : readings[d]) {
      Value place = add(index, mul(r.index, n_.scalar(i64, static_cast<double>(stride))));
      std::optional<Value> w = weight;
      if (r.weight.ir)
        w = w ? mul(*w, r.weight) : r.weight;
      Value part = combine(rows, readings, d + 1, place, w);
      total = total ? add(*total, part) : part;
    }
    return *total;
  }

  /// The last dimension of the grid counts the spatial dimensions from the last.
  std::vector<Reading> along(int d, const std::string &mode) {
    const int spatial = x_.rank() - 2;
    const int64_t size = x_.type.shape.extent(d + 2);
    Shape places = grid_.type.shape;
    places.pop_back();
    Value g = n_.reshape(n_.sliceAxis(grid_, grid_.rank() - 1, spatial - 1 - d, spatial - d), places);
    const double length = static_cast<double>(size);
    // -1 and 1 are the centres of the first and the last element, or their outer ends.
    Value at = corners_ ? mul(add(g, number(1)), number((length - 1) / 2))
                        : sub(mul(add(g, number(1)), number(length / 2)), number(0.5));
    std::vector<Reading> list;
    if (mode == "nearest") {
      list.push_back(read(n_.emit("round", {at}), size));
      return list;
    }
    if (padding_ != "zeros" && mode == "linear")
      at = inside(at, size); // an out-of-range place is clamped itself, which is right for filters of two elements
    Value base = n_.emit("floor", {at}), part = sub(at, base);
    auto weighted = [&](double offset, const Value &weight) {
      Reading r = read(add(base, number(offset)), size);
      r.weight = r.weight.ir ? mul(r.weight, weight) : weight;
      list.push_back(r);
    };
    if (mode == "linear") {
      weighted(0, sub(number(1), part));
      weighted(1, part);
      return list;
    }
    const double a = -0.75;
    auto near = [&](const Value &t) { // |t| <= 1
      Value v = sub(mul(number(a + 2), t), number(a + 3));
      return add(mul(mul(v, t), t), number(1));
    };
    auto far = [&](const Value &t) { // 1 < |t| < 2
      Value v = sub(mul(number(a), t), number(5 * a));
      return sub(mul(add(mul(v, t), number(8 * a)), t), number(4 * a));
    };
    Value rest = sub(number(1), part);
    weighted(-1, far(add(part, number(1))));
    weighted(0, near(part));
    weighted(1, near(rest));
    weighted(2, far(add(rest, number(1))));
    return list;
  }

  Value clamped(const Value &at, int64_t size) {
    return n_.emit("minimum", {n_.emit("maximum", {at, number(0)}), number(static_cast<double>(size - 1))});
  }
  /// A place outside brought to the border, or reflected by it.
  Value inside(const Value &at, int64_t size) {
    if (padding_ != "reflection")
      return clamped(at, size);
    const double low = corners_ ? 0 : -0.5, span = corners_ ? static_cast<double>(size - 1) : static_cast<double>(size);
    if (span == 0)
      return mul(at, number(0));
    // Folded into [0, 2 * span), of which the second half runs backwards.
    Value folded = n_.emit("remainder", {sub(at, number(low)), number(2 * span)});
    folded = n_.emit("minimum", {folded, sub(number(2 * span), folded)});
    return clamped(add(folded, number(low)), size);
  }
  Reading read(const Value &at, int64_t size) {
    Reading r;
    const Value safe = padding_ == "zeros" ? clamped(at, size) : inside(at, size);
    r.index = n_.cast(safe, i64);
    if (padding_ == "zeros")
      r.weight = n_.cast(n_.emit("equal", {safe, at}), grid_.dtype());
    return r;
  }

  N &n_;
  const Value &x_, &grid_;
  std::string padding_;
  bool corners_;
};

void gridSample(N &n) {
  const Value x = n.in(0), grid = n.in(1);
  n.requireFloat(grid);
  std::string mode = n.stringAttr("mode", n.opset() >= 20 ? "linear" : "bilinear");
  mode = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  const std::string padding = n.stringAttr("padding_mode", "zeros");
  const bool corners = n.intAttr("align_corners", 0) != 0;
  if ((mode != "linear" && mode != "nearest" && mode != "cubic") ||
      (padding != "zeros" && padding != "border" && padding != "reflection"))
    n.fail("no mode '" + mode + "' with padding '" + padding + "'");
  if (x.rank() < 3 || grid.rank() != x.rank() || grid.dim(0) != x.dim(0) || grid.dim(grid.rank() - 1) != x.rank() - 2)
    n.fail("a grid of type " + grid.type.str() + " does not fit " + x.type.str());
  for (int d = 0; d < x.rank(); ++d)
    n.number(x, d); // places become indices of one dimension
  if (x.type.shape.numElements() == 0)
    n.fail("there is nothing to read in " + x.type.str());
  n.out(0, n.cast(GridSampler(n, x, grid, padding, corners).run(mode), x.dtype()));
}

/// Places from -1 to 1 of an image of the given size, moved by a matrix per sample.
void affineGrid(N &n) {
  const Value &theta = n.in(0);
  const Ints size = n.knownInts(1, "the size");
  const bool corners = n.intAttr("align_corners", 0) != 0;
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  if ((spatial != 2 && spatial != 3) || !(theta.type.shape == Shape{size[0], spatial, spatial + 1}))
    n.fail("matrices of type " + theta.type.str() + " do not fit " + std::to_string(spatial) + " spatial dimensions");
  Shape result{size[0]};
  int64_t places = 1;
  for (size_t d = 2; d < size.size(); ++d) {
    if (size[d] < 1 || size[d] > 1 << 20)
      n.fail("the size holds " + std::to_string(size[d]));
    result.push_back(size[d]);
    places *= size[d];
  }
  if (!fitsMemory({f64, {places, spatial + 1}}))
    n.fail("the grid is larger than any memory");
  result.push_back(spatial);
  // A row per place: its coordinates, the last dimension's first, and 1.
  std::vector<double> rows;
  for (int64_t p = 0; p < places; ++p) {
    int64_t rest = p;
    for (int64_t d = spatial - 1; d >= 0; --d) {
      const int64_t length = size[static_cast<size_t>(d) + 2], i = rest % length;
      rest /= length;
      rows.push_back(corners ? (length == 1 ? -1 : 2 * static_cast<double>(i) / static_cast<double>(length - 1) - 1)
                             : (2 * static_cast<double>(i) + 1) / static_cast<double>(length) - 1);
    }
    rows.push_back(1);
  }
  Value base = n.table(rows, {places, spatial + 1}, theta.dtype());
  n.out(0, n.reshape(n.emit("matmul", {base, n.transpose(theta, {0, 2, 1})}), result));
}

/// Cut or padded with zeros, evenly at both ends.
void centerCropPad(N &n) {
  Value x = n.in(0);
  const op::Sizes wanted = n.knownSizes(1, "the shape");
  Ints axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  if (auto given = n.intsAttr("axes"))
    axes = n.axes(*given, x.rank());
  if (wanted.size() != axes.size())
    n.fail("the shape has " + std::to_string(wanted.size()) + " entries for " + std::to_string(axes.size()) + " dimensions");
  op::Sizes from(static_cast<size_t>(x.rank())), to(x.type.shape.begin(), x.type.shape.end()), low = from, high = from;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(axes[i]);
    if (wanted[i] == x.dim(static_cast<int>(d)))
      continue;
    if (wanted[i].isSymbolic())
      n.unsupported("a size of " + dim::str(wanted[i]) + ", which is only known when the program runs");
    const int64_t size = n.number(x, static_cast<int>(d)), difference = wanted[i].number() - size;
    if (wanted[i] < 0 || wanted[i] > kMaxTensorBytes)
      n.fail("the shape holds " + dim::str(wanted[i]));
    if (difference < 0) {
      from[d] = -difference / 2;
      to[d] = from[d] + wanted[i];
    } else {
      low[d] = difference / 2;
      high[d] = difference - low[d];
    }
  }
  x = n.emit("slice", {x}, {{"starts", from}, {"limits", to}});
  n.out(0, n.emit("pad", {x}, {{"low", low}, {"high", high}}));
}

constexpr OpEntry kTable[] = {
    {"Resize", 10, resize}, {"Upsample", 7, upsample}, {"GridSample", 16, gridSample}, {"CenterCropPad", 18, centerCropPad}, {"AffineGrid", 20, affineGrid}};
} // namespace

std::span<const OpEntry> resizeOps() { return kTable; }

} // namespace tressel::onnx
