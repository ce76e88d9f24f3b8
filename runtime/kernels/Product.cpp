// The driver of matrix products at one level: loops over blocks of depth and rows that fit the caches, then panels of
// the right side, then tiles of rows.
#include "Product.h"
#include "DotTile.h"
#include "Halves.h"
#include "MicroKernel.h"
#include "Transpose.h"

namespace tressel::kernels {
namespace {

static_assert(kMostColumns * kLanes <= kMostColumnsOfPanel);

/// Divides the columns into panels.
struct Panels {
  int64_t vectors, count;
  explicit Panels(const RightSide &right)
      : vectors(ceilDiv(right.n, kLanes)), count(ceilDiv(vectors, widest(right.rows, vectors))) {}
  /// Most vectors of a panel, as measured: 4 for tiles of 6 rows, but 3 for tiles of 8 rows if these fit the number of
  /// rows better.
  static int64_t widest(int64_t rows, int64_t vectors) {
    const bool highTiles = (rows > 6 && rows <= 20) || (rows % 8 == 0 && vectors % 4 != 0);
    return kMostColumns < 4 || !highTiles ? kMostColumns : 3;
  }
  int64_t begin(int64_t panel) const { return part(vectors, count, panel); } // in vectors
};

// --- Other layouts ---------------------------------------------------------------------------------------------------

/// Packs `depth` rows of one panel to `to`.
[[gnu::noinline]] void packPanel(const float *b, int64_t bDepth, int64_t bColumn, int64_t depth, int64_t columns,
                                 int64_t vectors, float *to) {
  const int64_t width = vectors * kLanes;
  if (bColumn == 1 && columns == width) {
    for (int64_t k = 0; k < depth; ++k, b += bDepth)
      for (int64_t v = 0; v < vectors; ++v, to += kLanes)
        store(to, load(b + v * kLanes));
    return;
  }
  int64_t turned = 0; // columns done: whole vectors of them, dense along the depth, are transposed
  if (bDepth == 1 && depth >= kLanes)
    for (; turned + kLanes <= columns; turned += kLanes)
      for (int64_t i = 0; i < ceilDiv(depth, kLanes); ++i) {
        const int64_t k = least(i * kLanes, depth - kLanes); // the last block overlaps with the one before
        Vector block[kLanes];
#pragma GCC unroll 16
        for (int c = 0; c < kLanes; ++c)
          block[c] = load(b + (turned + c) * bColumn + k);
        transpose(block);
#pragma GCC unroll 16
        for (int d = 0; d < kLanes; ++d)
          store(to + (k + d) * width + turned, block[d]);
      }
  if (turned == width)
    return;
  for (int64_t k = 0; k < depth; ++k, b += bDepth, to += width) {
    for (int64_t c = turned; c < columns; ++c)
      to[c] = b[c * bColumn];
    for (int64_t c = columns; c < width; ++c)
      to[c] = 0;
  }
}

/// With up to this many rows, a right side with dense columns is not packed.
constexpr int64_t kRowsOfDots = 8;

/// Packs columns consecutively.
[[gnu::noinline]] void packColumns(const float *b, int64_t bDepth, int64_t bColumn, int64_t depth, int64_t columns,
                                   float *to) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t k = 0; k < depth; ++k)
      *to++ = b[c * bColumn + k * bDepth];
}

void pack(const RightSide &right, const float *b, int64_t bDepth, int64_t bColumn, float *to) {
  if (goesAlongDepth(right, kLanes))
    return packColumns(b, bDepth, bColumn, right.k, right.n, to);
  const Panels panels(right);
  for (int64_t p = 0; p < panels.count; ++p) {
    const int64_t from = panels.begin(p), vectors = panels.begin(p + 1) - from, column = from * kLanes;
    packPanel(b + column * bColumn, bDepth, bColumn, right.k, least(vectors * kLanes, right.n - column), vectors,
              to + column * right.k);
  }
}

