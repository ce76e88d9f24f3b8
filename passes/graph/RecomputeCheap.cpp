#include "passes/Passes.h"
#include "passes/Util.h"
#include "passes/graph/MinCut.h"
#include "passes/graph/TurningPoint.h"
#include "passes/schedule/IssueOrder.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Segment.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_RECOMPUTECHEAP
#include "passes/Passes.h.inc"

namespace {

/// Cost of moving a byte, in the units of flopsOf, while several cores share the memory.
constexpr int64_t kByte = 6;

class RecomputeCheap : public impl::RecomputeCheapBase<RecomputeCheap> {
public:
  using RecomputeCheapBase::RecomputeCheapBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main)
      return;
    ops.clear();
    placeOf.clear();
    for (Operation &op : main->getBody().front().without_terminator()) {
      placeOf[&op] = ops.size();
      ops.push_back(&op);
    }
    parameterOnly = parameterOnlyValues(*main);
    const std::optional<size_t> found = turningPointOf(main->getBody().front(), parameterOnly, minBytes);
    if (!found)
      return;
    turn = *found;
    findExact();
    cut();
  }

private:
  /// Whether generated kernels may fuse the op with those that make its operands or read its result.
  static bool isFused(Operation *op) {
    if (!isComputation(op) || hasOwnKernel(op))
      return false;
    const op::Family family = graph::infoOf(op)->family;
    return family == op::Family::Elementwise || family == op::Family::Reduction || family == op::Family::Shape;
  }
  /// Whether a kernel that reads the result can compute it from the operands element by element.
  static bool isRecomputable(Operation *op) {
    if (isView(op))
      return true;
    if (!isFused(op) || op->getNumResults() != 1)
      return false;
    const op::OpInfo *info = graph::infoOf(op);
    const std::optional<op::LoopForm> form = loopFormOf(op);
    if (info->hasEffects || !form || !isPointParallel(*form) || form->alternatives)
      return false;
    if (llvm::any_of(form->operands, [](const op::OperandMap &map) {
          return map.guarded || llvm::any_of(map.dims, [](const op::IndexExpr &expr) { return expr.indirect >= 0; });
        }))
      return false;
    return info->family == op::Family::Elementwise ||
           bytesOf(op->getOperand(0).getType()) < bytesOf(op->getResult(0).getType());
  }
  static bool isMove(Operation *op) { return isView(op) || (isFused(op) && graph::infoOf(op)->family == op::Family::Shape); }
  /// Whether the op compares floats for equality.
  static bool asksForEqualFloats(Operation *op) {
    const std::optional<op::LoopForm> form = isComputation(op) ? loopFormOf(op) : std::nullopt;
    return form && llvm::any_of(form->body.nodes, [&](const op::ScalarNode &node) {
             return (node.op == op::ScalarOp::Eq || node.op == op::ScalarOp::Ne) &&
                    isFloat(form->body.nodes[static_cast<size_t>(node.args[0])].dtype);
           });
  }
  /// Collects values that must be recomputed bit by bit, or not at all: those that ops behind the turning point compare
  /// for equality, directly or through ops that only move elements. Another kernel may round the same ops differently,
  /// and then no element of a window equals its maximum.
  void findExact() {
    exact.clear();
    SmallVector<Value> found;
    for (Operation *op : ArrayRef(ops).drop_front(turn))
      if (asksForEqualFloats(op))
        llvm::append_range(found, op->getOperands());
    while (!found.empty()) {
      const Value value = found.pop_back_val();
      Operation *def = value.getDefiningOp();
      if (def && exact.insert(value).second && placeOf.contains(def) && isMove(def))
        llvm::append_range(found, def->getOperands());
    }
  }
  /// Whether the value costs memory: it is neither a constant nor known ahead of the step.
  bool isKept(Value value) const {
    Operation *def = value.getDefiningOp();
    return def && !matchPattern(def, m_Constant()) && !parameterOnly.contains(value) && placeOf.contains(def);
  }

  bool isBefore(Operation *op) const {
    auto at = placeOf.find(op);
    return at != placeOf.end() && at->second < turn;
  }
  bool isBehind(Operation *op) const {
    auto at = placeOf.find(op);
    return at != placeOf.end() && at->second >= turn;
  }

  //--- The cut
  //--------------------------------------------------------------------------------------------------------------

  void cut() {
    MinCut graph;
    llvm::MapVector<Operation *, MinCut::Node> again; // by op that may be recomputed
    llvm::DenseMap<Value, MinCut::Node> there;        // by value that is read behind the turning point
    SmallVector<Value> wanted;
    auto want = [&](Value value) {
      if (auto [at, isNew] = there.try_emplace(value, 0); isNew) {
        at->second = graph.add();
        wanted.push_back(value);
      }
      return there[value];
    };
    int64_t before = 0;
    for (Operation *op : ArrayRef(ops).take_front(turn))
      for (Value result : op->getResults())
        if (isKept(result) && llvm::any_of(result.getUsers(), [&](Operation *user) { return isBehind(user); })) {
          graph.pay(want(result), MinCut::second, MinCut::never);
          before += isView(op) ? 0 : bytesOf(result.getType());
        }
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Value value = wanted[i];
      const MinCut::Node node = there[value];
      Operation *op = value.getDefiningOp();
      if (!isRecomputable(op) || (exact.contains(value) && !isMove(op))) {
        graph.pay(MinCut::first, node, keepCost(value));
        continue;
      }
      const MinCut::Node run = again[op] = graph.add();
      graph.pay(MinCut::first, run, recomputeCost(op));
      graph.pay(run, node, isView(op) ? MinCut::never : keepCost(value));
      for (Value operand : op->getOperands())
        if (isKept(operand) && isBefore(operand.getDefiningOp()))
          graph.pay(want(operand), run, MinCut::never);
    }
    graph.solve();
    recomputed.clear();
    int64_t after = 0;
    for (auto [op, node] : again)
      if (graph.isSecond(node))
        recomputed.insert(op);
    for (Value value : wanted)
      if (graph.isSecond(there[value]) && !recomputed.contains(value.getDefiningOp()))
        after += bytesOf(value.getType());
    constexpr double kWorthIt = 0.95;
    if (static_cast<double>(after) > kWorthIt * static_cast<double>(before))
      return;
    numBytes += before - after;
    rewrite();
  }
  /// Cost of keeping a value: one read behind the turning point, and one write ahead of it unless it is written to
  /// memory anyway.
  int64_t keepCost(Value value) const {
    Operation *op = value.getDefiningOp();
    const bool isInMemory = !isFused(op) || llvm::any_of(value.getUsers(), [&](Operation *user) {
      return !isBehind(user) && !isFused(user) && !isView(user);
    });
    return bytesOf(value.getType()) * kByte * (isInMemory ? 1 : 2);
  }
  /// Cost of recomputing an op. If a reader cannot fuse with it, the result is also written and read.
  int64_t recomputeCost(Operation *op) const {
    if (isView(op))
      return 0;
    const bool isWritten =
        llvm::any_of(op->getResult(0).getUsers(), [&](Operation *user) { return isBehind(user) && !isFused(user); });
    return flopsOf(op) + (isWritten ? 2 * bytesOf(op->getResult(0).getType()) * kByte : 0);
  }

  //--- Rewriting
  //---------------------------------------------------------------------------------------------------------

  /// Each reader gets a clone of its own, so that the clone can join the reader's kernel.
  void rewrite() {
    for (Operation *reader : ArrayRef(ops).drop_front(turn)) {
      llvm::DenseMap<Value, Value> made;
      for (OpOperand &operand : reader->getOpOperands())
        operand.set(remade(operand.get(), reader, made));
    }
    for (Operation *op : llvm::reverse(ops)) // ops without readers ahead of the turning point
      if (recomputed.contains(op) && op->use_empty())
        op->erase();
  }
  Value remade(Value value, Operation *reader, llvm::DenseMap<Value, Value> &made) {
    Operation *op = value.getDefiningOp();
    if (!op || !recomputed.contains(op))
      return value;
    if (Value known = made.lookup(value))
      return known;
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(remade(operand, reader, made));
    OpBuilder b(reader);
    Operation *clone = b.clone(*op);
    clone->setOperands(operands);
    graph::removeSegment(clone); // the clone is in no segment but its reader's
    numRecomputed += !isView(op);
    return made[value] = clone->getResult(0);
  }

  std::vector<Operation *> ops;
  llvm::DenseMap<Operation *, size_t> placeOf;
  llvm::DenseSet<Value> parameterOnly, exact;
  size_t turn = 0;
  llvm::SetVector<Operation *> recomputed;
};
} // namespace

} // namespace tressel::passes
