#include <tressel/tensor.h>

#include "tressel/runtime/Print.h"

#include <ostream>

namespace tressel {

std::ostream &operator<<(std::ostream &os, const Tensor &t) {
  if (!t.defined())
    return os << "(no tensor)";
  if (t.traced())
    return os << "<traced " << t.type().str() << " at " << t.impl()->where.str() << ">";
  return os << runtime::formatTensor(t.data(std::source_location()), t.type()); // the caller's line is not known
}

} // namespace tressel
