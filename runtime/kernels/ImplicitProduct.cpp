// The driver of convolutions of channels-last images at one level. The depth of the product is divided into pieces,
// each a contiguous run of memory for every pixel: the channels of one tap, or a whole row of the window where channels
// are few. For a block of rows, pointers to their pieces are listed once, and tiles read through the list. A piece
// outside the image points to zeros. Pieces of 16-bit elements are widened into scratch memory, to which the list then
// points.
#include "ImplicitProduct.h"
#include "Channelwise.h"
#include "Halves.h"
#include "ImplicitTile.h"

namespace tressel::kernels {
namespace {

static_assert(kMostTileVectors * kLanes <= kImplicitColumns);

/// Whether lanes are channels of the image too.
bool goesAlongChannels(const ConvolutionForm &s, Element element) {
  return isChannelwise(s) || (element == Element::F32 && isGroupwise(s, kLanes));
}
/// Number of groups with panels of their own.
int64_t panelGroupsOf(const ConvolutionForm &s, Element element) {
  return goesAlongChannels(s, element) ? 1 : s.groups;
}

/// Whether the pixels of the image are the left side in memory already (1x1, stride 1).
bool isDensePointwise(const ConvolutionShape &s) {
  return s.groups == 1 && tapsOf(s) == 1 && s.stride[0] == 1 && s.stride[1] == 1 && s.stride[2] == 1;
}

/// Divides the channels of a group into panels.
struct Panels {
  int64_t vectors, count;
  Panels(const ConvolutionForm &s, Element element, int64_t typicalRows)
      : vectors(ceilDiv(s.outChannels / panelGroupsOf(s, element), kLanes)),
        count(ceilDiv(vectors, widest(typicalRows))) {}
  static int64_t widest(int64_t) { return kMostTileVectors; }
  int64_t begin(int64_t panel) const { return part(vectors, count, panel); } // in vectors
};

/// A block of the depth: pieces [piece, piece + count), or a range of a single long piece.
struct DepthBlock {
  int64_t piece, count, from, run;
};
struct DepthBlocks {
  int64_t piece, pieces, cuts, count;
  DepthBlocks(const ConvolutionForm &s, int64_t depth)
      : piece(pieceOf(s)), pieces(piecesOf(s)), cuts(ceilDiv(piece, depth)), count(pieces * cuts) {
    if (cuts == 1)
      count = ceilDiv(pieces, least(depth / piece, kPieceStarts));
  }
  DepthBlock operator[](int64_t i) const {
    if (cuts == 1)
      return {part(pieces, count, i), part(pieces, count, i + 1) - part(pieces, count, i), 0, piece};
    const int64_t from = part(piece, cuts, i % cuts);
    return {i / cuts, 1, from, part(piece, cuts, i % cuts + 1) - from};
  }
};

// --- The left side ---------------------------------------------------------------------------------------------------

bool within(int64_t i, int64_t size) { return static_cast<uint64_t>(i) < static_cast<uint64_t>(size); }

/// Copies a row of the window that crosses an edge of a line, with zeros for columns outside. Pixel sizes are in bytes.
void copyEdge(const char *line, int64_t column, int64_t width, int64_t size, int64_t pixel, char *to) {
  const int64_t from = most(0, least(width, -column)), end = most(from, least(width, size - column));
  auto clear = [&](int64_t i, int64_t last) { __builtin_memset(to + i * pixel, 0, (last - i) * pixel); };
  clear(0, from);
  __builtin_memcpy(to + from * pixel, line + (column + from) * pixel, (end - from) * pixel);
  clear(end, width);
}

/// Lists the pieces of a block: for each piece, one pointer per row. `bytes`: size of an element of the image.
void findPieces(const ConvolutionShape &s, const void *images, int64_t bytes, const DepthBlock &block, int64_t firstRow,
                int64_t rows, const float **starts, const float *zeros, float *copies) {
  const bool joined = joinsTaps(s);
  const int64_t columnsOfWindow = joined ? 1 : s.window[2], width = joined ? s.window[2] : 1,
                bytesOfPixel = s.inChannels * bytes;
  auto *edges = reinterpret_cast<char *>(copies);
  for (int64_t piece = block.piece; piece < block.piece + block.count; ++piece) {
    const int64_t tap[3] = {piece / columnsOfWindow / s.window[1] * s.dilation[0] - s.pad[0],
                            piece / columnsOfWindow % s.window[1] * s.dilation[1] - s.pad[1],
                            piece % columnsOfWindow * s.dilation[2] - s.pad[2]};
    Pixel pixel(s, firstRow);
    for (int64_t left = rows; left > 0; pixel.nextLine(s)) {
      const int64_t count = least(left, s.out[2] - pixel.at[2]), depth = pixel.at[0] * s.stride[0] + tap[0],
                    line = pixel.at[1] * s.stride[1] + tap[1];
      left -= count;
      if (!within(depth, s.in[0]) || !within(line, s.in[1])) {
        for (int64_t i = 0; i < count; ++i)
          *starts++ = zeros;
        continue;
      }
      const char *const row = static_cast<const char *>(images) +
                              ((pixel.image * s.in[0] + depth) * s.in[1] + line) * s.in[2] * bytesOfPixel;
      const int64_t column = pixel.at[2] * s.stride[2] + tap[2];
      const Inside inside(column, s.stride[2], width, s.in[2], count);
      auto findEdges = [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) {
          starts[i] = joined ? reinterpret_cast<const float *>(edges) : zeros;
          if (joined)
            copyEdge(row, column + i * s.stride[2], width, s.in[2], bytesOfPixel, edges), edges += width * bytesOfPixel;
        }
      };
      findEdges(0, inside.from);
      const char *start = row + (column + inside.from * s.stride[2]) * bytesOfPixel;
      const int64_t step = s.stride[2] * bytesOfPixel;
      for (int64_t i = inside.from; i < inside.to; ++i, start += step)
        starts[i] = reinterpret_cast<const float *>(start);
      findEdges(inside.to, count);
      starts += count;
    }
  }
}

// --- The right side --------------------------------------------------------------------------------------------------

/// Packs a block of the depth of one panel: for each product, `columns` channels of the result in consecutive lanes.
void packPanel(const ConvolutionForm &s, Element element, const void *weights, const DepthBlock &block, int64_t columns,
               int64_t vectors, float *to) {
  const int64_t depth = depthOf(s), taps = tapsOf(s), channels = s.inChannels / s.groups, width = vectors * kLanes;
  for (int64_t piece = block.piece; piece < block.piece + block.count; ++piece)
    for (int64_t i = block.from; i < block.from + block.run; ++i, to += width) {
      const int64_t k = piece * pieceOf(s) + i; // index of the product: taps, then channels
      const int64_t from = k % channels * taps + k / channels;
      if (element == Element::F32)
        for (int64_t c = 0; c < columns; ++c)
          to[c] = static_cast<const float *>(weights)[from + c * depth];
      else
        widen(element, static_cast<const uint16_t *>(weights) + from, depth, columns, to);
      for (int64_t c = columns; c < width; ++c)
        to[c] = 0;
    }
}

/// Address of element `i`.
const void *at(const void *values, Element element, int64_t i) {
  return static_cast<const char *>(values) + i * bytesOf(element);
}

void pack(const ConvolutionForm &s, Element element, int64_t typicalRows, const void *weights, float *to) {
  const Panels panels(s, element, typicalRows);
  const int64_t depth = depthOf(s), groups = panelGroupsOf(s, element), channels = s.outChannels / groups;
  const DepthBlock all{0, piecesOf(s), 0, pieceOf(s)};
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t p = 0; p < panels.count; ++p) {
      const int64_t vectors = panels.begin(p + 1) - panels.begin(p), first = panels.begin(p) * kLanes;
      packPanel(s, element, at(weights, element, (group * channels + first) * depth), all,
                least(vectors * kLanes, channels - first), vectors, to);
      to += vectors * kLanes * depth;
    }
}

