// Reading and writing at computed places.
#include "frontend/stablehlo/Body.h"
#include "frontend/stablehlo/OpImporter.h"
#include "frontend/stablehlo/OpTable.h"

#include <algorithm>
#include <functional>

namespace tressel::stablehlo {

namespace {
using N = OpImporter;
using V = mlir::Value;

/// Limited to [0, last].
V clamped(N &n, V index, Size last) {
  index = n.cast(index, i64);
  return n.emit("clip", {index, n.scalar(i64, 0), n.scalar(i64, static_cast<double>(last))});
}
V count(N &n, Size size) { return n.emit("iota", {}, {{"shape", op::Sizes{size}}, {"dtype", i64}}); }
/// `v` of one dimension, as dimension `d` of a tensor of rank `rank`.
V along(N &n, V v, int d, int rank) {
  Shape shape;
  for (int i = 0; i < rank; ++i)
    shape.push_back(i == d ? typeOf(v).shape[0] : 1);
  return n.reshape(v, shape);
}

/// The start of a slice in each dimension, from operand `first` on, as a vector.
V starts(N &n, int first) {
  const int rank = typeOf(n.in(0)).rank();
  n.wantInputs(first + rank);
  std::vector<V> list;
  for (int d = 0; d < rank; ++d) {
    if (typeOf(n.in(first + d)).rank() != 0 || !isInteger(typeOf(n.in(first + d)).dtype))
      n.fail("start indices must be integers of rank 0, not " + typeOf(n.in(first + d)).str());
    list.push_back(n.reshape(n.cast(n.in(first + d), i64), {1}));
  }
  return list.empty() ? V() : n.emit("concat", list, {{"axis", int64_t(0)}});
}

void dynamicSlice(N &n) {
  TensorType type = typeOf(n.in(0));
  V at = starts(n, 1);
  Ints sizes = n.intsPerDim("slice_sizes", type.rank(), 0);
  for (int d = 0; d < type.rank(); ++d)
    if (const int64_t size = sizes[static_cast<size_t>(d)]; size < 0 || size > type.shape[d])
      n.fail("cannot take " + std::to_string(size) + " of dimension " + std::to_string(d) + " of " + type.str());
  const bool isAll = Shape(sizes) == type.shape;
  n.out(0, isAll ? n.in(0) : n.emit("dynamic_slice", {n.in(0), at}, {{"sizes", sizes}}));
}

void dynamicUpdateSlice(N &n) {
  TensorType type = typeOf(n.in(0)), update = typeOf(n.in(1));
  n.sameElementType(n.in(0), n.in(1));
  if (update.rank() != type.rank())
    n.fail("operand and update have different ranks: " + type.str() + " and " + update.str());
  V at = starts(n, 2);
  for (int d = 0; d < type.rank(); ++d)
    if (update.shape[d] > type.shape[d])
      n.fail("the update " + update.str() + " is larger than the operand " + type.str());
  n.out(0, update.shape == type.shape ? n.in(1) : n.emit("dynamic_update_slice", {n.in(0), n.in(1), at}));
}

/// Dimensions of gather and scatter, in the terms of gather.
struct Places {
  Ints offsetDims, collapsed, batching, indexBatching, startMap;
  int64_t vectorDim = 0;
  Ints sizes; ///< of a slice
};

bool contains(const Ints &list, int64_t value) { return std::ranges::find(list, value) != list.end(); }

void checkPlaces(N &n, const Places &p, const TensorType &operand, const TensorType &indices) {
  auto ascendingIn = [&](const Ints &list, int rank) {
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i] < (i ? list[i - 1] + 1 : 0) || list[i] >= rank)
        n.fail("its dimension numbers do not fit");
  };
  ascendingIn(p.collapsed, operand.rank());
  ascendingIn(p.batching, operand.rank());
  ascendingIn(p.offsetDims, kMaxRank);
  for (const Ints *list : {&p.startMap, &p.indexBatching})
    for (int64_t d : *list)
      if (d < 0 || d >= (list == &p.startMap ? operand.rank() : indices.rank()) || std::ranges::count(*list, d) != 1)
        n.fail("its dimension numbers do not fit");
  const Size components = p.vectorDim == indices.rank() ? 1
                          : p.vectorDim >= 0 && p.vectorDim < indices.rank()
                              ? indices.shape[static_cast<int>(p.vectorDim)]
                              : -1;
  if (components != static_cast<int64_t>(p.startMap.size()) || p.batching.size() != p.indexBatching.size() ||
      p.offsetDims.size() + p.collapsed.size() + p.batching.size() != operand.shape.size())
    n.fail("its dimension numbers do not fit");
  if (!isInteger(indices.dtype))
    n.fail("indices must be integers, not " + indices.str());
  for (int d = 0; d < operand.rank(); ++d) {
    const int64_t size = p.sizes[static_cast<size_t>(d)];
    bool one = contains(p.collapsed, d) || contains(p.batching, d);
    if (size < 0 || size > operand.shape[d] || (one && size > 1))
      n.fail("a slice of " + std::to_string(size) + " does not fit dimension " + std::to_string(d) + " of " +
             operand.str());
  }
}

