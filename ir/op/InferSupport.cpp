#include "ir/op/Infer.h"

#include "tressel/runtime/Error.h"

#include <algorithm>
#include <limits>

namespace tressel::op {

Inferred inferError(const OpInfo &op, int rule, std::string_view message, std::span<const TensorType> operands) {
  std::string text = op.name;
  text += ": ";
  if (rule > 0)
    text += "(C" + std::to_string(rule) + ") ";
  text += message;
  const char *separator = ": ";
  for (const TensorType &t : operands) {
    text += separator + t.str();
    separator = " x ";
  }
  return {{}, std::move(text)};
}

Inferred inferTypes(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  try {
    return op.infer(op, operands, attrs);
  } catch (const Error &e) {
    return inferError(op, 0, e.message(), operands);
  }
}

std::optional<Inferred> checkArity(const OpInfo &op, std::span<const TensorType> operands) {
  size_t most = op.operands.size(), least = 0;
  for (const OperandSpec &spec : op.operands)
    least += !spec.optional && !spec.variadic;
  bool any = most && op.operands.back().variadic;
  if (operands.size() >= least && (any || operands.size() <= most))
    return std::nullopt;
  std::string expected = std::to_string(least);
  if (any)
    expected = "at least " + expected;
  else if (most != least)
    expected += " to " + std::to_string(most);
  return inferError(
      op, 0, "takes " + expected + (most == 1 ? " operand" : " operands") + ", got " + std::to_string(operands.size()),
      operands);
}

Shape withoutDim(const Shape &shape, int dim) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i)
    if (i != dim)
      result.push_back(shape[i]);
  return result;
}

bool fitsMemory(const Shape &shape) {
  constexpr int64_t limit = int64_t(1) << 48;
  int64_t product = 1;
  for (Size d : shape)
    if (d.isNumber() &&
        (__builtin_mul_overflow(product, std::max<int64_t>(d.number(), 1), &product) || product >= limit))
      return false;
  return true;
}

bool multiply(Size &product, Size size) {
  try {
    product *= size;
    return true;
  } catch (const Error &) {
    return false;
  }
}

std::optional<int> normalizeAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    return std::nullopt;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::optional<uint32_t> normalizeAxes(const Ints *axes, int rank) {
  if (!axes)
    return (1u << rank) - 1;
  uint32_t mask = 0;
  for (int64_t a : *axes) {
    std::optional<int> axis = normalizeAxis(a, rank);
    if (!axis || mask >> *axis & 1)
      return std::nullopt;
    mask |= 1u << *axis;
  }
  return mask;
}

Size WindowSpec::output(int i, Size input) const {
  const Size room = input + low[i] + high[i] - extent(i), whole = dim::floorDiv(room, stride[i]) + 1;
  if (!ceil)
    return dim::max(0, whole);
  // One more window for a remainder, if it begins early enough; none if not even the first fits.
  const Size begins = dim::floorDiv(input + low[i] - 1, stride[i]) + 1;
  const Size count = dim::min(dim::ceilDiv(room, stride[i]) + 1, begins);
  return dim::max(0, dim::min(count, whole * 2));
}

bool WindowSpec::leaves(int i, Size input) const {
  if (low[i] != 0 || high[i] != 0)
    return true;
  const Size last = (output(i, input) - 1) * stride[i];
  return ceil && !dim::atMost(last + extent(i), input);
}

std::optional<WindowSpec> windowSpec(int spatial, std::span<const int64_t> sizes, const Ints &strides, const Ints &low,
                                     const Ints &high, const Ints &dilations, bool stridesFollowSizes) {
  constexpr int64_t limit = int64_t(1) << 31; // keeps arithmetic on sizes from overflowing
  WindowSpec spec;
  spec.spatial = spatial;
  size_t n = static_cast<size_t>(spatial);
  for (const Ints *list : {&strides, &low, &high, &dilations})
    if (!list->empty() && list->size() != n)
      return std::nullopt;
  auto inRange = [&](int64_t v, int64_t least) { return v >= least && v < limit; };
  for (size_t i = 0; i < n; ++i) {
    spec.size[i] = sizes[i];
    spec.stride[i] = strides.empty() ? (stridesFollowSizes ? sizes[i] : 1) : strides[i];
    spec.low[i] = low.empty() ? 0 : low[i];
    spec.high[i] = high.empty() ? 0 : high[i];
    spec.dilation[i] = dilations.empty() ? 1 : dilations[i];
    if (!inRange(spec.stride[i], 1) || !inRange(spec.low[i], 0) || !inRange(spec.high[i], 0) ||
        !inRange(spec.dilation[i], 1))
      return std::nullopt;
  }
  return spec;
}

/// sliceRange for symbolic sizes. A range beyond the far end gives a negative count, so only the count is clamped: then
/// equal numbers of elements have equal expressions.
static SliceRange symbolicRange(Size size, Size start, Size limit, int64_t stride) {
  const bool up = stride > 0;
  const Size lowest = up ? 0 : -1, highest = up ? size : size - 1;
  auto fromFront = [&](Size i) {
    if (i == std::numeric_limits<int64_t>::max() || i == Size::kLeast)
      return i == Size::kLeast ? lowest : highest;
    return i.numberOr(0) < 0 ? i + size : i;
  };
  start = fromFront(start);
  limit = fromFront(limit);
  const Size distance =
      up ? dim::min(limit, highest) - dim::max(start, lowest) : dim::min(start, highest) - dim::max(limit, lowest);
  return {dim::max(lowest, dim::min(start, highest)), dim::max(0, dim::ceilDiv(distance, Size(up ? stride : -stride))),
          stride};
}

SliceRange sliceRange(Size size, Size start, Size limit, int64_t stride) {
  if (!size.isNumber() || !start.isNumber() || !limit.isNumber())
    return symbolicRange(size, start, limit, stride);
  // As in Python: a negative index counts from the end, and is then clamped to what the direction can reach.
  const int64_t n = size.number(), lowest = stride > 0 ? 0 : -1, highest = stride > 0 ? n : n - 1;
  auto place = [&](int64_t i) {
    if (i < 0)
      i = i < -n ? lowest : i + n;
    return std::clamp(i, lowest, std::max(lowest, highest));
  };
  const int64_t from = place(start.number()), to = place(limit.number());
  const int64_t distance = stride > 0 ? to - from : from - to;
  const uint64_t step = stride > 0 ? static_cast<uint64_t>(stride) : 0 - static_cast<uint64_t>(stride);
  const int64_t count = distance <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(distance) + step - 1) / step);
  return {from, count, stride};
}

} // namespace tressel::op
