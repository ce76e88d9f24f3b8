// Fourier transforms and window functions.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"

#include <cmath>
#include <numbers>

namespace tressel::onnx {

namespace {
using N = NodeImporter;
using Ints = std::vector<int64_t>;

/// Larger tables of sines would be larger than the models that hold them.
constexpr int64_t kLongestTransform = 4096;

struct Complex {
  Value real;
  std::optional<Value> imaginary;
};

/// Matrices [rows, columns] of cosines and sines of 2 pi row column / length.
struct Waves {
  Value cosine, sine;
};
Waves waves(N &n, int64_t rows, int64_t columns, int64_t length, DType type) {
  if (length > kLongestTransform)
    n.unsupported("a transform of " + std::to_string(length) + " elements, more than " + std::to_string(kLongestTransform));
  std::vector<double> c, s;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i * j % length) / static_cast<double>(length);
      c.push_back(std::cos(angle));
      s.push_back(std::sin(angle));
    }
  return {n.table(c, {rows, columns}, type), n.table(s, {rows, columns}, type)};
}

Value matmul(N &n, const Value &a, const Value &b) { return n.emit("matmul", {a, b}); }
Value add(N &n, const Value &a, const Value &b) { return n.emit("add", {a, b}); }
Value sub(N &n, const Value &a, const Value &b) { return n.emit("sub", {a, b}); }

/// The last dimension, of `length` elements, transformed by a product with the matrix of the transform.
Complex transform(N &n, const Complex &x, int64_t length, int64_t bins, bool inverse) {
  const Waves w = waves(n, length, bins, length, x.real.dtype());
  Complex y;
  Value c = matmul(n, x.real, w.cosine), s = matmul(n, x.real, w.sine);
  y.real = c;
  y.imaginary = inverse ? s : n.emit("negative", {s});
  if (x.imaginary) {
    Value ic = matmul(n, *x.imaginary, w.cosine), is = matmul(n, *x.imaginary, w.sine);
    y.real = inverse ? sub(n, c, is) : add(n, c, is);
    y.imaginary = add(n, *y.imaginary, ic);
  }
  if (inverse) {
    Value scale = n.scalar(x.real.dtype(), 1 / static_cast<double>(length));
    y.real = n.emit("mul", {y.real, scale});
    y.imaginary = n.emit("mul", {*y.imaginary, scale});
  }
  return y;
}

/// [..., 1 or 2] as its parts.
Complex parts(N &n, const Value &x) {
  const int last = x.rank() - 1;
  if (last < 1 || (x.dim(last) != 1 && x.dim(last) != 2))
    n.fail("needs real or complex numbers in the last dimension, not " + x.type.str());
  Shape shape = x.type.shape;
  shape.pop_back();
  Complex c;
  c.real = n.reshape(n.sliceAxis(x, last, 0, 1), shape);
  if (x.dim(last) == 2)
    c.imaginary = n.reshape(n.sliceAxis(x, last, 1, 2), shape);
  return c;
}
Value joined(N &n, const Complex &c) {
  Shape shape = c.real.type.shape;
  shape.push_back(1);
  return n.emit("concat", {n.reshape(c.real, shape), n.reshape(*c.imaginary, shape)}, {{"axis", int64_t(shape.rank() - 1)}});
}
/// Cut or padded with zeros at the end of the last dimension.
Value ofLength(N &n, const Value &v, int64_t length) {
  const int last = v.rank() - 1;
  if (n.number(v, last) >= length)
    return v.dim(last) == length ? v : n.sliceAxis(v, last, 0, length);
  op::Sizes low(static_cast<size_t>(v.rank())), high = low;
  high.back() = length - v.dim(last);
  return n.emit("pad", {v}, {{"low", low}, {"high", high}});
}

void dft(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  int64_t rawAxis = n.opset() >= 20 ? -2 : n.intAttr("axis", 1);
  if (n.opset() >= 20 && n.has(2))
    rawAxis = n.knownInts(2, "the axis").at(0);
  const int axis = n.axis(rawAxis, x.rank());
  const bool inverse = n.intAttr("inverse", 0) != 0, onesided = n.intAttr("onesided", 0) != 0;
  if (axis == x.rank() - 1)
    n.fail("the axis is that of the complex numbers");
  int64_t length = inverse && onesided ? 2 * (n.number(x, axis) - 1) : n.number(x, axis);
  if (n.has(1))
    length = n.knownInts(1, "the length").at(0);
  if (length < 1 || x.dim(axis) < 1)
    n.fail("a transform of " + std::to_string(length) + " elements");

  Complex c = parts(n, x);
  if (inverse && onesided && !c.imaginary)
    n.fail("the half of a transform needs complex numbers, not " + x.type.str());
  const int rank = c.real.rank();
  Ints order; // the axis last
  for (int d = 0; d < rank; ++d)
    if (d != axis)
      order.push_back(d);
  order.push_back(axis);
  Ints back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  auto apply = [&](auto &&f) {
    c.real = f(c.real);
    if (c.imaginary)
      c.imaginary = f(*c.imaginary);
  };
  apply([&](const Value &v) { return n.transpose(v, order); });
  if (inverse && onesided) {
    // The half that is left out is the conjugate of the other: all but the ends counts twice, and the result is real.
    const int64_t bins = length / 2 + 1;
    apply([&](const Value &v) { return ofLength(n, v, bins); });
    const Waves w = waves(n, bins, length, length, x.dtype());
    std::vector<double> weight(static_cast<size_t>(bins), 2 / static_cast<double>(length));
    weight[0] = 1 / static_cast<double>(length);
    if (length % 2 == 0)
      weight.back() = weight[0];
    Value counts = n.table(weight, {bins}, x.dtype());
    Value y = matmul(n, n.emit("mul", {c.real, counts}), w.cosine);
    if (c.imaginary)
      y = sub(n, y, matmul(n, n.emit("mul", {*c.imaginary, counts}), w.sine));
    y = n.transpose(y, back);
    Shape shape = y.type.shape;
    shape.push_back(1);
    return n.out(0, n.reshape(y, shape));
  }
  apply([&](const Value &v) { return ofLength(n, v, length); });
  Complex y = transform(n, c, length, onesided ? length / 2 + 1 : length, inverse);
  y.real = n.transpose(y.real, back);
  y.imaginary = n.transpose(*y.imaginary, back);
  n.out(0, joined(n, y));
}

