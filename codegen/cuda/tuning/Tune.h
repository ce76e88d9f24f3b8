// Measures on a card how kernels are best cut, and writes down what it finds (Tunings.h).
//
// Loops, tiles, tiles whose depth several blocks share, products of a single architecture's instructions: all ways to
// make a kernel are compared, and the best with the call of NVIDIA's library where that is present.
//
// Each way computes on the same operands (floats between -1 and 1, zeros for all other types); one whose results are
// not those of the cost model's way is never taken. Sizes that are symbolic count as typical. The ways take turns, and
// the medians of their times by the card's clock are compared: another way counts when it takes 3% less. Operands that
// fit the card's cache are read from there.
#pragma once

#include "codegen/cuda/target/Arch.h"
#include "codegen/cuda/tuning/Tunings.h"
#include "ir/graph/Structure.h"
#include "tressel/runtime/Device.h"

#include "llvm/ADT/ArrayRef.h"

#include <functional>

namespace tressel::codegen::cuda {

struct TuneReport {
  int measured = 0; ///< kernels
  int known = 0;    ///< that the tunings had
  int faster = 0;   ///< of those measured: another way is taken
};
/// Adds what `tunings` does not have of these kernels. `machine` has a GPU of that architecture and keeps stamps
/// (MachineRequest::stamps); its first one is used. Kernels that need more memory than there is, and those that the
/// card fails with the cost model's own way, are left out. Throws Error when the card stops.
TuneReport tune(llvm::ArrayRef<graph::KernelOp> kernels, const Arch &arch, runtime::Machine &machine, Tunings &tunings,
                const std::function<void(int done, int all)> &progress);

} // namespace tressel::codegen::cuda