/// Component k of the index vectors: the shape of the indices without the dimension of the vectors.
V component(N &n, V indices, const Places &p, int64_t k) {
  TensorType type = typeOf(indices);
  if (p.vectorDim == type.rank())
    return indices;
  Ints from(type.shape.size(), 0), to(type.shape.begin(), type.shape.end());
  Shape shape;
  for (int i = 0; i < type.rank(); ++i)
    if (i != p.vectorDim)
      shape.push_back(type.shape[i]);
  from[static_cast<size_t>(p.vectorDim)] = k;
  to[static_cast<size_t>(p.vectorDim)] = k + 1;
  return n.reshape(n.slice(indices, from, to), shape);
}

/// Slices of whole rows, as an embedding takes them: one dimension is indexed, and the others are there in full.
bool gatherRows(N &n, const Places &p, const TensorType &operand) {
  if (p.startMap.size() != 1 || !p.batching.empty() || p.collapsed != p.startMap)
    return false;
  const auto axis = static_cast<int>(p.startMap[0]);
  for (int d = 0; d < operand.rank(); ++d)
    if (d != axis && p.sizes[static_cast<size_t>(d)] != operand.shape[d])
      return false;
  V index = clamped(n, component(n, n.in(1), p, 0), operand.shape[axis] - 1);
  // take puts the dimensions of the index where the axis was: those before and behind it are the offsets, in order.
  V taken = n.emit("take", {n.in(0), index}, {{"axis", int64_t(axis)}});
  const int batchRank = typeOf(index).rank(), rank = typeOf(taken).rank();
  Ints order;
  int64_t batch = axis, offset = 0;
  for (int64_t d = 0; d < rank; ++d) {
    if (!contains(p.offsetDims, d)) {
      order.push_back(batch++);
    } else {
      order.push_back(offset < axis ? offset : offset + batchRank);
      ++offset;
    }
  }
  n.out(0, n.transpose(taken, order));
  return true;
}

