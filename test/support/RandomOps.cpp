#include "test/support/RandomOps.h"
#include "ir/interpreter/Element.h"
#include "ir/interpreter/Evaluate.h"
#include "ir/op/Infer.h"
#include "test/support/Samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace tressel::test {

using namespace op;

Shape randomShape(Random &random, int minRank, const ShapeLimits &limits) {
  Shape shape;
  const auto rank = random.between(minRank, std::max(minRank, limits.maxRank));
  for (int64_t d = 0; d < rank; ++d)
    shape.push_back(random.chance(0.2) ? 1 : random.between(1, limits.maxSize));
  if (rank > 0 && random.chance(limits.zeroSize))
    shape[static_cast<int>(random.below(rank))] = 0;
  return shape;
}

namespace {

/// Sizes for spatial attributes may be left out altogether.
Ints perDimension(Random &random, int64_t count, int64_t low, int64_t high, double absent) {
  Ints values;
  if (random.chance(absent))
    return values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(random.between(low, high));
  return values;
}

/// The elements of x in another shape, one size maybe -1.
Ints reshaped(Random &random, const Shape &x) {
  Ints shape;
  int64_t left = x.numElements();
  if (left == 0)
    return Ints(x.begin(), x.end());
  for (int64_t i = random.below(4); i > 0; --i) {
    Ints divisors;
    for (int64_t d = 1; d <= left; ++d)
      if (left % d == 0)
        divisors.push_back(d);
    shape.push_back(random.pick(divisors));
    left /= shape.back();
  }
  if (left != 1 || random.chance(0.3))
    shape.push_back(left);
  if (!shape.empty() && random.chance(0.4))
    shape[static_cast<size_t>(random.below(static_cast<int64_t>(shape.size())))] = -1;
  return shape;
}

Ints broadcast(Random &random, const Shape &x) {
  Ints shape;
  for (int64_t i = random.below(3); i > 0; --i)
    shape.push_back(random.between(1, 3));
  for (int64_t d : op::numbersOf(x))
    shape.push_back(d == 1 && random.chance(0.7) ? random.between(1, 4) : d);
  return shape;
}

/// Dimensions, each at most once, some counted from the end. Often those of size 1, which can be removed.
Ints someAxes(Random &random, const Shape &x) {
  const bool units = random.chance(0.3);
  Ints axes;
  for (int d = 0; d < x.rank(); ++d)
    if (units ? x[d] == 1 : random.chance(0.5))
      axes.push_back(random.chance(0.3) ? d - x.rank() : d);
  return axes;
}

Ints permutation(Random &random, int rank) {
  Ints order;
  for (int d = 0; d < rank; ++d)
    order.insert(order.begin() + random.between(0, d), random.chance(0.2) ? d - rank : d);
  return order;
}

/// What the attribute may be, by its name where that tells more than its kind.
Attr proposeNumbers(const OpInfo &op, const AttrSpec &spec, std::span<const TensorType> operands, Random &random) {
  const std::string_view name = spec.name;
  const Shape x = operands.empty() ? Shape() : operands[0].shape;
  const int rank = x.rank();
  const bool windowed = op.family == Family::Convolution || op.family == Family::Window;
  if (spec.optional && random.chance(0.25))
    return {};
  switch (spec.kind) {
  case AttrKind::Bool: return random.chance(0.5);
  case AttrKind::Type: return static_cast<DType>(random.below(kNumDTypes));
  case AttrKind::String: return spec.defaultValue;
  case AttrKind::Float:
    if (name == "value") // halves show truncation; unsigned types have no negative ones
      return random.pick(std::vector<double>{0, 1, 2, 0.5});
    if (random.chance(0.5) && std::holds_alternative<double>(spec.defaultValue))
      return spec.defaultValue;
    return 0.05 + random.unit();
  case AttrKind::Int:
  case AttrKind::Size:
    if (name == "axis" || name == "start_axis")
      return random.between(-rank - 1, rank);
    return random.between(1, 4); // groups, depth and the like
  case AttrKind::Ints:
  case AttrKind::Sizes:
    break;
  }
  if (name == "axis")
    return someAxes(random, x);
  if (name == "permutation")
    return permutation(random, rank);
  if (name == "shape") {
    if (op.family != Family::Shape) {
      const Shape shape = randomShape(random, 0, {});
      return op::numbersOf(shape);
    }
    return random.chance(0.5) ? reshaped(random, x) : broadcast(random, x);
  }
  if (name == "sizes") { // of pieces of some dimension
    Ints values;
    for (int64_t left = rank ? random.pick(x).number() : 1; left > 0 || values.empty();) {
      values.push_back(random.between(random.chance(0.1) ? 0 : std::min<int64_t>(left, 1), left));
      left -= values.back();
    }
    return values;
  }
  const int64_t dims = windowed ? std::max(rank - 2, 0) : rank;
  if (name == "starts" || name == "limits") {
    Ints values;
    const bool reversed = random.chance(0.1); // for negative strides
    for (int64_t size : op::numbersOf(x)) {
      const bool low = (name == "starts") != reversed;
      const int64_t position = low ? random.between(0, size / 2) : random.between(size / 2, size + 1);
      values.push_back(random.chance(0.3) ? position - size : position);
    }
    return values;
  }
  if (name == "strides" && !windowed) {
    Ints values = perDimension(random, dims, 1, 2, 0.3);
    for (int64_t &v : values)
      v = random.chance(0.15) ? -v : v;
    return values;
  }
  if (name == "window")
    return perDimension(random, dims, 1, 3, 0);
  if (name == "strides" || name == "dilations")
    return perDimension(random, dims, 1, 2, 0.4);
  return perDimension(random, dims, 0, windowed ? 1 : 2, windowed ? 0.4 : 0); // paddings
}

Attr proposeAttr(const OpInfo &op, const AttrSpec &spec, std::span<const TensorType> operands, Random &random) {
  Attr attr = proposeNumbers(op, spec, operands, random);
  if (spec.kind == AttrKind::Size && std::holds_alternative<int64_t>(attr))
    return Size(std::get<int64_t>(attr));
  if (const Ints *list = std::get_if<Ints>(&attr); list && spec.kind == AttrKind::Sizes)
    return Sizes(list->begin(), list->end());
  return attr;
}

/// Another operand of an elementwise op: x with sizes of 1, or without leading dimensions, or both.
Shape broadcastingWith(Random &random, const Shape &x) {
  Shape shape;
  const int skipped = random.chance(0.3) ? static_cast<int>(random.between(0, x.rank())) : 0;
  const bool collapse = random.chance(0.5);
  for (int d = skipped; d < x.rank(); ++d)
    shape.push_back(collapse && random.chance(0.4)    ? Size(1)
                    : x[d] == 1 && random.chance(0.4) ? Size(random.between(1, 4))
                                                      : x[d]);
  return shape;
}

/// The shapes of a matrix product's second operand, or of both.
std::vector<Shape> contractionShapes(Random &random, const ShapeLimits &limits, const Shape *first) {
  Shape a = first ? *first : randomShape(random, 1, limits);
  if (a.rank() == 0)
    return {a, a};
  const Size depth = a.back();
  if (random.chance(0.2))
    return {a, Shape{depth}};
  Shape b;
  if (a.rank() > 2 && random.chance(0.4))
    for (int d = 0; d < a.rank() - 2; ++d)
      b.push_back(random.chance(0.3) ? Size(1) : a[d]);
  else if (a.rank() <= 2 && random.chance(0.3))
    b.push_back(random.between(1, 3));
  b.push_back(depth);
  b.push_back(random.between(1, limits.maxSize));
  return {a, b};
}

/// [batch, channels, spatial...], large enough for windows of 3.
Shape imageShape(Random &random) {
  Shape x{random.between(1, 2), random.between(1, 2) * 2};
  for (int64_t d = random.pick(std::vector<int64_t>{1, 2, 2, 3}); d > 0; --d)
    x.push_back(random.between(3, 6));
  return x;
}

std::vector<TensorType> proposeOperands(const OpInfo &op, DType dtype, Random &random, const ShapeLimits &limits,
                                        const TensorType *first) {
  std::vector<TensorType> types;
  auto add = [&](const Shape &shape) { types.push_back({dtype, shape}); };
  if (op.operands.empty())
    return types;
  if (op.family == Family::Random) {
    add({});
    return types;
  }
  if (op.family == Family::Contraction) {
    for (const Shape &shape : contractionShapes(random, limits, first ? &first->shape : nullptr))
      add(shape);
    return types;
  }
  const bool windowed = op.family == Family::Convolution || op.family == Family::Window;
  add(first ? first->shape : windowed ? imageShape(random) : randomShape(random, 0, limits));
  const Shape x = types[0].shape;

  if (op.operands.back().variadic) { // the same but for one size
    for (int64_t i = random.below(3); i > 0; --i) {
      Shape other = x;
      if (x.rank() > 0 && random.chance(0.8))
        other[static_cast<int>(random.below(x.rank()))] = random.between(1, limits.maxSize);
      add(other);
    }
    return types;
  }
  const int64_t style = random.below(3); // of all further operands of a composite
  for (size_t i = 1; i < op.operands.size(); ++i) {
    if (op.operands[i].optional && random.chance(0.4))
      break;
    switch (op.family) {
    case Family::Convolution: {
      Shape w{random.between(1, 2) * 2,
              random.pick(std::vector<Size>{1, 2, x.rank() > 1 ? x[1] : 1, x.rank() > 1 ? x.back() : 1})};
      for (int d = 2; d < x.rank(); ++d)
        w.push_back(random.between(1, 3));
      add(w);
      break;
    }
    case Family::Indexing: // whole numbers, of a shape of their own
      types.push_back({random.pick(std::vector<DType>{i64, i32, i8, u8}), randomShape(random, 0, {.maxRank = 2, .maxSize = 3})});
      break;
    case Family::Composite: {
      Shape shape;
      if (style == 0 && x.rank() > 1)
        shape.push_back(x[1]); // one per channel
      else
        for (int d = style == 1 ? std::max(x.rank() - 1, 0) : x.rank() / 2; d < x.rank(); ++d)
          shape.push_back(x[d]);
      add(shape);
      break;
    }
    default: add(broadcastingWith(random, x));
    }
  }
  if (op.elementwise)
    for (size_t i = 0; i < types.size(); ++i)
      if (op.elementwise->boolOperands >> i & 1 && !(first && i == 0) && random.chance(0.8))
        types[i].dtype = bool_;
  return types;
}

/// From the record's `samples`. Operands that are given stand first.
std::optional<OpCall> proposeSampled(const OpInfo &op, std::span<const TensorType> given, std::optional<DType> dtype,
                                     Random &random, const ShapeLimits &limits, int tries) {
  for (; tries > 0; --tries) {
    Sample sample(op, random, limits);
    OpCall call{&op, {given.begin(), given.end()}, {}, {}};
    if (!sample.bind(given))
      continue;
    const bool drawsOperands = !op.operands.empty() && (sample.has(op.operands[0].name) || sample.has("equation"));
    if (dtype && drawsOperands)
      sample.drawOperands(*dtype, call.operands);
    else if (dtype)
      call.operands = proposeOperands(op, *dtype, random, limits, given.empty() ? nullptr : given.data());
    for (const AttrSpec &spec : op.attrs)
      call.attrs.push_back(sample.has(spec.name) ? sample.drawAttr(spec) : proposeAttr(op, spec, call.operands, random));
    if (!completeAttrs(op, call.attrs).empty())
      continue;
    if (Inferred inferred = op.infer(op, call.operands, call.attrs)) {
      call.results = std::move(inferred.types);
      return call;
    }
  }
  return {};
}

} // namespace

