// Type inference of ops that sort, run along a dimension, or read and write at computed places.
#include "ir/op/Infer.h"
#include "ir/op/TableSupport.h"
#include "tressel/runtime/Dim.h"

namespace tressel::op {

std::optional<int64_t> scatterMode(std::string_view name) {
  static constexpr std::string_view names[] = {"set", "add", "mul", "min", "max"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name)
      return static_cast<int64_t>(i);
  return std::nullopt;
}

int64_t scanMode(Combine combine) {
  switch (combine) {
  case Combine::Prod: return *scatterMode("mul");
  case Combine::Min: return *scatterMode("min");
  case Combine::Max: return *scatterMode("max");
  default: return *scatterMode("add");
  }
}

// --- Order -------------------------------------------------------------------------------------------------------------
static std::optional<Inferred> checkAxis(const OpInfo &op, std::span<const TensorType> operands, int64_t axis) {
  if (auto error = checkArity(op, operands))
    return error;
  if (!normalizeAxis(axis, operands.front().rank()))
    return inferError(op, 1, "axis is not a dimension", operands);
  return std::nullopt;
}

Inferred inferSort(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkAxis(op, operands, integer(attrs[0])))
    return *error;
  return inferred(operands.front());
}

Inferred inferArgsort(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  Inferred result = inferSort(op, operands, attrs);
  if (result)
    result.types.front().dtype = DType::i64;
  return result;
}

Inferred inferTopK(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkAxis(op, operands, integer(attrs[1])))
    return *error;
  TensorType values = operands.front();
  const Size k = op::size(attrs[0]);
  Size &size = values.shape[*normalizeAxis(integer(attrs[1]), values.rank())];
  if (dim::bounds(k).lo < 0 || dim::less(size, k).value_or(false))
    return inferError(op, 2, "k is not in [0, size of the dimension]", operands);
  size = k;
  return {{values, {DType::i64, values.shape}}, {}};
}

Inferred inferScan(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkAxis(op, operands, integer(attrs[0])))
    return *error;
  TensorType result = operands.front();
  const bool widens = op.combine == Combine::Sum || op.combine == Combine::Prod;
  if (widens && !isFloat(result.dtype))
    result.dtype = DType::i64;
  return inferred(result);
}

// --- Along an axis
// -----------------------------------------------------------------------------------------------------
/// Broadcasts two shapes in all dimensions but `axis`.
static std::optional<Shape> broadcastBesides(const Shape &a, const Shape &b, int axis) {
  Shape left = a, right = b;
  left[axis] = right[axis] = 1;
  return broadcastShapes(left, right);
}

Inferred inferTakeAlongAxis(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkAxis(op, operands, integer(attrs[0])))
    return *error;
  const TensorType &x = operands[0], &indices = operands[1];
  const int axis = *normalizeAxis(integer(attrs[0]), x.rank());
  if (!isInteger(indices.dtype))
    return inferError(op, 2, "indices must be integers", operands);
  if (indices.rank() != x.rank())
    return inferError(op, 3, "indices must have x's rank", operands);
  std::optional<Shape> shape = broadcastBesides(x.shape, indices.shape, axis);
  if (!shape)
    return inferError(op, 3, "sizes besides the axis do not broadcast", operands);
  (*shape)[axis] = indices.shape[axis];
  return inferred({x.dtype, *shape});
}

Inferred inferPutAlongAxis(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkAxis(op, operands, integer(attrs[0])))
    return *error;
  const TensorType &x = operands[0], &indices = operands[1], &values = operands[2];
  const int axis = *normalizeAxis(integer(attrs[0]), x.rank());
  if (!isInteger(indices.dtype))
    return inferError(op, 2, "indices must be integers", operands);
  if (indices.rank() != x.rank() || broadcastBesides(x.shape, indices.shape, axis) !=
                                        broadcastBesides(x.shape, x.shape, axis))
    return inferError(op, 3, "indices do not broadcast to x besides the axis", operands);
  Shape target = x.shape;
  target[axis] = indices.shape[axis];
  if (broadcastShapes(target, values.shape) != target)
    return inferError(op, 4, "values do not broadcast to " + target.str(), operands);
  if (!scatterMode(std::get<std::string>(attrs[1])))
    return inferError(op, 5, "mode is not set, add, mul, min or max", operands);
  return inferred(x);
}

// --- By index vectors
// ----------------------------------------------------------------------------------------------------
/// The number of leading dimensions that the last dimension of `indices` addresses; nothing if it is invalid.
static std::optional<int> depthOf(const TensorType &indices, int most) {
  if (indices.rank() == 0 || !indices.shape.back().isNumber() || indices.shape.back().number() < 1 ||
      indices.shape.back().number() > most)
    return std::nullopt;
  return static_cast<int>(indices.shape.back().number());
}