/// Copies a block of the left side so that it is dense along the depth. A few rows at a time, so that each cache line
/// is written completely.
[[gnu::noinline]] void copyLeft(const float *a, int64_t aRow, int64_t aDepth, int64_t rows, int64_t depth, float *to,
                                int64_t toRow) {
  constexpr int64_t kAtOnce = 16;
  int64_t r = 0;
  for (; r + kAtOnce <= rows; r += kAtOnce)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t i = 0; i < kAtOnce; ++i)
        to[(r + i) * toRow + k] = a[(r + i) * aRow + k * aDepth];
  for (; r < rows; ++r)
    for (int64_t k = 0; k < depth; ++k)
      to[r * toRow + k] = a[r * aRow + k * aDepth];
}

// --- One panel -------------------------------------------------------------------------------------------------------

/// The product of all rows of a block with one panel.
struct PanelProduct {
  const float *a;
  int64_t aRow, rows;
  const float *b;
  int64_t bRow, depth;
  float *c;
  int64_t cRow, columns, vectors;
  bool add;
  const float *ahead = nullptr; ///< prefetched for the next panel
  int64_t aheadFloats = 0;
  bool soon = false; ///< needed by this panel itself
  bool lone = false; ///< the product has a single row
};

/// A tile whose last vector exceeds the columns: computed in a temporary buffer.
[[gnu::noinline]] void multiplyEdge(TileFn fn, Tile tile, int64_t rows, int64_t columns, int64_t vectors) {
  alignas(64) float aside[kMostRows * kMostColumns * kLanes];
  float *c = tile.c;
  const int64_t cRow = tile.cRow;
  const bool add = tile.add;
  tile.c = aside, tile.cRow = vectors * kLanes, tile.add = false;
  fn(tile);
  const float *from = aside;
  for (int64_t r = 0; r < rows; ++r, c += cRow)
    for (int64_t i = 0; i < columns; i += kLanes, from += kLanes) {
      const Lanes lanes = lanesBetween(0, columns - i);
      store(c + i, add ? load(c + i, lanes) + load(from) : load(from), lanes);
    }
}

[[gnu::noinline]] void multiplyPanel(const PanelProduct &p) {
  const int64_t tiles = ceilDiv(p.rows, rowsOfTile(static_cast<int>(p.vectors)));
  // Each tile prefetches its share.
  const int64_t share = ceilDiv(ceilDiv(p.aheadFloats, 16), tiles), perStep = ceilDiv(share, most(p.depth / 4, 1));
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = part(p.rows, tiles, t), rows = part(p.rows, tiles, t + 1) - first;
    const TileFn fn = rows == 1 && !p.lone ? kTiles.leftOver[p.vectors] : kTiles.of[p.soon][p.vectors][rows];
    const Tile tile{p.a + first * p.aRow,     p.aRow, p.b, p.bRow, p.depth, p.c + first * p.cRow, p.cRow, p.add,
                    p.ahead + t * share * 16, perStep};
    if (p.columns == p.vectors * kLanes)
      fn(tile);
    else
      multiplyEdge(fn, tile, rows, p.columns, p.vectors);
  }
}

/// Sets what a packed panel prefetches: its own rows, or the next panel, if there is one, of `next` columns at `ahead`.
void fetchAhead(PanelProduct &panel, int64_t rightFloats, const float *ahead, int64_t next) {
  if (rightFloats < (1 << 18)) // everything stays in L2
    return;
  // a single tile streams the panel: prefetches 4 KB ahead of itself
  if (panel.rows <= rowsOfTile(static_cast<int>(panel.vectors)))
    panel.ahead = panel.b + 1024, panel.aheadFloats = panel.depth * panel.bRow, panel.soon = true;
  else if (ahead)
    panel.ahead = ahead, panel.aheadFloats = panel.depth * next;
}

/// Buffers for tiles: a split block of the left side, and room for a split panel.
struct SplitBlock {
  const SplitKernels *kernels = nullptr; ///< null: tiles are not used
  int parts = 0;
  char *to = nullptr, *right = nullptr;
  SplitLeft left{};

