// Rows that memory bounds: elementwise programs and updates of Variables against memcpy, operations along rows
// against oneDNN.
#pragma once

#include "Bench.h"

namespace tressel::bench {

/// The arms of fusion.NAME.memcpy-share, state.update, row.softmax and row.layernorm; empty for other rows.
Arms memoryArms(const std::string &row);

/// Rows of a classifier, of a transformer, many short ones, few long ones.
inline std::vector<std::pair<int64_t, int64_t>> rowShapes() {
  return {{1024, 1024}, {256, 768}, {16384, 128}, {32, 50257}};
}

/// oneDNN's softmax (without `scaled`) or layer norm along the rows of x[rows, columns]. Prepared once per kind and
/// shape.
const LibraryCall &libraryRows(bool scaled, int64_t rows, int64_t columns);

/// How often one call is repeated for one figure, in seconds.
inline constexpr double kRowSeconds = 16e-3;

} // namespace tressel::bench
