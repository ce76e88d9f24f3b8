// The tiles that the device library's products and convolutions are instantiated for (device/Tile.h).
#pragma once

#include "codegen/cuda/library/DeviceCost.h"
#include "tressel/runtime/Dim.h"

#include <cmath>
#include <span>

namespace tressel::codegen::cuda {

/// A size as costs see it.
inline double typical(Size size) { return static_cast<double>(dim::hint(size)); }

struct TileShape {
  const char *name; ///< the function's suffix
  int64_t rows, columns, step;
  int threads;
  double efficiency;
  int stages = 2; ///< steps of the depth that are on their way at once

  Size tiles(Size m, Size n) const { return dim::ceilDiv(m, Size(rows)) * dim::ceilDiv(n, Size(columns)); }
  /// `parts`: blocks that share the depth of each tile.
  double seconds(double m, double n, double k, double batch, double bytes, const Arch &arch, DType type,
                 double parts = 1) const {
    const auto r = static_cast<double>(rows), c = static_cast<double>(columns);
    return tiledSeconds({batch * std::ceil(m / r) * std::ceil(n / c) * parts, r, c, k / parts,
                         static_cast<double>(step), efficiency, bytes, static_cast<double>(stages)},
                        arch, type) +
           (parts > 1 ? exchangeSeconds(r, c) : 0);
  }
};
std::span<const TileShape> tileShapes(DType type);
/// For products of 16-bit floats by Arch::multiplier; none if it is None.
std::span<const TileShape> copiedTiles(const Arch &arch);

/// The cheapest of the tiles for `batch` products, or the one of the name `wanted`; null if there is none. `parts`:
/// blocks of a cluster that share the depth of a tile, 0: as many as pay.
struct TileChoice {
  const TileShape *tile = nullptr;
  Size blocks;
  double seconds = 0;
  Size parts = 1;
};
TileChoice chooseTile(std::span<const TileShape> tiles, Size m, Size n, Size k, Size batch, double bytes,
                      const Arch &arch, DType type, std::string_view wanted, int parts = 1);

/// How an operand is read: along its depth or its rows, and whether 16 bytes at a time.
struct OperandForm {
  bool alongDepth, vectors;
};
OperandForm operandForm(Size rows, Size rowStride, Size depths, Size depthStride, Size batchStride, DType type);

} // namespace tressel::codegen::cuda
