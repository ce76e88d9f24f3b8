// Attention at one level: two products with a softmax between them, for blocks of queries whose scores stay in L2. Keys
// and values are packed once for all queries of a call.
#include "Attention.h"
#include "PartialVector.h"
#include "Product.h"

namespace tressel::kernels {
namespace {

typedef uint32_t BitVector __attribute__((vector_size(kLanes * sizeof(uint32_t))));

/// e^x for x <= 0, with an error of about one unit in the last place; 0 for x < -87, NaN for NaN.
[[gnu::always_inline]] inline Vector exponential(Vector x) {
  const Vector least = broadcast(-87);
#if !defined(__AVX512F__)
  const auto tiny = x < least;
  x = tiny ? least : x;
#endif
  // x = n ln 2 + r: adding 1.5 * 2^23 rounds n into the lowest bits.
  const Vector shift = broadcast(12582912);
  const Vector shifted = x * 1.44269504f + shift, n = shifted - shift;
  const Vector r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  // Polynomial of least relative error for |r| <= ln 2 / 2: 1.4e-7.
  Vector p = broadcast(0.00829764828f);
  constexpr float factors[] = {0.0419154316f, 0.166675746f, 0.499988943f, 0.999999702f, 1.00000012f};
  for (const float factor : factors)
    p = p * r + factor;
#if defined(__AVX512F__)
  return Vector(_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ), p, n));
#else
  const auto power = reinterpret_cast<Vector>((reinterpret_cast<BitVector>(shifted) << 23) + (127u << 23));
  return tiny ? Vector{} : p * power;
#endif
}

/// Combines all lanes of a vector, by halves.
template <typename Fn> [[gnu::always_inline]] inline float fold(Vector v, Fn combine) {
#if defined(__AVX512F__)
  const auto half = combine(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                            __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
#else
  const auto half = v;
#endif
#if defined(__AVX2__)
  const auto four =
      combine(__builtin_shufflevector(half, half, 0, 1, 2, 3), __builtin_shufflevector(half, half, 4, 5, 6, 7));
#else
  const auto four = half;
#endif
  const auto two = combine(four, __builtin_shufflevector(four, four, 2, 3, 0, 1));
  return combine(two, __builtin_shufflevector(two, two, 1, 0, 3, 2))[0];
}
constexpr auto larger = [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; };
constexpr auto plus = [](auto a, auto b) __attribute__((always_inline)) { return a + b; };

typedef uint8_t ByteVector __attribute__((vector_size(kLanes), aligned(1), may_alias));

/// Scales the scores and applies the mask.
void mask(float *row, int64_t visible, float scale, const float *added, const uint8_t *shown) {
  int64_t i = 0;
  for (; i + kLanes <= visible; i += kLanes) {
    const Vector x = load(row + i) * scale;
    if (added) {
      store(row + i, x + load(added + i));
    } else {
      const auto bytes = __builtin_convertvector(*reinterpret_cast<const ByteVector *>(shown + i), BitVector);
      store(row + i, bytes != 0 ? x : broadcast(-__builtin_inff()));
    }
  }
  for (; i < visible; ++i)
    row[i] = added ? row[i] * scale + added[i] : shown[i] ? row[i] * scale : -__builtin_inff();
}

/// Replaces a row of scores by e^(scale * score - maximum), and returns 1 / their sum. Writes the first `keys` of the
/// row, which has room for whole vectors.
float weigh(float *row, int64_t visible, int64_t keys, float scale) {
  const int64_t vectors = ceilDiv(visible, kLanes);
  for (int64_t i = visible; i < vectors * kLanes; ++i)
    row[i] = scale < 0 ? __builtin_inff() : -__builtin_inff();
  constexpr int kAtOnce = 4; // independent maxima, to hide latency
  Vector largest[kAtOnce];
  for (Vector &v : largest)
    v = broadcast(-__builtin_inff());
  int64_t i = 0;
  auto look = [&](Vector & so, int64_t at) __attribute__((always_inline)) {
    const Vector x = load(row + at * kLanes) * scale;
    so = larger(x, so);
  };
  for (; i + kAtOnce <= vectors; i += kAtOnce)
#pragma GCC unroll 4
    for (int v = 0; v < kAtOnce; ++v)
      look(largest[v], i + v);
  for (; i < vectors; ++i)
    look(largest[0], i);
  const float most = fold(larger(larger(largest[0], largest[1]), larger(largest[2], largest[3])), larger);
  Vector sum[2] = {};
  auto turn = [&](Vector & so, int64_t at) __attribute__((always_inline)) {
    const Vector e = exponential(load(row + at * kLanes) * scale - most);
    store(row + at * kLanes, e);
    so += e;
  };
  for (i = 0; i + 2 <= vectors; i += 2)
    turn(sum[0], i), turn(sum[1], i + 1);
  if (i < vectors)
    turn(sum[0], i);
  for (int64_t j = visible; j < keys; ++j)
    row[j] = 0;
  return 1 / fold(sum[0] + sum[1], plus);
}

void attend(const AttentionHead &h) {
  const ProductKernels &products = TRESSEL_AT_LEVEL(product);
  const bool packs = h.queries > kFewQueries;
  const int64_t rowFloats = ceilDiv(h.keys, 16) * 16, atOnce = least(h.queries, kQueriesAtOnce);
  Product scores, values;
  scores.right = {h.keys, h.size, atOnce}, values.right = {h.width, h.keys, atOnce};
  scores.aRow = h.size, scores.aDepth = 1, scores.bDepth = 1, scores.bColumn = h.size, scores.cRow = rowFloats;
  values.aRow = rowFloats, values.aDepth = 1, values.bDepth = h.width, values.bColumn = 1, values.cRow = h.width;
  float *const weights = h.scratch, *scratch = weights + atOnce * rowFloats;
  if (packs) {
    float *const packedKeys = scratch, *const packedValues = packedKeys + packedFloats(h.keys, h.size);
    products.pack(scores.right, h.k, scores.bDepth, scores.bColumn, packedKeys);
    products.pack(values.right, h.v, values.bDepth, values.bColumn, packedValues);
    scores.packed = packedKeys, values.packed = packedValues;
  } else {
    scores.b = h.k, values.b = h.v, scores.scratch = values.scratch = scratch;
  }
  for (int64_t first = 0; first < h.queries; first += kQueriesAtOnce) {
    const int64_t queries = least(h.queries - first, kQueriesAtOnce);
    // Keys from here on are hidden from all queries of the block.
    const int64_t keys = h.causal ? least(h.keys, h.firstQuery + first + queries) : h.keys;
    scores.columns = values.depth = keys;
    scores.rows = values.rows = queries;
    scores.a = h.q + first * h.size, scores.c = weights;
    products.multiply(scores);
    float shares[kQueriesAtOnce];
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t visible = h.causal ? least(keys, h.firstQuery + first + i + 1) : keys;
      float *const row = weights + i * rowFloats;
      if (h.added || h.shown) {
        const int64_t at = (first + i) * h.maskRow;
        mask(row, visible, h.scale, h.added ? h.added + at : nullptr, h.shown ? h.shown + at : nullptr);
      }
      shares[i] = weigh(row, visible, keys, h.added || h.shown ? 1 : h.scale);
    }
    values.a = weights, values.c = h.out + first * h.width;
    products.multiply(values);
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < h.width; ++j)
        values.c[i * h.width + j] *= shares[i];
  }
}

} // namespace

extern const AttentionKernels TRESSEL_AT_LEVEL(attention);
const AttentionKernels TRESSEL_AT_LEVEL(attention){attend};

} // namespace tressel::kernels
