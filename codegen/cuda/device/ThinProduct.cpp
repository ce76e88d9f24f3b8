// Products of which one side has 1 to 8 rows: a matrix, the wide operand, is read once, and each of its elements meets
// those of the thin operand.
// params: batch, thin (rows of the thin operand), wide, k; the thin operand's strides of batch, row, k; the wide one's;
// the result's strides of thin and wide; elements that are read at once along the dimension whose stride is 1 (or 1);
// and, of the form along the depth, warps that share a row (1 or all).
#include "codegen/cuda/device/Gpu.h"

namespace tressel::device {
namespace {

inline constexpr int kWarps = 8;

template <class T> struct Thin {
  int64_t batch, thin, wide, depth;
  const T *left, *right;
  int64_t leftRow, leftDepth, rightRow, rightDepth, outThin, outWide;

  TRESSEL_INLINE Thin(void *const *buffers, const int64_t *p)
      : batch(p[0]), thin(p[1]), wide(p[2]), depth(p[3]), left(static_cast<const T *>(buffers[0])),
        right(static_cast<const T *>(buffers[1])), leftRow(p[5]), leftDepth(p[6]), rightRow(p[8]), rightDepth(p[9]),
        outThin(p[10]), outWide(p[11]) {}
  TRESSEL_INLINE void select(int64_t b, const int64_t *p) {
    left += b * p[4];
    right += b * p[7];
  }
  TRESSEL_INLINE int64_t index(int64_t b, int64_t t, int64_t w) const {
    return b * thin * wide + t * outThin + w * outWide;
  }
};

/// sum[t] += the products of elements d, d + 1, ... of each thin row with those of `x`.
template <int Rows, int V, class T>
TRESSEL_INLINE void addAlongDepth(float (&sum)[Rows], const Thin<T> &g, int64_t d, const Pack<T, V> &x) {
#pragma unroll
  for (int t = 0; t < Rows; ++t)
    if (t < g.thin) {
      const T *y = g.left + t * g.leftRow + d * g.leftDepth;
#pragma unroll
      for (int i = 0; i < V; ++i)
        sum[t] += widen(x.e[i]) * widen(y[i * g.leftDepth]);
    }
}

/// The wide operand's rows lie along the depth: a warp (or the warps of a block) reads a row.
template <class T, int Rows, int V>
TRESSEL_INLINE void alongDepth(void *const *context, Thin<T> g, const int64_t *p, bool shareRow,
                               TRESSEL_SHARED float *partial) {
  const int lane = threadIndex() % kWarp, warp = threadIndex() / kWarp;
  const int64_t row = shareRow ? blockIndex() : int64_t(blockIndex()) * kWarps + warp;
  if (row >= g.batch * g.wide) // never if warps share a row
    return;
  const int64_t b = row / g.wide, w = row % g.wide;
  g.select(b, p);
  const T *x = g.right + w * g.rightRow;
  float sum[Rows] = {};
  const int64_t step = (shareRow ? kWarps : 1) * kWarp * V;
#pragma clang loop unroll_count(Rows > 2 ? 1 : 4)
  for (int64_t d = (shareRow ? threadIndex() : lane) * V; d < g.depth; d += step) {
    Pack<T, V> v;
    if constexpr (V > 1)
      v = *reinterpret_cast<const Pack<T, V> *>(x + d);
    else
      v.e[0] = x[d * g.rightDepth];
    addAlongDepth<Rows, V>(sum, g, d, v);
  }
#pragma unroll
  for (int t = 0; t < Rows; ++t)
    sum[t] = warpSum(sum[t]);
  float mine = 0; // lane t stores the sum of thin row t
#pragma unroll
  for (int t = 0; t < Rows; ++t)
    mine = lane == t ? sum[t] : mine;
  if (shareRow) {
    if (lane < Rows)
      partial[warp * Rows + lane] = mine;
    barrier();
    mine = 0;
    if (warp == 0 && lane < Rows)
      for (int other = 0; other < kWarps; ++other)
        mine += partial[other * Rows + lane];
    if (warp != 0)
      return;
  }
  if (lane < g.thin)
    tressel_epilogue(context, mine, g.index(b, lane, w));
}

/// The wide operand's rows are neighbours: a lane has V of them, and the warps of a block share the depth.
template <class T, int Rows, int V>
TRESSEL_INLINE void alongRows(void *const *context, Thin<T> g, const int64_t *p, TRESSEL_SHARED float *partial) {
  constexpr int kRow = kWarp * V;
  const int lane = threadIndex() % kWarp, warp = threadIndex() / kWarp;
  const int64_t blocks = ceilDiv(g.wide, kRow), b = blockIndex() / blocks;
  const int64_t first = blockIndex() % blocks * kRow, w = first + lane * V;
  g.select(b, p);
  float sum[Rows][V] = {};
  if (w < g.wide) { // V divides it
#pragma clang loop unroll_count(4)
    for (int64_t d = warp; d < g.depth; d += kWarps) {
      const T *x = g.right + w * g.rightRow + d * g.rightDepth;
      const auto v = *reinterpret_cast<const Pack<T, V> *>(x);
#pragma unroll
      for (int t = 0; t < Rows; ++t)
        if (t < g.thin) {
          const float y = widen(g.left[t * g.leftRow + d * g.leftDepth]);
#pragma unroll
          for (int i = 0; i < V; ++i)
            sum[t][i] += widen(v.e[i]) * y;
        }
    }
  }
  for (int i = threadIndex(); i < Rows * kRow; i += kWarps * kWarp)
    partial[i] = 0;
  barrier();
#pragma clang loop unroll(disable)
  for (int turn = 0; turn < kWarps; ++turn) {
    if (warp == turn)
#pragma unroll
      for (int t = 0; t < Rows; ++t)
#pragma unroll
        for (int i = 0; i < V; ++i)
          partial[t * kRow + i * kWarp + lane] += sum[t][i];
    barrier();
  }
#pragma clang loop unroll(disable)
  for (int i = threadIndex(); i < Rows * kRow; i += kWarps * kWarp) {
    const int t = i / kRow, column = i % kRow;
    if (t < g.thin && first + column < g.wide)
      tressel_epilogue(context, partial[t * kRow + column % V * kWarp + column / V], g.index(b, t, first + column));
  }
}

} // namespace

#define TRESSEL_THIN(type, T, rows)                                                                                    \
  TRESSEL_DEVICE(thin_depth_##type##_##rows) {                                                                         \
    TRESSEL_SHARED_POOL(pool, kWarps *rows * 4);                                                                       \
    constexpr int V = 16 / sizeof(T);                                                                                  \
    auto *partial = reinterpret_cast<TRESSEL_SHARED float *>(pool);                                                    \
    const Thin<T> g(buffers, params);                                                                                  \
    if (params[12] == V)                                                                                               \
      alongDepth<T, rows, V>(context, g, params, params[13] != 1, partial);                                            \
    else                                                                                                               \
      alongDepth<T, rows, 1>(context, g, params, params[13] != 1, partial);                                            \
    (void)status;                                                                                                      \
  }                                                                                                                    \
  TRESSEL_DEVICE(thin_rows_##type##_##rows) {                                                                          \
    TRESSEL_SHARED_POOL(pool, rows *kWarp * 4 * 4);                                                                    \
    auto *partial = reinterpret_cast<TRESSEL_SHARED float *>(pool);                                                    \
    const Thin<T> g(buffers, params);                                                                                  \
    if (params[12] == 4)                                                                                               \
      alongRows<T, rows, 4>(context, g, params, partial);                                                              \
    else                                                                                                               \
      alongRows<T, rows, 1>(context, g, params, partial);                                                              \
    (void)status;                                                                                                      \
  }
#define TRESSEL_THIN_ALL(type, T)                                                                                      \
  TRESSEL_THIN(type, T, 1)                                                                                             \
  TRESSEL_THIN(type, T, 2)                                                                                             \
  TRESSEL_THIN(type, T, 4)                                                                                             \
  TRESSEL_THIN(type, T, 8)
TRESSEL_THIN_ALL(f32, float)
TRESSEL_THIN_ALL(f16, Half)
TRESSEL_THIN_ALL(bf16, BFloat16)

} // namespace tressel::device
