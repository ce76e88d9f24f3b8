#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITES
#include "passes/Passes.h.inc"

namespace {
class DecomposeComposites : public impl::DecomposeCompositesBase<DecomposeComposites> {
public:
  explicit DecomposeComposites(Providers providers) : providers(std::move(providers)) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main)
      return;
    llvm::DenseSet<Value> parameterOnly = parameterOnlyValues(*main);
    Block &program = main->getBody().front();
    const bool isForRanks = (*main)->hasAttr(graph::kMeshAttr);
    graph::forEachBody(program,
                       [&](Block &block) { decompose(block, parameterOnly, isForRanks && &block == &program); });
  }

private:
  /// `isForRanks`: the pass `shard` follows, which decides itself on ops that follow from their parts, so they are
  /// kept.
  void decompose(Block &block, const llvm::DenseSet<Value> &parameterOnly, bool isForRanks) {
    // A decomposition may contain composites; the loop visits them next.
    for (Block::iterator at = block.begin(); at != block.end();) {
      Operation *op = &*at;
      const op::OpInfo *info = graph::infoOf(op);
      if (!info || !info->decompose || (isForRanks && info->fromParts) || isClaimed(op, parameterOnly)) {
        ++at;
        continue;
      }
      Operation *before = op->getPrevNode();
      OpBuilder b(op);
      SmallVector<Value> results = graph::buildDecomposition(b, op);
      if (isItself(op, results)) { // kept for kernels that take it with these types, of which no provider here has one
        while (op->getPrevNode() != before)
          op->getPrevNode()->erase();
        ++at;
        continue;
      }
      for (auto made = before ? std::next(before->getIterator()) : block.begin(); &*made != op; ++made)
        graph::copyAnnotations(op, &*made);
      for (auto [result, by] : llvm::zip_equal(op->getResults(), results))
        result.replaceAllUsesWith(by);
      op->erase();
      at = before ? std::next(before->getIterator()) : block.begin();
      ++numDecomposed;
    }
  }

  /// Whether a decomposition that may only convert operands had nothing to convert and returned the op itself.
  static bool isItself(Operation *op, ArrayRef<Value> results) {
    Operation *made = results.empty() ? nullptr : results.front().getDefiningOp();
    return made && made->getName() == op->getName() && made->getOperands() == op->getOperands() &&
           made->getAttrDictionary() == op->getAttrDictionary();
  }

  bool isClaimed(Operation *op, const llvm::DenseSet<Value> &parameterOnly) const {
    return cheapestBid(providers, op, [&](Value v) { return parameterOnly.contains(v); }).has_value();
  }

  Providers providers;
};
} // namespace

std::unique_ptr<Pass> createDecomposeComposites(Providers providers) {
  return std::make_unique<DecomposeComposites>(std::move(providers));
}

} // namespace tressel::passes
