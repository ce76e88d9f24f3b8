// Bids for attention.
#include "codegen/CostModel.h"
#include "codegen/kernels/Provider.h"
#include "ir/graph/Graph.h"
#include "passes/Util.h"
#include "runtime/kernels/AttentionParams.h"

#include <algorithm>
#include <bit>

namespace tressel::kernels {

using codegen::hinted;

std::optional<passes::Bid> bidForAttention(const passes::Candidate &candidate) {
  if (candidate.ops.size() != 1)
    return std::nullopt;
  mlir::Operation *op = candidate.ops.front();
  const std::optional<op::KernelForm> form = passes::kernelFormOf(op);
  if (!form || form->kernel != "attention_f32")
    return std::nullopt;
  if (dim::numElements(graph::fromMlir(op->getResult(0).getType()).shape) == 0)
    return std::nullopt; // no unit of work: the decomposition has nothing to do
  AttentionParams p;
  p.heads = form->params[0], p.shared = form->params[1], p.queries = form->params[2], p.keys = form->params[3];
  p.size = form->params[4], p.width = form->params[5], p.causal = form->params[6] != 0;
  p.scale = std::bit_cast<double>(form->params[7]);
  p.q = codegen::inputOf(candidate, 0), p.k = codegen::inputOf(candidate, 1), p.v = codegen::inputOf(candidate, 2);
  if (form->params.size() > 8) {
    p.mask = codegen::inputOf(candidate, 3);
    p.maskHides = graph::fromMlir(op->getOperand(3).getType()).dtype == DType::boolean;
    p.maskHeads = form->params[8], p.maskShared = form->params[9], p.maskRow = form->params[10];
  }
  const auto numInputs = static_cast<int32_t>(candidate.inputs.size());
  if (std::max({p.q, p.k, p.v, p.mask}) >= numInputs) // a constant
    return std::nullopt;
  p.symbols = graph::symbolsOf(op);
  // With few heads, blocks of queries are units too: each packs the keys and values for itself.
  const codegen::CpuModel &cpu = codegen::hostCpuModel();
  constexpr int64_t leastRows = 96;
  p.rows = p.queries;
  if (dim::isConstant(p.queries) && dim::hint(p.heads) < 2 * cpu.threads && p.queries >= 2 * leastRows)
    p.rows = std::max<int64_t>(leastRows, (p.queries + 2 * cpu.threads - 1) / (2 * cpu.threads));

  double bytes = hinted(dim::bytes(graph::fromMlir(op->getResult(0).getType())));
  for (mlir::Type type : op->getOperandTypes())
    bytes += hinted(dim::bytes(graph::fromMlir(type)));
  // Shares of the peak as measured: a softmax runs between the products.
  const double efficiency = 0.6 * std::min(1.0, (hinted(p.queries) + 2) / 16);
  passes::Bid bid;
  bid.seconds = codegen::predictSeconds(cpu, form->flops, bytes, efficiency) + 100e-9;
  bid.params = p.text();
  bid.range = p.units();
  const int64_t units = std::max<int64_t>(1, dim::hint(bid.range));
  bid.grain = std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(units) * 20e-6 / (bid.seconds * cpu.threads)), 1, units);
  bid.scratchBytes = p.scratchBytes();
  return bid;
}

} // namespace tressel::kernels
