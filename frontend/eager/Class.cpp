#include "frontend/eager/Class.h"

#include "ir/op/Infer.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <bit>
#include <string>

namespace tressel::eager {
namespace {

using op::Ints;

/// Rows of up to kShortRow elements are kept on the stack between passes. Code for rows longer than kTinyRow relies on
/// whole unrolled steps.
constexpr int64_t kTinyRow = 255, kShortRow = 4096;

/// Symbols s0, s1, ... with their values.
class Symbols {
public:
  explicit Symbols(Classified &to) : to_(to) {}
  Size add(int64_t value, int64_t lo = 1, int64_t hi = dim::kMaxSize) {
    const Size s = dim::symbol("s" + std::to_string(to_.sizes.size()), lo, hi);
    to_.call.symbols.push_back(s);
    to_.sizes.push_back(value);
    return s;
  }
  /// Equal sizes share a symbol; sizes below 2 stay numbers.
  Size shared(int64_t value, bool isRow = false) {
    if (value < 2 || value > dim::kMaxSize)
      return value;
    for (size_t i = 0; i < to_.sizes.size(); ++i)
      if (to_.sizes[i] == value && !(vectors_ >> i & 1))
        return to_.call.symbols[i];
    return isRow ? addStep(value) : add(value, 2);
  }
  /// A symbol for a size of at least 2, with the bounds of the range that it is in.
  Size addStep(int64_t value) {
    return value <= kTinyRow    ? add(value, 2, kTinyRow)
           : value <= kShortRow ? add(value, kTinyRow + 1, kShortRow)
                                : add(value, kShortRow + 1);
  }
  /// The same for large sizes that are whole vectors: results of such rows may be written by non-temporal stores.
  Size sharedVectors(int64_t value) {
    if (value < 256 || value % 16 || value > dim::kMaxSize)
      return shared(value);
    for (size_t i = 0; i < to_.sizes.size(); ++i)
      if (vectors_ >> i & 1 && to_.sizes[i] == value / 16)
        return 16 * to_.call.symbols[i];
    vectors_ |= uint64_t(1) << to_.sizes.size();
    return 16 * add(value / 16, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(value / 16))));
  }

private:
  Classified &to_;
  uint64_t vectors_ = 0; ///< bit i: symbol i counts vectors, not elements
};

/// The result's dimensions without those of size 1; neighbours that all operands read alike are merged.
struct Merged {
  std::vector<int64_t> sizes;
  std::vector<uint32_t> readers; ///< bit i: operand i has the dimension
};

Merged merge(std::span<const TensorType> operands, const Shape &result) {
  Merged merged;
  for (int d = 0; d < result.rank(); ++d) {
    if (result[d] == 1)
      continue;
    uint32_t readers = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      const int own = d - (result.rank() - operands[i].rank());
      readers |= uint32_t(own >= 0 && operands[i].shape[own] != 1) << i;
    }
    // A product beyond a symbol's bounds is not merged.
    if (!merged.sizes.empty() && merged.readers.back() == readers &&
        merged.sizes.back() * result.extent(d) <= dim::kMaxSize) {
      merged.sizes.back() *= result.extent(d);
      continue;
    }
    merged.sizes.push_back(result.extent(d));
    merged.readers.push_back(readers);
  }
  return merged;
}