  void splitLeft(const float *a, int64_t aRow, int64_t rows, int64_t depth) {
    left = {nullptr, 0, 0, rows, 1, depth, parts, a, aRow};
    kernels->splitLeft(left, to);
  }
};
SplitBlock makeSplitBlock(const SplitKernels *kernels, Element element, int64_t depth, char *scratch) {
  if (!kernels)
    return {};
  return {kernels, partsOf(element), scratch + splitBytes(kMostColumnsOfPanel, least(depth, kSplitDepthOfBlock)),
          scratch};
}

/// Uses tiles if possible.
void multiplyPanel(const PanelProduct &p, const SplitBlock &split) {
  if (kLanes != kSplitTile || !split.kernels)
    return multiplyPanel(p);
  const SplitRight right{p.b, p.depth, p.vectors * kLanes, split.parts};
  const Magnitudes magnitudes = split.kernels->splitRight(right, split.right);
  split.kernels->multiply({split.left, right, split.to, split.right, magnitudes, p.columns, p.c, p.cRow, p.add,
                           reinterpret_cast<const char *>(p.ahead), p.aheadFloats * 4});
}

// --- All of it -------------------------------------------------------------------------------------------------------

/// The product of rows and columns that are both dense along the depth.
[[gnu::noinline]] void multiplyByDots(const float *a, int64_t aRow, int64_t rows, const float *b, int64_t bColumn,
                                      int64_t columns, int64_t depth, float *c, int64_t cRow, bool add) {
  const int64_t highs = ceilDiv(rows, kMostDotRows), wides = ceilDiv(columns, kMostDotColumns);
  for (int64_t i = 0; i < highs; ++i) {
    const int64_t row = part(rows, highs, i), numRows = part(rows, highs, i + 1) - row;
    for (int64_t j = 0; j < wides; ++j) {
      const int64_t column = part(columns, wides, j), numColumns = part(columns, wides, j + 1) - column;
      kDotTiles.of[numRows][numColumns](
          {a + row * aRow, aRow, b + column * bColumn, bColumn, depth, c + row * cRow + column, cRow, add});
    }
  }
}

