// Normalizations, written in primitives: clustering finds the row kernels among them.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <numeric>

namespace tressel::onnx {

namespace {
using N = NodeImporter;
using Ints = std::vector<int64_t>;

Ints axesFrom(int first, int rank) {
  Ints axes(static_cast<size_t>(rank - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}
Value mean(N &n, const Value &v, const Ints &axes) {
  return axes.empty() ? v : n.emit("mean", {v}, {{"axis", axes}, {"keepdims", true}});
}
struct Normalized {
  Value value, mean, inverse;
};
/// (x - mean) / sqrt(variance + epsilon) over the axes.
Normalized normalize(N &n, const Value &x, const Ints &axes, double epsilon) {
  Value m = mean(n, x, axes), centered = n.emit("sub", {x, m});
  Value variance = mean(n, n.emit("mul", {centered, centered}), axes);
  Value inverse = n.emit("rsqrt", {n.emit("add", {variance, n.scalar(x.dtype(), epsilon)})});
  return {n.emit("mul", {centered, inverse}), m, inverse};
}
/// [C] as [C, 1, 1, ...]: along dimension 1 of a tensor of `rank` dimensions.
Value perChannel(N &n, const Value &v, Size channels, int rank) {
  if (v.rank() != 1 || v.dim(0) != channels)
    n.fail("a parameter of type " + v.type.str() + " does not fit " + dim::str(channels) + " channels");
  Shape shape{channels};
  for (int i = 2; i < rank; ++i)
    shape.push_back(1);
  return n.reshape(v, shape);
}
Value scaled(N &n, const Value &v, const Value &scale, const Value &bias) {
  return n.emit("add", {n.emit("mul", {v, scale}), bias});
}

void batchNorm(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  double epsilon = n.floatAttr("epsilon", 1e-5);
  const double momentum = n.floatAttr("momentum", 0.9);
  n.ignoreAttr("is_test");
  const bool training = n.intAttr("training_mode", 0) != 0;
  if (n.wants(1) && n.opset() < 14)
    n.unsupported("the outputs of training before operator set 14");
  if (n.opset() < 9 && n.intAttr("spatial", 1) == 0)
    n.unsupported("spatial = 0");
  if (x.rank() < 2)
    n.fail("needs channels, not " + x.type.str());
  auto param = [&](int i) { return n.cast(n.in(i), x.dtype()); };
  if (training) { // with the batch's own statistics; those of inference move towards them
    Ints axes = axesFrom(1, x.rank());
    axes[0] = 0;
    auto moved = [&](int i, const Value &now) {
      const Value &old = n.in(i);
      return n.emit("add", {n.emit("mul", {old, n.scalar(old.dtype(), momentum)}),
                            n.emit("mul", {n.cast(now, old.dtype()), n.scalar(old.dtype(), 1 - momentum)})});
    };
    Value m = n.emit("mean", {x}, {{"axis", axes}});
    Value centered = n.emit("sub", {x, perChannel(n, m, x.dim(1), x.rank())});
    Value variance = n.emit("mean", {n.emit("mul", {centered, centered})}, {{"axis", axes}});
    n.out(1, moved(3, m));
    n.out(2, moved(4, variance));
    return n.out(0, n.emit("batch_norm", {x, param(1), param(2), m, variance}, {{"epsilon", epsilon}}));
  }
  n.out(0, n.emit("batch_norm", {x, param(1), param(2), param(3), param(4)}, {{"epsilon", epsilon}}));
}

/// Computes in f32 when the operand is narrower, as `stash_type` 1 asks.
Value widened(N &n, const Value &x) {
  int64_t stash = n.intAttr("stash_type", 1);
  if (stash != 1)
    n.unsupported("stash_type = " + std::to_string(stash));
  return sizeOf(x.dtype()) < 4 ? n.cast(x, f32) : x;
}

void layerNorm(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  int axis = n.axis(n.intAttr("axis", -1), x.rank());
  double epsilon = n.floatAttr("epsilon", 1e-5);
  const Shape inner(std::span<const Size>(x.type.shape).subspan(static_cast<size_t>(axis)));
  if (n.has(2) && !n.wants(1) && !n.wants(2) && n.in(1).type == TensorType{x.dtype(), inner} &&
      n.in(2).type == n.in(1).type) {
    n.ignoreAttr("stash_type");
    return n.out(0, n.emit("layer_norm", {x, n.in(1), n.in(2)}, {{"epsilon", epsilon}}));
  }
  Normalized r = normalize(n, widened(n, x), axesFrom(axis, x.rank()), epsilon);
  Value v = n.emit("mul", {n.cast(r.value, x.dtype()), n.in(1)});
  if (n.has(2))
    v = n.emit("add", {v, n.in(2)});
  n.out(0, v);
  n.out(1, r.mean);
  n.out(2, r.inverse);
}

void rmsNorm(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  int axis = n.axis(n.intAttr("axis", -1), x.rank());
  double epsilon = n.floatAttr("epsilon", 1e-5);
  Value wide = widened(n, x);
  Value square = mean(n, n.emit("mul", {wide, wide}), axesFrom(axis, x.rank()));
  Value inverse = n.emit("rsqrt", {n.emit("add", {square, n.scalar(wide.dtype(), epsilon)})});
  // The result has the scale's type.
  n.out(0, n.emit("mul", {n.cast(n.cast(n.emit("mul", {wide, inverse}), x.dtype()), n.in(1).dtype()), n.in(1)}));
}

void instanceNorm(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  if (x.rank() < 3)
    n.fail("needs an image, not " + x.type.str());
  Value v = normalize(n, x, axesFrom(2, x.rank()), n.floatAttr("epsilon", 1e-5)).value;
  n.out(0, scaled(n, v, perChannel(n, n.in(1), x.dim(1), x.rank()), perChannel(n, n.in(2), x.dim(1), x.rank())));
}

void groupNorm(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  int64_t groups = n.intAttr("num_groups");
  double epsilon = n.floatAttr("epsilon", 1e-5);
  if (x.rank() < 3 || groups < 1 || n.number(x, 1) % groups)
    n.fail(std::to_string(groups) + " groups do not divide the channels of " + x.type.str());
  Size rest = x.dim(1) / groups; // elements of a group
  for (int i = 2; i < x.rank(); ++i)
    rest *= x.dim(i);
  Value rows = n.reshape(widened(n, x), {x.dim(0), groups, rest});
  Value v = n.cast(n.reshape(normalize(n, rows, {2}, epsilon).value, x.type.shape), x.dtype());
  n.out(0, scaled(n, v, perChannel(n, n.in(1), x.dim(1), x.rank()), perChannel(n, n.in(2), x.dim(1), x.rank())));
}

void meanVariance(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  Ints axes = n.axes(n.intsAttr("axes").value_or(Ints{0, 2, 3}), x.rank());
  Value m = mean(n, x, axes), centered = n.emit("sub", {x, m});
  Value variance = mean(n, n.emit("mul", {centered, centered}), axes);
  n.out(0, n.emit("div", {centered, n.emit("add", {n.emit("sqrt", {variance}), n.scalar(x.dtype(), 1e-9)})}));
}

void lpNorm(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  int axis = n.axis(n.intAttr("axis", -1), x.rank());
  int64_t p = n.intAttr("p", 2);
  if (p != 1 && p != 2)
    n.fail("'p' is " + std::to_string(p) + ", which is neither 1 nor 2");
  NamedAttrs attrs{{"axis", Ints{axis}}, {"keepdims", true}};
  Value size = p == 1 ? n.emit("sum", {n.emit("abs", {x})}, attrs)
                      : n.emit("sqrt", {n.emit("sum", {n.emit("mul", {x, x})}, attrs)});
  Value zero = n.scalar(x.dtype(), 0), empty = n.emit("equal", {size, zero});
  n.out(0, n.emit("where", {empty, zero, n.emit("div", {x, size})}));
}

/// Divided by a power of the mean square of the neighbouring channels.
void localResponse(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  const int64_t size = n.intAttr("size");
  const double alpha = n.floatAttr("alpha", 1e-4), beta = n.floatAttr("beta", 0.75), bias = n.floatAttr("bias", 1);
  if (x.rank() < 3 || size < 1 || size > 1 << 20)
    n.fail("size " + std::to_string(size) + " for " + x.type.str());
  const int64_t low = (size - 1) / 2;
  Size places = 1;
  for (int i = 2; i < x.rank(); ++i)
    places *= x.dim(i);
  Value squares = n.reshape(n.emit("mul", {x, x}), {x.dim(0), 1, x.dim(1), places});
  Value sums = n.emit("sum_pool", {squares}, {{"window", Ints{size, 1}},
                                              {"strides", Ints{1, 1}},
                                              {"pad_low", Ints{low, 0}},
                                              {"pad_high", Ints{size - 1 - low, 0}}});
  sums = n.reshape(n.emit("mul", {sums, n.scalar(x.dtype(), alpha / static_cast<double>(size))}), x.type.shape);
  Value divisor = n.emit("pow", {n.emit("add", {sums, n.scalar(x.dtype(), bias)}), n.scalar(x.dtype(), beta)});
  n.out(0, n.emit("div", {x, divisor}));
}

constexpr OpEntry kTable[] = {
    {"BatchNormalization", 7, batchNorm},  {"LayerNormalization", 17, layerNorm},
    {"RMSNormalization", 23, rmsNorm},     {"InstanceNormalization", 6, instanceNorm},
    {"GroupNormalization", 21, groupNorm}, {"MeanVarianceNormalization", 9, meanVariance},
    {"LpNormalization", 1, lpNorm},        {"LRN", 1, localResponse},
};
} // namespace

std::span<const OpEntry> normOps() { return kTable; }

} // namespace tressel::onnx
