// How tests steer the stand-in cuBLASLt, and what they ask it. The library's function tressel_standin_cublaslt returns
// it.
#pragma once

#include "LibraryControl.h"

namespace tressel::standin {

struct CublasControl : LibraryControl {
  uint64_t products = 0;       ///< that were issued
  int lastAlgorithm = 0;       ///< of the last product
  uint64_t onlyAlgorithm = 0;  ///< the heuristic proposes this one alone; 0: all of them
  bool hasNoAlgorithm = false; ///< the next ones that ask for algorithms are told that there is none
};

} // namespace tressel::standin
