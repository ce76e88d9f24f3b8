// Numbers in 8 bits with a scale and a zero point.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
#include "ir/op/Infer.h"

#include <algorithm>

namespace tressel::onnx {

namespace {
using N = NodeImporter;
using Ints = std::vector<int64_t>;

Value add(N &n, const Value &a, const Value &b) { return n.emit("add", {a, b}); }
Value sub(N &n, const Value &a, const Value &b) { return n.emit("sub", {a, b}); }
Value mul(N &n, const Value &a, const Value &b) { return n.emit("mul", {a, b}); }

std::pair<double, double> limits(N &n, DType type) {
  switch (type) {
  case DType::i8: return {-128, 127};
  case DType::u8: return {0, 255};
  case DType::i16: return {-32768, 32767};
  case DType::i32: return {-2147483648.0, 2147483647.0};
  default: n.unsupported("quantization to " + std::string(nameOf(type)));
  }
}
/// Rounded to even, moved by the zero point, limited to the type.
Value saturated(N &n, const Value &scaled, const std::optional<Value> &zero, DType type) {
  const auto [low, high] = limits(n, type);
  Value v = n.emit("round", {scaled});
  if (zero)
    v = add(n, v, n.cast(*zero, v.dtype()));
  v = n.emit("minimum", {n.emit("maximum", {v, n.scalar(v.dtype(), low)}), n.scalar(v.dtype(), high)});
  return n.cast(v, type);
}

/// A scale or zero point brought to x's dimensions: one for all, one per index of the axis, or one per block of it.
Value perAxis(N &n, Value p, const Value &x, int axis, int64_t block) {
  if (dim::numElements(p.type.shape) == 1 && p.rank() <= 1)
    return n.reshape(p, {});
  if (p.rank() == 1) {
    if (p.dim(0) != x.dim(axis))
      n.fail("a parameter of type " + p.type.str() + " does not fit dimension " + std::to_string(axis) + " of " + x.type.str());
    Shape shape;
    for (int i = axis; i < x.rank(); ++i)
      shape.push_back(i == axis ? p.dim(0) : 1);
    return n.reshape(p, shape);
  }
  if (block < 1 || p.rank() != x.rank())
    n.fail("a parameter of type " + p.type.str() + " does not fit " + x.type.str());
  // Each entry serves a block: repeated, then cut to the size.
  n.number(p, axis);
  Shape split = p.type.shape, wide, joined = p.type.shape;
  Shape with;
  for (int i = 0; i < p.rank(); ++i) {
    with.push_back(split[i]);
    wide.push_back(split[i]);
    if (i == axis) {
      with.push_back(1);
      wide.push_back(block);
      if (!op::multiply(joined[i], block))
        n.fail("blocks of " + std::to_string(block) + " for a parameter of type " + p.type.str() + " are larger than any tensor");
    }
  }
  p = n.reshape(n.broadcastTo(n.reshape(p, with), wide), joined);
  return p.dim(axis) == x.dim(axis) ? p : n.sliceAxis(p, axis, 0, x.dim(axis));
}
int axisOf(N &n, const Value &x) {
  const int64_t raw = n.intAttr("axis", 1);
  return x.rank() == 0 || (raw == 1 && x.rank() == 1) ? 0 : n.axis(raw, x.rank());
}

void quantize(N &n) {
  const Value &x = n.in(0);
  const int axis = axisOf(n, x);
  const int64_t block = n.intAttr("block_size", 0);
  n.ignoreAttr("saturate"); // concerns 8-bit floats only
  DType type = n.has(2) ? n.in(2).dtype() : u8;
  if (n.hasAttr("output_dtype") && n.intAttr("output_dtype") != 0)
    type = n.typeAttr("output_dtype");
  DType precision = x.dtype() == f64 ? f64 : f32;
  if (n.hasAttr("precision") && n.intAttr("precision") != 0)
    precision = n.typeAttr("precision");
  Value scale = n.cast(perAxis(n, n.in(1), x, axis, block), precision);
  std::optional<Value> zero;
  if (n.has(2))
    zero = perAxis(n, n.in(2), x, axis, block);
  n.out(0, saturated(n, n.emit("div", {n.cast(x, precision), scale}), zero, type));
}

void dequantize(N &n) {
  const Value &x = n.in(0);
  const int axis = axisOf(n, x);
  const int64_t block = n.intAttr("block_size", 0);
  DType type = n.in(1).dtype();
  if (n.hasAttr("output_dtype") && n.intAttr("output_dtype") != 0)
    type = n.typeAttr("output_dtype");
  Value v = n.cast(x, i32);
  if (n.has(2))
    v = sub(n, v, n.cast(perAxis(n, n.in(2), x, axis, block), i32));
  n.out(0, n.cast(mul(n, n.cast(v, f32), n.cast(perAxis(n, n.in(1), x, axis, block), f32)), type));
}

/// Scale and zero point from the smallest and the largest element, with 0 in the range.
void dynamicQuantize(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  const Value zero = n.scalar(x.dtype(), 0);
  Value low = n.emit("minimum", {n.emit("min", {x}), zero}), high = n.emit("maximum", {n.emit("max", {x}), zero});
  Value scale = n.emit("div", {sub(n, high, low), n.scalar(x.dtype(), 255)});
  Value point = saturated(n, n.emit("div", {n.emit("negative", {low}), scale}), {}, u8);
  n.out(0, saturated(n, n.emit("div", {x, scale}), point, u8));
  n.out(1, scale);
  n.out(2, point);
}

/// x - zero as i32; a zero point per row of a matrix stands at the second-to-last dimension.
Value centered(N &n, const Value &x, int zero, int axis) {
  Value v = n.cast(x, i32);
  if (!n.has(zero))
    return v;
  Value z = n.cast(n.in(zero), i32);
  if (z.rank() == 1 && z.dim(0) != 1) {
    Shape shape;
    for (int i = axis; i < x.rank(); ++i)
      shape.push_back(i == axis ? z.dim(0) : 1);
    z = n.reshape(z, shape);
  } else if (z.rank() <= 1) {
    z = n.reshape(z, {});
  }
  return sub(n, v, z);
}

void matmulInteger(N &n) {
  const Value &a = n.in(0), &b = n.in(1);
  Value v = n.emit("matmul", {centered(n, a, 2, std::max(a.rank() - 2, 0)), centered(n, b, 3, b.rank() - 1)});
  n.out(0, n.cast(v, i32));
}

/// Sums of products of 8-bit numbers are exact in f64.
Value convolved(N &n, const Value &x, const Value &w) {
  const auto dims = static_cast<size_t>(std::max(x.rank() - 2, 0));
  auto list = [&](const char *name, int64_t fallback, size_t count) {
    Ints values = n.intsAttr(name).value_or(Ints(count, fallback));
    if (values.size() != count)
      n.fail("'" + std::string(name) + "' does not fit " + x.type.str());
    return values;
  };
  if (n.stringAttr("auto_pad", "NOTSET") != "NOTSET")
    n.unsupported("attribute 'auto_pad'");
  if (n.hasAttr("kernel_shape") && list("kernel_shape", 1, dims) != Ints(w.type.shape.begin() + 2, w.type.shape.end()))
    n.fail("'kernel_shape' differs from the weights' shape");
  const Ints pads = list("pads", 0, 2 * dims);
  return n.emit("conv", {n.cast(x, f64), n.cast(w, f64)},
                {{"strides", list("strides", 1, dims)},
                 {"pad_low", Ints(pads.begin(), pads.begin() + static_cast<long>(dims))},
                 {"pad_high", Ints(pads.begin() + static_cast<long>(dims), pads.end())},
                 {"dilations", list("dilations", 1, dims)},
                 {"groups", n.intAttr("group", 1)}});
}
void convInteger(N &n) {
  if (n.in(0).rank() < 3 || n.in(0).rank() > 5 || n.in(1).rank() != n.in(0).rank())
    n.fail("needs an image and weights of equal rank");
  n.out(0, n.cast(convolved(n, centered(n, n.in(0), 2, 1), centered(n, n.in(1), 3, 0)), i32));
}

/// Inputs a, its scale and zero point, b, its scale and zero point, the result's scale and zero point.
template <bool IsConv> void qLinear(N &n) {
  const Value &a = n.in(0), &b = n.in(3);
  const int aAxis = IsConv ? 1 : std::max(a.rank() - 2, 0), bAxis = IsConv ? 0 : b.rank() - 1;
  if (IsConv && (a.rank() < 3 || a.rank() > 5 || b.rank() != a.rank()))
    n.fail("needs an image and weights of equal rank");
  Value left = centered(n, a, 2, aAxis), right = centered(n, b, 5, bAxis);
  Value v;
  if constexpr (IsConv) {
    v = convolved(n, left, right);
    if (n.has(8)) {
      Shape wide{1, b.dim(0)};
      for (int i = 2; i < v.rank(); ++i)
        wide.push_back(1);
      v = add(n, v, n.cast(n.reshape(n.in(8), wide), v.dtype()));
    }
  } else {
    v = n.emit("matmul", {left, right});
  }
  // Scales per row of a and per column, or feature, of b.
  auto scaleOf = [&](int i, int axis, int rank) {
    Value s = n.cast(n.in(i), f64);
    if (dim::numElements(s.type.shape) == 1)
      return n.reshape(s, {});
    Shape shape;
    for (int d = axis; d < rank; ++d)
      shape.push_back(d == axis ? dim::numElements(s.type.shape) : 1);
    return s.rank() == 1 ? n.reshape(s, shape) : s;
  };
  Value scale = mul(n, scaleOf(1, aAxis, a.rank()), scaleOf(4, IsConv ? 1 : bAxis, v.rank()));
  scale = n.emit("div", {scale, scaleOf(6, 0, 0)});
  n.out(0, saturated(n, mul(n, n.cast(v, f64), scale), n.reshape(n.in(7), {}), n.in(7).dtype()));
}

constexpr OpEntry kTable[] = {{"QuantizeLinear", 10, quantize},
                              {"DequantizeLinear", 10, dequantize},
                              {"DynamicQuantizeLinear", 11, dynamicQuantize},
                              {"MatMulInteger", 10, matmulInteger},
                              {"ConvInteger", 10, convInteger},
                              {"QLinearMatMul", 10, qLinear<false>},
                              {"QLinearConv", 10, qLinear<true>}};
} // namespace

std::span<const OpEntry> quantizeOps() { return kTable; }

} // namespace tressel::onnx
