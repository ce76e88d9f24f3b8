// The GPU architectures that code is generated for, and what their multiprocessors offer: from one table, never from
// what a user typed, as LLVM ends the process for combinations it does not know.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tressel::codegen::cuda {

struct Arch {
  std::string_view name;    ///< "sm_90": LLVM's processor and the assembler's architecture
  std::string_view card;    ///< the architecture of the cards: "sm_90" also of "sm_90a", whose code no others run
  std::string_view feature; ///< the PTX version that is written, as LLVM's feature: "+ptx80"
  int multiprocessors;      ///< of a typical card (tressel/runtime/MachineModel.h, machineOfArchitecture)
  int maxThreads;           ///< per multiprocessor
  int maxBlocks;            ///< per multiprocessor
  int registers;            ///< per multiprocessor, of 32 bits
  int64_t sharedBytes;      ///< per multiprocessor
  int clusterBlocks;        ///< that may be a cluster on all cards of the architecture; 1: it has none
  /// What multiplies matrices beyond a warp's own instructions, fed by copies of tensors.
  enum class Multiplier : uint8_t { None, Warpgroup /* wgmma: sm_90a */, Tensor /* tcgen05: sm_100a */ } multiplier;

  bool isSpecific() const { return name != card; }
  /// Whether it runs code for another one of the table.
  bool runs(const Arch &code) const;
  // Per block, on all of them: 1024 threads, 255 registers a thread, 48 KiB of shared memory that need not be asked
  // for.
};
inline constexpr int kMaxBlockThreads = 1024, kWarp = 32;
inline constexpr int64_t kMaxStaticShared = 48 << 10;

/// Those whose code later cards run too.
std::span<const Arch> architectures();
/// One of them, or one whose code runs on its own cards alone ("sm_90a"). Throws Error, naming those there are.
const Arch &findArch(std::string_view name);

} // namespace tressel::codegen::cuda
