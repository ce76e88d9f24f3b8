#include "frontend/stablehlo/OpImporter.h"

#include "ir/graph/TableOp.h"
#include "ir/op/Infer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Half.h"

#include <algorithm>
#include <charconv>

namespace tressel::stablehlo {

TensorType typeOf(mlir::Value v) { return graph::fromMlir(v.getType()); }

/// The width of an unsigned integer type that i64 represents; 0 for other types.
static unsigned unsignedBits(mlir::Type source) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(source);
  mlir::Type element = tensor ? tensor.getElementType() : mlir::Type();
  return element && (element.isUnsignedInteger(16) || element.isUnsignedInteger(32)) ? element.getIntOrFloatBitWidth()
                                                                                     : 0;
}
mlir::Type graphType(mlir::Type source) {
  if (!unsignedBits(source))
    return source;
  return llvm::cast<mlir::RankedTensorType>(source).clone(mlir::IntegerType::get(source.getContext(), 64));
}

OpImporter::OpImporter(ImportState &state, mlir::Operation *op)
    : state_(state), op_(op), properties_(op->getAttrDictionary()) {
  // `<{...}>` of an op that is not registered is kept apart from `{...}`.
  if (auto own = llvm::dyn_cast_or_null<mlir::DictionaryAttr>(op->getPropertiesAsAttribute())) {
    mlir::NamedAttrList all(properties_);
    for (mlir::NamedAttribute attr : own)
      all.set(attr.getName(), attr.getValue());
    properties_ = all.getDictionary(op->getContext());
  }
}

// --- Errors ---------------------------------------------------------------------------------------------------------

std::string OpImporter::where() const {
  graph::FileLine at = graph::fileLineOf(op_->getLoc());
  return at.file.empty() ? state_.path : at.file + ":" + std::to_string(at.line);
}
void OpImporter::fail(const std::string &message) const { throw InputError(where() + ": " + name() + ": " + message); }
void OpImporter::unsupported(const std::string &why) const { throw OpUnsupported{why}; }

// --- Operands and results -------------------------------------------------------------------------------------------

mlir::Value OpImporter::in(int i) const {
  if (i >= numInputs())
    fail("operand " + std::to_string(i) + " is missing");
  return state_.values.lookup(op_->getOperand(static_cast<unsigned>(i)));
}
std::vector<mlir::Value> OpImporter::inputs(int first, int count) const {
  std::vector<mlir::Value> values;
  for (int i = first; i < first + count; ++i)
    values.push_back(in(i));
  return values;
}
void OpImporter::wantInputs(int count) const {
  if (numInputs() != count)
    fail("has " + std::to_string(numInputs()) + " operands instead of " + std::to_string(count));
}
TensorType OpImporter::resultType(int i) const {
  if (i >= numResults())
    fail("result " + std::to_string(i) + " is missing");
  return graph::fromMlir(graphType(op_->getResult(static_cast<unsigned>(i)).getType()));
}
void OpImporter::out(int i, mlir::Value value) {
  if (!(typeOf(value) == resultType(i)))
    fail("result " + std::to_string(i) + " is declared as " + resultType(i).str() + ", but is " + typeOf(value).str());
  mlir::Value result = op_->getResult(static_cast<unsigned>(i));
  const unsigned bits = unsignedBits(result.getType());
  if (bits)
    value = emit("bitwise_and", {value, scalar(i64, static_cast<double>((int64_t(1) << bits) - 1))});
  state_.values[result] = value;
}
mlir::Region &OpImporter::region(int i) const {
  auto at = static_cast<unsigned>(i);
  if (at >= op_->getNumRegions() || !op_->getRegion(at).hasOneBlock() ||
      !op_->getRegion(at).front().mightHaveTerminator())
    fail("region " + std::to_string(i) + " is missing, or has no single block");
  return op_->getRegion(at);
}

// --- Attributes -----------------------------------------------------------------------------------------------------

mlir::Attribute OpImporter::attribute(const char *name) {
  read_.insert(name);
  return properties_.get(name);
}

