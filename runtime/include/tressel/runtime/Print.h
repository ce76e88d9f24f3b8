// Tensors in memory as text.
#pragma once

#include "tressel/runtime/Types.h"

#include <string>

namespace tressel::runtime {

/// As NumPy prints it, large ones shortened, with the type behind: "[1., 2.] f32[2]".
std::string formatTensor(const void *data, const TensorType &type);

/// What a tensor holds, in a few numbers.
struct Statistics {
  int64_t numNan = 0, numInf = 0, numFinite = 0;
  int64_t firstNan = -1, firstInf = -1; ///< index in row-major order
  double min = 0, mean = 0, max = 0;    ///< of the finite elements
  /// "2 NaN, min -1, mean 0.5, max 3".
  std::string str() const;
};
Statistics statisticsOf(const void *data, const TensorType &type);

} // namespace tressel::runtime
