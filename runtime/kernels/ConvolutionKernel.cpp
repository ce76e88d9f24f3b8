#include "ConvolutionKernel.h"

#include "Convolution.h"
#include "ConvolutionParams.h"
#include "ImplicitProduct.h"
#include "Kernels.h"
#include "Levels.h"
#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::kernels {

using runtime::KernelArgs;
using runtime::LoadedKernel;

namespace {

struct ConvolutionState {
  ConvolutionParams params;
  std::optional<ConvolutionCallSizes<int64_t>> fixed;
  int32_t numInputs;
  const ConvolutionKernels &kernels;
  const ImplicitProductKernels &products; ///< for channels last
  const SplitKernels *split;
};

} // namespace

/// Packs channels [first, last) of dense weights in the layout of packedWeightsOf; `to` is the address of the first
/// one's block.
static void packWeights(const ConvolutionForm &s, const float *weights, int64_t first, int64_t last, float *to) {
  const int64_t channels = s.outChannels / s.groups, depth = depthOf(s);
  for (int64_t c = first; c < last;) {
    const int64_t count = std::min({kChannelBlock, last - c, channels - c % channels});
    for (int64_t k = 0; k < depth; ++k, to += kChannelBlock)
      for (int64_t i = 0; i < kChannelBlock; ++i)
        to[i] = i < count ? weights[(c + i) * depth + k] : 0;
    c += count;
  }
}

static void runChannelsLast(const ConvolutionState &state, const ConvolutionCallSizes<int64_t> &p,
                            const KernelArgs &args, int64_t begin, int64_t end) {
  ImplicitProduct product{p.shape, p.element, p.typicalRows};
  product.image = args.buffers[p.image], product.result = args.buffers[state.numInputs];
  if (p.packed >= 0)
    product.packed = static_cast<const float *>(args.buffers[p.packed]);
  else
    product.weights = args.buffers[p.weights];
  product.parts = p.blocks, product.scratch = static_cast<float *>(args.scratch);
  product.split = state.split, product.unitRows = std::min(p.rows, p.pixels());
  product.splitScratch =
      static_cast<char *>(args.scratch) + state.params.plainScratchBytes() + state.params.splitSumsBytes();
  const int64_t blocks = p.rowBlocks(), pixels = p.pixels();
  for (int64_t u = begin; u < end;) { // consecutive rows in one call
    const int64_t block = u % blocks, count = std::min(blocks - block, end - u);
    product.part = u / blocks, product.firstRow = block * p.rows;
    product.rows = std::min(count * p.rows, pixels - product.firstRow);
    state.products.multiply(product);
    u += count;
  }
}

static void run(const ConvolutionState &state, const ConvolutionCallSizes<int64_t> &p, const KernelArgs &args,
                int64_t begin, int64_t end) {
  const ConvolutionShape &s = p.shape;
  if (p.batch < 1 || outPlaneOf(s) < 1)
    return;
  if (p.channelsLast)
    return runChannelsLast(state, p, args, begin, end);
  const auto *image = static_cast<const float *>(args.buffers[p.image]);
  const auto *weights = static_cast<const float *>(args.buffers[p.packed >= 0 ? p.packed : p.weights]);
  auto *result = static_cast<float *>(args.buffers[state.numInputs]);
  auto *scratch = static_cast<float *>(args.scratch);
  const bool pack = p.packed < 0 && p.wantsPacked();
  const int64_t inImage = s.inChannels * inPlaneOf(s), outImage = s.outChannels * outPlaneOf(s),
                channels = p.blockChannels();
  float *const packed = scratch + convolutionScratchFloats(s);
  int64_t packedBlock = -1;
  for (int64_t u = begin; u < end;) {
    const int64_t index = u / p.blocks, block = u % p.blocks;
    // Consecutive blocks of an image share the arranged data in one call. Weights that must be packed here are packed
    // block by block.
    const int64_t count = pack ? 1 : std::min(p.blocks - block, end - u);
    ConvolutionCall call{s,
                         image + index * inImage,
                         weights,
                         result + index * outImage,
                         block * channels,
                         (block + count) * channels,
                         scratch};
    if (!pack) {
      state.kernels.convolve(call);
    } else {
      if (packedBlock != block)
        packWeights(s, weights, call.first, call.last, packed);
      packedBlock = block;
      // The convolution restricted to the block's channels.
      ConvolutionShape part = s;
      part.outChannels = channels;
      if (s.groups > 1)
        part.groups = s.groups / p.blocks, part.inChannels = s.inChannels / p.blocks;
      const int64_t firstPlane = s.groups > 1 ? block * part.inChannels : 0;
      state.kernels.convolve({part, call.image + firstPlane * inPlaneOf(s), packed,
                              call.result + call.first * outPlaneOf(s), 0, channels, scratch});
    }
    u += count;
  }
}

static int32_t runConvolution(const KernelArgs *args, int64_t begin, int64_t end) {
  const auto &state = *static_cast<const ConvolutionState *>(args->state);
  return statusOf([&] {
    if (state.fixed)
      run(state, *state.fixed, *args, begin, end);
    else
      run(state, state.params.at(args->scalars), *args, begin, end);
  });
}

static int32_t runPack(const KernelArgs *args, int64_t begin, int64_t end) {
  const auto &state = *static_cast<const ConvolutionState *>(args->state);
  const ConvolutionForm &s = state.params.shape;
  auto *packed = static_cast<float *>(args->buffers[state.numInputs]);
  if (begin != 0 || end < 1)
    return runtime::kKernelOk;
  if (state.params.channelsLast)
    state.products.pack(s, state.params.element, state.params.typicalRows, args->buffers[0], packed);
  else
    packWeights(s, static_cast<const float *>(args->buffers[0]), 0, s.outChannels, packed);
  return runtime::kKernelOk;
}

static LoadedKernel load(runtime::KernelFn fn, const runtime::KernelDesc &desc, ConvolutionParams params,
                         const Level &level, const SplitKernels *split = nullptr) {
  checkOperands(desc, {params.image, params.weights, params.packed});
  const ConvolutionKernels &kernels = isDepthwise(params.shape)
                                          ? at(level, depthwiseBaseline, depthwiseV3, depthwiseV4)
                                          : at(level, convolutionBaseline, convolutionV3, convolutionV4);
  auto state = std::make_shared<const ConvolutionState>(
      ConvolutionState{params, fixedNumbers(params), desc.numInputs, kernels,
                       at(level, implicitProductBaseline, implicitProductV3, implicitProductV4), split});
  return {fn, state.get(), state};
}

LoadedKernel makeConvolution(const runtime::KernelDesc &desc, const Fields &fields, const Level &level) {
  ConvolutionParams params = ConvolutionParams::parse(fields, /*isPack=*/false);
  // Programs compiled before tiles existed have no scratch memory for them.
  checkScratch(desc, params.plainScratchBytes());
  const bool splits = params.splitBytes() > 0 && desc.scratchBytes.numberOr(0) >= params.scratchBytes();
  return load(runConvolution, desc, std::move(params), level, splits ? level.split : nullptr);
}

LoadedKernel makeConvolutionPack(const runtime::KernelDesc &desc, const Fields &fields, const Level &level) {
  ConvolutionParams params = ConvolutionParams::parse(fields, /*isPack=*/true);
  params.weights = 0;
  return load(runPack, desc, std::move(params), level);
}

} // namespace tressel::kernels
