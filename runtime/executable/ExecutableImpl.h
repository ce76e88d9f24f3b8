// What an executable holds besides its schedule: made by Executable.cpp, used by Context.cpp.
#pragma once

#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Image.h"
#include "tressel/runtime/Storage.h"

#pragma GCC visibility push(hidden) // internal to the library; exported names would take space
namespace tressel::runtime {

/// Throws InputError for a schedule that needs more than the processor.
void rejectUnsupported(const Schedule &schedule);

struct ExecutableImpl final : Executable {
  /// Executable::create for a schedule that is already verified.
  static std::shared_ptr<const Executable> createVerified(Schedule schedule, std::span<const std::byte> image,
                                                          std::span<const std::byte> constants,
                                                          std::shared_ptr<const void> owner,
                                                          const ProgramCode &code = {});
  void setSchedule(Schedule schedule) { schedule_ = std::move(schedule); }

  std::shared_ptr<const Image> image;   ///< outlives the kernels
  /// by index of the schedule's kernels; no function for a kernel that only a GPU has
  std::vector<LoadedKernel> kernels;
  std::vector<KernelFn> epilogues; ///< likewise; null if the kernel has no epilogue
  std::shared_ptr<const std::vector<GpuCode>> gpu;
  const std::byte *constants = nullptr; ///< 64-byte aligned
  std::shared_ptr<const void> constantsOwner;
  StorageRef alignedConstants;
};

} // namespace tressel::runtime
#pragma GCC visibility pop