std::optional<Ints> OpImporter::ints(const char *name) {
  mlir::Attribute attr = attribute(name);
  if (!attr)
    return {};
  if (auto array = llvm::dyn_cast<mlir::DenseI64ArrayAttr>(attr))
    return Ints(array.asArrayRef().begin(), array.asArrayRef().end());
  if (auto array = llvm::dyn_cast<mlir::DenseBoolArrayAttr>(attr))
    return Ints(array.asArrayRef().begin(), array.asArrayRef().end());
  if (auto dense = llvm::dyn_cast<mlir::DenseIntElementsAttr>(attr)) {
    if (dense.getNumElements() > 4 * kMaxRank)
      fail("attribute '" + std::string(name) + "' has too many elements");
    Ints values;
    for (const llvm::APInt &v : dense.getValues<llvm::APInt>())
      values.push_back(v.getBitWidth() == 1 ? v.getZExtValue() : v.getSExtValue());
    return values;
  }
  fail("attribute '" + std::string(name) + "' must be a list of integers");
}

Ints OpImporter::intsPerDim(const char *name, int rank, int64_t fallback) {
  Ints values = ints(name).value_or(Ints(static_cast<size_t>(rank), fallback));
  if (values.size() != static_cast<size_t>(rank))
    fail("attribute '" + std::string(name) + "' has " + std::to_string(values.size()) + " entries instead of " +
         std::to_string(rank));
  return values;
}

int64_t OpImporter::integer(const char *name, std::optional<int64_t> fallback) {
  mlir::Attribute attr = attribute(name);
  if (auto value = llvm::dyn_cast_or_null<mlir::IntegerAttr>(attr))
    return value.getType().isInteger(1) ? value.getValue().getZExtValue() : value.getValue().getSExtValue();
  if (attr || !fallback)
    fail("attribute '" + std::string(name) + (attr ? "' must be an integer" : "' is missing"));
  return *fallback;
}

std::string OpImporter::word(const char *name, std::optional<std::string> fallback) {
  mlir::Attribute attr = attribute(name);
  if (auto opaque = llvm::dyn_cast_or_null<mlir::OpaqueAttr>(attr))
    return opaque.getAttrData().rsplit(' ').second.str();
  if (attr || !fallback)
    fail("attribute '" + std::string(name) + (attr ? "' must be a #stablehlo<...>" : "' is missing"));
  return *fallback;
}

std::string OpImporter::record(const char *name) {
  auto opaque = llvm::dyn_cast_or_null<mlir::OpaqueAttr>(attribute(name));
  llvm::StringRef text = opaque ? opaque.getAttrData() : llvm::StringRef();
  if (!text.consume_back(">") || !text.contains('<'))
    fail("attribute '" + std::string(name) + "' must be a #stablehlo record");
  return text.split('<').second.str();
}

std::string OpImporter::symbol(const char *name) {
  auto symbol = llvm::dyn_cast_or_null<mlir::FlatSymbolRefAttr>(attribute(name));
  if (!symbol)
    fail("attribute '" + std::string(name) + "' must name a function");
  return symbol.getValue().str();
}

std::string OpImporter::text(const char *name) {
  auto text = llvm::dyn_cast_or_null<mlir::StringAttr>(attribute(name));
  if (!text)
    fail("attribute '" + std::string(name) + "' must be a text");
  return text.getValue().str();
}

void OpImporter::checkAllRead() const {
  for (mlir::NamedAttribute attr : properties_) {
    llvm::StringRef name = attr.getName().getValue();
    // Attributes with a dialect prefix (mhlo.sharding, for one) do not change the result.
    if (!name.contains('.') && !read_.contains(name.str()))
      unsupported("attribute '" + name.str() + "'");
  }
}

/// What follows `key =`; nothing if the key is absent.
static std::optional<llvm::StringRef> valueIn(std::string_view record, std::string_view key) {
  for (llvm::StringRef rest = record; !rest.empty();) {
    size_t at = rest.find(key);
    if (at == llvm::StringRef::npos)
      return {};
    llvm::StringRef after = rest.drop_front(at + key.size());
    bool whole = at == 0 || rest[at - 1] == ' ' || rest[at - 1] == ',';
    if (after = after.ltrim(); whole && after.consume_front("="))
      return after.ltrim();
    rest = after;
  }
  return {};
}

