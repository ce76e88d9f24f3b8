// Convolutions against plain loops.
#include "Kernels.h"
#include "runtime/kernels/ConvolutionKernel.h"
#include "runtime/kernels/ConvolutionParams.h"
#include "tressel/runtime/Error.h"

#include <cstring>
#include <thread>

namespace tressel::kernels::test {
namespace {

class Convolutions : public ::testing::TestWithParam<Level> {};
INSTANTIATE_TEST_SUITE_P(Levels, Convolutions, ::testing::ValuesIn(levelsAndTiles()),
                         [](const auto &info) { return nameOf(info.param); });

runtime::KernelDesc describe(const ConvolutionParams &p, const std::string &text, int32_t numInputs) {
  runtime::KernelDesc desc;
  desc.symbol = "test", desc.provider = "builtin", desc.params = text, desc.numInputs = numInputs;
  desc.scratchBytes = p.scratchBytes();
  return desc;
}

runtime::LoadedKernel load(const ConvolutionParams &p, const Level &level) {
  return makeConvolution(describe(p, p.text(), p.packed >= 0 ? 3 : 2), Fields::parse(p.text()), level);
}

/// Images with the channels behind the pixels instead of before them.
std::vector<float> withChannelsLast(const std::vector<float> &images, int64_t channels, int64_t plane) {
  std::vector<float> turned(images.size());
  for (size_t i = 0; i < images.size(); ++i) {
    const auto at = static_cast<int64_t>(i), image = at / (channels * plane), channel = at / plane % channels;
    turned[static_cast<size_t>((image * plane + at % plane) * channels + channel)] = images[i];
  }
  return turned;
}

/// What is summed into one element, pixel by pixel.
double expected(const ConvolutionShape &s, const float *image, const float *weights, int64_t channel,
                const int64_t (&at)[3]) {
  const int64_t channels = s.inChannels / s.groups, group = channel / (s.outChannels / s.groups);
  double sum = 0;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t tap = 0; tap < tapsOf(s); ++tap) {
      int64_t rest = tap, index = 0, step = 1;
      bool inside = true;
      for (int d = 2; d >= 0; --d) {
        const int64_t i = at[d] * s.stride[d] - s.pad[d] + rest % s.window[d] * s.dilation[d];
        inside = inside && i >= 0 && i < s.in[d];
        index += i * step;
        step *= s.in[d], rest /= s.window[d];
      }
      if (inside)
        sum += double(image[(group * channels + c) * inPlaneOf(s) + index]) *
               weights[(channel * channels + c) * tapsOf(s) + tap];
    }
  return sum;
}

/// Operands of numbers, and what the result must be, channels first.
struct Case {
  std::vector<float> image, weights;
  std::vector<double> result;

