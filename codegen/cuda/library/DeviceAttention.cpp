#include "codegen/cuda/library/LibraryKernels.h"
#include "codegen/cuda/library/DeviceKernel.h"
#include "codegen/cuda/library/DeviceTiles.h"

#include <algorithm>

namespace tressel::codegen::cuda {

std::optional<Kernel> makeAttentionKernel(const std::string &symbol, const op::KernelForm &form,
                                          const std::vector<TensorType> &types, const std::vector<int32_t> &buffers,
                                          int numBuffers, const std::vector<Size> &symbols, const Arch &arch) {
  const DType type = types[0].dtype;
  const bool hasMask = form.params.size() > 8;
  const Size heads = form.params[0], queries = form.params[2], keys = form.params[3], size = form.params[4],
             width = form.params[5];
  if ((type != f32 && type != f16 && type != bf16) || types.size() != (hasMask ? 5u : 4u) || buffers.back() < 0)
    return std::nullopt;
  // Most of a block's queries would not be there: products of few rows do better.
  if (queries.isNumber() && queries < 8)
    return std::nullopt;
  DeviceCall call;
  int64_t columns = dim::bounds(width).hi <= 64 ? 64 : 128;
  if (type == f32) {
    call.function = "attention_f32_" + std::to_string(columns);
  } else {
    if (dim::bounds(size).hi > 128)
      return std::nullopt; // a block's keys would not fit into shared memory
    columns = dim::bounds(size).hi <= 64 ? columns : 128;
    call.function = "attention_" + std::string(nameOf(type)) + (columns == 64 ? "_64_64" : "_128_128");
  }
  call.params = form.params;
  if (!hasMask)
    call.params.insert(call.params.end(), {1, 1, 0});
  call.params.push_back(!hasMask ? 0 : types[3].dtype == DType::boolean ? 2 : 1);
  call.buffers = {buffers[0], buffers[1], buffers[2], hasMask ? buffers[3] : -1, buffers.back()};
  call.constant.assign(buffers.begin(), buffers.end() - 1);
  std::ranges::sort(call.constant);
  call.constant.erase(std::unique(call.constant.begin(), call.constant.end()), call.constant.end());

  constexpr int64_t rows = 64; // Attention.cpp
  Kernel kernel{.symbol = symbol, .numBuffers = numBuffers, .symbols = symbols, .threads = 128};
  kernel.blocks = heads * (dim::ceilDiv(queries, rows) * dim::ceilDiv(width, columns));
  if (!isLaunchable(kernel.blocks))
    return std::nullopt;
  double bytes = 0;
  for (const TensorType &t : types)
    bytes += typical(dim::bytes(t));
  const double seen = typical(keys) * (form.params[6] ? 0.5 : 1); // of the keys, by a query
  kernel.seconds =
      tiledSeconds({typical(kernel.blocks), static_cast<double>(rows), seen, typical(size) + typical(width),
                    type == f32 ? 16.0 : 64.0, type == f32 ? 0.45 : 0.35, bytes},
                   arch, type);
  return makeDeviceKernel(std::move(kernel), std::move(call));
}

} // namespace tressel::codegen::cuda
