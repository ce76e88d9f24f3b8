// Attention of one head, per instruction-set level (Levels.h).
#pragma once

#include <cstdint>

namespace tressel::kernels {

/// out = softmax(scale * q k^T + mask) v for some queries of one head. All matrices are dense and row-major.
struct AttentionHead {
  int64_t queries = 1, keys = 1, size = 1, width = 1; ///< q [queries, size], k [keys, size], v [keys, width]
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  float *out = nullptr; ///< [queries, width]
  float scale = 1;
  bool causal = false; ///< query i sees the keys 0 to i + firstQuery
  int64_t firstQuery = 0;
  const float *added = nullptr;   ///< mask row of the first query, added to the scores; or
  const uint8_t *shown = nullptr; ///< mask row of the first query in which 0 hides a key
  int64_t maskRow = 0;            ///< elements from the mask row of a query to the next
  float *scratch = nullptr;       ///< attentionScratchFloats(), 64-byte aligned
};

/// Queries whose scores are in scratch memory at a time.
constexpr int64_t kQueriesAtOnce = 48;
/// With up to this many queries, keys and values are not packed.
constexpr int64_t kFewQueries = 8;

struct AttentionKernels {
  void (*attend)(const AttentionHead &);
};
extern const AttentionKernels attentionBaseline, attentionV3, attentionV4;

} // namespace tressel::kernels