std::vector<Classified> elementwise(const op::OpInfo &op, std::span<const TensorType> operands,
                                    const TensorType &result, const op::Attrs &attrs, bool forDevice) {
  const Merged merged = merge(operands, result.shape);
  const int64_t bytes = sizeOf(result.dtype);
  auto make = [&](bool huge) {
    Classified c{{&op, {}, attrs, {}}, {}};
    Symbols symbols(c);
    Shape full;
    const size_t rank = merged.sizes.size();
    for (size_t d = 0; d < rank; ++d) {
      const int64_t size = merged.sizes[d];
      if (size > dim::kMaxSize)
        full.push_back(size);
      else if (huge && rank == 1)
        full.push_back(symbols.add(size, (kHugeBytes + bytes - 1) / bytes));
      else if (huge && d == 0)
        full.push_back(symbols.add(size, kHugeBytes / 256 / bytes));
      else if (huge) // whole vectors: each row begins where a non-temporal store may
        full.push_back(16 * symbols.add(size / 16, 16));
      else
        full.push_back(symbols.add(size));
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      TensorType type{operands[i].dtype, {}};
      bool any = false;
      for (size_t d = 0; d < rank; ++d) {
        const bool reads = merged.readers[d] >> i & 1;
        any |= reads;
        if (any) // leading dimensions that the operand broadcasts are left out
          type.shape.push_back(reads ? full[static_cast<int>(d)] : Size(1));
      }
      c.call.operands.push_back(type);
    }
    return c;
  };
  int64_t total = bytes;
  for (int64_t size : merged.sizes)
    total *= size;
  const bool rows = merged.sizes.size() == 2 && merged.sizes[1] % 16 == 0 && merged.sizes[1] >= 256 &&
                    merged.sizes[0] >= kHugeBytes / 256 / bytes;
  return {make(!forDevice && total >= kHugeBytes && (merged.sizes.size() == 1 || rows))};
}

/// The axes of a reduction as a mask.
uint32_t reducedDims(const op::Attrs &attrs, int rank) {
  if (const auto *axis = std::get_if<int64_t>(&attrs[0]))
    return 1u << *op::normalizeAxis(*axis, rank);
  return *op::normalizeAxes(op::maybeInts(attrs[0]), rank);
}

std::vector<Classified> reduction(const op::OpInfo &op, const TensorType &x, const op::Attrs &attrs) {
  const uint32_t mask = reducedDims(attrs, x.rank());
  std::vector<std::pair<int64_t, bool>> dims; // size, reduced
  for (int d = 0; d < x.rank(); ++d) {
    const bool reduced = mask >> d & 1;
    if (x.shape[d] == 1)
      continue;
    if (!dims.empty() && dims.back().second == reduced && dims.back().first * x.shape.extent(d) <= dim::kMaxSize)
      dims.back().first *= x.shape.extent(d);
    else
      dims.push_back({x.shape.extent(d), reduced});
  }
  if (std::ranges::none_of(dims, [](auto &d) { return d.second; }))
    dims.push_back({1, true});
  Classified c{{&op, {{x.dtype, {}}}, attrs, {}}, {}};
  Symbols symbols(c);
  Ints axes;
  Shape &shape = c.call.operands.front().shape;
  for (auto [size, reduced] : dims) {
    if (reduced)
      axes.push_back(shape.rank());
    const bool number = size < 2 || size > dim::kMaxSize;
    shape.push_back(number ? Size(size) : reduced ? symbols.addStep(size) : symbols.add(size, 2));
  }
  const bool one = std::holds_alternative<int64_t>(attrs[0]);
  if (one && axes.size() > 1)
    return {};
  c.call.attrs[0] = one ? op::Attr(axes.front()) : op::Attr(axes);
  c.call.attrs[1] = false;
  return {c};
}

/// Every dimension is a symbol. `withAttrs`: sizes among the attributes are symbols too.
Classified byRank(const op::OpInfo &op, std::span<const TensorType> operands, const op::Attrs &attrs, bool withAttrs,
                  bool vectors = false) {
  Classified c{{&op, {}, attrs, {}}, {}};
  Symbols symbols(c);
  for (const TensorType &t : operands) {
    TensorType type{t.dtype, {}};
    for (int d = 0; d < t.rank(); ++d)
      type.shape.push_back(vectors ? symbols.sharedVectors(t.shape.extent(d))
                                   : symbols.shared(t.shape.extent(d), d + 1 == t.rank()));
    c.call.operands.push_back(type);
  }
  if (withAttrs)
    for (size_t i = 0; i < attrs.size(); ++i)
      if (auto *list = std::get_if<op::Sizes>(&c.call.attrs[i]))
        for (Size &size : *list)
          size = symbols.shared(size.number());
  return c;
}

} // namespace

