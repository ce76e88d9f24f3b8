// Type inference of views, data movement and indexing.
#include "ir/op/Infer.h"
#include "ir/op/TableSupport.h"

#include <algorithm>

namespace tressel::op {

Inferred inferReshape(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  const Sizes &sizes = op::sizes(attrs[0]);
  if (sizes.size() > static_cast<size_t>(kMaxRank))
    return inferError(op, 1, "more than 8 dimensions", operands);
  int open = -1;
  Size known = 1;
  TensorType result{x.dtype, {}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 ? open >= 0 : !isSizeAttr(sizes[i]))
      return inferError(op, 1, "sizes must not be negative, but for one -1", operands);
    if (sizes[i] == -1)
      open = static_cast<int>(i);
    else if (!multiply(known, sizes[i]))
      return inferError(op, 2, "the number of elements would change", operands);
    result.shape.push_back(sizes[i]);
  }
  if (!dim::isKnown(x.shape)) {
    if (open >= 0)
      result.shape[open] = kDynamic;
    return inferred(result);
  }
  Size total = dim::numElements(x.shape);
  if (open >= 0)
    if (auto rest = dim::divideExactly(total, known))
      result.shape[open] = *rest;
  if ((open >= 0 && result.shape[open] == -1) || !dim::equal(dim::numElements(result.shape), total)) {
    if (open >= 0)
      result.shape[open] = kDynamic;
    return inferError(op, 2, "the number of elements would change to " + result.shape.str(), operands);
  }
  return inferred(result);
}

Inferred inferExpandDims(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  std::optional<int> axis = normalizeAxis(integer(attrs[0]), x.rank() + 1);
  if (!axis)
    return inferError(op, 1, "axis is not a dimension of the result", operands);
  if (x.rank() == kMaxRank)
    return inferError(op, 2, "the result would have more than 8 dimensions", operands);
  TensorType result{x.dtype, {}};
  for (int i = 0; i <= x.rank(); ++i)
    result.shape.push_back(i == *axis ? 1 : x.shape[i - (i > *axis)]);
  return inferred(result);
}

Inferred inferSqueeze(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  const Ints *axes = maybeInts(attrs[0]);
  std::optional<uint32_t> mask = normalizeAxes(axes, x.rank());
  if (!mask)
    return inferError(op, 1, "an axis is not a dimension, or stands twice", operands);
  TensorType result{x.dtype, {}};
  for (int i = 0; i < x.rank(); ++i) {
    bool named = *mask >> i & 1;
    if (!named || (!axes && x.shape[i] != 1))
      result.shape.push_back(x.shape[i]);
    else if (x.shape[i] != 1 && x.shape[i] != kDynamic)
      return inferError(op, 2, "dimension " + std::to_string(i) + " has not size 1", operands);
  }
  return inferred(result);
}

Inferred inferFlatten(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  TensorType result{x.dtype, {}};
  std::optional<int> start = normalizeAxis(integer(attrs[0]), x.rank());
  if (x.rank() == 0 && integer(attrs[0]) == 0)
    start = 0;
  if (!start)
    return inferError(op, 1, "start_axis is not a dimension", operands);
  Size flat = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (i < *start)
      result.shape.push_back(x.shape[i]);
    else
      flat *= x.shape[i];
  }
  result.shape.push_back(flat);
  return inferred(result);
}

Inferred inferTranspose(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  const Ints *permutation = maybeInts(attrs[0]);
  TensorType result{x.dtype, {}};
  if (!permutation) {
    for (int i = x.rank(); i > 0; --i)
      result.shape.push_back(x.shape[i - 1]);
    return inferred(result);
  }
  if (permutation->size() != x.shape.size() || !normalizeAxes(permutation, x.rank()))
    return inferError(op, 1, "the permutation must hold each dimension once", operands);
  for (int64_t p : *permutation)
    result.shape.push_back(x.shape[*normalizeAxis(p, x.rank())]);
  return inferred(result);
}

Inferred inferBroadcastTo(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  const Sizes &sizes = op::sizes(attrs[0]);
  if (sizes.size() > static_cast<size_t>(kMaxRank) || sizes.size() < x.shape.size())
    return inferError(op, 1, "the shape must have from rank to 8 dimensions", operands);
  for (Size d : sizes)
    if (!isSizeAttr(d))
      return inferError(op, 1, "sizes must not be negative", operands);
  TensorType result{x.dtype, Shape(std::span<const Size>(sizes))};
  if (!fitsMemory(result.shape))
    return inferError(op, 1, "the result does not fit into memory", operands);
  int offset = result.rank() - x.rank();
  for (int i = 0; i < x.rank(); ++i)
    if (x.shape[i] != 1 && x.shape[i] != kDynamic && x.shape[i] != result.shape[i + offset])
      return inferError(op, 2, "does not broadcast to " + result.shape.str(), operands);
  return inferred(result);
}

