#include "passes/verify/ExtractProgram.h"

#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Interpreter.h"
#include "tressel/runtime/Dim.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <cstring>

namespace tressel::passes {
namespace {

mlir::func::FuncOp mainOf(mlir::ModuleOp module) { return *module.getOps<mlir::func::FuncOp>().begin(); }

Example copyOf(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs) {
  return {mlir::cast<mlir::ModuleOp>(module->clone()), {inputs.begin(), inputs.end()}};
}

mlir::Operation *terminatorOf(Example &graph) { return mainOf(*graph.module).getBody().front().getTerminator(); }

bool isComputed(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  return op && (graph::infoOf(op) || llvm::isa<graph::ControlOpInterface>(op));
}

void dropUnused(Example &graph) {
  mlir::func::FuncOp function = mainOf(*graph.module);
  mlir::Block &main = function.getBody().front();
  graph::forEachBody(main, [](mlir::Block &body) {
    for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (!op.hasTrait<mlir::OpTrait::IsTerminator>() && op.use_empty())
        op.erase();
  });
  for (unsigned i = main.getNumArguments(); i-- > 0;)
    if (main.getArgument(i).use_empty()) {
      main.eraseArgument(i);
      graph.inputs.erase(graph.inputs.begin() + i);
    }
  setSignature(function);
}

/// The op at a position of a walk; null past the end.
mlir::Operation *opAt(Example &graph, size_t place) {
  mlir::Operation *found = nullptr;
  mainOf(*graph.module).getBody().walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation *op) {
    if (place-- > 0)
      return mlir::WalkResult::advance();
    found = op;
    return mlir::WalkResult::interrupt();
  });
  return found;
}

/// Records what each value of a program holds when it is last computed.
class Values {
public:
  explicit Values(Example &graph) {
    mlir::func::FuncOp main = mainOf(*graph.module);
    for (auto [argument, input] : llvm::zip_equal(main.getArguments(), graph.inputs)) {
      computed_[argument] = input;
      dim::unify(graph::fromMlir(argument.getType()).shape, input.type.shape, sizes_, true);
    }
    good_ = bool(graph::interpret(main, graph.inputs, [&](mlir::Operation *op, auto, auto results) {
      for (auto [value, result] : llvm::zip_equal(op->getResults(), results))
        computed_[value] = result;
    }));
  }
  explicit operator bool() const { return good_; }
  /// Zeros for a value that is never computed, in a branch not taken; nothing if its size is then unknown.
  std::optional<op::HostTensor> operator[](mlir::Value value) const {
    auto found = computed_.find(value);
    if (found != computed_.end())
      return found->second;
    TensorType type = graph::fromMlir(value.getType());
    for (Size &size : type.shape) {
      size = dim::substitute(size, sizes_);
      if (!size.isNumber())
        return {};
    }
    return op::HostTensor::allocate(type);
  }

private:
  llvm::DenseMap<mlir::Value, op::HostTensor> computed_;
  dim::Values sizes_;
  bool good_;
};

mlir::Value newInput(Example &graph, mlir::Type type, mlir::Location loc, op::HostTensor contents) {
  graph.inputs.push_back(std::move(contents));
  return mainOf(*graph.module).getBody().front().addArgument(type, loc);
}

/// Makes values of @main that bodies around `op` use invariants of these bodies.
void captureAround(mlir::Operation *op) {
  while ((op = op->getParentOp()))
    if (auto control = llvm::dyn_cast<graph::ControlOpInterface>(op))
      graph::captureInvariants(control);
}

/// Replaces an op by inputs that hold its results. False if that removes nothing: an output that becomes an input.
bool replaceByInputs(Example &graph, mlir::Operation *op) {
  const bool isOutput =
      llvm::any_of(op->getUsers(), [&](mlir::Operation *user) { return user == terminatorOf(graph); });
  const Values values(graph);
  if (isOutput || !values)
    return false;
  for (mlir::Value result : op->getResults()) {
    if (result.use_empty())
      continue;
    const std::optional<op::HostTensor> value = values[result];
    if (!value)
      return false;
    result.replaceAllUsesWith(newInput(graph, result.getType(), op->getLoc(), *value));
  }
  captureAround(op);
  op->erase();
  return true;
}