Inferred inferGatherNd(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands[0], &indices = operands[1];
  const int64_t batch = integer(attrs[0]);
  if (!isInteger(indices.dtype))
    return inferError(op, 1, "indices must be integers", operands);
  if (batch < 0 || batch >= indices.rank() || batch > x.rank())
    return inferError(op, 2, "batch_dims is not in [0, rank of indices)", operands);
  for (int i = 0; i < batch; ++i)
    if (!dim::equal(x.shape[i], indices.shape[i]))
      return inferError(op, 2, "the sizes of batch dimension " + std::to_string(i) + " differ", operands);
  std::optional<int> depth = depthOf(indices, x.rank() - static_cast<int>(batch));
  if (!depth)
    return inferError(op, 3, "the last size of indices is not in [1, rank of x - batch_dims]", operands);
  const int first = static_cast<int>(batch) + *depth;
  if (indices.rank() - 1 + x.rank() - first > kMaxRank)
    return inferError(op, 4, "the result would have more than 8 dimensions", operands);
  TensorType result{x.dtype, {}};
  for (int i = 0; i < indices.rank() - 1; ++i)
    result.shape.push_back(indices.shape[i]);
  for (int i = first; i < x.rank(); ++i)
    result.shape.push_back(x.shape[i]);
  return inferred(result);
}

Inferred inferScatterNd(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands[0], &indices = operands[1], &updates = operands[2];
  if (!isInteger(indices.dtype))
    return inferError(op, 1, "indices must be integers", operands);
  std::optional<int> depth = depthOf(indices, x.rank());
  if (!depth)
    return inferError(op, 2, "the last size of indices is not in [1, rank of x]", operands);
  if (indices.rank() - 1 + x.rank() - *depth > kMaxRank)
    return inferError(op, 3, "updates would have more than 8 dimensions", operands);
  Shape expected;
  for (int i = 0; i < indices.rank() - 1; ++i)
    expected.push_back(indices.shape[i]);
  for (int i = *depth; i < x.rank(); ++i)
    expected.push_back(x.shape[i]);
  if (updates.shape != expected)
    return inferError(op, 3, "updates must have the shape " + expected.str(), operands);
  if (!scatterMode(std::get<std::string>(attrs[0])))
    return inferError(op, 4, "mode is not set, add, mul, min or max", operands);
  return inferred(x);
}

Inferred inferScatter(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkAxis(op, operands, integer(attrs[0])))
    return *error;
  const TensorType &x = operands[0], &indices = operands[1], &updates = operands[2];
  const int axis = *normalizeAxis(integer(attrs[0]), x.rank());
  if (!isInteger(indices.dtype))
    return inferError(op, 2, "indices must be integers", operands);
  if (x.rank() - 1 + indices.rank() > kMaxRank)
    return inferError(op, 3, "updates would have more than 8 dimensions", operands);
  Shape expected;
  for (int i = 0; i < axis; ++i)
    expected.push_back(x.shape[i]);
  for (Size d : indices.shape)
    expected.push_back(d);
  for (int i = axis + 1; i < x.rank(); ++i)
    expected.push_back(x.shape[i]);
  if (updates.shape != expected)
    return inferError(op, 3, "updates must have the shape " + expected.str(), operands);
  if (!scatterMode(std::get<std::string>(attrs[1])))
    return inferError(op, 4, "mode is not set, add, mul, min or max", operands);
  return inferred(x);
}

// --- Windows ---------------------------------------------------------------------------------------------------------------
static bool isStarts(const TensorType &starts, int rank) {
  return isInteger(starts.dtype) && starts.rank() == 1 && starts.shape[0] == rank;
}

Inferred inferDynamicSlice(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands[0];
  const Sizes &sizes = op::sizes(attrs[0]);
  if (x.rank() == 0 || !isStarts(operands[1], x.rank()))
    return inferError(op, 1, "starts must be a vector with one integer per dimension of x", operands);
  if (sizes.size() != x.shape.size())
    return inferError(op, 2, "needs one size per dimension of x", operands);
  for (int i = 0; i < x.rank(); ++i)
    if (dim::bounds(sizes[static_cast<size_t>(i)]).lo < 0 ||
        dim::less(x.shape[i], sizes[static_cast<size_t>(i)]).value_or(false))
      return inferError(op, 2, "size " + std::to_string(i) + " is not in [0, size of x]", operands);
  return inferred({x.dtype, Shape(std::span<const Size>(sizes))});
}

Inferred inferDynamicUpdateSlice(const OpInfo &op, std::span<const TensorType> operands, const Attrs &) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands[0], &update = operands[1];
  if (x.rank() == 0 || !isStarts(operands[2], x.rank()))
    return inferError(op, 1, "starts must be a vector with one integer per dimension of x", operands);
  if (update.rank() != x.rank())
    return inferError(op, 2, "update must have x's rank", operands);
  for (int i = 0; i < x.rank(); ++i)
    if (dim::less(x.shape[i], update.shape[i]).value_or(false))
      return inferError(op, 2, "update is larger than x in dimension " + std::to_string(i), operands);
  return inferred(x);
}

} // namespace tressel::op
