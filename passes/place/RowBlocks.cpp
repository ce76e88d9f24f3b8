#include "passes/place/RowBlocks.h"

#include "passes/Util.h"

#include "ir/graph/Graph.h"
#include "ir/op/Infer.h"
#include "mlir/IR/IRMapping.h"
#include "tressel/runtime/Dim.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tressel::passes {

namespace {
enum class Need : uint8_t { Nothing, Rows, Whole };

/// Which rows of an operand are read for some rows of the result.
Need needOf(const op::LoopForm &form, size_t operand) {
  const op::OperandMap &map = form.operands[operand];
  auto usesRow = [](const op::IndexExpr &expr) {
    return llvm::any_of(expr.terms, [](const auto &term) { return term.dim == 0; });
  };
  if (llvm::none_of(map.dims, usesRow))
    return Need::Whole;
  const op::IndexExpr &first = map.dims.front();
  const bool isRow = first.terms.size() == 1 && first.terms[0].dim == 0 && first.terms[0].coef == 1 &&
                     first.offset == 0 && first.indirect < 0;
  const bool isOnly = llvm::none_of(ArrayRef(map.dims).drop_front(), usesRow);
  return isRow && isOnly && !map.guarded ? Need::Rows : Need::Nothing;
}

RankedTensorType withRows(Type type, int64_t rows) {
  TensorType tensor = graph::fromMlir(type);
  tensor.shape[0] = rows;
  return graph::toMlir(type.getContext(), tensor);
}

bool isIndexed(const op::LoopForm &form) {
  return llvm::any_of(form.body.nodes, [](const op::ScalarNode &node) { return node.op == op::ScalarOp::Index; });
}
} // namespace

std::optional<RowForm> rowFormOf(graph::KernelOp kernel) {
  if (kernel.isExternal() || !graph::symbolsOf(kernel).empty())
    return std::nullopt;
  Block &body = kernel.getBody().front();
  RowForm form;
  llvm::DenseMap<Value, Need> needs;
  auto need = [&](Value value, Need how) {
    Need &known = needs[value];
    if (known != Need::Nothing && known != how)
      return false;
    known = how;
    return true;
  };
  for (Value result : body.getTerminator()->getOperands()) {
    const Shape shape = graph::fromMlir(result.getType()).shape;
    if (shape.rank() == 0 || (form.rows && form.rows != shape[0]) || !need(result, Need::Rows))
      return std::nullopt;
    form.rows = shape.extent(0);
  }
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (op.hasTrait<OpTrait::ConstantLike>()) {
      if (op.getNumResults() == 1 && needs.lookup(op.getResult(0)) == Need::Rows)
        return std::nullopt;
      continue;
    }
    const op::OpInfo *info = graph::infoOf(&op);
    std::optional<op::LoopForm> loop = loopFormOf(&op);
    // A value that all blocks need as a whole would be computed once per block.
    if (!loop || !isComputation(&op) || info->hasEffects || info->family == op::Family::Random || loop->alternatives ||
        op.getNumResults() != 1 || needs.lookup(op.getResult(0)) != Need::Rows || loop->numParallel == 0 ||
        loop->domain[0] != form.rows || isIndexed(*loop))
      return std::nullopt;
    for (auto [i, operand] : llvm::enumerate(op.getOperands()))
      if (Need how = needOf(*loop, i); how == Need::Nothing || !need(operand, how) ||
                                       (how == Need::Rows && graph::fromMlir(operand.getType()).shape[0] != form.rows))
        return std::nullopt;
  }
  for (BlockArgument arg : body.getArguments())
    form.byRow.push_back(needs.lookup(arg) == Need::Rows);
  return form;
}

graph::KernelOp RowBlocks::blockOf(graph::KernelOp kernel, const RowForm &form, int64_t rows) {
  auto [at, isNew] = made.try_emplace({kernel.getSymName().str(), rows});
  if (isNew)
    at->second = make(kernel, form, rows);
  return at->second;
}

