#include "test/support/ShrinkGraph.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Interpreter.h"

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tressel::test {
namespace {

mlir::func::FuncOp mainOf(mlir::ModuleOp module) { return *module.getOps<mlir::func::FuncOp>().begin(); }

RandomGraph copyOf(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs) {
  return {mlir::cast<mlir::ModuleOp>(module->clone()), {inputs.begin(), inputs.end()}};
}

/// Attributes of arguments and results go with them.
void setSignature(mlir::func::FuncOp function) {
  mlir::Block &body = function.getBody().front();
  function.setFunctionType(mlir::FunctionType::get(function.getContext(), body.getArgumentTypes(),
                                                   body.getTerminator()->getOperandTypes()));
  function.removeArgAttrsAttr();
  function.removeResAttrsAttr();
}

void dropUnused(RandomGraph &graph) {
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

int countOps(mlir::ModuleOp module) {
  int count = 0;
  module.walk([&](mlir::Operation *op) { count += graph::infoOf(op) != nullptr; });
  return count;
}

RandomGraph shrinkGraph(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs, const StillFails &stillFails) {
  RandomGraph best = copyOf(module, inputs);
  auto accept = [&](RandomGraph &candidate) {
    dropUnused(candidate);
    RandomGraph tried = copyOf(*candidate.module, candidate.inputs);
    if (!stillFails(*tried.module, tried.inputs))
      return false;
    best = std::move(candidate);
    return true;
  };

  // Outputs, one by one from the last; one stays.
  for (unsigned i = mainOf(*best.module).getNumResults(); i-- > 0;) {
    mlir::func::FuncOp function = mainOf(*best.module);
    if (function.getNumResults() == 1 || i >= function.getNumResults())
      continue;
    RandomGraph candidate = copyOf(*best.module, best.inputs);
    mainOf(*candidate.module).getBody().front().getTerminator()->eraseOperand(i);
    accept(candidate);
  }

  // Ops, from the first: cutting near the output early would keep all that leads to it.
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t position = 0;; ++position) {
      RandomGraph candidate = copyOf(*best.module, best.inputs);
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

} // namespace tressel::test
