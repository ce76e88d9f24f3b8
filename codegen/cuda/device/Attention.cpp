// softmax(scale * q k^T + mask) v in one pass over the keys, with the softmax corrected as larger scores appear (Dao et
// al., "FlashAttention", 2022; Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). A block has
// 64 queries of one head and some columns of the result, a warp 16 of the queries. Buffers: q [heads, queries, size], k
// [heads / shared, keys, size], v [heads / shared, keys, width], mask or null, result. params: KernelForm's
// (ir/op/KernelForms.cpp): heads, shared, queries, keys, size, width, causal, bits of the scale as a double; then of
// the mask: heads, shared, row; then whether there is a mask, 1: added, 2: of bools, which hides.
#include "codegen/cuda/device/Tile.h"

namespace tressel::device {
namespace {

inline constexpr int kQueries = 64, kWarps = 4;
inline constexpr float kHidden = -__builtin_inff();

struct Attention {
  int64_t heads, shared, queries, keys, size, width;
  bool causal;
  float scale;
  int64_t maskHeads, maskShared, maskRow;
  int mask;

  TRESSEL_INLINE explicit Attention(const int64_t *p)
      : heads(p[0]), shared(p[1]), queries(p[2]), keys(p[3]), size(p[4]), width(p[5]), causal(p[6] != 0),
        scale(static_cast<float>(__builtin_bit_cast(double, p[7]))), maskHeads(p[8]), maskShared(p[9]), maskRow(p[10]),
        mask(static_cast<int>(p[11])) {}
};

/// What a block does.
struct Place {
  int64_t head, query, column, keys; ///< no query of the block sees the keys from there on
  TRESSEL_INLINE Place(const Attention &a, int columns) {
    const int64_t chunks = ceilDiv(a.width, columns), blocks = ceilDiv(a.queries, kQueries),
                  rest = blockIndex() / chunks;
    column = blockIndex() % chunks * columns;
    // The last queries, which see most keys where it is causal, begin first.
    query = (blocks - 1 - rest % blocks) * kQueries;
    head = rest / blocks;
    keys = a.causal ? least(a.keys, query + kQueries) : a.keys;
  }
};

/// e^x for x <= 0, to about one unit in the last place; less than e^-87 is 0, NaN stays.
TRESSEL_INLINE float exponential(float x) {
  // x = n ln 2 + r: adding 1.5 * 2^23 leaves n, rounded, in the lowest bits.
  const float clamped = x < -87.0f ? -87.0f : x, shift = 12582912.0f;
  const float shifted = __builtin_fmaf(clamped, 1.44269504f, shift), n = shifted - shift;
  const float r = __builtin_fmaf(n, 2.12194440e-4f, __builtin_fmaf(n, -0.693359375f, clamped));
  float p = 0.00829764828f; // of least relative error for |r| <= ln 2 / 2: 1.4e-7
  p = __builtin_fmaf(p, r, 0.0419154316f);
  p = __builtin_fmaf(p, r, 0.166675746f);
  p = __builtin_fmaf(p, r, 0.499988943f);
  p = __builtin_fmaf(p, r, 0.999999702f);
  p = __builtin_fmaf(p, r, 1.00000012f);
  const float power = __builtin_bit_cast(float, (__builtin_bit_cast(uint32_t, shifted) << 23) + (127u << 23));
  return x < -87.0f ? 0.0f : p * power;
}

/// The mask of one head; scores as they enter the softmax.
template <class T> struct Masked {
  const Attention &a;
  const void *base;
  TRESSEL_INLINE Masked(const Attention &a, const void *mask, int64_t head) : a(a), base(mask) {
    const int64_t first = a.mask ? head / a.maskShared % a.maskHeads * (a.maskRow ? a.queries * a.maskRow : a.keys) : 0;
    if (a.mask)
      base = static_cast<const char *>(mask) + first * static_cast<int64_t>(a.mask == 1 ? sizeof(T) : 1);
  }
  TRESSEL_INLINE float operator()(float score, int64_t query, int64_t key) const {
    if (key >= a.keys || query >= a.queries || (a.causal && key > query))
      return kHidden;
    const float x = score * a.scale;
    const int64_t at = query * a.maskRow + key;
    if (a.mask == 1)
      return x + widen(static_cast<const T *>(base)[at]);
    if (a.mask == 2)
      return static_cast<const uint8_t *>(base)[at] ? x : kHidden;
    return x;
  }
};

/// The softmax of a row so far.
struct Row {
  float most = kHidden, sum = 0;
  /// Takes the largest of more scores; what was summed before counts by the factor returned.
  TRESSEL_INLINE float raise(float score) {
    const float before = most;
    most = score > most ? score : most;
    return before == most ? 1 : exponential(before - most);
  }
  /// The weight of a score; while all are hidden, 0.
  TRESSEL_INLINE float weigh(float score) const { return exponential(score - (most == kHidden ? 0 : most)); }
};
/// Over the lanes that differ in the lowest bits.
template <int Lanes, class Fn> TRESSEL_INLINE float reduceLanes(float x, Fn combine) {
  const int lane = threadIndex() % kWarp;
#pragma unroll
  for (int step = 1; step < Lanes; step *= 2)
    x = combine(x, shuffle(x, lane ^ step));
  return x;
}
TRESSEL_INLINE float larger(float a, float b) { return a > b ? a : b; }
TRESSEL_INLINE float plus(float a, float b) { return a + b; }

// --- f32
// ---------------------------------------------------------------------------------------------------------------

/// Two products by multiply-adds whose threads have the same rows; the weights go from one to the other through shared
/// memory.
template <int Width>
TRESSEL_INLINE void attend(void *const *buffers, const int64_t *params, TRESSEL_SHARED char *pool) {
  constexpr int kKeys = 32;
  using Scores = FmaTile<kQueries, kKeys, 16, 4, 4, 1>;
  using Values = FmaTile<kQueries, Width, kKeys, 4, Width / 8, 1>;
  using Operand = Strided<float>;
  const Attention a(params);
  const Place place(a, Width);
  const int64_t group = place.head / a.shared;
  const bool wholeSize = a.size % 4 == 0, wholeWidth = a.width % 4 == 0;
  const Operand q{static_cast<const float *>(buffers[0]) + place.head * a.queries * a.size,
                  a.size,
                  1,
                  a.queries,
                  a.size,
                  true,
                  wholeSize};
  const Operand k{
      static_cast<const float *>(buffers[1]) + group * a.keys * a.size, a.size, 1, a.keys, a.size, true, wholeSize};
  const Operand v{static_cast<const float *>(buffers[2]) + group * a.keys * a.width,
                  1,
                  a.width,
                  a.width,
                  a.keys,
                  false,
                  wholeWidth};
  const Masked<float> masked(a, buffers[3], place.head);
  TRESSEL_SHARED char *const weights = pool + Scores::kBytes;
  const int lane = threadIndex() % kWarp, warp = threadIndex() / kWarp;
  const int firstRow = warp * 16 + lane / 8 * 4; // four rows; a row is spread over eight lanes
  Values values;
  values.clear();
  Row rows[4];
#pragma clang loop unroll(disable)
  for (int64_t key = 0; key < place.keys; key += kKeys) {
    Scores scores;
    scores.clear();
    Fetch<Scores, Operand, kQueries, false> left;
    Fetch<Scores, Operand, kKeys, true> right;
    left.load(q, place.query, 0);
    right.load(k, key, 0);
#pragma clang loop unroll(disable)
    for (int64_t next = Scores::BK;; next += Scores::BK) {
      barrier();
      left.store(pool, true);
      right.store(pool, true);
      barrier();
      const bool more = next < a.size;
      if (more) {
        left.load(q, place.query, next);
        right.load(k, key, next);
      }
      scores.compute(pool, true, true);
      if (!more)
        break;
    }
    Fetch<Values, Operand, Width, true> held;
    held.load(v, place.column, key);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float most = kHidden;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float &x = scores.sum[i][j];
        x = masked(x, place.query + firstRow + i, key + lane % 8 * 4 + j);
        most = larger(x, most);
      }
      const float factor = rows[i].raise(reduceLanes<8>(most, larger));
      float sum = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        scores.sum[i][j] = rows[i].weigh(scores.sum[i][j]);
        sum += scores.sum[i][j];
      }
      rows[i].sum = rows[i].sum * factor + reduceLanes<8>(sum, plus);
#pragma unroll
      for (int j = 0; j < Width / 8; ++j)
        values.sum[i][j] *= factor;
    }
    auto *to = reinterpret_cast<TRESSEL_SHARED float *>(weights) + lane % 8 * 4 * Values::kLeftRow + firstRow;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      *reinterpret_cast<TRESSEL_SHARED Float4 *>(to + j * Values::kLeftRow) =
          Float4{scores.sum[0][j], scores.sum[1][j], scores.sum[2][j], scores.sum[3][j]};
    held.store(weights, false);
    barrier();
    values.compute(weights, false, false);
  }
  float *out = static_cast<float *>(buffers[4]) + place.head * a.queries * a.width;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t query = place.query + firstRow + i;
    const float share = 1 / rows[i].sum; // of no key: 0 * (1 / 0) is NaN
    if (query < a.queries)
