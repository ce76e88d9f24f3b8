// The root of a kernel, a product or a convolution, with what follows it, and ops that are a kernel by themselves: as
// the device library and NVIDIA's libraries see them.
#pragma once

#include "codegen/cuda/library/LibraryKernels.h"
#include "codegen/cuda/loops/KernelSource.h"

#include <memory>
#include <optional>

namespace tressel::codegen::cuda {

struct Root {
  std::optional<MatrixProduct> product; ///< one of the two
  std::optional<Convolution> convolution;
  DType type = DType::f32;
  RootBuffers buffers;
  int32_t result = -1;                  ///< the launch's buffer of the first result
  std::shared_ptr<const LoopPlan> tail; ///< what `epilogue` names; null: nothing follows
  Epilogue epilogue;

  double flops() const; ///< typically
  /// Nothing if the root is neither, an operand of it is a constant, or what follows is not point by point.
  static std::optional<Root> of(const KernelBody &body);
};

/// A kernel of one op that names it by a KernelForm: attention, sorts.
struct FormCall {
  op::KernelForm form;
  std::vector<TensorType> types; ///< of the op's operands, then its results
  std::vector<int32_t> buffers;  ///< the launch's, of the same; -1: a result that is not used

  /// Nothing if it is another kernel, or an operand is a constant.
  static std::optional<FormCall> of(const KernelBody &body);
};

} // namespace tressel::codegen::cuda
