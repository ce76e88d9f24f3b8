#include "codegen/onednn/Provider.h"

#include "codegen/Convolution.h"
#include "codegen/CostModel.h"
#include "codegen/MatrixProduct.h"
#include "codegen/onednn/Params.h"
#include "ir/graph/Graph.h"

#include <algorithm>

namespace tressel::onednn {

namespace {

using codegen::BinaryRoot;
using codegen::hinted;
using passes::Bid;
using passes::Candidate;

/// What oneDNN takes: of each matrix one dimension must be dense.
std::optional<Params> asMatmul(const BinaryRoot &root) {
  const auto product = codegen::asMatrixProduct(root);
  if (!product)
    return std::nullopt;
  auto oneDense = [](int64_t outer, int64_t inner) { return outer == 1 || inner == 1; };
  Params p;
  p.left = product->leftOperand, p.right = product->rightOperand;
  p.matmul = {product->batch, product->m, product->n, product->k, product->left, product->right, 1};
  p.matmul.callUnitSizesDense();
  if (!oneDense(p.matmul.a[1], p.matmul.a[2]) || !oneDense(p.matmul.b[1], p.matmul.b[2]))
    return std::nullopt;
  return p;
}

/// Rows per unit: some 4 Mflop, an even split, and with a batch whole matrices or equal blocks, so that units are
/// contiguous.
void chooseRows(Matmul &m) {
  constexpr double flopsPerUnit = 4e6;
  auto rows = static_cast<int64_t>(flopsPerUnit / (2.0 * hinted(m.n) * hinted(m.k)));
  m.rows = std::clamp<int64_t>((rows + 15) / 16 * 16, 32, 128);
  if (dim::isConstant(m.m)) {
    int64_t blocks = (m.m + m.rows - 1) / m.rows;
    m.rows = (m.m + blocks - 1) / blocks;
  }
  if (m.batch != 1 && (!dim::isConstant(m.m) || m.m % m.rows != 0))
    m.rows = m.m;
}

std::optional<Params> asConv(const BinaryRoot &root) {
  const auto found = codegen::asConvolution(root);
  if (!found)
    return std::nullopt;
  Params p;
  p.kind = Kind::Conv;
  Conv &c = p.conv;
  c = {found->batch,   found->groups,    found->inChannels, found->outChannels, 1, found->in, found->window, found->out,
       found->strides, found->dilations, found->padLow,     found->padHigh, found->channelsLast};
  // A small batch of large images leaves threads idle: then ranges of features are units of their own.
  if (!c.channelsLast && c.groups == 1 && dim::hint(c.batch) < 4 && codegen::flopsPerImage(*found) > 20e6)
    for (int64_t blocks : {4, 2})
      if (c.outChannels % (blocks * 32) == 0) {
        c.blocks = blocks;
        break;
      }
  return p;
}

class Provider final : public passes::KernelProvider {
public:
  llvm::StringRef name() const override { return "onednn"; }

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
    double flops = 2.0 * hinted(dim::numElements(root->result.shape));
    if (isConv)
      flops *=
          static_cast<double>(root->operands[1].shape.numElements()) / static_cast<double>(params->conv.outChannels);
    else
      flops *= hinted(params->matmul.k);
    params->left = codegen::inputOf(candidate, params->left);
    params->right = codegen::inputOf(candidate, params->right);
    int64_t range;
    if (isConv) {
      range = params->conv.units();
      params->unit = params->conv.outChannels / params->conv.blocks;
      for (int64_t size : params->conv.out)
        params->unit = dim::mul(params->unit, size);
    } else {
      chooseRows(params->matmul);
      range = params->matmul.units();
      params->unit = dim::mul(params->matmul.rows, params->matmul.n);
    }
    params->symbols = graph::symbolsOf(candidate.ops[0]);
    const int64_t units = std::max<int64_t>(1, dim::hint(range));
    // Batched right sides are read as they are: packing serves weights that all rows share.
    if (parameterOnly[static_cast<size_t>(params->right)] && (isConv || params->matmul.batch == 1))
      params->packed = static_cast<int32_t>(candidate.inputs.size());
    Query answer = query(*params);
    if (!answer.supported)
      return std::nullopt;
    Bid bid;
    const codegen::CpuModel &cpu = codegen::hostCpuModel();
    double bytes = hinted(dim::bytes(root->operands[0])) + hinted(dim::bytes(root->operands[1])) +
                   hinted(dim::bytes(root->result));
    // Shares of peak as measured on one core: large products 0.85, small blocks less.
    double efficiency =
        isConv
            ? (params->conv.inChannels / params->conv.groups >= 16 ? 0.6 : 0.1)
            : std::min(0.85, 0.2 + 0.01 * static_cast<double>(std::min<int64_t>(dim::hint(params->matmul.rows), 64)));
    bid.seconds =
        codegen::predictSeconds(cpu, flops, bytes, efficiency) + static_cast<double>(units) * cpu.libraryCallSeconds;
    // Blocked layouts inside: the image and the result are copied.
    if (isConv && !params->conv.channelsLast && params->conv.inChannels / params->conv.groups >= 16)
      bid.seconds += codegen::predictSeconds(
          cpu, 0, 2 * (hinted(dim::bytes(root->operands[0])) + hinted(dim::bytes(root->result))), 1);
    bid.params = params->toJson();
    bid.takesEpilogue = true;
    bid.range = range;
    bid.grain =
        std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(units) * 40e-6 / (bid.seconds * cpu.threads)));
    bid.grain = std::min(bid.grain, units);
    bid.scratchBytes = params->symbols.empty() ? answer.needs.scratchBytes : 0;
    if (params->packed >= 0) {
      Params pack = params->typical();
      pack.kind = isConv ? Kind::PackConv : Kind::PackMatmul;
      pack.left = pack.right = 0, pack.packed = -1;
      bid.packs.push_back({static_cast<unsigned>(params->right), pack.toJson(), answer.needs.packedBytes});
    }
    return bid;
  }
};

} // namespace

std::unique_ptr<passes::KernelProvider> makeProvider() {
  registerKernels();
  return std::make_unique<Provider>();
}

} // namespace tressel::onednn