// --- The product -----------------------------------------------------------------------------------------------------

/// Floats of the image used at a time, so that they stay in L2.
constexpr int64_t kImageFloats = 1 << 16;
/// With vectors across channels: most panels that a tile visits before the next tile, and the floats of their weights,
/// which stay in L1.
constexpr int64_t kMostPanelsOfSpan = 64, kSpanFloats = 1 << 13;
/// Weights up to this size stay in L2 without prefetching.
constexpr int64_t kNearFloats = 1 << 17;

class Multiplication {
public:
  explicit Multiplication(const ImplicitProduct &p)
      : p(p), s(p.shape), packed(p.packed), panels(s, p.element, p.typicalRows),
        splits(
            kLanes == kSplitTile && p.split && packed &&
            isWorthSplitting(p.unitRows, s.outChannels / panelGroupsOf(s, p.element), pieceOf(s) < kSplitDepth, true)),
        depths(s, splits ? kSplitDepthOfBlock : kImplicitDepth), channels(s.outChannels / panelGroupsOf(s, p.element)),
        firstPanel(part(panelGroupsOf(s, p.element) * panels.count, p.parts, p.part)),
        lastPanel(part(panelGroupsOf(s, p.element) * panels.count, p.parts, p.part + 1)) {
    float *to = p.scratch;
    starts = reinterpret_cast<const float **>(to), to += 2 * kPieceStarts;
    zeros = to, to += zerosOf(s);
    for (float *zero = zeros; zero < to; ++zero)
      *zero = 0;
    edges = to;
    panel = p.scratch + implicitScratchFloats(s, true);
  }