std::optional<OpCall> proposeAttrs(const OpInfo &op, std::vector<TensorType> operands, Random &random, int tries) {
  if (!op.samples.empty())
    return proposeSampled(op, operands, {}, random, {}, tries);
  OpCall call{&op, std::move(operands), {}, {}};
  for (; tries > 0; --tries) {
    call.attrs.clear();
    for (const AttrSpec &spec : op.attrs)
      call.attrs.push_back(proposeAttr(op, spec, call.operands, random));
    if (!completeAttrs(op, call.attrs).empty())
      continue;
    if (Inferred inferred = op.infer(op, call.operands, call.attrs)) {
      call.results = std::move(inferred.types);
      return call;
    }
    if (op.attrs.empty())
      break; // nothing to vary
  }
  return {};
}

std::optional<OpCall> proposeCall(const OpInfo &op, DType dtype, Random &random, const ShapeLimits &limits,
                                  const TensorType *first) {
  if (!op.samples.empty())
    return proposeSampled(op, first ? std::span(first, 1) : std::span<const TensorType>(), dtype, random, limits, 40);
  for (int tries = 0; tries < 8; ++tries)
    if (auto call = proposeAttrs(op, proposeOperands(op, dtype, random, limits, first), random, 20))
      return call;
  return {};
}

