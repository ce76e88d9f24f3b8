// The driver of convolutions of channels-last images at one level. The depth of the product is a list of pieces, each
// of which is a run of memory for each pixel: the channels of one tap, or all of a row of the window where channels are
// few. For a block of rows, the places where their pieces begin are listed once; tiles read through that list. What
// lies outside the image is a piece of zeros.
#include "ImplicitProduct.h"
#include "Channelwise.h"
#include "ImplicitTile.h"

namespace tressel::kernels {
namespace {

static_assert(kMostTileVectors * kLanes <= kImplicitColumns);

/// How the channels of a group fall into panels.
struct Panels {
  int64_t vectors, count;
  Panels(const ConvolutionShape &s, int64_t typicalRows)
      : vectors(ceilDiv(s.outChannels / columnGroupsOf(s), kLanes)), count(ceilDiv(vectors, widest(typicalRows))) {}
  static int64_t widest(int64_t) { return kMostTileVectors; }
  int64_t begin(int64_t panel) const { return part(vectors, count, panel); } // in vectors
};

/// A part of the depth: pieces [piece, piece + count), or a range of a single one that is long.
struct DepthBlock {
  int64_t piece, count, from, run;
};
struct DepthBlocks {
  int64_t piece, pieces, cuts, perBlock, count;
  explicit DepthBlocks(const ConvolutionShape &s)
      : piece(pieceOf(s)), pieces(piecesOf(s)), cuts(ceilDiv(piece, kImplicitDepth)), perBlock(1),
        count(pieces * cuts) {
    if (cuts == 1)
      count = ceilDiv(pieces, least(kImplicitDepth / piece, kPieceStarts));
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

/// A row of the window that reaches over the edge of a line: zeros for columns that do not exist.
void copyEdge(const float *line, int64_t column, int64_t width, int64_t size, int64_t channels, float *to) {
  const int64_t from = most(0, least(width, -column)), end = most(from, least(width, size - column));
  for (int64_t i = 0; i < from * channels; ++i)
    to[i] = 0;
  for (int64_t i = from * channels; i < end * channels; ++i)
    to[i] = line[column * channels + i];
  for (int64_t i = end * channels; i < width * channels; ++i)
    to[i] = 0;
}

/// Lists where the pieces of a block begin: for each piece, one pointer per row.
void findPieces(const ConvolutionShape &s, const float *images, const DepthBlock &block, int64_t firstRow, int64_t rows,
                const float **starts, const float *zeros, float *edges) {
  const bool joined = joinsTaps(s);
  const int64_t columnsOfWindow = joined ? 1 : s.window[2], width = joined ? s.window[2] : 1, channels = s.inChannels;
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
      const float *const row = images + ((pixel.image * s.in[0] + depth) * s.in[1] + line) * s.in[2] * channels;
      const int64_t column = pixel.at[2] * s.stride[2] + tap[2];
      const Inside inside(column, s.stride[2], width, s.in[2], count);
      auto findEdges = [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) {
          starts[i] = joined ? edges : zeros;
          if (joined)
            copyEdge(row, column + i * s.stride[2], width, s.in[2], channels, edges), edges += width * channels;
        }
      };
      findEdges(0, inside.from);
      const float *start = row + (column + inside.from * s.stride[2]) * channels;
      const int64_t step = s.stride[2] * channels;
      for (int64_t i = inside.from; i < inside.to; ++i, start += step)
        starts[i] = start;
      findEdges(inside.to, count);
      starts += count;
    }
  }
}

// --- The right side --------------------------------------------------------------------------------------------------

/// A block of the depth of one panel: `columns` channels of the result, which are a vector's lanes behind one another.
void packPanel(const ConvolutionShape &s, const float *weights, const DepthBlock &block, int64_t columns,
               int64_t vectors, float *to) {
  const int64_t depth = depthOf(s), taps = tapsOf(s), channels = s.inChannels / s.groups, width = vectors * kLanes;
  for (int64_t piece = block.piece; piece < block.piece + block.count; ++piece)
    for (int64_t i = block.from; i < block.from + block.run; ++i, to += width) {
      const int64_t k = piece * pieceOf(s) + i; // taps, then channels
      const float *from = weights + k % channels * taps + k / channels;
      for (int64_t c = 0; c < columns; ++c)
        to[c] = from[c * depth];
      for (int64_t c = columns; c < width; ++c)
        to[c] = 0;
    }
}

void pack(const ConvolutionShape &s, int64_t typicalRows, const float *weights, float *to) {
  const Panels panels(s, typicalRows);
  const int64_t depth = depthOf(s), groups = columnGroupsOf(s), channels = s.outChannels / groups;
  const DepthBlock all{0, piecesOf(s), 0, pieceOf(s)};
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t p = 0; p < panels.count; ++p) {
      const int64_t vectors = panels.begin(p + 1) - panels.begin(p), first = panels.begin(p) * kLanes;
      packPanel(s, weights + (group * channels + first) * depth, all, least(vectors * kLanes, channels - first),
                vectors, to);
      to += vectors * kLanes * depth;
    }
}

// --- The product -----------------------------------------------------------------------------------------------------

/// Of the image at a time, so that it stays in L2.
constexpr int64_t kImageFloats = 1 << 16;
/// Weights up to this size are in L2 anyway.
constexpr int64_t kNearFloats = 1 << 17;

