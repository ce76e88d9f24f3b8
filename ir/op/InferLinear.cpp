// Type inference of contractions, convolutions, pooling and composites.
#include "ir/op/Infer.h"
#include "ir/op/TableSupport.h"

#include <algorithm>

namespace tressel::op {

Inferred inferMatmul(const OpInfo &op, std::span<const TensorType> operands, const Attrs &) {
  if (auto error = checkArity(op, operands))
    return *error;
  const Shape &a = operands[0].shape, &b = operands[1].shape;
  DType type = promote(operands[0].dtype, operands[1].dtype);
  if (a.rank() == 0 || b.rank() == 0)
    return inferError(op, 1, "operands need at least one dimension", operands);
  if (type == DType::boolean)
    return inferError(op, 1, "wants numbers, not bools (cast them)", operands);
  Size innerA = a.back(), innerB = b[b.rank() == 1 ? 0 : b.rank() - 2];
  if (innerA != innerB && innerA != kDynamic && innerB != kDynamic)
    return inferError(op, 2, "inner dimensions differ", operands);
  auto leading = [](const Shape &s) {
    return Shape(std::span(s.begin(), static_cast<size_t>(std::max(0, s.rank() - 2))));
  };
  std::optional<Shape> shape = broadcastShapes(leading(a), leading(b));
  if (!shape)
    return inferError(op, 3, "leading dimensions do not broadcast", operands);
  if (a.rank() > 1)
    shape->push_back(a[a.rank() - 2]);
  if (b.rank() > 1)
    shape->push_back(b.back());
  return inferred({type, *shape});
}

/// (C1) of convolutions, transposed or not.
static std::optional<Inferred> checkConvOperands(const OpInfo &op, std::span<const TensorType> operands) {
  if (auto error = checkArity(op, operands))
    return error;
  const TensorType &x = operands[0], &w = operands[1];
  if (x.rank() != w.rank() || x.rank() < 3 || x.rank() > 5)
    return inferError(op, 1, "x and w must have the same rank, 3 to 5", operands);
  if (!isFloat(x.dtype) || x.dtype != w.dtype)
    return inferError(op, 1, "x and w must have one float type", operands);
  if (!w.shape.isStatic())
    return inferError(op, 1, "the window's sizes must be static", operands);
  return std::nullopt;
}

Shape ImageDims::shape(Size batch, Size channelsSize, std::span<const Size> spatial) const {
  Shape shape{batch};
  if (channels == 1)
    shape.push_back(channelsSize);
  for (Size size : spatial)
    shape.push_back(size);
  if (channels != 1)
    shape.push_back(channelsSize);
  return shape;
}

ImageDims imageDims(const OpInfo &op, const Attrs &attrs, int rank) {
  const int last = op.attrIndex("channels_last");
  return last >= 0 && std::get<bool>(attrs[static_cast<size_t>(last)]) ? ImageDims{rank - 1, 1} : ImageDims{1, 2};
}

Inferred inferConv(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkConvOperands(op, operands))
    return *error;
  const TensorType &x = operands[0], &w = operands[1];
  int spatial = x.rank() - 2;
  const Ints sizes = numbersOf({w.shape.begin() + 2, w.shape.end()});
  std::optional<WindowSpec> window =
      windowSpec(spatial, sizes, ints(attrs[0]), ints(attrs[1]), ints(attrs[2]), ints(attrs[3]), false);
  if (!window)
    return inferError(op, 2, "strides, pads and dilations need one valid entry per spatial dimension, or none",
                      operands);
  const ImageDims dims = imageDims(op, attrs, x.rank());
  const int64_t groups = integer(attrs[4]);
  const Size features = w.shape[0], channels = x.shape[dims.channels];
  if (groups < 1 || !dim::divideExactly(features, groups) || (channels != kDynamic && channels != w.shape[1] * groups))
    return inferError(op, 3, "channels and features do not divide into " + std::to_string(groups) + " groups",
                      operands);
  Sizes space;
  for (int i = 0; i < spatial; ++i) {
    Size size = window->size[i] < 1 ? 0 : window->output(i, x.shape[i + dims.space]);
    if (size == 0)
      return inferError(op, 4, "the window does not fit into the padded input", operands);
    space.push_back(size);
  }
  return inferred({x.dtype, dims.shape(x.shape[0], features, space)});
}