void gather(N &n) {
  n.wantInputs(2);
  n.ignore("indices_are_sorted");
  TensorType operand = typeOf(n.in(0)), indices = typeOf(n.in(1)), result = n.resultType();
  std::string numbers = n.record("dimension_numbers");
  Places p{listIn(numbers, "offset_dims"),
           listIn(numbers, "collapsed_slice_dims"),
           listIn(numbers, "operand_batching_dims"),
           listIn(numbers, "start_indices_batching_dims"),
           listIn(numbers, "start_index_map"),
           integerIn(numbers, "index_vector_dim").value_or(0),
           n.intsPerDim("slice_sizes", operand.rank(), 0)};
  checkPlaces(n, p, operand, indices);
  if (dim::numElements(result.shape) == 0)
    return n.out(
        0,
        n.emit("full", {},
               {{"shape", Ints(result.shape.begin(), result.shape.end())}, {"value", 0.0}, {"dtype", result.dtype}}));
  if (gatherRows(n, p, operand))
    return;

  // The general case computes the row-major index of each result element, and takes it from the flat operand.
  Ints batchDims, place(operand.shape.size(), 1);
  for (int64_t d = 0; d < result.rank(); ++d)
    if (!contains(p.offsetDims, d))
      batchDims.push_back(d);
  for (int d = operand.rank() - 2; d >= 0; --d)
    place[static_cast<size_t>(d)] = place[static_cast<size_t>(d) + 1] * operand.shape.extent(d + 1);
  V linear = n.scalar(i64, 0);
  auto plus = [&](V index, int64_t d) {
    V scale = n.scalar(i64, static_cast<double>(place[static_cast<size_t>(d)]));
    linear = n.emit("add", {linear, n.emit("mul", {index, scale})});
  };
  for (size_t k = 0; k < p.startMap.size(); ++k) {
    const int64_t d = p.startMap[k];
    V start = component(n, n.in(1), p, static_cast<int64_t>(k));
    start = clamped(n, start, operand.shape[static_cast<int>(d)] - p.sizes[static_cast<size_t>(d)]);
    Shape shape;
    size_t next = 0;
    for (int64_t r = 0; r < result.rank(); ++r) {
      bool isBatch = next < batchDims.size() && batchDims[next] == r;
      shape.push_back(isBatch ? typeOf(start).shape[static_cast<int>(next++)] : 1);
    }
    plus(n.reshape(start, shape), d);
  }
  for (size_t i = 0; i < p.batching.size(); ++i) {
    // The element's own index along the batching dimension.
    const int64_t at = p.indexBatching[i] - (p.indexBatching[i] > p.vectorDim ? 1 : 0);
    if (at >= static_cast<int64_t>(batchDims.size()))
      n.fail("its dimension numbers do not fit");
    const auto r = static_cast<int>(batchDims[static_cast<size_t>(at)]);
    plus(along(n, count(n, result.shape[r]), r, result.rank()), p.batching[i]);
  }
  size_t offset = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (contains(p.collapsed, d) || contains(p.batching, d))
      continue;
    const auto r = static_cast<int>(p.offsetDims[offset++]);
    if (r >= result.rank())
      n.fail("its dimension numbers do not fit");
    plus(along(n, count(n, p.sizes[static_cast<size_t>(d)]), r, result.rank()), d);
  }
  V flat = n.reshape(n.in(0), {dim::numElements(operand.shape)});
  n.out(0, n.emit("take", {flat, n.broadcastTo(linear, result.shape)}, {{"axis", int64_t(0)}}));
}

/// How a scatter combines an update with the element at its place; may prepare `update` for it.
const char *scatterMode(N &n, V &update) {
  const std::vector<std::string> body = expressionsOf(n.region(0));
  if (body.size() != 1)
    n.fail("its region returns " + std::to_string(body.size()) + " values");
  if (body[0] == "a1")
    return "set";
  const bool isBool = typeOf(update).dtype == DType::boolean;
  if (body[0] == "subtract(a0,a1)" && !isBool) {
    update = n.emit("negative", {update});
    return "add";
  }
  const std::string combiner = combinerOf(body[0], 0, 1);
  for (auto [name, mode] : {std::pair("add", "add"), {"multiply", "mul"}, {"minimum", "min"}, {"maximum", "max"}})
    if (combiner == name)
      return mode;
  if (isBool && combiner == "or")
    return "add";
  if (isBool && combiner == "and")
    return "mul";
  n.unsupported("a scatter by " + body[0]);
}

