// One op as one kernel over symbolic sizes, without MLIR and without a pipeline: what runs an op that is called
// imperatively. The same function serves the process that meets an op nobody compiled yet and the build step that
// compiles the common ones ahead.
//
//   Size n = dim::symbol("s0");
//   OpCall call{&op::table::add, {{f32, {n}}, {f32, {}}}, {}, {n}};
//   if (auto kernel = planOpKernel(call))
//     auto image = Image::load(compileOpKernels({&*kernel, 1}));       // image->find(kernel->symbol)
//
// Not every op is one kernel: products and convolutions belong to libraries, some composites are several loop nests.
// Those give nothing here and run as programs.
#pragma once

#include "codegen/ObjectCache.h"
#include "ir/op/OpInfo.h"
#include "tressel/runtime/FloatMode.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tressel::codegen {

struct KernelSource;

/// A call of an op whose sizes are numbers or symbols.
struct OpCall {
  const op::OpInfo *op = nullptr;
  std::vector<TensorType> operands;
  op::Attrs attrs;              ///< complete
  std::vector<Size> symbols;    ///< all that occur; a launch's scalars are their values, in this order

  /// "add f32[s0] f32[]": the same in every process. Equal texts are equal kernels.
  std::string str() const;
  /// Of the image that holds its kernel: a hash of the text.
  std::string symbol() const;
};

struct OpKernel {
  std::shared_ptr<const KernelSource> source;
  std::string symbol;
  std::vector<TensorType> results; ///< sizes are expressions over the call's symbols
  Size range = 1;                  ///< units of work
  Size points = 1;                 ///< of the loop nest
  runtime::FloatMode floats = runtime::FloatMode::Any; ///< in which its code runs
  double nsPerPoint = 0;           ///< predicted, on one thread
};

/// Operands in order, then results, are the kernel's buffers. Nothing if the op is not one kernel, or not for these
/// sizes. `cpu` as in CompileOptions.
std::optional<OpKernel> planOpKernel(const OpCall &call, const std::string &cpu = "native");

/// A linked, import-free image. Kernels were planned for the same `cpu`. `cache`: of objects on disk; may be null.
/// Throws InternalError.
std::vector<std::byte> compileOpKernels(std::span<const OpKernel> kernels, const std::string &cpu = "native",
                                        ObjectCache *cache = ObjectCache::ofUser());

} // namespace tressel::codegen
