// Ranges for profilers that take NVIDIA's tools extension (NVTX), as Nsight Systems does: what is given to a card is marked with its op and line, and the
// card's streams have the names that schedules call them by. A profiler names its library in NVTX_INJECTION64_PATH; without one nothing is done. The protocol is that of
// NVTX 3, whose headers take no part in the build.
#pragma once

#include "Driver.h"

#include <cstdint>
#include <string>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

/// nvtxEventAttributes_t
struct NvtxAttributes {
  uint16_t version = 3, bytes = 48;
  uint32_t category = 0;
  int32_t colorKind = 0;
  uint32_t color = 0;
  int32_t payloadKind = 0, reserved = 0;
  uint64_t payload = 0;
  int32_t messageKind = 1; ///< NVTX_MESSAGE_TYPE_ASCII
  const char *message = nullptr;
};
using NvtxFunction = void (*)();
/// The functions of a module, by number, as a profiler sets them; those that it leaves alone stay null.
enum class NvtxCore2 : uint8_t { DomainRangePush = 4, DomainRangePop = 5, DomainCreate = 12, Count = 16 };
enum class NvtxCuda : uint8_t { NameStream = 5, Count = 9 };
/// NvtxExportTableCallbacks, NvtxExportTableVersionInfo
struct NvtxCallbacks {
  size_t bytes = sizeof(NvtxCallbacks);
  int (*functionsOf)(int module, NvtxFunction ***functions, unsigned *count) = nullptr;
};
struct NvtxVersion {
  size_t bytes = sizeof(NvtxVersion);
  uint32_t version = 3, reserved = 0;
  void (*set)(uint32_t version) = nullptr;
};

class Nvtx {
public:
  /// Of this process, with the profiler's library opened at the first call; null without one.
  static const Nvtx *find();
  void push(const char *text) const;
  void pop() const;
  void name(StreamHandle stream, const std::string &text) const;

private:
  void *domain_ = nullptr;
};

/// A range of the calling thread, for as long as this lives.
class ProfilerRange {
public:
  /// "matmul, add (model.cpp:12)"
  explicit ProfilerRange(const DeviceCommand &command) : nvtx_(Nvtx::find()) {
    if (nvtx_) [[unlikely]]
      begin(command);
  }
  ~ProfilerRange() {
    if (nvtx_) [[unlikely]]
      nvtx_->pop();
  }
  ProfilerRange(const ProfilerRange &) = delete;

private:
  void begin(const DeviceCommand &command);
  const Nvtx *const nvtx_;
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