Inferred inferSlice(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  const Sizes &starts = sizes(attrs[0]), &limits = sizes(attrs[1]);
  const Ints &strides = ints(attrs[2]);
  if (starts.size() != x.shape.size() || limits.size() != x.shape.size() ||
      (!strides.empty() && strides.size() != x.shape.size()))
    return inferError(op, 1, "needs one start, limit and stride per dimension", operands);
  TensorType result{x.dtype, {}};
  for (int i = 0; i < x.rank(); ++i) {
    size_t n = static_cast<size_t>(i);
    int64_t stride = strides.empty() ? 1 : strides[n];
    if (stride == 0)
      return inferError(op, 2, "a stride is 0", operands);
    if (x.shape[i] == kDynamic) {
      if (starts[n] != 0 || limits[n] != std::numeric_limits<int64_t>::max() || stride != 1)
        return inferError(op, 3, "slices a dynamic dimension", operands);
      result.shape.push_back(kDynamic);
      continue;
    }
    result.shape.push_back(sliceRange(x.shape[i], starts[n], limits[n], stride).count);
  }
  return inferred(result);
}

Inferred inferConcat(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (operands.empty())
    return inferError(op, 1, "needs at least one operand", operands);
  TensorType result = operands.front();
  std::optional<int> axis = normalizeAxis(integer(attrs[0]), result.rank());
  if (!axis)
    return inferError(op, 2, "axis is not a dimension", operands);
  for (const TensorType &t : operands.subspan(1)) {
    if (t.rank() != result.rank())
      return inferError(op, 2, "ranks differ", operands);
    result.dtype = promote(result.dtype, t.dtype);
    for (int i = 0; i < t.rank(); ++i) {
      Size a = result.shape[i], b = t.shape[i];
      if (i == *axis)
        result.shape[i] = a + b;
      else if (a == kDynamic)
        result.shape[i] = b;
      else if (b != kDynamic && a != b)
        return inferError(op, 3, "sizes of dimension " + std::to_string(i) + " differ", operands);
    }
  }
  return inferred(result);
}

Inferred inferSplit(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  std::optional<int> axis = normalizeAxis(integer(attrs[1]), x.rank());
  if (!axis)
    return inferError(op, 1, "axis is not a dimension", operands);
  Inferred result;
  Size total = 0;
  for (Size size : sizes(attrs[0])) {
    if (!isSizeAttr(size))
      return inferError(op, 2, "a size is negative", operands);
    total += size;
    result.types.push_back(x);
    result.types.back().shape[*axis] = size;
  }
  if (result.types.empty() || !dim::equal(total, x.shape[*axis]))
    return inferError(op, 2, "the sizes add up to " + dim::str(total) + ", not to that of the dimension", operands);
  return result;
}

Inferred inferPad(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  TensorType result = operands.front();
  const Sizes &low = sizes(attrs[0]), &high = sizes(attrs[1]);
  if (low.size() != result.shape.size() || high.size() != result.shape.size())
    return inferError(op, 1, "needs one entry of low and high per dimension", operands);
  const auto &mode = std::get<std::string>(attrs[3]);
  constexpr std::string_view modes[] = {"constant", "edge", "reflect", "symmetric", "wrap"};
  if (std::find(std::begin(modes), std::end(modes), mode) == std::end(modes))
    return inferError(op, 2, "mode is not constant, edge, reflect, symmetric or wrap", operands);
  for (int i = 0; i < result.rank(); ++i) {
    size_t n = static_cast<size_t>(i);
    if (mode != "constant" && (low[n] != 0 || high[n] != 0) && dim::bounds(result.shape[i]).lo < 1)
      return inferError(op, 3, "dimension " + std::to_string(i) + " is empty, or may be", operands);
    if (!isSizeAttr(low[n]) || !isSizeAttr(high[n]))
      return inferError(op, 1, "low and high must not be negative", operands);
    constexpr int64_t limit = int64_t(1) << 48;
    if (low[n].numberOr(0) > limit || high[n].numberOr(0) > limit)
      return inferError(op, 1, "the result does not fit into memory", operands);
    result.shape[i] += low[n] + high[n];
  }
  if (!fitsMemory(result.shape))
    return inferError(op, 1, "the result does not fit into memory", operands);
  return inferred(result);
}

Inferred inferTake(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands[0], &indices = operands[1];
  std::optional<int> axis = normalizeAxis(integer(attrs[0]), x.rank());
  if (!axis)
    return inferError(op, 1, "axis is not a dimension of x", operands);
  if (!isInteger(indices.dtype))
    return inferError(op, 2, "indices must be integers", operands);
  if (x.rank() - 1 + indices.rank() > kMaxRank)
    return inferError(op, 3, "the result would have more than 8 dimensions", operands);
  TensorType result{x.dtype, {}};
  for (int i = 0; i < x.rank(); ++i) {
    if (i != *axis)
      result.shape.push_back(x.shape[i]);
    else
      for (Size d : indices.shape)
        result.shape.push_back(d);
  }
  return inferred(result);
}

} // namespace tressel::op