/// A scatter as rows written into a matrix of slices. Dimensions that a window covers whole form the slices. The other
/// dimensions of the operand form a place, whose row-major number is computed for each update.
class Scatter {
public:
  explicit Scatter(N &n) : n(n), operand(typeOf(n.in(0))), indices(typeOf(n.in(1))), updates(typeOf(n.in(2))) {
    const std::string numbers = n.record("scatter_dimension_numbers");
    p = {listIn(numbers, "update_window_dims"),
         listIn(numbers, "inserted_window_dims"),
         listIn(numbers, "input_batching_dims"),
         listIn(numbers, "scatter_indices_batching_dims"),
         listIn(numbers, "scatter_dims_to_operand_dims"),
         integerIn(numbers, "index_vector_dim").value_or(0),
         {}};
    size_t next = 0;
    for (int64_t d = 0; d < operand.rank(); ++d) {
      const bool one = contains(p.collapsed, d) || contains(p.batching, d);
      const int64_t u = one ? -1 : next < p.offsetDims.size() ? p.offsetDims[next++] : kMaxRank;
      if (!one && (u < 0 || u >= updates.rank()))
        n.fail("its dimension numbers do not fit");
      windowOf.push_back(u);
      p.sizes.push_back(one ? 1 : updates.shape.extent(static_cast<int>(u)));
    }
    checkPlaces(n, p, operand, indices);
    for (int64_t u = 0; u < updates.rank(); ++u)
      if (!contains(p.offsetDims, u))
        updateOrder.push_back(u);
    for (int i = 0; i < indices.rank(); ++i)
      if (i != p.vectorDim)
        batch.push_back(indices.shape[i]);
    if (sizes(updates, updateOrder) != batch)
      n.fail("updates " + updates.str() + " do not fit indices " + indices.str());
    order();
  }

  V emit(V update, const std::string &mode) {
    if (slices.rank() == kMaxRank)
      n.unsupported("slices of " + std::to_string(kMaxRank) + " dimensions");
    V places = rowNumbers();
    if (const auto known = isInside ? graph::constantValue(isInside) : std::nullopt)
      if (const auto *inside = known->as<bool>();
          std::all_of(inside, inside + known->type.shape.numElements(), std::identity()))
        isInside = {}; // indices that the program gives
    // Windows that exceed the operand are written to an extra last row, which is cut off again.
    const int64_t count = sizes(operand, Ints(operandOrder.begin(), operandOrder.begin() + numPlaceDims)).numElements();
    if (isInside)
      places = n.emit("where", {isInside, places, number(count)});
    places = n.broadcastTo(places, lead);
    Ints none(static_cast<size_t>(slices.rank()) + 1, 0), extra = none, back(operandOrder.size());
    extra[0] = isInside ? 1 : 0;
    for (size_t i = 0; i < operandOrder.size(); ++i)
      back[static_cast<size_t>(operandOrder[i])] = static_cast<int64_t>(i);
    V x = n.reshape(n.transpose(n.in(0), operandOrder), rows(count));
    x = n.pad(x, none, extra, none, n.cast(n.scalar(i32, 0), operand.dtype));
    x = n.emit("scatter_nd",
               {x, n.reshape(places, {dim::numElements(lead), 1}),
                n.reshape(n.transpose(update, updateOrder), rows(dim::numElements(lead)))},
               {{"mode", mode}});
    const Shape kept = rows(count);
    x = n.slice(x, none, Ints(kept.begin(), kept.end()));
    return n.transpose(n.reshape(x, sizes(operand, operandOrder)), back);
  }

private:
  static Shape sizes(const TensorType &type, const Ints &dims) {
    Shape shape;
    for (int64_t d : dims)
      shape.push_back(type.shape[static_cast<int>(d)]);
    return shape;
  }
  Shape rows(Size count) const {
    Shape shape{count};
    for (Size size : slices)
      shape.push_back(size);
    return shape;
  }
  V number(int64_t v) { return n.scalar(i64, static_cast<double>(v)); }

