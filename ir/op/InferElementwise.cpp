// Type inference of elementwise ops, creations and reductions.
#include "ir/op/Infer.h"
#include "ir/op/TableSupport.h"

namespace tressel::op {

/// Rule C2 of elementwise ops; null if the operands are valid.
static const char *unsuitable(const OpInfo &op, std::span<const TensorType> operands) {
  DType type = computeType(op, operands, {});
  if (op.compute == ComputeClass::Bits)
    return isFloat(type) ? "wants integers or bools" : nullptr;
  if (op.compute != ComputeClass::Number && op.compute != ComputeClass::Integer)
    return nullptr;
  if (type == DType::boolean)
    return "wants numbers, not bools (cast them)";
  if (op.compute == ComputeClass::Integer && isFloat(type))
    return "wants integers";
  return nullptr;
}

static const DType *dtypeAttr(const OpInfo &op, const Attrs &attrs) {
  int i = op.attrIndex("dtype");
  return i < 0 ? nullptr : std::get_if<DType>(&attrs[static_cast<size_t>(i)]);
}

static DType resultType(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (!op.elementwise) // a composite of elementwise ops
    return computeType(op, operands, {});
  switch (op.elementwise->element) {
  case ElementRule::Compute: return computeType(op, operands, {});
  case ElementRule::Bool: return DType::boolean;
  case ElementRule::Attr: break;
  }
  return *dtypeAttr(op, attrs);
}

Inferred inferElementwise(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  Shape shape = operands.front().shape;
  for (const TensorType &t : operands.subspan(1)) {
    if (t.shape == shape)
      continue;
    std::optional<Shape> wider = broadcastShapes(shape, t.shape);
    if (!wider)
      return inferError(op, 1, "shapes do not broadcast", operands);
    shape = *wider;
  }
  if (const char *why = unsuitable(op, operands))
    return inferError(op, 2, why, operands);
  return inferred({resultType(op, operands, attrs), shape});
}

Inferred inferDivmod(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  Inferred result = inferElementwise(op, operands, attrs);
  if (result)
    result.types.push_back(result.types.front());
  return result;
}

/// Rule C1 of creations: the attribute `shape` as a shape.
static std::optional<Shape> shapeAttr(const OpInfo &op, const Attrs &attrs) {
  const Sizes &sizes = op::sizes(attrs[static_cast<size_t>(op.attrIndex("shape"))]);
  if (sizes.size() > static_cast<size_t>(kMaxRank))
    return std::nullopt;
  for (Size d : sizes)
    if (!isSizeAttr(d))
      return std::nullopt;
  const Shape shape{std::span<const Size>(sizes)};
  return fitsMemory(shape) ? std::optional(shape) : std::nullopt;
}

Inferred inferCreation(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  std::optional<Shape> shape = shapeAttr(op, attrs);
  if (!shape)
    return inferError(op, 1, "the shape must have at most 8 dimensions, none negative, and fit into memory", operands);
  return inferred({*dtypeAttr(op, attrs), *shape});
}

Inferred inferDimSize(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  if (!isSizeAttr(size(attrs[0])))
    return inferError(op, 1, "the size is negative", operands);
  return inferred({*dtypeAttr(op, attrs), {}});
}

Inferred inferIota(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  Inferred result = inferCreation(op, operands, attrs);
  if (result && !normalizeAxis(integer(attrs[1]), result.types.front().rank()))
    return inferError(op, 2, "axis is not a dimension of the shape", result.types);
  return result;
}

Inferred inferRandom(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  Inferred result = inferCreation(op, operands, attrs);
  if (result && (operands.front().rank() != 0 || !isInteger(operands.front().dtype)))
    return inferError(op, 2, "the seed must be one integer", operands);
  return result;
}

/// The shape without the dimensions of `mask`, or with size 1 for these.
static Shape reducedShape(const Shape &shape, uint32_t mask, bool keepdims) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!(mask >> i & 1))
      result.push_back(shape[i]);
    else if (keepdims)
      result.push_back(1);
  }
  return result;
}

static bool isEmptyOver(const Shape &shape, uint32_t mask) {
  for (int i = 0; i < shape.rank(); ++i)
    if (mask >> i & 1 && shape[i] == 0)
      return true;
  return false;
}

Inferred inferReduction(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  std::optional<uint32_t> mask = normalizeAxes(maybeInts(attrs[0]), x.rank());
  if (!mask)
    return inferError(op, 1, "an axis is not a dimension, or stands twice", operands);
  bool isExtremum = op.combine == Combine::Max || op.combine == Combine::Min;
  if (isExtremum && isEmptyOver(x.shape, *mask))
    return inferError(op, 2, "a reduced dimension is empty", operands);
  DType type = computeType(op, operands, {});
  bool widens = (op.combine == Combine::Sum || op.combine == Combine::Prod) && !isFloat(type);
  return inferred({widens ? DType::i64 : type, reducedShape(x.shape, *mask, std::get<bool>(attrs[1]))});
}

Inferred inferArgReduction(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  std::optional<int> axis = normalizeAxis(integer(attrs[0]), x.rank());
  if (!axis)
    return inferError(op, 1, "axis is not a dimension", operands);
  if (x.shape[*axis] == 0)
    return inferError(op, 2, "a reduced dimension is empty", operands);
  return inferred({DType::i64, reducedShape(x.shape, 1u << *axis, std::get<bool>(attrs[1]))});
}

} // namespace tressel::op