#pragma unroll
      for (int j = 0; j < Width / 8; ++j) {
        const int64_t column = place.column + j / 4 * 32 + lane % 8 * 4 + j % 4;
        if (column < a.width)
          out[query * a.width + column] = values.sum[i][j] * share;
      }
  }
}

// --- 16-bit floats
// -----------------------------------------------------------------------------------------------------

template <class T> TRESSEL_INLINE uint32_t pair(float low, float high) {
  const T a = narrow<T>(low), b = narrow<T>(high);
  return static_cast<uint32_t>(__builtin_bit_cast(uint16_t, a)) | static_cast<uint32_t>(__builtin_bit_cast(uint16_t, b))
                                                                      << 16;
}
template <class T> TRESSEL_INLINE void multiply(float *c, const uint32_t *a, const uint32_t *b) {
  if constexpr (__is_same(T, Half))
    tressel_mma_f16(c, a, b);
  else
    tressel_mma_bf16(c, a, b);
}

/// Rows [first, first + Rows) of a matrix with `columns` columns, from column `from` on, as Columns columns in shared
/// memory; what is not there is 0. Rows are 16 bytes longer, so that those of a matrix are in different banks.
template <int Rows, int Columns, class T>
TRESSEL_INLINE void stage(TRESSEL_SHARED char *to, const T *x, int64_t first, int64_t rows, int64_t from,
                          int64_t columns) {
  const bool whole = columns % 8 == 0;
#pragma unroll
  for (int s = 0; s < Rows * Columns / 8 / (kWarps * kWarp); ++s) {
    const int pack = threadIndex() + s * kWarps * kWarp, row = pack / (Columns / 8), column = pack % (Columns / 8) * 8;
    Pack<T, 8> v = {};
    if (first + row < rows) {
      const T *p = x + (first + row) * columns + from + column;
      const int64_t left = columns - from - column;
      if (whole) {
        if (left > 0)
          v = *reinterpret_cast<const Pack<T, 8> *>(p);
      } else {
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (i < left)
            v.e[i] = p[i];
      }
    }
    *reinterpret_cast<TRESSEL_SHARED Word4 *>(to + (row * (Columns + 8) + column) * 2) = __builtin_bit_cast(Word4, v);
  }
}

