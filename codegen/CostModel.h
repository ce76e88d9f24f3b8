// Predicted kernel times on the CPU: what providers bid with. A plain roofline; measured history will refine it.
#pragma once

namespace tressel::codegen {

/// What one machine can do. Figures are limits, not averages.
struct CpuModel {
  double flopsPerSecond;       ///< f32, all threads
  double bytesPerSecond;       ///< from memory, all threads
  double cachedBytesPerSecond; ///< while everything fits into the last private cache
  double cacheBytes;           ///< of that cache, all threads
  double callSeconds;          ///< one call of a generated kernel
  double libraryCallSeconds;   ///< one call into a library: memory objects, dispatch
  int threads;
};

/// The machine that this process runs on: vector width and core count are read, clock and bandwidth are typical figures
/// of current servers, good enough to rank kernels. The same on every call.
const CpuModel &hostCpuModel();

/// Time of `flops` done at `efficiency` (a share of peak) while moving `bytes`, whichever is longer. Work of less than some
/// 20 us is counted on one thread, as the executor runs it.
double predictSeconds(const CpuModel &cpu, double flops, double bytes, double efficiency);

} // namespace tressel::codegen
