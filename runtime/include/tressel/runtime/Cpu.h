// Instruction-set levels of x86-64: what an image needs, what this CPU has.
#pragma once

#include <cstdint>
#include <string_view>

namespace tressel::runtime {

/// Each level includes those before it. The values are part of the package format.
enum class CpuLevel : uint8_t {
  Baseline, ///< SSE2
  V3,       ///< AVX2, FMA, F16C, BMI
  V4,       ///< AVX-512 F, BW, CD, DQ, VL
};
/// "baseline", "v3", "v4".
std::string_view nameOf(CpuLevel level);
/// False if unknown.
bool parseCpuLevel(std::string_view text, CpuLevel &out);
/// The highest level that this CPU and the operating system support, and TRESSEL_CPU_LEVEL in the environment allows.
CpuLevel hostCpuLevel();

} // namespace tressel::runtime
