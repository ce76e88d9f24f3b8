#include "passes/ExtractProgram.h"

#include "ir/graph/Graph.h"
#include "ir/interpreter/Interpreter.h"

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tressel::passes {
namespace {

mlir::func::FuncOp mainOf(mlir::ModuleOp module) { return *module.getOps<mlir::func::FuncOp>().begin(); }

Example copyOf(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs) {
  return {mlir::cast<mlir::ModuleOp>(module->clone()), {inputs.begin(), inputs.end()}};
}

/// Arguments and results anew, with names.
void setSignature(mlir::func::FuncOp function) {
  mlir::Builder builder(function.getContext());
  mlir::Block &body = function.getBody().front();
  function.removeArgAttrsAttr();
  function.removeResAttrsAttr();
  function.setFunctionType(builder.getFunctionType(body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    function.setArgAttr(i, graph::kNameAttr, builder.getStringAttr("x" + std::to_string(i)));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    function.setResultAttr(i, graph::kNameAttr, builder.getStringAttr("y" + std::to_string(i)));
}

mlir::Operation *terminatorOf(Example &graph) {
  return mainOf(*graph.module).getBody().front().getTerminator();
}

bool isComputed(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  return op && graph::infoOf(op);
}

void dropUnused(Example &graph) {
  mlir::func::FuncOp function = mainOf(*graph.module);
  mlir::Block &body = function.getBody().front();
  for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (!op.hasTrait<mlir::OpTrait::IsTerminator>() && op.use_empty())
      op.erase();
  for (unsigned i = body.getNumArguments(); i-- > 0;)
    if (body.getArgument(i).use_empty()) {
      body.eraseArgument(i);
      graph.inputs.erase(graph.inputs.begin() + i);
    }
  setSignature(function);
}

} // namespace

Example shrinkProgram(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs, const StillFails &stillFails) {
  Example best = copyOf(module, inputs);
  auto accept = [&](Example &candidate) {
    dropUnused(candidate);
    Example tried = copyOf(*candidate.module, candidate.inputs);
    if (!stillFails(*tried.module, tried.inputs))
      return false;
    best = std::move(candidate);
    return true;
  };

  // Outputs, one by one from the last; one stays.
  for (unsigned i = mainOf(*best.module).getNumResults(); i-- > 0;) {
    if (mainOf(*best.module).getNumResults() == 1)
      break;
    Example candidate = copyOf(*best.module, best.inputs);
    terminatorOf(candidate)->eraseOperand(i);
    accept(candidate);
  }
  // Instead of an output, what it is computed from: the last ops go.
  for (unsigned i = 0; i < mainOf(*best.module).getNumResults();) {
    Example candidate = copyOf(*best.module, best.inputs);
    mlir::Operation *end = terminatorOf(candidate), *last = end->getOperand(i).getDefiningOp();
    end->eraseOperand(i);
    if (last)
      for (mlir::Value operand : last->getOperands())
        if (isComputed(operand) && !llvm::is_contained(end->getOperands(), operand))
          end->insertOperands(end->getNumOperands(), operand);
    if (end->getNumOperands() == 0 || !accept(candidate))
      ++i;
  }

  // Ops, from the first: cutting near the output early would keep all that leads to it.
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t position = 0;; ++position) {
      Example candidate = copyOf(*best.module, best.inputs);
      mlir::func::FuncOp function = mainOf(*candidate.module);
      mlir::Block &body = function.getBody().front();
      if (position + 1 >= body.getOperations().size())
        break;
      mlir::Operation &op = *std::next(body.begin(), static_cast<std::ptrdiff_t>(position));
      // An output that is an input shows nothing.
      if (!graph::infoOf(&op) || llvm::any_of(op.getUsers(), [](mlir::Operation *user) {
            return user->hasTrait<mlir::OpTrait::IsTerminator>();
          }))
        continue;
      llvm::DenseMap<mlir::Value, op::HostTensor> computed;
      auto run = graph::interpret(function, candidate.inputs, [&](mlir::Value value, const op::HostTensor &tensor) {
        computed[value] = tensor;
      });
      if (!run)
        return best;
      for (mlir::Value result : op.getResults()) {
        result.replaceAllUsesWith(body.addArgument(result.getType(), op.getLoc()));
        candidate.inputs.push_back(computed.lookup(result));
      }
      op.erase();
      if (accept(candidate)) {
        progress = true;
        --position; // the ops after it moved up
      }
    }
  }
  return best;
}

} // namespace tressel::passes