/// The transforms of overlapping stretches of a signal [batch, length, 1 or 2].
void stft(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  if (x.rank() != 3)
    n.fail("needs a signal of 3 dimensions, not " + x.type.str());
  const int64_t step = n.knownInts(1, "the step").at(0);
  n.number(x, 1);
  int64_t length = n.has(2) ? n.number(n.reshape(n.in(2), {dim::numElements(n.in(2).type.shape)}), 0) : n.number(x, 1);
  if (n.has(3))
    length = n.knownInts(3, "the length").at(0);
  const bool onesided = n.intAttr("onesided", 1) != 0;
  if (step < 1 || length < 1 || length > x.dim(1))
    n.fail("stretches of " + std::to_string(length) + " every " + std::to_string(step) + " do not fit " + x.type.str());
  const Size frames = 1 + (x.dim(1) - length) / step;
  op::HostTensor places = op::HostTensor::allocate({i64, {frames, length}});
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t i = 0; i < length; ++i)
      places.as<int64_t>()[f * length + i] = f * step + i;
  const Value index = n.constant(std::move(places));
  Complex c = parts(n, x);
  auto framed = [&](const Value &v) {
    Value y = n.emit("take", {v, index}, {{"axis", int64_t(1)}});
    return n.has(2) ? n.emit("mul", {y, n.in(2)}) : y;
  };
  c.real = framed(c.real);
  if (c.imaginary)
    c.imaginary = framed(*c.imaginary);
  n.out(0, joined(n, transform(n, c, length, onesided ? length / 2 + 1 : length, false)));
}

/// A sum of cosines over one period: a - b cos(t) + c cos(2 t).
template <int Which> void window(N &n) {
  static constexpr double kTerms[][3] = {{0.5, 0.5, 0}, {25.0 / 46, 21.0 / 46, 0}, {0.42, 0.5, 0.08}};
  const int64_t size = n.knownInts(0, "the size").at(0);
  const DType type = n.hasAttr("output_datatype") ? n.typeAttr("output_datatype") : f32;
  if (size < 0 || size > 1 << 24)
    n.fail("a window of " + std::to_string(size) + " elements");
  const double period = static_cast<double>(n.intAttr("periodic", 1) ? size : size - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double t = period == 0 ? 0 : 2 * std::numbers::pi * static_cast<double>(i) / period;
    values.push_back(kTerms[Which][0] - kTerms[Which][1] * std::cos(t) + kTerms[Which][2] * std::cos(2 * t));
  }
  n.out(0, n.table(values, {size}, type));
}

/// Triangles over the bins of a transform, evenly spaced on the mel scale.
void melWeights(N &n) {
  auto number = [&](int i) {
    const auto v = n.knownScalar(n.in(i));
    if (!v)
      n.unsupported("weights whose sizes are computed from the input's values");
    return *v;
  };
  const double mels = number(0), length = number(1), rate = number(2), low = number(3), high = number(4);
  const DType type = n.hasAttr("output_datatype") ? n.typeAttr("output_datatype") : f32;
  if (!(mels >= 1 && mels <= 1e4 && length >= 1 && length <= 1e6 && rate >= 1 && low >= 0 && high > low && high <= rate))
    n.fail("sizes and frequencies do not make a mel scale");
  auto toMel = [](double hz) { return 2595 * std::log10(1 + hz / 700); };
  const auto count = static_cast<int64_t>(mels), bins = static_cast<int64_t>(length) / 2 + 1;
  const double step = (toMel(high) - toMel(low)) / (mels + 2);
  Ints corner;
  for (int64_t i = 0; i < count + 2; ++i) {
    const double hz = 700 * (std::pow(10, (static_cast<double>(i) * step + toMel(low)) / 2595) - 1);
    corner.push_back(static_cast<int64_t>(std::floor((length + 1) * hz / rate)));
  }
  std::vector<double> weights(static_cast<size_t>(bins * count), 0);
  auto set = [&](int64_t bin, int64_t mel, double value) {
    if (bin < bins)
      weights[static_cast<size_t>(bin * count + mel)] = value;
  };
  for (int64_t m = 0; m < count; ++m) {
    const int64_t left = corner[static_cast<size_t>(m)], top = corner[static_cast<size_t>(m) + 1], right = corner[static_cast<size_t>(m) + 2];
    if (top == left)
      set(top, m, 1);
    for (int64_t b = left; top > left && b <= top; ++b)
      set(b, m, static_cast<double>(b - left) / static_cast<double>(top - left));
    for (int64_t b = top; b < right; ++b)
      set(b, m, static_cast<double>(right - b) / static_cast<double>(right - top));
  }
  n.out(0, n.table(weights, {bins, count}, type));
}

constexpr OpEntry kTable[] = {{"DFT", 17, dft},
                              {"STFT", 17, stft},
                              {"HannWindow", 17, window<0>},
                              {"HammingWindow", 17, window<1>},
                              {"BlackmanWindow", 17, window<2>},
                              {"MelWeightMatrix", 17, melWeights}};
} // namespace

std::span<const OpEntry> signalOps() { return kTable; }

} // namespace tressel::onnx
