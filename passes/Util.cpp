#include "passes/Util.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "tressel/runtime/Dim.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>

using namespace mlir;

namespace tressel::passes {

FailureOr<func::FuncOp> findMain(ModuleOp module) {
  func::FuncOp main;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.getName() != "main")
      return func.emitError("only one function is compiled, @main; inline or remove @") << func.getName();
    main = func;
  }
  if (main && !llvm::hasSingleElement(main.getBody()))
    return main.emitError("@main must be one block");
  return main;
}

Location fuseLocations(MLIRContext *context, ArrayRef<Location> locations) {
  constexpr size_t kMost = 8;
  llvm::SmallSetVector<Location, kMost> unique;
  auto add = [&](Location loc) {
    if (!isa<UnknownLoc>(loc) && unique.size() < kMost)
      unique.insert(loc);
  };
  for (Location loc : locations) {
    if (auto fused = dyn_cast<FusedLoc>(loc); fused && !fused.getMetadata())
      llvm::for_each(fused.getLocations(), add);
    else
      add(loc);
  }
  return unique.empty() ? Location(UnknownLoc::get(context)) : FusedLoc::get(unique.getArrayRef(), {}, context);
}

std::vector<TensorType> tableTypes(TypeRange types) {
  std::vector<TensorType> converted;
  converted.reserve(types.size());
  for (Type type : types)
    converted.push_back(graph::fromMlir(type));
  return converted;
}

std::optional<op::LoopForm> loopFormOf(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  if (!info || !info->loopForm)
    return std::nullopt;
  return info->loopForm(*info, tableTypes(op->getOperandTypes()), tableTypes(op->getResultTypes()),
                        graph::attrsOf(op, *info));
}

std::optional<op::KernelForm> kernelFormOf(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  if (!info || !info->kernelForm)
    return std::nullopt;
  return info->kernelForm(*info, tableTypes(op->getOperandTypes()), tableTypes(op->getResultTypes()),
                          graph::attrsOf(op, *info));
}

bool hasOwnKernel(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  return info && (info->kernelForm || info->custom);
}

int64_t bytesOf(Type tensor) { return dim::hint(dim::bytes(graph::fromMlir(tensor))); }

int64_t flopsOf(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  if (!info || !info->flops)
    return 0;
  return dim::hint(info->flops(*info, tableTypes(op->getOperandTypes()), tableTypes(op->getResultTypes()),
                               graph::attrsOf(op, *info)));
}

std::optional<Bid> cheapestBid(ArrayRef<const KernelProvider *> providers, Operation *op,
                               llvm::function_ref<bool(Value)> isParameterOnly) {
  llvm::SetVector<Value> inputs;
  for (Value operand : op->getOperands())
    if (!isImmediate(op, operand))
      inputs.insert(operand);
  SmallVector<bool> packable = llvm::map_to_vector(inputs, [&](Value v) { return isParameterOnly(v); });
  SmallVector<Value> results(op->getResults());
  std::optional<Bid> best;
  for (const KernelProvider *provider : providers)
    if (std::optional<Bid> bid = provider->bid({op, op, inputs.getArrayRef(), results}, packable);
        bid && (!best || bid->seconds < best->seconds))
      best = std::move(bid);
  return best;
}

Operation *rootOf(ArrayRef<Operation *> ops) {
  Operation *combining = nullptr;
  for (Operation *op : ops) {
    op::Family family = graph::infoOf(op)->family;
    if (op::isProduct(family))
      return op;
    if (family == op::Family::Reduction || family == op::Family::Window)
      combining = op;
  }
  return combining ? combining : ops.back();
}

std::optional<op::Ints> permutationOf(Operation *op) {
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return std::nullopt;
  std::optional<op::LoopForm> form = loopFormOf(op);
  if (!form || !isPointParallel(*form) || form->operands.size() != 1 || form->operands[0].guarded ||
      form->operands[0].dims.size() != form->domain.size() || form->body.nodes.size() != 1 ||
      form->body.nodes[0].op != op::ScalarOp::Operand ||
      graph::fromMlir(op->getOperand(0).getType()).dtype != graph::fromMlir(op->getResult(0).getType()).dtype)
    return std::nullopt;
  const Shape from = graph::fromMlir(op->getOperand(0).getType()).shape;
  op::Ints order(form->domain.size(), -1);
  for (auto [d, expr] : llvm::enumerate(form->operands[0].dims)) {
    if (expr.terms.size() != 1 || expr.terms[0].coef != 1 || expr.offset != 0 || expr.indirect >= 0 ||
        !dim::equal(from[static_cast<int>(d)], form->domain[static_cast<size_t>(expr.terms[0].dim)]))
      return std::nullopt;
    order[static_cast<size_t>(expr.terms[0].dim)] = static_cast<int64_t>(d);
  }
  return llvm::is_contained(order, -1) ? std::nullopt : std::optional(std::move(order));
}

