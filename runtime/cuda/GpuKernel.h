// Kernels of a program as cards run them: the code of all of them is one module for each card, loaded when one of them is first launched there.
#pragma once

#include "Driver.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Kernel.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class GpuModules {
public:
  explicit GpuModules(std::vector<GpuCode> codes) : codes_(std::move(codes)) {}
  GpuModules(const GpuModules &) = delete;
  ~GpuModules();
  /// Machine code of the card's own architecture if there is any, else PTX of the latest one that is not newer, which the driver
  /// compiles. Throws RuntimeError: no such code, or what the driver says of it.
  Module moduleFor(const Card &card, const Driver &driver);

private:
  Module load(const Card &card, const Driver &driver) const;
  std::vector<GpuCode> codes_;
  std::mutex mutex_;
  std::map<int, Module> modules_; ///< by Card::ordinal
};

/// What LoadedKernel::state and DeviceKernel::state are for such a kernel.
struct GpuKernel {
  std::shared_ptr<GpuModules> modules;
  std::string symbol;
  unsigned threads = 0; ///< of a block
  /// Null if `kernel` is none.
  static const GpuKernel *of(const void *state, KernelFn fn);
  static int32_t runNowhere(const KernelArgs *args, int64_t begin, int64_t end);
  /// Throws RuntimeError.
  Function functionOn(const Card &card, const Driver &driver) const;

private:
  mutable std::mutex mutex_;
  mutable std::map<int, Function> functions_; ///< by Card::ordinal
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
