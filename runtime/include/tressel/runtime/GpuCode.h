// The code of a program's kernels for GPUs, and how packages hold it.
//
// A package keeps it as named bytes beside the values of states: ".gpu/ARCH/ptx", ".gpu/ARCH/cubin", and ".gpu", a JSON
// text that lists the architectures with their kernels. Runtimes that run on processors alone need not know of them.
#pragma once

#include "tressel/runtime/Device.h"
#include "tressel/runtime/Package.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::runtime {

/// "sm_90" is code for cards of compute capability 9.0 and later; "sm_90a" for those of 9.0 alone, with instructions that others lack.
struct GpuArchitecture {
  int number = 0; ///< 90; 0: the text names no architecture
  bool isSpecific = false;

  static GpuArchitecture of(std::string_view name) {
    GpuArchitecture architecture;
    if (!name.starts_with("sm_"))
      return architecture;
    name.remove_prefix(3);
    if (name.ends_with('a'))
      architecture.isSpecific = true, name.remove_suffix(1);
    for (const char digit : name)
      architecture.number = digit < '0' || digit > '9' || architecture.number > 999 ? 0 : 10 * architecture.number + (digit - '0');
    return architecture;
  }
  /// Whether a card of a compute capability runs such code.
  bool runsOn(int card) const { return number && (isSpecific ? card == number : card >= number); }
};

/// For one architecture, as one module. The entry of a kernel has the name KernelDesc::symbol.
struct GpuCode {
  std::string arch; ///< "sm_90", "sm_90a"
  std::string ptx;
  std::vector<std::byte> cubin; ///< machine code for this architecture alone; empty where nothing assembled the PTX
  std::string assembler;        ///< that did: "nvJitLink 13.0"
  /// What it said of a kernel.
  struct Kernel {
    std::string symbol;
    int registers = 0;                       ///< per thread
    int64_t spillStores = 0, spillLoads = 0; ///< bytes
    int64_t stackBytes = 0, sharedBytes = 0;
  };
  std::vector<Kernel> kernels;
};

/// Whether kernels of the program run on GPUs.
bool needsGpu(const Schedule &schedule);

/// A card of this computer, as the driver tells of it.
struct GpuCard {
  std::string name;         ///< "NVIDIA H100 80GB HBM3"
  std::string architecture; ///< "sm_90"
  int64_t memoryBytes = 0;
  int multiprocessors = 0;
  int cudaVersion = 0; ///< of the driver: 13000 for CUDA 13.0
};
/// gpu0, gpu1, ... of the machine "cuda". None where there is no card or no driver that serves; `why` then says what is missing. Throws
/// RuntimeError when the driver refuses to work.
std::vector<GpuCard> gpuCards(std::string *why = nullptr);
/// One of NVIDIA's libraries, as the loader finds it.
struct GpuLibrary {
  std::string name;    ///< "cuBLASLt"
  std::string version; ///< "13.1.0"; empty where it is not found
  std::string file;    ///< "libcublasLt.so.13"
};
/// cuBLASLt, cuDNN, NCCL and nvJitLink, which this opens. Throws InputError where the machine "cuda" is not installed.
std::vector<GpuLibrary> gpuLibraries();
/// Whether a machine's accelerators are cards that run them; others run functions of this process.
bool runsGpuCode(const Machine &machine);

/// The entries of a package for such code. `storage` keeps what the result points to.
std::vector<PackageState> gpuSections(const std::vector<GpuCode> &codes, std::vector<std::vector<std::byte>> &storage);
/// What a package holds of it. Throws InputError when damaged.
std::vector<GpuCode> gpuCodeOf(const Package &package);

} // namespace tressel::runtime
