#include "codegen/loops/KernelParts.h"

#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <numeric>

namespace tressel::codegen {
namespace {

/// Sets of values that ops connect: union by the least.
class Sets {
public:
  explicit Sets(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int32_t find(int32_t v) {
    while (parent_[static_cast<size_t>(v)] != v)
      v = parent_[static_cast<size_t>(v)] = parent_[static_cast<size_t>(parent_[static_cast<size_t>(v)])];
    return v;
  }
  void unite(int32_t a, int32_t b) {
    a = find(a), b = find(b);
    parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

private:
  std::vector<int32_t> parent_;
};

/// The kernel of some of the graph's ops, in `set`, and which of the graph's operands its operands are.
std::pair<KernelGraph, std::vector<int32_t>> partOf(const KernelGraph &graph, Sets &sets, int32_t set) {
  KernelGraph part;
  part.keepSubnormals = graph.keepSubnormals, part.deterministic = graph.deterministic;
  std::vector<int32_t> operands, numbers(graph.types.size(), -1);
  auto number = [&](int32_t value) {
    int32_t &at = numbers[static_cast<size_t>(value)];
    if (at < 0)
      at = part.addValue(graph.types[static_cast<size_t>(value)]);
    return at;
  };
  std::vector<const KernelGraph::Op *> ops;
  std::vector<bool> isRead(graph.types.size(), false);
  for (const KernelGraph::Op &op : graph.ops)
    if (sets.find(op.result) == set) {
      ops.push_back(&op);
      for (int32_t value : op.operands)
        isRead[static_cast<size_t>(value)] = true;
    }
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (isRead[static_cast<size_t>(graph.inputs[i])]) {
      part.inputs.push_back(number(graph.inputs[i]));
      operands.push_back(static_cast<int32_t>(i));
    }
  for (const KernelGraph::Splat &splat : graph.splats)
    if (isRead[static_cast<size_t>(splat.value)])
      part.splats.push_back({number(splat.value), splat.f, splat.i});
  for (const KernelGraph::Op *op : ops) {
    KernelGraph::Op &made = part.ops.emplace_back(*op);
    for (int32_t &value : made.operands)
      value = number(value);
    made.result = number(op->result);
  }
  for (size_t i = 0; i < graph.results.size(); ++i)
    if (sets.find(graph.results[i]) == set) {
      part.results.push_back(number(graph.results[i]));
      operands.push_back(static_cast<int32_t>(graph.inputs.size() + i));
    }
  return {std::move(part), std::move(operands)};
}

} // namespace

std::optional<std::vector<KernelPart>> planParts(const KernelGraph &graph, std::string *why) {
  Sets sets(graph.types.size());
  std::vector<bool> isMade(graph.types.size(), false);
  bool isStatic = std::ranges::none_of(graph.types, [](const TensorType &t) { return dim::numElements(t.shape).isSymbolic(); });
  for (const KernelGraph::Op &op : graph.ops)
    isMade[static_cast<size_t>(op.result)] = true;
  for (const KernelGraph::Op &op : graph.ops)
    for (int32_t value : op.operands)
      if (isMade[static_cast<size_t>(value)])
        sets.unite(value, op.result);
  std::vector<int32_t> roots; // of the sets, in the order of their first results
  for (int32_t result : graph.results) {
    if (!isMade[static_cast<size_t>(result)])
      isStatic = false; // an operand that is a result: the nest of all knows how
    else if (std::ranges::find(roots, sets.find(result)) == roots.end())
      roots.push_back(sets.find(result));
  }
  std::vector<KernelPart> parts;
  if (!isStatic || roots.size() < 2) {
    auto plan = buildLoopPlan(graph, why);
    if (!plan)
      return std::nullopt;
    parts.push_back({std::move(*plan), {}});
    return parts;
  }
  for (int32_t root : roots) {
    auto [part, operands] = partOf(graph, sets, root);
    auto plan = buildLoopPlan(part, why);
    if (!plan)
      return std::nullopt;
    parts.push_back({std::move(*plan), std::move(operands)});
  }
  return parts;
}

} // namespace tressel::codegen
