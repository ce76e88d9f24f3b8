#include "Levels.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace tressel::kernels {

runtime::CpuLevel kernelLevel() {
  static const runtime::CpuLevel level = [] {
    runtime::CpuLevel limit = runtime::CpuLevel::V4;
    if (const char *text = std::getenv("TRESSEL_KERNEL_LEVEL"); text && !runtime::parseCpuLevel(text, limit))
      std::fprintf(stderr, "tressel: TRESSEL_KERNEL_LEVEL is '%s', but the levels are baseline, v3 and v4; it limits nothing\n",
                   text);
    return std::min(limit, runtime::hostCpuLevel());
  }();
  return level;
}

} // namespace tressel::kernels
