// The dialect and its constant.
#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Structure.h"
#include "ir/graph/TableOp.h"
#include "ir/op/CustomOp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "ir/graph/Constant.h.inc"

#include "ir/graph/GraphDialect.cpp.inc"

using namespace mlir;

namespace tressel::graph {

void TresselDialect::initialize() {
  addOperations<ConstantOp>();
  registerAttributes();
  for (const op::OpInfo *info : op::allOps())
    addOp(*info);
  for (const op::OpInfo *info : op::customOps())
    addOp(*info);
  registerStructureOps(*this);
  registerControlOps(*this);
  registerMeshOps(*this);
}

OperationName TresselDialect::addOp(const op::OpInfo &info) {
  registerTableOp(*this, info);
  return names.try_emplace(&info, OperationName(("tressel." + Twine(info.name)).str(), getContext())).first->second;
}

Operation *TresselDialect::materializeConstant(OpBuilder &b, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(b, loc, type, elements);
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantOp::verify() {
  if (!isSupported(getType()) || !getType().hasStaticShape())
    return emitOpError("(C1) needs a static tensor of a supported type, not ") << getType();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(getValue())) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    int64_t bytes = fromMlir(getType()).bytes();
    if (!blob)
      return emitOpError("(C2) the blob '") << resource.getRawHandle().getKey() << "' is not in the file";
    if (static_cast<int64_t>(blob->getData().size()) != bytes)
      return emitOpError("(C2) the blob has ") << blob->getData().size() << " bytes, the type needs " << bytes;
  } else if (!isa<DenseElementsAttr>(getValue())) {
    return emitOpError("(C3) the value must be dense, a splat or a blob");
  }
  return success();
}

void registerDialects(DialectRegistry &registry) { registry.insert<TresselDialect, func::FuncDialect>(); }

std::optional<op::HostTensor> elementsValue(Attribute value) {
  auto elements = dyn_cast_if_present<ElementsAttr>(value);
  if (!elements || !isSupported(elements.getType()) || !elements.getShapedType().hasStaticShape())
    return std::nullopt;
  op::HostTensor result = op::HostTensor::allocate(fromMlir(elements.getType()));
  size_t bytes = static_cast<size_t>(result.type.bytes());
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || blob->getData().size() != bytes)
      return std::nullopt;
    std::memcpy(result.data.get(), blob->getData().data(), bytes);
    return result;
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return std::nullopt;
  if (result.type.dtype == DType::boolean) {
    bool *out = result.as<bool>();
    for (bool b : dense.getValues<bool>())
      *out++ = b;
    return result;
  }
  ArrayRef<char> raw = dense.getRawData();
  size_t element = static_cast<size_t>(sizeOf(result.type.dtype));
  if (!dense.isSplat()) {
    if (bytes)
      std::memcpy(result.data.get(), raw.data(), bytes);
    return result;
  }
  for (size_t at = 0; at < bytes; at += element)
    std::memcpy(result.data.get() + at, raw.data(), element);
  return result;
}

/// A new blob name. MLIR resolves conflicts by a counter that starts from 1 each time, which takes quadratic time in
/// the number of constants.
static std::string freshBlobName(MLIRContext *ctx) {
  size_t count = 0;
  DenseResourceElementsHandle::getManagerInterface(ctx).getBlobManager().getBlobMap(
      [&](const auto &blobs) { count = blobs.size(); });
  return "tensor_" + std::to_string(count);
}

/// `owner`, if given, keeps the bytes alive, so that they are not copied.
static ElementsAttr makeElements(MLIRContext *ctx, const TensorType &type, std::span<const std::byte> bytes,
                                 std::shared_ptr<std::byte[]> owner = nullptr) {
  RankedTensorType mlirType = toMlir(ctx, type);
  ArrayRef<char> raw(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  size_t element = static_cast<size_t>(sizeOf(type.dtype));
  bool splat = !bytes.empty() && std::memcmp(raw.data(), raw.data() + element, raw.size() - element) == 0;
  constexpr size_t kMaxInlineBytes = 256;
  if (!splat && raw.size() > kMaxInlineBytes) {
    AsmResourceBlob blob =
        owner ? AsmResourceBlob(raw, 64, [owner](void *, size_t, size_t) {}, /*dataIsMutable=*/false)
              : HeapAsmResourceBlob::allocateAndCopyWithAlign(raw, 64, /*dataIsMutable=*/false);
    return DenseResourceElementsAttr::get(mlirType, freshBlobName(ctx), std::move(blob));
  }
  if (splat)
    raw = raw.take_front(element);
  if (type.dtype == DType::boolean) {
    SmallVector<bool> values;
    for (char c : raw)
      values.push_back(c != 0);
    return DenseElementsAttr::get(mlirType, ArrayRef<bool>(values));
  }
  return DenseElementsAttr::getFromRawBuffer(mlirType, raw);
}

ElementsAttr elementsAttr(MLIRContext *ctx, const op::HostTensor &tensor) {
  return makeElements(ctx, tensor.type, {tensor.data.get(), static_cast<size_t>(tensor.type.bytes())}, tensor.data);
}

Value createConstant(OpBuilder &b, Location loc, const TensorType &type, std::span<const std::byte> bytes) {
  assert(static_cast<int64_t>(bytes.size()) == type.bytes() && "a constant's bytes are those of its type");
  return ConstantOp::create(b, loc, toMlir(b.getContext(), type), makeElements(b.getContext(), type, bytes));
}

Value createConstant(OpBuilder &b, Location loc, const op::HostTensor &tensor) {
  return ConstantOp::create(b, loc, toMlir(b.getContext(), tensor.type), elementsAttr(b.getContext(), tensor));
}

std::optional<op::HostTensor> constantValue(Value v) {
  auto constant = v.getDefiningOp<ConstantOp>();
  return constant ? elementsValue(constant.getValue()) : std::nullopt;
}

} // namespace tressel::graph

#define GET_OP_CLASSES
#include "ir/graph/Constant.cpp.inc"