/// What a thread has of two rows, eight apart.
template <class T, int Width>
TRESSEL_INLINE void storeRows(T *out, const Attention &a, const Place &place, int64_t first, const Row (&rows)[2], const float (&sums)[Width / 8][4]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int64_t query = first + r * 8;
    const float share = 1 / rows[r].sum;
    if (query < a.queries)
#pragma unroll
      for (int j = 0; j < Width / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int64_t column = place.column + j * 8 + threadIndex() % kWarp % 4 * 2 + e;
          if (column < a.width)
            out[query * a.width + column] = narrow<T>(sums[j][r * 2 + e] * share);
        }
  }
}

/// The same by matrix instructions: sizes up to `Size`. Scores and weights stay in registers: those of a result are
/// laid out as those of a left operand are.
template <class T, int Size, int Width, int kKeys>
TRESSEL_INLINE void attendByMatrices(void *const *buffers, const int64_t *params, TRESSEL_SHARED char *pool) {
  constexpr int kSizeRow = (Size + 8) * 2, kWidthRow = (Width + 8) * 2;
  const Attention a(params);
  const Place place(a, Width);
  const int64_t group = place.head / a.shared;
  const T *k = static_cast<const T *>(buffers[1]) + group * a.keys * a.size;
  const T *v = static_cast<const T *>(buffers[2]) + group * a.keys * a.width;
  const Masked<T> masked(a, buffers[3], place.head);
  TRESSEL_SHARED char *const valuesAt = pool + kKeys * kSizeRow;
  const int lane = threadIndex() % kWarp, warp = threadIndex() / kWarp, matrix = lane / 8, line = lane % 8;
  stage<kQueries, Size>(pool, static_cast<const T *>(buffers[0]) + place.head * a.queries * a.size, place.query,
                        a.queries, 0, a.size);
  barrier();
  uint32_t q[Size / 16][4];
#pragma unroll
  for (int d = 0; d < Size / 16; ++d)
    tressel_ldmatrix(q[d], pool + (warp * 16 + matrix % 2 * 8 + line) * kSizeRow + (d * 16 + matrix / 2 * 8) * 2);
  float sums[Width / 8][4];
#pragma unroll
  for (int j = 0; j < Width / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      sums[j][e] = 0;
  Row rows[2]; // lane / 4 and 8 more; a row is spread over four lanes
#pragma clang loop unroll(disable)
  for (int64_t key = 0; key < place.keys; key += kKeys) {
    barrier();
    stage<kKeys, Size>(pool, k, key, a.keys, 0, a.size);
    stage<kKeys, Width>(valuesAt, v, key, a.keys, place.column, a.width);
    barrier();
    float scores[kKeys / 8][4];
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        scores[j][e] = 0;
#pragma unroll
    for (int d = 0; d < Size / 16; ++d)
#pragma unroll
      for (int j = 0; j < kKeys / 16; ++j) {
        uint32_t b[4];
        tressel_ldmatrix(b, pool + (j * 16 + matrix / 2 * 8 + line) * kSizeRow + (d * 16 + matrix % 2 * 8) * 2);
        multiply<T>(scores[2 * j], q[d], b);
        multiply<T>(scores[2 * j + 1], q[d], b + 2);
      }
    float most[2] = {kHidden, kHidden}, sum[2] = {0, 0}, factor[2];
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float &x = scores[j][e];
        x = masked(x, place.query + warp * 16 + lane / 4 + e / 2 * 8, key + j * 8 + lane % 4 * 2 + e % 2);
        most[e / 2] = larger(x, most[e / 2]);
      }
#pragma unroll
    for (int r = 0; r < 2; ++r)
      factor[r] = rows[r].raise(reduceLanes<4>(most[r], larger));
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        scores[j][e] = rows[e / 2].weigh(scores[j][e]);
        sum[e / 2] += scores[j][e];
      }
#pragma unroll
    for (int r = 0; r < 2; ++r)
      rows[r].sum = rows[r].sum * factor[r] + reduceLanes<4>(sum[r], plus);
#pragma unroll
    for (int j = 0; j < Width / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[j][e] *= factor[e / 2];
#pragma unroll
    for (int s = 0; s < kKeys / 16; ++s) {
      const float(&x)[4] = scores[2 * s], (&y)[4] = scores[2 * s + 1];
      const uint32_t weights[4] = {pair<T>(x[0], x[1]), pair<T>(x[2], x[3]), pair<T>(y[0], y[1]), pair<T>(y[2], y[3])};
#pragma unroll
      for (int j = 0; j < Width / 16; ++j) {
        uint32_t b[4];
        tressel_ldmatrix_trans(b,
                               valuesAt + (s * 16 + matrix % 2 * 8 + line) * kWidthRow + (j * 16 + matrix / 2 * 8) * 2);
        multiply<T>(sums[2 * j], weights, b);
        multiply<T>(sums[2 * j + 1], weights, b + 2);
      }
    }
  }
  storeRows<T, Width>(static_cast<T *>(buffers[4]) + place.head * a.queries * a.width, a, place, place.query + warp * 16 + lane / 4, rows, sums);
}

} // namespace

