#include "passes/shard/Stages.h"

#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Stage.h"

using namespace mlir;

namespace tressel::passes {

static LogicalResult checkStages(func::FuncOp main) {
  WalkResult walked = main.walk([&](Operation *op) {
    Attribute named = op->getAttr(graph::kStageAttr);
    if (named && !graph::stageOf(op)) {
      op->emitError("is to be computed by stage ") << named << ", which is no number from 0 on";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

llvm::DenseMap<unsigned, int64_t> stagesOfStates(func::FuncOp main) {
  llvm::DenseMap<unsigned, int64_t> stages;
  for (BlockArgument argument : main.getArguments()) {
    const unsigned i = argument.getArgNumber();
    if (!main.getArgAttr(i, graph::kStateAttr))
      continue;
    std::optional<int64_t> common;
    // its home is that accelerator of the row
    if (auto place = main.getArgAttrOfType<IntegerAttr>(i, graph::kStageAttr))
      common = place.getInt();
    const bool agree = common || llvm::all_of(argument.getUsers(), [&](Operation *user) {
                         const auto stage = graph::stageOf(user);
                         return !stage || (*stage == common.value_or(*stage) && (common = stage));
                       });
    if (agree && common)
      stages[i] = *common;
  }
  return stages;
}

LogicalResult assignStages(func::FuncOp main, llvm::DenseSet<Operation *> &named) {
  if (failed(checkStages(main)))
    return failure();
  Block &block = main.getBody().front();
  for (Operation &op : block)
    if (graph::stageOf(&op))
      named.insert(&op);
  Operation *end = block.getTerminator();
  auto mayHave = [](Operation &op) {
    return !op.hasTrait<OpTrait::ConstantLike>() && !op.hasTrait<OpTrait::IsTerminator>();
  };
  llvm::DenseMap<Attribute, int64_t> ofState;
  for (auto [argument, stage] : stagesOfStates(main))
    ofState[main.getArgAttr(argument, graph::kStateAttr)] = stage;
  auto stageOfUse = [&](OpOperand &use) -> std::optional<int64_t> {
    if (use.getOwner() != end)
      return graph::stageOf(use.getOwner());
    const auto home = main.getResultAttrOfType<StringAttr>(use.getOperandNumber(), graph::kHomeAttr);
    const bool isThere = home && home != graph::kComputed && home != runtime::nameOf(graph::kHost);
    Attribute state = main.getResultAttr(use.getOperandNumber(), graph::kStateAttr);
    auto known = state && isThere ? ofState.find(state) : ofState.end();
    return known == ofState.end() ? std::nullopt : std::optional(known->second);
  };
  for (Operation &op : llvm::reverse(block)) {
    if (!mayHave(op) || graph::stageOf(&op) || op.use_empty())
      continue;
    std::optional<int64_t> common;
    const bool agree = llvm::all_of(op.getUses(), [&](OpOperand &use) {
      const auto stage = stageOfUse(use);
      return stage && *stage == common.value_or(*stage) && (common = stage);
    });
    if (agree) {
      graph::setStage(&op, *common, false);
      named.insert(&op);
    }
  }
  for (Operation &op : block) {
    if (!mayHave(op))
      continue;
    std::optional<int64_t> last = graph::stageOf(&op);
    const bool isNamed = last.has_value();
    bool goesBack = graph::isBackward(&op);
    for (Value operand : op.getOperands())
      if (Operation *def = operand.getDefiningOp()) {
        if (const auto stage = graph::stageOf(def); stage && !isNamed)
          last = std::max(last.value_or(0), *stage);
        goesBack |= graph::isBackward(def);
      }
    if (last)
      graph::setStage(&op, *last, goesBack);
  }
  return success();
}

void forgetStages(func::FuncOp main) {
  main.walk([](Operation *op) { graph::takeStage(op); });
}

} // namespace tressel::passes
