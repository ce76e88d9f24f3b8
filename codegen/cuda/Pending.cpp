// What is being written: weak, so that the real one takes over where it is linked.
#include "codegen/cuda/Device.h"
#include "tressel/runtime/Error.h"

namespace tressel::codegen::cuda {

[[gnu::weak]] std::optional<Kernel> makePrebuiltKernel(const std::string &, const op::KernelForm &, const std::vector<TensorType> &,
                                                       const std::vector<int32_t> &, int, const std::vector<int64_t> &, const Arch &) {
  return std::nullopt;
}

} // namespace tressel::codegen::cuda
