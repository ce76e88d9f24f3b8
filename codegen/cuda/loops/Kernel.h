// A kernel for a GPU: what a launch must know of it, and the code that it will have.
//
// All kernels have one calling convention. Parameters: a pointer for each operand of the launch (inputs, then results),
// in the order of KernelDesc; the values of the launch's scalars, an i64 each; a pointer to an i32 in global memory, 0
// before the launch, where a kernel that fails writes its runtime::KernelStatus; tensor maps, if it has any. Blocks and
// threads are numbered in one dimension. Shared memory is static. Pointers are aligned to 64 bytes. A result may lie on
// an operand that is read point by point: each thread reads what it overwrites before it writes.
#pragma once

#include "tressel/runtime/Size.h"
#include "tressel/runtime/Types.h"

#include "codegen/cuda/target/Arch.h"

#include "llvm/IR/Module.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tressel::codegen::cuda {

/// A part of an operand as a card copies it to shared memory: a tensor map (runtime/cuda/GpuKernel.h). The first
/// dimension is that of neighbours; `strides`, of elements, are those of the others.
struct TensorMapForm {
  int32_t operand = 0; ///< of the launch
  DType type = DType::f16;
  std::vector<Size> sizes, strides;
  std::vector<int64_t> box;
};

struct Kernel {
  std::string symbol;
  int numBuffers = 0;
  std::vector<Size> symbols;    ///< whose values the scalars are, in this order
  int threads = 128;            ///< per block: a multiple of 32, at most 1024
  Size blocks = 1;              ///< 0: the launch does nothing. At most 2^31 - 1
  double seconds = 0;           ///< predicted for the architecture's typical card, without the launch
  bool joins = false;           ///< its loops may be a nest of a kernel of several: no thread waits for another
  std::string text;             ///< canonical: equal texts are equal code, but for the symbol
  /// Adds the function `symbol` to a module, with what it needs. May be called several times.
  std::function<void(llvm::Module &)> emit;

  /// Of a kernel that not all architectures run: the one whose code it needs ("sm_90a"; "sm_90" and later), the shared
  /// memory that its launch asks for, its tensor maps, how many neighbouring blocks are a cluster (at most 8; `blocks`
  /// is a multiple of it), and the kernel that all others run.
  std::string arch;
  int64_t sharedBytes = 0;
  std::vector<TensorMapForm> maps;
  Size cluster = 1;
  std::shared_ptr<const Kernel> portable;

  /// As it is for an architecture.
  const Kernel &formFor(const Arch &target) const {
    return portable && !target.runs(findArch(arch)) ? *portable : *this;
  }
};

/// Begins a kernel: the function with its parameters named (b0, ..., s0, ..., status, map0, ...), calling convention
/// and attributes (the number of threads; operands are noalias only where the caller adds that). Its f32 arithmetic
/// flushes subnormal numbers.
llvm::Function *declareKernel(llvm::Module &module, const Kernel &kernel);
/// KernelDesc::params of a kernel: {"threads":128,"operands":3,"scalars":0}, and {..., "symbols":["n"],
/// "library":{...}} if a library (Library.h) is to run it where it is there: symbols are those whose values the scalars
/// are, if there are any. The range is the number of blocks. A kernel for one architecture alone has more
/// (runtime/cuda/GpuKernel.h).
std::string launchParams(const Kernel &kernel, const std::string &library = {});

/// The same kernel, which keeps them.
Kernel keepingSubnormals(Kernel kernel);
void keepSubnormals(llvm::Function &kernel);
bool flushesSubnormals(const llvm::Function &kernel);

} // namespace tressel::codegen::cuda
