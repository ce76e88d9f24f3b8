// Convolution and pooling: ops that slide a window over the dimensions behind batch and channels.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>

namespace tressel::onnx {

namespace {
using N = NodeImporter;
using Ints = std::vector<int64_t>;

struct Window {
  Ints kernel, strides, dilations, low, high;
  Ints extra; ///< of the high padding: added by ceil_mode, never counted as part of the image
};

/// The window's attributes with their defaults. `kernel` is what the weights say, or empty when the attribute must.
Window readWindow(N &n, const Value &image, Ints kernel) {
  const size_t dims = static_cast<size_t>(image.rank() - 2);
  constexpr int64_t limit = int64_t(1) << 31; // sizes beyond this are nonsense, and below it sums do not overflow
  auto list = [&](const char *name, int64_t fallback, int64_t least, size_t count) {
    Ints values = n.intsAttr(name).value_or(Ints(count, fallback));
    if (values.size() != count)
      n.fail("'" + std::string(name) + "' has " + std::to_string(values.size()) + " entries for " + image.type.str());
    for (int64_t v : values)
      if (v < least || v >= limit)
        n.fail("'" + std::string(name) + "' holds " + std::to_string(v));
    return values;
  };
  Window w;
  auto given = n.hasAttr("kernel_shape") ? list("kernel_shape", 1, 1, dims) : Ints();
  if (kernel.empty() && given.empty())
    n.fail("attribute 'kernel_shape' is missing");
  if (!kernel.empty() && !given.empty() && kernel != given)
    n.fail("'kernel_shape' differs from the weights' shape");
  w.kernel = kernel.empty() ? given : kernel;
  w.strides = list("strides", 1, 1, dims);
  w.dilations = list("dilations", 1, 1, dims);
  std::string mode = n.stringAttr("auto_pad", "NOTSET");
  bool ceil = n.intAttr("ceil_mode", 0) != 0;
  Ints pads = list("pads", 0, 0, 2 * dims);
  if (mode == "NOTSET" || mode.empty()) {
    w.low.assign(pads.begin(), pads.begin() + static_cast<long>(dims));
    w.high.assign(pads.begin() + static_cast<long>(dims), pads.end());
  } else if (mode == "VALID") {
    w.low = w.high = Ints(dims, 0);
  } else if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t i = 0; i < dims; ++i) {
      const Size size = image.dim(static_cast<int>(i) + 2);
      const int64_t stride = w.strides[i], extent = (w.kernel[i] - 1) * w.dilations[i] + 1;
      const Size all = dim::max(dim::alignUp(size, stride) + extent - stride - size, 0);
      if (all.isSymbolic())
        n.unsupported("'auto_pad' of " + mode + " for dimension " + std::to_string(i + 2) + " of " + image.type.str() +
                      ", whose size is only known when the program runs");
      const int64_t total = all.number(), half = total / 2;
      w.low.push_back(mode == "SAME_UPPER" ? half : total - half);
      w.high.push_back(total - w.low.back());
    }
  } else {
    n.fail("attribute 'auto_pad' is '" + mode + "'");
  }
  w.extra = Ints(dims, 0);
  for (size_t i = 0; i < dims; ++i) {
    const Size size = image.dim(static_cast<int>(i) + 2);
    const int64_t stride = w.strides[i], extent = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const Size room = size + w.low[i] + w.high[i] - extent, rest = dim::mod(room, stride);
    if (dim::bounds(room).hi < 0)
      n.fail("the window of " + std::to_string(extent) + " does not fit dimension " + std::to_string(i + 2) + " of " +
             image.type.str());
    // One more window at the end if it begins within the image or the low padding.
    if (ceil && rest.isSymbolic())
      n.unsupported("'ceil_mode' for dimension " + std::to_string(i + 2) + " of " + image.type.str() +
                    ", whose size is only known when the program runs");
    if (ceil && rest) {
      const auto begins = dim::less(room + stride - rest, size + w.low[i]);
      if (!begins)
        n.unsupported("'ceil_mode' where whether a last window begins within the image depends on its size");
      if (*begins)
        w.extra[i] = (stride - rest).number();
    }
  }
  return w;
}

Ints plus(Ints a, const Ints &b) {
  for (size_t i = 0; i < a.size(); ++i)
    a[i] += b[i];
  return a;
}

/// A bias per feature, dimension 1, at input number 2.
Value withBias(N &n, const Value &v) {
  if (!n.has(2))
    return v;
  const Value &bias = n.in(2);
  n.sameType(v, bias);
  if (bias.rank() != 1 || bias.dim(0) != v.dim(1))
    n.fail("bias of type " + bias.type.str() + " does not fit " + dim::str(v.dim(1)) + " features");
  Shape wide{1, bias.dim(0)};
  for (int i = 2; i < v.rank(); ++i)
    wide.push_back(1);
  return n.emit("add", {v, n.reshape(bias, wide)});
}

