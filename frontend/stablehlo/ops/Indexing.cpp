// Reading and writing at computed places.
#include "frontend/stablehlo/OpImporter.h"
#include "frontend/stablehlo/OpTable.h"

#include <algorithm>
#include <numeric>

namespace tressel::stablehlo {

namespace {
using N = OpImporter;
using V = mlir::Value;

/// Limited to [0, last].
V clamped(N &n, V index, int64_t last) {
  index = n.cast(index, i64);
  return n.emit("clip", {index, n.scalar(i64, 0), n.scalar(i64, static_cast<double>(last))});
}
V count(N &n, int64_t size) { return n.emit("iota", {}, {{"shape", Ints{size}}, {"dtype", i64}}); }
/// `v` of one dimension, as dimension `d` of a tensor of rank `rank`.
V along(N &n, V v, int d, int rank) {
  Shape shape;
  for (int i = 0; i < rank; ++i)
    shape.push_back(i == d ? typeOf(v).shape[0] : 1);
  return n.reshape(v, shape);
}

/// The start of a slice in each dimension, from operand `first` on; scalars.
std::vector<V> starts(N &n, int first) {
  const int rank = typeOf(n.in(0)).rank();
  n.wantInputs(first + rank);
  for (int d = 0; d < rank; ++d)
    if (typeOf(n.in(first + d)).rank() != 0 || !isInteger(typeOf(n.in(first + d)).dtype))
      n.fail("start indices must be integers of rank 0, not " + typeOf(n.in(first + d)).str());
  return n.inputs(first, rank);
}

void dynamicSlice(N &n) {
  TensorType type = typeOf(n.in(0));
  std::vector<V> at = starts(n, 1);
  Ints sizes = n.intsPerDim("slice_sizes", type.rank(), 0);
  V x = n.in(0);
  for (int d = 0; d < type.rank(); ++d) {
    const int64_t size = sizes[static_cast<size_t>(d)];
    if (size < 0 || size > type.shape[d])
      n.fail("cannot take " + std::to_string(size) + " of dimension " + std::to_string(d) + " of " + type.str());
    if (size == type.shape[d])
      continue;
    V index = n.emit("add", {count(n, size), clamped(n, at[static_cast<size_t>(d)], type.shape[d] - size)});
    x = n.emit("take", {x, index}, {{"axis", int64_t(d)}});
  }
  n.out(0, x);
}

/// The update is read at the place of each element of the operand, and taken where there is one.
void dynamicUpdateSlice(N &n) {
  TensorType type = typeOf(n.in(0)), update = typeOf(n.in(1));
  n.sameElementType(n.in(0), n.in(1));
  if (update.rank() != type.rank())
    n.fail("operand and update have different ranks: " + type.str() + " and " + update.str());
  std::vector<V> at = starts(n, 2);
  V spread = n.in(1), inside;
  if (update.shape.numElements() == 0)
    return n.out(0, n.in(0));
  for (int d = 0; d < type.rank(); ++d) {
    const int64_t size = update.shape[d];
    if (size > type.shape[d])
      n.fail("the update " + update.str() + " is larger than the operand " + type.str());
    if (size == type.shape[d])
      continue;
    V index = n.emit("sub", {count(n, type.shape[d]), clamped(n, at[static_cast<size_t>(d)], type.shape[d] - size)});
    V nearest = clamped(n, index, size - 1);
    spread = n.emit("take", {spread, nearest}, {{"axis", int64_t(d)}});
    V here = along(n, n.emit("equal", {index, nearest}), d, type.rank());
    inside = inside ? n.emit("logical_and", {inside, here}) : here;
  }
  n.out(0, inside ? n.emit("where", {inside, spread, n.in(0)}) : spread);
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
      if (d < 0 || d >= (list == &p.startMap ? operand.rank() : indices.rank()))
        n.fail("its dimension numbers do not fit");
  const int64_t components = p.vectorDim == indices.rank() ? 1
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
  if (result.shape.numElements() == 0)
    return n.out(
        0,
        n.emit("full", {},
               {{"shape", Ints(result.shape.begin(), result.shape.end())}, {"value", 0.0}, {"dtype", result.dtype}}));
  if (gatherRows(n, p, operand))
    return;

  // In general the row-major place of each element of the result is computed, and taken from the flat operand.
  Ints batchDims, place(operand.shape.size(), 1);
  for (int64_t d = 0; d < result.rank(); ++d)
    if (!contains(p.offsetDims, d))
      batchDims.push_back(d);
  for (int d = operand.rank() - 2; d >= 0; --d)
    place[static_cast<size_t>(d)] = place[static_cast<size_t>(d) + 1] * operand.shape[d + 1];
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
    // The index's own place along its batching dimension.
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
  V flat = n.reshape(n.in(0), {operand.shape.numElements()});
  n.out(0, n.emit("take", {flat, n.broadcastTo(linear, result.shape)}, {{"axis", int64_t(0)}}));
}

constexpr OpEntry kTable[] = {
    {"stablehlo.dynamic_slice", dynamicSlice},
    {"stablehlo.dynamic_update_slice", dynamicUpdateSlice},
    {"stablehlo.gather", gather},
};
} // namespace

std::span<const OpEntry> indexingOps() { return kTable; }

} // namespace tressel::stablehlo
