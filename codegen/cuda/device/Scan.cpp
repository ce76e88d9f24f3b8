// cumsum, cumprod, cummax, cummin: running totals along one dimension, in an order that depends on its size alone.
// params: KernelForm's range, then size of the dimension, elements between its neighbours (columns), mode, whether an
// element itself is left out, whether the last comes first, columns per unit. 16-bit floats keep their totals in f32.
#include "codegen/cuda/device/Elements.h"

namespace tressel::device {
namespace {

inline constexpr int kThreads = 256, kEach = 4;

/// A total of some elements, perhaps none: no number is neutral for min and max in all types.
template <class W> struct Total {
  W value;
  bool any;
};
template <class W> TRESSEL_INLINE Total<W> join(Mode mode, Total<W> a, Total<W> b) {
  return !a.any ? b : !b.any ? a : Total<W>{combine(mode, a.value, b.value), true};
}
template <class W> TRESSEL_INLINE Total<W> fromLane(Total<W> t, int lane) {
  return {shuffle(t.value, lane), shuffleWord(static_cast<uint32_t>(t.any), lane) != 0};
}

/// Lines are dense: `kWarps` warps (1, or all of a block) take a line piece by piece, kEach elements per thread.
template <class T, int kWarps>
TRESSEL_INLINE void scanLine(const T *x, T *out, int64_t size, Mode mode, bool exclusive, bool reverse,
                             TRESSEL_SHARED WideOf<T> *values, TRESSEL_SHARED int *present) {
  using W = WideOf<T>;
  const int lane = threadIndex() % kWarp, warp = threadIndex() / kWarp % kWarps;
  const W start = mode == Mode::Mul ? W(1) : W(0);
  Total<W> before{start, false}; // of the pieces so far
#pragma clang loop unroll(disable)
  for (int64_t piece = 0; piece < size; piece += kWarps * kWarp * kEach) {
    const int64_t first = piece + (warp * kWarp + lane) * kEach;
    W value[kEach];
    Total<W> mine{start, false};
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t at = first + i;
      if (at < size) {
        value[i] = widen(x[reverse ? size - 1 - at : at]);
        mine = join(mode, mine, {value[i], true});
      }
    }
    Total<W> sum = mine; // of the warp's lanes up to this one
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
      const Total<W> other = fromLane(sum, lane - step < 0 ? lane : lane - step);
      if (lane >= step)
        sum = join(mode, other, sum);
    }
    Total<W> prefix = fromLane(sum, lane ? lane - 1 : 0);
    prefix.any &= lane != 0;
    Total<W> all = fromLane(sum, kWarp - 1);
    if (kWarps > 1) {
      if (lane == 0) {
        values[warp] = all.value;
        present[warp] = all.any;
      }
      barrier();
      Total<W> earlier{start, false};
      all = earlier;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        const Total<W> t{values[w], present[w] != 0};
        if (w < warp)
          earlier = join(mode, earlier, t);
        all = join(mode, all, t);
      }
      prefix = join(mode, earlier, prefix);
      barrier();
    }
    prefix = join(mode, before, prefix);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t at = first + i;
      if (at < size) {
        const Total<W> after = join(mode, prefix, {value[i], true});
        out[reverse ? size - 1 - at : at] = narrow<T>(!exclusive ? after.value : prefix.any ? prefix.value : start);
        prefix = after;
      }
    }
    before = join(mode, before, all);
  }
}

/// A block has a unit's columns, side by side, and cuts the dimension into as many segments as threads are left for.
template <class T>
TRESSEL_INLINE void scanColumns(const T *x, T *out, const int64_t *p, TRESSEL_SHARED WideOf<T> *values,
                                TRESSEL_SHARED int *present) {
  using W = WideOf<T>;
  const int64_t size = p[1], columns = p[2], block = p[6], blocks = ceilDiv(columns, block);
  const auto mode = static_cast<Mode>(p[3]);
  const bool exclusive = p[4] != 0, reverse = p[5] != 0;
  const W start = mode == Mode::Mul ? W(1) : W(0);
  const int64_t unit = blockIndex(), first = unit % blocks * block;
  const int width = static_cast<int>(block), segments = kThreads / width; // a unit has at most 64 columns
  const int column = threadIndex() % width, segment = threadIndex() / width;
  const bool mineIsOne = segment < segments && first + column < columns;
  const int64_t each = ceilDiv(size, segments);
  const int64_t begin = least(segment * each, size), end = mineIsOne ? least(begin + each, size) : begin;
  const int64_t base = unit / blocks * size * columns + first + column;
  auto at = [&](int64_t i) { return base + (reverse ? size - 1 - i : i) * columns; };
  Total<W> mine{start, false};
  if (segments > 1) {
#pragma clang loop unroll_count(4)
    for (int64_t i = begin; i < end; ++i)
      mine = join(mode, mine, {widen(x[at(i)]), true});
    values[threadIndex()] = mine.value;
    present[threadIndex()] = mine.any;
    barrier();
    mine = {start, false};
    if (mineIsOne)
      for (int s = 0; s < segment; ++s)
        mine = join(mode, mine, {values[s * width + column], present[s * width + column] != 0});
  }
#pragma clang loop unroll_count(4)
  for (int64_t i = begin; i < end; ++i) {
    const Total<W> after = join(mode, mine, {widen(x[at(i)]), true});
    out[at(i)] = narrow<T>(!exclusive ? after.value : mine.any ? mine.value : start);
    mine = after;
  }
}

} // namespace

// scan: a block per unit. scan_warps: lines that are dense and short, one per warp.
#define TRESSEL_SCAN(suffix, T)                                                                                        \
  TRESSEL_DEVICE(scan_##suffix) {                                                                                      \
    TRESSEL_SHARED_POOL(pool, kThreads * sizeof(WideOf<T>));                                                           \
    TRESSEL_SHARED_POOL(flags, kThreads * sizeof(int));                                                                \
    auto *values = reinterpret_cast<TRESSEL_SHARED WideOf<T> *>(pool);                                                 \
    auto *present = reinterpret_cast<TRESSEL_SHARED int *>(flags);                                                     \
    const T *x = static_cast<const T *>(buffers[0]);                                                                   \
    T *out = static_cast<T *>(buffers[1]);                                                                             \
    const int64_t size = params[1], line = int64_t(blockIndex()) * size;                                               \
    if (params[2] == 1)                                                                                                \
      scanLine<T, kThreads / kWarp>(x + line, out + line, size, static_cast<Mode>(params[3]), params[4] != 0,          \
                                    params[5] != 0, values, present);                                                  \
    else                                                                                                               \
      scanColumns<T>(x, out, params, values, present);                                                                 \
    (void)context, (void)status;                                                                                       \
  }                                                                                                                    \
  TRESSEL_DEVICE(scan_warps_##suffix) {                                                                                \
    const int64_t size = params[1], number = int64_t(blockIndex()) * (kThreads / kWarp) + threadIndex() / kWarp;       \
    if (number >= params[0])                                                                                           \
      return;                                                                                                          \
    scanLine<T, 1>(static_cast<const T *>(buffers[0]) + number * size, static_cast<T *>(buffers[1]) + number * size,   \
                   size, static_cast<Mode>(params[3]), params[4] != 0, params[5] != 0, nullptr, nullptr);              \
    (void)context, (void)status;                                                                                       \
  }
TRESSEL_FOR_ALL_TYPES(TRESSEL_SCAN)

} // namespace tressel::device