bool readsPointwise(const op::LoopForm &form, size_t i) {
  const op::OperandMap &map = form.operands[i];
  if (map.guarded || form.alternatives || map.dims.size() != static_cast<size_t>(form.numParallel))
    return false;
  for (auto [d, expr] : llvm::enumerate(map.dims)) {
    bool unit = form.domain[d] == 1 && expr.terms.empty();
    bool identity = expr.terms.size() == 1 && expr.terms[0].dim == static_cast<int32_t>(d) && expr.terms[0].coef == 1;
    if (!(unit || identity) || expr.offset != 0 || expr.indirect >= 0)
      return false;
  }
  return true;
}

bool isComputation(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  return info && !info->isView;
}

bool isInlineConstant(Value value) {
  DenseElementsAttr attr;
  return matchPattern(value, m_Constant(&attr)) && attr.isSplat();
}

llvm::DenseSet<Value> parameterOnlyValues(func::FuncOp main) {
  llvm::DenseSet<Value> values;
  llvm::DenseSet<Attribute> written;
  auto ret = main.getBody().front().getTerminator();
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (Attribute state = main.getResultAttr(i, graph::kStateAttr)) {
      auto arg = dyn_cast<BlockArgument>(ret->getOperand(i));
      if (!arg || main.getArgAttr(arg.getArgNumber(), graph::kStateAttr) != state)
        written.insert(state);
    }
  for (BlockArgument arg : main.getArguments())
    if (Attribute state = main.getArgAttr(arg.getArgNumber(), graph::kStateAttr); state && !written.contains(state))
      values.insert(arg);
  EffectFacts facts;
  // Prepare runs before a call, so it knows no symbolic sizes.
  auto isStatic = [](Operation *op) {
    const op::OpInfo *info = graph::infoOf(op);
    return llvm::all_of(op->getResultTypes(), [](Type type) { return cast<RankedTensorType>(type).hasStaticShape(); }) &&
           !(info && op::isSymbolic(graph::attrsOf(op, *info)));
  };
  auto spread = [&](auto &self, Block &block) -> void {
    for (Operation &op : block) {
      if (op.hasTrait<OpTrait::IsTerminator>())
        continue;
      if (auto control = dyn_cast<graph::ControlOpInterface>(op))
        for (Region &body : op.getRegions()) {
          for (BlockArgument argument : body.getArguments())
            if (Value outside = control.invariantOf(argument); outside && values.contains(outside))
              values.insert(argument);
          self(self, body.front());
        }
      if (llvm::all_of(op.getOperands(), [&](Value v) { return values.contains(v); }) && !facts.isRandom(&op) &&
          !facts.hasEffects(&op) && isStatic(&op))
        values.insert(op.result_begin(), op.result_end());
    }
  };
  spread(spread, main.getBody().front());
  return values;
}

/// Whether the kernel has a nest that reads the input and exchanges no values with the nest of the result.
static bool isReadByOthers(graph::KernelOp kernel, unsigned i, unsigned result) {
  Block &body = kernel.getBody().front();
  Operation *start = body.getTerminator()->getOperand(result).getDefiningOp();
  llvm::SetVector<Operation *> connected;
  if (start)
    connected.insert(start);
  auto add = [&](Operation *op) {
    if (op && op->getBlock() == &body && isComputation(op) && !op->hasTrait<OpTrait::ConstantLike>())
      connected.insert(op);
  };
  for (size_t n = 0; n < connected.size(); ++n) {
    for (Value operand : connected[n]->getOperands())
      add(operand.getDefiningOp());
    for (Operation *user : connected[n]->getUsers())
      add(user);
  }
  return llvm::any_of(body.getArgument(i).getUsers(),
                      [&](Operation *user) { return isComputation(user) && !connected.contains(user); });
}