Ints listIn(std::string_view record, std::string_view key) {
  Ints values;
  auto text = valueIn(record, key);
  if (!text || !text->consume_front("["))
    return values;
  for (llvm::StringRef rest = text->take_until([](char c) { return c == ']'; }); !rest.empty();) {
    auto [item, tail] = rest.split(',');
    int64_t value = -1; // no valid dimension
    (void)item.trim().getAsInteger(10, value);
    values.push_back(value);
    rest = tail;
  }
  return values;
}

std::optional<int64_t> integerIn(std::string_view record, std::string_view key) {
  auto text = valueIn(record, key);
  int64_t value = 0;
  if (!text || text->take_while([](char c) { return c == '-' || (c >= '0' && c <= '9'); }).getAsInteger(10, value))
    return {};
  return value;
}

// --- Emission -------------------------------------------------------------------------------------------------------

std::vector<mlir::Value> OpImporter::emitAll(std::string_view name, const std::vector<mlir::Value> &inputs,
                                             const NamedAttrs &attrs) {
  const op::OpInfo *info = op::findOp(name);
  if (!info)
    unsupported("needs op '" + std::string(name) + "'");
  op::Attrs values(info->attrs.size());
  for (const auto &[key, value] : attrs) {
    int i = info->attrIndex(key);
    if (i < 0)
      throw InternalError("the StableHLO importer gives op '" + std::string(name) + "' an attribute '" +
                          std::string(key) + "', which it does not have");
    values[static_cast<size_t>(i)] = value;
  }
  if (std::string error = op::completeAttrs(*info, values); !error.empty())
    throw InternalError("the StableHLO importer emits op '" + std::string(name) + "': " + error);
  std::vector<TensorType> types;
  for (mlir::Value v : inputs)
    types.push_back(typeOf(v));
  op::Inferred inferred = op::inferTypes(*info, types, values);
  if (!inferred)
    fail(inferred.error);
  for (const TensorType &type : inferred.types)
    if (!op::fitsMemory(type.shape))
      fail("a result of type " + type.str() + " is larger than any memory");

  mlir::Operation *made = graph::createOp(state_.builder, op_->getLoc(), *info, inputs, values);
  llvm::SmallVector<mlir::Value> folded;
  if (mlir::succeeded(state_.builder.tryFold(made, folded)) && !folded.empty()) {
    made->erase();
    return {folded.begin(), folded.end()};
  }
  return {made->result_begin(), made->result_end()};
}

mlir::Value OpImporter::constant(const op::HostTensor &tensor) {
  return graph::createConstant(state_.builder, op_->getLoc(), tensor);
}

mlir::Value OpImporter::scalar(DType dtype, double value) {
  // `full` folds to a constant.
  return emit("full", {}, {{"shape", Ints{}}, {"value", value}, {"dtype", dtype}});
}

std::optional<double> knownScalar(mlir::Value v) {
  std::optional<op::HostTensor> t = graph::constantValue(v);
  if (!t || t->type.shape.numElements() != 1)
    return {};
  switch (t->type.dtype) {
  case DType::f32:
    return *t->as<float>();
  case DType::f64:
    return *t->as<double>();
  case DType::f16:
    return halfToFloat(*t->as<uint16_t>());
  case DType::bf16:
    return bfloatToFloat(*t->as<uint16_t>());
  case DType::i8:
    return *t->as<int8_t>();
  case DType::i16:
    return *t->as<int16_t>();
  case DType::i32:
    return *t->as<int32_t>();
  case DType::i64:
    return static_cast<double>(*t->as<int64_t>());
  case DType::u8:
  case DType::boolean:
    return *t->as<uint8_t>();
  }
  return {};
}

mlir::Value OpImporter::cast(mlir::Value v, DType to) {
  return typeOf(v).dtype == to ? v : emit("cast", {v}, {{"dtype", to}});
}

mlir::Value OpImporter::reshape(mlir::Value v, const Shape &shape) {
  return typeOf(v).shape == shape ? v : emit("reshape", {v}, {{"shape", Ints(shape.begin(), shape.end())}});
}

mlir::Value OpImporter::transpose(mlir::Value v, const Ints &permutation) {
  bool identity = true;
  for (size_t i = 0; i < permutation.size(); ++i)
    identity &= permutation[i] == static_cast<int64_t>(i);
  return identity ? v : emit("transpose", {v}, {{"permutation", permutation}});
}