/// Replaces an op with bodies by the ops of one body, as if it ran once. Results that the body does not yield become
/// inputs.
bool replaceByBody(Example &graph, graph::ControlOpInterface op, unsigned number) {
  const Values values(graph);
  if (!values)
    return false;
  mlir::Block &body = op->getRegion(number).front();
  mlir::Operation *yield = body.getTerminator();
  const unsigned firstSlice = op.firstSlice(), numCarried = op.numCarried();
  for (mlir::BlockArgument argument : body.getArguments()) {
    const unsigned i = argument.getArgNumber();
    mlir::Value with = op.invariantOf(argument);
    if (op.hasIndex() && i == 0)
      with = newInput(graph, argument.getType(), op->getLoc(), op::HostTensor::allocate({DType::i64, {}}));
    else if (i < firstSlice)
      with = op.carried(i - op.firstCarried());
    else if (!with) {
      const std::optional<op::HostTensor> all = values[op.slice(i - firstSlice)];
      if (!all)
        return false;
      op::HostTensor one = op::HostTensor::allocate(
          {all->type.dtype, Shape(std::span(all->type.shape.begin() + 1, all->type.shape.end()))});
      if (all->type.bytes() > 0)
        std::memcpy(one.data.get(), all->data.get(), static_cast<size_t>(one.type.bytes()));
      with = newInput(graph, argument.getType(), op->getLoc(), one);
    }
    argument.replaceAllUsesWith(with);
  }
  for (mlir::OpResult result : op->getResults()) {
    const unsigned i = result.getResultNumber();
    const bool yielded = i < yield->getNumOperands() && yield->getOperand(i).getType() == result.getType() &&
                         (!op.repeats() || i < numCarried);
    if (yielded)
      result.replaceAllUsesWith(yield->getOperand(i));
    else if (!result.use_empty()) {
      const std::optional<op::HostTensor> value = values[result];
      if (!value)
        return false;
      result.replaceAllUsesWith(newInput(graph, result.getType(), op->getLoc(), *value));
    }
  }
  op->getBlock()->getOperations().splice(op->getIterator(), body.getOperations(), body.begin(), yield->getIterator());
  captureAround(op);
  op->erase();
  return true;
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

  // Drops outputs one by one, from the last; one must remain.
  for (unsigned i = mainOf(*best.module).getNumResults(); i-- > 0;) {
    if (mainOf(*best.module).getNumResults() == 1)
      break;
    Example candidate = copyOf(*best.module, best.inputs);
    terminatorOf(candidate)->eraseOperand(i);
    accept(candidate);
  }
  // Replaces an output by the operands of its op, which drops the last ops.
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

  // Replaces ops with bodies by a body, and drops their unused operands; then replaces ops by inputs, from the first:
  // starting near the output would keep all that leads to it.
  auto tryAt = [&](size_t place, llvm::function_ref<bool(Example &, mlir::Operation *)> change) {
    Example candidate = copyOf(*best.module, best.inputs);
    return change(candidate, opAt(candidate, place)) && accept(candidate);
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t place = 0; mlir::Operation *op = opAt(best, place); ++place) {
      if (!llvm::isa<graph::ControlOpInterface>(op))
        continue;
      bool gone = false;
      for (unsigned body = op->getNumRegions(); body-- > 0 && !gone;)
        gone = tryAt(place, [&](Example &graph, mlir::Operation *op) {
          return replaceByBody(graph, llvm::cast<graph::ControlOpInterface>(op), body);
        });
      if (gone || tryAt(place, [](Example &, mlir::Operation *op) {
            return graph::simplifyControl(llvm::cast<graph::ControlOpInterface>(op));
          })) {
        progress = true;
        --place; // visits the op that took its place
      }
    }
    for (size_t place = 0; mlir::Operation *op = opAt(best, place); ++place)
      if (op->getNumResults() > 0 && isComputed(op->getResult(0)) && tryAt(place, replaceByInputs)) {
        progress = true;
        --place; // later ops have moved up by one
      }
  }
  return best;
}

} // namespace tressel::passes
