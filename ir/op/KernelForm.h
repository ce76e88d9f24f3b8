// How an op that is no loop nest (sort, scatter) runs: as a call of a bitcode kernel, a function written by hand in
// codegen/bitcode/ and specialized to the call when the program is compiled, or one of runtime/kernels/ (attention).
#pragma once

#include "tressel/runtime/Size.h"

#include <string>
#include <vector>

namespace tressel::op {

/// The kernel's operands are the op's, then its results. It runs units [begin, end) of `range` independent ones, as every
/// kernel does (tressel/runtime/Kernel.h).
struct KernelForm {
  std::string kernel; ///< the function: its name and element types, "sort_f32"
  /// Sizes and settings in the order that the kernel's source states. None is negative.
  std::vector<Size> params;
  Size range = 1;
  Size scratchBytes;        ///< per worker
  double flops = 0;         ///< of the whole range, about: comparisons, additions
};

} // namespace tressel::op