std::vector<Classified> classesOf(const op::OpInfo &op, std::span<const TensorType> operands, const TensorType &result,
                                  const op::Attrs &attrs, bool forDevice) {
  if (op.family == op::Family::Elementwise && !operands.empty() && operands.size() <= 32)
    return elementwise(op, operands, result, attrs, forDevice);
  if (op.family == op::Family::Reduction && op.combine != op::Combine::None && operands.size() == 1)
    return reduction(op, operands.front(), attrs);
  // A symbol must be a dimension of an operand, except in kernels: these also take a size that only an attribute gives.
  Classified plain = byRank(op, operands, attrs, false), whole = byRank(op, operands, attrs, true);
  std::vector<Classified> classes;
  if (!forDevice && result.bytes() >= kHugeBytes)
    classes.push_back(byRank(op, operands, attrs, false, true));
  if (whole.call.attrs != plain.call.attrs)
    classes.push_back(std::move(whole));
  classes.push_back(std::move(plain));
  return classes;
}

bool agrees(const Classified &c, int64_t elements) {
  const op::Inferred inferred = op::inferTypes(*c.call.op, c.call.operands, c.call.attrs);
  if (!inferred || inferred.types.empty())
    return false;
  dim::Values values;
  for (size_t i = 0; i < c.sizes.size(); ++i)
    values.bind(c.call.symbols[i], c.sizes[i]);
  const Shape &shape = inferred.types.front().shape;
  return dim::isKnown(shape) && dim::evaluate(shape, values).numElements() == elements;
}

std::optional<Classified> deviceClassOf(const op::OpInfo &op, std::span<const TensorType> operands,
                                        const TensorType &result, const op::Attrs &attrs) {
  for (Classified &c : classesOf(op, operands, result, attrs, /*forDevice=*/true))
    if (!c.call.symbols.empty() && agrees(c, result.shape.numElements()))
      return std::move(c);
  return std::nullopt;
}

std::optional<SplitReduction> splitReduction(const op::OpInfo &op, const TensorType &x, const TensorType &result,
                                             const op::Attrs &attrs) {
  constexpr int64_t minElements = 1 << 17, enoughUnits = 64; // 64 parts of at least 2048 elements
  if (op.family != op::Family::Reduction || op.combine == op::Combine::ArgMax || op.combine == op::Combine::ArgMin ||
      op.combine == op::Combine::None || op::accumulatorType(result.dtype) != result.dtype)
    return std::nullopt;
  const uint32_t mask = reducedDims(attrs, x.rank());
  int64_t kept = 1, reduced = 1, inner = 1;
  for (int d = 0; d < x.rank(); ++d) {
    (mask >> d & 1 ? reduced : kept) *= x.shape.extent(d);
    if (!(mask >> d & 1) && reduced > 1)
      inner *= x.shape.extent(d);
    else if (mask >> d & 1 && x.shape[d] != 1 && inner > 1)
      return std::nullopt; // reduced, kept, reduced
  }
  if (kept >= enoughUnits || reduced < minElements)
    return std::nullopt;
  int64_t parts = 1; // a power of two: other divisors take long to find
  while (kept * parts < enoughUnits && reduced % (2 * parts) == 0)
    parts *= 2;
  if (parts < 8)
    return std::nullopt;
  const int64_t outer = kept / inner;
  SplitReduction split;
  split.first = {x.dtype, {outer * parts, reduced / parts, inner}};
  split.partial = {result.dtype, {outer * parts, inner}};
  split.second = {result.dtype, {outer, parts, inner}};
  split.firstAttrs = split.secondAttrs = attrs;
  split.firstAttrs[0] = split.secondAttrs[0] = Ints{1};
  split.firstAttrs[1] = split.secondAttrs[1] = false;
  return split;
}

} // namespace tressel::eager
