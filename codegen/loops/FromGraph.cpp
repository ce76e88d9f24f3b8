#include "codegen/loops/FromGraph.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "tressel/runtime/Dim.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

namespace tressel::codegen {
namespace {

/// The value of a splat or of one element.
struct Immediate {
  double f = 0;
  int64_t i = 0;
};

std::optional<Immediate> immediateOf(mlir::Value v) {
  mlir::DenseElementsAttr attr;
  if (!mlir::matchPattern(v, mlir::m_Constant(&attr)) || !(attr.isSplat() || attr.getNumElements() == 1))
    return std::nullopt;
  Immediate out;
  if (mlir::isa<mlir::FloatType>(attr.getElementType())) {
    llvm::APFloat value = *attr.getValues<llvm::APFloat>().begin();
    bool inexact;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
    out.f = value.convertToDouble();
  } else {
    const llvm::APInt value = *attr.getValues<llvm::APInt>().begin();
    const bool isSigned = value.getBitWidth() > 1 && !attr.getElementType().isUnsignedInteger();
    out.i = isSigned ? value.getSExtValue() : static_cast<int64_t>(value.getZExtValue());
  }
  return out;
}

} // namespace

std::optional<KernelGraph> kernelGraphOf(llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> inputs,
                                         llvm::ArrayRef<mlir::Value> results) {
  KernelGraph graph;
  graph.deterministic = !ops.empty() && graph::isDeterministic(ops.front());
  graph.keepSubnormals = !ops.empty() && graph::keepsSubnormals(ops.front());
  llvm::DenseMap<mlir::Value, int32_t> numbers;
  auto add = [&](mlir::Value v) { return numbers[v] = graph.addValue(graph::fromMlir(v.getType())); };
  for (mlir::Value v : inputs)
    graph.inputs.push_back(add(v));
  for (mlir::Operation *o : ops) {
    const op::OpInfo *info = graph::infoOf(o);
    if (o->getNumResults() == 1 && immediateOf(o->getResult(0)))
      continue; // added where it is used
    if (!info || !info->loopForm || o->getNumResults() != 1)
      return std::nullopt;
    std::vector<TensorType> types;
    KernelGraph::Op made;
    for (mlir::Value operand : o->getOperands()) {
      types.push_back(graph::fromMlir(operand.getType()));
      auto it = numbers.find(operand);
      if (it == numbers.end()) {
        const auto value = immediateOf(operand);
        if (!value)
          return std::nullopt;
        graph.splats.push_back({add(operand), value->f, value->i});
        it = numbers.find(operand);
      }
      made.operands.push_back(it->second);
    }
    const TensorType result = graph::fromMlir(o->getResult(0).getType());
    if (!dim::isKnown(result.shape) || llvm::any_of(types, [](const TensorType &t) { return !dim::isKnown(t.shape); }))
      return std::nullopt;
    auto form = info->loopForm(*info, types, std::span(&result, 1), graph::attrsOf(o, *info));
    if (!form)
      return std::nullopt;
    made.form = std::move(*form);
    made.result = add(o->getResult(0));
    graph.ops.push_back(std::move(made));
  }
  for (mlir::Value v : results) {
    auto it = numbers.find(v);
    if (it == numbers.end())
      return std::nullopt;
    graph.results.push_back(it->second);
  }
  return graph;
}

bool isImmediate(mlir::Value value) { return immediateOf(value).has_value(); }

} // namespace tressel::codegen
