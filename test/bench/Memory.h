// Rows that memory bounds: elementwise programs against memcpy, operations along rows against oneDNN.
#pragma once

#include "Bench.h"

namespace tressel::bench {

/// The arms of fusion.NAME.memcpy-share, row.softmax and row.layernorm; empty for other rows.
Arms memoryArms(const std::string &row);

/// The arm "onednn" of row.softmax (without `scaled`) or row.layernorm: seconds of one call over x[rows, columns], on as
/// many threads as OMP_NUM_THREADS says.
double libraryRows(bool scaled, int64_t rows, int64_t columns);

/// How often one call is repeated for one figure, in seconds.
inline constexpr double kRowSeconds = 16e-3;

} // namespace tressel::bench
