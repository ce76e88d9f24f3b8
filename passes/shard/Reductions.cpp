#include "passes/shard/Reductions.h"

#include "passes/shard/Parts.h"

#include "ir/graph/BuilderEmitter.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/op/Infer.h"
#include "passes/Util.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/MachineModel.h"

using namespace mlir;

namespace tressel::passes {

namespace {
using Axes = SmallVector<unsigned, 2>;

class FromParts {
public:
  FromParts(Operation *op, const op::OpInfo &info, const graph::Mesh &mesh)
      : op(op), info(info), mesh(mesh), attrs(graph::attrsOf(op, info)), b(op), x(graph::fromMlir(op->getOperand(0).getType())) {
    for (int d = 0; d < x.rank(); ++d)
      cuts.emplace_back();
  }

  /// Finds the reduced dimensions that are cut. False if there are none, or if ranks cannot exchange the results of
  /// their parts.
  bool find(Propagation &propagation) {
    const op::ShardingRule *rule = propagation.ruleOf(op);
    if (!rule)
      return false;
    const Cut cut = propagation.cutOf(op);
    int numCuts = 0;
    for (int d = 0; d < x.rank(); ++d) {
      const std::vector<int> &factors = rule->operands[0][static_cast<size_t>(d)];
      if (factors.empty() || !rule->factors[static_cast<size_t>(factors.front())].fromParts)
        continue;
      const Axes &axes = cut.axes[static_cast<size_t>(factors.front())];
      const int64_t parts = mesh.numAlong(axes);
      if (parts == 1)
        continue;
      // An accelerator executes its micro-batches one after the other: the first would have to wait for the last.
      if (factors.size() > 1 || !dim::divideExactly(x.shape[d], parts) ||
          llvm::any_of(axes, [&](unsigned axis) { return mesh.liesInTime(axis); }))
        return false;
      cuts[static_cast<size_t>(d)] = axes;
      ++numCuts;
    }
    kept = propagation.of(op->getResult(0));
    return numCuts > 0 && x.rank() + numCuts <= kMaxRank; // each cut dimension becomes two
  }

  /// Whether ranks in processes of their own gather the results of all parts faster than they combine each result: with
  /// many ranks the gathered bytes exceed those of the combined results.
  bool isFaster(const runtime::MachineModel &machine, runtime::DeviceRef device) const {
    Axes along;
    for (const Axes &axes : cuts)
      along.append(axes.begin(), axes.end());
    const auto group = groupAlong(along, mesh, machine, device);
    if (!group)
      return true;
    int64_t all = 0;
    double combined = 0;
    for (Type type : op->getResultTypes()) {
      const int64_t bytes = bytesOf(graph::toMlir(op->getContext(), graph::partOf(graph::fromMlir(type), kept, mesh)));
      all += bytes;
      combined += runtime::planCollective(runtime::CollectiveKind::AllReduce, *group, bytes).seconds;
    }
    return runtime::planCollective(runtime::CollectiveKind::AllGather, *group, all * group->members).seconds <=
           combined;
  }

