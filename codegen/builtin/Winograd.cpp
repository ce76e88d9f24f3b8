// Bids for convolutions by Winograd's minimal filtering, where the user allows what it does to the results' last digits.
#include "codegen/Convolution.h"
#include "codegen/CostModel.h"
#include "codegen/builtin/Provider.h"
#include "ir/graph/Graph.h"
#include "runtime/kernels/Kernels.h"
#include "runtime/kernels/Levels.h"
#include "runtime/kernels/WinogradParams.h"

#include <algorithm>
#include <cmath>

namespace tressel::kernels {

using codegen::hinted;

namespace {

bool isAll(const std::vector<int64_t> &values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}

class WinogradProvider final : public passes::KernelProvider {
public:
  llvm::StringRef name() const override { return "builtin"; }
  graph::KernelTarget target() const override { return graph::KernelTarget::HostLibrary; }

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

    const runtime::DeviceModel &cpu = codegen::hostCpuModel();
    const runtime::CpuLevel level = kernelLevel().cpu;
    double tiles = hinted(p.batch); // also those that reach over the edge
    for (Size size : c->out)
      tiles *= hinted(dim::ceilDiv(size, kWinogradOut));
    const double bytes = hinted(dim::bytes(root->operands[0])) + hinted(dim::bytes(root->result)) +
                         static_cast<double>(p.packedBytes());
    const double lanes = codegen::lanesOf(level), in = static_cast<double>(c->inChannels), out = static_cast<double>(c->outChannels);
    const double vectors = std::ceil(out / lanes);
    const double counts[] = {tiles * 36 * in * vectors, std::ceil(tiles / 6) * 36 * in * vectors, tiles * 36 * std::ceil(in / lanes),
                             tiles * 36 * vectors};
    passes::Bid bid;
    bid.costs = {codegen::costOf("builtin/convolution-winograd", level, counts)};
    const int64_t units = std::max<int64_t>(1, dim::hint(p.units()));
    bid.params = p.text();
    bid.range = p.units();
    // Weights are read once for a whole chunk.
    bid.grain = std::max<int64_t>(1, units / (2 * cpu.threads));
    if (codegen::serialSeconds(bid.costs, bytes) < 50e-6)
      bid.grain = units;
    bid.seconds = codegen::predictSeconds(bid.costs, bytes, (units + bid.grain - 1) / bid.grain);
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
