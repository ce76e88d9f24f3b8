// Helpers of the inference functions (TableSupport.h lists those).
#pragma once

#include "ir/op/OpInfo.h"
#include "tressel/runtime/Dim.h"

namespace tressel::op {

/// The error "matmul: (C2) inner dimensions differ: f32[2, 3] x f32[4, 5]". Rule 0: none, a matter of form.
Inferred inferError(const OpInfo &op, int rule, std::string_view message, std::span<const TensorType> operands);
/// `op.infer`, with what it throws (sizes beyond 64 bits, an expression where a number must stand) as its error: what
/// callers use that cannot vouch for the operands and attributes.
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

/// How a scatter's mode ("set", "add", "mul", "min", "max") is numbered for its kernel; nothing for other words.
std::optional<int64_t> scatterMode(std::string_view name);
/// The same for a running total.
int64_t scanMode(Combine combine);

/// Per spatial dimension: what convolutions and pooling say by lists that may be empty.
struct WindowSpec {
  int spatial = 0;
  int64_t size[3], stride[3], low[3], high[3], dilation[3];
  /// A last window may reach beyond the padding, if it begins in x or in the padding before it.
  bool ceil = false;
  /// Elements between the first and the last one under the window, both included.
  int64_t extent(int i) const { return (size[i] - 1) * dilation[i] + 1; }
  /// Output size; kDynamic stays. 0 when the window does not fit.
  Size output(int i, Size input) const;
  /// Whether windows may read what is not in x.
  bool leaves(int i, Size input) const;
};
/// Lists of wrong length or with wrong entries: nothing. Empty strides become the sizes if `stridesFollowSizes`,
/// else 1.
std::optional<WindowSpec> windowSpec(int spatial, std::span<const int64_t> sizes, const Ints &strides, const Ints &low,
                                     const Ints &high, const Ints &dilations, bool stridesFollowSizes);

/// Where an image has its channels, and the first of its spatial dimensions: [batch, channels, spatial...], or, by the
/// attribute `channels_last`, [batch, spatial..., channels].
struct ImageDims {
  int channels, space;
  /// The whole shape.
  Shape shape(Size batch, Size channelsSize, std::span<const Size> spatial) const;
};
ImageDims imageDims(const OpInfo &op, const Attrs &attrs, int rank);

inline Ints numbersOf(std::span<const Size> sizes) {
  Ints numbers;
  for (Size size : sizes)
    numbers.push_back(size.number());
  return numbers;
}
/// product *= size; false if it leaves 64 bits.
bool multiply(Size &product, Size size);

/// The size that an attribute gives: not below 0 for sure, or nothing.
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
