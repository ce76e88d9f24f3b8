// Converts between MLIR's operations, types, attributes and locations and those of the op table.
#include "ir/graph/Graph.h"

#include "ir/graph/BuilderEmitter.h"

#include "ir/op/Infer.h"

#include "ir/graph/Attributes.h"
#include "ir/graph/TableOp.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "tressel/runtime/Dim.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tressel::graph {

const op::OpInfo *infoOf(Operation *op) {
  if (!op->hasTrait<IsTableOp>())
    return nullptr;
  return static_cast<const op::OpInfo *>(op->getName().getTypeID().getAsOpaquePointer());
}

std::string problemForParser(StringRef text, StringRef path) {
  int depth = 0;
  unsigned line = 1;
  char last = 0;
  auto at = [&](const Twine &what) { return (path + ":" + Twine(line) + ": " + what).str(); };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    line += c == '\n';
    depth += c == '(' || c == '[' || c == '{' || c == '<';
    depth -= depth > 0 && (c == ')' || c == ']' || c == '}' || (c == '>' && last != '-'));
    last = c;
    if (depth > kMaxNesting)
      return at("more than " + Twine(kMaxNesting) + " open brackets");
    if (c != '%')
      continue;
    StringRef rest = text.substr(i + 1).drop_while([](char x) { return llvm::isAlnum(x) || x == '_' || x == '$' || x == '.' || x == '-'; });
    if (!rest.consume_front("#") && !rest.consume_front(":"))
      continue;
    StringRef digits = rest.take_while(llvm::isDigit);
    uint64_t number = 0;
    if (!digits.empty() && (digits.getAsInteger(10, number) || number > kMaxResults))
      return at("result number " + digits.take_front(32) + ": ops have at most " + Twine(kMaxResults) + " results");
  }
  return "";
}

// --- Types
// ------------------------------------------------------------------------------------------------------------
static Type elementType(MLIRContext *ctx, DType type) {
  switch (type) {
  case DType::f32:
    return Float32Type::get(ctx);
  case DType::f64:
    return Float64Type::get(ctx);
  case DType::f16:
    return Float16Type::get(ctx);
  case DType::bf16:
    return BFloat16Type::get(ctx);
  case DType::u8:
    return IntegerType::get(ctx, 8, IntegerType::Unsigned);
  case DType::boolean:
    return IntegerType::get(ctx, 1);
  default:
    return IntegerType::get(ctx, static_cast<unsigned>(8 * sizeOf(type)));
  }
}

static std::optional<DType> dtypeOf(Type type) {
  if (type.isF32())
    return DType::f32;
  if (type.isF64())
    return DType::f64;
  if (type.isF16())
    return DType::f16;
  if (type.isBF16())
    return DType::bf16;
  if (type.isUnsignedInteger(8))
    return DType::u8;
  if (type.isSignlessInteger()) {
    switch (type.getIntOrFloatBitWidth()) {
    case 1:
      return DType::boolean;
    case 8:
      return DType::i8;
    case 16:
      return DType::i16;
    case 32:
      return DType::i32;
    case 64:
      return DType::i64;
    }
  }
  return std::nullopt;
}

static bool isSymbolic(Size size) { return size.isSymbolic(); }

RankedTensorType toMlir(MLIRContext *ctx, const TensorType &type) {
  SmallVector<int64_t, 8> shape;
  for (Size size : type.shape)
    shape.push_back(size.numberOr(ShapedType::kDynamic));
  DimsAttr dims;
  if (llvm::any_of(type.shape, isSymbolic))
    dims = DimsAttr::get(ctx, ArrayRef<Size>(type.shape.begin(), type.shape.end()));
  return RankedTensorType::get(shape, elementType(ctx, type.dtype), dims);
}

bool isSupported(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() > kMaxRank || !dtypeOf(tensor.getElementType()))
    return false;
  if (Attribute encoding = tensor.getEncoding()) {
    auto dims = dyn_cast<DimsAttr>(encoding); // in the form of toMlir: numbers agree, and some size is symbolic
    if (!dims || dims.getSizes().size() != tensor.getShape().size() || llvm::none_of(dims.getSizes(), isSymbolic))
      return false;
    for (auto [size, inType] : llvm::zip(dims.getSizes(), tensor.getShape()))
      if (size.numberOr(ShapedType::kDynamic) != inType)
        return false;
  }
  int64_t elements = 1; // a tensor whose number of elements overflows is invalid
  for (int64_t d : tensor.getShape())
    if (d != ShapedType::kDynamic &&
        (__builtin_mul_overflow(elements, std::max<int64_t>(d, 1), &elements) || elements >> 48))
      return false;
  return true;
}

TensorType fromMlir(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  auto dims = cast_if_present<DimsAttr>(tensor.getEncoding());
  Shape shape;
  if (dims)
    for (Size size : dims.getSizes())
      shape.push_back(size);
  else
    for (int64_t size : tensor.getShape())
      shape.push_back(size == ShapedType::kDynamic ? kDynamic : Size(size));
  return {*dtypeOf(tensor.getElementType()), shape};
}

