// What a kernel's status says, for messages.
#pragma once

#include "tressel/runtime/Kernel.h"

#include <cstdint>

namespace tressel::runtime {

inline const char *describeStatus(int32_t status) {
  switch (status) {
  case kKernelIndexOutOfRange:
    return "an index, or a label of a class, is out of range"; // kernels do not know which of them an index is
  case kKernelLibraryFailed:
    return "a library call failed";
  default:
    return "the kernel failed";
  }
}

} // namespace tressel::runtime
