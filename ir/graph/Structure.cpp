#include "ir/graph/Structure.h"

#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "tressel/runtime/Dim.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

#include <map>

using namespace mlir;

namespace tressel::graph {

/// Verifies what clusters and kernels have in common: attributes, the split of the body, the yield. `what` names the
/// op.
template <typename OpT> static LogicalResult verifyWork(OpT op) {
  if (dim::bounds(op.getRange()).hi < 1)
    return op.emitOpError("(rule 3) range must be positive, it is ") << dim::str(op.getRange());
  if (static_cast<int64_t>(op.getGrain()) < 1)
    return op.emitOpError("(rule 3) grain must be positive, it is ") << static_cast<int64_t>(op.getGrain());
  if (dim::bounds(op.getScratch()).hi < 0)
    return op.emitOpError("(rule 3) scratch must not be negative");
  if (static_cast<int64_t>(op.getPacks()) < 0 || op.getPacks() > op->getNumOperands() + 64)
    return op.emitOpError("(rule 3) packs must count inputs");
  if (op.getTarget() != KernelTarget::Host && op.getParams().empty())
    return op.emitOpError("(rule 6) a kernel of '") << op.getProvider() << "' for the target "
                                                    << stringifyKernelTarget(op.getTarget()) << " needs params";
  return success();
}

template <typename OpT> static LogicalResult verifyComputation(OpT op, TypeRange inputs, TypeRange results) {
  Region &region = op.getBody();
  if (!llvm::hasSingleElement(region))
    return op.emitOpError("(rule 1) the body must be one block");
  Block &body = region.front();
  if (TypeRange(body.getArgumentTypes()) != inputs)
    return op.emitOpError("(rule 1) needs one block argument per input, of its type");
  if (results.empty() && llvm::none_of(body, [](Operation &inner) {
        const op::OpInfo *info = infoOf(&inner);
        return info && info->hasEffects;
      }))
    return op.emitOpError("(rule 7) computes nothing: it has no result");
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield)
    return op.emitOpError("(rule 2) the body must end in tressel.yield");
  if (TypeRange(yield.getOperandTypes()) != results)
    return yield.emitOpError("(rule 2) must yield the results' types");
  if (!op.getRootOps())
    return success();

  int64_t rootOps = static_cast<int64_t>(*op.getRootOps()),
          size = static_cast<int64_t>(body.getOperations().size()) - 1;
  if (rootOps < 1 || rootOps >= size)
    return op.emitOpError("(rule 4) root_ops must leave at least one of the body's ") << size << " ops to the epilogue";
  Value rootValue;
  auto rootEnd = std::next(body.begin(), rootOps);
  for (Operation &inRoot : llvm::make_range(body.begin(), rootEnd))
    for (Value value : inRoot.getResults())
      for (Operation *user : value.getUsers())
        if (user == &*rootEnd || rootEnd->isBeforeInBlock(user)) {
          if (rootValue && rootValue != value)
            return op.emitOpError("(rule 5) the epilogue may use only one value of the root");
          rootValue = value;
        }
  auto first = cast<RankedTensorType>(results.front());
  auto type = rootValue ? dyn_cast<RankedTensorType>(rootValue.getType()) : RankedTensorType();
  if (!type || fromMlir(type).shape != fromMlir(first).shape || type.getElementTypeBitWidth() != first.getElementTypeBitWidth())
    return op.emitOpError(
        "(rule 5) the root's value must have the shape and width of the first result, whose buffer holds it");
  return success();
}

LogicalResult ClusterOp::verify() { return verifyWork(*this); }
LogicalResult ClusterOp::verifyRegions() { return verifyComputation(*this, getInputs().getTypes(), getResultTypes()); }

