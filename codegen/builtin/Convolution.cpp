// Bids for convolutions: how the work is cut into units, and what it will take.
#include "codegen/Convolution.h"
#include "codegen/CostModel.h"
#include "codegen/builtin/Provider.h"
#include "ir/graph/Graph.h"
#include "runtime/kernels/ConvolutionParams.h"
#include "runtime/kernels/Levels.h"

#include <algorithm>
#include <cmath>

namespace tressel::kernels {

using codegen::hinted;

static ConvolutionParams paramsOf(const codegen::Convolution &c) {
  ConvolutionParams p;
  p.batch = c.batch, p.channelsLast = c.channelsLast;
  auto &s = p.shape;
  s.groups = c.groups, s.inChannels = c.inChannels, s.outChannels = c.outChannels;
  const size_t leading = 3 - c.in.size();
  for (size_t d = 0; d < c.in.size(); ++d) {
    const size_t to = leading + d;
    s.in[to] = c.in[d], s.window[to] = c.window[d], s.out[to] = c.out[d];
    s.stride[to] = c.strides[d], s.dilation[to] = c.dilations[d], s.pad[to] = c.padLow[d];
  }
  return p;
}

/// Channels' worth of arithmetic that arranging the image costs, for each unit again.
static double arrangingChannels(const ConvolutionForm &s) { return tapsOf(s) == 1 ? 4 : s.stride[2] == 1 ? 8 : 12; }

/// Ranges of the channels that become units of their own, so that threads share an image: only where images are few.
/// More than one for each thread evens out their speeds, as long as arranging stays small beside the arithmetic.
static int64_t chooseBlocks(const ConvolutionParams &p, double imageSeconds, int threads) {
  const auto &s = p.shape;
  const bool isDense = s.groups == 1; // else units have planes of their own, and arrange nothing twice
  if (threads == 1 || dim::hint(p.batch) >= 4 * threads || (isDense && s.outChannels % kChannelBlock != 0))
    return 1;
  const int64_t whole = isDepthwise(s) ? s.outChannels : isDense ? s.outChannels / kChannelBlock : s.groups;
  const auto most = static_cast<int64_t>(std::min(4.0 * threads, imageSeconds / codegen::kWorthSplitting));
  for (int64_t blocks = most; blocks > 1; --blocks) {
    const auto channels = static_cast<double>(s.outChannels / blocks);
    if (whole % blocks == 0 && (!isDense || channels >= arrangingChannels(s) * (blocks > threads ? 10 : 1)))
      return blocks;
  }
  return 1;
}

/// Whether tiles will multiply so many pixels at a time.
static bool usesTiles(const ConvolutionParams &p, int64_t rows) {
  const auto &s = p.shape;
  return kernelLevel().split && p.splitBytes() > 0 &&
         isWorthSplitting(rows, s.outChannels / s.groups, pieceOf(s) < kSplitDepth, /*packed=*/true);
}

/// Channels last: blocks of pixels, so many that threads share them and what follows finds a block in L2. Where pixels
/// are too few for that, each thread reads weights of its own instead.
static void chooseRows(ConvolutionParams &p, double serialSeconds, int threads) {
  constexpr double worthSplitting = 10e-6;
  const Size pixels = p.pixels();
  // Tiles split the weights for each block, and are on CPUs with more L2.
  const bool tiles = usesTiles(p, std::max<int64_t>(1, dim::hint(pixels)));
  constexpr int64_t leastChannels = 64, manyWeights = 1 << 20;
  const int64_t leastRows = tiles ? 96 : 48;
  // Each block reads all weights; if these are much of L2, more pixels share them.
  const bool isFar = pixels.isNumber() && p.packedBytes() >= manyWeights;
  const int64_t wantedRows = isFar ? 2 * leastRows : leastRows, blockBytes = (tiles ? 864 : isFar ? 432 : 216) << 10;
  const int64_t most = std::max(leastRows, blockBytes / (4 * p.shape.outChannels));
  p.rows = pixels, p.typicalRows = std::max<int64_t>(1, dim::hint(pixels));
  if (serialSeconds < worthSplitting)
    return;
  if (!pixels.isNumber()) {
    p.rows = most;
    return;
  }
  const int64_t count = pixels.number();
  if (threads > 1 && count < leastRows * threads) {
    p.blocks = std::clamp<int64_t>(p.shape.outChannels / leastChannels, 1, 2 * threads);
    return;
  }
  // As many for each thread.
  int64_t blocks = std::clamp<int64_t>(count / wantedRows / threads, 1, 4) * threads;
  blocks = std::max(threads == 1 ? 1 : blocks, (count + most - 1) / most);
  blocks = (blocks + threads - 1) / threads * threads;
  p.rows = (count + blocks - 1) / blocks;
  // Of each channel for itself, what a block costs besides its arithmetic are the lines of the image that its
  // neighbours read too: so whole lines, and for a small image one block for each thread.
  const Size line = p.shape.out[2];
  if (isChannelwise(p.shape) && line.isNumber() && pixels >= 2 * threads * line) {
    constexpr double small = 150e-6;
    if (serialSeconds < small)
      p.rows = (pixels + threads - 1) / threads;
    p.rows = (p.rows + line - 1) / line * line;
  }
}

/// Of one dimension of windows.
struct TapsInside {
  double average;   ///< taps that lie in the image, for a place of the result
  double whole = 0; ///< places all of whose taps do
};
static TapsInside tapsInside(const ConvolutionSizes<Size> &s, int d) {
  const int64_t out = std::max<int64_t>(1, dim::hint(s.out[d])), in = dim::hint(s.in[d]), stride = s.stride[d];
  int64_t from = 0, to = out, taps = 0;
  for (int64_t tap = 0; tap < s.window[d]; ++tap) {
    const int64_t before = s.pad[d] - tap * s.dilation[d], behind = in + before;
    const int64_t first = before > 0 ? (before + stride - 1) / stride : 0,
                  last = std::min(out, behind > 0 ? (behind + stride - 1) / stride : 0);
    taps += std::max<int64_t>(0, last - first);
    from = std::max(from, first), to = std::min(to, last);
  }
  return {static_cast<double>(taps) / static_cast<double>(out), static_cast<double>(std::max<int64_t>(0, to - from))};
}

/// What a depthwise kernel does (runtime/kernels/Channelwise.h), in counts that its cost model multiplies.
static runtime::KernelCost channelwiseCost(const ConvolutionParams &p, runtime::CpuLevel level, double packed) {
  const auto &s = p.shape;
  const double lanes = codegen::lanesOf(level), vectors = std::ceil(static_cast<double>(s.outChannels) / lanes);
  const bool whole = s.outChannels % static_cast<int64_t>(lanes) == 0, isV4 = level == runtime::CpuLevel::V4;
  // Which tiles read a pixel once for all columns, and serve partial vectors too.
  const bool shares =
      s.stride[2] == 1 && s.dilation[2] == 1 && dim::hint(s.in[2]) >= s.window[2] &&
      ((s.window[2] == 3 && (whole || isV4)) || (s.window[2] == 5 && (whole || level != runtime::CpuLevel::Baseline)));
  const TapsInside columns = tapsInside(s, 2);
  const double rowTaps = tapsInside(s, 0).average * tapsInside(s, 1).average,
               taps = rowTaps * (shares && s.window[2] == 3 ? 3 : columns.average);
  const double rows = hinted(p.pixels()), width = hinted(s.out[2]), lines = rows / width;
  const double panelVectors = isV4 ? 4 : 2, panels = std::ceil(vectors / panelVectors),
               rowsOfTile = vectors == 1                     ? 10
                            : isV4                           ? vectors == 2 ? 10 : 6
                            : level == runtime::CpuLevel::V3 ? 6
                                                             : 4;
  // Pixels whose windows reach over the edge are tiles of their own, as long as their products wait for each other.
  const double near = shares ? 0 : width - std::min(width, columns.whole),
               tiles = lines * panels * (near + std::ceil((width - near) / rowsOfTile));
  // Products, and pixels that are read for each of them; results; tiles, and their passes over the window's rows;
  // pixels that are tiles; masked vectors; packing.
  const double products = rows * vectors * taps, read = shares ? 0 : products, results = rows * vectors,
               passes = tiles * rowTaps, single = lines * near * panels * taps,
               masked = whole ? 0 : rows * (shares ? 1 : taps);
  const double counts[] = {products, read, results, tiles, passes, single, masked, packed};
  return codegen::costOf("builtin/convolution-depthwise", level, counts);
}

/// What the kernel does (runtime/kernels/README.md, Channels last), in counts that its cost model multiplies.
static runtime::KernelCost channelsLastCost(const ConvolutionParams &p, runtime::CpuLevel level) {
  const auto &s = p.shape;
  const double lanes = codegen::lanesOf(level), rows = hinted(p.pixels()), depth = static_cast<double>(depthOf(s)),
               taps = static_cast<double>(tapsOf(s)), images = hinted(p.batch);
  const double groups = static_cast<double>(columnGroupsOf(s)), channels = static_cast<double>(s.outChannels) / groups,
               vectors = std::ceil(channels / lanes), panels = std::ceil(vectors / 4);
  double lines = images; // of the result
  for (int d = 0; d < 2; ++d)
    lines *= hinted(s.out[d]);
  const double packed = p.packed < 0 ? groups * depth * channels : 0;
  if (isChannelwise(s))
    return channelwiseCost(p, level, packed);
  if (isGroupwise(s, static_cast<int64_t>(lanes))) {
    const double all = std::ceil(static_cast<double>(s.outChannels) / lanes);
    const double counts[] = {rows * all * depth, rows * all, rows * taps, packed};
    return codegen::costOf("builtin/convolution-grouped", level, counts);
  }
  const double widened = p.element == Element::F32 ? 0 : rows * depth * groups + rows * channels * groups;
  if (const auto rowsAtOnce = static_cast<int64_t>(std::min(rows, 1e3)); usesTiles(p, rowsAtOnce)) {
    const double share =
        splitShare(static_cast<double>(std::min(rowsAtOnce, splitRowsOf(std::min(depthOf(s), kSplitDepthOfBlock)))),
                   channels, pieceOf(s) < kSplitDepth, /*packed=*/true);
    const double counts[] = {groups * rows * channels * depth / share, widened};
    return codegen::costOf("builtin/convolution-tiles", level, counts);
  }
  const double blocks = std::ceil(depth / 1024), tiles = std::ceil(rows / 6), pieces = static_cast<double>(piecesOf(s));
  const double counts[] = {groups * rows * vectors * depth,
                           groups * tiles * vectors * depth,
                           groups * rows * panels * depth,
                           groups * rows * panels * pieces,
                           groups * tiles * panels * blocks,
                           groups * rows * vectors * blocks,
                           groups * rows * pieces,
                           joinsTaps(s) ? lines * static_cast<double>(s.window[1] * s.window[0]) : 0,
                           packed,
                           widened};
  return codegen::costOf("builtin/convolution", level, counts);
}

/// The same with channels first (runtime/kernels/README.md, A convolution).
static runtime::KernelCost channelsFirstCost(const ConvolutionParams &p, runtime::CpuLevel level) {
  const auto &s = p.shape;
  const double lanes = codegen::lanesOf(level), images = hinted(p.batch), taps = static_cast<double>(tapsOf(s));
  double pixels = 1, lines = 1, inPixels = 1;
  for (int d = 0; d < 3; ++d)
    pixels *= hinted(s.out[d]), inPixels *= hinted(s.in[d]), lines *= d < 2 ? hinted(s.out[d]) : 1;
  const auto out = static_cast<double>(s.outChannels), in = static_cast<double>(s.inChannels),
             groups = static_cast<double>(s.groups);
  if (isDepthwise(s)) {
    const double vectors = lines * std::ceil(hinted(s.out[2]) / lanes);
    const bool isNarrow = hinted(s.out[2]) * 2 < lanes; // then as many planes as lanes are turned over
    const double across = std::ceil(out / lanes) * pixels;
    const double counts[] = {isNarrow ? 0 : images * out * vectors * taps,
                             isNarrow ? images * across * taps : 0,
                             images * in * inPixels,
                             images * in * lines,
                             images * out * pixels,
                             images * out};
    return codegen::costOf("builtin/convolution-first-depthwise", level, counts);
  }
  const double depth = static_cast<double>(depthOf(s)), channels = out / groups, vectors = std::ceil(pixels / lanes),
               blocks = std::ceil(channels / static_cast<double>(kChannelBlock));
  const double packed = p.packed < 0 ? images * out * depth : 0;
  const double sums = images * groups * blocks * vectors * depth;
  if (hasFewChannels(s)) {
    const double counts[] = {sums,
                             images * in * inPixels * static_cast<double>(s.window[2]),
                             images * in * lines * static_cast<double>(s.window[2]),
                             images * groups * blocks * std::ceil(vectors / 3),
                             images * out * vectors,
                             images,
                             packed};
    return codegen::costOf("builtin/convolution-first-few", level, counts);
  }
  const bool arranges = taps > 1 || s.stride[1] != 1 || s.stride[2] != 1 || s.stride[0] != 1;
  const double panels = images * groups * vectors * depth;
  const double counts[] = {
      sums,   panels, arranges ? panels : 0, images * groups * blocks * std::ceil(vectors / 3), images * out * vectors,
      images, packed};
  return codegen::costOf("builtin/convolution-first", level, counts);
}

std::optional<passes::Bid> bidForConvolution(const codegen::BinaryRoot &root, const passes::Candidate &candidate,
                                             llvm::ArrayRef<bool> parameterOnly) {
  const auto convolution = codegen::asConvolution(root);
  if (!convolution)
    return std::nullopt;
  ConvolutionParams p = paramsOf(*convolution);
  p.element = elementOf(root.type());
  if (p.element != Element::F32 && (!p.channelsLast || isChannelwise(p.shape)))
    return std::nullopt; // generated code widens what it reads, as fast
  p.image = codegen::inputOf(candidate, 0), p.weights = codegen::inputOf(candidate, 1);
  p.symbols = graph::symbolsOf(candidate.ops[0]);
  const bool packed = p.wantsPacked() && parameterOnly[static_cast<size_t>(p.weights)];
  if (packed)
    p.packed = static_cast<int32_t>(candidate.inputs.size());

  const runtime::DeviceModel &cpu = codegen::hostCpuModel();
  const double bytes =
      hinted(dim::bytes(root.operands[0])) + hinted(dim::bytes(root.operands[1])) + hinted(dim::bytes(root.result));
  passes::Bid bid;
  const runtime::CpuLevel level = kernelLevel().cpu;
  bid.costs = {p.channelsLast ? channelsLastCost(p, level) : channelsFirstCost(p, level)};
  const double serial = codegen::serialSeconds(bid.costs, bytes);
  if (p.channelsLast)
    chooseRows(p, serial, cpu.threads);
  else
    p.blocks = chooseBlocks(p, serial / hinted(p.batch), cpu.threads);
  const int64_t units = std::max<int64_t>(1, dim::hint(p.units()));
  bid.grain = codegen::grainFor(serial, units);
  bid.seconds = codegen::predictSeconds(bid.costs, bytes, (units + bid.grain - 1) / bid.grain);
  bid.params = p.text();
  bid.range = p.units();
  bid.scratchBytes = p.scratchBytes();
  bid.takesEpilogue = !p.channelsLast || p.blocks == 1;
  if (packed)
    bid.packs.push_back({static_cast<unsigned>(p.weights), p.packText(), p.packedBytes()});
  return bid;
}

} // namespace tressel::kernels
