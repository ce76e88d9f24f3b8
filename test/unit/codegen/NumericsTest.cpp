// docs/numbers.md at every level of the CPU: subnormal numbers in both modes, and the bounds of sums.
#include "Harness.h"
#include "tressel/runtime/FloatMode.h"
#include "tressel/runtime/Half.h"

#include <bit>
#include <cmath>

namespace tressel::codegen::test {
namespace {

class Numerics : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Numerics, testing::ValuesIn(levels()), [](const auto &info) { return info.param; });

/// Runs in the mode that the plan asks for.
std::vector<Data> runAsLaunched(const Compiled &k, std::vector<Data *> inputs) {
  const runtime::FloatScope scope(k.plan.floats());
  return k.run(std::move(inputs));
}

Data subnormals(int64_t n) {
  Data d({f32, {n}});
  for (int64_t i = 0; i < n; ++i)
    d.as<float>()[i] = i % 3 == 0 ? float(i) : std::bit_cast<float>(uint32_t(1 + 977 * i) | uint32_t(i % 2) << 31);
  return d;
}

TEST_P(Numerics, ModesFollowFromWhatIsComputed) {
  using runtime::FloatMode;
  auto modeOf = [&](auto &&make, DType type) {
    Graph g;
    g.results = {make(g, g.input({type, {64}}))};
    return buildLoopPlan(g)->floats();
  };
  auto twice = [](Graph &g, int x) { return g.binary(ScalarOp::Add, x, x, {64}); };
  auto negated = [](Graph &g, int x) { return g.unary(ScalarOp::Neg, x); };
  EXPECT_EQ(modeOf(twice, f32), FloatMode::Flush);
  EXPECT_EQ(modeOf(twice, DType::bf16), FloatMode::Flush);
  EXPECT_EQ(modeOf(twice, DType::f64), FloatMode::Keep);
  EXPECT_EQ(modeOf(twice, DType::i32), FloatMode::Any);
  EXPECT_EQ(modeOf(negated, f32), FloatMode::Any);
  Graph g;
  g.results = {twice(g, g.input({f32, {64}}))};
  g.keepSubnormals = true;
  EXPECT_EQ(buildLoopPlan(g)->floats(), FloatMode::Keep);
}

TEST_P(Numerics, EachFunctionGivesWhatItGivesForZeros) {
  Data x = subnormals(200), zeros = x;
  for (int64_t i = 0; i < 200; ++i)
    if (i % 3)
      zeros.as<float>()[i] = std::copysign(0.0f, zeros.as<float>()[i]);
  for (int o = static_cast<int>(ScalarOp::Sign); o <= static_cast<int>(ScalarOp::Logistic); ++o) {
    Graph g;
    g.results = {g.unary(static_cast<ScalarOp>(o), g.input({f32, {200}}))};
    const Compiled k(g, GetParam());
    auto got = runAsLaunched(k, {&x}), want = runAsLaunched(k, {&zeros});
    EXPECT_EQ(std::memcmp(got[0].bytes.data(), want[0].bytes.data(), 800), 0) << "function " << o;
  }
  for (ScalarOp o : {ScalarOp::Add, ScalarOp::Mul, ScalarOp::Div, ScalarOp::Min, ScalarOp::Max, ScalarOp::Pow, ScalarOp::Atan2, ScalarOp::Rem}) {
    Graph g;
    const int a = g.input({f32, {200}}), b = g.input({f32, {200}});
    g.results = {g.binary(o, a, b, {200})};
    const Compiled k(g, GetParam());
    Data other = randomFloats({200}, 3, -1e-3f, 1e-3f);
    auto got = runAsLaunched(k, {&x, &other}), want = runAsLaunched(k, {&zeros, &other});
    EXPECT_EQ(std::memcmp(got[0].bytes.data(), want[0].bytes.data(), 800), 0) << "function " << static_cast<int>(o);
    for (int64_t i = 0; i < 200; ++i) // and gives none
      EXPECT_FALSE(std::fpclassify(got[0].as<float>()[i]) == FP_SUBNORMAL) << static_cast<int>(o);
  }
  for (Combine c : {Combine::Max, Combine::Min, Combine::Sum})
    for (int axis : {0, 1}) {
      Graph g;
      g.results = {g.reduce(c, g.input({f32, {20, 10}}), {axis}, f32)};
      const Compiled k(g, GetParam());
      auto got = runAsLaunched(k, {&x}), want = runAsLaunched(k, {&zeros});
      EXPECT_EQ(std::memcmp(got[0].bytes.data(), want[0].bytes.data(), static_cast<size_t>(got[0].type.bytes())), 0);
    }
}

TEST_P(Numerics, HalvesAreKeptWhateverTheMode) {
  Data x({DType::f16, {2048}});
  for (int i = 0; i < 2048; ++i)
    x.as<uint16_t>()[i] = uint16_t((i & 1023) | (i & 1024) << 5);
  Graph g;
  const int in = g.input({DType::f16, {2048}});
  g.results = {g.binary(ScalarOp::Add, in, in, {2048})};
  const Compiled k(g, GetParam());
  EXPECT_EQ(k.plan.floats(), runtime::FloatMode::Flush);
  auto out = runAsLaunched(k, {&x});
  for (int i = 0; i < 2048; ++i)
    EXPECT_EQ(halfToFloat(out[0].as<uint16_t>()[i]), 2 * halfToFloat(x.as<uint16_t>()[i]));
}

/// A cast to f64, f64 arithmetic, and f32 arithmetic in one kernel: as the mode is that of f64, the code flushes f32.
TEST_P(Numerics, BothTypesInOneKernel) {
  for (bool keep : {false, true}) {
    Graph g;
    g.keepSubnormals = keep;
    const int a = g.input({f32, {200}}), b = g.input({DType::f64, {200}});
    const int twice = g.binary(ScalarOp::Add, a, a, {200});
    Body body;
    const int x = body.operand(0, f32), y = body.operand(1, DType::f64);
    const int sum = body.op(ScalarOp::Add, DType::f64, body.op(ScalarOp::Cast, DType::f64, x), y);
    g.results = {g.elementwise(body.result(sum), {twice, b}, {DType::f64, {200}}), twice};
    const Compiled k(g, GetParam());
    EXPECT_EQ(k.plan.floats(), runtime::FloatMode::Keep);
    EXPECT_EQ(k.plan.flushesExplicitly(), !keep);
    Data left = subnormals(200), right({DType::f64, {200}});
    for (int i = 0; i < 200; ++i)
      right.as<double>()[i] = i % 2 ? 1e-310 : 0;
    auto out = runAsLaunched(k, {&left, &right});
    for (int i = 0; i < 200; ++i) {
      const float v = left.as<float>()[i], want = i % 3 && !keep ? 0 : 2 * v;
      EXPECT_EQ(out[1].as<float>()[i], want);
      EXPECT_EQ(out[0].as<double>()[i], double(want) + right.as<double>()[i]);
    }
  }
}

/// |error| <= 48 u sum |x|, along rows and down columns.
TEST_P(Numerics, SumsWithinTheirBound) {
  for (const Shape &shape : {Shape{512, 100}, Shape{100, 512}, Shape{70001, 3}, Shape{3, 70001}, Shape{1000000, 1}, Shape{1, 1000000}, Shape{33, 1000},
                             Shape{1000, 33}, Shape{4096, 17}, Shape{130, 130}})
    for (int axis : {0, 1})
      for (bool equal : {false, true}) {
        Graph g;
        g.results = {g.reduce(Combine::Sum, g.input({f32, shape}), {axis}, f32)};
        Data x = randomFloats(shape, 5, -0.5, 1);
        if (equal)
          std::fill_n(x.as<float>(), x.size(), 0.7f);
        auto out = Compiled(g, GetParam()).run({&x});
        const int64_t n = shape.extent(1 - axis);
        std::vector<double> sum(size_t(n), 0.0), absolute(sum);
        for (int64_t i = 0; i < shape.extent(0); ++i)
          for (int64_t k = 0; k < shape.extent(1); ++k) {
            const double v = x.as<float>()[i * shape.extent(1) + k];
            sum[size_t(axis ? i : k)] += v, absolute[size_t(axis ? i : k)] += std::abs(v);
          }
        for (int64_t i = 0; i < n; ++i)
          ASSERT_LE(std::abs(double(out[0].as<float>()[i]) - sum[size_t(i)]), 48 * 0x1p-24 * absolute[size_t(i)])
              << shape.str() << " along " << axis << ", element " << i;
      }
}

/// Of f64 and f16, over several dimensions, and beside another reduction of the same pass.
TEST_P(Numerics, SumsOfOtherTypesAndDimensions) {
  Graph g;
  const int x = g.input({f32, {7, 40, 3, 50}});
  g.results = {g.reduce(Combine::Sum, x, {1, 3}, f32), g.reduce(Combine::Max, x, {1, 3}, f32)};
  Data a = randomFloats({7, 40, 3, 50}, 8, 0, 1);
  auto out = Compiled(g, GetParam()).run({&a});
  for (int64_t i = 0; i < 7; ++i)
    for (int64_t k = 0; k < 3; ++k) {
      double sum = 0;
      float most = 0;
      for (int64_t m = 0; m < 40; ++m)
        for (int64_t n = 0; n < 50; ++n) {
          const float v = a.as<float>()[((i * 40 + m) * 3 + k) * 50 + n];
          sum += double(v), most = std::max(most, v);
        }
      EXPECT_NEAR(out[0].as<float>()[i * 3 + k], sum, 48 * 0x1p-24 * sum);
      EXPECT_EQ(out[1].as<float>()[i * 3 + k], most);
    }
  for (int axis : {0, 1}) {
    Graph h;
    const Shape shape = axis ? Shape{3, 100000} : Shape{100000, 3};
    h.results = {h.reduce(Combine::Sum, h.input({DType::f64, shape}), {axis}, DType::f64)};
    Data b({DType::f64, shape});
    std::fill_n(b.as<double>(), 300000, 0.1);
    auto sums = Compiled(h, GetParam()).run({&b});
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(sums[0].as<double>()[i], 10000.0, 48 * 0x1p-53 * 10000);
  }
}

} // namespace
} // namespace tressel::codegen::test
