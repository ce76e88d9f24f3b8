// GPU kernels on the CPU: each thread of a block is a fibre, shared memory and barriers are real, shuffles and matrix
// instructions are computed for a warp together. The code is what the PTX is made of, after all optimizations, with the
// GPU's intrinsics replaced.
//
// Accesses to shared memory are watched: two threads that touch a byte, one of them writing, without a barrier between
// them, are a race, which fails the launch with both places.
#pragma once

#include "codegen/cuda/loops/Kernel.h"
#include "tressel/runtime/Kernel.h"

#include <memory>
#include <span>
#include <string>

namespace tressel::codegen::cuda {

class EmulatedModule {
public:
  /// From an optimized module (Target::optimize), which is only read. Throws Error naming an instruction that is not
  /// emulated.
  static std::shared_ptr<EmulatedModule> create(const llvm::Module &module);
  virtual ~EmulatedModule() = default;

  struct Launch {
    std::string symbol;
    int threads = 128; ///< per block
    std::span<void *const> buffers;
    std::span<const int64_t> scalars;
    /// The sizes of the buffers, if they are known: accesses outside of them are errors then.
    std::span<const int64_t> bytes = {};
    /// With sizes: two threads of the blocks that one call of run() does which touch a byte of a buffer, one of them
    /// writing, with nothing that orders them, are an error. For kernels with fences or acquiring atomics this is seen
    /// within a block only.
    bool watchBuffers = false;
    int64_t cluster = 1; ///< so many neighbouring blocks are a cluster
  };
  /// Runs blocks [begin, end) of `blocks` one after the other in the caller's thread; clusters as a whole, if they
  /// begin there. Returns the kernel's status. Throws Error for races, for barriers that not all threads reach, and for
  /// accesses outside of shared memory. Thread-safe.
  virtual int32_t run(const Launch &launch, int64_t begin, int64_t end, int64_t blocks) const = 0;
};

} // namespace tressel::codegen::cuda
