#include "Levels.h"

#include <algorithm>
#include <cstdlib>

namespace tressel::kernels {

runtime::CpuLevel kernelLevel() {
  static const runtime::CpuLevel level = [] {
    runtime::CpuLevel limit = runtime::CpuLevel::V4;
    if (const char *text = std::getenv("TRESSEL_KERNEL_LEVEL"))
      runtime::parseCpuLevel(text, limit); // anything else limits nothing
    return std::min(limit, runtime::hostCpuLevel());
  }();
  return level;
}

} // namespace tressel::kernels