  void run() {
    if (p.element != Element::F32)
      return runHalves();
    if (goesAlongChannels(s, p.element))
      return runChannelwise();
    if (kLanes == kSplitTile && splits)
      return runSplit();
    // Packed weights stream over each block of rows; others are packed once for all rows.
    if (packed) {
      const int64_t blocks = ceilDiv(p.rows, rowsOfBlock());
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t row = part(p.rows, blocks, block), rows = part(p.rows, blocks, block + 1) - row;
        for (int64_t d = 0; d < depths.count; ++d) {
          find(d, row, rows);
          for (int64_t q = firstPanel; q < lastPanel; ++q)
            multiplyPanel(d, q, rows, packedPanel(d, q), resultOf(q, row), s.outChannels);
        }
      }
      return;
    }
    for (int64_t d = 0; d < depths.count; ++d)
      for (int64_t q = firstPanel; q < lastPanel; ++q) {
        const int64_t group = q / panels.count, first = panels.begin(q % panels.count) * kLanes;
        packPanel(s, p.element, at(p.weights, p.element, (group * channels + first) * depthOf(s)), depths[d],
                  columnsOf(q), vectorsOf(q), panel);
        const int64_t blocks = ceilDiv(p.rows, rowsOfBlock());
        for (int64_t block = 0; block < blocks; ++block) {
          const int64_t row = part(p.rows, blocks, block), rows = part(p.rows, blocks, block + 1) - row;
          find(d, row, rows);
          multiplyPanel(d, q, rows, panel, resultOf(q, row), s.outChannels);
        }
      }
  }