LogicalResult PackOp::verify() {
  if (auto type = getResult().getType(); type.getRank() != 1 || !type.hasStaticShape())
    return emitOpError("(rule 1) the packed form must be a static tensor<Nxui8>, not ") << type;
  if (getParams().empty())
    return emitOpError("(rule 2) params must not be empty");
  return success();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto build = [](Builder &b, ArrayRef<Type> args, ArrayRef<Type> results, function_interface_impl::VariadicFlag,
                  std::string &) { return b.getFunctionType(args, results); };
  return function_interface_impl::parseFunctionOp(parser, result, /*allowVariadic=*/false,
                                                  getFunctionTypeAttrName(result.name), build,
                                                  getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  function_interface_impl::printFunctionSignature(p, *this, getArgumentTypes(), /*isVariadic=*/false, getResultTypes());
  // Attributes with their default values are not printed.
  SmallVector<StringRef> hidden{getSymNameAttrName(), getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                getResAttrsAttrName()};
  auto hideIf = [&](bool isDefault, StringAttr name) {
    if (isDefault)
      hidden.push_back(name);
  };
  hideIf(getTarget() == KernelTarget::Host, getTargetAttrName());
  hideIf(getParams().empty(), getParamsAttrName());
  hideIf(getRange() == 1, getRangeAttrName());
  hideIf(getGrain() == 1, getGrainAttrName());
  hideIf(getScratch() == 0, getScratchAttrName());
  hideIf(getPacks() == 0, getPacksAttrName());
  hideIf(getFlops() == 0, getFlopsAttrName());
  hideIf(getBytes() == 0, getBytesAttrName());
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), hidden);
  if (!isExternal()) {
    p << ' ';
    p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  }
}

LogicalResult KernelOp::verify() { return verifyWork(*this); }

LogicalResult KernelOp::verifyRegions() {
  if (!isExternal())
    return verifyComputation(*this, getArgumentTypes(), getResultTypes());
  auto result = getResultTypes().size() == 1 ? dyn_cast<RankedTensorType>(getResultTypes()[0]) : RankedTensorType();
  if (getTarget() != KernelTarget::HostLibrary || getArgumentTypes().size() != 1 || !result || result.getRank() != 1 ||
      !result.hasStaticShape() || !result.getElementType().isUnsignedInteger(8))
    return emitOpError("(rule 2) without a body it must be a library's pack: one input, one tensor<Nxui8> result");
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("(rule 1) ") << getKernelAttr() << " is not a tressel.kernel of this module";
  if (TypeRange(getInputs()) != TypeRange(kernel.getArgumentTypes()) ||
      TypeRange(getResultTypes()) != TypeRange(kernel.getResultTypes()))
    return emitOpError("(rule 2) has the type ")
           << FunctionType::get(getContext(), getInputs().getTypes(), getResultTypes()) << " but the kernel is "
           << kernel.getFunctionType();
  return success();
}

std::string describeBody(Region &body, StringRef provider) {
  std::string text;
  if (!body.empty())
    for (Operation &op : body.front())
      if (const op::OpInfo *info = infoOf(&op); info && info->family != op::Family::Constant)
        text += (text.empty() ? "" : ", ") + std::string(info->name);
  return text.empty() ? "pack for " + provider.str() : text;
}

static void setCosts(Operation *op, StringRef name, ArrayRef<runtime::KernelCost> costs) {
  std::map<StringRef, double> sums;
  for (const runtime::KernelCost &cost : costs)
    sums[cost.kind] += cost.seconds;
  Builder b(op->getContext());
  SmallVector<NamedAttribute> entries;
  for (const auto &[kind, seconds] : sums)
    entries.push_back(b.getNamedAttr(kind, b.getF64FloatAttr(seconds)));
  if (entries.empty())
    op->removeAttr(name);
  else
    op->setAttr(name, b.getDictionaryAttr(entries));
}

static std::vector<runtime::KernelCost> costsOf(Operation *op, StringRef name) {
  std::vector<runtime::KernelCost> costs;
  if (auto entries = op->getAttrOfType<DictionaryAttr>(name))
    for (NamedAttribute entry : entries)
      if (auto seconds = dyn_cast<FloatAttr>(entry.getValue()))
        costs.push_back({entry.getName().str(), seconds.getValueAsDouble()});
  return costs;
}

void setCosts(Operation *op, ArrayRef<runtime::KernelCost> costs) { setCosts(op, kCostsAttr, costs); }
std::vector<runtime::KernelCost> costsOf(Operation *op) { return costsOf(op, kCostsAttr); }