Inferred inferConvByWeights(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands[0], &dy = operands[1];
  if (x.rank() != dy.rank() || x.rank() < 3 || x.rank() > 5)
    return inferError(op, 1, "x and given must have the same rank, 3 to 5", operands);
  if (!isFloat(x.dtype) || x.dtype != dy.dtype)
    return inferError(op, 1, "x and given must have one float type", operands);
  if (x.shape[0] != dy.shape[0])
    return inferError(op, 1, "x and given must have the same batch", operands);
  const int spatial = x.rank() - 2;
  const Ints &sizes = ints(attrs[0]);
  std::optional<WindowSpec> window;
  if (sizes.size() == static_cast<size_t>(spatial))
    window = windowSpec(spatial, sizes, ints(attrs[1]), ints(attrs[2]), ints(attrs[3]), ints(attrs[4]), false);
  if (!window || std::ranges::any_of(sizes, [](int64_t size) { return size < 1; }))
    return inferError(op, 2, "window, strides, pads and dilations need one valid entry per spatial dimension, or none",
                      operands);
  const int64_t groups = integer(attrs[5]);
  if (groups < 1 || !x.shape[1].isNumber() || !dy.shape[1].isNumber() || x.shape[1].number() % groups != 0 ||
      dy.shape[1].number() % groups != 0)
    return inferError(op, 3, "channels and features do not divide into " + std::to_string(groups) + " groups",
                      operands);
  Shape shape{dy.shape[1], x.shape[1].number() / groups};
  for (int i = 0; i < spatial; ++i) {
    if (window->output(i, x.shape[i + 2]) != dy.shape[i + 2] || dy.shape[i + 2] == 0)
      return inferError(op, 4, "the window does not have as many places in the padded x as given", operands);
    shape.push_back(sizes[static_cast<size_t>(i)]);
  }
  return inferred({x.dtype, shape});
}

Inferred inferConvTranspose(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkConvOperands(op, operands))
    return *error;
  const TensorType &x = operands[0], &w = operands[1];
  const int spatial = x.rank() - 2;
  const Ints sizes = numbersOf({w.shape.begin() + 2, w.shape.end()});
  const Ints &extra = ints(attrs[3]);
  std::optional<WindowSpec> window =
      windowSpec(spatial, sizes, ints(attrs[0]), ints(attrs[1]), ints(attrs[2]), ints(attrs[4]), false);
  const bool extraFits = extra.empty() || extra.size() == static_cast<size_t>(spatial);
  if (!window || !extraFits || std::ranges::any_of(extra, [](int64_t e) { return e < 0 || e >= int64_t(1) << 31; }))
    return inferError(op, 2,
                      "strides, pads, output_padding and dilations need one valid entry per spatial dimension, or none",
                      operands);
  const int64_t groups = integer(attrs[5]);
  const ImageDims dims = imageDims(op, attrs, x.rank());
  if (groups < 1 || !dim::divideExactly(w.shape[0], groups) || x.shape[dims.channels] != w.shape[0])
    return inferError(op, 3, "channels do not divide into " + std::to_string(groups) + " groups", operands);
  Sizes space;
  for (int i = 0; i < spatial; ++i) {
    const int64_t fixed =
        window->extent(i) - window->low[i] - window->high[i] + (extra.empty() ? 0 : extra[static_cast<size_t>(i)]);
    const Size size = (x.shape[dims.space + i] - 1) * window->stride[i] + fixed;
    if (dim::bounds(size).lo < 1 || window->size[i] < 1 || dim::bounds(x.shape[dims.space + i]).lo < 1)
      return inferError(op, 4, "the result would be empty", operands);
    space.push_back(size);
  }
  const TensorType result{x.dtype, dims.shape(x.shape[0], w.shape[1] * groups, space)};
  if (!fitsMemory(result.shape))
    return inferError(op, 4, "the result does not fit into memory", operands);
  return inferred(result);
}

std::optional<Shape> adaptiveShape(const Shape &x, const Sizes &sizes, bool channelsLast) {
  if (x.rank() < 3 || x.rank() > 5 || sizes.size() != static_cast<size_t>(x.rank() - 2))
    return {};
  const ImageDims dims = channelsLast ? ImageDims{x.rank() - 1, 1} : ImageDims{1, 2};
  const Shape result = dims.shape(x[0], x[dims.channels], sizes);
  auto mayBeEmpty = [](Size size) { return dim::bounds(size).lo < 1; };
  if (std::ranges::any_of(x, mayBeEmpty) || std::ranges::any_of(result, mayBeEmpty) || !fitsMemory(result))
    return {};
  return result;
}