private:
  /// Splits both sides for tiles: a block of rows once for all panels, and each panel once per block of rows.
  void runSplit() {
    int64_t rowsAtOnce = splitRowsOf(1);
    for (int64_t d = 0; d < depths.count; ++d)
      rowsAtOnce = least(rowsAtOnce, splitRowsOf(depths[d].count * depths[d].run));
    rowsAtOnce = least(rowsAtOnce, rowsOfStarts());
    const int64_t blocks = ceilDiv(p.rows, rowsAtOnce);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = part(p.rows, blocks, block), rows = part(p.rows, blocks, block + 1) - row;
      for (int64_t d = 0; d < depths.count; ++d) {
        find(d, row, rows);
        SplitLeft left{};
        for (int64_t q = firstPanel; q < lastPanel; ++q) {
          const int64_t group = q / panels.count;
          if (q == firstPanel || q % panels.count == 0)
            left = splitRows(depths[d], group, rows);
          multiplySplit(d, q, left, resultOf(q, row), s.outChannels, columnsOf(q));
        }
      }
    }
  }

  char *splitImage() const { return p.splitScratch + splitBytes(64, least(depthOf(s), kSplitDepthOfBlock)); }
  /// Splits what a group reads of the listed rows.
  SplitLeft splitRows(const DepthBlock &block, int64_t group, int64_t rows) const {
    const SplitLeft left{starts, rows, offsetOf(group, block), rows, block.count, block.run, partsOf(p.element)};
    p.split->splitLeft(left, splitImage());
    return left;
  }
  /// Multiplies a panel with the split rows.
  void multiplySplit(int64_t d, int64_t q, const SplitLeft &left, float *c, int64_t cRow, int64_t columns) const {
    const SplitRight right{packedPanel(d, q), depths[d].count * depths[d].run, vectorsOf(q) * kLanes,
                           partsOf(p.element)};
    const Magnitudes magnitudes = p.split->splitRight(right, p.splitScratch);
    const auto [next, floats] = after(d, q);
    p.split->multiply({left, right, splitImage(), p.splitScratch, magnitudes, columns, c, cRow, d > 0,
                       reinterpret_cast<const char *>(next), floats * 4});
  }

  /// 16-bit elements: for each block of rows, widens a block of the depth at a time. The last block completes the sums,
  /// which are then rounded.
  void runHalves() {
    const float **const found = starts;
    float *to = panel;
    starts = reinterpret_cast<const float **>(to), to += 2 * kPieceStarts;
    float *const widened = to, *const sums = to + kWidenedImageFloats;
    if (!packed)
      pack(s, p.element, p.typicalRows, p.weights, sums + implicitSumsOf(s)), packed = sums + implicitSumsOf(s);
    const int64_t blocks = ceilDiv(p.rows, least(rowsOfBlock(), widenedRowsOf(s)));
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = part(p.rows, blocks, block), rows = part(p.rows, blocks, block + 1) - row;
      for (int64_t d = 0; d < depths.count; ++d) {
        findPieces(s, p.image, bytesOf(p.element), depths[d], p.firstRow + row, rows, found, zeros, edges);
        float *c = sums;
        SplitLeft left{};
        for (int64_t q = firstPanel; q < lastPanel; ++q) {
          const int64_t group = q / panels.count, width = vectorsOf(q) * kLanes;
          if (q == firstPanel || q % panels.count == 0) {
            widenPieces(depths[d], group, rows, found, widened);
            if (kLanes == kSplitTile && splits)
              left = splitRows(depths[d], group, rows);
          }
          if (kLanes == kSplitTile && splits)
            multiplySplit(d, q, left, c, width, width);
          else
            multiplyPanel(d, q, rows, packedPanel(d, q), c, width);
          if (d + 1 == depths.count)
            for (int64_t r = 0; r < rows; ++r)
              narrow(p.element, c + r * width, columnsOf(q), static_cast<uint16_t *>(p.result) + placeOf(q, row + r));
          if (depths.count > 1)
            c += rows * width;
        }
      }
    }
  }

  void widenPieces(const DepthBlock &block, int64_t group, int64_t rows, const float *const *found, float *to) const {
    const int64_t offset = offsetOf(group, block);
    for (int64_t i = 0; i < block.count * rows; ++i, to += block.run) {
      widen(p.element, reinterpret_cast<const uint16_t *>(found[i]) + offset, 1, block.run, to);
      starts[i] = to - offset;
    }
  }

  void runChannelwise() const {
    const int64_t blocks = ceilDiv(p.rows, most(1, kImageFloats / s.inChannels));
    const DepthBlock all{0, piecesOf(s), 0, pieceOf(s)};
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = p.firstRow + part(p.rows, blocks, block),
                    rows = p.firstRow + part(p.rows, blocks, block + 1) - row;
      // The weights of a span of panels stay in L1. If they are not packed, they are packed panel by panel.
      const int64_t span =
          packed && isChannelwise(s)
              ? most(1, least(kMostPanelsOfSpan, kSpanFloats / (kMostTileVectors * kLanes * depthOf(s))))
              : 1;
      for (int64_t q = firstPanel; q < lastPanel; q += span) {
        ChannelPanels runs[kMostPanelsOfSpan];
        int64_t numRuns = 0;
        const int64_t end = least(q + span, lastPanel);
        for (int64_t i = q; i < end; ++i) {
          const int64_t first = panels.begin(i) * kLanes, vectors = vectorsOf(i), columns = columnsOf(i);
          const Lanes last = lanesBetween(0, columns - (vectors - 1) * kLanes);
          if (!packed) // few floats compared to the sums
            packPanel(s, p.element, at(p.weights, p.element, first * depthOf(s)), all, columns, vectors, panel);
          if (numRuns > 0 && last == kAllLanes && runs[numRuns - 1].vectors == vectors)
            ++runs[numRuns - 1].count;
          else
            runs[numRuns++] = {packed ? packed + first * depthOf(s) : panel, first, vectors, 1, last};
        }
        Channelwise{s, static_cast<const float *>(p.image), runs, numRuns, end - q > 1}.convolve(
            row, rows, static_cast<float *>(p.result) + row * s.outChannels);
      }
    }
  }

  int64_t vectorsOf(int64_t q) const { return panels.begin(q % panels.count + 1) - panels.begin(q % panels.count); }
  int64_t columnsOf(int64_t q) const {
    return least(vectorsOf(q) * kLanes, channels - panels.begin(q % panels.count) * kLanes);
  }
  const float *packedPanel(int64_t d, int64_t q) const {
    const int64_t first = q / panels.count * panels.vectors + panels.begin(q % panels.count);
    const DepthBlock block = depths[d];
    return packed + (first * depthOf(s) + (block.piece * depths.piece + block.from) * vectorsOf(q)) * kLanes;
  }

  /// Rows whose part of the image stays in L2 while all panels use it.
  int64_t rowsOfBlock() const { return most(1, least(kImageFloats / s.inChannels, rowsOfStarts())); }
  /// Rows whose pieces fit into the list.
  int64_t rowsOfStarts() const {
    const DepthBlock block = depths[0]; // the others have at most slightly more pieces
    int64_t rows = kPieceStarts / (block.count + 1);
    if (joinsTaps(s))
      rows = least(rows, kEdgeFloats / ((block.count + 1) * depths.piece));
    return most(1, rows);
  }
  bool weightsAreNear() const {
    return (lastPanel - firstPanel) * panels.vectors / panels.count * kLanes * depthOf(s) <= kNearFloats;
  }
  /// Packed weights that are needed after a panel's, and their floats.
  struct Next {
    const float *weights;
    int64_t floats;
  };
  Next after(int64_t d, int64_t q) const {
    const bool sameDepth = q + 1 < lastPanel;
    const int64_t nextDepth = sameDepth ? d : (d + 1) % depths.count, next = sameDepth ? q + 1 : firstPanel;
    return {packedPanel(nextDepth, next), depths[nextDepth].count * depths[nextDepth].run * vectorsOf(next) * kLanes};
  }

  void find(int64_t d, int64_t row, int64_t rows) const {
    findPieces(s, p.image, sizeof(float), depths[d], p.firstRow + row, rows, starts, zeros, edges);
  }
  /// Offset of a panel's first channel in a row of the result.
  int64_t placeOf(int64_t q, int64_t row) const {
    return (p.firstRow + row) * s.outChannels + q / panels.count * channels + panels.begin(q % panels.count) * kLanes;
  }
  float *resultOf(int64_t q, int64_t row) const { return static_cast<float *>(p.result) + placeOf(q, row); }
  /// Offset, from each start, of what a group's tiles read.
  int64_t offsetOf(int64_t group, const DepthBlock &block) const {
    return group * (s.inChannels / s.groups) + block.from;
  }

  void multiplyPanel(int64_t d, int64_t q, int64_t rows, const float *b, float *c, int64_t cRow) const {
    const int64_t vectors = vectorsOf(q), columns = columnsOf(q);
    const DepthBlock block = depths[d];
    const int64_t tiles = ceilDiv(rows, kRowsOfTile[vectors]);
    ImplicitTile tile{};
    tile.startStep = rows, tile.pieces = block.count, tile.run = block.run;
    tile.offset = offsetOf(q / panels.count, block);
    tile.b = b, tile.sums.cRow = cRow, tile.sums.add = d > 0;
    tile.sums.last = lanesBetween(0, columns - (vectors - 1) * kLanes);
    // Prefetches what comes next: each tile a share of the next weights; or, if weights are in L2, the pixels of the
    // next tile, which the first panel reads first.
    int64_t share = 0;
    bool fetchesPixels = false;
    if (packed && !weightsAreNear()) {
      const auto [next, floats] = after(d, q);
      tile.ahead = reinterpret_cast<const char *>(next);
      share = ceilDiv(ceilDiv(floats, 16), tiles);
      tile.aheadLines = ceilDiv(share, most(block.count * (block.run / 4), 1));
    } else if (q == firstPanel && depths.count == 1 && isDensePointwise(s)) {
      fetchesPixels = true;
      tile.aheadLines = ceilDiv(kRowsOfTile[vectors], 4); // at the rate at which the tile reads its own pixels
    }
    for (int64_t t = 0; t < tiles; ++t, tile.ahead += share * 64) {
      const int64_t first = part(rows, tiles, t);
      if (fetchesPixels)
        tile.ahead = reinterpret_cast<const char *>(starts[part(rows, tiles, t + 1) - 1] + s.inChannels);
      tile.starts = starts + first, tile.sums.c = c + first * cRow;
      kImplicitTiles.of[vectors][part(rows, tiles, t + 1) - first](tile);
    }
  }

  const ImplicitProduct &p;
  const ConvolutionShape &s;
  const float *packed;
  const Panels panels;
  const bool splits;
  const DepthBlocks depths;
  const int64_t channels, firstPanel, lastPanel;
  const float **starts;
  float *zeros, *edges, *panel;
};

void multiply(const ImplicitProduct &p) { Multiplication(p).run(); }

} // namespace

extern const ImplicitProductKernels TRESSEL_AT_LEVEL(implicitProduct);
const ImplicitProductKernels TRESSEL_AT_LEVEL(implicitProduct){pack, multiply};

} // namespace tressel::kernels
