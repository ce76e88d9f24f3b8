// How tests steer the stand-in cuBLASLt, and what they ask it. The library's function tressel_standin_cublaslt returns
// it.
#pragma once

#include <cstdint>

namespace tressel::standin {

struct CublasControl {
  uint64_t heuristics = 0;      ///< calls that asked for algorithms
  uint64_t products = 0;        ///< that were issued
  uint64_t refused = 0;         ///< calls that were answered with an error
  int lastAlgorithm = 0;        ///< of the last product
  const char *lastRefusal = ""; ///< why
  uint64_t onlyAlgorithm = 0; ///< the heuristic proposes this one alone; 0: all of them
  bool hasNoAlgorithm = false;  ///< the next ones that ask for algorithms are told that there is none
  int failure = 0;              ///< the next products do nothing and return this status; 0: none
};

} // namespace tressel::standin
