#include "ir/op/Resample.h"

#include "ir/op/Exprs.h"

#include <algorithm>
#include <cmath>

namespace tressel::op {

bool Resample::isValid() const {
  auto isOneOf = [](std::string_view text, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), text) != names.end();
  };
  return isOneOf(mode, {"nearest", "linear", "cubic"}) &&
         isOneOf(coordinates, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                               "asymmetric", "tf_crop_and_resize"}) &&
         isOneOf(nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) &&
         !(antialias && mode == "nearest");
}

/// The position in the input of element i of the result.
static double sourceOf(const Resample &how, int64_t i, int64_t input, int64_t output, double scale) {
  const double x = static_cast<double>(i), in = static_cast<double>(input), exact = scale * in;
  if (how.coordinates == "align_corners")
    return exact == 1 ? 0 : x * (in - 1) / (exact - 1);
  if (how.coordinates == "asymmetric")
    return x / scale;
  if (how.coordinates == "pytorch_half_pixel" && exact == 1)
    return -0.5;
  if (how.coordinates == "tf_crop_and_resize") {
    const double part = (how.roiEnd - how.roiStart) * (in - 1);
    return how.roiStart * (in - 1) + (exact == 1 ? part / 2 : x * part / (exact - 1));
  }
  const double offset =
      how.coordinates == "half_pixel_symmetric" ? in / 2 * (1 - static_cast<double>(output) / exact) : 0;
  return offset + (x + 0.5) / scale - 0.5;
}

static double nearestTo(const Resample &how, double x) {
  if (how.nearest == "floor")
    return std::floor(x);
  if (how.nearest == "ceil")
    return std::ceil(x);
  return how.nearest == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

static double kernel(const Resample &how, double x) {
  x = std::abs(x);
  if (how.mode == "linear")
    return std::max(0.0, 1 - x);
  const double a = how.cubicA;
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

Taps resampleTaps(const Resample &how, int64_t input, int64_t output, double scale) {
  Taps result;
  const bool nearest = how.mode == "nearest";
  // The filter reaches `radius` elements to each side, in units of the coarser side.
  const double width = how.antialias ? std::min(scale, 1.0) : 1, radius = how.mode == "linear" ? 1 : 2;
  const auto first = static_cast<int64_t>(std::floor(-radius / width)) + 1;
  result.taps = nearest ? 1 : static_cast<int>(2 - 2 * first);
  const bool crops = how.coordinates == "tf_crop_and_resize";
  for (int64_t i = 0; i < output; ++i) {
    const double x = sourceOf(how, i, input, output, scale);
    result.outside.push_back(crops && (x < 0 || x > static_cast<double>(input - 1)));
    const double base = nearest ? nearestTo(how, x) : std::ceil(x) - 1;
    double sum = 0;
    const size_t start = result.weight.size();
    for (int64_t t = 0; t < result.taps; ++t) {
      const double offset = nearest ? 0 : static_cast<double>(t + first), at = base + offset;
      double weight = nearest ? 1 : kernel(how, (at - x) * width);
      if (how.excludeOutside && (at < 0 || at >= static_cast<double>(input)))
        weight = 0;
      result.index.push_back(static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(input - 1))));
      result.weight.push_back(weight);
      sum += weight;
    }
    for (size_t t = start; t < result.weight.size() && sum != 0; ++t)
      result.weight[t] /= sum;
  }
  return result;
}

namespace expr {

/// Sums the elements of all taps times their weights.
Expr resample(const Expr &x, int dim, const Taps &taps) {
  const auto count = static_cast<int64_t>(taps.outside.size());
  if (taps.taps == 1)
    return take(x, Expr::table(taps.index, {count}), dim);
  Shape along;
  for (int d = dim; d < x.rank(); ++d)
    along.push_back(d == dim ? count : 1);
  Expr result;
  for (int t = 0; t < taps.taps; ++t) {
    Ints index;
    std::vector<double> weight;
    for (size_t i = static_cast<size_t>(t); i < taps.index.size(); i += static_cast<size_t>(taps.taps)) {
      index.push_back(taps.index[i]);
      weight.push_back(taps.weight[i]);
    }
    Expr part = take(x, Expr::table(index, {count}), dim) * Expr::table(weight, along, x.dtype());
    result = t ? result + part : part;
  }
  return result;
}

/// The functions above for symbolic sizes, as expressions in f64. Positions have shape [output, 1], taps [1, taps].
namespace {
struct SymbolicTaps {
  const Resample &how;
  Size input, output;
  Expr in = Expr::number(input, DType::f64), out = Expr::number(output, DType::f64), scale = out / in,
       exact = scale * in;

  Expr number(double value) const { return Expr::scalar(value, DType::f64); }

  Expr source() const {
    const Expr x = iota({output, 1}, 0, DType::f64), half = (x + 0.5) / scale, isOne = equal(exact, number(1));
    if (how.coordinates == "align_corners")
      return where(isOne, number(0), x * (in - 1) / (exact - 1));
    if (how.coordinates == "asymmetric")
      return x / scale;
    if (how.coordinates == "pytorch_half_pixel")
      return where(isOne, number(-0.5), half - 0.5);
    return (how.coordinates == "half_pixel_symmetric" ? in / 2 * (1 - out / exact) + half : half) - 0.5;
  }