void multiply(const Product &p) {
  const Panels panels(p.right);
  const int64_t k = p.right.k, n = p.right.n, firstPanel = part(panels.count, p.parts, p.part);
  int64_t lastPanel = part(panels.count, p.parts, p.part + 1);
  if (p.columns)
    while (lastPanel > firstPanel && panels.begin(lastPanel - 1) * kLanes >= p.columns)
      --lastPanel;
  if (firstPanel == lastPanel)
    return;
  const int64_t wholeDepth = p.depth ? p.depth : k;
  const bool leftDense = p.aDepth == 1 || k == 1;
  const bool dots = goesAlongDepth(p.right, kLanes) || (p.b && p.unitRows <= kRowsOfDots && p.bDepth == 1 && k > 1);
  const bool splits = kLanes == kSplitTile && p.split && !dots &&
                      isWorthSplitting(p.unitRows, n, /*shortPieces=*/!leftDense, p.packed != nullptr);
  // With few rows, the right side is not packed if its rows are dense; tiles need consecutive rows of a panel to split.
  const bool direct = p.b && p.bColumn == 1 && p.rows <= 8 && !splits;
  SplitBlock split = makeSplitBlock(splits ? p.split : nullptr, Element::F32, wholeDepth, p.splitScratch);
  const int64_t depths = ceilDiv(wholeDepth, splits ? kSplitDepthOfBlock : kDepthOfBlock);
  int64_t blocks = p.b && leftDense ? 1 : ceilDiv(p.rows, kRowsOfBlock);
  if (splits)
    blocks = ceilDiv(p.rows, least(splitRowsOf(ceilDiv(wholeDepth, depths)), leftDense ? p.rows : kRowsOfBlock));
  float *const bAside = p.scratch, *const aAside =
                                       p.scratch + (p.b ? kMostColumnsOfPanel * least(k, kDepthOfBlock) : 0);
  for (int64_t d = 0; d < depths; ++d) {
    const int64_t k0 = part(wholeDepth, depths, d), depth = part(wholeDepth, depths, d + 1) - k0;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row0 = part(p.rows, blocks, block), rows = part(p.rows, blocks, block + 1) - row0;
      const float *a = p.a + row0 * p.aRow + k0 * p.aDepth;
      int64_t aRow = p.aRow;
      if (!leftDense) {
        copyLeft(a, p.aRow, p.aDepth, rows, depth, aAside, depth);
        a = aAside, aRow = depth;
      }
      if (splits)
        split.splitLeft(a, aRow, rows, depth);
      if (dots) {
        const int64_t from = panels.begin(firstPanel) * kLanes, to = least(panels.begin(lastPanel) * kLanes, n);
        const float *b = p.packed ? p.packed + from * k + k0 : p.b + from * p.bColumn + k0 * p.bDepth;
        int64_t bColumn = p.packed ? k : p.bColumn;
        if (!p.packed && p.bDepth != 1) {
          packColumns(b, p.bDepth, p.bColumn, depth, to - from, bAside);
          b = bAside, bColumn = depth;
        }
        multiplyByDots(a, aRow, rows, b, bColumn, to - from, depth, p.c + row0 * p.cRow + from, p.cRow, d > 0);
        continue;
      }
      for (int64_t j = firstPanel; j < lastPanel; ++j) {
        const int64_t from = panels.begin(j), vectors = panels.begin(j + 1) - from, width = vectors * kLanes,
                      column = from * kLanes, columns = least(width, n - column);
        PanelProduct panel{a,      aRow,    rows,    nullptr, width, depth, p.c + row0 * p.cRow + column,
                           p.cRow, columns, vectors, d > 0};
        if (p.packed) {
          panel.b = p.packed + column * k + k0 * width;
          const bool isLast = j + 1 == lastPanel;
          const int64_t next = isLast ? 0 : (panels.begin(j + 2) - panels.begin(j + 1)) * kLanes;
          fetchAhead(panel, n * k, isLast ? nullptr : p.packed + (column + width) * k + k0 * next, next);
        } else if (const float *b = p.b + k0 * p.bDepth + column * p.bColumn; direct && columns == width) {
          panel.b = b, panel.bRow = p.bDepth;
        } else {
          packPanel(b, p.bDepth, p.bColumn, depth, columns, vectors, bAside);
          panel.b = bAside;
        }
        panel.lone = p.unitRows <= 1;
        multiplyPanel(panel, split);
      }
    }
  }
}

// --- Stored in 16 bits -----------------------------------------------------------------------------------------------

/// Floats that are widened before they are arranged, which stay in L1.
constexpr int64_t kWidenedFloats = 4096;

/// copyLeft for 16-bit elements.
[[gnu::noinline]] void widenLeft(Element element, const uint16_t *a, int64_t aRow, int64_t aDepth, int64_t rows,
                                 int64_t depth, float *to) {
  if (aRow != 1 || aDepth == 1) {
    for (int64_t r = 0; r < rows; ++r)
      widen(element, a + r * aRow, aDepth, depth, to + r * depth);
    return;
  }
  alignas(64) float block[kWidenedFloats];
  constexpr int64_t kDepth = kWidenedFloats / kRowsOfBlock;
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t count = least(kDepth, depth - k);
    for (int64_t i = 0; i < count; ++i)
      widen(element, a + (k + i) * aDepth, 1, rows, block + i * rows);
    copyLeft(block, 1, rows, rows, count, to + k, depth);
  }
}

