// Loop plans as GPU kernels: elementwise work, reductions along rows and columns, norms and softmax in one pass,
// transposes, gathers. The plans are those of the CPU (codegen/loops/LoopPlan.h), and so are the scalar functions.
#pragma once

#include "codegen/cuda/loops/Kernel.h"
#include "codegen/loops/KernelParts.h"
#include "codegen/loops/KernelSignature.h"

#include <optional>

namespace tressel::codegen::cuda {

/// What a kernel is told instead of choosing it by cost; 0: chosen.
struct LoopTuning {
  int threads = 0;       ///< per block
  int threadsPerRow = 0; ///< of a reduction: 1, a part of a warp, a warp, or a block
  int vector = 0;        ///< elements per thread and access
  bool aligned = true;   ///< false: buffers are aligned to their elements only (a step's part of what a loop walks over)
  bool operator==(const LoopTuning &) const = default;
};

/// `signature.rows` is not used. Every plan has a kernel.
Kernel makeLoopKernel(const LoopPlan &plan, const KernelSignature &signature, int numBuffers, const Arch &arch,
                      const LoopTuning &tuning = {});

/// A kernel of several nests, of known sizes. Nothing if the threads of a block wait for each other in one of them, as
/// they do for sums.
std::optional<Kernel> makePartsKernel(const std::string &symbol, const std::vector<KernelPart> &parts, int numBuffers,
                                      const Arch &arch);

/// What a kernel of the device library does with each element of its result:
///
///   void tressel_epilogue(void *const *context, float value, int64_t index)
///
/// `context` holds the launch's buffers, then its scalars, then the pointer to its status, 8 bytes each; `index` counts
/// elements of the root's result, row-major. The value is rounded to the root's type, as if it had been stored, then
/// `plan` (point-parallel over the root's result, whose input `rootInput` is the value) is computed and its results are
/// stored. Without a plan the value is stored in buffer `rootBuffer` of the launch.
struct Epilogue {
  const LoopPlan *plan = nullptr;
  KernelSignature signature; ///< operands: of the plan's buffers, the launch's
  int rootInput = -1;        ///< with a plan: the plan's input that is the root's value
  int rootBuffer = -1;       ///< the launch's buffer that gets the value itself; without a plan there is one
  DType type = DType::f32;   ///< of the root
  int numBuffers = 0;        ///< of the launch
};
llvm::Function *emitEpilogue(llvm::Module &module, const Epilogue &epilogue,
                             const std::string &name = "tressel_epilogue");

} // namespace tressel::codegen::cuda