bool mayOverwrite(graph::KernelOp kernel, unsigned i, unsigned result) {
  if (kernel.isExternal())
    return false;
  if (Operation *op = &kernel.getBody().front().front(); hasOwnKernel(op)) {
    const int operand = graph::infoOf(op)->overwrites;
    return result == 0 && operand >= 0 &&
           op->getOperand(static_cast<unsigned>(operand)) == kernel.getBody().getArgument(i) &&
           llvm::count(op->getOperands(), Value(kernel.getBody().getArgument(i))) == 1 &&
           kernel.getArgumentTypes()[i] == kernel.getResultTypes()[0];
  }
  // With an epilogue, the library's root writes into the first result; the generated code then reads that and other
  // operands, and writes all results.
  const bool isEpilogue = kernel.getTarget() == graph::KernelTarget::HostLibrary && kernel.getRootOps() && result > 0;
  if (!kernel.isGenerated() && !isEpilogue && kernel.getTarget() != graph::KernelTarget::Gpu)
    return false;
  auto made = cast<RankedTensorType>(kernel.getResultTypes()[result]);
  auto input = cast<RankedTensorType>(kernel.getArgumentTypes()[i]);
  const Shape shape = graph::fromMlir(made).shape;
  if (graph::fromMlir(input).shape != shape || input.getElementTypeBitWidth() != made.getElementTypeBitWidth())
    return false;
  // All values that depend on the input must be pointwise over its shape; other values may have any form. Within a
  // nest, all reads of a point precede its writes, but another nest (ops that exchange no values with this one) may run
  // later and read overwritten bytes.
  if (!isEpilogue && isReadByOthers(kernel, i, result))
    return false;
  llvm::SmallDenseSet<Value> derived{kernel.getBody().getArgument(i)};
  int64_t ofRoot = isEpilogue ? static_cast<int64_t>(*kernel.getRootOps()) : 0;
  for (Operation &op : kernel.getBody().front()) {
    const bool isOfRoot = ofRoot-- > 0;
    if (!isComputation(&op) ||
        llvm::none_of(op.getOperands(), [&](Value operand) { return derived.contains(operand); }))
      continue;
    std::optional<op::LoopForm> form = loopFormOf(&op);
    if (isOfRoot || !form || !isPointParallel(*form) || !std::ranges::equal(form->domain, shape))
      return false;
    for (auto [n, operand] : llvm::enumerate(op.getOperands()))
      if (derived.contains(operand) && !readsPointwise(*form, n))
        return false;
    derived.insert(op.result_begin(), op.result_end());
  }
  return derived.contains(kernel.getBody().front().getTerminator()->getOperand(result));
}

bool writesAllResults(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  return info && info->custom;
}

/// Whether `is` holds for the op, for one nested in it, or for one in the kernel that it launches.
static bool anyOp(Operation *op, SymbolTableCollection &symbols,
                  llvm::function_ref<bool(Operation *, const op::OpInfo &)> is) {
  if (const op::OpInfo *info = graph::infoOf(op))
    return is(op, *info);
  Operation *holder = op;
  if (auto launch = dyn_cast<graph::LaunchOp>(op))
    holder = symbols.lookupNearestSymbolFrom<graph::KernelOp>(op, launch.getKernelAttr());
  if (holder)
    for (Region &region : holder->getRegions())
      for (Operation &inner : region.getOps())
        if (anyOp(&inner, symbols, is))
          return true;
  return false;
}

bool hasEffects(Operation *op, SymbolTableCollection &symbols) {
  return anyOp(op, symbols, [](Operation *, const op::OpInfo &info) { return info.hasEffects; });
}

bool mayFail(Operation *op, SymbolTableCollection &symbols) {
  return anyOp(op, symbols, [](Operation *inner, const op::OpInfo &info) {
    if (info.hasEffects || info.custom)
      return true;
    const std::optional<op::LoopForm> form = loopFormOf(inner);
    return form && std::ranges::any_of(form->operands, [](const op::OperandMap &map) {
      return std::ranges::any_of(map.dims, [](const op::IndexExpr &expr) { return expr.indirect >= 0; });
    });
  });
}

bool isRandom(Operation *op, SymbolTableCollection &symbols) {
  return anyOp(op, symbols, [](Operation *, const op::OpInfo &info) { return info.family == op::Family::Random; });
}

EffectFacts::Facts EffectFacts::ask(Operation *op) {
  auto look = [&] {
    return Facts{tressel::passes::hasEffects(op, symbols), tressel::passes::isRandom(op, symbols),
                 tressel::passes::mayFail(op, symbols)};
  };
  auto launch = dyn_cast<graph::LaunchOp>(op);
  if (!launch)
    return look();
  auto [at, isNew] = ofKernel.try_emplace(launch.getKernelAttr());
  if (isNew)
    at->second = look();
  return at->second;
}

} // namespace tressel::passes
