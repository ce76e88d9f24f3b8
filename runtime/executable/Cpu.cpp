#include "tressel/runtime/Cpu.h"

#include <algorithm>
#include <cpuid.h>
#include <cstdio>
#include <cstdlib>

namespace tressel::runtime {

static constexpr std::string_view kNames[] = {"baseline", "v3", "v4"};

std::string_view nameOf(CpuLevel level) { return kNames[static_cast<int>(level)]; }

bool parseCpuLevel(std::string_view text, CpuLevel &out) {
  for (int i = 0; i < 3; ++i)
    if (kNames[i] == text) {
      out = static_cast<CpuLevel>(i);
      return true;
    }
  return false;
}

/// Reads CPUID directly: the compiler's support library has tables of all CPUs, a tenth of the size of this library.
static CpuLevel askCpu() {
  uint32_t a, b, c, d, b7 = 0, c7 = 0, d7 = 0, cExtended = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d))
    return CpuLevel::Baseline;
  // Whether the operating system saves the wide registers (XGETBV, available if OSXSAVE is set).
  uint32_t saved = 0;
  if (c & bit_OSXSAVE)
    asm("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
  const uint32_t features = c;
  __get_cpuid_count(7, 0, &a, &b7, &c7, &d7);
  __get_cpuid(0x80000001, &a, &b, &cExtended, &d);
  auto all = [](uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; };
  constexpr uint32_t kYmm = 0x6, kZmm = 0xe6;
  const bool v3 = all(saved, kYmm) && all(features, bit_AVX | bit_FMA | bit_F16C | bit_MOVBE) &&
                  all(b7, bit_AVX2 | bit_BMI | bit_BMI2) && all(cExtended, bit_LZCNT);
  const bool v4 =
      v3 && all(saved, kZmm) && all(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL);
  return v4 ? CpuLevel::V4 : v3 ? CpuLevel::V3 : CpuLevel::Baseline;
}

/// TRESSEL_CPU_LEVEL in the environment lowers the level, to run the code of older processors here.
static CpuLevel allowedLevel() {
  CpuLevel level = CpuLevel::V4;
  if (const char *text = std::getenv("TRESSEL_CPU_LEVEL"); text && !parseCpuLevel(text, level))
    std::fprintf(stderr, "tressel: TRESSEL_CPU_LEVEL is '%s', but the levels are baseline, v3 and v4; it limits nothing\n", text);
  return level;
}

CpuLevel hostCpuLevel() {
  static const CpuLevel level = std::min(askCpu(), allowedLevel());
  return level;
}

} // namespace tressel::runtime
