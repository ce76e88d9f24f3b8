// How an op without a loop nest (sort, scatter) runs: a call of a bitcode kernel, written by hand in codegen/bitcode/
// and specialized to the call at compile time, or of one of runtime/kernels/ (attention).
#pragma once

#include "tressel/runtime/Size.h"

#include <string>
#include <vector>

namespace tressel::op {

/// Operands of the kernel: those of the op, then its results. It computes units [begin, end) of `range`, which are
/// independent (tressel/runtime/Kernel.h).
struct KernelForm {
  std::string kernel; ///< the function: its name and element types, "sort_f32"
  /// Sizes and settings in the order that the kernel's source states. None is negative.
  std::vector<Size> params;
  Size range = 1;
  Size scratchBytes;        ///< per worker
  double flops = 0;         ///< approximate, for the whole range: comparisons, additions
};

} // namespace tressel::op
