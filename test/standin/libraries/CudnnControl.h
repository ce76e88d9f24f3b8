// How tests steer the stand-in cuDNN, and what they ask it. The library's function tressel_standin_cudnn returns it.
#pragma once

#include "LibraryControl.h"

namespace tressel::standin {

struct CudnnControl : LibraryControl {
  uint64_t executed = 0;    ///< graphs that were issued
  int lastEngine = 0;       ///< of the last graph that was issued
  uint64_t descriptors = 0; ///< that are alive
  int64_t onlyEngine = -1;  ///< the heuristics propose this one alone; -1: all of them
  bool hasNoEngine = false; ///< the heuristics propose nothing
  int graphFailure = 0;     ///< finalizing a graph returns this status; 0: it does what it says
  int modeFailure = 0;      ///< finalizing heuristics of mode A returns this status
  int planFailure = 0;      ///< the next plan that is finalized returns this status
};

} // namespace tressel::standin
