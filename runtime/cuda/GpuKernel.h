// Kernels of a program as a card runs them: the code of all of them is one module, loaded when one of them is first launched.
#pragma once

#include "Driver.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Device.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
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

/// What streams of cards launch.
class CudaKernel : public DeviceKernel {
public:
  enum class Form : uint8_t { Generated, Library, Graph }; ///< GpuKernel, LibraryKernel, CudaGraph
  const Form form;

protected:
  explicit CudaKernel(Form form) : form(form) {}
};

class GpuKernel final : public CudaKernel {
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

/// A kernel's parameters as the driver takes them: operands' addresses, scalars, and where its status goes.
class LaunchParams {
public:
  void set(std::span<void *const> addresses, std::span<const int64_t> scalars, int32_t *status) {
    values_.clear();
    for (void *address : addresses)
      values_.push_back(reinterpret_cast<uint64_t>(address));
    for (int64_t scalar : scalars)
      values_.push_back(static_cast<uint64_t>(scalar));
    values_.push_back(reinterpret_cast<uint64_t>(status));
    params_.clear();
    for (uint64_t &value : values_)
      params_.push_back(&value);
  }
  void **data() { return params_.data(); }

private:
  std::vector<uint64_t> values_;
  std::vector<void *> params_;
};

/// The driver's fills for a Fill of `bytes` bytes, more than 0: two where elements of 8 bytes have halves that differ.
std::vector<FillNodeParams> fillsOf(const DeviceCommand &command, Address to, int64_t bytes);

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
