// How tests steer the stand-in cuDNN, and what they ask it. The library's function tressel_standin_cudnn returns it.
#pragma once

#include <cstdint>

namespace tressel::standin {

struct CudnnControl {
  uint64_t heuristics = 0;      ///< that were finalized
  uint64_t executed = 0;        ///< graphs that were issued
  uint64_t refused = 0;         ///< calls that were answered with an error
  int lastEngine = 0;           ///< of the last graph that was issued
  const char *lastRefusal = ""; ///< why
  uint64_t descriptors = 0;     ///< that are alive
  int64_t onlyEngine = -1;      ///< the heuristics propose this one alone; -1: all of them
  bool hasNoEngine = false;     ///< the heuristics propose nothing
  int graphFailure = 0;         ///< finalizing a graph returns this status; 0: it does what it says
  int modeFailure = 0;          ///< finalizing heuristics of mode A returns this status
  int planFailure = 0;          ///< the next plan that is finalized returns this status
  int failure = 0;              ///< the next graphs do nothing and return this status; 0: none
};

} // namespace tressel::standin
