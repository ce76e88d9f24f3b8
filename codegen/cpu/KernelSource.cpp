#include "codegen/cpu/KernelSource.h"

#include "codegen/bitcode/Provider.h"
#include "codegen/loops/KernelParts.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/sched/Export.h"
#include "passes/Util.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

#include <algorithm>

namespace tressel::codegen {

/// The one op of a kernel as a call of the bitcode kernel that it bid with.
static BitcodeCall bitcodeCallOf(mlir::Block &body) {
  mlir::Operation *op = &body.front(), *yield = body.getTerminator();
  std::optional<op::KernelForm> form = passes::kernelFormOf(op);
  if (!form)
    throw InternalError("an op without a kernel form was claimed for a bitcode kernel");
  BitcodeCall call{form->kernel, form->params, form->range, {}, {}};
  for (mlir::Value operand : op->getOperands())
    call.buffers.push_back(static_cast<int32_t>(mlir::cast<mlir::BlockArgument>(operand).getArgNumber()));
  for (mlir::Value result : op->getResults()) {
    auto at = llvm::find(yield->getOperands(), result);
    const bool isRead = at != yield->getOperands().end();
    call.buffers.push_back(isRead ? static_cast<int32_t>(body.getNumArguments()) +
                                        static_cast<int32_t>(at - yield->getOperands().begin())
                                  : -1);
  }
  return call;
}

KernelSource makeKernelSource(graph::KernelOp kernel, const Target &target) {
  mlir::Block &body = kernel.getBody().front();
  mlir::Operation *yield = body.getTerminator();
  const auto numInputs = static_cast<int32_t>(body.getNumArguments());
  llvm::SmallVector<mlir::Operation *> ops;
  for (mlir::Operation &o : body.without_terminator())
    ops.push_back(&o);

  KernelSource source;
  source.signature.symbol = kernel.getSymName().str();
  source.signature.symbols = graph::symbolsOf(kernel);
  if (kernel.getProvider() == kBitcodeProvider) {
    source.bitcode = bitcodeCallOf(body);
    source.bitcode->symbols = source.signature.symbols;
    return source;
  }
  llvm::SmallVector<mlir::Value> inputs, results;
  int rowDims = -1;
  Size unit = 0;
  auto fail = [&](const std::string &why) {
    const graph::FileLine at = graph::fileLineOf(kernel.getLoc());
    throw Error("no kernel can be generated for '" + graph::describeBody(kernel.getBody(), kernel.getProvider()) +
                "': " + why + (at.file.empty() ? "" : " (" + at.file + ":" + std::to_string(at.line) + ")"));
  };
  if (!kernel.getRootOps()) {
    llvm::append_range(inputs, body.getArguments());
    llvm::append_range(results, yield->getOperands());
  } else {
    // The ops behind the root. They read its value in the buffer of result 0.
    const auto rootOps = static_cast<size_t>(*kernel.getRootOps());
    llvm::SmallDenseSet<mlir::Operation *> root(ops.begin(), ops.begin() + static_cast<ptrdiff_t>(rootOps));
    ops.erase(ops.begin(), ops.begin() + static_cast<ptrdiff_t>(rootOps));
    source.signature.symbol = sched::epilogueSymbol(kernel.getSymName());
    for (mlir::Operation *o : ops)
      for (mlir::Value v : o->getOperands()) {
        if (llvm::is_contained(inputs, v) || isImmediate(v))
          continue;
        if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(v)) {
          inputs.push_back(v);
          source.signature.operands.push_back(static_cast<int32_t>(argument.getArgNumber()));
        } else if (root.contains(v.getDefiningOp())) {
          inputs.push_back(v);
          source.signature.operands.push_back(numInputs);
        }
      }
    for (auto [i, v] : llvm::enumerate(yield->getOperands()))
      if (!root.contains(v.getDefiningOp())) {
        results.push_back(v);
        source.signature.operands.push_back(numInputs + static_cast<int32_t>(i));
      }
    auto params = llvm::json::parse(kernel.getParams());
    if (!params)
      llvm::consumeError(params.takeError());
    else if (const llvm::json::Object *object = params->getAsObject())
      unit = object->getString("unit") ? dim::parse(*object->getString("unit")).value_or(0)
                                       : object->getInteger("unit").value_or(0);
    // Units are whole rows, where a row is as many inner dimensions as divide a unit.
    const Shape shape = graph::fromMlir(yield->getOperand(0).getType()).shape;
    Size inner = dim::numElements(shape), rows = 1;
    auto wholeRows = [&] { return dim::divideExactly(unit, inner); };
    for (rowDims = 0; unit != 0 && rowDims < shape.rank() && !wholeRows(); ++rowDims) {
      rows *= shape[rowDims];
      inner = dim::divideExactly(inner, shape[rowDims]).value_or(0);
    }
    const std::optional<Size> block = unit != 0 ? wholeRows() : std::nullopt;
    if (!block || *block == 0)
      fail("the library's units of work are not known");
    source.signature.rows = UnitRows{rows, *block};
  }
  auto graph = kernelGraphOf(ops, inputs, results);
  if (!graph)
    fail("an op has no loop form");
  std::string why;
  if (rowDims < 0) {
    auto parts = planParts(*graph, &why);
    if (!parts)
      fail(why);
    if (parts->size() > 1) {
      for (KernelPart &part : *parts) {
        const LoopSchedule schedule = scheduleLoops(part.plan, target.features());
        source.parts.push_back({std::move(part.plan), schedule, std::move(part.operands)});
      }
      return source;
    }
    source.plan = std::move(parts->front().plan);
  } else {
    auto plan = buildLoopPlan(*graph, &why, rowDims);
    if (!plan)
      fail(why);
    source.plan = std::move(*plan);
  }
  source.schedule = scheduleLoops(source.plan, target.features());
  return source;
}

} // namespace tressel::codegen