/// packPanel for 16-bit elements.
[[gnu::noinline]] void widenPanel(Element element, const uint16_t *b, int64_t bDepth, int64_t bColumn, int64_t depth,
                                  int64_t columns, int64_t vectors, float *to) {
  const int64_t width = vectors * kLanes;
  if (bDepth != 1 || bColumn == 1) {
    for (int64_t k = 0; k < depth; ++k, to += width) {
      widen(element, b + k * bDepth, bColumn, columns, to);
      for (int64_t c = columns; c < width; ++c)
        to[c] = 0;
    }
    return;
  }
  alignas(64) float block[kWidenedFloats];
  constexpr int64_t kDepth = kWidenedFloats / kMostColumnsOfPanel;
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t count = least(kDepth, depth - k);
    for (int64_t c = 0; c < columns; ++c)
      widen(element, b + c * bColumn + k, 1, count, block + c * kDepth);
    packPanel(block, 1, kDepth, count, columns, vectors, to + k * width);
  }
}

/// packColumns for 16-bit elements.
void widenColumns(Element element, const uint16_t *b, int64_t bDepth, int64_t bColumn, int64_t depth, int64_t columns,
                  float *to) {
  for (int64_t c = 0; c < columns; ++c)
    widen(element, b + c * bColumn, bDepth, depth, to + c * depth);
}

void packHalves(const RightSide &right, Element element, const uint16_t *b, int64_t bDepth, int64_t bColumn,
                Element packedAs, void *to) {
  alignas(64) float block[kWidenedFloats];
  int64_t done = 0; // elements so far
  auto keep = [&](const float *from, int64_t count) {
    if (packedAs == Element::F32)
      for (int64_t i = 0; i < count; ++i)
        static_cast<float *>(to)[done + i] = from[i];
    else // exact, as they were widened from 16 bits
      narrow(packedAs, from, count, static_cast<uint16_t *>(to) + done);
    done += count;
  };
  const bool dots = goesAlongDepth(right, kLanes);
  const Panels panels(right);
  const int64_t count = dots ? right.n : panels.count;
  for (int64_t p = 0; p < count; ++p) {
    const int64_t from = dots ? 0 : panels.begin(p), vectors = dots ? 0 : panels.begin(p + 1) - from,
                  width = dots ? 1 : vectors * kLanes, column = dots ? p : from * kLanes, step = kWidenedFloats / width;
    for (int64_t k = 0; k < right.k; k += step) {
      const int64_t depth = least(step, right.k - k);
      const uint16_t *at = b + column * bColumn + k * bDepth;
      if (dots)
        widen(element, at, bDepth, depth, block);
      else
        widenPanel(element, at, bDepth, bColumn, depth, least(width, right.n - column), vectors, block);
      keep(block, depth * width);
    }
  }
}

