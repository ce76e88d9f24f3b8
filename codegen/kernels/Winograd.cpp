// Bids for convolutions by Winograd's minimal filtering, where the user allows what it does to the results' last digits.
#include "codegen/Convolution.h"
#include "codegen/CostModel.h"
#include "codegen/kernels/Provider.h"
#include "ir/graph/Graph.h"
#include "runtime/kernels/Kernels.h"
#include "runtime/kernels/WinogradParams.h"

#include <algorithm>

namespace tressel::kernels {

using codegen::hinted;

namespace {

bool isAll(const std::vector<int64_t> &values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}

class WinogradProvider final : public passes::KernelProvider {
public:
  llvm::StringRef name() const override { return "kernels"; }

  std::optional<passes::Bid> bid(const passes::Candidate &candidate, llvm::ArrayRef<bool> parameterOnly) const override {
    const auto root = codegen::binaryRootOf(candidate);
    const auto c = root && root->type() == f32 ? codegen::asConvolution(*root) : std::nullopt;
    if (!c || !c->channelsLast || c->groups != 1 || c->in.size() != 2 || !isAll(c->window, 3) || !isAll(c->strides, 1) ||
        !isAll(c->dilations, 1))
      return std::nullopt;
    const int32_t weights = codegen::inputOf(candidate, 1);
    if (!parameterOnly[static_cast<size_t>(weights)])
      return std::nullopt; // transforming them for every call costs more than it saves
    WinogradParams p;
    p.batch = c->batch;
    p.shape = {c->inChannels, c->outChannels, {c->in[0], c->in[1]}, {c->out[0], c->out[1]}, {c->padLow[0], c->padLow[1]}};
    p.image = codegen::inputOf(candidate, 0), p.packed = static_cast<int32_t>(candidate.inputs.size());
    p.symbols = graph::symbolsOf(candidate.ops[0]);

    const codegen::CpuModel &cpu = codegen::hostCpuModel();
    double filled = 1; // of the tiles that reach over the edge
    for (int64_t size : c->out)
      filled *= hinted(size) / (kWinogradOut * hinted(dim::ceilDiv(size, kWinogradOut)));
    const double flops = hinted(p.batch) * codegen::flopsPerImage(*c) / 4 / filled;
    const double bytes = hinted(dim::bytes(root->operands[0])) + hinted(dim::bytes(root->result)) +
                         static_cast<double>(p.packedBytes());
    // The transforms are paid by the channels on the other side of the products.
    const double channels = 1 / (1 / static_cast<double>(c->inChannels) + 1 / static_cast<double>(c->outChannels));
    constexpr double products = 0.75, transforms = 24;
    const double predicted = codegen::predictSeconds(cpu, flops, bytes, products * channels / (channels + transforms));

    passes::Bid bid;
    const int64_t units = std::max<int64_t>(1, dim::hint(p.units()));
    bid.seconds = predicted + 100e-9;
    bid.params = p.text();
    bid.range = p.units();
    // Weights are read once for a whole chunk.
    bid.grain = std::max<int64_t>(1, units / (2 * cpu.threads));
    if (predicted * cpu.threads < 50e-6)
      bid.grain = units;
    bid.scratchBytes = p.scratchBytes();
    bid.takesEpilogue = p.hasEvenUnits();
    bid.packs.push_back({static_cast<unsigned>(weights), p.packText(), p.packedBytes()});
    return bid;
  }
};

} // namespace

std::unique_ptr<passes::KernelProvider> makeWinogradProvider() {
  registerKernels();
  return std::make_unique<WinogradProvider>();
}

} // namespace tressel::kernels
