// The tiles that the device library's products and convolutions are instantiated for (device/Tile.h).
#pragma once

#include "codegen/cuda/library/DeviceCost.h"
#include "tressel/runtime/Dim.h"

#include <cmath>
#include <span>

namespace tressel::codegen::cuda {

/// A size as costs see it.
inline double typical(int64_t size) { return static_cast<double>(dim::hint(size)); }

struct TileShape {
  const char *name; ///< the function's suffix
  int64_t rows, columns, step;
  int threads;
  double efficiency;

  int64_t tiles(int64_t m, int64_t n) const { return dim::mul(dim::ceilDiv(m, rows), dim::ceilDiv(n, columns)); }
  double seconds(double m, double n, double k, double batch, double bytes, const Arch &arch, DType type) const {
    const auto r = static_cast<double>(rows), c = static_cast<double>(columns);
    return tiledSeconds(
        {batch * std::ceil(m / r) * std::ceil(n / c), r, c, k, static_cast<double>(step), efficiency, bytes}, arch,
        type);
  }
};
std::span<const TileShape> tileShapes(DType type);

/// The cheapest of the tiles for `batch` products, or the one of the name `wanted`; null if there is none.
struct TileChoice {
  const TileShape *tile = nullptr;
  int64_t blocks = 0;
  double seconds = 0;
};
TileChoice chooseTile(int64_t m, int64_t n, int64_t k, int64_t batch, double bytes, const Arch &arch, DType type,
                      std::string_view wanted);

/// How an operand is read: along its depth or its rows, and whether 16 bytes at a time.
struct OperandForm {
  bool alongDepth, vectors;
};
OperandForm operandForm(int64_t rows, int64_t rowStride, int64_t depths, int64_t depthStride, int64_t batchStride,
                        DType type);

} // namespace tressel::codegen::cuda
