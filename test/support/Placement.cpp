#include "test/support/Placement.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Stage.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <random>

using namespace mlir;

namespace tressel::test {

namespace {
bool isComputed(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  return info && !info->isView;
}
bool hasEffects(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        const op::OpInfo *info = graph::infoOf(inner);
        return info && info->hasEffects ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}
/// A body is computed in one place.
void eraseTransfersInBodies(ModuleOp module) {
  module.walk([](Operation *op) {
    if (graph::isTransfer(op) && isa<graph::ControlOpInterface>(op->getParentOp())) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
  });
}
} // namespace

void placeOn(ModuleOp module, runtime::DeviceRef device) {
  eraseTransfersInBodies(module);
  Block &block = (*module.getOps<func::FuncOp>().begin()).getBody().front();
  for (Operation &op : block.without_terminator())
    if ((isa<graph::ControlOpInterface>(op) || isComputed(&op)) && !hasEffects(&op) && !graph::isTransfer(&op) &&
        !graph::deviceOf(&op))
      graph::setDevice(&op, device);
}

void placeAtRandom(ModuleOp module, uint64_t seed, unsigned numAccelerators) {
  std::mt19937_64 random(seed);
  auto device = [&] {
    const uint64_t index = random() % (numAccelerators + 1);
    return index == 0 ? runtime::DeviceRef{}
                      : runtime::DeviceRef{runtime::DeviceKind::Gpu, static_cast<uint16_t>(index - 1)};
  };
  eraseTransfersInBodies(module);
  Block &block = (*module.getOps<func::FuncOp>().begin()).getBody().front();
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    const bool isControl = isa<graph::ControlOpInterface>(op);
    if ((!isControl && !isComputed(&op)) || hasEffects(&op))
      continue;
    if (random() % 10 < (isControl ? 6 : 3)) {
      graph::setDevice(&op, device());
    } else if (random() % 10 == 0 && op.getNumResults() == 1) {
      OpBuilder b(&op);
      b.setInsertionPointAfter(&op);
      Value moved = graph::createTransfer(b, op.getLoc(), op.getResult(0), device());
      op.getResult(0).replaceAllUsesExcept(moved, moved.getDefiningOp());
    }
  }
}

void cutAtRandom(ModuleOp module, uint64_t seed, StringRef text, bool hold, bool ofOneRank, DictionaryAttr pipeline) {
  std::mt19937_64 random(seed);
  auto main = *module.getOps<func::FuncOp>().begin();
  main->setAttr(graph::kMeshAttr, StringAttr::get(module.getContext(), text));
  if (ofOneRank)
    main->setAttr(graph::kRankProgramAttr, UnitAttr::get(module.getContext()));
  if (pipeline) {
    main->setAttr(graph::kPipelineAttr, pipeline);
    const auto stages = static_cast<uint64_t>(1 + random() % 5);
    for (Operation &op : main.getBody().front().without_terminator())
      if (random() % 3 == 0 && isComputed(&op) && op.getNumRegions() == 0)
        graph::setStage(&op, static_cast<int64_t>(random() % stages), random() % 2 == 0);
  }
  const graph::Mesh mesh = *graph::meshOf(main);
  auto words = [&](Type type) {
    const auto rank = static_cast<int>(cast<RankedTensorType>(type).getRank());
    graph::Sharding sharding = graph::Sharding::whole(rank);
    for (unsigned axis = 0; axis < mesh.axes.size() && rank > 0; ++axis)
      if (random() % 3)
        sharding.dims[random() % static_cast<uint64_t>(rank)].push_back(axis);
    const Shape shape = graph::fromMlir(type).shape;
    for (auto [d, axes] : llvm::enumerate(sharding.dims))
      if (ofOneRank && !dim::divideExactly(shape[static_cast<int>(d)], mesh.numAlong(axes)))
        axes.clear();
    return StringAttr::get(module.getContext(), sharding.str(mesh));
  };
  for (BlockArgument argument : main.getArguments())
    if (random() % 2 && cast<RankedTensorType>(argument.getType()).getRank() > 0)
      main.setArgAttr(argument.getArgNumber(), graph::kShardingAttr, words(argument.getType()));
  if (hold)
    for (BlockArgument argument : main.getArguments()) {
      const unsigned i = argument.getArgNumber();
      const TensorType type = graph::fromMlir(argument.getType());
      const auto text = main.getArgAttrOfType<StringAttr>(i, graph::kShardingAttr);
      const graph::Sharding sharding = text ? graph::parseSharding(text, type.rank(), mesh).sharding : graph::Sharding::whole(type.rank());
      bool isEven = type.shape.isStatic() && !(mesh.time && sharding.uses(*mesh.time));
      for (auto [d, axes] : llvm::enumerate(sharding.dims))
        isEven = isEven && type.shape[static_cast<int>(d)].number() % mesh.numAlong(axes) == 0;
      if (isEven && random() % 2)
        main.setArgAttr(i, graph::kHomeAttr, StringAttr::get(module.getContext(), graph::kRanks));
    }
  for (unsigned i = 0; hold && i < main.getNumResults(); ++i)
    if (random() % 4 == 0)
      main.setResultAttr(i, graph::kHomeAttr, StringAttr::get(module.getContext(), graph::kRanks));
  for (Operation &op : llvm::make_early_inc_range(main.getBody().front().without_terminator()))
    if (random() % 8 == 0 && op.getNumResults() == 1 && isComputed(&op) && !hasEffects(&op)) {
      OpBuilder b(&op);
      b.setInsertionPointAfter(&op);
      Value result = op.getResult(0);
      Operation *cut = graph::createOp(b, op.getLoc(), *op::findOp("shard"), result,
                                       {std::string(words(result.getType()).getValue())});
      result.replaceAllUsesExcept(cut->getResult(0), cut);
    }
}

} // namespace tressel::test
