// The root of a kernel, a product or a convolution, with what follows it: as the device library and NVIDIA's libraries
// see it.
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

} // namespace tressel::codegen::cuda
