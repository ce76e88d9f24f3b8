// PTX to machine code, where NVIDIA's toolkit is at hand: a check on machines without a GPU, and code that needs no
// compilation by the driver. nvJitLink (loaded at run time, in process), else the program ptxas, which is also asked where nvJitLink spills registers. Both are looked for
// where the loader or the PATH finds them, then under CUDA_HOME, CUDA_PATH, CUDA_ROOT and /usr/local/cuda.
//
// The environment variable TRESSEL_ASSEMBLER names the one to use: nvjitlink, ptxas, or none.
#pragma once

#include "codegen/cuda/target/Arch.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::codegen::cuda {

/// What the assembler gave a kernel.
struct KernelResources {
  std::string symbol;
  int registers = 0;                       ///< per thread
  int64_t spillStores = 0, spillLoads = 0; ///< bytes
  int64_t stackBytes = 0, sharedBytes = 0;
};
struct Assembled {
  std::vector<std::byte> cubin;
  std::vector<KernelResources> kernels;
  std::string tool; ///< "nvJitLink 13.0"
};

/// The assembler of this machine ("nvJitLink 13.0"); empty, and `why` says what was looked for, where there is none.
std::string assemblerName(std::string *why = nullptr);
/// Nothing where there is no assembler. Throws InternalError with the assembler's words when the PTX is refused.
/// Thread-safe.
std::optional<Assembled> assemble(std::string_view ptx, const Arch &arch);

} // namespace tressel::codegen::cuda
