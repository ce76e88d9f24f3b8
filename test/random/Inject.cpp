#include "test/random/Inject.h"
#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "test/support/ShrinkGraph.h"

#include <functional>

namespace tressel::test {

/// Whether a loop's number of trips depends on it: with another op there it might never end.
static bool endsLoop(mlir::Operation *op) {
  auto loop = llvm::dyn_cast_or_null<graph::WhileOp>(op->getParentOp());
  if (!loop)
    return false;
  mlir::Region &body = loop->getRegions().back();
  return op->getParentRegion() != &body || llvm::is_contained(op->getResults(), body.front().getTerminator()->getOperand(0));
}

bool injectWrongOp(mlir::ModuleOp module, uint64_t number) {
  uint64_t victim = number % static_cast<uint64_t>(countOps(module));
  mlir::Operation *target = nullptr;
  module.walk([&](mlir::Operation *op) {
    if (graph::infoOf(op) && victim-- == 0)
      target = op;
  });
  if (!target || target->getNumOperands() == 0 || endsLoop(target))
    return false;
  const op::OpInfo &info = *graph::infoOf(target);
  const op::Attrs attrs = graph::attrsOf(target, info);
  std::vector<TensorType> types;
  for (mlir::Value operand : target->getOperands())
    types.push_back(graph::fromMlir(operand.getType()));
  for (const op::OpInfo *other : op::allOps()) {
    if (other == &info || other->attrs.size() != info.attrs.size() || other->operands.size() != info.operands.size())
      continue;
    op::Attrs same = attrs;
    if (!op::completeAttrs(*other, same).empty())
      continue;
    op::Inferred inferred = other->infer(*other, types, same);
    std::vector<TensorType> results;
    for (mlir::Type type : target->getResultTypes())
      results.push_back(graph::fromMlir(type));
    if (!inferred || inferred.types != results)
      continue;
    mlir::OpBuilder builder(target);
    target->replaceAllUsesWith(graph::createOp(builder, target->getLoc(), *other, target->getOperands(), same));
    target->erase();
    return true;
  }
  return false;
}

namespace {

mlir::Value number(mlir::OpBuilder &b, mlir::Location loc, int64_t value) {
  return graph::createConstant(b, loc, {i64, {}}, std::as_bytes(std::span(&value, 1)));
}

/// What may be changed in one op.
class Changes {
public:
  explicit Changes(std::vector<std::function<void()>> &list) : list_(list) {}

  void collect(graph::ControlOpInterface op) {
    if (auto cond = llvm::dyn_cast<graph::CondOp>(*op)) {
      list_.push_back([cond]() mutable {
        mlir::Region kept;
        kept.takeBody(cond.getThen());
        cond.getThen().takeBody(cond.getOtherwise());
        cond.getOtherwise().takeBody(kept);
      });
      return;
    }
    mlir::Block &body = op->getRegions().back().front();
    mlir::Operation *yield = body.getTerminator();
    const unsigned first = op.firstCarried();
    for (unsigned i = 0; i < op.numCarried(); ++i) {
      mlir::Value old = body.getArgument(first + i);
      const bool isCounter = llvm::isa<graph::WhileOp>(*op) && i == 0; // not handed on, it would never end
      if (isCounter)
        list_.push_back([=] {
          mlir::OpBuilder b(yield);
          yield->setOperand(i, next(b, yield->getLoc(), yield->getOperand(i)));
        });
      if (isCounter)
        list_.push_back([=]() mutable {
          mlir::OpBuilder b(op);
          op.getCarriedMutable()[i].set(next(b, op->getLoc(), op.carried(i)));
        });
      else if (yield->getOperand(i) != old)
        list_.push_back([=] { yield->setOperand(i, old); });
      for (unsigned k = isCounter ? op.numCarried() : i + 1; k < op.numCarried(); ++k) {
        if (old.getType() != body.getArgument(first + k).getType())
          continue;
        list_.push_back([=] { swapOperands(yield, i, k); });
        list_.push_back([=]() mutable {
          const unsigned begin = op.getCarriedMutable()[0].getOperandNumber();
          swapOperands(op, begin + i, begin + k);
        });
      }
    }
    if (op.hasIndex() && !body.getArgument(0).use_empty())
      list_.push_back([=, &body] {
        mlir::OpBuilder b = mlir::OpBuilder::atBlockBegin(&body);
        body.getArgument(0).replaceAllUsesWith(number(b, op->getLoc(), 0));
      });
    for (unsigned i = 0; i < op.numSlices(); ++i)
      list_.push_back([=]() mutable {
        mlir::OpBuilder b(op);
        op.getSlicesMutable()[i].set(
            graph::createOp(b, op->getLoc(), *op::findOp("flip"), op.slice(i), {op::Ints{0}})->getResult(0));
      });
  }

private:
  static mlir::Value next(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value) {
    return graph::createOp(b, loc, *op::findOp("add"), {value, number(b, loc, 1)}, {})->getResult(0);
  }
  static void swapOperands(mlir::Operation *op, unsigned i, unsigned k) {
    mlir::Value kept = op->getOperand(i);
    op->setOperand(i, op->getOperand(k));
    op->setOperand(k, kept);
  }
  std::vector<std::function<void()>> &list_;
};

} // namespace

bool injectWrongControl(mlir::ModuleOp module, uint64_t number) {
  std::vector<std::function<void()>> list;
  module.walk([&](graph::ControlOpInterface op) { Changes(list).collect(op); });
  if (list.empty())
    return false;
  list[number % list.size()]();
  return true;
}

} // namespace tressel::test
