// Writing at computed places. Each place of the result belongs to one thread, which takes its updates in their order:
// of several to one place the last is set, sums have one order, and nothing depends on the number of blocks. The result
// may lie on the first operand. params: KernelForm's range, then those of the kernels for the CPU
// (codegen/bitcode/kernels/Scatter.cpp); see below.
#include "codegen/cuda/device/Elements.h"

namespace tressel::device {
namespace {

inline constexpr int kThreads = 256;

template <class T> TRESSEL_INLINE void apply(Mode mode, T &to, T update) {
  to = mode == Mode::Set ? update : narrow<T>(combine(mode, widen(to), widen(update)));
}

TRESSEL_INLINE int powerOfTwoFrom(int64_t x, int most) {
  int power = 1;
  while (power < x && power < most)
    power *= 2;
  return power;
}

/// Updates `values` [count, slice] of slices of x, by a block that has slices [begin, end): it looks at all indices,
/// and keeps those of its own in order. find(i): the slice that update i is for, or -1.
template <class T, class Find>
TRESSEL_INLINE void scatterSlices(const T *x, const T *values, T *out, int64_t begin, int64_t end, int64_t count,
                                  int64_t slice, Mode mode, int32_t *status, TRESSEL_SHARED int64_t *slices,
                                  TRESSEL_SHARED int *updates, TRESSEL_SHARED int *counts, Find find) {
  if (x != out)
    for (int64_t e = begin * slice + threadIndex(); e < end * slice; e += kThreads)
      out[e] = x[e];
  barrier();
  // A thread has some columns of some slices.
  const int across = powerOfTwoFrom(slice, kThreads), down = kThreads / across;
  const int column = threadIndex() % across, row = threadIndex() / across;
#pragma clang loop unroll(disable)
  for (int64_t first = 0; first < count; first += kThreads) {
    const int64_t i = first + threadIndex();
    int64_t at = -1;
    if (i < count) {
      at = find(i);
      if (at < 0)
        *status = kIndexOutOfRange;
    }
    const bool mine = at >= begin && at < end;
    const Rank rank = rankInBlock(mine, counts);
    if (mine) {
      slices[rank.before] = at;
      updates[rank.before] = threadIndex();
    }
    barrier();
#pragma clang loop unroll(disable)
    for (int k = 0; k < rank.all; ++k) {
      const int64_t to = slices[k];
      if ((to & (down - 1)) != row)
        continue;
      const int64_t from = (first + updates[k]) * slice;
      for (int64_t j = column; j < slice; j += across)
        apply(mode, out[to * slice + j], values[from + j]);
    }
  }
}

/// x [dims..., slice], indices [count, depth], updates [count, slice]. Params: count, depth, slice, mode, dims. Blocks
/// share the range, the slices of x.
template <class T>
TRESSEL_INLINE void scatterNd(void *const *buffers, const int64_t *params, int32_t *status,
                              TRESSEL_SHARED int64_t *slices, TRESSEL_SHARED int *updates, TRESSEL_SHARED int *counts) {
  const int64_t *indices = static_cast<const int64_t *>(buffers[1]);
  const int64_t range = params[0], depth = params[2], *dims = params + 5;
  const int64_t each = ceilDiv(range, numBlocks()), begin = least(blockIndex() * each, range);
  scatterSlices(static_cast<const T *>(buffers[0]), static_cast<const T *>(buffers[2]), static_cast<T *>(buffers[3]),
                begin, least(begin + each, range), params[3] ? params[1] : 0, params[3], static_cast<Mode>(params[4]),
                status, slices, updates, counts, [&](int64_t i) {
                  int64_t at = 0;
                  bool inside = true;
                  for (int64_t d = 0; d < depth; ++d) {
                    const int64_t index = place(indices[i * depth + d], dims[d]);
                    inside &= index >= 0;
                    at = at * dims[d] + index;
                  }
                  return inside ? at : -1;
                });
}

/// x [outer, size, columns], indices and values [outer, count, columns]. Params: size, count, columns, mode, columns
/// per unit, blocks that share a line (or a unit's lines).
template <class T>
TRESSEL_INLINE void putAlongAxis(void *const *buffers, const int64_t *params, int32_t *status,
                                 TRESSEL_SHARED int64_t *slices, TRESSEL_SHARED int *updates,
                                 TRESSEL_SHARED int *counts) {
  const T *x = static_cast<const T *>(buffers[0]), *values = static_cast<const T *>(buffers[2]);
  const int64_t *indices = static_cast<const int64_t *>(buffers[1]);
  T *out = static_cast<T *>(buffers[3]);
  const int64_t size = params[1], count = params[2], columns = params[3], block = params[5], sharing = params[6];
  const auto mode = static_cast<Mode>(params[4]);
  const int64_t unit = blockIndex() / sharing, part = blockIndex() % sharing;
  if (columns == 1) {
    const int64_t each = ceilDiv(size, sharing), begin = least(part * each, size);
    const int64_t *line = indices + unit * count;
    scatterSlices(x + unit * size, values + unit * count, out + unit * size, begin, least(begin + each, size), count, 1,
                  mode, status, slices, updates, counts, [&](int64_t i) { return place(line[i], size); });
    return;
  }
  // Columns side by side; what threads are left for are parts of the dimension.
  const int64_t blocks = ceilDiv(columns, block), first = unit % blocks * block;
  const int width = static_cast<int>(block), parts = kThreads / width;
  const int column = threadIndex() % width, row = threadIndex() / width;
  if (row >= parts || first + column >= columns)
    return;
  const int64_t each = ceilDiv(size, sharing * parts), begin = least((part * parts + row) * each, size);
  const int64_t end = least(begin + each, size), outer = unit / blocks;
  const int64_t to = outer * size * columns + first + column, from = outer * count * columns + first + column;
  if (x != out)
    for (int64_t i = begin; i < end; ++i)
      out[to + i * columns] = x[to + i * columns];
#pragma clang loop unroll_count(4)
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = place(indices[from + i * columns], size);
    if (at < 0)
      *status = kIndexOutOfRange;
    else if (at >= begin && at < end)
      apply(mode, out[to + at * columns], values[from + i * columns]);
  }
}

} // namespace

#define TRESSEL_SCATTER(name, suffix, T, function)                                                                     \
  TRESSEL_DEVICE(name##_##suffix) {                                                                                    \
    TRESSEL_SHARED_POOL(slices, kThreads * sizeof(int64_t));                                                           \
    TRESSEL_SHARED_POOL(updates, kThreads * sizeof(int));                                                              \
    TRESSEL_SHARED_POOL(counts, kWarp * sizeof(int));                                                                  \
    function<T>(buffers, params, status, reinterpret_cast<TRESSEL_SHARED int64_t *>(slices),                           \
                reinterpret_cast<TRESSEL_SHARED int *>(updates), reinterpret_cast<TRESSEL_SHARED int *>(counts));      \
    (void)context;                                                                                                     \
  }
#define TRESSEL_SCATTERS(suffix, T)                                                                                    \
  TRESSEL_SCATTER(scatter_nd, suffix, T, scatterNd)                                                                    \
  TRESSEL_SCATTER(put_along_axis, suffix, T, putAlongAxis)
TRESSEL_FOR_ALL_TYPES(TRESSEL_SCATTERS)

} // namespace tressel::device