  /// Dimensions of operand and updates: those of places first, then those of slices.
  void order() {
    Ints whole;
    for (int64_t d = 0; d < operand.rank(); ++d) {
      const auto at = static_cast<size_t>(d);
      if (windowOf[at] >= 0 && !contains(p.startMap, d) && p.sizes[at] == operand.shape[static_cast<int>(d)]) {
        whole.push_back(d);
        continue;
      }
      operandOrder.push_back(d);
      if (windowOf[at] >= 0)
        updateOrder.push_back(windowOf[at]);
    }
    numPlaceDims = static_cast<int64_t>(operandOrder.size());
    lead = sizes(updates, updateOrder);
    slices = sizes(operand, whole);
    for (int64_t d : whole) {
      operandOrder.push_back(d);
      updateOrder.push_back(windowOf[static_cast<size_t>(d)]);
    }
  }

  /// The row number for each place; and, in `isInside`, whether its window lies in the operand.
  V rowNumbers() {
    V linear = number(0);
    int64_t step = 1;
    auto plus = [&](V v) { linear = n.emit("add", {linear, n.emit("mul", {v, number(step)})}); };
    auto counted = [&](int64_t at) {
      return along(n, count(n, lead[static_cast<int>(at)]), static_cast<int>(at), lead.rank());
    };
    for (int64_t i = numPlaceDims - 1; i >= 0; --i) {
      const int64_t d = operandOrder[static_cast<size_t>(i)], size = operand.shape.extent(static_cast<int>(d));
      const auto at = static_cast<size_t>(d);
      if (const auto k = std::ranges::find(p.startMap, d); k != p.startMap.end()) {
        V start = n.cast(component(n, n.in(1), p, k - p.startMap.begin()), i64);
        Shape shape = batch;
        while (shape.rank() < lead.rank())
          shape.push_back(1);
        start = n.reshape(start, shape);
        V fits = n.emit("logical_and", {n.emit("greater_equal", {start, number(0)}),
                                        n.emit("less_equal", {start, number(size - p.sizes[at])})});
        isInside = isInside ? n.emit("logical_and", {isInside, fits}) : fits;
        plus(start);
      }
      if (const auto k = std::ranges::find(p.batching, d); k != p.batching.end()) { // its own index there
        const int64_t dim = p.indexBatching[static_cast<size_t>(k - p.batching.begin())],
                      own = dim - (dim > p.vectorDim);
        if (dim == p.vectorDim || batch[static_cast<int>(own)] != size)
          n.fail("its dimension numbers do not fit");
        plus(counted(own));
      }
      if (windowOf[at] >= 0)
        plus(counted(std::ranges::find(updateOrder, windowOf[at]) - updateOrder.begin()));
      step *= size;
    }
    return linear;
  }

  N &n;
  const TensorType operand, indices, updates;
  Places p;
  Ints windowOf; ///< the dimension of the updates along each of the operand's; -1: the window has size 1 there
  Ints operandOrder, updateOrder;
  int64_t numPlaceDims = 0;
  Shape batch, lead, slices; ///< of the indices; of the places, which begin with the batch; of a slice
  V isInside;
};

void scatter(N &n) {
  if (n.numInputs() != 3)
    n.unsupported("a scatter of several operands");
  n.ignore("indices_are_sorted");
  n.ignore("unique_indices");
  n.sameElementType(n.in(0), n.in(2));
  Scatter scatter(n);
  V update = n.in(2);
  const std::string mode = scatterMode(n, update);
  n.out(0, dim::numElements(typeOf(update).shape) == 0 ? n.in(0) : scatter.emit(update, mode));
}

constexpr OpEntry kTable[] = {
    {"stablehlo.dynamic_slice", dynamicSlice},
    {"stablehlo.dynamic_update_slice", dynamicUpdateSlice},
    {"stablehlo.gather", gather},
    {"stablehlo.scatter", scatter},
};
} // namespace

std::span<const OpEntry> indexingOps() { return kTable; }

} // namespace tressel::stablehlo