/// Clones the kernel's body into `block`, with types for `rows` rows. False if the body does not work for other numbers
/// of rows: its attributes contain the number, for example.
bool RowBlocks::rewriteBody(graph::KernelOp kernel, graph::KernelOp block, int64_t rows, Parts &parts) const {
  OpBuilder b(kernel);
  Block *body = b.createBlock(&block.getBody());
  IRMapping map;
  for (auto [arg, type] : llvm::zip_equal(kernel.getBody().getArguments(), block.getArgumentTypes()))
    map.map(arg, body->addArgument(type, arg.getLoc()));
  int64_t count = 0;
  for (Operation &op : kernel.getBody().front()) {
    const bool inRoot = kernel.getRootOps() && count++ < static_cast<int64_t>(*kernel.getRootOps());
    const op::OpInfo *info = graph::infoOf(&op);
    if (!info || op.hasTrait<OpTrait::ConstantLike>()) {
      b.clone(op, map);
      continue;
    }
    SmallVector<Value> inputs = llvm::map_to_vector(op.getOperands(), [&](Value v) { return map.lookup(v); });
    const op::Attrs attrs = graph::attrsOf(&op, *info);
    const op::Inferred inferred = op::inferTypes(*info, tableTypes(ValueRange(inputs).getTypes()), attrs);
    if (!inferred || graph::toMlir(b.getContext(), inferred.types.front()) != withRows(op.getResult(0).getType(), rows))
      return false;
    Operation *made = graph::createOp(b, op.getLoc(), *info, inputs, attrs);
    map.map(op.getResult(0), made->getResult(0));
    parts.ops.push_back(made);
    (inRoot ? parts.root : parts.epilogue).push_back(made);
  }
  return true;
}

/// The bid of the provider `name` for part of a block.
std::optional<Bid> RowBlocks::bidOf(StringRef name, graph::KernelOp kernel, const RowForm &form, ArrayRef<Operation *> part,
                                    ArrayRef<Value> results) const {
  llvm::SetVector<Value> inputs;
  SmallVector<bool> packable;
  llvm::SmallDenseSet<Operation *> inside(part.begin(), part.end());
  for (Operation *op : part)
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); !(def && inside.contains(def)) && !isImmediate(op, operand))
        inputs.insert(operand);
  for (Value input : inputs) {
    auto arg = dyn_cast<BlockArgument>(input);
    packable.push_back(arg && kernel.getPacks() > 0 && !form.byRow[arg.getArgNumber()]);
  }
  for (const KernelProvider *provider : providers)
    if (provider->name() == name)
      return provider->bid({rootOf(part), part, inputs.getArrayRef(), results}, packable);
  return std::nullopt;
}

/// The provider that generates epilogues for the device kind of the root's provider.
StringRef RowBlocks::epilogueProvider(StringRef root) const {
  auto found = llvm::find_if(providers, [&](const KernelProvider *p) { return p->name() == root; });
  const bool isForGpu = found != providers.end() && (*found)->isForGpu();
  auto writer = llvm::find_if(
      providers, [&](const KernelProvider *p) { return p->writesEpilogues() && p->isForGpu() == isForGpu; });
  return writer == providers.end() ? StringRef() : (*writer)->name();
}

/// The provider of the whole kernel must bid for the block, and must want the same operands packed.
std::optional<Bid> RowBlocks::bidFor(graph::KernelOp kernel, graph::KernelOp block, const RowForm &form, const Parts &parts,
                                     SmallVectorImpl<Type> &packed) const {
  Block &body = block.getBody().front();
  const SmallVector<Value> yielded(body.getTerminator()->getOperands());
  std::optional<Bid> bid;
  if (!kernel.getRootOps()) {
    bid = bidOf(kernel.getProvider(), kernel, form, parts.ops, yielded);
  } else if (!parts.root.empty() && !parts.epilogue.empty()) {
    bid = bidOf(kernel.getProvider(), kernel, form, parts.root, SmallVector<Value>(parts.root.back()->getResults()));
    const auto after = bidOf(epilogueProvider(kernel.getProvider()), kernel, form, parts.epilogue, yielded);
    if (!bid || !after || !bid->takesEpilogue)
      return std::nullopt;
    bid->scratchBytes = dim::max(bid->scratchBytes, after->scratchBytes);
    bid->addCosts(*after);
  }
  if (!bid || bid->packs.size() != kernel.getPacks())
    return std::nullopt;
  for (BlockArgument arg : body.getArguments())
    if (arg.use_empty())
      packed.push_back(arg.getType());
  if (packed.size() != bid->packs.size())
    return std::nullopt;
  for (auto [request, type] : llvm::zip_equal(bid->packs, packed))
    if (request.bytes != bytesOf(type))
      return std::nullopt;
  return bid;
}