  Expr nearest(const Expr &x) const {
    if (how.nearest == "floor")
      return floor(x);
    if (how.nearest == "ceil")
      return ceil(x);
    return how.nearest == "round_prefer_ceil" ? floor(x + 0.5) : ceil(x - 0.5);
  }

  Expr kernel(const Expr &distance) const {
    const Expr x = abs(distance);
    if (how.mode == "linear")
      return maximum(number(0), 1 - x);
    const double a = how.cubicA;
    const Expr close = (x * (a + 2) - (a + 3)) * x * x + 1, far = ((x * a - 5 * a) * x + 8 * a) * x - 4 * a;
    return where(less_equal(x, number(1)), close, where(less(x, number(2)), far, number(0)));
  }

  /// Indices and weights, of shapes [output, taps].
  std::pair<Expr, Expr> all() const {
    const Expr x = source(), last = in - 1;
    auto index = [&](const Expr &at) { return cast(clip(at, number(0), last), DType::i64); };
    if (how.mode == "nearest")
      return {index(nearest(x)), {}};
    const int64_t radius = how.mode == "linear" ? 1 : 2;
    // A widened filter reaches radius * input / output elements to each side.
    const Size reach = how.antialias ? dim::max(radius, dim::ceilDiv(radius * input, output)) : radius;
    const Expr first = Expr::number(reach - 1, DType::f64);
    const Expr at = ceil(x) - 1 + (iota({1, reach * 2}, 1, DType::f64) - first), distance = at - x;
    Expr weight = kernel(how.antialias ? distance * minimum(scale, number(1)) : distance);
    if (how.excludeOutside)
      weight = where(logical_or(less(at, number(0)), greater(at, last)), number(0), weight);
    const Expr total = sum(weight, {1}, true);
    return {index(at), where(equal(total, number(0)), weight, weight / total)};
  }
};
} // namespace

Expr resample(const Expr &x, int dim, const Resample &how, Size output) {
  const Size input = x.size(dim);
  if (input.isNumber() && output.isNumber())
    return resample(x, dim,
                    resampleTaps(how, input.number(), output.number(),
                                 static_cast<double>(output.number()) / static_cast<double>(input.number())));
  const auto [index, weight] = SymbolicTaps{how, input, output}.all();
  if (!weight)
    return take(x, reshape(index, {output}), dim);
  Sizes along = weight.sizes();
  along.resize(along.size() + static_cast<size_t>(x.rank() - dim - 1), 1);
  return sum(take(x, index, dim) * reshape(cast(weight, x.dtype()), along), {dim + 1}, false);
}

/// The windows of adaptivePool, computed by the program.
static Expr adaptivePoolSymbolic(const Expr &x, int dim, Size count, bool isMean) {
  const Size size = x.size(dim), longest = dim::ceilDiv(size, count) + 1;
  const Expr window = iota({count, 1}, 0, DType::i64), n = Expr::number(size), m = Expr::number(count),
             one = Expr::number(1);
  const Expr start = floor_divide(window * n, m), end = floor_divide((window + one) * n + (m - one), m);
  const Expr place = start + iota({1, longest}, 1, DType::i64);
  const Expr windows = take(x, minimum(place, end - one), dim);
  if (!isMean)
    return max(windows, {dim + 1}, false);
  const Expr share = cast(less(place, end), x.dtype()) / cast(end - start, x.dtype());
  Sizes along{count, longest};
  along.resize(along.size() + static_cast<size_t>(x.rank() - dim - 1), 1);
  return sum(windows * reshape(share, along), {dim + 1}, false);
}

Expr adaptivePool(const Expr &x, int dim, Size count, bool isMean) {
  const Size size = x.size(dim);
  if (!size.isNumber() || !count.isNumber())
    return adaptivePoolSymbolic(x, dim, count, isMean);
  const int64_t from = size.number(), to = count.number();
  auto start = [&](int64_t i) { return i * from / to; };
  auto length = [&](int64_t i) { return ((i + 1) * from + to - 1) / to - start(i); };
  int64_t longest = 1;
  for (int64_t i = 0; i < to; ++i)
    longest = std::max(longest, length(i));
  // A row of positions per window; a shorter window repeats its last position, with weight 0 in a mean.
  Ints places;
  std::vector<double> weights;
  for (int64_t i = 0; i < to; ++i)
    for (int64_t j = 0; j < longest; ++j) {
      places.push_back(start(i) + std::min(j, length(i) - 1));
      weights.push_back(j < length(i) ? 1 / static_cast<double>(length(i)) : 0);
    }
  Expr windows = take(x, Expr::table(places, {count, longest}), dim);
  if (!isMean)
    return max(windows, {dim + 1}, false);
  Shape along{count, longest};
  for (int d = dim + 1; d < x.rank(); ++d)
    along.push_back(1);
  return sum(windows * Expr::table(weights, along, x.dtype()), {dim + 1}, false);
}

} // namespace expr
} // namespace tressel::op
