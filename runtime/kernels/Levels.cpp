#include "Levels.h"

#include <algorithm>
#include <cpuid.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace tressel::kernels {

extern const SplitKernels splitKernelsAmx;

/// Whether the CPU multiplies tiles of bf16 and the system lets this process have tile registers, which it must ask for:
/// they are 8 KB of each thread that uses them. Systems that know nothing of them refuse.
static bool hasTiles() {
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;
  constexpr long kRequestState = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kBf16) && (d & kTiles) &&
         syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
}

const Level &kernelLevel() {
  static const Level level = [] {
    runtime::CpuLevel limit = runtime::CpuLevel::V4;
    if (const char *text = std::getenv("TRESSEL_KERNEL_LEVEL"); text && !runtime::parseCpuLevel(text, limit))
      std::fprintf(stderr, "tressel: TRESSEL_KERNEL_LEVEL is '%s', but the levels are baseline, v3 and v4; it limits nothing\n",
                   text);
    const char *tiles = std::getenv("TRESSEL_KERNEL_TILES");
    const runtime::CpuLevel cpu = std::min(limit, runtime::hostCpuLevel());
    const bool mayUse = cpu == runtime::CpuLevel::V4 && (!tiles || std::strcmp(tiles, "0") != 0);
    return Level(cpu, mayUse && hasTiles() ? &splitKernelsAmx : nullptr);
  }();
  return level;
}

} // namespace tressel::kernels
