// What the compiler chose for a program, and why: for those who ask.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <string>
#include <vector>

namespace tressel::runtime {

struct Decision {
  std::string pass; ///< "form-clusters"
  Location where;   ///< of the op that it is about
  std::string text; ///< "kernels; predicted: kernels 12.3 us, generated 45.0 us"
};
using Decisions = std::vector<Decision>;

/// "12.3 us": three digits and a unit.
std::string spellSeconds(double seconds);

} // namespace tressel::runtime
