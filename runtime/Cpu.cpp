#include "tressel/runtime/Cpu.h"

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

CpuLevel hostCpuLevel() {
  // The compiler's support library asks cpuid and also whether the system saves the wide registers.
  static const CpuLevel level = [] {
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("movbe");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    return v4 ? CpuLevel::V4 : v3 ? CpuLevel::V3 : CpuLevel::Baseline;
  }();
  return level;
}

} // namespace tressel::runtime
