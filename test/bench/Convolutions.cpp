#include "Convolutions.h"
#include "Packaged.h"
#include "Values.h"

#include <dnnl.hpp>

#include <map>

namespace tressel::bench {

namespace {

using dnnl::memory;

LibraryCall prepare(const ConvolutionShape &s, memory::data_type type) {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  using Tag = memory::format_tag;
  const int64_t pad = s.window / 2, out = s.outChannels / s.groups, in = s.inChannels / s.groups;
  const memory::dims image{1, s.inChannels, s.high(), s.wide()}, result{1, s.outChannels, s.outHigh(), s.outWide()};
  const memory::dims window = s.groups == 1 ? memory::dims{s.outChannels, s.inChannels, s.window, s.window}
                                            : memory::dims{s.groups, out, in, s.window, s.window};
  auto any = [&](const memory::dims &dims) { return memory::desc(dims, type, Tag::any); };
  const dnnl::convolution_forward::primitive_desc best(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, any(image), any(window), any(result),
       memory::dims{s.stride, s.stride}, memory::dims{pad, pad}, memory::dims{pad, pad}},
      engine);
  auto copied = [&](memory from, const memory::desc &to) {
    memory made(to, engine);
    dnnl::reorder(from, made).execute(stream, from, made);
    stream.wait();
    return made;
  };
  const DType ours = type == memory::data_type::f32 ? f32 : bf16;
  const memory pixels(memory::desc(image, type, Tag::nhwc), engine),
      weights(memory::desc(window, memory::data_type::f32, s.groups == 1 ? Tag::oihw : Tag::goihw), engine);
  fillValues(pixels.get_data_handle(), {ours, {s.high(), s.wide(), s.inChannels}}, seedOf("a"));
  fillWeights(static_cast<float *>(weights.get_data_handle()), s.outChannels * in * s.window * s.window,
              in * s.window * s.window);
  const memory x = copied(pixels, best.src_desc()), w = copied(weights, best.weights_desc()),
               y(best.dst_desc(), engine);
  auto run = [=, call = dnnl::convolution_forward(best)] {
    call.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}});
    stream.wait();
  };
  return {[=] { return secondsPerCall(run, kConvolutionSeconds); },
          [=] {
            run();
            const memory plain = copied(y, memory::desc(result, type, Tag::nhwc));
            return asFloats(plain.get_data_handle(), {ours, {s.outHigh(), s.outWide(), s.outChannels}});
          }};
}

} // namespace

std::vector<ConvolutionShape> wideShapes() {
  return {
      // MobileNet v2 and v3, EfficientNet-B0: depthwise windows of 3 and 5, and the narrow 1x1 around them
      {3, 32, 224, 3, 2},
      {32, 32, 112, 3, 1, 32},
      {32, 16, 112, 1, 1},
      {16, 96, 112, 1, 1},
      {96, 96, 112, 3, 2, 96},
      {96, 24, 56, 1, 1},
      {144, 144, 56, 3, 1, 144},
      {144, 32, 28, 1, 1},
      {192, 192, 28, 3, 2, 192},
      {384, 384, 14, 3, 1, 384},
      {384, 96, 14, 1, 1},
      {960, 960, 7, 3, 1, 960},
      {960, 160, 7, 1, 1},
      {320, 1280, 7, 1, 1},
      {3, 16, 224, 3, 2},
      {16, 16, 112, 3, 2, 16},
      {72, 72, 56, 5, 2, 72},
      {120, 120, 28, 5, 1, 120},
      {240, 240, 28, 5, 2, 240},
      {240, 240, 14, 5, 1, 240},
      {672, 672, 14, 5, 2, 672},
      {1152, 1152, 7, 5, 1, 1152},
      {40, 240, 28, 1, 1},
      {80, 200, 14, 1, 1},
      // ShuffleNet v2 and SqueezeNet
      {3, 24, 224, 3, 2},
      {58, 58, 28, 3, 1, 58},
      {58, 58, 28, 1, 1},
      {116, 116, 28, 3, 2, 116},
      {232, 232, 7, 1, 1},
      {96, 16, 54, 1, 1},
      {16, 64, 54, 1, 1},
      {16, 64, 54, 3, 1},
      {48, 192, 27, 3, 1},
      // Grouped: ResNeXt
      {128, 128, 56, 3, 1, 32},
      {256, 256, 28, 3, 2, 32},
      {512, 512, 14, 3, 1, 32},
      // LeNet, DenseNet-121, U-Net, a detector
      {1, 6, 28, 5, 1},
      {6, 16, 14, 5, 1},
      {128, 32, 56, 3, 1},
      {64, 128, 56, 1, 1},
      {928, 128, 14, 1, 1},
      {1, 64, 128, 3, 1},
      {64, 64, 128, 3, 1},
      {64, 2, 128, 1, 1},
      {3, 16, 320, 5, 2},
      {16, 32, 160, 3, 2},
      {32, 16, 80, 1, 1},
      {128, 255, 40, 1, 1},
      {256, 18, 13, 1, 1},
      // Text: detectors of high images, readers of wide ones
      {3, 8, 320, 3, 2},
      {8, 8, 160, 3, 1, 8},
      {96, 24, 80, 3, 1},
      {24, 24, 160, 3, 1},
      {3, 32, 48, 3, 2, 1, 320},
      {32, 64, 24, 3, 1, 1, 160},
      {240, 240, 6, 5, 1, 240, 160},
      {480, 60, 3, 1, 1, 1, 80},
      // Sound: spectrograms with one channel and few bands
      {1, 24, 76, 3, 1, 1, 32},
      {24, 24, 38, 3, 1, 1, 16},
      {1, 32, 49, 3, 2, 1, 10},
  };
}

double resnet50Flops() {
  double products = 2048 * 1000;
  // How often each of convolutionShapes() occurs.
  const int counts[] = {1, 1, 3, 4, 2, 1, 1, 4, 1, 3, 3, 1, 1, 6, 1, 5, 5, 1, 1, 3, 1, 2, 2};
  const std::vector<ConvolutionShape> shapes = convolutionShapes();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const ConvolutionShape &s = shapes[i];
    products += static_cast<double>(counts[i] * s.inChannels * s.window * s.window) *
                static_cast<double>(s.outChannels * s.outHigh() * s.outWide());
  }
  return 2 * products;
}

const LibraryCall &libraryConvolution(const ConvolutionShape &shape, bool bf16) {
  static std::map<ConvolutionShape, LibraryCall> calls;
  auto found = calls.find(shape);
  if (found == calls.end())
    found = calls.emplace(shape, prepare(shape, bf16 ? memory::data_type::bf16 : memory::data_type::f32)).first;
  return found->second;
}

} // namespace tressel::bench