void setRunnerUp(Operation *op, const runtime::KernelCost &runnerUp) {
  setCosts(op, kRunnerUpAttr, runnerUp.kind.empty() ? ArrayRef<runtime::KernelCost>() : ArrayRef(runnerUp));
}
runtime::KernelCost runnerUpOf(Operation *op) {
  const std::vector<runtime::KernelCost> one = costsOf(op, kRunnerUpAttr);
  return one.empty() ? runtime::KernelCost() : one.front();
}

std::string keyOf(KernelOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << kernel.getProvider() << '\n' << kernel.getParams() << '\n' << kernel.getFunctionType() << '\n';
  if (!kernel.isExternal()) {
    OpPrintingFlags flags;
    flags.elideLargeElementsAttrs(16).elideLargeResourceString(16);
    AsmState state(kernel, flags);
    for (Operation &op : kernel.getBody().front()) {
      op.print(os, state);
      os << '\n';
    }
  }
  return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, /*Width=*/16);
}

/// Whether adjacent elements of the result come from operand elements that are not adjacent.
static bool movesElements(Operation *op) {
  const op::OpInfo *info = infoOf(op);
  if (!info || !info->loopForm || op->getNumResults() != 1)
    return false;
  SmallVector<TensorType> operands;
  for (Value operand : op->getOperands())
    operands.push_back(fromMlir(operand.getType()));
  const TensorType result = fromMlir(op->getResult(0).getType());
  const auto form = info->loopForm(*info, operands, std::span(&result, 1), attrsOf(op, *info));
  if (!form || form->combine != op::Combine::None)
    return false;
  int32_t innermost = -1;
  for (int32_t d = 0; d < form->numParallel; ++d)
    if (form->domain[static_cast<size_t>(d)] != 1)
      innermost = d;
  for (const op::OperandMap &map : form->operands)
    for (size_t at = 0; at < map.dims.size(); ++at) {
      const op::IndexExpr &index = map.dims[at];
      if (index.indirect >= 0)
        return true;
      const bool isLast = at + 1 == map.dims.size();
      if (llvm::any_of(index.terms, [&](const op::IndexExpr::Term &term) {
            return term.dim == innermost && (!isLast || (term.coef != 1 && term.coef != 0));
          }))
        return true;
    }
  return false;
}

bool movesElements(KernelOp kernel) {
  return kernel.isGenerated() &&
         llvm::any_of(kernel.getBody().front(), [](Operation &op) { return movesElements(&op); });
}

static bool isModuleMarked(Operation *op, StringRef attribute) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  return module && module->hasAttr(attribute);
}

bool keepsSubnormals(Operation *op) { return isModuleMarked(op, kKeepSubnormalsAttr); }
bool isDeterministic(Operation *op) { return isModuleMarked(op, kDeterministicAttr); }

runtime::FloatMode floatModeOf(KernelOp kernel) {
  bool single = false, full = false;
  auto look = [&](TypeRange types) {
    for (Type type : types)
      if (isSupported(type) && isFloat(fromMlir(type).dtype))
        (fromMlir(type).dtype == DType::f64 ? full : single) = true;
  };
  look(kernel.getArgumentTypes());
  if (kernel.isExternal()) { // a pack
    look(kernel.getResultTypes());
  } else {
    const auto rootOps = static_cast<size_t>(kernel.getRootOps().value_or(UINT32_MAX));
    for (auto [number, op] : llvm::enumerate(kernel.getBody().front().without_terminator())) {
      if (number >= rootOps)
        break;
      look(op.getResultTypes());
      const op::OpInfo *info = infoOf(&op);
      if (info && (info->custom || (info->family == op::Family::Ordering && info->combine == op::Combine::None)))
        return runtime::FloatMode::Keep; // user code; and sorting kernels distinguish subnormal numbers from zero
    }
  }
  if (full || (single && keepsSubnormals(kernel)))
    return runtime::FloatMode::Keep;
  return single ? runtime::FloatMode::Flush : runtime::FloatMode::Any;
}

void registerStructureOps(Dialect &dialect) {
  auto add = [&]<typename... Ops>() { (RegisteredOperationName::insert<Ops>(dialect), ...); };
  add.template operator()<ClusterOp, YieldOp, PackOp, KernelOp, LaunchOp>();
}

} // namespace tressel::graph

#define GET_OP_CLASSES
#include "ir/graph/Structure.cpp.inc"
