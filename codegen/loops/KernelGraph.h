// The ops of one kernel with their loop forms: what a loop plan is made from. No MLIR here, so that kernels for tests
// and for the eager path can be described directly.
#pragma once

#include "ir/op/LoopForm.h"

#include <string>
#include <vector>

namespace tressel::codegen {

/// Values are numbered; the kernel's operands are `inputs`, then `results`, in this order.
struct KernelGraph {
  struct Op {
    op::LoopForm form;
    std::vector<int32_t> operands;
    int32_t result = -1;
  };
  /// A scalar or splat constant, an immediate of the code.
  struct Splat {
    int32_t value = -1;
    double f = 0;  ///< float types
    int64_t i = 0; ///< integers and bool
  };
  std::vector<TensorType> types; ///< one per value, of known or symbolic sizes
  std::vector<int32_t> inputs;
  std::vector<Op> ops; ///< producers before users
  std::vector<Splat> splats;
  std::vector<int32_t> results;
  bool keepSubnormals = false; ///< of f32
  bool deterministic = false;  ///< LoopPlan::deterministic

  int32_t addValue(const TensorType &type) {
    types.push_back(type);
    return static_cast<int32_t>(types.size()) - 1;
  }
};

} // namespace tressel::codegen
