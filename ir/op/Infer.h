// Helpers of the inference functions (TableSupport.h lists those).
#pragma once

#include "ir/op/OpInfo.h"
#include "tressel/runtime/Dim.h"

namespace tressel::op {

/// The error "matmul: (C2) inner dimensions differ: f32[2, 3] x f32[4, 5]". Rule 0 omits the number, for errors of
/// form.
Inferred inferError(const OpInfo &op, int rule, std::string_view message, std::span<const TensorType> operands);
/// `op.infer`, with exceptions (sizes beyond 64 bits, an expression where a number is required) turned into errors. For
/// operands and attributes that are not validated.
Inferred inferTypes(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs);
/// An error for a wrong number of operands, or nothing.
std::optional<Inferred> checkArity(const OpInfo &op, std::span<const TensorType> operands);
inline Inferred inferred(const TensorType &type) { return {{type}, {}}; }

/// The shape without dimension `dim`.
Shape withoutDim(const Shape &shape, int dim);

/// Whether a tensor of this shape could exist: the product of the sizes that are numbers stays below 2^48.
bool fitsMemory(const Shape &shape);

/// Axis counted from the front; nothing when outside [-rank, rank).
std::optional<int> normalizeAxis(int64_t axis, int rank);
/// As a bit mask, of all dimensions when `axes` is null; nothing when an axis is outside or stands twice.
std::optional<uint32_t> normalizeAxes(const Ints *axes, int rank);

inline const Ints *maybeInts(const Attr &attr) { return std::get_if<Ints>(&attr); }
inline const Ints &ints(const Attr &attr) { return std::get<Ints>(attr); }
inline const Sizes &sizes(const Attr &attr) { return std::get<Sizes>(attr); }
inline Size size(const Attr &attr) { return std::get<Size>(attr); }
inline Sizes sizesOf(const Shape &shape) { return {shape.begin(), shape.end()}; }
inline int64_t integer(const Attr &attr) { return std::get<int64_t>(attr); }

/// The number that a scatter's kernel has for a mode ("set", "add", "mul", "min", "max"); nothing for other words.
std::optional<int64_t> scatterMode(std::string_view name);
/// The same for the kernel of a scan.
int64_t scanMode(Combine combine);

/// Window of a convolution or pooling, per spatial dimension, from attributes whose lists may be empty.
struct WindowSpec {
  int spatial = 0;
  int64_t size[3], stride[3], low[3], high[3], dilation[3];
  /// Adds a last window that reaches beyond the padding, if it begins within x or the padding before it.
  bool ceil = false;
  /// Elements from the first to the last one under the window, both included.
  int64_t extent(int i) const { return (size[i] - 1) * dilation[i] + 1; }
  /// Output size; kDynamic stays. 0 when the window does not fit.
  Size output(int i, Size input) const;
  /// Whether windows may reach outside of x.
  bool leaves(int i, Size input) const;
};
/// Nothing for lists of wrong length or with invalid entries. Empty strides become the sizes if `stridesFollowSizes`,
/// else 1.
std::optional<WindowSpec> windowSpec(int spatial, std::span<const int64_t> sizes, const Ints &strides, const Ints &low,
                                     const Ints &high, const Ints &dilations, bool stridesFollowSizes);

/// The dimension of an image's channels, and its first spatial one: [batch, channels, spatial...], or with the
/// attribute `channels_last` [batch, spatial..., channels].
struct ImageDims {
  int channels, space;
  /// The image's shape from its parts.
  Shape shape(Size batch, Size channelsSize, std::span<const Size> spatial) const;
};
ImageDims imageDims(const OpInfo &op, const Attrs &attrs, int rank);

inline Ints numbersOf(std::span<const Size> sizes) {
  Ints numbers;
  for (Size size : sizes)
    numbers.push_back(size.number());
  return numbers;
}
/// product *= size; false on overflow of 64 bits.
bool multiply(Size &product, Size size);

/// Whether an attribute is valid as a size: certainly not negative.
inline bool isSizeAttr(Size size) { return dim::bounds(size).lo >= 0; }

/// The result of adaptive pooling; nothing if the sizes do not fit.
std::optional<Shape> adaptiveShape(const Shape &x, const Sizes &sizes, bool channelsLast);

/// One dimension of a slice as first index, number of elements and stride; all but the stride may be symbolic.
struct SliceRange {
  Size start, count;
  int64_t stride;
};
SliceRange sliceRange(Size size, Size start, Size limit, int64_t stride);

} // namespace tressel::op
