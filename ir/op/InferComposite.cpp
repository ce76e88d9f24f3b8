// Type inference of composites and creations: checks the numbered rules, and takes the types from the decomposition.
#include "ir/op/Infer.h"
#include "ir/op/TableSupport.h"
#include "tressel/runtime/Dim.h"

namespace tressel::op {

namespace {
/// Runs a decomposition on types instead of values.
class TypeEmitter final : public Emitter {
public:
  std::vector<Ref> emit(const OpInfo &op, std::span<const Ref> inputs, const Attrs &attrs) override {
    std::vector<TensorType> operands;
    for (Ref ref : inputs)
      operands.push_back(typeOf(ref));
    std::vector<Ref> refs;
    for (const TensorType &type : op.infer(op, operands, attrs).types)
      refs.push_back(add(type));
    return refs;
  }
  Ref constant(double, DType type) override { return add({type, {}}); }
  Ref constant(const HostTensor &value) override { return add(value.type); }
  TensorType typeOf(Ref value) override { return *static_cast<const TensorType *>(value); }
  Ref add(const TensorType &type) {
    types.push_back(std::make_unique<TensorType>(type));
    return types.back().get();
  }

private:
  std::vector<std::unique_ptr<TensorType>> types;
};
} // namespace

Inferred inferDecomposition(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  TypeEmitter emitter;
  std::vector<Emitter::Ref> inputs;
  for (const TensorType &type : operands)
    inputs.push_back(emitter.add(type));
  try {
    Inferred result;
    for (Emitter::Ref ref : op.decompose(op, emitter, inputs, attrs))
      result.types.push_back(emitter.typeOf(ref));
    for (const TensorType &type : result.types)
      if (!fitsMemory(type.shape))
        return inferError(op, 0, "the result does not fit into memory", operands);
    return result;
  } catch (const expr::WrongOp &wrong) {
    const std::string name = std::string(op.name) + ": "; // for a decomposition that calls its own op
    return inferError(op, 0, wrong.why.starts_with(name) ? wrong.why.substr(name.size()) : wrong.why, operands);
  }
}

static const Attr &attrOf(const OpInfo &op, const Attrs &attrs, std::string_view name) {
  return attrs[static_cast<size_t>(op.attrIndex(name))];
}

/// Rule C1 of ops with one attribute `axis`.
static std::optional<Inferred> checkOneAxis(const OpInfo &op, std::span<const TensorType> operands,
                                            const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return error;
  if (!normalizeAxis(integer(attrOf(op, attrs, "axis")), operands.front().rank()))
    return inferError(op, 1, "axis is not a dimension", operands);
  return std::nullopt;
}

// --- Reductions
// ----------------------------------------------------------------------------------------------------------
Inferred inferReductionComposite(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  std::optional<uint32_t> mask = normalizeAxes(maybeInts(attrOf(op, attrs, "axis")), x.rank());
  if (!mask)
    return inferError(op, 1, "an axis is not a dimension, or stands twice", operands);
  return inferDecomposition(op, operands, attrs);
}

Inferred inferLogsumexp(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const Shape &x = operands.front().shape;
  const uint32_t mask = normalizeAxes(maybeInts(attrs[0]), x.rank()).value_or(0);
  for (int i = 0; i < x.rank(); ++i)
    if (mask >> i & 1 && x[i] == 0)
      return inferError(op, 2, "a reduced dimension is empty", operands);
  return inferReductionComposite(op, operands, attrs);
}

// --- Shapes
// ---------------------------------------------------------------------------------------------------------------
Inferred inferFlip(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  if (!normalizeAxes(maybeInts(attrs[0]), operands.front().rank()))
    return inferError(op, 1, "an axis is not a dimension, or stands twice", operands);
  return inferred(operands.front());
}

Inferred inferRoll(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  std::optional<uint32_t> mask = normalizeAxes(&ints(attrs[1]), x.rank());
  if (!mask)
    return inferError(op, 1, "an axis is not a dimension, or stands twice", operands);
  if (sizes(attrs[0]).size() != ints(attrs[1]).size())
    return inferError(op, 2, "needs one shift per axis", operands);
  return inferred(x);
}

/// Multiplies a size by `times`; false if no memory could hold the tensor.
static bool enlarge(Shape &shape, int dim, Size times) { return multiply(shape[dim], times) && fitsMemory(shape); }

Inferred inferTile(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  const Sizes &repetitions = sizes(attrs[0]);
  if (repetitions.size() > static_cast<size_t>(kMaxRank))
    return inferError(op, 1, "the result would have more than 8 dimensions", operands);
  const int times = static_cast<int>(repetitions.size()), rank = std::max(times, x.rank());
  Shape shape;
  for (int i = 0; i < rank; ++i)
    shape.push_back(i < rank - x.rank() ? 1 : x.shape[i - (rank - x.rank())]);
  for (int i = 0; i < times; ++i) {
    const Size repeated = repetitions[static_cast<size_t>(i)];
    if (!isSizeAttr(repeated))
      return inferError(op, 1, "a repetition is negative", operands);
    if (!enlarge(shape, rank - times + i, repeated))
      return inferError(op, 1, "the result does not fit into memory", operands);
  }
  return inferDecomposition(op, operands, attrs);
}

Inferred inferRepeat(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const int64_t *axis = std::get_if<int64_t>(&attrs[1]);
  if (axis && !normalizeAxis(*axis, operands.front().rank()))
    return inferError(op, 1, "axis is not a dimension", operands);
  const Shape &x = operands.front().shape;
  Shape repeated = axis ? x : Shape{dim::numElements(x)};
  if (!isSizeAttr(size(attrs[0])) || !enlarge(repeated, axis ? *normalizeAxis(*axis, x.rank()) : 0, size(attrs[0])))
    return inferError(op, 2, "repetitions is negative, or the result does not fit into memory", operands);
  return inferDecomposition(op, operands, attrs);
}

Inferred inferStack(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (operands.empty() || operands.front().rank() == kMaxRank)
    return inferError(op, 1, "needs at least one operand, of at most 7 dimensions", operands);
  for (const TensorType &t : operands)
    if (t.shape != operands.front().shape)
      return inferError(op, 1, "shapes differ", operands);
  if (!normalizeAxis(integer(attrs[0]), operands.front().rank() + 1))
    return inferError(op, 2, "axis is not a dimension of the result", operands);
  return inferDecomposition(op, operands, attrs);
}

Inferred inferUnstack(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkOneAxis(op, operands, attrs))
    return *error;
  const TensorType &x = operands.front();
  const Size size = x.shape[*normalizeAxis(integer(attrs[0]), x.rank())];
  if (!size.isNumber() || size == 0)
    return inferError(op, 2, "the size of the dimension is not static, or 0", operands);
  if (constexpr int64_t most = 65'536; size.number() > most) // each is a value of the program
    return inferError(op, 2, "there would be more than " + std::to_string(most) + " results", operands);
  return inferDecomposition(op, operands, attrs);
}

Inferred inferMoveaxis(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const int rank = operands.front().rank();
  const Ints &source = ints(attrs[0]), &destination = ints(attrs[1]);
  if (source.size() != destination.size() || !normalizeAxes(&source, rank) || !normalizeAxes(&destination, rank))
    return inferError(op, 1, "source and destination must be equally many dimensions, none twice", operands);
  return inferDecomposition(op, operands, attrs);
}

Inferred inferSwapaxes(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const int rank = operands.front().rank();
  if (!normalizeAxis(integer(attrs[0]), rank) || !normalizeAxis(integer(attrs[1]), rank))
    return inferError(op, 1, "an axis is not a dimension", operands);
  return inferDecomposition(op, operands, attrs);
}

Inferred inferDiff(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkOneAxis(op, operands, attrs))
    return *error;
  constexpr int64_t mostTimes = 64; // each is an op
  if (integer(attrs[1]) < 0 || integer(attrs[1]) > mostTimes)
    return inferError(op, 2, "n is not in [0, 64]", operands);
  const Shape &x = operands.front().shape;
  const int axis = *normalizeAxis(integer(attrs[0]), x.rank());
  for (const TensorType &part : operands) {
    bool fits = part.dtype != DType::boolean && part.rank() == x.rank();
    for (int i = 0; fits && i < x.rank(); ++i)
      fits = i == axis || dim::equal(part.shape[i], x[i]);
    if (!fits)
      return inferError(op, 3, "x, prepend and append do not fit, or are bools", operands);
  }
  return inferDecomposition(op, operands, attrs);
}