// --- Attributes
// ----------------------------------------------------------------------------------------------------------
Attribute toMlirAttr(MLIRContext *ctx, const op::Attr &attr) {
  struct Convert {
    MLIRContext *ctx;
    Attribute operator()(std::monostate) { return {}; }
    Attribute operator()(bool v) { return BoolAttr::get(ctx, v); }
    Attribute operator()(int64_t v) { return IntegerAttr::get(IntegerType::get(ctx, 64), v); }
    Attribute operator()(Size v) { return sizeAttr(ctx, v); }
    Attribute operator()(double v) { return FloatAttr::get(Float64Type::get(ctx), v); }
    Attribute operator()(DType v) { return TypeAttr::get(elementType(ctx, v)); }
    Attribute operator()(const std::string &v) { return StringAttr::get(ctx, v); }
    Attribute operator()(const op::Ints &v) { return DenseI64ArrayAttr::get(ctx, v); }
    Attribute operator()(const op::Sizes &v) {
      if (llvm::all_of(v, [](Size size) { return size.isNumber(); }))
        return DenseI64ArrayAttr::get(ctx, op::numbersOf(v));
      return DimsAttr::get(ctx, v);
    }
  };
  return std::visit(Convert{ctx}, attr);
}

/// False if the attribute is not of that kind, or is a number that is no valid size.
bool fromMlirAttr(Attribute attr, op::AttrKind kind, op::Attr &out) {
  switch (kind) {
  case op::AttrKind::Bool:
    if (auto a = dyn_cast<BoolAttr>(attr))
      return out = a.getValue(), true;
    return false;
  case op::AttrKind::Int:
    if (auto a = dyn_cast<IntegerAttr>(attr); a && a.getType().isSignlessInteger(64))
      return out = a.getInt(), true;
    return false;
  case op::AttrKind::Size:
    if (!isSize(attr))
      return false;
    return out = sizeOf(attr), true;
  case op::AttrKind::Float:
    if (auto a = dyn_cast<FloatAttr>(attr))
      return out = a.getValueAsDouble(), true;
    return false;
  case op::AttrKind::Type:
    if (auto a = dyn_cast<TypeAttr>(attr))
      if (std::optional<DType> type = dtypeOf(a.getValue()))
        return out = *type, true;
    return false;
  case op::AttrKind::String:
    if (auto a = dyn_cast<StringAttr>(attr))
      return out = a.getValue().str(), true;
    return false;
  case op::AttrKind::Ints:
    if (auto a = dyn_cast<DenseI64ArrayAttr>(attr))
      return out = op::Ints(a.asArrayRef().begin(), a.asArrayRef().end()), true;
    return false;
  case op::AttrKind::Sizes: {
    if (auto a = dyn_cast<DimsAttr>(attr))
      return out = op::Sizes(a.getSizes().begin(), a.getSizes().end()), true;
    auto a = dyn_cast<DenseI64ArrayAttr>(attr);
    // INT64_MIN stands for an index before the beginning, as the end of a slice that runs backward.
    if (!a || llvm::any_of(a.asArrayRef(), [](int64_t n) { return n < Size::kLeast && n != INT64_MIN; }))
      return false;
    op::Sizes sizes;
    for (int64_t n : a.asArrayRef())
      sizes.push_back(Size::clamped(n));
    return out = std::move(sizes), true;
  }
  }
  return false;
}

op::Attrs attrsOf(Operation *op, const op::OpInfo &info) {
  op::Attrs attrs(info.attrs.size());
  ArrayRef<StringAttr> names = op->getName().getAttributeNames();
  for (size_t i = 0; i < attrs.size(); ++i) {
    attrs[i] = info.attrs[i].defaultValue;
    if (Attribute attr = op->getDiscardableAttr(names[i]))
      fromMlirAttr(attr, info.attrs[i].kind, attrs[i]);
  }
  return attrs;
}

// --- Building
// ---------------------------------------------------------------------------------------------------------------
Operation *createOp(OpBuilder &b, Location loc, const op::OpInfo &info, ValueRange inputs, const op::Attrs &attrs) {
  MLIRContext *ctx = b.getContext();
  SmallVector<TensorType, 4> operands;
  for (Value v : inputs)
    operands.push_back(fromMlir(v.getType()));
  op::Attrs complete;
  const op::Attrs *all = &attrs;
  if (attrs.size() != info.attrs.size() || llvm::any_of(attrs, [](const op::Attr &a) { return a.index() == 0; })) {
    complete = attrs;
    [[maybe_unused]] std::string error = op::completeAttrs(info, complete);
    assert(error.empty() && "createOp: wrong attributes");
    all = &complete;
  }
  op::Inferred inferred = info.infer(info, {operands.data(), operands.size()}, *all);
  assert(inferred && "createOp: operands that the op does not accept");

  auto *dialect = static_cast<TresselDialect *>(ctx->getLoadedDialect(TresselDialect::getDialectNamespace()));
  assert(dialect && "the graph dialect is loaded");
  OperationState state(loc, dialect->nameOf(info));
  state.addOperands(inputs);
  for (const TensorType &t : inferred.types) {
    // Most results have the type of an operand. Reusing it saves the lookup of a uniqued type, a large part of the cost
    // of tracing an op.
    auto same = llvm::find(operands, t);
    state.types.push_back(same != operands.end() ? inputs[same - operands.begin()].getType() : toMlir(ctx, t));
  }
  ArrayRef<StringAttr> names = state.name.getAttributeNames();
  for (size_t i = 0; i < all->size(); ++i)
    if ((*all)[i] != info.attrs[i].defaultValue)
      state.attributes.append(names[i], toMlirAttr(ctx, (*all)[i]));
  return b.create(state);
}