Domain domainOf(const OpInfo &op, size_t index) {
  return op.domains.empty() ? Domain() : op.domains[std::min(index, op.domains.size() - 1)];
}

HostTensor randomTensor(const TensorType &type, Random &random, Domain domain) {
  HostTensor tensor = HostTensor::allocate(type);
  const auto low = static_cast<int64_t>(std::ceil(type.dtype == u8 ? std::max(domain.low, 0.0) : domain.low));
  const auto high = std::max(low, static_cast<int64_t>(std::floor(domain.high)));
  for (int64_t i = 0, n = type.shape.numElements(); i < n; ++i) {
    if (isFloat(type.dtype))
      interp::store(tensor, i, domain.low + (domain.high - domain.low) * random.unit());
    else if (type.dtype == bool_)
      interp::store(tensor, i, domain.low > 0 || random.chance(0.5));
    else
      interp::store(tensor, i, random.between(low, high));
  }
  return tensor;
}

HostTensor randomOperand(const OpCall &call, size_t index, Random &random, Values values) {
  const TensorType &type = call.operands[index];
  Domain domain = domainOf(*call.op, index);
  if (index < call.op->operands.size() && call.op->operands[index].name == std::string_view("indices")) {
    const Shape &x = call.operands[0].shape;
    const int attr = call.op->attrIndex("axis");
    int64_t size = std::min_element(x.begin(), x.end())->number(); // index vectors: fits everywhere
    if (attr >= 0) {
      const int64_t axis = std::get<int64_t>(call.attrs[static_cast<size_t>(attr)]);
      size = x.extent(static_cast<int>(axis < 0 ? axis + x.rank() : axis));
    }
    domain = {static_cast<double>(-size), static_cast<double>(size - 1)};
    values = Values::Domain;
  }
  if (const auto dim = placesOf(*call.op, index); dim && isInteger(type.dtype)) {
    const Shape &x = call.operands[0].shape;
    domain.high = static_cast<double>(x.extent(*dim < 0 ? *dim + x.rank() : *dim) - 1);
    values = Values::Domain;
  }
  // A negative float has no value as an unsigned integer.
  if (isFloat(type.dtype) && !call.results.empty() && call.results[0].dtype == u8)
    domain.low = std::max(domain.low, 0.0);
  HostTensor tensor = randomTensor(type, random, domain);
  for (int64_t i = 0, n = type.shape.numElements(); i < n; ++i) {
    if (values == Values::Special && isFloat(type.dtype) && random.chance(0.2))
      interp::store(tensor, i, std::numeric_limits<double>::quiet_NaN());
    if (values == Values::Wide && isInteger(type.dtype))
      interp::store(tensor, i, static_cast<int64_t>(random.bits()));
  }
  if (!wantsSorted(*call.op, index))
    return tensor;
  const std::vector<HostTensor> unordered{tensor};
  return interp::run(*findOp("sort"), unordered, {int64_t(-1), false}).outputs[0];
}

} // namespace tressel::test
