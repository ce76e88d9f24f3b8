// Kernels of several nests: any units of them, equal nests of other operands, results on what is read.
#include "Harness.h"
#include "codegen/loops/KernelParts.h"

namespace tressel::codegen::test {
namespace {

class Parts : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Parts, ::testing::ValuesIn(levels()), [](const auto &info) { return info.param; });

/// p - rate * g of each size, all with one rate.
Graph updates(const std::vector<int64_t> &sizes) {
  Graph g;
  const int rate = g.input({f32, {1}});
  for (int64_t n : sizes) {
    const int p = g.input({f32, {n}}), grad = g.input({f32, {n}});
    g.results.push_back(g.binary(ScalarOp::Sub, p, g.binary(ScalarOp::Mul, grad, rate, {n}), {n}));
  }
  return g;
}

void checkParts(const Target &target);
TEST_P(Parts, AnyUnitsOfNestsInPlace) { checkParts(Target(GetParam())); }
TEST_P(Parts, CompiledQuickly) { checkParts(Target(GetParam(), /*quick=*/true)); }

void checkParts(const Target &target) {
  const std::vector<int64_t> sizes{5, 300'000, 1, 5, 64};
  const auto parts = planParts(updates(sizes));
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), sizes.size());
  KernelSource source;
  source.signature.symbol = "k";
  int64_t units = 0;
  for (const KernelPart &part : *parts) {
    source.parts.push_back({part.plan, scheduleLoops(part.plan, target.features()), part.operands});
    units += source.parts.back().units();
  }
  EXPECT_GT(units, static_cast<int64_t>(sizes.size())); // the large one has several
  Compiled k;
  k.load(source, target);
  for (int64_t chunk : {int64_t(1), int64_t(2), int64_t(3), units}) {
    Data rate = randomFloats({1}, 1);
    std::vector<Data> p, g, want;
    for (size_t i = 0; i < sizes.size(); ++i) {
      p.push_back(randomFloats({sizes[i]}, uint32_t(2 * i + 2))), g.push_back(randomFloats({sizes[i]}, uint32_t(2 * i + 3)));
      want.push_back(p.back());
      for (int64_t j = 0; j < sizes[i]; ++j)
        want.back().as<float>()[j] -= rate.as<float>()[0] * g.back().as<float>()[j];
    }
    std::vector<void *> buffers{rate.bytes.data()};
    for (size_t i = 0; i < sizes.size(); ++i)
      buffers.push_back(p[i].bytes.data()), buffers.push_back(g[i].bytes.data());
    for (size_t i = 0; i < sizes.size(); ++i)
      buffers.push_back(p[i].bytes.data());
    for (int64_t u = (units - 1) / chunk * chunk; u >= 0; u -= chunk)
      ASSERT_EQ(k.call(buffers, u, std::min(units, u + chunk)), 0);
    for (size_t i = 0; i < sizes.size(); ++i)
      for (int64_t j = 0; j < sizes[i]; ++j)
        ASSERT_NEAR(p[i].as<float>()[j], want[i].as<float>()[j], 1e-6) << "nest " << i << " element " << j << ", by " << chunk;
  }
}

TEST(PartsOfKernels, FollowFromWhichValuesAreExchanged) {
  Graph joined;
  const int x = joined.input({f32, {8}}), y = joined.input({f32, {8}});
  const int sum = joined.binary(ScalarOp::Add, x, y, {8});
  joined.results = {joined.unary(ScalarOp::Exp, sum), joined.unary(ScalarOp::Sqrt, sum)};
  const auto one = planParts(joined);
  ASSERT_TRUE(one);
  ASSERT_EQ(one->size(), 1u); // both read the sum
  EXPECT_TRUE(one->front().operands.empty());

  Graph apart;
  const int a = apart.input({f32, {8}});
  apart.results = {apart.unary(ScalarOp::Exp, a), apart.unary(ScalarOp::Sqrt, a)};
  const auto two = planParts(apart);
  ASSERT_TRUE(two);
  ASSERT_EQ(two->size(), 2u); // both read an operand
  EXPECT_EQ((*two)[0].operands, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ((*two)[1].operands, (std::vector<int32_t>{0, 2}));
}

} // namespace
} // namespace tressel::codegen::test
