// Loop forms of elementwise ops, reductions and data movement.
#include "ir/op/Infer.h"
#include "ir/op/TableSupport.h"

namespace tressel::op {

static IndexExpr at(int dim, Size coef = 1, Size offset = 0) { return {{{dim, coef}}, offset}; }
static IndexExpr atZero() { return {}; }

static ScalarProgram loadOperand(DType from, DType to) {
  ScalarRecorder recorder;
  Sym value = Sym(&recorder, recorder.add({ScalarOp::Operand, from})).to(to);
  recorder.program.result = value.node;
  return std::move(recorder.program);
}

/// NumPy broadcasting: dimensions are aligned at the last, and those of size 1 have index 0.
static OperandMap broadcastMap(const Shape &from, const Shape &to) {
  OperandMap map;
  int offset = to.rank() - from.rank();
  for (int i = 0; i < from.rank(); ++i)
    map.dims.push_back(from[i] == 1 && to[i + offset] != 1 ? atZero() : at(i + offset));
  return map;
}

/// Whether a dynamic size may be 1 at run time while the result is larger: then no fixed map is valid.
static bool mayBroadcastAtRunTime(const Shape &from, const Shape &to) {
  int offset = to.rank() - from.rank();
  for (int i = 0; i < from.rank(); ++i)
    if (from[i] == kDynamic && to[i + offset] != kDynamic)
      return true;
  return false;
}

std::optional<LoopForm> noLoopForm(const OpInfo &, std::span<const TensorType>, std::span<const TensorType>,
                                   const Attrs &) {
  return std::nullopt;
}

std::optional<LoopForm> loopFormElementwise(const OpInfo &op, std::span<const TensorType> operands,
                                            std::span<const TensorType> results, const Attrs &attrs) {
  const Shape &shape = results.front().shape;
  LoopForm loop;
  loop.domain = sizesOf(shape);
  loop.numParallel = shape.rank();
  for (const TensorType &t : operands) {
    if (mayBroadcastAtRunTime(t.shape, shape))
      return std::nullopt;
    loop.operands.push_back(broadcastMap(t.shape, shape));
  }
  loop.body = recordElementwise(op, operands, results.front(), attrs);
  return loop;
}

std::optional<LoopForm> loopFormReduction(const OpInfo &op, std::span<const TensorType> operands,
                                          std::span<const TensorType> results, const Attrs &attrs) {
  const TensorType &x = operands.front(), &result = results.front();
  bool keepdims = std::get<bool>(attrs[1]);
  uint32_t mask = 0;
  if (const int64_t *axis = std::get_if<int64_t>(&attrs[0]))
    mask = 1u << *normalizeAxis(*axis, x.rank());
  else
    mask = *normalizeAxes(maybeInts(attrs[0]), x.rank());

  LoopForm loop;
  loop.domain = sizesOf(result.shape);
  loop.numParallel = result.rank();
  loop.combine = op.combine;
  OperandMap map;
  int kept = 0;
  Size count = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (mask >> i & 1) {
      map.dims.push_back(at(static_cast<int>(loop.domain.size())));
      loop.domain.push_back(x.shape[i]);
      count *= x.shape[i];
      kept += keepdims;
    } else {
      map.dims.push_back(at(kept++));
    }
  }
  loop.operands.push_back(std::move(map));
  bool isArg = op.combine == Combine::ArgMax || op.combine == Combine::ArgMin;
  loop.body = loadOperand(x.dtype, accumulatorType(isArg ? x.dtype : result.dtype));
  if (op.isMean)
    loop.divisor = count;
  return loop;
}

/// A loop over the result that copies from an operand.
static LoopForm movement(std::span<const TensorType> operands, const TensorType &result, OperandMap map) {
  LoopForm loop;
  loop.domain = sizesOf(result.shape);
  loop.numParallel = result.rank();
  loop.operands.push_back(std::move(map));
  loop.body = loadOperand(operands.front().dtype, result.dtype);
  return loop;
}

std::optional<LoopForm> loopFormTranspose(const OpInfo &, std::span<const TensorType> operands,
                                          std::span<const TensorType> results, const Attrs &attrs) {
  int rank = operands.front().rank();
  const Ints *permutation = maybeInts(attrs[0]);
  OperandMap map;
  map.dims.resize(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    int from = permutation ? *normalizeAxis((*permutation)[static_cast<size_t>(i)], rank) : rank - 1 - i;
    map.dims[static_cast<size_t>(from)] = at(i);
  }
  return movement(operands, results.front(), std::move(map));
}

