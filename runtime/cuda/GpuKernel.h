// Kernels of a program as a card runs them: the code of all of them is one module, loaded when one of them is first launched.
#pragma once

#include "Driver.h"
#include "LaunchSizes.h"
#include "tressel/runtime/Device.h"
#include "tressel/runtime/GpuCode.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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
  /// A kernel of it. The first call takes the code that is made for the card's architecture alone ("sm_90a"), else that
  /// of the latest one that is not newer: machine code if there is any for the card, else PTX, which the driver
  /// compiles. Throws RuntimeError: no such code, or what the driver says of it.
  Function find(const std::string &symbol);
  /// Whose kernels find() gives, once it has.
  const std::string &architecture() const { return loaded_->arch; }

private:
  Module load();
  const std::shared_ptr<const std::vector<GpuCode>> codes_;
  const Card &card_;
  const Driver &driver_;
  std::mutex mutex_;
  Module module_ = nullptr;
  const GpuCode *loaded_ = nullptr;
};

/// What streams of cards launch.
class CudaKernel : public DeviceKernel {
public:
  enum class Form : uint8_t { Generated, Library, Graph }; ///< GpuKernel, LibraryKernel, CudaGraph
  const Form form;

protected:
  explicit CudaKernel(Form form) : form(form) {}
};

/// A kernel's parameters as the driver takes them: operands' addresses, scalars, where its status goes, and tensor
/// maps.
class LaunchParams {
public:
  void set(std::span<void *const> addresses, std::span<const int64_t> scalars, int32_t *status,
           std::span<const TensorMap> maps = {}) {
    values_.clear();
    for (void *address : addresses)
      values_.push_back(reinterpret_cast<uint64_t>(address));
    for (int64_t scalar : scalars)
      values_.push_back(static_cast<uint64_t>(scalar));
    values_.push_back(reinterpret_cast<uint64_t>(status));
    maps_.assign(maps.begin(), maps.end());
    params_.clear();
    for (uint64_t &value : values_)
      params_.push_back(&value);
    for (TensorMap &map : maps_)
      params_.push_back(&map);
  }
  void **data() { return params_.data(); }

private:
  std::vector<uint64_t> values_;
  std::vector<TensorMap> maps_;
  std::vector<void *> params_;
};

/// A generated kernel. One with something that not all architectures have comes with a form for the others, of which
/// the module that is loaded decides; its description (codegen/cuda/Provider.h) then has
///   "arch":"sm_90a"            whose code has the special form; "sm_90": and that of all later ones
///   "shared":BYTES             of shared memory, asked for at the launch
///   "maps":[{"operand":0,"type":"bf16","sizes":[...],"strides":[...],"box":[...]}]
///                              tensor maps, with the dimension of neighbours first and the strides, of elements, of
///                              all others
///   "cluster":SIZE             neighbouring blocks that are a cluster
///   "portable":{"threads":N,"blocks":SIZE}
class GpuKernel final : public CudaKernel {
public:
  /// Throws InputError for a description that is none of a GPU's kernel.
  GpuKernel(const KernelDesc &desc, std::shared_ptr<GpuModule> module, const Driver &driver);

  struct Launch {
    Function function = nullptr;
    unsigned blocks = 0, threads = 0, sharedBytes = 0, cluster = 1;
  };
  /// The launch of `range` > 0 blocks, as the description counts them, and its parameters. The card's context is
  /// current. Throws Error.
  Launch prepare(int64_t range, std::span<void *const> addresses, std::span<const int64_t> scalars, int32_t *status,
                 LaunchParams &params) const;

private:
  struct Map {
    uint32_t operand = 0;
    DType type = DType::f16;
    std::vector<Size> sizes, strides;
    std::vector<uint32_t> box;
  };
  struct Special { ///< what the special form has besides
    std::string architecture;
    LaunchSizes symbols;
    unsigned sharedBytes = 0;
    std::vector<Map> maps;
    Size cluster = 1;
    unsigned portableThreads = 0;
    Size portableBlocks;
    mutable std::mutex mutex;
    mutable std::map<std::vector<uint64_t>, std::vector<TensorMap>> encoded; ///< by addresses and scalars
  };
  Function function() const;
  TensorMap encode(const Map &map, void *address, const dim::Values &values) const;
  std::vector<TensorMap> mapsOf(std::span<void *const> addresses, std::span<const int64_t> scalars) const;

  const std::shared_ptr<GpuModule> module_;
  const Driver &driver_;
  const std::string symbol_;
  unsigned threads_ = 0;
  std::unique_ptr<Special> special_; ///< null: all cards run the same form
  mutable std::atomic<bool> isSpecial_{false};
  mutable std::atomic<Function> function_{nullptr};
};

/// The driver's fills for a Fill of `bytes` bytes, more than 0: two where elements of 8 bytes have halves that differ.
std::vector<FillNodeParams> fillsOf(const DeviceCommand &command, Address to, int64_t bytes);

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