/// The image and weights of a convolution, transposed or not.
void checkImage(N &n, const Value &x, const Value &w) {
  n.sameType(x, w);
  n.requireFloat(x);
  if (x.rank() < 3 || x.rank() != w.rank())
    n.fail("needs an image and weights of equal rank, not " + x.type.str() + " and " + w.type.str());
  if (x.rank() > 5)
    n.unsupported(std::to_string(x.rank() - 2) + " spatial dimensions");
}

/// The sizes behind the first two, as numbers.
Ints spatialSizes(N &n, const Value &v) {
  Ints sizes;
  for (int i = 2; i < v.rank(); ++i)
    sizes.push_back(n.number(v, i));
  return sizes;
}

void conv(N &n) {
  const Value &x = n.in(0), &w = n.in(1);
  checkImage(n, x, w);
  Window window = readWindow(n, x, spatialSizes(n, w));
  int64_t groups = n.intAttr("group", 1);
  if (groups < 1 || !dim::divideExactly(w.dim(0), groups) || x.dim(1) != w.dim(1) * groups)
    n.fail("weights of type " + w.type.str() + " in " + std::to_string(groups) + " groups do not fit " + x.type.str());
  Value v = n.emit("conv", {x, w},
                   {{"strides", window.strides},
                    {"pad_low", window.low},
                    {"pad_high", window.high},
                    {"dilations", window.dilations},
                    {"groups", groups}});
  n.out(0, withBias(n, v));
}

/// The padding of a transposed convolution follows from the size that the result should have, where that is given.
void convTranspose(N &n) {
  const Value &x = n.in(0), &w = n.in(1);
  checkImage(n, x, w);
  const auto dims = static_cast<size_t>(x.rank() - 2);
  constexpr int64_t limit = int64_t(1) << 31;
  auto list = [&](const char *name, int64_t fallback, int64_t least, size_t count) {
    Ints values = n.intsAttr(name).value_or(Ints(count, fallback));
    if (values.size() != count || std::ranges::any_of(values, [&](int64_t v) { return v < least || v >= limit; }))
      n.fail("'" + std::string(name) + "' does not fit " + x.type.str());
    return values;
  };
  const Ints kernel = spatialSizes(n, w);
  if (n.hasAttr("kernel_shape") && list("kernel_shape", 1, 1, dims) != kernel)
    n.fail("'kernel_shape' differs from the weights' shape");
  const Ints strides = list("strides", 1, 1, dims), dilations = list("dilations", 1, 1, dims);
  const Ints extra = list("output_padding", 0, 0, dims), pads = list("pads", 0, 0, 2 * dims);
  const std::string mode = n.stringAttr("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  Ints low(pads.begin(), pads.begin() + static_cast<long>(dims)), high(pads.begin() + static_cast<long>(dims), pads.end());
  if (mode == "VALID")
    low = high = Ints(dims, 0);
  else if (!same && mode != "NOTSET" && !mode.empty())
    n.fail("attribute 'auto_pad' is '" + mode + "'");
  Ints shape;
  if (n.hasAttr("output_shape"))
    shape = list("output_shape", 1, 1, dims);
  else if (same)
    for (size_t i = 0; i < dims; ++i)
      shape.push_back(n.number(x, static_cast<int>(i) + 2) * strides[i]);
  Ints more = extra;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t total = (n.number(x, static_cast<int>(i) + 2) - 1) * strides[i] + extra[i] + (kernel[i] - 1) * dilations[i] + 1 - shape[i];
    const int64_t removed = std::max<int64_t>(total, 0), half = removed / 2;
    low[i] = mode == "SAME_UPPER" ? half : removed - half;
    high[i] = removed - low[i];
    more[i] += std::max<int64_t>(-total, 0);
  }
  n.out(0, withBias(n, n.emit("conv_transpose", {x, w},
                              {{"strides", strides},
                               {"pad_low", low},
                               {"pad_high", high},
                               {"output_padding", more},
                               {"dilations", dilations},
                               {"groups", n.intAttr("group", 1)}})));
}

NamedAttrs poolAttrs(const Window &w, const Ints &low, const Ints &high) {
  return {
      {"window", w.kernel}, {"strides", w.strides}, {"pad_low", low}, {"pad_high", high}, {"dilations", w.dilations}};
}

void checkImage(N &n, const Value &x) {
  if (x.rank() < 3)
    n.fail("needs an image, not " + x.type.str());
  if (x.rank() > 5)
    n.unsupported(std::to_string(x.rank() - 2) + " spatial dimensions");
}

void maxPool(N &n) {
  const Value &x = n.in(0);
  checkImage(n, x);
  n.ignoreAttr("storage_order"); // concerns the indices only
  if (n.wants(1))
    n.unsupported("the indices of the maxima");
  Window w = readWindow(n, x, {});
  n.out(0, n.emit("max_pool", {x}, poolAttrs(w, w.low, plus(w.high, w.extra))));
}