Inferred inferPool(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  const Ints &sizes = ints(attrs[0]);
  int spatial = x.rank() - 2;
  if (spatial < 1 || spatial > 3)
    return inferError(op, 1, "x must have rank 3 to 5", operands);
  if (sizes.size() != static_cast<size_t>(spatial))
    return inferError(op, 1, "the window needs one entry per spatial dimension", operands);
  for (int64_t s : sizes)
    if (s < 1 || s >= int64_t(1) << 31)
      return inferError(op, 1, "the window's sizes must be at least 1", operands);
  std::optional<WindowSpec> window =
      windowSpec(spatial, sizes, ints(attrs[1]), ints(attrs[2]), ints(attrs[3]), ints(attrs[4]), true);
  for (int i = 0; window && i < spatial; ++i)
    if (window->low[i] >= window->extent(i) || window->high[i] >= window->extent(i))
      window.reset();
  if (!window)
    return inferError(op, 2, "strides, pads and dilations need one valid entry per spatial dimension, or none",
                      operands);
  window->ceil = std::get<bool>(attrs[static_cast<size_t>(op.attrIndex("ceil_mode"))]);
  const ImageDims dims = imageDims(op, attrs, x.rank());
  Sizes space;
  for (int i = 0; i < spatial; ++i) {
    Size size = window->output(i, x.shape[i + dims.space]);
    if (size == 0)
      return inferError(op, 3, "the window does not fit into the padded input", operands);
    space.push_back(size);
  }
  if (op.compute == ComputeClass::Float && !isFloat(x.dtype))
    return inferError(op, 4, "wants floats (cast them)", operands);
  return inferred({x.dtype, dims.shape(x.shape[0], x.shape[dims.channels], space)});
}

Inferred inferAlongAxis(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  const auto axis = normalizeAxis(integer(attrs[0]), x.rank());
  if (!axis)
    return inferError(op, 1, "axis is not a dimension", operands);
  if (x.shape[*axis] == 0)
    return inferError(op, 2, "the dimension is empty", operands);
  return inferred({isFloat(x.dtype) ? x.dtype : DType::f32, x.shape});
}

/// C1 of the norms: all operands have x's float type.
static bool oneFloatType(std::span<const TensorType> operands) {
  for (const TensorType &t : operands)
    if (!isFloat(t.dtype) || t.dtype != operands.front().dtype)
      return false;
  return true;
}

Inferred inferLayerNorm(const OpInfo &op, std::span<const TensorType> operands, const Attrs &) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands[0], &scale = operands[1], &bias = operands[2];
  if (!oneFloatType(operands))
    return inferError(op, 1, "operands must have one float type", operands);
  int offset = x.rank() - scale.rank();
  bool fits = scale.rank() >= 1 && offset >= 0 && scale.shape == bias.shape;
  for (int i = 0; fits && i < scale.rank(); ++i)
    fits = scale.shape[i] == x.shape[i + offset];
  if (!fits)
    return inferError(op, 2, "scale and bias must have the shape of x's last dimensions", operands);
  return inferred(x);
}

Inferred inferBatchNorm(const OpInfo &op, std::span<const TensorType> operands, const Attrs &) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  if (!oneFloatType(operands) || x.rank() < 2)
    return inferError(op, 1, "operands must have one float type, and x rank at least 2", operands);
  for (const TensorType &t : operands.subspan(1))
    if (t.shape != Shape{x.shape[1]})
      return inferError(op, 2, "scale, bias, mean and variance must have shape [channels]", operands);
  return inferred(x);
}

Inferred inferOneHot(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  if (!isInteger(x.dtype) || x.rank() == kMaxRank)
    return inferError(op, 1, "wants integers of at most 7 dimensions", operands);
  if (!isSizeAttr(size(attrs[0])))
    return inferError(op, 2, "depth is negative", operands);
  TensorType result{std::get<DType>(attrs[1]), x.shape};
  result.shape.push_back(size(attrs[0]));
  if (!fitsMemory(result.shape))
    return inferError(op, 2, "the result does not fit into memory", operands);
  return inferred(result);
}

} // namespace tressel::op
