#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_SIMPLIFY
#include "passes/Passes.h.inc"

namespace {
/// Equality of ops apart from their locations, for a hash set.
struct SameOp : llvm::DenseMapInfo<Operation *> {
  static unsigned getHashValue(const Operation *op) {
    return static_cast<unsigned>(OperationEquivalence::computeHash(
        const_cast<Operation *>(op), OperationEquivalence::directHashValue, OperationEquivalence::ignoreHashValue,
        OperationEquivalence::IgnoreLocations));
  }
  static bool isEqual(const Operation *a, const Operation *b) {
    if (a == b)
      return true;
    if (a == getTombstoneKey() || a == getEmptyKey() || b == getTombstoneKey() || b == getEmptyKey())
      return false;
    return OperationEquivalence::isEquivalentTo(const_cast<Operation *>(a), const_cast<Operation *>(b),
                                                OperationEquivalence::IgnoreLocations);
  }
};

class Simplify : public impl::SimplifyBase<Simplify> {
public:
  using SimplifyBase::SimplifyBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main)
      return;
    simplify(main->getBody().front());
  }

private:
  static bool isPure(Operation &op) { return !op.hasTrait<OpTrait::IsTerminator>() && isMemoryEffectFree(&op); }

  /// Each walk simplifies ops in program order, operands before their users. If an op that now reads an earlier operand
  /// becomes equal to an earlier op, another walk is needed; each such walk has removed an op or a link, so this ends.
  void simplify(Block &block) {
    do {
      while (walk(block))
        ;
    } while (walkBodies(block));
  }

  /// Simplifies bodies, and the ops that contain them.
  bool walkBodies(Block &block) {
    bool changed = false;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto control = dyn_cast<graph::ControlOpInterface>(op);
      if (!control)
        continue;
      for (Region &body : op.getRegions())
        simplify(body.front());
      bool hoisted = control.repeats() && control.runsBodies() && graph::hoistInvariants(control, isWorthHoisting);
      changed |= graph::simplifyControl(control) || hoisted;
    }
    return changed;
  }
  /// Whether to hoist the op out of a loop: not if its result is larger than its operands (a broadcast), or if it may
  /// fail or depends on the iteration.
  static bool isWorthHoisting(Operation *op) {
    const op::OpInfo *info = graph::infoOf(op);
    if (!info || !isPure(*op) || info->family == op::Family::Random)
      return false;
    int64_t in = 0, out = 0;
    for (Type type : op->getOperandTypes())
      in += bytesOf(type);
    for (Type type : op->getResultTypes())
      out += bytesOf(type);
    return out <= 2 * in;
  }

  bool walk(Block &block) {
    bool changed = false;
    llvm::DenseSet<Operation *, SameOp> known;
    SymbolTableCollection symbols;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isPure(op) || isRandom(&op, symbols))
        continue;
      if (op.use_empty() || fold(op)) {
        op.erase();
        changed = true;
      } else {
        changed |= merge(op, known);
      }
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.use_empty() && isPure(op)) {
        op.erase();
        changed = true;
      }
    return changed;
  }

  /// Simplifies an op: replaces its uses by constants or operands (true: it is dead), or changes it in place.
  bool fold(Operation &op) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      return false;
    SmallVector<Attribute> constants(op.getNumOperands());
    for (auto [constant, operand] : llvm::zip(constants, op.getOperands()))
      matchPattern(operand, m_Constant(&constant));
    SmallVector<OpFoldResult> results;
    // An op that folded in place (no results) is folded again until it does not change: each time it skips one op
    // before it.
    int64_t most = 64;
    while (succeeded(op.fold(constants, results)) && results.empty() && --most > 0)
      ++numRewired;
    if (results.empty())
      return false;
    OpBuilder b(&op);
    for (auto [result, folded] : llvm::zip(op.getResults(), results)) {
      Value value = dyn_cast<Value>(folded);
      if (!value) {
        Operation *constant =
            op.getDialect()->materializeConstant(b, cast<Attribute>(folded), result.getType(), op.getLoc());
        if (!constant)
          return false;
        value = constant->getResult(0);
      }
      result.replaceAllUsesWith(value);
    }
    ++(isa<Value>(results.front()) ? numForwarded : numFolded);
    return true;
  }

  /// Replaces an op by an equal earlier one.
  bool merge(Operation &op, llvm::DenseSet<Operation *, SameOp> &known) {
    auto [at, isNew] = known.insert(&op);
    if (isNew)
      return false;
    Operation *first = *at;
    // the hash does not include the location
    first->setLoc(fuseLocations(&getContext(), {first->getLoc(), op.getLoc()}));
    op.replaceAllUsesWith(first->getResults());
    op.erase();
    ++numMerged;
    return true;
  }
};
} // namespace
} // namespace tressel::passes
