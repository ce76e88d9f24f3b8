// What an executable holds besides its schedule: shared by its maker (Executable.cpp) and its users (Context.cpp).
#pragma once

#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Image.h"
#include "tressel/runtime/Storage.h"

#pragma GCC visibility push(hidden) // of no use outside, and names take room
namespace tressel::runtime {

/// Throws InputError for what needs more than the processor.
void rejectUnsupported(const Schedule &schedule);

struct ExecutableImpl final : Executable {
  /// Executable::create for a schedule that is known to be safe.
  static std::shared_ptr<const Executable> createVerified(Schedule schedule, std::span<const std::byte> image,
                                                          std::span<const std::byte> constants,
                                                          std::shared_ptr<const void> owner,
                                                          const ProgramCode &code = {});
  void setSchedule(Schedule schedule) { schedule_ = std::move(schedule); }

  std::shared_ptr<const Image> image;   ///< outlives the kernels
  std::vector<LoadedKernel> kernels;    ///< by index of the schedule's kernels; no function where only a GPU has it
  std::vector<KernelFn> epilogues;      ///< likewise; null where there is none
  std::shared_ptr<const std::vector<GpuCode>> gpu;
  const std::byte *constants = nullptr; ///< 64-byte aligned
  std::shared_ptr<const void> constantsOwner;
  StorageRef alignedConstants;
};

} // namespace tressel::runtime
#pragma GCC visibility pop
