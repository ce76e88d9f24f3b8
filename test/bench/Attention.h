// The attention of the row row.attention, and the library it is compared with.
#pragma once

#include "Bench.h"

namespace tressel::bench {

/// 12 heads of 64, as in a base transformer.
struct AttentionShape {
  int64_t heads = 12, length, size = 64;
  auto operator<=>(const AttentionShape &) const = default;
};
inline std::vector<AttentionShape> attentionShapes() { return {{.length = 128}, {.length = 256}, {.length = 512}}; }

inline constexpr double kAttentionSeconds = 16e-3;

/// oneDNN's matrix product, softmax and matrix product over all heads, the scale folded into the first. Prepared once
/// per shape.
const LibraryCall &libraryAttention(const AttentionShape &shape);

} // namespace tressel::bench