graph::KernelOp RowBlocks::make(graph::KernelOp kernel, const RowForm &form, int64_t rows) {
  SmallVector<Type> operands(kernel.getArgumentTypes()), results;
  for (auto [type, byRow] : llvm::zip_equal(operands, form.byRow))
    if (byRow)
      type = withRows(type, rows);
  for (Type type : kernel.getResultTypes())
    results.push_back(withRows(type, rows));
  OpBuilder b(kernel);
  auto block = cast<graph::KernelOp>(b.cloneWithoutRegions(*kernel));
  block.setSymName((kernel.getSymName() + "_" + Twine(rows) + "_rows").str());
  block.setFunctionType(FunctionType::get(b.getContext(), operands, results));
  Parts parts;
  SmallVector<Type> packed;
  const std::optional<Bid> bid =
      rewriteBody(kernel, block, rows, parts) ? bidFor(kernel, block, form, parts, packed) : std::nullopt;
  if (!bid) {
    block.erase();
    return {};
  }
  block.setParams(bid->params);
  block.setRange(bid->range);
  block.setGrain(static_cast<uint64_t>(bid->grain));
  block.setScratch(bid->scratchBytes);
  graph::setCosts(block, bid->costs);
  graph::setRunnerUp(block, {});
  int64_t flops = 0, bytes = 0;
  for (Operation *op : parts.ops)
    flops += flopsOf(op);
  for (ArrayRef<Type> types : {ArrayRef<Type>(operands), ArrayRef<Type>(results)})
    for (Type type : types)
      bytes += bytesOf(type);
  for (const PackRequest &request : bid->packs) // the kernel reads the packed form in place of the operand
    if (request.input < operands.size())
      bytes -= bytesOf(operands[request.input]);
  block.setFlops(static_cast<uint64_t>(flops));
  block.setBytes(static_cast<uint64_t>(bytes));
  SmallVector<graph::KernelOp> &list = packers[block];
  for (auto [request, type] : llvm::zip_equal(bid->packs, packed))
    list.push_back(packerFor(block, type, request));
  return block;
}

graph::KernelOp RowBlocks::packerFor(graph::KernelOp block, Type packed, const PackRequest &request) {
  // Inputs of the root come first, which is the order in which the provider numbers them.
  const Type operand = block.getArgumentTypes()[request.input];
  auto type = FunctionType::get(block.getContext(), {operand}, {packed});
  int64_t count = 0;
  for (auto kernel : block->getParentOfType<ModuleOp>().getOps<graph::KernelOp>())
    if (kernel.isExternal()) {
      if (kernel.getParams() == request.params && kernel.getProvider() == block.getProvider() &&
          kernel.getFunctionType() == type)
        return kernel;
      ++count;
    }
  OpBuilder b(block);
  OperationState state(block.getLoc(), graph::KernelOp::getOperationName());
  state.addRegion();
  auto &properties = state.getOrAddProperties<graph::KernelOp::Properties>();
  properties.sym_name = b.getStringAttr("pack_" + std::to_string(count));
  properties.function_type = TypeAttr::get(type);
  properties.provider = b.getStringAttr(block.getProvider());
  properties.target = graph::KernelTargetAttr::get(block.getContext(), graph::KernelTarget::HostLibrary);
  properties.params = b.getStringAttr(request.params);
  auto kernel = cast<graph::KernelOp>(b.create(state));
  kernel.setBytes(static_cast<uint64_t>(bytesOf(operand) + bytesOf(packed)));
  return kernel;
}

} // namespace tressel::passes
