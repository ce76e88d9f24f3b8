// From ops of the graph dialect to kernels for GPUs: what the providers bid with, and what is compiled in the end.
#pragma once

#include "codegen/cuda/loops/Kernel.h"
#include "codegen/cuda/tuning/Tunings.h"
#include "ir/graph/Structure.h"
#include "passes/cluster/KernelProvider.h"

#include "mlir/IR/Operation.h"

#include <optional>

namespace tressel::codegen::cuda {

/// Ops that are to be one kernel, in program order. Buffers of the launch: `inputs`, then `results`.
struct KernelBody {
  std::string symbol;
  llvm::ArrayRef<mlir::Operation *> ops;
  llvm::ArrayRef<mlir::Value> inputs, results;
  /// So many of `ops` are the root of the device library, which the others follow point by point. 0: there is none.
  size_t rootOps = 0;
  std::vector<Size> symbols; ///< of the sizes
};

/// The generated loops for all of a body, if it is one nest.
std::optional<Kernel> planLoops(const KernelBody &body, const Arch &arch);
struct RootKernel {
  Kernel kernel;
  bool takesEpilogue = false;
};
/// How much longer NVIDIA's library was measured to take for a root than the kernel that is made otherwise, and what
/// that is predicted to take. Nothing where it was not measured.
struct LibraryTuning {
  double timesKernel, kernelSeconds;
};
std::optional<LibraryTuning> libraryTuning(const KernelBody &body, const Arch &arch);
/// The device library's kernel for the root, with generated code for what follows it.
std::optional<RootKernel> planRoot(const KernelBody &body, const Arch &arch);

/// As the providers see it, under a name that means nothing.
KernelBody bodyOf(const passes::Candidate &candidate);

struct MadeKernel {
  Kernel kernel;
  std::string library; ///< the call of a library (Library.h) that the kernel stands in for; may be empty
};
/// What an outlined kernel becomes whose provider is one of this folder's (Provider.h). Throws InternalError if there
/// is none.
MadeKernel makeKernel(graph::KernelOp kernel, const Arch &arch);

/// A way to make a kernel.
struct Variant {
  Cut cut;
  Kernel kernel;                       ///< as the cost model and tunings know it
  std::optional<Kernel> measured = {}; ///< that is to run, where it is not the same
  std::string library = {};            ///< the call of NVIDIA's library that runs instead where that is there
  const Kernel &code() const { return measured ? *measured : kernel; }
};
/// What an outlined kernel could become, the cost model's choice first, then at most `most` in all, by predicted time:
/// loops cut in several ways, and of a product or convolution the tiles; last, beyond `most`, NVIDIA's library if it
/// takes the call. Each has a symbol of its own. Empty where there is no choice.
std::vector<Variant> variantsOf(graph::KernelOp kernel, const Arch &arch, size_t most);

} // namespace tressel::codegen::cuda
