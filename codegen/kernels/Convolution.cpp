// Bids for convolutions: how the work is cut into units, and what it will take.
#include "codegen/Convolution.h"
#include "codegen/CostModel.h"
#include "codegen/kernels/Provider.h"
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
  ConvolutionShape &s = p.shape;
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
static double arrangingChannels(const ConvolutionShape &s) { return tapsOf(s) == 1 ? 4 : s.stride[2] == 1 ? 8 : 12; }

/// Ranges of the channels that become units of their own, so that threads share an image: only where images are few.
/// More than one for each thread evens out their speeds, as long as arranging stays small beside the arithmetic.
static int64_t chooseBlocks(const ConvolutionParams &p, double imageSeconds, int threads) {
  constexpr double worthSplitting = 20e-6;
  const ConvolutionShape &s = p.shape;
  const bool isDense = s.groups == 1; // else units have planes of their own, and arrange nothing twice
  if (threads == 1 || dim::hint(p.batch) >= 4 * threads || (isDense && s.outChannels % kChannelBlock != 0))
    return 1;
  const int64_t whole = isDepthwise(s) ? s.outChannels : isDense ? s.outChannels / kChannelBlock : s.groups;
  const auto most = static_cast<int64_t>(std::min(4.0 * threads, imageSeconds / worthSplitting));
  for (int64_t blocks = most; blocks > 1; --blocks) {
    const auto channels = static_cast<double>(s.outChannels / blocks);
    if (whole % blocks == 0 && (!isDense || channels >= arrangingChannels(s) * (blocks > threads ? 10 : 1)))
      return blocks;
  }
  return 1;
}

/// Whether tiles will multiply so many pixels at a time.
static bool usesTiles(const ConvolutionParams &p, int64_t rows) {
  const ConvolutionShape &s = p.shape;
  return kernelLevel().split && p.splitBytes() > 0 &&
         isWorthSplitting(rows, s.outChannels / s.groups, pieceOf(s) < kSplitDepth, /*packed=*/true);
}

/// Channels last: blocks of pixels, so many that threads share them and what follows finds a block in L2. Where pixels
/// are too few for that, each thread reads weights of its own instead.
static void chooseRows(ConvolutionParams &p, double serialSeconds, int threads) {
  constexpr double worthSplitting = 50e-6;
  const int64_t pixels = p.pixels();
  // Tiles split the weights for each block, and are on CPUs with more L2.
  const bool tiles = usesTiles(p, std::max<int64_t>(1, dim::hint(pixels)));
  constexpr int64_t leastChannels = 64, manyWeights = 1 << 20;
  const int64_t leastRows = tiles ? 96 : 48;
  // Each block reads all weights; if these are much of L2, more pixels share them.
  const bool isFar = dim::isConstant(pixels) && p.packedBytes() >= manyWeights;
  const int64_t wantedRows = isFar ? 2 * leastRows : leastRows, blockBytes = (tiles ? 864 : isFar ? 432 : 216) << 10;
  const int64_t most = std::max(leastRows, blockBytes / (4 * p.shape.outChannels));
  p.rows = pixels, p.typicalRows = std::max<int64_t>(1, dim::hint(pixels));
  if (serialSeconds < worthSplitting)
    return;
  if (!dim::isConstant(pixels)) {
    p.rows = most;
    return;
  }
  if (threads > 1 && pixels < leastRows * threads) {
    p.blocks = std::clamp<int64_t>(p.shape.outChannels / leastChannels, 1, 2 * threads);
    return;
  }
  // As many for each thread.
  int64_t blocks = std::clamp<int64_t>(pixels / wantedRows / threads, 1, 4) * threads;
  blocks = std::max(threads == 1 ? 1 : blocks, (pixels + most - 1) / most);
  blocks = (blocks + threads - 1) / threads * threads;
  p.rows = (pixels + blocks - 1) / blocks;
}

/// Channels last, of the peak as measured on one core: what lists the pieces of the depth costs, and the lanes of the
/// last vector of channels that are no channels.
static double channelsLastEfficiency(const ConvolutionParams &p) {
  const ConvolutionShape &s = p.shape;
  const auto channels = static_cast<double>(s.outChannels / columnGroupsOf(s)), vectors = std::ceil(channels / 16),
             piece = static_cast<double>(pieceOf(s)), depth = static_cast<double>(depthOf(s)),
             rows = hinted(p.pixels());
  if (isChannelwise(s)) { // as many loads as products, and stores that few products share
    const auto taps = static_cast<double>(tapsOf(s));
    return 0.85 * taps / (taps + 26) * channels / (16 * vectors);
  }
  if (isGroupwise(s, 16))
    return 0.3;
  if (const auto rowsAtOnce = static_cast<int64_t>(std::min(rows, 1e3)); usesTiles(p, rowsAtOnce))
    return splitShare(static_cast<double>(std::min(rowsAtOnce, splitRowsOf(std::min(depthOf(s), kSplitDepthOfBlock)))),
                      channels, pieceOf(s) < kSplitDepth, /*packed=*/true);
  double share = 0.88 * channels / (16 * vectors) * (piece / (piece + 1.5)) * (depth / (depth + 4));
  share *= std::min(1.0, 0.12 + 0.14 * rows);
  if (p.element != Element::F32) // what a window sees is widened for each of its taps
    share *= channels / (channels + 6);
  return p.packed >= 0 ? share : share * rows / (rows + 20);
}

/// Share of the peak, as measured on one core: what arranging the image costs, many channels of the result share; the
/// end of each tile, many products; the lanes that the last vector wastes, many pixels.
static double efficiency(const ConvolutionShape &s, bool packed) {
  double pixels = 1;
  for (int64_t size : s.out)
    pixels *= hinted(size);
  if (isDepthwise(s))
    return 0.12 * pixels / (pixels + 50);
  const auto depth = static_cast<double>(depthOf(s)), channels = static_cast<double>(s.outChannels / s.groups);
  const double arranging = arrangingChannels(s);
  double share = 0.75 * depth / (depth + 12) * channels / (channels + arranging) * pixels / (pixels + 6);
  if (s.outChannels / s.groups < kChannelBlock) // fewer sums than hide the latency of a multiply-add
    share *= 0.7;
  return packed ? share : 0.7 * share;
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

  const codegen::CpuModel &cpu = codegen::hostCpuModel();
  const double images = hinted(p.batch), flops = images * codegen::flopsPerImage(*convolution);
  const double bytes =
      hinted(dim::bytes(root.operands[0])) + hinted(dim::bytes(root.operands[1])) + hinted(dim::bytes(root.result));
  const double share = p.channelsLast ? channelsLastEfficiency(p) : efficiency(p.shape, packed || !p.wantsPacked());
  const double predicted = codegen::predictSeconds(cpu, flops, bytes, share);
  if (p.channelsLast)
    chooseRows(p, predicted * cpu.threads, cpu.threads);
  else
    p.blocks = chooseBlocks(p, predicted * cpu.threads / images, cpu.threads);

  passes::Bid bid;
  const int64_t units = std::max<int64_t>(1, dim::hint(p.units()));
  bid.seconds = predicted + 100e-9;
  bid.params = p.text();
  bid.range = p.units();
  bid.grain = std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(units) * 20e-6 / (predicted * cpu.threads)),
                                  1, units);
  bid.scratchBytes = p.scratchBytes();
  bid.takesEpilogue = !p.channelsLast || p.blocks == 1;
  if (packed)
    bid.packs.push_back({static_cast<unsigned>(p.weights), p.packText(), p.packedBytes()});
  return bid;
}

} // namespace tressel::kernels
