// Convolutions of the row conv.geomean, and the library they are compared with.
#pragma once

#include "Bench.h"

#include <compare>

namespace tressel::bench {

/// One image of `size` x `size` pixels (or `size` high and `width` wide), a square window, padded by half of it.
struct ConvolutionShape {
  int64_t inChannels, outChannels, size, window, stride, groups = 1, width = 0;
  int64_t high() const { return size; }
  int64_t wide() const { return width ? width : size; }
  int64_t out(int64_t pixels) const { return (pixels + window / 2 * 2 - window) / stride + 1; }
  int64_t outHigh() const { return out(high()); }
  int64_t outWide() const { return out(wide()); }
  auto operator<=>(const ConvolutionShape &) const = default;
};
/// The different convolutions of ResNet-50 at 224 x 224 pixels.
inline std::vector<ConvolutionShape> convolutionShapes() {
  return {{3, 64, 224, 7, 2},     {64, 64, 56, 1, 1},    {64, 64, 56, 3, 1},    {64, 256, 56, 1, 1},
          {256, 64, 56, 1, 1},    {256, 128, 56, 1, 1},  {128, 128, 56, 3, 2},  {128, 512, 28, 1, 1},
          {256, 512, 56, 1, 2},   {512, 128, 28, 1, 1},  {128, 128, 28, 3, 1},  {512, 256, 28, 1, 1},
          {256, 256, 28, 3, 2},   {256, 1024, 14, 1, 1}, {512, 1024, 28, 1, 2}, {1024, 256, 14, 1, 1},
          {256, 256, 14, 3, 1},   {1024, 512, 14, 1, 1}, {512, 512, 14, 3, 2},  {512, 2048, 7, 1, 1},
          {1024, 2048, 14, 1, 2}, {2048, 512, 7, 1, 1},  {512, 512, 7, 3, 1}};
}

/// Those of them that Winograd's method computes: 3 x 3 windows without stride.
inline std::vector<ConvolutionShape> winogradShapes() {
  std::vector<ConvolutionShape> shapes = convolutionShapes();
  std::erase_if(shapes, [](const ConvolutionShape &s) { return s.window != 3 || s.stride != 1; });
  return shapes;
}

/// 60 of other models, as they come there: depthwise and grouped windows, few channels in or out, strides, small and
/// wide images, of MobileNet v2 and v3, EfficientNet-B0, ShuffleNet v2, LeNet, U-Net, YOLO v5n, SqueezeNet,
/// DenseNet-121, text detectors and readers, and keyword spotters.
std::vector<ConvolutionShape> wideShapes();

/// Floating-point operations of ResNet-50 for one image of 224 x 224 pixels.
double resnet50Flops();

/// How often a convolution is repeated for one figure, in seconds.
inline constexpr double kConvolutionSeconds = 16e-3;

/// One of oneDNN's direct convolutions at its best: image, weights and result in the layouts it asks for, nothing
/// copied while it is timed. Of f32, or of bf16. Prepared once per shape; a process asks for one type.
const LibraryCall &libraryConvolution(const ConvolutionShape &shape, bool bf16 = false);

} // namespace tressel::bench
