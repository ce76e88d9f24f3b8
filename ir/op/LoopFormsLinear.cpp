// Loop forms of contractions, convolutions and pooling.
#include "ir/op/Infer.h"
#include "ir/op/TableSupport.h"

#include <limits>

namespace tressel::op {

/// Operand 0 times operand 1, in the result's accumulator type.
static ScalarProgram product(std::span<const TensorType> operands, DType result) {
  ScalarRecorder recorder;
  std::vector<Sym> values;
  for (int i = 0; i < 2; ++i) {
    ScalarNode node{ScalarOp::Operand, operands[static_cast<size_t>(i)].dtype};
    node.i = i;
    values.push_back(Sym(&recorder, recorder.add(node)).to(accumulatorType(result)));
  }
  recorder.program.result = (values[0] * values[1]).node;
  return std::move(recorder.program);
}

static IndexExpr at(int dim, Size coef = 1) { return {{{dim, coef}}}; }

std::optional<LoopForm> loopFormMatmul(const OpInfo &op, std::span<const TensorType> operands,
                                       std::span<const TensorType> results, const Attrs &) {
  const Shape &a = operands[0].shape, &b = operands[1].shape, &result = results.front().shape;
  LoopForm loop;
  loop.domain = {result.begin(), result.end()};
  loop.numParallel = result.rank();
  loop.combine = op.combine;
  Size inner = a.back() == kDynamic ? b[b.rank() == 1 ? 0 : b.rank() - 2] : a.back();
  int k = result.rank();
  loop.domain.push_back(inner);

  int rows = a.rank() > 1, columns = b.rank() > 1, batch = result.rank() - rows - columns;
  bool dynamicBroadcast = false;
  auto map = [&](const Shape &shape, IndexExpr last, std::optional<IndexExpr> beforeLast) {
    OperandMap m;
    int leading = std::max(0, shape.rank() - 2);
    for (int i = 0; i < leading; ++i) {
      int dim = batch - leading + i;
      dynamicBroadcast |= shape[i] == kDynamic && result[dim] != kDynamic;
      m.dims.push_back(shape[i] == 1 && result[dim] != 1 ? IndexExpr{} : at(dim));
    }
    if (beforeLast)
      m.dims.push_back(*beforeLast);
    m.dims.push_back(std::move(last));
    return m;
  };
  loop.operands.push_back(map(a, at(k), rows ? std::optional(at(batch)) : std::nullopt));
  loop.operands.push_back(columns ? map(b, at(batch + rows), at(k)) : map(b, at(k), std::nullopt));
  if (dynamicBroadcast)
    return std::nullopt;
  loop.body = product(operands, results.front().dtype);
  return loop;
}

/// The map of the windowed operand x: spatial dimensions at stride * output + dilation * window - low. Guarded if
/// windows may reach outside.
static OperandMap imageMap(const WindowSpec &spec, const ImageDims &dims, const Shape &x, IndexExpr channel,
                           int firstWindow) {
  OperandMap map;
  map.dims.resize(static_cast<size_t>(x.rank()));
  map.dims[0] = at(0);
  map.dims[static_cast<size_t>(dims.channels)] = std::move(channel);
  for (int i = 0; i < spec.spatial; ++i) {
    const int d = dims.space + i;
    IndexExpr &expr = map.dims[static_cast<size_t>(d)];
    expr.terms = {{d, spec.stride[i]}, {firstWindow + i, spec.dilation[i]}};
    expr.offset = -spec.low[i];
    map.guarded |= spec.leaves(i, x[d]);
  }
  return map;
}

std::optional<LoopForm> loopFormConv(const OpInfo &op, std::span<const TensorType> operands,
                                     std::span<const TensorType> results, const Attrs &attrs) {
  const Shape &w = operands[1].shape, &result = results.front().shape;
  int spatial = w.rank() - 2;
  int64_t groups = integer(attrs[4]);
  if (groups != 1 && groups != w[0])
    return std::nullopt; // feature / (features per group) is not affine
  WindowSpec spec = *windowSpec(spatial, numbersOf({w.begin() + 2, w.end()}), ints(attrs[0]), ints(attrs[1]),
                                ints(attrs[2]), ints(attrs[3]), false);
  LoopForm loop;
  loop.domain = {result.begin(), result.end()};
  loop.numParallel = result.rank();
  loop.combine = op.combine;
  int channel = result.rank(), window = channel + 1;
  loop.domain.insert(loop.domain.end(), w.begin() + 1, w.end());

  const ImageDims dims = imageDims(op, attrs, result.rank());
  IndexExpr read = at(channel);
  if (groups != 1)
    read.terms.push_back({dims.channels, w[1]});
  OperandMap x = imageMap(spec, dims, operands[0].shape, std::move(read), window), weights;
  weights.dims = {at(dims.channels), at(channel)};
  for (int i = 0; i < spatial; ++i)
    weights.dims.push_back(at(window + i));
  loop.operands = {std::move(x), std::move(weights)};
  loop.body = product(operands, results.front().dtype);
  return loop;
}

std::optional<LoopForm> loopFormConvByWeights(const OpInfo &, std::span<const TensorType> operands,
                                              std::span<const TensorType> results, const Attrs &attrs) {
  const Shape &x = operands[0].shape, &dy = operands[1].shape, &result = results.front().shape;
  const int spatial = x.rank() - 2, rank = result.rank(), batch = rank, place = batch + 1;
  const int64_t groups = integer(attrs[5]);
  if (groups != 1 && groups != result[0].number())
    return std::nullopt; // feature / (features per group) is not affine
  const WindowSpec spec =
      *windowSpec(spatial, ints(attrs[0]), ints(attrs[1]), ints(attrs[2]), ints(attrs[3]), ints(attrs[4]), false);
  LoopForm loop;
  loop.domain = {result.begin(), result.end()};
  loop.numParallel = rank;
  loop.combine = Combine::Sum;
  loop.domain.push_back(x[0]);
  OperandMap image, cotangents;
  IndexExpr channel = at(1);
  if (groups != 1)
    channel.terms.push_back({0, result[1]});
  image.dims = {at(batch), std::move(channel)};
  cotangents.dims = {at(batch), at(0)};
  for (int i = 0; i < spatial; ++i) {
    loop.domain.push_back(dy[i + 2]);
    IndexExpr read;
    read.terms = {{place + i, spec.stride[i]}, {i + 2, spec.dilation[i]}};
    read.offset = -spec.low[i];
    image.dims.push_back(std::move(read));
    image.guarded |= spec.leaves(i, x[i + 2]);
    cotangents.dims.push_back(at(place + i));
  }
  loop.operands = {std::move(image), std::move(cotangents)};
  loop.body = product(operands, results.front().dtype);
  return loop;
}

static LoopForm pooling(const OpInfo &op, const TensorType &x, const TensorType &result, const Attrs &attrs,
                        double outside) {
  int spatial = x.rank() - 2;
  const Ints &sizes = ints(attrs[0]);
  WindowSpec spec = *windowSpec(spatial, sizes, ints(attrs[1]), ints(attrs[2]), ints(attrs[3]), ints(attrs[4]), true);
  spec.ceil = std::get<bool>(attrs[static_cast<size_t>(op.attrIndex("ceil_mode"))]);
  LoopForm loop;
  loop.domain = {result.shape.begin(), result.shape.end()};
  loop.numParallel = result.rank();
  loop.combine = op.combine;
  loop.domain.insert(loop.domain.end(), sizes.begin(), sizes.end());
  const ImageDims dims = imageDims(op, attrs, x.rank());
  OperandMap map = imageMap(spec, dims, x.shape, at(dims.channels), result.rank());
  map.outside = outside;
  loop.operands = {std::move(map)};

  ScalarRecorder recorder;
  Sym value = Sym(&recorder, recorder.add({ScalarOp::Operand, x.dtype})).to(accumulatorType(result.dtype));
  recorder.program.result = value.node;
  loop.body = std::move(recorder.program);
  return loop;
}

/// The neutral element of a maximum.
static double lowest(DType type) {
  switch (type) {
  case DType::i8:
    return std::numeric_limits<int8_t>::min();
  case DType::i16:
    return std::numeric_limits<int16_t>::min();
  case DType::i32:
    return std::numeric_limits<int32_t>::min();
  case DType::i64:
    return static_cast<double>(std::numeric_limits<int64_t>::min());
  case DType::u8:
  case DType::boolean:
    return 0;
  default:
    return -std::numeric_limits<double>::infinity();
  }
}

std::optional<LoopForm> loopFormMaxPool(const OpInfo &op, std::span<const TensorType> operands,
                                        std::span<const TensorType> results, const Attrs &attrs) {
  return pooling(op, operands.front(), results.front(), attrs, lowest(operands.front().dtype));
}

std::optional<LoopForm> loopFormSumPool(const OpInfo &op, std::span<const TensorType> operands,
                                        std::span<const TensorType> results, const Attrs &attrs) {
  return pooling(op, operands.front(), results.front(), attrs, 0);
}

} // namespace tressel::op