Inferred inferDiagonal(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const TensorType &x = operands.front();
  std::optional<int> a = normalizeAxis(integer(attrs[1]), x.rank()), b = normalizeAxis(integer(attrs[2]), x.rank());
  if (!a || !b || *a == *b)
    return inferError(op, 1, "axis1 and axis2 must be two dimensions", operands);
  constexpr int64_t limit = int64_t(1) << 48;
  if (integer(attrs[0]) > limit || integer(attrs[0]) < -limit)
    return inferError(op, 2, "the offset lies beyond every matrix", operands);
  return inferDecomposition(op, operands, attrs);
}

Inferred inferTriangle(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  if (operands.front().rank() < 2)
    return inferError(op, 1, "x needs at least 2 dimensions", operands);
  return inferElementwise(op, operands, attrs);
}

Inferred inferMeshgrid(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (operands.empty() || operands.size() > static_cast<size_t>(kMaxRank))
    return inferError(op, 1, "needs 1 to 8 operands", operands);
  for (const TensorType &t : operands)
    if (t.rank() != 1)
      return inferError(op, 1, "operands must be vectors", operands);
  const auto &indexing = std::get<std::string>(attrs[0]);
  if (indexing != "xy" && indexing != "ij")
    return inferError(op, 2, "indexing is neither xy nor ij", operands);
  return inferDecomposition(op, operands, attrs);
}

