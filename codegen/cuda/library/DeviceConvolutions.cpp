// Which kernel of the device library does a convolution, by predicted time.
#include "codegen/cuda/library/LibraryKernels.h"
#include "codegen/cuda/library/DeviceKernel.h"
#include "codegen/cuda/library/DeviceTiles.h"

namespace tressel::codegen::cuda {

std::optional<Kernel> makeConvolutionKernel(const std::string &symbol, const Convolution &c, DType type,
                                            const RootBuffers &buffers, const Epilogue &epilogue,
                                            const std::vector<Size> &symbols, const Arch &arch,
                                            std::string_view wanted) {
  if ((type != f32 && type != f16 && type != bf16) || c.in.empty() || c.in.size() > 3)
    return std::nullopt;
  const int64_t in = c.inChannels / c.groups, out = c.outChannels / c.groups;
  int64_t depth = in;
  for (int64_t n : c.window)
    depth *= n;
  // Most of a tile would be empty: such convolutions read each element for a few operations, which loops do as well.
  if (wanted.empty() && (out < 8 || depth < 8))
    return std::nullopt;
  // Space as three dimensions.
  std::array<Size, 3> size{1, 1, 1}, window{1, 1, 1}, places{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{};
  const size_t lead = 3 - c.in.size();
  for (size_t d = 0; d < c.in.size(); ++d) {
    size[lead + d] = c.in[d], window[lead + d] = c.window[d], places[lead + d] = c.out[d];
    stride[lead + d] = c.strides[d], dilation[lead + d] = c.dilations[d], pad[lead + d] = c.padLow[d];
  }
  Size points = c.batch;
  for (Size n : places)
    points *= n;
  const int64_t vector = 16 / sizeOf(type);
  DeviceCall call{.buffers = {buffers.left, buffers.right}, .constant = {buffers.left, buffers.right}};
  call.params = {c.batch, c.groups, in, out};
  for (const auto &list : {size, window, places, stride, dilation, pad})
    call.params.insert(call.params.end(), list.begin(), list.end());
  // Rows beyond the last one are counted too, up to a tile's.
  call.params.push_back(int(dim::bounds(points).hi < (int64_t(1) << 31) - 256));
  call.params.push_back(int(c.channelsLast && in % vector == 0));
  call.params.push_back(int(!c.channelsLast && depth % vector == 0));
  Size perImage = c.inChannels;
  for (Size n : c.in)
    perImage *= n;
  call.params.push_back(int(dim::bounds(perImage).hi < (int64_t(1) << 31)));

  const Size rows = c.channelsLast ? points : out, columns = c.channelsLast ? out : points;
  double bytes = typical(points) * static_cast<double>(c.outChannels) + static_cast<double>(c.outChannels * depth);
  bytes = (bytes + typical(c.batch) * typical(perImage)) * static_cast<double>(sizeOf(type));
  Kernel kernel{.symbol = symbol, .numBuffers = epilogue.numBuffers, .symbols = symbols};
  const TileChoice best = chooseTile(tileShapes(type), rows, columns, depth, c.groups, bytes, arch, type, wanted);
  if (!best.tile)
    return std::nullopt;
  call.function = std::string("convolution_") + (c.channelsLast ? "last_" : "first_") + std::string(nameOf(type)) +
                  "_" + best.tile->name;
  kernel.threads = best.tile->threads, kernel.blocks = best.blocks;
  kernel.seconds = 1.3 * best.seconds; // finding an element of a window costs more than loading it
  return makeDeviceKernel(std::move(kernel), std::move(call), &epilogue);
}

} // namespace tressel::codegen::cuda
