// What kernels take on a CPU: what providers bid with, and what plans and predictions of a step go by, so that both believe the same.
//
// A model of a kind of kernels is linear: counts of what a kernel does (vectors multiplied, tiles begun, elements packed), each times
// a coefficient in nanoseconds. Providers count; the coefficients were fitted to measurements, per instruction set (CostTable.inc,
// written by test/bench/fit_costs.py, which says how).
#pragma once

#include "tressel/runtime/Cpu.h"
#include "tressel/runtime/MachineModel.h"

#include <functional>
#include <span>
#include <string_view>

namespace tressel::codegen {

/// The processor that compiled code runs on, as runtime::hostMachine describes it, or as the CostScope of this thread says.
const runtime::DeviceModel &hostCpuModel();
/// What bids of this thread go by while it lives. `typical`: runtime::typicalHostMachine with two threads, and no
/// corrections, for results that must depend neither on what was measured nor on how many threads there are.
/// `allThreads`: all processors of the machine, whatever this process's pool has, for packages.
class CostScope {
public:
  CostScope(bool typical, bool allThreads);
  ~CostScope();
  CostScope(const CostScope &) = delete;
  CostScope &operator=(const CostScope &) = delete;

private:
  const std::pair<bool, bool> before_;
};

/// The model `name` ("builtin/product") for code of the level, applied to `counts`. The order of the counts is the provider's; the table
/// has as many coefficients. A name that the table lacks is an internal error.
runtime::KernelCost costOf(std::string_view name, runtime::CpuLevel level, std::span<const double> counts);

bool hasCostModel(std::string_view name);

/// Floats in a vector of the level.
int lanesOf(runtime::CpuLevel level);
/// Operands of more bytes than this are in memory, and in no cache, on the processor that the models were fitted on. What of them is read in an order that
/// nothing fetches ahead is waited for.
inline constexpr int64_t kMemoryBytes = int64_t(12) << 20;

/// A kernel that takes `costs` on one thread alone and moves `bytes`, run as `tasks` that threads share.
double predictSeconds(std::span<const runtime::KernelCost> costs, double bytes, int64_t tasks);
/// The same on one thread.
double serialSeconds(std::span<const runtime::KernelCost> costs, double bytes);

/// The least number of units worth a task of its own, of `range` units that take `serial` seconds together on one thread.
int64_t grainFor(double serial, int64_t range);
/// The least work of a task: a thread that looks for work takes it in a fraction of a microsecond. Where no thread does, the caller runs all tasks itself.
inline constexpr double kWorthSplitting = 5e-6;

/// Called with the counts of each cost that is computed, while it is set: for fitting the table. Not thread-safe.
extern std::function<void(const runtime::KernelCost &, std::span<const double> counts)> costObserver;

} // namespace tressel::codegen
