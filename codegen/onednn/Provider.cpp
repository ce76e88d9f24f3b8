#include "codegen/onednn/Provider.h"

#include "codegen/Convolution.h"
#include "codegen/CostModel.h"
#include "codegen/MatrixProduct.h"
#include "codegen/onednn/Params.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>

namespace tressel::onednn {

namespace {

using codegen::BinaryRoot;
using codegen::hinted;
using passes::Bid;
using passes::Candidate;
using runtime::KernelCost;

/// What oneDNN takes: of each matrix one dimension must be dense.
std::optional<Params> asMatmul(const BinaryRoot &root) {
  const auto product = codegen::asMatrixProduct(root);
  if (!product)
    return std::nullopt;
  auto oneDense = [](Size outer, Size inner) { return outer == 1 || inner == 1; };
  Params p;
  p.left = product->leftOperand, p.right = product->rightOperand;
  p.matmul = {product->batch, product->m, product->n, product->k, product->left, product->right, 1};
  callUnitSizesDense(p.matmul);
  if (!oneDense(p.matmul.a[1], p.matmul.a[2]) || !oneDense(p.matmul.b[1], p.matmul.b[2]))
    return std::nullopt;
  return p;
}

/// Rows per unit: some 4 Mflop, an even split, and with a batch whole matrices or equal blocks, so that units are
/// contiguous.
void chooseRows(Matmul<Size> &m) {
  constexpr double flopsPerUnit = 4e6;
  auto rows = static_cast<int64_t>(flopsPerUnit / (2.0 * hinted(m.n) * hinted(m.k)));
  m.rows = std::clamp<int64_t>((rows + 15) / 16 * 16, 32, 128);
  if (m.m.isNumber()) {
    const Size blocks = (m.m + m.rows - 1) / m.rows;
    m.rows = (m.m + blocks - 1) / blocks;
  }
  if (m.batch != 1 && (!m.m.isNumber() || m.m % m.rows != 0))
    m.rows = m.m;
}

/// Each call arranges its weights anew where they are not packed, and the library reads them for each image again. So a
/// unit is several images, as many as make that little beside the products, as far as all threads have some. Where all
/// images are fewer pixels than that takes, a unit is a range of the features of all images: then each thread arranges
/// weights of its own alone.
void chooseUnits(Params &params, int threads) {
  constexpr int64_t enoughPixels = 128, fewPixels = 512, manyWeights = 1 << 18, leastFeatures = 32, lanes = 16;
  Conv<Size> &c = params.conv;
  if (c.blocks > 1 || !c.batch.isNumber() || c.batch.number() < 1)
    return;
  int64_t pixels = 1, weights = c.inChannels / c.groups * c.outChannels;
  for (Size size : c.out)
    pixels *= std::max<int64_t>(1, dim::hint(size));
  for (int64_t size : c.window)
    weights *= size;
  const int64_t batch = c.batch.number(), features = params.kind == Kind::ConvByData ? c.inChannels : c.outChannels;
  if (threads > 1 && c.groups == 1 && c.channelsLast && batch * pixels <= fewPixels && weights >= manyWeights)
    for (int64_t blocks = threads; blocks <= 2 * threads && features >= blocks * leastFeatures; blocks += threads)
      if (features % (blocks * lanes) == 0)
        c.blocks = blocks, c.images = batch;
  if (c.blocks > 1)
    return;
  for (int64_t images = std::min((enoughPixels + pixels - 1) / pixels, (batch + threads - 1) / threads);
       images > 1 && c.images == 1; --images)
    if (batch % images == 0)
      c.images = images;
}

/// The largest number of equal ranges of features that have at least as many as a vector or two.
int64_t rangesOfFeatures(const codegen::Convolution &c) {
  const int64_t all = c.groups > 1 ? c.groups : c.outChannels;
  for (int64_t ranges : {16, 8, 4})
    if (all % (ranges * 16) == 0)
      return ranges;
  return all % 2 == 0 ? 2 : 1;
}

std::optional<Params> asConv(const BinaryRoot &root) {
  Params p;
  p.kind = Kind::Conv;
  auto found = codegen::asConvolution(root);
  if (!found && (found = codegen::asConvolutionByData(root)))
    p.kind = Kind::ConvByData;
  else if (!found && (found = codegen::asConvolutionByWeights(root)))
    p.kind = Kind::ConvByWeights;
  const bool byWeights = p.kind == Kind::ConvByWeights;
  if (!found || (byWeights && dim::bounds(found->batch).lo < 1)) // of no image it is a sum of nothing
    return std::nullopt;
  Conv<Size> &c = p.conv;
  c = {found->batch,   found->groups,    found->inChannels, found->outChannels, 1, found->in, found->window, found->out,
       found->strides, found->dilations, found->padLow,     found->padHigh, found->channelsLast};
  if (byWeights) {
    c.blocks = rangesOfFeatures(*found);
    return p;
  }
  // A small batch of large images leaves threads idle: then ranges of features are units of their own.
  if (p.kind == Kind::Conv && !c.channelsLast && c.groups == 1 && dim::hint(c.batch) < 4 &&
      codegen::flopsPerImage(*found) > 20e6)
    for (int64_t blocks : {4, 2})
      if (c.outChannels % (blocks * 32) == 0) {
        c.blocks = blocks;
        break;
      }
  return p;
}

/// The instructions that the library may use: the CPU's, or what its own variable in the environment limits them to.
runtime::CpuLevel libraryLevel() {
  static const runtime::CpuLevel level = [] {
    runtime::CpuLevel limit = runtime::CpuLevel::V4;
    for (const char *name : {"DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"})
      if (const char *value = std::getenv(name)) {
        const std::string_view isa(value);
        if (isa == "SSE41" || isa == "AVX")
          limit = runtime::CpuLevel::Baseline;
        else if (isa.starts_with("AVX2"))
          limit = runtime::CpuLevel::V3;
      }
    return std::min(limit, runtime::hostCpuLevel());
  }();
  return level;
}

/// Of the window along a dimension: pairs of a place of the result and a tap that lies in the image there, and taps that are in any pair.
struct Taps {
  double pairs = 0, used = 0;
};
Taps tapsInside(const Conv<Size> &c, size_t d) {
  Taps taps;
  const auto in = static_cast<int64_t>(hinted(c.in[d])), out = static_cast<int64_t>(hinted(c.out[d]));
  for (int64_t k = 0; k < c.window[d]; ++k) {
    const int64_t at = k * c.dilations[d] - c.padLow[d]; // of the first place
    const int64_t first = at < 0 ? (-at + c.strides[d] - 1) / c.strides[d] : 0, end = in > at ? (in - at + c.strides[d] - 1) / c.strides[d] : 0;
    const auto pairs = static_cast<double>(std::max<int64_t>(0, std::min(end, out) - first));
    taps.pairs += pairs;
    taps.used += pairs > 0;
  }
  return taps;
}

/// What the library's kernels do, as far as sizes tell, in counts that their cost models multiply. By the data it is
/// the same products, with the features in the place of the channels.
KernelCost costOf(const Params &params, const BinaryRoot &root, bool packed) {
  Conv<Size> c = params.conv;
  if (params.kind == Kind::ConvByData)
    std::swap(c.inChannels, c.outChannels);
  const runtime::CpuLevel level = libraryLevel();
  const double lanes = codegen::lanesOf(level), units = std::max(1.0, hinted(c.units()));
  double pixels = hinted(c.batch), taps = 1;
  for (Size size : c.out)
    pixels *= hinted(size);
  for (int64_t size : c.window)
    taps *= static_cast<double>(size);
  const auto groups = static_cast<double>(c.groups), in = static_cast<double>(c.inChannels) / groups,
             out = static_cast<double>(c.outChannels) / groups;
  const double weights = packed ? 0 : groups * in * out * taps;
  const double moved = c.channelsLast ? 0 : hinted(dim::numElements(root.operands[0].shape)) + hinted(dim::numElements(root.result.shape));
  if (c.groups > 1 && in == 1 && out == 1) {
    const double counts[] = {pixels * std::ceil(groups / lanes) * taps, pixels * std::ceil(groups / lanes), moved, weights, units};
    return codegen::costOf("onednn/convolution-depthwise", level, counts);
  }
  const double vectors = std::ceil(out / lanes);
  if (c.groups > 1) {
    const double counts[] = {pixels * groups * vectors * in * taps, pixels * groups * vectors, moved, weights, units};
    return codegen::costOf("onednn/convolution-grouped", level, counts);
  }
  const double filled = in < lanes ? in : std::ceil(in / lanes) * lanes;
  // A tile is a part of one row of the image: where rows are shorter, it reads all weights for few pixels.
  const double row = hinted(c.out.back());
  if (row < 6 && taps > 1 && in >= lanes) {
    double products = hinted(c.batch), tiles = products; // of taps that lie in the image: few do where it is narrow
    for (size_t d = 0; d < c.out.size(); ++d) {
      const Taps inside = tapsInside(c, d);
      products *= inside.pairs;
      tiles *= d + 1 == c.out.size() ? inside.used : inside.pairs;
    }
    const double counts[] = {products * vectors * filled, tiles * vectors * filled, pixels * vectors, moved, weights, units};
    return codegen::costOf("onednn/convolution-column", level, counts);
  }
  const double counts[] = {pixels * vectors * filled * taps, std::ceil(pixels / 6) * vectors * filled * taps, pixels * vectors, moved, weights, units};
  return codegen::costOf(in < lanes ? "onednn/convolution-few" : "onednn/convolution", level, counts);
}
KernelCost costOf(const Matmul<Size> &m, bool packed) {
  const runtime::CpuLevel level = libraryLevel();
  const double batch = hinted(m.batch), rows = hinted(m.m), depth = hinted(m.k), vectors = std::ceil(hinted(m.n) / codegen::lanesOf(level)),
               units = std::max(1.0, hinted(m.units())), read = packed ? 0 : units * depth * hinted(m.n);
  const double counts[] = {batch * rows * vectors * depth, batch * std::ceil(rows / 6) * vectors * depth, batch * rows * vectors,
                           read, 4 * depth * hinted(m.n) > codegen::kMemoryBytes ? read : 0, units};
  return codegen::costOf("onednn/product", level, counts);
}

class Provider final : public passes::KernelProvider {
public:
  llvm::StringRef name() const override { return "onednn"; }
  graph::KernelTarget target() const override { return graph::KernelTarget::HostLibrary; }

