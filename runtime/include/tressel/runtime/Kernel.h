// The kernel ABI: what generated code, library kernels and the executor agree on.
//
// A kernel does `range` units of independent work. The executor splits [0, range) into chunks of at least `grain` units
// and calls the kernel once per chunk, from any thread of the pool, concurrently. Two chunks never write the same byte.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tressel::runtime {

/// Where a kernel that fails may say why, from any thread. The first message stays.
class KernelFailure {
public:
  void say(std::string_view message) {
    std::lock_guard lock(mutex_);
    if (message_.empty())
      message_ = message;
  }
  std::string take() {
    std::lock_guard lock(mutex_);
    return std::exchange(message_, {});
  }

private:
  std::mutex mutex_;
  std::string message_;
};

/// One argument for all kernels, generated and library alike. Plain C layout: generated code reads it by offset, so
/// fields are appended, never moved. Pointers are valid for the duration of the call only.
struct KernelArgs {
  void *const *buffers;        ///< one per operand of the launch, in the kernel's declared order; 64-byte aligned
                               ///< unless an input or output was bound to a less aligned caller's buffer
  const int64_t *scalars;      ///< run-time scalars and dynamic sizes, may be null
  void *scratch;               ///< KernelDesc::scratchBytes per worker, 64-byte aligned, contents undefined
  uint64_t randomOffset;       ///< first counter of this launch's random numbers
  const void *state;           ///< opaque state of a library kernel, null for generated ones
  int64_t worker;              ///< which worker of the pool runs the chunk, 0 for the caller
  KernelFailure *failure;      ///< of this call; kernels with a message put it there before they return their status
};

/// Runs units [begin, end). Returns 0, or a status that the executor turns into a RuntimeError naming the op and line.
/// Never throws.
using KernelFn = int32_t (*)(const KernelArgs *args, int64_t begin, int64_t end);

enum KernelStatus : int32_t {
  kKernelOk = 0,
  kKernelIndexOutOfRange = 1, ///< a gather's index is outside its dimension
  kKernelLibraryFailed = 2,   ///< a library call returned an error
  kKernelSaysWhy = 3,         ///< the message in KernelArgs::failure says what went wrong
};

/// A kernel ready to run. `owner` keeps code and library state alive.
struct LoadedKernel {
  KernelFn fn = nullptr;
  const void *state = nullptr;
  std::shared_ptr<const void> owner;
};

struct KernelDesc; // Schedule.h

/// Makes library kernels of one provider ("onednn") from their description; registered once per process.
/// Throws Error when the description is not understood (a package from another version, say).
using KernelFactory = LoadedKernel (*)(const KernelDesc &);
void registerKernelProvider(std::string name, KernelFactory factory);
/// Kernels that a program brings along. One without `fn` is none of them.
using KernelLookup = std::function<LoadedKernel(const KernelDesc &)>;
struct GpuCode; // GpuCode.h
/// The code that a program brings along beside its image.
struct ProgramCode {
  KernelLookup kernels = {};                             ///< functions of this process, asked before its providers
  std::shared_ptr<const std::vector<GpuCode>> gpu = {}; ///< for Device::load
};
/// Null when no such provider is registered.
KernelFactory findKernelProvider(const std::string &name);
/// What the file with a provider's kernels is called, without its end: that of "builtin" is libtressel_kernels.
std::string kernelLibrary(const std::string &provider);

} // namespace tressel::runtime