  explicit Case(const ConvolutionCallSizes<int64_t> &p)
      : image(randomValues(p.batch * p.shape.inChannels * inPlaneOf(p.shape), 1)),
        weights(randomValues(p.shape.outChannels * depthOf(p.shape), 2)) {
    const ConvolutionShape &s = p.shape;
    for (int64_t i = 0; i < p.batch; ++i)
      for (int64_t c = 0; c < s.outChannels; ++c)
        for (int64_t d = 0; d < s.out[0]; ++d)
          for (int64_t h = 0; h < s.out[1]; ++h)
            for (int64_t w = 0; w < s.out[2]; ++w)
              result.push_back(
                  expected(s, image.data() + i * s.inChannels * inPlaneOf(s), weights.data(), c, {d, h, w}));
  }
};

/// One call of `kernel`, which was made of `p`; `scalars` are the values of its symbols.
void call(const runtime::LoadedKernel &kernel, const ConvolutionParams &symbolic, const Case &values,
          const Level &level, const std::vector<int64_t> &scalars = {}, int64_t chunk = 1) {
  const ConvolutionCallSizes<int64_t> p = symbolic.at(scalars.data());
  const ConvolutionShape &s = p.shape;
  const auto elements = static_cast<int64_t>(values.result.size());
  // Numbers that all types hold exactly.
  Stored image(p.channelsLast ? withChannelsLast(values.image, s.inChannels, inPlaneOf(s)) : values.image, p.element),
      weights(values.weights, p.element);
  Memory x(static_cast<int64_t>(values.image.size()) * bytesOf(p.element)), result(elements * bytesOf(p.element)),
      packed(p.packed >= 0 ? symbolic.packedBytes() : 0);
  std::memcpy(x.get(), image.get(), values.image.size() * static_cast<size_t>(bytesOf(p.element)));
  std::vector<void *> buffers{x.get(), weights.get(), result.get()};
  if (p.packed >= 0) {
    run(makeConvolutionPack(describe(symbolic, symbolic.packText(), 1), Fields::parse(symbolic.packText()), level),
        {buffers[1], packed.get()}, 1, 1, 0);
    buffers.insert(buffers.begin() + 2, packed.get());
  }
  run(kernel, buffers, p.units(), chunk, symbolic.scratchBytes(), scalars);
  for (int64_t e = 0; e < elements; ++e) {
    const int64_t plane = outPlaneOf(s), pixel = e % plane, channel = e / plane % s.outChannels,
                  i = e / plane / s.outChannels;
    const double sum = values.result[static_cast<size_t>(e)];
    ASSERT_NEAR(result.at(p.channelsLast ? (i * plane + pixel) * s.outChannels + channel : e, p.element), sum,
                1e-5 * std::sqrt(double(depthOf(s))) + epsilonOf(p.element) * std::abs(sum))
        << symbolic.text() << " at " << i << " " << channel << " " << pixel;
  }
}

/// With channels first, then last, there in all types.
void check(ConvolutionParams p, const Level &level, int64_t chunk = 1, int64_t units = 4) {
  const Case values(p.at(nullptr));
  call(load(p, level), p, values, level, {}, chunk);
  p.channelsLast = true, p.rows = (p.pixels() + units - 1) / units, p.typicalRows = p.pixels().number();
  call(load(p, level), p, values, level, {}, chunk);
  if (isDepthwise(p.shape)) { // which have packed weights in this form only
    p.packed = 2;
    call(load(p, level), p, values, level, {}, chunk);
  }
  if (!isChannelwise(p.shape))
    for (Element element : {Element::F16, Element::BF16}) {
      p.element = element;
      call(load(p, level), p, values, level, {}, chunk);
    }
}

/// Sizes of the result for zeros before and after.
void setOut(ConvolutionSizes<Size> &s, int64_t padHigh) {
  for (int d = 0; d < 3; ++d)
    s.out[d] = dim::floorDiv(s.in[d] + (s.pad[d] ? s.pad[d] + padHigh : 0) - (s.dilation[d] * (s.window[d] - 1) + 1),
                             s.stride[d]) +
               1;
}

ConvolutionParams square(int64_t inChannels, int64_t outChannels, int64_t size, int64_t window, int64_t stride = 1,
                         int64_t groups = 1) {
  ConvolutionParams p;
  ConvolutionSizes<Size> &s = p.shape;
  s.inChannels = inChannels, s.outChannels = outChannels, s.groups = groups;
  for (int d : {1, 2})
    s.in[d] = size, s.window[d] = window, s.stride[d] = stride, s.pad[d] = window / 2;
  setOut(s, window / 2);
  return p;
}

TEST_P(Convolutions, LayersOfNetworks) {
  for (bool packed : {false, true})
    for (ConvolutionParams p :
         {square(3, 24, 40, 7, 2), square(64, 24, 14, 3), square(64, 20, 9, 1), square(48, 16, 7, 3),
          square(40, 16, 15, 3, 2), square(33, 9, 13, 1, 2), square(3, 8, 32, 16, 16), square(24, 24, 20, 3, 1, 24),
          square(10, 20, 21, 5, 2, 10), square(32, 32, 12, 3, 1, 4), square(1, 5, 17, 3), square(400, 8, 5, 1)}) {
      p.packed = packed && p.wantsPacked() ? 2 : -1;
      check(p, GetParam());
    }
}

/// Sizes for tiles, where there are some: depths of several blocks, pieces that fill no step, groups, ranges of channels.
TEST_P(Convolutions, ManyPixelsAndChannels) {
  for (ConvolutionParams p : {square(64, 64, 12, 3), square(70, 100, 11, 1), square(600, 50, 9, 1), square(96, 130, 18, 3, 2),
                              square(24, 128, 10, 5), square(128, 192, 9, 3, 1, 2), square(3, 128, 40, 7, 2)}) {
    p.packed = 2, p.batch = p.shape.inChannels == 64 ? 2 : 1;
    check(p, GetParam(), 2, 1);
  }
  ConvolutionParams ranges = square(64, 256, 9, 3);
  ranges.packed = 2, ranges.blocks = 4;
  check(ranges, GetParam(), 1, 1);
  ConvolutionParams units = square(64, 64, 30, 3);
  units.packed = 2;
  check(units, GetParam(), 3, 7);
}

/// Results that end in a vector of few pixels, sums that are too long for one pass.
TEST_P(Convolutions, FewPixelsLeft) {
  for (int64_t size : {3, 5, 7, 9})
    for (int64_t window : {1, 3}) {
      ConvolutionParams p = square(window == 1 ? 1300 : 150, 21, size, window);
      p.packed = 2;
      check(p, GetParam());
    }
}

/// Channels last: depths of several blocks, cut between pieces and inside them, whose tiles are masked at the end.
TEST_P(Convolutions, DeepSums) {
  for (ConvolutionParams p : {square(1300, 21, 3, 1), square(300, 37, 6, 3), square(1100, 130, 2, 2, 1, 2)})
    for (bool packed : {false, true}) {
      p.packed = packed ? 2 : -1;
      check(p, GetParam());
    }
}

/// Channels last: images of few channels, whose windows' rows reach over both edges of the image.
TEST_P(Convolutions, FewChannels) {
  for (int64_t channels : {1, 3, 4, 16}) {
    ConvolutionParams p = square(channels, 18, 6, 11, 1);
    p.batch = 2, p.packed = 2;
    check(p, GetParam());
    p = square(channels, 18, 70, 5, 3);
    p.packed = 2;
    check(p, GetParam(), 4);
  }
}

/// All settings at once, in one to three dimensions of space.
TEST_P(Convolutions, AnySettings) {
  std::mt19937 rng(3);
  auto pick = [&](int lo, int hi) {
    return static_cast<int64_t>(lo + static_cast<int>(rng() % static_cast<unsigned>(hi - lo + 1)));
  };
  for (int i = 0; i < 120; ++i) {
    ConvolutionParams p;
    ConvolutionSizes<Size> &s = p.shape;
    const int64_t form = pick(0, 3);
    s.groups = form == 0 ? pick(2, 6) : form == 1 ? pick(1, 3) : 1;
    s.inChannels = s.groups * (form == 0 ? 1 : pick(1, 14)), s.outChannels = s.groups * pick(1, form == 0 ? 2 : 20);
    for (int64_t d = pick(0, 2); d < 3; ++d) {
      s.window[d] = pick(1, 4), s.stride[d] = pick(1, 3), s.dilation[d] = pick(1, 2), s.pad[d] = pick(0, 3);
      s.in[d] = s.dilation[d] * (s.window[d] - 1) + 1 + pick(0, 11);
    }
    setOut(s, pick(0, 3));
    p.batch = pick(1, 2), p.packed = p.wantsPacked() && pick(0, 1) ? 2 : -1;
    check(p, GetParam());
  }
}

TEST_P(Convolutions, LongRows) {
  for (int64_t channels : {1, 3, 12}) {
    ConvolutionParams p;
    p.shape.inChannels = channels, p.shape.outChannels = 9, p.packed = 2;
    p.shape.in[2] = 2500, p.shape.window[2] = 31, p.shape.pad[2] = 15;
    setOut(p.shape, 15);
    check(p, GetParam());
    p.shape.stride[2] = 5, p.shape.dilation[2] = 3;
    setOut(p.shape, 15);
    check(p, GetParam());
  }
  ConvolutionParams depthwise;
  depthwise.shape.groups = depthwise.shape.inChannels = depthwise.shape.outChannels = 2;
  depthwise.shape.in[2] = 9000, depthwise.shape.window[2] = 9, depthwise.shape.stride[2] = 2;
  setOut(depthwise.shape, 0);
  check(depthwise, GetParam());
}

/// Rows of a few pixels, with vectors across channels: numbers of channels that fill no vector, bands of rows.
TEST_P(Convolutions, DepthwiseWithShortRows) {
  for (int64_t channels : {1, 2, 4, 5, 16, 21, 40})
    for (ConvolutionParams p :
         {square(channels, channels, 2, 3, 1, channels), square(channels, channels, 4, 5, 2, channels),
          square(channels, channels, 14, 5, 2, channels), square(channels, channels, 7, 2, 3, channels)}) {
      check(p, GetParam());
      p.blocks = channels % 5 == 0 ? 5 : 1;
      check(p, GetParam(), 2);
    }
  ConvolutionParams tall = square(18, 18, 5, 3, 1, 18);
  tall.shape.in[1] = 1000, tall.shape.dilation[1] = 2;
  setOut(tall.shape, 1);
  check(tall, GetParam());
}

/// Channels last: as many channels of the result as of the image in each group, so that groups share vectors.
TEST_P(Convolutions, NarrowGroups) {
  for (int64_t channels : {2, 4, 8})
    for (int64_t groups : {2, 5, 17})
      for (auto [size, window, stride] : {std::array<int64_t, 3>{9, 3, 1}, {11, 5, 2}, {6, 1, 1}})
        for (bool packed : {false, true}) {
          ConvolutionParams p = square(groups * channels, groups * channels, size, window, stride, groups);
          p.packed = packed ? 2 : -1, p.shape.dilation[2] = groups == 5 ? 2 : 1;
          setOut(p.shape, window / 2);
          check(p, GetParam());
        }
}

/// Windows whose copy is more than what is arranged at a time.
TEST_P(Convolutions, LargeWindows) {
  for (int64_t channels : {2, 9}) {
    ConvolutionParams p = square(channels, 3, 41, 39);
    for (int d : {1, 2})
      p.shape.pad[d] = 0;
    setOut(p.shape, 0);
    p.packed = 2;
    check(p, GetParam());
  }
  ConvolutionParams depthwise = square(2, 2, 92, 91, 1, 2);
  for (int d : {1, 2})
    depthwise.shape.pad[d] = 0;
  setOut(depthwise.shape, 0);
  check(depthwise, GetParam());
}

TEST_P(Convolutions, UnitsShareAnImage) {
  for (int64_t chunk : {1, 2, 3}) {
    for (bool packed : {false, true}) {
      ConvolutionParams p = square(20, 48, 10, 3);
      p.batch = 2, p.blocks = 3, p.packed = packed ? 2 : -1;
      check(p, GetParam(), chunk);
      p = square(24, 36, 10, 3, 1, 6);
      p.batch = 2, p.blocks = 3, p.packed = packed ? 2 : -1;
      check(p, GetParam(), chunk);
    }
    ConvolutionParams depthwise = square(5, 10, 10, 3, 1, 5);
    depthwise.blocks = 10; // halves of groups
    check(depthwise, GetParam(), chunk);
  }
}

TEST_P(Convolutions, SymbolicSizes) {
  const Size n = dim::symbol("n", 0), h = dim::symbol("h"), w = dim::symbol("w");
  for (int64_t groups : {1, 20}) {
    ConvolutionParams p = square(20, 20, 1, 3, 2, groups);
    p.batch = n, p.shape.in[1] = h, p.shape.in[2] = w * 2, p.symbols = {h, n, w};
    setOut(p.shape, 1);
    for (bool channelsLast : {false, true}) {
      p.channelsLast = channelsLast, p.rows = channelsLast ? 64 : 1, p.packed = p.wantsPacked() ? 2 : -1;
      const runtime::LoadedKernel kernel = load(p, GetParam());
      for (const std::vector<int64_t> &sizes :
           std::vector<std::vector<int64_t>>{{1, 1, 1}, {5, 2, 40}, {33, 1, 9}, {5, 2, 40}})
        call(kernel, p, Case(p.at(sizes.data())), GetParam(), sizes);
      // Nothing to do touches nothing.
      const std::vector<int64_t> none{5, 0, 5};
      runtime::KernelArgs args{nullptr, none.data(), nullptr, 0, kernel.state, 0, nullptr};
      std::vector<void *> buffers(4);
      args.buffers = buffers.data();
      EXPECT_EQ(kernel.fn(&args, 0, 1), runtime::kKernelOk);
    }
  }
}

TEST_P(Convolutions, ManyThreads) {
  ConvolutionParams p = square(20, 16, 12, 3);
  p.packed = 2;
  const Case values(p.at(nullptr));
  for (bool channelsLast : {false, true}) {
    p.channelsLast = channelsLast;
    const runtime::LoadedKernel kernel = load(p, GetParam());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] { call(kernel, p, values, GetParam()); });
    for (std::thread &thread : threads)
      thread.join();
  }
}