/// 16-bit operands, converted to f32 in scratch memory: a block of the left side, a panel of the right side, and the
/// sums of a few panels, which are rounded when they are complete.
void multiplyHalves(const HalfProduct &p) {
  const Panels panels(p.right);
  const int64_t k = p.right.k, n = p.right.n, firstPanel = part(panels.count, p.parts, p.part),
                lastPanel = part(panels.count, p.parts, p.part + 1);
  const bool dots = goesAlongDepth(p.right, kLanes) || (p.b && p.unitRows <= kRowsOfDots && p.bDepth == 1 && k > 1);
  const auto *wide = p.packedAs == Element::F32 ? static_cast<const float *>(p.packed) : nullptr;
  const auto *narrowed = p.packedAs != Element::F32 ? static_cast<const uint16_t *>(p.packed) : nullptr;
  const bool splits = kLanes == kSplitTile && p.split && !dots && !narrowed &&
                      isWorthSplitting(p.unitRows, n, /*shortPieces=*/false, p.packed != nullptr);
  SplitBlock split = makeSplitBlock(splits ? p.split : nullptr, p.element, k, p.splitScratch);
  const int64_t blocks = ceilDiv(p.rows, kRowsOfBlock),
                depths = ceilDiv(k, splits ? kSplitDepthOfBlock : kDepthOfBlock),
                ranges = ceilDiv(lastPanel - firstPanel, kColumnsOfSums / (kMostColumns * kLanes));
  float *const right = p.scratch, *const sums = right + kMostColumnsOfPanel * least(k, kDepthOfBlock),
               *const left = sums + least(p.rows, kRowsOfBlock) * kColumnsOfSums;
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t range = 0; range < ranges; ++range) {
      const int64_t row0 = part(p.rows, blocks, block), rows = part(p.rows, blocks, block + 1) - row0,
                    from = firstPanel + part(lastPanel - firstPanel, ranges, range),
                    to = firstPanel + part(lastPanel - firstPanel, ranges, range + 1),
                    column0 = panels.begin(from) * kLanes, sumsRow = panels.begin(to) * kLanes - column0;
      // A single tile reads widened data from L1, so its depth is small; CPU tiles multiply the whole split block.
      const int64_t atOnce = rows <= kMostRows && !splits ? 128 : kDepthOfBlock;
      for (int64_t d = 0; d < depths; ++d) {
        const int64_t k0 = part(k, depths, d), depth = part(k, depths, d + 1) - k0;
        if (depths > 1 || range == 0) {
          widenLeft(p.element, p.a + row0 * p.aRow + k0 * p.aDepth, p.aRow, p.aDepth, rows, depth, left);
          if (splits)
            split.splitLeft(left, depth, rows, depth);
        }
        for (int64_t j = from; j < to; ++j) {
          const int64_t vectors = panels.begin(j + 1) - panels.begin(j), width = vectors * kLanes,
                        column = panels.begin(j) * kLanes, columns = least(width, n - column);
          float *const c = sums + column - column0;
          if (dots) {
            const float *b = right;
            int64_t bColumn = depth;
            if (wide)
              b = wide + column * k + k0, bColumn = k;
            else if (narrowed)
              widenColumns(p.packedAs, narrowed + column * k + k0, 1, k, depth, columns, right);
            else
              widenColumns(p.element, p.b + column * p.bColumn + k0 * p.bDepth, p.bDepth, p.bColumn, depth, columns,
                           right);
            multiplyByDots(left, depth, rows, b, bColumn, columns, depth, c, sumsRow, d > 0);
            continue;
          }
          PanelProduct panel{left, depth, rows, right, width, depth, c, sumsRow, width, vectors, d > 0};
          panel.lone = p.unitRows <= 1;
          if (wide) {
            panel.b = wide + column * k + k0 * width;
            const bool isLast = j + 1 == to;
            const int64_t next = isLast ? 0 : (panels.begin(j + 2) - panels.begin(j + 1)) * kLanes;
            fetchAhead(panel, n * k, isLast ? nullptr : wide + (column + width) * k + k0 * next, next);
            multiplyPanel(panel, split);
            continue;
          }
          for (int64_t done = 0; done < depth; done += atOnce, panel.add = true) {
            panel.depth = least(atOnce, depth - done), panel.a = left + done;
            if (narrowed)
              widen(p.packedAs, narrowed + column * k + (k0 + done) * width, 1, panel.depth * width, right);
            else
              widenPanel(p.element, p.b + (k0 + done) * p.bDepth + column * p.bColumn, p.bDepth, p.bColumn, panel.depth,
                         columns, vectors, right);
            multiplyPanel(panel, split);
          }
        }
      }
      for (int64_t r = 0; r < rows; ++r)
        narrow(p.element, sums + r * sumsRow, least(sumsRow, n - column0), p.c + (row0 + r) * p.cRow + column0);
    }
}

TileFn tileOf(int64_t vectors, int64_t rows) { return kTiles.of[0][vectors][rows]; }

} // namespace

extern const ProductKernels TRESSEL_AT_LEVEL(product);
const ProductKernels TRESSEL_AT_LEVEL(product){pack, multiply, packHalves, multiplyHalves, tileOf};

} // namespace tressel::kernels
