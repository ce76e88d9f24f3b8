// Kernels of a program as a card runs them: the code of all of them is one module, loaded when one of them is first launched.
#pragma once

#include "Driver.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Device.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

class GpuModule {
public:
  GpuModule(std::shared_ptr<const std::vector<GpuCode>> codes, const Card &card, const Driver &driver)
      : codes_(std::move(codes)), card_(card), driver_(driver) {}
  GpuModule(const GpuModule &) = delete;
  ~GpuModule();
  /// A kernel of it. The first call takes machine code of the card's own architecture if there is any, else PTX of the latest one that is not
  /// newer, which the driver compiles. Throws RuntimeError: no such code, or what the driver says of it.
  Function find(const std::string &symbol);

private:
  Module load() const;
  const std::shared_ptr<const std::vector<GpuCode>> codes_;
  const Card &card_;
  const Driver &driver_;
  std::mutex mutex_;
  Module module_ = nullptr;
};

class GpuKernel final : public DeviceKernel {
public:
  /// Throws InputError for a description that is none of a GPU's kernel.
  GpuKernel(const KernelDesc &desc, std::shared_ptr<GpuModule> module);
  /// Throws RuntimeError.
  Function function() const;
  unsigned threads() const { return threads_; } ///< of a block

private:
  const std::shared_ptr<GpuModule> module_;
  const std::string symbol_;
  unsigned threads_ = 0;
  mutable std::atomic<Function> function_{nullptr};
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