  void replace() {
    // Splits each cut dimension in two: the number of the part, which stays, and the elements of the part, which are
    // reduced.
    const uint32_t reduced = *op::normalizeAxes(op::maybeInts(attr("axis")), x.rank());
    const bool keepdims = std::get<bool>(attr("keepdims"));
    op::Sizes split;
    op::Ints axes, numbers, others; // dimensions of `split`; of the parts' results
    Size parts = 1;
    graph::Sharding stacked = graph::Sharding::whole(2);
    int64_t at = 0;
    for (int d = 0; d < x.rank(); ++d) {
      const int64_t n = mesh.numAlong(cuts[static_cast<size_t>(d)]);
      if (n > 1) {
        split.push_back(n);
        numbers.push_back(at++);
        parts *= n;
      }
      if (reduced >> d & 1)
        axes.push_back(static_cast<int64_t>(split.size()));
      else
        others.push_back(at++);
      split.push_back(*dim::divideExactly(x.shape[d], n));
    }
    for (size_t d = 0; d < kept.dims.size(); ++d)
      if (!keepdims || !(reduced >> d & 1))
        stacked.dims.push_back(kept.dims[d]);
    op::Attrs ofPart = attrs;
    ofPart[static_cast<size_t>(info.attrIndex("axis"))] = axes;
    ofPart[static_cast<size_t>(info.attrIndex("keepdims"))] = false;
    // In 16-bit floats the parts' results would be too inexact to compute their differences.
    Value whole = op->getOperand(0);
    if (const DType wide = op::accumulatorType(x.dtype); wide != x.dtype)
      whole = make("cast", whole, {wide});
    Operation *onPart = graph::createOp(b, op->getLoc(), info, make("reshape", whole, {split}), ofPart);
    graph::copyAnnotations(op, onPart);
    SmallVector<Value> own = decomposed(onPart);

    // One exchange for all results. They are stacked along dimension 1, behind the number of the part, as a collective
    // concatenates bytes. Then the numbers become the last dimension, which is how kernels read them best.
    op::Ints order = numbers, last;
    order.insert(order.end(), others.begin(), others.end());
    op::Sizes row{parts, 1};
    for (int64_t d : others)
      row.push_back(graph::fromMlir(own[0].getType()).shape[static_cast<int>(d)]);
    for (size_t d = 1; d <= row.size(); ++d)
      last.push_back(static_cast<int64_t>(d % row.size()));
    for (Value &value : own)
      value = make("reshape", llvm::is_sorted(order) ? value : make("transpose", value, {order}), {row});
    Value all = own.size() == 1 ? own.front() : make("concat", own, {int64_t(1)});
    all = make("shard", all, {stacked.str(mesh)});
    std::vector<op::Emitter::Ref> inputs;
    for (size_t i = 0; i < own.size(); ++i) {
      op::Sizes starts(row.size(), 0), limits = row;
      starts[1] = static_cast<int64_t>(i), limits[1] = static_cast<int64_t>(i) + 1;
      const Value each = own.size() == 1 ? all : make("slice", all, {starts, limits});
      inputs.push_back(make("transpose", each, {last}).getAsOpaquePointer());
    }

    Operation *before = op->getPrevNode();
    graph::BuilderEmitter emitter(b, op->getLoc());
    const std::vector<op::Emitter::Ref> results = info.fromParts(info, emitter, inputs, attrs);
    for (Operation *made = before->getNextNode(); made != op; made = made->getNextNode())
      graph::copyAnnotations(op, made);
    for (auto [result, ref] : llvm::zip_equal(op->getResults(), results)) {
      const TensorType type = graph::fromMlir(result.getType());
      Value value = graph::BuilderEmitter::value(ref);
      if (graph::fromMlir(value.getType()).dtype != type.dtype)
        value = make("cast", value, {type.dtype});
      if (value.getType() != result.getType())
        value = make("reshape", value, {op::Sizes(type.shape.begin(), type.shape.end())});
      result.replaceAllUsesWith(value);
    }
    op->erase();
  }

  /// Replaces the op by its decomposition and returns the results.
  static SmallVector<Value> decomposed(Operation *op) {
    OpBuilder b(op);
    Operation *before = op->getPrevNode();
    SmallVector<Value> results = graph::buildDecomposition(b, op);
    for (Operation *made = before ? before->getNextNode() : &op->getBlock()->front(); made != op; made = made->getNextNode())
      graph::copyAnnotations(op, made);
    op->replaceAllUsesWith(results);
    op->erase();
    return results;
  }

private:
  const op::Attr &attr(std::string_view name) const { return attrs[static_cast<size_t>(info.attrIndex(name))]; }
  Value make(StringRef name, ValueRange operands, const op::Attrs &with) {
    Operation *made = graph::createOp(b, op->getLoc(), *op::findOp(std::string_view(name)), operands, with);
    graph::copyAnnotations(op, made);
    return made->getResult(0);
  }

