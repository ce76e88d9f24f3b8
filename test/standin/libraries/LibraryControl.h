// How tests steer a stand-in for one of NVIDIA's libraries, and what they ask it: what is the same for all.
#pragma once

#include <cstdint>

namespace tressel::standin {

struct LibraryControl {
  uint64_t heuristics = 0;      ///< calls that asked for algorithms
  uint64_t refused = 0;         ///< calls that were answered with an error
  const char *lastRefusal = ""; ///< why
  int failure = 0;              ///< the next launches do nothing and return this status; 0: none
};

} // namespace tressel::standin
