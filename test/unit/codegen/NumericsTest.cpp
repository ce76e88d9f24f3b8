// docs/numbers.md at every level of the CPU: subnormal numbers in both modes, and the bounds of sums.
#include "Harness.h"
#include "tressel/runtime/FloatMode.h"
#include "tressel/runtime/Half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

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

/// The graph's results, each op in a kernel of its own.
std::vector<Data> runApart(const Graph &graph, const std::vector<Data *> &inputs, const std::string &cpu) {
  std::map<int32_t, Data> values;
  for (size_t i = 0; i < inputs.size(); ++i)
    values.emplace(graph.inputs[i], *inputs[i]);
  for (const KernelGraph::Op &op : graph.ops) {
    Graph one;
    one.deterministic = graph.deterministic;
    std::vector<int32_t> operands;
    std::vector<Data *> data;
    for (int32_t v : op.operands)
      if (auto splat = std::ranges::find(graph.splats, v, &KernelGraph::Splat::value); splat != graph.splats.end()) {
        operands.push_back(one.splat(graph.types[size_t(v)].dtype, splat->f));
      } else {
        operands.push_back(one.input(graph.types[size_t(v)]));
        data.push_back(&values.at(v));
      }
    one.results = {one.op(op.form, operands, graph.types[size_t(op.result)])};
    values.emplace(op.result, Compiled(one, cpu).run(data)[0]);
  }
  std::vector<Data> results;
  for (int32_t v : graph.results)
    results.push_back(values.at(v));
  return results;
}

/// With `deterministic`, kernels give the bits that their ops give one by one.
TEST_P(Numerics, DeterministicBitsDoNotDependOnWhatIsFused) {
  int numDifferent = 0; // where it is not asked for
  auto bytesOf = [](const std::vector<Data> &results) {
    std::vector<std::byte> all;
    for (const Data &r : results)
      all.insert(all.end(), r.bytes.begin(), r.bytes.end());
    return all;
  };
  auto expectSame = [&](const std::string &what, Graph &g, std::vector<Data *> inputs) {
    numDifferent += bytesOf(Compiled(g, GetParam()).run(inputs)) != bytesOf(runApart(g, inputs, GetParam()));
    g.deterministic = true;
    const std::vector<Data> fused = Compiled(g, GetParam()).run(inputs), apart = runApart(g, inputs, GetParam());
    for (size_t r = 0; r < fused.size(); ++r) {
      int64_t different = 0;
      for (int64_t i = 0; i < fused[r].size(); ++i)
        different += std::memcmp(&fused[r].bytes[size_t(4 * i)], &apart[r].bytes[size_t(4 * i)], 4) != 0;
      EXPECT_EQ(different, 0) << what << ", result " << r << " of " << fused[r].size() << " elements";
    }
  };
  // Values whose every step could join the next one in one instruction.
  auto chain = [](Graph &g, int x, int y, const Shape &shape) {
    const int product = g.binary(ScalarOp::Mul, x, y, shape), sum = g.binary(ScalarOp::Add, product, x, shape);
    const int slope = g.unary(ScalarOp::Tanh, g.unary(ScalarOp::Logistic, sum));
    return g.binary(ScalarOp::Sub, g.binary(ScalarOp::Mul, slope, y, shape), product, shape);
  };
  for (const Shape &shape : {Shape{1000}, Shape{37, 5}, Shape{3, 2, 70}}) {
    Graph g;
    g.results = {chain(g, g.input({f32, shape}), g.input({f32, shape}), shape)};
    Data a = randomFloats(shape, 1), b = randomFloats(shape, 2);
    expectSame("a chain over " + shape.str(), g, {&a, &b});
  }
  const std::pair<Shape, std::vector<int>> reductions[] = {
      {{1000}, {0}},         {{64, 300}, {1}},       {{300, 64}, {0}},           {{5, 7, 33}, {0, 1, 2}},
      {{9, 33, 20}, {0, 2}}, {{9, 33, 20}, {1, 2}},  {{4, 19, 7, 7}, {0, 2, 3}}, {{2, 5000}, {1}},
      {{5000, 3}, {0}},      {{6, 1, 45, 1}, {2, 3}}};
  for (const auto &[shape, axes] : reductions) {
    Graph g;
    const int x = g.input({f32, shape}), y = g.input({f32, shape}), value = chain(g, x, y, shape);
    const int sum = g.reduce(Combine::Sum, value, axes, f32, 0.1);
    const int rest = g.binary(ScalarOp::Sub, value, sum, shape);
    g.results = {sum, g.reduce(Combine::Sum, g.binary(ScalarOp::Mul, rest, rest, shape), axes, f32),
                 g.binary(ScalarOp::Mul, rest, y, shape)};
    Data a = randomFloats(shape, 3), b = randomFloats(shape, 4);
    expectSame("sums over " + shape.str(), g, {&a, &b});
  }
  {
    Graph g; // what is read across the rows would rather have its lanes there
    const int x = g.input({f32, {90, 40}}), y = g.input({f32, {40, 90}});
    LoopForm transpose;
    transpose.domain = {40, 90};
    transpose.numParallel = 2;
    transpose.operands = {{{dim(1), dim(0)}}};
    Body body;
    transpose.body = body.result(body.operand(0, f32));
    const int across = g.op(transpose, {x}, {f32, {40, 90}});
    g.results = {g.reduce(Combine::Sum, g.binary(ScalarOp::Mul, across, y, {40, 90}), {1}, f32)};
    Data a = randomFloats({90, 40}, 5), b = randomFloats({40, 90}, 6);
    expectSame("a sum of what is transposed", g, {&a, &b});
  }
  for (bool transposed : {false, true}) {
    Graph g;
    const int x = g.input({f32, {6, 200}}), w = g.input({f32, transposed ? Shape{50, 200} : Shape{200, 50}}),
              bias = g.input({f32, {50}});
    const int product = g.matmul(g.unary(ScalarOp::Tanh, x), w, 6, 50, 200, transposed);
    g.results = {g.binary(ScalarOp::Mul, g.binary(ScalarOp::Add, product, bias, {6, 50}), product, {6, 50})};
    Data a = randomFloats({6, 200}, 7), b = randomFloats({200, 50}, 8), c = randomFloats({50}, 9);
    if (transposed)
      b.type.shape = {50, 200};
    expectSame("a product", g, {&a, &b, &c});
  }
  if (GetParam() != "baseline")
    EXPECT_GT(numDifferent, 0);
}

} // namespace
} // namespace tressel::codegen::test