mlir::Value OpImporter::broadcastTo(mlir::Value v, const Shape &shape) {
  return typeOf(v).shape == shape ? v : emit("broadcast_to", {v}, {{"shape", Ints(shape.begin(), shape.end())}});
}

mlir::Value OpImporter::slice(mlir::Value v, const Ints &starts, const Ints &limits, const Ints &strides) {
  Shape shape = typeOf(v).shape;
  bool all = true;
  for (int i = 0; i < shape.rank(); ++i) {
    auto at = static_cast<size_t>(i);
    all &= starts[at] == 0 && limits[at] == shape[i] && (strides.empty() || strides[at] == 1);
  }
  return all ? v : emit("slice", {v}, {{"starts", starts}, {"limits", limits}, {"strides", strides}});
}

void OpImporter::sameElementType(mlir::Value a, mlir::Value b) const {
  if (typeOf(a).dtype != typeOf(b).dtype)
    fail("operands have different element types: " + typeOf(a).str() + " and " + typeOf(b).str());
}

mlir::Value OpImporter::pad(mlir::Value v, const Ints &low, const Ints &high, const Ints &interior, mlir::Value fill) {
  constexpr int64_t limit = int64_t(1) << 40;
  for (const Ints *list : {&low, &high, &interior})
    for (int64_t p : *list)
      if (p > limit || p < (list == &interior ? 0 : -limit))
        fail("padding of " + std::to_string(p) + " elements");
  auto padWith = [&](mlir::Value x, const Ints &before, const Ints &after, double value) {
    bool nothing = std::ranges::all_of(before, [](int64_t p) { return p == 0; }) &&
                   std::ranges::all_of(after, [](int64_t p) { return p == 0; });
    return nothing ? x : emit("pad", {x}, {{"low", before}, {"high", after}, {"value", value}});
  };
  auto padAll = [&](mlir::Value x, double value) {
    // Pads between neighbours: a new innermost dimension per element, padded and merged.
    for (size_t d = 0; d < interior.size(); ++d) {
      Shape shape = typeOf(x).shape;
      const int64_t size = shape.extent(static_cast<int>(d)), step = interior[d] + 1;
      if (interior[d] == 0 || size <= 1)
        continue;
      if (shape.rank() == kMaxRank)
        unsupported("interior padding of a tensor of " + std::to_string(kMaxRank) + " dimensions");
      Shape split;
      for (int i = 0; i < shape.rank(); ++i) {
        split.push_back(shape[i]);
        if (i == static_cast<int>(d))
          split.push_back(1);
      }
      Ints none(split.size(), 0), after(split.size(), 0);
      after[d + 1] = interior[d];
      x = padWith(reshape(x, split), none, after, value);
      shape[static_cast<int>(d)] = size * step;
      Ints limits(shape.begin(), shape.end());
      limits[d] -= interior[d];
      x = slice(reshape(x, shape), Ints(shape.size(), 0), limits);
    }
    Ints before = low, after = high, starts = low, limits;
    for (size_t d = 0; d < low.size(); ++d) {
      const int64_t size = typeOf(x).shape.extent(static_cast<int>(d));
      before[d] = std::max<int64_t>(low[d], 0);
      after[d] = std::max<int64_t>(high[d], 0);
      starts[d] = std::max<int64_t>(-low[d], 0);
      limits.push_back(size + before[d] + high[d]);
      if (limits[d] < starts[d])
        fail("cuts off more than there is of dimension " + std::to_string(d));
    }
    return slice(padWith(x, before, after, value), starts, limits);
  };
  std::optional<double> known = knownScalar(fill);
  if (known && typeOf(fill).dtype != DType::i64)
    return padAll(v, *known);
  // A fill value that is not known at import: pad with 0, then select it where a mask, padded alike, is false.
  TensorType type = typeOf(v);
  mlir::Value mask =
      emit("full", {}, {{"shape", Ints(type.shape.begin(), type.shape.end())}, {"value", 1.0}, {"dtype", bool_}});
  return emit("where", {padAll(mask, 0), padAll(v, 0), fill});
}

} // namespace tressel::stablehlo