void averagePool(N &n) {
  Value x = n.in(0);
  checkImage(n, x);
  n.requireFloat(x);
  Window w = readWindow(n, x, {});
  bool countPadding = n.intAttr("count_include_pad", 0) != 0;
  if (countPadding && std::ranges::any_of(w.extra, [](int64_t p) { return p > 0; })) {
    // Padding counts in the average, what ceil_mode adds does not: so pad the image first.
    Ints low{0, 0}, high{0, 0};
    low.insert(low.end(), w.low.begin(), w.low.end());
    high.insert(high.end(), w.high.begin(), w.high.end());
    x = n.emit("pad", {x}, {{"low", low}, {"high", high}});
    w.low = w.high = Ints(w.low.size(), 0);
    countPadding = false;
  }
  NamedAttrs attrs = poolAttrs(w, w.low, plus(w.high, w.extra));
  attrs.push_back({"count_include_pad", countPadding});
  n.out(0, n.emit("avg_pool", {x}, attrs));
}

/// Adds blocks where they overlap: a transposed convolution whose windows hold a single 1.
void columnsToImage(N &n) {
  const Value &x = n.in(0);
  const Ints image = n.knownInts(1, "the image's shape"), block = n.knownInts(2, "the block's shape");
  const size_t dims = block.size();
  auto list = [&](const char *name, int64_t fallback, size_t count) {
    Ints values = n.intsAttr(name).value_or(Ints(count, fallback));
    if (values.size() != count)
      n.fail("'" + std::string(name) + "' has " + std::to_string(values.size()) + " entries");
    return values;
  };
  const Ints strides = list("strides", 1, dims), dilations = list("dilations", 1, dims), pads = list("pads", 0, 2 * dims);
  if (dims < 1 || dims > 3 || image.size() != dims)
    n.unsupported(std::to_string(dims) + " spatial dimensions");
  n.requireFloat(x);
  int64_t size = 1, blocks = 1;
  Ints count, extra, low(pads.begin(), pads.begin() + static_cast<long>(dims)), high(pads.begin() + static_cast<long>(dims), pads.end());
  for (size_t i = 0; i < dims; ++i) {
    const int64_t extent = (block[i] - 1) * dilations[i] + 1, room = image[i] + low[i] + high[i] - extent;
    if (block[i] < 1 || strides[i] < 1 || dilations[i] < 1 || low[i] < 0 || high[i] < 0 || room < 0 || image[i] > 1 << 24)
      n.fail("blocks do not fit the image");
    count.push_back(room / strides[i] + 1);
    extra.push_back(room % strides[i]);
    size *= block[i];
    blocks *= count.back();
  }
  if (x.rank() != 3 || n.number(x, 1) % size || x.dim(2) != blocks)
    n.fail(x.type.str() + " does not hold " + std::to_string(blocks) + " blocks of " + std::to_string(size));
  Shape split{x.dim(0), x.dim(1)};
  for (int64_t c : count)
    split.push_back(c);
  // Weights [channels * size, 1, block...]: the k-th of a channel's rows has its 1 at place k.
  const int64_t channels = n.number(x, 1) / size;
  std::vector<double> ones(static_cast<size_t>(channels * size * size), 0);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t k = 0; k < size; ++k)
      ones[static_cast<size_t>((c * size + k) * size + k)] = 1;
  Shape weights{channels * size, 1};
  for (int64_t b : block)
    weights.push_back(b);
  n.out(0, n.emit("conv_transpose", {n.reshape(x, split), n.table(ones, weights, x.dtype())},
                  {{"strides", strides}, {"pad_low", low}, {"pad_high", high}, {"output_padding", extra},
                   {"dilations", dilations}, {"groups", channels}}));
}

/// The p-norm of each window.
void lpPool(N &n) {
  const Value &x = n.in(0);
  checkImage(n, x);
  n.requireFloat(x);
  const double p = static_cast<double>(n.intAttr("p", 2));
  if (p < 1)
    n.fail("'p' is " + std::to_string(p));
  Window w = readWindow(n, x, {});
  Value powers = n.emit("pow", {n.emit("abs", {x}), n.scalar(x.dtype(), p)});
  powers = n.emit("sum_pool", {powers}, poolAttrs(w, w.low, plus(w.high, w.extra)));
  n.out(0, n.emit("pow", {powers, n.scalar(x.dtype(), 1 / p)}));
}
void globalLpPool(N &n) {
  const Value &x = n.in(0);
  checkImage(n, x);
  n.requireFloat(x);
  const double p = static_cast<double>(n.intAttr("p", 2));
  if (p < 1)
    n.fail("'p' is " + std::to_string(p));
  Ints axes;
  for (int i = 2; i < x.rank(); ++i)
    axes.push_back(i);
  Value powers = n.emit("pow", {n.emit("abs", {x}), n.scalar(x.dtype(), p)});
  n.out(0, n.emit("pow", {n.emit("sum", {powers}, {{"axis", axes}, {"keepdims", true}}), n.scalar(x.dtype(), 1 / p)}));
}

constexpr OpEntry kTable[] = {{"Conv", 1, conv}, {"MaxPool", 1, maxPool}, {"AveragePool", 1, averagePool},
                              {"ConvTranspose", 1, convTranspose}, {"Col2Im", 18, columnsToImage}, {"LpPool", 2, lpPool}, {"GlobalLpPool", 2, globalLpPool}};
} // namespace

std::span<const OpEntry> windowOps() { return kTable; }

} // namespace tressel::onnx