// --- Values made of nothing
// -------------------------------------------------------------------------------------------------
Inferred inferEye(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  Inferred result = inferCreation(op, operands, attrs);
  if (result && result.types.front().rank() < 2)
    return inferError(op, 1, "the shape needs at least 2 dimensions", operands);
  return result;
}

Inferred inferLinspace(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  const int64_t num = integer(attrOf(op, attrs, "num"));
  TensorType result{std::get<DType>(attrOf(op, attrs, "dtype")), {num}};
  if (num < 0 || !fitsMemory(result.shape))
    return inferError(op, 1, "num is negative or too large", operands);
  if (!isFloat(result.dtype))
    return inferError(op, 2, "the element type is no float", operands);
  return inferred(result);
}

// --- Random numbers
// -----------------------------------------------------------------------------------------------------------
static bool isSeed(const TensorType &type) { return type.rank() == 0 && isInteger(type.dtype); }

Inferred inferRandomFloat(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  Inferred result = inferRandom(op, operands, attrs);
  if (result && !isFloat(result.types.front().dtype))
    return inferError(op, 3, "the element type is no float", operands);
  return result;
}

Inferred inferRandint(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  Inferred result = inferRandom(op, operands, attrs);
  if (!result)
    return result;
  const int64_t low = integer(attrOf(op, attrs, "low")), high = integer(attrOf(op, attrs, "high"));
  const DType type = result.types.front().dtype;
  const int bits = static_cast<int>(sizeOf(type)) * 8 - isSigned(type);
  const int64_t most = bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t(1) << bits) - 1;
  if (!isInteger(type) || low >= high || low < (isSigned(type) ? -most - 1 : 0) || high - 1 > most)
    return inferError(op, 3, "low < high must both fit the integer type", operands);
  return result;
}

Inferred inferBernoulli(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  if (!isSeed(operands[0]))
    return inferError(op, 1, "the seed must be one integer", operands);
  if (!isFloat(operands[1].dtype))
    return inferError(op, 2, "p must be floats", operands);
  return inferred({DType::boolean, operands[1].shape});
}

Inferred inferPermutation(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  if (!isSeed(operands[0]))
    return inferError(op, 1, "the seed must be one integer", operands);
  const Size n = size(attrs[0]);
  if (dim::bounds(n).lo < 0 || dim::bounds(n).hi >> 32)
    return inferError(op, 2, "n is negative or not below 2^32", operands);
  return inferred({DType::i64, {n}});
}

Inferred inferCategorical(const OpInfo &op, std::span<const TensorType> operands, const Attrs &attrs) {
  if (auto error = checkArity(op, operands))
    return *error;
  if (!isSeed(operands[0]))
    return inferError(op, 1, "the seed must be one integer", operands);
  std::optional<int> axis = normalizeAxis(integer(attrs[0]), operands[1].rank());
  if (!isFloat(operands[1].dtype) || !axis || operands[1].shape[*axis] == 0)
    return inferError(op, 2, "logits must be floats, and axis a dimension of them that is not empty", operands);
  return inferDecomposition(op, operands, attrs);
}

} // namespace tressel::op
