#include "frontend/Eager.h"

#include <tressel/spec.h>

namespace tressel {

TensorType TensorSpec::type() const {
  if (dims.size() > static_cast<size_t>(kMaxRank))
    throw ShapeError("a tensor of " + std::to_string(dims.size()) + " dimensions: at most " + std::to_string(kMaxRank) +
                     " are supported");
  TensorType result{dtype, {}};
  for (const DimSpec &d : dims) {
    if (d.size != kDynamic && !dim::isSymbolic(d.size) && d.size < 0)
      throw ShapeError("the size " + std::to_string(d.size) + " is negative");
    result.shape.push_back(d.size != kDynamic ? d.size : dim::symbol(d.name, d.lo, d.hi));
  }
  return result;
}

} // namespace tressel