TEST(ConvolutionParameters, SurviveTheirText) {
  ConvolutionParams p = square(24, 36, 10, 3, 2, 6);
  p.batch = dim::symbol("n"), p.blocks = 3, p.packed = 2, p.symbols = {p.batch};
  EXPECT_EQ(ConvolutionParams::parse(Fields::parse(p.text()), false).text(), p.text());
  p.channelsLast = true, p.rows = p.pixels(), p.typicalRows = 50;
  EXPECT_EQ(ConvolutionParams::parse(Fields::parse(p.text()), false).text(), p.text());
  EXPECT_EQ(ConvolutionParams::parse(Fields::parse(p.packText()), true).packText(), p.packText());
}

TEST(ConvolutionParameters, DamageIsRefused) {
  ConvolutionParams p = square(24, 36, 10, 3, 1, 6);
  p.packed = 2;
  const std::string good = p.text();
  auto refused = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    const size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    text.replace(at, from.size(), to);
    EXPECT_THROW(makeConvolution(describe(p, text, 3), Fields::parse(text), runtime::CpuLevel::Baseline), InputError)
        << text;
  };
  refused("\"groups\":6", "\"groups\":5");
  refused("\"groups\":6", "\"groups\":0");
  refused("\"in_channels\":24", "\"in_channels\":25");
  refused("\"out_channels\":36", "\"out_channels\":-36");
  refused("\"window\":\"1;3;3\"", "\"window\":\"3;3\"");
  refused("\"window\":\"1;3;3\"", "\"window\":\"1;0;3\"");
  refused("\"window\":\"1;3;3\"", "\"window\":\"1;2000000000;2000000000\"");
  refused("\"window\":\"1;3;3\"", "\"window\":\"1;n;3\"");
  refused("\"dilations\":\"1;1;1\"", "\"dilations\":\"1;2000000000;2000000000\"");
  refused("\"strides\":\"1;1;1\"", "\"strides\":\"1;0;1\"");
  refused("\"dilations\":\"1;1;1\"", "\"dilations\":\"1;1;-1\"");
  refused("\"pads\":\"0;1;1\"", "\"pads\":\"0;-1;1\"");
  refused("\"in\":\"1;10;10\"", "\"in\":\"1;-10;10\"");
  refused("\"out\":\"1;10;10\"", "\"out\":\"1;10;99999999999\"");
  refused("\"blocks\":1", "\"blocks\":4");
  refused("\"blocks\":1", "\"blocks\":0");
  refused("\"packed\":2", "\"packed\":3");
  refused("\"rows\":1", "\"rows\":0");
  refused("\"typical\":1", "\"typical\":0");
  refused("\"channels_last\":0", "\"channels_last\":2");
  refused("\"symbols\":\"\"", "\"symbols\":\"4\"");
  refused("\"batch\":1", "\"batch\":-1");
  runtime::KernelDesc desc = describe(p, good, 3);
  desc.scratchBytes /= 2;
  EXPECT_THROW(makeConvolution(desc, Fields::parse(good), runtime::CpuLevel::Baseline), InputError);
}

} // namespace
} // namespace tressel::kernels::test
