// Winograd's convolutions against plain loops.
#include "Kernels.h"
#include "runtime/kernels/WinogradKernel.h"
#include "runtime/kernels/WinogradParams.h"
#include "tressel/runtime/Error.h"

namespace tressel::kernels::test {
namespace {

class Winograd : public ::testing::TestWithParam<Level> {};
INSTANTIATE_TEST_SUITE_P(Levels, Winograd, ::testing::ValuesIn(levels()),
                         [](const auto &info) { return nameOf(info.param); });

runtime::KernelDesc describe(const WinogradParams &p, const std::string &text, int32_t numInputs) {
  runtime::KernelDesc desc;
  desc.symbol = "test", desc.provider = "builtin", desc.params = text, desc.numInputs = numInputs;
  desc.scratchBytes = p.scratchBytes();
  return desc;
}

WinogradParams of(int64_t batch, int64_t inChannels, int64_t outChannels, int64_t height, int64_t width, int64_t pad) {
  WinogradParams p;
  p.batch = batch;
  p.shape = {inChannels, outChannels, {height, width}, {height + 2 * pad - 2, width + 2 * pad - 2}, {pad, pad}};
  return p;
}

/// The largest difference over the largest element.
double errorOf(const WinogradParams &symbolic, const Level &level, int64_t chunk, const std::vector<int64_t> &scalars = {}) {
  const WinogradCallSizes<int64_t> p = symbolic.at(scalars.data());
  const WinogradShape &s = p.shape;
  const std::vector<float> image = randomValues(p.batch * s.in[0] * s.in[1] * s.inChannels, 1),
                           weights = randomValues(s.outChannels * s.inChannels * 9, 2);
  const int64_t elements = p.batch * s.out[0] * s.out[1] * s.outChannels;
  Memory packed(symbolic.packedBytes()), result(elements * 4), x(static_cast<int64_t>(image.size()) * 4);
  std::ranges::copy(image, x.floats());
  run(makeWinogradPack(describe(symbolic, symbolic.packText(), 1), Fields::parse(symbolic.packText()), level),
      {const_cast<float *>(weights.data()), packed.get()}, 1, 1, 0);
  run(makeWinograd(describe(symbolic, symbolic.text(), 2), Fields::parse(symbolic.text()), level),
      {x.get(), packed.get(), result.get()}, p.units(), chunk, symbolic.scratchBytes(), scalars);
  double worst = 0, largest = 0;
  for (int64_t e = 0; e < elements; ++e) {
    const int64_t channel = e % s.outChannels, column = e / s.outChannels % s.out[1],
                  row = e / s.outChannels / s.out[1] % s.out[0], index = e / s.outChannels / s.out[1] / s.out[0];
    double sum = 0;
    for (int64_t y = 0; y < 3; ++y)
      for (int64_t z = 0; z < 3; ++z) {
        const int64_t i = row + y - s.pad[0], j = column + z - s.pad[1];
        for (int64_t c = 0; i >= 0 && i < s.in[0] && j >= 0 && j < s.in[1] && c < s.inChannels; ++c)
          sum += double(image[static_cast<size_t>(((index * s.in[0] + i) * s.in[1] + j) * s.inChannels + c)]) *
                 weights[static_cast<size_t>((channel * s.inChannels + c) * 9 + y * 3 + z)];
      }
    const double got = result.floats()[e];
    if (!(std::abs(got - sum) < 1e30)) // what nobody wrote is NaN
      return INFINITY;
    worst = std::max(worst, std::abs(got - sum)), largest = std::max(largest, std::abs(sum));
  }
  return worst / largest;
}

TEST_P(Winograd, AgreesWithPlainLoops) {
  for (const WinogradParams &p : {of(1, 64, 64, 14, 14, 1), of(2, 5, 7, 9, 11, 1), of(1, 16, 130, 7, 7, 1), of(3, 33, 20, 4, 6, 0),
                                  of(1, 1, 1, 3, 3, 0), of(2, 24, 40, 13, 18, 2), of(1, 300, 16, 8, 8, 1)})
    for (int64_t chunk : {1, 3, 100})
      EXPECT_LT(errorOf(p, GetParam(), chunk), 2e-5) << p.text();
}

TEST_P(Winograd, SymbolicSizes) {
  const Size n = dim::symbol("n"), h = dim::symbol("h");
  WinogradParams p = of(1, 12, 10, 8, 8, 1);
  p.batch = n, p.shape.in[0] = h, p.shape.out[0] = h, p.symbols = {n, h};
  EXPECT_FALSE(p.hasEvenUnits());
  for (const std::vector<int64_t> &sizes : std::vector<std::vector<int64_t>>{{1, 1}, {3, 6}, {2, 17}})
    EXPECT_LT(errorOf(p, GetParam(), 2, sizes), 2e-5);
}

TEST(WinogradParams, DamageIsRefused) {
  const WinogradParams p = of(1, 12, 10, 8, 8, 1);
  const std::string good = p.text();
  auto changed = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string &text : {changed("\"in_channels\":12", "\"in_channels\":0"), changed("\"8;8\"", "\"8\""), changed("\"8;8\"", "\"-8;8\""),
                                  changed("\"packed\":1", "\"packed\":7"), changed("\"out_channels\":10", "\"out_channels\":9999999999999")})
    EXPECT_THROW(makeWinograd(describe(p, text, 2), Fields::parse(text), runtime::CpuLevel::Baseline), InputError) << text;
  runtime::KernelDesc small = describe(p, good, 2);
  small.scratchBytes -= 64;
  EXPECT_THROW(makeWinograd(small, Fields::parse(good), runtime::CpuLevel::Baseline), InputError);
}

} // namespace
} // namespace tressel::kernels::test