  std::optional<Bid> bid(const Candidate &candidate, llvm::ArrayRef<bool> parameterOnly) const override {
    auto root = codegen::binaryRootOf(candidate);
    if (!root || root->type() != f32)
      return std::nullopt;
    bool isConv = true;
    auto params = asConv(*root);
    if (!params) {
      isConv = false;
      params = asMatmul(*root);
    }
    if (!params)
      return std::nullopt;
    params->left = codegen::inputOf(candidate, params->left);
    params->right = codegen::inputOf(candidate, params->right);
    Size range;
    const bool byWeights = isConv && params->kind == Kind::ConvByWeights,
               byData = isConv && params->kind == Kind::ConvByData;
    const bool packs = !byWeights && parameterOnly[static_cast<size_t>(params->right)];
    if (byData && packs) // as a convolution by weights that are turned, and packed, ahead of the step it is faster
      return std::nullopt;
    if (byWeights) {
      range = params->conv.blocks;
      params->unit = dim::numElements(root->result.shape) / params->conv.blocks;
    } else if (isConv) {
      // The library may compute sizes in different ways, which the number of threads must not decide.
      constexpr int anyThreads = 8;
      if (!packs)
        chooseUnits(*params, graph::isDeterministic(candidate.ops[0]) ? anyThreads : codegen::hostCpuModel().threads);
      Conv<Size> &c = params->conv;
      range = c.units();
      params->unit = c.areUnitsDense() ? c.images * ((byData ? c.inChannels : c.outChannels) / c.blocks) : 0;
      for (Size size : byData ? c.in : c.out)
        params->unit *= size;
    } else {
      chooseRows(params->matmul);
      range = params->matmul.units();
      params->unit = params->matmul.rows * params->matmul.n;
    }
    params->symbols = graph::symbolsOf(candidate.ops[0]);
    const int64_t units = std::max<int64_t>(1, dim::hint(range));
    // Batched right sides are read as they are: packing serves weights that all rows share.
    if (packs && (isConv || params->matmul.batch == 1))
      params->packed = static_cast<int32_t>(candidate.inputs.size());
    Query answer = query(*params);
    // Wide padding, for one, is beyond its own code: what it then does takes several times as long, and ours does not.
    if (!answer.supported ||
        (isConv && !answer.isDirect && std::ranges::any_of(params->conv.window, [](int64_t size) { return size > 1; })))
      return std::nullopt;
    const double bytes = hinted(dim::bytes(root->operands[0])) + hinted(dim::bytes(root->operands[1])) +
                         hinted(dim::bytes(root->result));
    Bid bid;
    bid.costs = {isConv ? costOf(*params, *root, params->packed >= 0) : costOf(params->matmul, params->packed >= 0)};
    bid.params = params->toJson();
    bid.takesEpilogue = !isConv || byWeights || params->conv.areUnitsDense();
    bid.range = range;
    // A call of the library costs more than one of ours.
    bid.grain = std::min(units, 2 * codegen::grainFor(codegen::serialSeconds(bid.costs, bytes), units));
    bid.seconds = codegen::predictSeconds(bid.costs, bytes, (units + bid.grain - 1) / bid.grain);
    bid.scratchBytes = params->symbols.empty() ? answer.needs.scratchBytes : 0;
    if (params->packed >= 0) {
      Params pack = Params::of(params->typical());
      pack.kind = isConv ? Kind::PackConv : Kind::PackMatmul;
      pack.left = pack.right = 0, pack.packed = -1;
      bid.packs.push_back({static_cast<unsigned>(params->right), pack.toJson(), answer.needs.packedBytes});
    }
    return bid;
  }
};

} // namespace

bool isThere() { return dlsym(RTLD_DEFAULT, "dnnl_engine_create"); }

std::unique_ptr<passes::KernelProvider> makeProvider() {
  registerKernels();
  return std::make_unique<Provider>();
}

} // namespace tressel::onednn
