#include "codegen/cuda/target/Arch.h"

#include "tressel/runtime/Error.h"
#include "tressel/runtime/GpuCode.h"

namespace tressel::codegen::cuda {

// Multiprocessors: data sheets of A100 SXM (108), H100 SXM (132), B200 (148), GeForce RTX 5090 (170). Limits: "CUDA C++
// Programming Guide", table of technical specifications per compute capability. PTX versions: the oldest that LLVM
// takes for the architecture with all that is emitted here, so that older drivers load it.
using enum Arch::Multiplier;
static constexpr Arch kArchitectures[] = {
    {"sm_80", "sm_80", "+ptx70", 108, 2048, 32, 65536, 164 << 10, 1, None},
    {"sm_90", "sm_90", "+ptx80", 132, 2048, 32, 65536, 228 << 10, 8, None},
    {"sm_100", "sm_100", "+ptx86", 148, 2048, 32, 65536, 228 << 10, 8, None},
    {"sm_120", "sm_120", "+ptx87", 170, 1536, 24, 65536, 100 << 10, 8, None},
    {"sm_90a", "sm_90", "+ptx80", 132, 2048, 32, 65536, 228 << 10, 8, Warpgroup},
    {"sm_100a", "sm_100", "+ptx86", 148, 2048, 32, 65536, 228 << 10, 8, Tensor},
};
static constexpr size_t kPortable = 4; // the first ones

bool Arch::runs(const Arch &code) const {
  return code.isSpecific() ? name == code.name
                           : runtime::GpuArchitecture::of(code.name).runsOn(runtime::GpuArchitecture::of(name).number);
}

std::span<const Arch> architectures() { return std::span(kArchitectures).first(kPortable); }

const Arch &findArch(std::string_view name) {
  std::string known;
  for (const Arch &arch : kArchitectures) {
    if (arch.name == name)
      return arch;
    known += (known.empty() ? "" : ", ") + std::string(arch.name);
  }
  throw Error({.message = "there is no GPU architecture '" + std::string(name) + "'", .hint = "use one of " + known});
}

} // namespace tressel::codegen::cuda
