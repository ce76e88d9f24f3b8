#include "passes/shard/Parts.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Stage.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Util.h"
#include "tressel/runtime/Dim.h"

#include <utility>

using namespace mlir;

namespace tressel::passes {

namespace {
struct Combination {
  op::Combine combine;
  const char *name; ///< name of the reduction
  const char *op;   ///< the op that combines two values
};
constexpr Combination kCombinations[] = {
    {op::Combine::Sum, "sum", "add"},        {op::Combine::Prod, "prod", "mul"},
    {op::Combine::Max, "max", "maximum"},    {op::Combine::Min, "min", "minimum"},
    {op::Combine::Any, "any", "logical_or"}, {op::Combine::All, "all", "logical_and"},
};
} // namespace

StringRef nameOf(op::Combine combine) {
  for (const Combination &c : kCombinations)
    if (c.combine == combine)
      return c.name;
  return "";
}
std::optional<op::Combine> parseCombine(StringRef name) {
  for (const Combination &c : kCombinations)
    if (name == c.name)
      return c.combine;
  return std::nullopt;
}

Value PartBuilder::make(StringRef op, ValueRange operands, const op::Attrs &attrs, bool onRanks) {
  Operation *made = graph::createOp(b, loc, *op::findOp(std::string_view(op)), operands, attrs);
  if (onRanks)
    putOnRanks(made);
  return made->getResult(0);
}

void PartBuilder::putOnRanks(Operation *op) const {
  graph::setOnRanks(op);
  if (like)
    graph::copyStage(like, op);
}

Value PartBuilder::accumulate(Value value, op::Combine how, unsigned axis) {
  const TensorType type = graph::fromMlir(value.getType());
  const auto over = graph::namesOf(b.getContext(), axis, mesh);
  // Other reductions have a neutral element that depends on the type. They are few and small, so all terms are kept and
  // then combined.
  if (how != op::Combine::Sum || !type.shape.isStatic()) {
    const SmallVector<Value> values = collect(value, axis, /*onRanks=*/true);
    Value all = values.front();
    for (Value each : ArrayRef(values).drop_front())
      all = combine({all, each}, how, /*onRanks=*/true);
    return all;
  }
  const Value zero = make("full", {}, {op::Sizes(type.shape.begin(), type.shape.end()), 0.0, type.dtype}, true);
  auto before = graph::CarryOp::create(b, loc, value.getType(), value, zero, passes::nameOf(how), over);
  const Value sum = combine({before, value}, how, true);
  return graph::CarriedOp::create(b, loc, value.getType(), sum, before, over);
}

Value PartBuilder::slice(Value value, unsigned dim, Size first, Size count, bool onRanks) {
  const Shape shape = graph::fromMlir(value.getType()).shape;
  if (first == 0 && dim::equal(count, shape[static_cast<int>(dim)]))
    return value;
  op::Sizes starts(shape.size(), 0), limits(shape.begin(), shape.end());
  starts[dim] = first;
  limits[dim] = first + count;
  return make("slice", value, {starts, limits}, onRanks);
}

Value PartBuilder::concat(ValueRange parts, unsigned dim, bool onRanks) {
  return parts.size() == 1 ? parts.front() : make("concat", parts, {static_cast<int64_t>(dim)}, onRanks);
}

Value PartBuilder::combine(ValueRange values, op::Combine how, bool onRanks) {
  const auto *found = llvm::find_if(kCombinations, [&](const Combination &c) { return c.combine == how; });
  if (values.size() == 1)
    return values.front();
  const size_t first = llvm::bit_ceil(values.size()) / 2;
  const Value left = combine(values.take_front(first), how, onRanks),
              right = combine(values.drop_front(first), how, onRanks);
  return make(found->op, {left, right}, {}, onRanks);
}

Value PartBuilder::deal(ValueRange values, ArrayRef<unsigned> axes, Type type) {
  return graph::DealOp::create(b, loc, type, values, graph::namesOf(b.getContext(), axes, mesh));
}

Size PartBuilder::at(Size size, int64_t place, ArrayRef<unsigned> axes) const {
  if (!size.isSymbolic())
    return size;
  dim::Values coordinates;
  for (unsigned axis : llvm::reverse(axes)) {
    if (const Size symbol = runtime::rankSymbol(mesh.axes[axis]); dim::isSymbol(symbol))
      coordinates.bind(symbol, place % mesh.sizeOf(axis));
    place /= mesh.sizeOf(axis);
  }
  return dim::substitute(size, coordinates);
}

SmallVector<Value> PartBuilder::collect(Value value, ArrayRef<unsigned> axes, bool onRanks) {
  SmallVector<Type> types;
  for (int64_t place = 0; place < mesh.numAlong(axes); ++place) {
    TensorType type = graph::fromMlir(value.getType());
    for (Size &size : type.shape)
      size = at(size, place, axes);
    types.push_back(graph::toMlir(b.getContext(), type));
  }
  auto collected = graph::CollectOp::create(b, loc, types, value, graph::namesOf(b.getContext(), axes, mesh), onRanks);
  return llvm::to_vector(ValueRange(collected.getResults()));
}

SmallVector<Value> PartBuilder::exchange(ValueRange blocks, ArrayRef<unsigned> axes) {
  SmallVector<SmallVector<Value>> from; // by block, then by source rank
  for (Value block : blocks)
    from.push_back(collect(block, axes, /*onRanks=*/true));
  SmallVector<Value> own;
  for (size_t source = 0; source < blocks.size(); ++source) {
    SmallVector<Value> each;
    for (const SmallVector<Value> &ofBlock : from)
      each.push_back(ofBlock[source]);
    own.push_back(deal(each, axes, each.front().getType()));
  }
  return own;
}

std::optional<runtime::CollectiveGroup> groupAlong(ArrayRef<unsigned> axes, const graph::Mesh &mesh,
                                                   const runtime::MachineModel &machine, runtime::DeviceRef device) {
  SmallVector<int64_t> sizes;
  for (size_t axis = 0; axis < mesh.axes.size(); ++axis)
    sizes.push_back(mesh.sizeOf(static_cast<unsigned>(axis)));
  const SmallVector<uint32_t> along(axes.begin(), axes.end());
  return runtime::groupOfRanks(machine, sizes, along, device, 1);
}

void eraseUnused(Block &block) {
  EffectFacts facts;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.use_empty() && isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>() && !facts.hasEffects(&op))
      op.erase();
}

} // namespace tressel::passes
