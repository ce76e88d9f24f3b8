// Predicted times of the device library's kernels, from data sheets: no kernel was measured for them.
#pragma once

#include "codegen/cuda/target/Arch.h"
#include "tressel/runtime/Types.h"

#include <cstdint>

namespace tressel::codegen::cuda {

/// Of the architecture's typical card.
struct Peak {
  double flops;          ///< multiply-adds count as two; of f32, or of matrix instructions for 16-bit floats
  double bytesPerSecond; ///< of its memory
};
Peak peakOf(const Arch &arch, DType type);

/// A product by tiles of rows x columns: whole waves of blocks over the multiprocessors, or the bytes if they take
/// longer. `efficiency`: share of a multiprocessor's arithmetic that a block reaches. For as many steps of the depth as
/// are on their way at once, a block waits at least once for memory.
struct TiledWork {
  double blocks, rows, columns, depth, step, efficiency, bytes, atOnce = 2;
};
double tiledSeconds(const TiledWork &work, const Arch &arch, DType type);
/// That the blocks of a cluster take to meet and to read each other's sums, a tile of rows x columns in all.
double exchangeSeconds(double rows, double columns);
/// Of work that moves bytes once, in few operations.
double streamedSeconds(double bytes, const Arch &arch);

} // namespace tressel::codegen::cuda
