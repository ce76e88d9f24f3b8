// Ops on tensors with permuted dimensions: their new attributes, and the orders of their operands.
#include "ir/op/Infer.h"
#include "ir/op/TableSupport.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tressel::op {

/// The new position of dimension `dim`.
static int64_t placeIn(const Ints &order, int64_t dim) {
  return std::find(order.begin(), order.end(), dim) - order.begin();
}

/// Permutes a list with one entry per dimension; an empty one stays empty.
template <typename List> static List permuted(const List &perDimension, const Ints &order) {
  List result;
  if (!perDimension.empty())
    for (int64_t d : order)
      result.push_back(perDimension[static_cast<size_t>(d)]);
  return result;
}

/// A scalar is the same in any order; other operands that broadcast are aligned at the last dimension.
static Ints broadcastOrder(const Shape &shape, const Ints &order) { return shape.rank() == 0 ? Ints() : order; }

std::optional<Reordered> reorderElementwise(const OpInfo &op, std::span<const TensorType> operands,
                                            std::span<const TensorType> results, const Attrs &attrs,
                                            const Ints &order) {
  if (operands.empty())
    return std::nullopt; // its values depend on positions
  const auto form = op.loopForm(op, operands, results, attrs);
  const bool seesPlaces = !form || std::ranges::any_of(form->body.nodes, [](const ScalarNode &node) {
    return node.op == ScalarOp::Index || node.op == ScalarOp::Size;
  });
  if (seesPlaces)
    return std::nullopt;
  Reordered result{attrs, {}, order};
  for (const TensorType &t : operands)
    result.operands.push_back(broadcastOrder(t.shape, order));
  return result;
}

std::optional<Reordered> reorderReduction(const OpInfo &, std::span<const TensorType> operands,
                                          std::span<const TensorType>, const Attrs &attrs, const Ints &order) {
  const int rank = operands[0].rank();
  Reordered result{attrs, {order}, order};
  uint32_t mask;
  if (const int64_t *axis = std::get_if<int64_t>(&attrs[0])) {
    const int d = *normalizeAxis(*axis, rank);
    mask = 1u << d;
    result.attrs[0] = placeIn(order, d);
  } else {
    mask = *normalizeAxes(maybeInts(attrs[0]), rank);
    Ints axes;
    for (int d = 0; d < rank; ++d)
      if (mask >> order[static_cast<size_t>(d)] & 1)
        axes.push_back(d);
    result.attrs[0] = std::move(axes);
  }
  if (std::get<bool>(attrs[1]))
    return result;
  // The order of the remaining dimensions among each other.
  result.result.clear();
  for (int64_t d : order)
    if (!(mask >> d & 1))
      result.result.push_back(d - std::popcount(mask & ((1u << d) - 1)));
  return result;
}

std::optional<Reordered> reorderPerDimension(const OpInfo &, std::span<const TensorType> operands,
                                             std::span<const TensorType>, const Attrs &attrs, const Ints &order) {
  Reordered result{attrs, {broadcastOrder(operands[0].shape, order)}, order};
  for (Attr &attr : result.attrs)
    if (Ints *list = std::get_if<Ints>(&attr))
      *list = permuted(*list, order);
    else if (Sizes *list = std::get_if<Sizes>(&attr))
      *list = permuted(*list, order);
  return result;
}

std::optional<Reordered> reorderConcat(const OpInfo &, std::span<const TensorType> operands,
                                       std::span<const TensorType> results, const Attrs &attrs, const Ints &order) {
  const int axis = *normalizeAxis(integer(attrs[0]), results[0].rank());
  return Reordered{{placeIn(order, axis)}, std::vector<Ints>(operands.size(), order), order};
}

std::optional<Reordered> reorderTake(const OpInfo &, std::span<const TensorType> operands, std::span<const TensorType>,
                                     const Attrs &attrs, const Ints &order) {
  const int rank = operands[0].rank(), added = operands[1].rank(), axis = *normalizeAxis(integer(attrs[0]), rank);
  if (added == 0)
    return std::nullopt; // the order does not tell where the removed dimension was
  // The dimensions of the indices replace one dimension of x, so they stay adjacent and in their order.
  const auto at = static_cast<size_t>(placeIn(order, axis));
  for (size_t i = 0; i < static_cast<size_t>(added); ++i)
    if (at + i >= order.size() || order[at + i] != axis + static_cast<int64_t>(i))
      return std::nullopt;
  Ints from;
  for (int64_t d : order)
    if (d <= axis || d >= axis + added)
      from.push_back(d <= axis ? d : d - added + 1);
  return Reordered{{placeIn(from, axis)}, {from, {}}, order};
}

std::optional<Reordered> reorderImage(const OpInfo &op, std::span<const TensorType> operands,
                                      std::span<const TensorType> results, const Attrs &attrs, const Ints &order) {
  const int last = op.attrIndex("channels_last");
  if (last < 0)
    return std::nullopt;
  const bool channelsLast = std::get<bool>(attrs[static_cast<size_t>(last)]);
  Ints same(order.size());
  std::iota(same.begin(), same.end(), 0);
  Reordered result{attrs, std::vector<Ints>(operands.size()), order};
  result.operands[0] = order;
  if (order == same)
    return result;
  Ints other = same; // [batch, spatial..., channels] from [batch, channels, spatial...], or the reverse
  if (channelsLast)
    std::rotate(other.begin() + 1, other.end() - 1, other.end());
  else
    std::rotate(other.begin() + 1, other.begin() + 2, other.end());
  if (order != other)
    return std::nullopt;
  result.attrs[static_cast<size_t>(last)] = !channelsLast;
  return result;
}

} // namespace tressel::op
