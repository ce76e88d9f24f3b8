// Predicted kernel times on the CPU: what providers bid with. A plain roofline, the same in every process.
#pragma once

#include "tressel/runtime/MachineModel.h"

namespace tressel::codegen {

/// What one machine's processor can do, and what calls cost there.
struct CpuModel : runtime::DeviceModel {
  double callSeconds;        ///< one call of a generated kernel
  double libraryCallSeconds; ///< one call into a library: memory objects, dispatch
};

/// Of the machine that this process runs on, as runtime::hostMachine describes it. The same on every call.
const CpuModel &hostCpuModel();

/// Time of `flops` done at `efficiency` (a share of peak) while moving `bytes`, whichever is longer. Work of less than some
/// 20 us is counted on one thread, as the executor runs it.
double predictSeconds(const CpuModel &cpu, double flops, double bytes, double efficiency);

} // namespace tressel::codegen
