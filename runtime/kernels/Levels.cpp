#include "Levels.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <cpuid.h>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

namespace tressel::kernels {

extern const SplitKernels splitKernelsAmx;

/// Whether the CPU has bf16 tiles and the system grants tile registers to this process. A process must request them, as
/// they add 8 KB of state to each thread that uses them. Older systems refuse.
static bool hasTiles() {
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;
  constexpr long kRequestState = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kBf16) && (d & kTiles) &&
         syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
}

/// Kernels on emulated tiles. If tests request them and they are missing, that is an error, since the tests would
/// otherwise pass without them.
static const SplitKernels *emulatedTiles(runtime::CpuLevel cpu) {
  if (cpu != runtime::CpuLevel::V4)
    throw InputError("TRESSEL_KERNEL_TILES is 'emulated', but tiles are emulated beside AVX-512 only, which this CPU has not or "
                     "TRESSEL_KERNEL_LEVEL forbids");
  void *library = dlopen("libtressel_emulated_tiles.so", RTLD_NOW | RTLD_LOCAL); // searched for beside this library
  const void *kernels = library ? dlsym(library, "tressel_emulated_tiles") : nullptr;
  if (!kernels)
    throw InputError(std::string("TRESSEL_KERNEL_TILES is 'emulated', which is for tests in a build of Tressel: ") + dlerror());
  return static_cast<const SplitKernels *>(kernels);
}

const Level &kernelLevel() {
  static const Level level = [] {
    runtime::CpuLevel limit = runtime::CpuLevel::V4;
    if (const char *text = std::getenv("TRESSEL_KERNEL_LEVEL"); text && !runtime::parseCpuLevel(text, limit))
      std::fprintf(stderr, "tressel: TRESSEL_KERNEL_LEVEL is '%s', but the levels are baseline, v3 and v4; it limits nothing\n",
                   text);
    const runtime::CpuLevel cpu = std::min(limit, runtime::hostCpuLevel());
    const char *text = std::getenv("TRESSEL_KERNEL_TILES");
    const std::string_view tiles = text ? text : "1";
    if (tiles == "emulated")
      return Level(cpu, emulatedTiles(cpu));
    if (tiles != "0" && tiles != "1")
      std::fprintf(stderr, "tressel: TRESSEL_KERNEL_TILES is '%s', but may be 0, 1 or emulated; it forbids nothing\n", text);
    const bool mayUse = cpu == runtime::CpuLevel::V4 && tiles != "0";
    return Level(cpu, mayUse && hasTiles() ? &splitKernelsAmx : nullptr);
  }();
  return level;
}

} // namespace tressel::kernels