  Operation *op;
  const op::OpInfo &info;
  const graph::Mesh &mesh;
  op::Attrs attrs;
  OpBuilder b;
  TensorType x;
  SmallVector<Axes> cuts; ///< per dimension of the operand; empty if it is not reduced, or whole
  graph::Sharding kept;   ///< sharding of the results
};
} // namespace

bool reduceFromParts(func::FuncOp main, const graph::Mesh &mesh, Propagation *propagation,
                     const runtime::MachineModel *machine, ArrayRef<runtime::DeviceRef> devices, Decisions *decisions) {
  const std::vector<runtime::DeviceRef> accelerators = acceleratorsOf(machine, devices);
  const bool ofOneRank = main->hasAttr(graph::kRankProgramAttr) && machine && !accelerators.empty();
  bool any = false;
  for (Operation &op : llvm::make_early_inc_range(main.getBody().front())) {
    const op::OpInfo *info = graph::infoOf(&op);
    if (!info || !info->fromParts)
      continue;
    any = true;
    FromParts rewrite(&op, *info, mesh);
    // Not under `deterministic`: the bits must not depend on the number of accelerators, and a single one combines the
    // terms of its micro-batches.
    if (propagation && !graph::isDeterministic(main) && rewrite.find(*propagation) &&
        (!ofOneRank || rewrite.isFaster(*machine, accelerators.front()))) {
      if (decisions) {
        const graph::FileLine line = graph::fileLineOf(op.getLoc());
        decisions->push_back({"shard",
                              {info->name, line.file, static_cast<uint32_t>(line.line)},
                              "of each part on its rank, then of the parts: one exchange"});
      }
      propagation->forget(&op);
      rewrite.replace();
    } else {
      if (propagation)
        propagation->forget(&op);
      FromParts::decomposed(&op);
    }
  }
  return any;
}

void splitMeans(func::FuncOp main, Propagation &propagation) {
  for (Operation &op : llvm::make_early_inc_range(main.getBody().front())) {
    const op::OpInfo *info = graph::infoOf(&op);
    const op::ShardingRule *rule =
        info && info->isMean && info->family == op::Family::Reduction ? propagation.ruleOf(&op) : nullptr;
    if (!rule)
      continue;
    const Cut cut = propagation.cutOf(&op);
    Size count = 1;
    bool isCut = false;
    for (auto [factor, axes] : llvm::zip_equal(rule->factors, cut.axes))
      if (factor.combine != op::Combine::None) {
        count *= factor.size;
        isCut |= !axes.empty();
      }
    if (!isCut)
      continue;
    OpBuilder b(&op);
    const DType type = graph::fromMlir(op.getResult(0).getType()).dtype, wide = op::accumulatorType(type);
    auto make = [&](StringRef name, ValueRange operands, const op::Attrs &attrs) {
      Operation *made = graph::createOp(b, op.getLoc(), *op::findOp(std::string_view(name)), operands, attrs);
      graph::copyAnnotations(&op, made);
      return made->getResult(0);
    };
    auto as = [&](Value value, DType to) {
      if (graph::fromMlir(value.getType()).dtype == to)
        return value;
      Value converted = make("cast", value, {to});
      propagation.copy(value, converted);
      return converted;
    };
    auto lies = [&](Value value) { // sharded like the mean
      propagation.copy(op.getResult(0), value);
      return value;
    };
    const Value sum = lies(make("sum", as(op.getOperand(0), wide), graph::attrsOf(&op, *info)));
    Value n = count.isNumber() ? make("full", {}, {op::Sizes(), static_cast<double>(count.number()), wide})
                               : make("dim_size", {}, {count, wide});
    const Value mean = as(lies(make("div", {sum, n}, {})), type);
    op.getResult(0).replaceAllUsesWith(lies(mean));
    propagation.forget(&op);
    op.erase();
  }
}

} // namespace tressel::passes
