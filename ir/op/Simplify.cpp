// Hooks of records for the simplifier, where a flag is not enough.
#include "ir/op/Infer.h"
#include "ir/op/TableSupport.h"

namespace tressel::op {

bool sameType(const OpInfo &, std::span<const TensorType> operands, std::span<const TensorType> results,
              const Attrs &) {
  return operands.size() == 1 && operands.front() == results.front() && dim::isKnown(operands.front().shape);
}

bool composeTranspose(const Attrs &inner, const Attrs &outer, Attrs &merged) {
  const Ints *first = maybeInts(inner[0]), *second = maybeInts(outer[0]);
  if (!first && !second)
    return false; // reverses twice, but the rank is not known here
  size_t rank = first ? first->size() : second->size();
  Ints permutation;
  for (size_t i = 0; i < rank; ++i) {
    auto through = [&](const Ints *p, size_t dim) {
      int64_t d = p ? (*p)[dim] : static_cast<int64_t>(rank - 1 - dim);
      return static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(rank) : d);
    };
    permutation.push_back(static_cast<int64_t>(through(first, through(second, i))));
  }
  merged = {Attr(std::move(permutation))};
  return true;
}

bool isIdentityTranspose(const OpInfo &, std::span<const TensorType> operands, std::span<const TensorType>,
                         const Attrs &attrs) {
  int rank = operands.front().rank();
  const Ints *permutation = maybeInts(attrs[0]);
  if (!permutation)
    return rank <= 1;
  for (int i = 0; i < rank; ++i)
    if (*normalizeAxis((*permutation)[static_cast<size_t>(i)], rank) != i)
      return false;
  return true;
}

bool isIdentitySlice(const OpInfo &op, std::span<const TensorType> operands, std::span<const TensorType> results,
                     const Attrs &attrs) {
  for (int64_t stride : ints(attrs[2]))
    if (stride != 1)
      return false;
  return sameType(op, operands, results, attrs);
}

} // namespace tressel::op