std::optional<LoopForm> loopFormBroadcastTo(const OpInfo &, std::span<const TensorType> operands,
                                            std::span<const TensorType> results, const Attrs &) {
  const Shape &from = operands.front().shape, &to = results.front().shape;
  if (mayBroadcastAtRunTime(from, to))
    return std::nullopt;
  return movement(operands, results.front(), broadcastMap(from, to));
}

std::optional<LoopForm> loopFormSlice(const OpInfo &, std::span<const TensorType> operands,
                                      std::span<const TensorType> results, const Attrs &attrs) {
  const Shape &shape = operands.front().shape;
  const Sizes &starts = sizes(attrs[0]), &limits = sizes(attrs[1]);
  const Ints &strides = ints(attrs[2]);
  OperandMap map;
  for (int i = 0; i < shape.rank(); ++i) {
    size_t n = static_cast<size_t>(i);
    if (shape[i] == kDynamic) {
      map.dims.push_back(at(i));
      continue;
    }
    SliceRange range = sliceRange(shape[i], starts[n], limits[n], strides.empty() ? 1 : strides[n]);
    const bool single = range.count == 0 || range.count == 1;
    map.dims.push_back(at(i, single ? 1 : range.stride, range.start));
  }
  return movement(operands, results.front(), std::move(map));
}

std::optional<LoopForm> loopFormPad(const OpInfo &, std::span<const TensorType> operands,
                                    std::span<const TensorType> results, const Attrs &attrs) {
  if (std::get<std::string>(attrs[3]) != "constant")
    return std::nullopt;
  const Sizes &low = sizes(attrs[0]), &high = sizes(attrs[1]);
  OperandMap map;
  for (size_t i = 0; i < low.size(); ++i) {
    map.dims.push_back(at(static_cast<int>(i), 1, -low[i]));
    map.guarded |= low[i] != 0 || high[i] != 0;
  }
  map.outside = std::get<double>(attrs[2]);
  return movement(operands, results.front(), std::move(map));
}

std::optional<LoopForm> loopFormConcat(const OpInfo &, std::span<const TensorType> operands,
                                       std::span<const TensorType> results, const Attrs &attrs) {
  int rank = results.front().rank(), axis = *normalizeAxis(integer(attrs[0]), rank);
  for (const TensorType &t : operands)
    if (t.dtype != results.front().dtype)
      return std::nullopt; // the scalar program loads a single type: the decomposition converts
  LoopForm loop = movement(operands, results.front(), {});
  loop.operands.clear();
  loop.alternatives = operands.size() > 1;
  Size offset = 0;
  for (const TensorType &t : operands) {
    OperandMap map;
    for (int i = 0; i < rank; ++i)
      map.dims.push_back(at(i, 1, i == axis ? -offset : Size()));
    map.guarded = loop.alternatives;
    loop.operands.push_back(std::move(map));
    offset += t.shape[axis];
  }
  return loop;
}

std::optional<LoopForm> loopFormTake(const OpInfo &, std::span<const TensorType> operands,
                                     std::span<const TensorType> results, const Attrs &attrs) {
  const Shape &x = operands[0].shape, &indices = operands[1].shape;
  int axis = *normalizeAxis(integer(attrs[0]), x.rank());
  OperandMap map, indexMap;
  for (int i = 0; i < x.rank(); ++i) {
    IndexExpr expr = at(i < axis ? i : i - 1 + indices.rank());
    if (i == axis) {
      expr = atZero();
      expr.indirect = 1;
    }
    map.dims.push_back(std::move(expr));
  }
  for (int i = 0; i < indices.rank(); ++i)
    indexMap.dims.push_back(at(axis + i));
  LoopForm loop = movement(operands, results.front(), std::move(map));
  loop.operands.push_back(std::move(indexMap));
  return loop;
}

std::optional<LoopForm> loopFormTakeAlongAxis(const OpInfo &, std::span<const TensorType> operands,
                                              std::span<const TensorType> results, const Attrs &attrs) {
  const Shape &x = operands[0].shape, &indices = operands[1].shape, &result = results[0].shape;
  if (mayBroadcastAtRunTime(indices, result))
    return std::nullopt;
  int axis = *normalizeAxis(integer(attrs[0]), x.rank());
  OperandMap map = broadcastMap(x, result);
  IndexExpr lookedUp = atZero();
  lookedUp.indirect = 1;
  map.dims[static_cast<size_t>(axis)] = std::move(lookedUp);
  LoopForm loop = movement(operands, results.front(), std::move(map));
  loop.operands.push_back(broadcastMap(indices, result));
  return loop;
}

} // namespace tressel::op