#define TRESSEL_ATTENTION_F32(width)                                                                                   \
  TRESSEL_DEVICE(attention_f32_##width) {                                                                              \
    TRESSEL_SHARED_POOL(pool, 16 * (kQueries + 4 + 36) * 4 + 32 * (kQueries + 4 + width + 4) * 4);                     \
    attend<width>(buffers, params, pool);                                                                              \
    (void)context, (void)status;                                                                                       \
  }
TRESSEL_ATTENTION_F32(64)
TRESSEL_ATTENTION_F32(128)

#define TRESSEL_ATTENTION(type, T, size, width, keys)                                                                  \
  TRESSEL_DEVICE(attention_##type##_##size##_##width) {                                                                \
    TRESSEL_SHARED_POOL(pool, poolBytes(kQueries *(size + 8) * 2, keys * (size + 8 + width + 8) * 2));                 \
    attendByMatrices<T, size, width, keys>(buffers, params, pool);                                                     \
    (void)context, (void)status;                                                                                       \
  }
// As many keys at once as registers are left for.
TRESSEL_ATTENTION(f16, Half, 64, 64, 64)
TRESSEL_ATTENTION(f16, Half, 128, 128, 32)
TRESSEL_ATTENTION(bf16, BFloat16, 64, 64, 64)
TRESSEL_ATTENTION(bf16, BFloat16, 128, 128, 32)

} // namespace tressel::device
