#include "ir/graph/TableOp.h"

#include "ir/graph/Graph.h"
#include "ir/op/Infer.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tressel::graph {

namespace {

/// Not registered itself: the interface models of all table ops are instantiated for it.
class TableOp : public Op<TableOp, OpTrait::ZeroRegions, OpTrait::VariadicResults, OpTrait::ZeroSuccessors,
                          OpTrait::VariadicOperands, ConditionallySpeculatable::Trait,
                          OpTrait::AlwaysSpeculatableImplTrait, MemoryEffectOpInterface::Trait> {
public:
  using Op::Op;
  static constexpr StringLiteral getOperationName() { return "tressel.<table>"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
  static bool classof(Operation *op) { return op->hasTrait<IsTableOp>(); }
  void getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
    if (infoOf(getOperation())->hasEffects)
      effects.emplace_back(MemoryEffects::Write::get());
  }
};

/// Parses %r = tressel.name %a, %b {attributes} : (types) -> type
ParseResult parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands) || parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseColonType(type) || parser.resolveOperands(operands, type.getInputs(), loc, state.operands))
    return failure();
  state.addTypes(type.getResults());
  return success();
}

void print(Operation *op, OpAsmPrinter &p) {
  p << op->getName().getStringRef();
  if (op->getNumOperands())
    p << ' ' << op->getOperands();
  p.printOptionalAttrDict(op->getAttrs());
  p << " : ";
  p.printFunctionalType(op);
}

/// Implements what MLIR requires of a registered op, from the OpInfo.
class TableOpModel : public OperationName::Impl {
public:
  TableOpModel(const op::OpInfo &info, Dialect &dialect)
      : Impl(("tressel." + Twine(info.name)).str(), &dialect, TypeID::getFromOpaquePointer(&info),
             mlir::detail::InterfaceMap::get<ConditionallySpeculatable::Trait<TableOp>,
                                             MemoryEffectOpInterface::Trait<TableOp>>()),
        info(info) {}

  LogicalResult foldHook(Operation *op, ArrayRef<Attribute> operands, SmallVectorImpl<OpFoldResult> &results) final {
    return foldTableOp(op, info, operands, results);
  }
  bool hasTrait(TypeID id) final {
    return id == TypeID::get<IsTableOp>() || id == TypeID::get<OpTrait::ZeroRegions>() ||
           id == TypeID::get<OpTrait::ZeroSuccessors>() ||
           (info.commutative && id == TypeID::get<OpTrait::IsCommutative>()) ||
           (info.numResults == 1 && id == TypeID::get<OpTrait::OneResult>());
  }
  OperationName::ParseAssemblyFn getParseAssemblyFn() final { return parse; }
  void printAssembly(Operation *op, OpAsmPrinter &printer, StringRef) final { print(op, printer); }
  LogicalResult verifyInvariants(Operation *op) final { return verifyTableOp(op, info); }
  LogicalResult verifyRegionInvariants(Operation *) final { return success(); }
  void getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) final {}
  void populateDefaultAttrs(const OperationName &, NamedAttrList &) final {}

  // Attributes are in the operation's dictionary; there are no properties.
  std::optional<Attribute> getInherentAttr(Operation *op, StringRef name) final { return op->getDiscardableAttr(name); }
  void setInherentAttr(Operation *op, StringAttr name, Attribute value) final { op->setDiscardableAttr(name, value); }
  void populateInherentAttrs(Operation *, NamedAttrList &) final {}
  LogicalResult verifyInherentAttrs(OperationName, NamedAttrList &, function_ref<InFlightDiagnostic()>) final {
    return success();
  }
  int getOpPropertyByteSize() final { return 0; }
  void initProperties(OperationName, OpaqueProperties, OpaqueProperties) final {}
  void deleteProperties(OpaqueProperties) final {}
  void populateDefaultProperties(OperationName, OpaqueProperties) final {}
  LogicalResult setPropertiesFromAttr(OperationName, OpaqueProperties, Attribute,
                                      function_ref<InFlightDiagnostic()> emitError) final {
    emitError() << "the op has no properties";
    return failure();
  }
  Attribute getPropertiesAsAttr(Operation *) final { return {}; }
  void copyProperties(OpaqueProperties, OpaqueProperties) final {}
  bool compareProperties(OpaqueProperties, OpaqueProperties) final { return true; }
  llvm::hash_code hashProperties(OpaqueProperties) final { return {}; }

private:
  const op::OpInfo &info;
};

} // namespace

void registerTableOp(Dialect &dialect, const op::OpInfo &info) {
  SmallVector<StringRef> names;
  for (const op::AttrSpec &attr : info.attrs)
    names.push_back(attr.name);
  RegisteredOperationName::insert(std::make_unique<TableOpModel>(info, dialect), names);
}

/// How an attribute of the kind is written, for error messages.
static const char *exampleOf(op::AttrKind kind) {
  switch (kind) {
  case op::AttrKind::Bool:
    return "true";
  case op::AttrKind::Int:
    return "2 : i64";
  case op::AttrKind::Float:
    return "0.5 : f64";
  case op::AttrKind::Type:
    return "f32";
  case op::AttrKind::String:
    return "\"text\"";
  case op::AttrKind::Ints:
    return "array<i64: 1, 2>";
  case op::AttrKind::Size:
    return "2 : i64 or #tressel.size<\"n\">";
  case op::AttrKind::Sizes:
    return "array<i64: 1, 2> or #tressel.dims<\"n\", 2>";
  }
  return "nothing";
}

LogicalResult verifyTableOp(Operation *op, const op::OpInfo &info) {
  std::vector<TensorType> operands;
  for (Value v : op->getOperands()) {
    if (!isSupported(v.getType()))
      return op->emitError() << info.name << ": operand type " << v.getType() << " is not supported";
    operands.push_back(fromMlir(v.getType()));
  }
  for (NamedAttribute attr : op->getAttrs()) {
    StringRef name = attr.getName();
    int index = info.attrIndex(std::string_view(name.data(), name.size()));
    op::Attr value;
    if (index < 0 && !name.contains('.'))
      return op->emitError() << info.name << ": there is no attribute '" << name << "'";
    if (index >= 0 && !fromMlirAttr(attr.getValue(), info.attrs[static_cast<size_t>(index)].kind, value))
      return op->emitError() << info.name << ": attribute '" << name << "' cannot be " << attr.getValue()
                             << "; it is written like " << exampleOf(info.attrs[static_cast<size_t>(index)].kind);
  }
  op::Attrs attrs = attrsOf(op, info);
  if (std::string error = completeAttrs(info, attrs); !error.empty())
    return op->emitError(error);
  op::Inferred inferred = op::inferTypes(info, operands, attrs);
  if (!inferred)
    return op->emitError(inferred.error);
  for (const TensorType &type : inferred.types)
    if (!isSupported(toMlir(op->getContext(), type)))
      return op->emitError() << info.name << ": the result does not fit into memory: " << type.str();
  if (op->getNumResults() != inferred.types.size())
    return op->emitError() << info.name << ": has " << inferred.types.size() << " results";
  for (auto [result, type] : llvm::zip(op->getResults(), inferred.types))
    if (result.getType() != toMlir(op->getContext(), type))
      return op->emitError() << info.name << ": the result is " << type.str() << ", not " << result.getType();
  return success();
}

} // namespace tressel::graph
