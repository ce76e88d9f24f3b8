// Bids for attention.
#include "codegen/CostModel.h"
#include "codegen/builtin/Provider.h"
#include "ir/graph/Graph.h"
#include "passes/Util.h"
#include "runtime/kernels/AttentionParams.h"
#include "runtime/kernels/Levels.h"

#include <algorithm>
#include <bit>
#include <cmath>

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
  p.heads = form->params[0], p.shared = form->params[1].number(), p.queries = form->params[2], p.keys = form->params[3];
  p.size = form->params[4], p.width = form->params[5], p.causal = form->params[6] != 0;
  p.scale = std::bit_cast<double>(form->params[7].number());
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
  const runtime::DeviceModel &cpu = codegen::hostCpuModel();
  constexpr int64_t leastRows = 96;
  p.rows = p.queries;
  if (p.queries.isNumber() && dim::hint(p.heads) < 2 * cpu.threads && p.queries >= 2 * leastRows)
    p.rows = std::max<Size>(leastRows, (p.queries + 2 * cpu.threads - 1) / (2 * cpu.threads));

  double bytes = hinted(dim::bytes(graph::fromMlir(op->getResult(0).getType())));
  for (mlir::Type type : op->getOperandTypes())
    bytes += hinted(dim::bytes(graph::fromMlir(type)));
  const runtime::CpuLevel level = kernelLevel().cpu;
  const double lanes = codegen::lanesOf(level), heads = hinted(p.heads), queries = hinted(p.queries), keys = hinted(p.keys),
               size = hinted(p.size), width = hinted(p.width), units = std::max(1.0, hinted(p.units()));
  const double scores = heads * queries * std::ceil(keys / lanes) * (p.causal ? 0.5 : 1);
  const double counts[] = {scores * size + heads * queries * std::ceil(width / lanes) * keys * (p.causal ? 0.5 : 1),
                           scores,
                           heads * std::ceil(queries / 6) * (std::ceil(keys / lanes) * size + std::ceil(width / lanes) * keys),
                           units * keys * (size + width),
                           heads * queries,
                           units};
  passes::Bid bid;
  bid.costs = {codegen::costOf("builtin/attention", level, counts)};
  const double serial = codegen::serialSeconds(bid.costs, bytes);
  bid.params = p.text();
  bid.range = p.units();
  bid.grain = codegen::grainFor(serial, static_cast<int64_t>(units));
  bid.seconds = codegen::predictSeconds(bid.costs, bytes, static_cast<int64_t>(std::ceil(units / static_cast<double>(bid.grain))));
  bid.scratchBytes = p.scratchBytes();
  return bid;
}

} // namespace tressel::kernels
