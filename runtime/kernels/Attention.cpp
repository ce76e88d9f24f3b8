// Attention at one level: two products with a softmax between them, for as many queries as keep their scores in L2. Keys
// and values are packed once for all of a call's queries.
#include "Attention.h"
#include "Product.h"
#include "Vector.h"

namespace tressel::kernels {
namespace {

typedef uint32_t BitVector __attribute__((vector_size(kLanes * sizeof(uint32_t))));

/// e^x for x <= 0, to about one unit in the last place; less than e^-87 is 0, NaN stays.
Vector exponential(Vector x) {
  const Vector least = broadcast(-87);
  const auto tiny = x < least;
  x = tiny ? least : x;
  // x = n ln 2 + r: adding 1.5 * 2^23 leaves n, rounded, in the lowest bits.
  const Vector shift = broadcast(12582912);
  const Vector shifted = x * 1.44269504f + shift, n = shifted - shift;
  const Vector r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Vector p = broadcast(1.0f / 5040);
  constexpr float factors[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
  for (const float factor : factors)
    p = p * r + factor;
  const auto power = reinterpret_cast<Vector>((reinterpret_cast<BitVector>(shifted) << 23) + (127u << 23));
  return tiny ? Vector{} : p * power;
}

/// Turns a row of scores into e^(scale * score - the largest); returns 1 / their sum. `row` has room for whole vectors.
float weigh(float *row, int64_t visible, int64_t keys, float scale) {
  const int64_t vectors = ceilDiv(visible, kLanes);
  for (int64_t i = visible; i < vectors * kLanes; ++i)
    row[i] = scale < 0 ? __builtin_inff() : -__builtin_inff();
  Vector largest = broadcast(-__builtin_inff());
  for (int64_t i = 0; i < vectors; ++i) {
    const Vector x = load(row + i * kLanes) * scale;
    largest = x > largest ? x : largest;
  }
  float most = largest[0];
  for (int lane = 1; lane < kLanes; ++lane)
    most = largest[lane] > most ? largest[lane] : most;
  Vector sum = {};
  for (int64_t i = 0; i < vectors; ++i) {
    const Vector e = exponential(load(row + i * kLanes) * scale - most);
    store(row + i * kLanes, e);
    sum += e;
  }
  for (int64_t i = visible; i < keys; ++i)
    row[i] = 0;
  float total = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    total += sum[lane];
  return 1 / total;
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
  const int64_t blocks = ceilDiv(h.queries, kQueriesAtOnce);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = part(h.queries, blocks, block), queries = part(h.queries, blocks, block + 1) - first;
    scores.rows = values.rows = queries;
    scores.a = h.q + first * h.size, scores.c = weights;
    products.multiply(scores);
    float shares[kQueriesAtOnce];
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t visible = h.causal ? least(h.keys, h.firstQuery + first + i + 1) : h.keys;
      shares[i] = weigh(weights + i * rowFloats, visible, h.keys, h.scale);
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