class Multiplication {
public:
  explicit Multiplication(const ImplicitProduct &p)
      : p(p), s(p.shape), panels(s, p.typicalRows), depths(s), channels(s.outChannels / columnGroupsOf(s)),
        firstPanel(part(columnGroupsOf(s) * panels.count, p.parts, p.part)),
        lastPanel(part(columnGroupsOf(s) * panels.count, p.parts, p.part + 1)) {
    float *to = p.scratch;
    starts = reinterpret_cast<const float **>(to), to += 2 * kPieceStarts;
    zeros = to, to += zerosOf(s);
    for (float *zero = zeros; zero < to; ++zero)
      *zero = 0;
    edges = to;
    panel = p.scratch + implicitScratchFloats(s, true);
  }

  void run() const {
    if (isChannelwise(s))
      return runChannelwise();
    // Packed weights pass over each block of rows; others are packed once for all rows.
    if (p.packed) {
      const int64_t blocks = ceilDiv(p.rows, rowsOfBlock());
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t row = part(p.rows, blocks, block), rows = part(p.rows, blocks, block + 1) - row;
        for (int64_t d = 0; d < depths.count; ++d) {
          find(d, row, rows);
          for (int64_t q = firstPanel; q < lastPanel; ++q)
            multiplyPanel(d, q, row, rows, packedPanel(d, q));
        }
      }
      return;
    }
    for (int64_t d = 0; d < depths.count; ++d)
      for (int64_t q = firstPanel; q < lastPanel; ++q) {
        const int64_t group = q / panels.count, first = panels.begin(q % panels.count) * kLanes;
        packPanel(s, p.weights + (group * channels + first) * depthOf(s), depths[d], columnsOf(q), vectorsOf(q), panel);
        const int64_t blocks = ceilDiv(p.rows, rowsOfBlock());
        for (int64_t block = 0; block < blocks; ++block) {
          const int64_t row = part(p.rows, blocks, block), rows = part(p.rows, blocks, block + 1) - row;
          find(d, row, rows);
          multiplyPanel(d, q, row, rows, panel);
        }
      }
  }

private:
  void runChannelwise() const {
    const int64_t blocks = ceilDiv(p.rows, most(1, kImageFloats / s.inChannels));
    const DepthBlock all{0, piecesOf(s), 0, pieceOf(s)};
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = p.firstRow + part(p.rows, blocks, block),
                    rows = p.firstRow + part(p.rows, blocks, block + 1) - row;
      for (int64_t q = firstPanel; q < lastPanel; ++q) {
        const int64_t first = panels.begin(q) * kLanes, vectors = vectorsOf(q), columns = columnsOf(q);
        if (!p.packed) // little beside the sums
          packPanel(s, p.weights + first * depthOf(s), all, columns, vectors, panel);
        const Lanes last = lanesBetween(0, columns - (vectors - 1) * kLanes);
        Channelwise{s, p.image + first, p.packed ? p.packed + first * depthOf(s) : panel, vectors, last}.convolve(
            row, rows, p.result + row * s.outChannels + first);
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
    return p.packed + (first * depthOf(s) + (block.piece * depths.piece + block.from) * vectorsOf(q)) * kLanes;
  }

  /// Rows whose part of the image stays in L2 while all panels pass over it.
  int64_t rowsOfBlock() const {
    const DepthBlock block = depths[0]; // none has many more pieces
    int64_t rows = least(kImageFloats / s.inChannels, kPieceStarts / (block.count + 1));
    if (joinsTaps(s))
      rows = least(rows, kEdgeFloats / ((block.count + 1) * depths.piece));
    return most(1, rows);
  }

  void find(int64_t d, int64_t row, int64_t rows) const {
    findPieces(s, p.image, depths[d], p.firstRow + row, rows, starts, zeros, edges);
  }

  void multiplyPanel(int64_t d, int64_t q, int64_t row, int64_t rows, const float *b) const {
    const int64_t group = q / panels.count, vectors = vectorsOf(q), columns = columnsOf(q);
    const DepthBlock block = depths[d];
    const int64_t tiles = ceilDiv(rows, kRowsOfTile[vectors]);
    ImplicitTile tile{};
    tile.startStep = rows, tile.pieces = block.count, tile.run = block.run;
    tile.offset = group * (s.inChannels / s.groups) + block.from;
    tile.b = b, tile.sums.cRow = s.outChannels, tile.sums.add = d > 0;
    tile.sums.last = lanesBetween(0, columns - (vectors - 1) * kLanes);
    int64_t share = 0; // of what comes next, in cache lines
    if (p.packed && (lastPanel - firstPanel) * panels.vectors / panels.count * kLanes * depthOf(s) > kNearFloats) {
      const bool sameDepth = q + 1 < lastPanel;
      const int64_t nextDepth = sameDepth ? d : (d + 1) % depths.count, next = sameDepth ? q + 1 : firstPanel;
      tile.ahead = reinterpret_cast<const char *>(packedPanel(nextDepth, next));
      share = ceilDiv(ceilDiv(depths[nextDepth].count * depths[nextDepth].run * vectorsOf(next) * kLanes, 16), tiles);
      tile.aheadLines = ceilDiv(share, most(block.count * (block.run / 4), 1));
    }
    float *const c =
        p.result + (p.firstRow + row) * s.outChannels + group * channels + panels.begin(q % panels.count) * kLanes;
    for (int64_t t = 0; t < tiles; ++t, tile.ahead += share * 64) {
      const int64_t first = part(rows, tiles, t);
      tile.starts = starts + first, tile.sums.c = c + first * s.outChannels;
      kImplicitTiles.of[vectors][part(rows, tiles, t + 1) - first](tile);
    }
  }

  const ImplicitProduct &p;
  const ConvolutionShape &s;
  const Panels panels;
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