std::vector<op::Emitter::Ref> BuilderEmitter::emit(const op::OpInfo &info, std::span<const Ref> inputs,
                                                   const op::Attrs &attrs) {
  SmallVector<Value> values;
  for (Ref ref : inputs)
    values.push_back(value(ref));
  std::vector<Ref> refs;
  for (Value v : createOp(b_, loc_, info, values, attrs)->getResults())
    refs.push_back(v.getAsOpaquePointer());
  return refs;
}
op::Emitter::Ref BuilderEmitter::constant(double number, DType type) {
  Type element = elementType(b_.getContext(), type);
  auto tensor = RankedTensorType::get({}, element);
  Attribute scalar = isFloat(type) ? Attribute(b_.getFloatAttr(element, number))
                                   : Attribute(b_.getIntegerAttr(element, static_cast<int64_t>(number)));
  auto dense = DenseElementsAttr::get(tensor, scalar);
  std::optional<op::HostTensor> host = elementsValue(dense);
  return createConstant(b_, loc_, *host).getAsOpaquePointer();
}
op::Emitter::Ref BuilderEmitter::constant(const op::HostTensor &host) {
  return createConstant(b_, loc_, host).getAsOpaquePointer();
}

SmallVector<Value> buildDecomposition(OpBuilder &b, Operation *op) {
  const op::OpInfo &info = *infoOf(op);
  BuilderEmitter emitter(b, op->getLoc());
  std::vector<op::Emitter::Ref> inputs;
  for (Value v : op->getOperands())
    inputs.push_back(v.getAsOpaquePointer());
  SmallVector<Value> results;
  for (op::Emitter::Ref ref : info.decompose(info, emitter, inputs, attrsOf(op, info)))
    results.push_back(BuilderEmitter::value(ref));
  return results;
}

// --- Symbols
// ---------------------------------------------------------------------------------------------------------------
std::vector<Size> symbolsOf(Operation *op) {
  std::vector<Size> symbols;
  llvm::DenseSet<Attribute> seen;
  auto note = [&](Attribute attr) {
    if (!attr || !seen.insert(attr).second)
      return;
    if (auto size = dyn_cast<SizeAttr>(attr))
      dim::collectSymbols(size.getValue(), symbols);
    else if (auto dims = dyn_cast<DimsAttr>(attr))
      for (Size size : dims.getSizes())
        dim::collectSymbols(size, symbols);
  };
  auto noteType = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      note(tensor.getEncoding());
  };
  op->walk([&](Operation *inner) {
    for (Type type : inner->getOperandTypes())
      noteType(type);
    for (Type type : inner->getResultTypes())
      noteType(type);
    for (Region &region : inner->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          noteType(type);
    for (NamedAttribute attr : inner->getAttrs())
      note(attr.getValue());
  });
  llvm::sort(symbols, [](Size a, Size b) { return dim::spell(a) < dim::spell(b); });
  return symbols;
}

LogicalResult verifySymbols(Operation *op) {
  std::vector<Size> symbols = symbolsOf(op);
  for (size_t i = 1; i < symbols.size(); ++i)
    if (dim::symbolName(symbols[i - 1]) == dim::symbolName(symbols[i]))
      return op->emitError("two dimensions are called '")
             << dim::symbolName(symbols[i]) << "' and have different bounds: " << dim::spell(symbols[i - 1]) << " and "
             << dim::spell(symbols[i]);
  return success();
}

// --- Locations
// -----------------------------------------------------------------------------------------------------------------
FileLine fileLineOf(Location loc) {
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    return {file.getFilename().str(), file.getLine()};
  if (auto name = dyn_cast<NameLoc>(loc))
    return fileLineOf(name.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    // The callee may be a line of a library layer; the caller is the user's, which is preferred.
    FileLine caller = fileLineOf(call.getCaller());
    return caller.file.empty() ? fileLineOf(call.getCallee()) : caller;
  }
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (FileLine found = fileLineOf(part); !found.file.empty())
        return found;
  return {};
}

} // namespace tressel::graph
