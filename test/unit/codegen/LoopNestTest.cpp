#include "Harness.h"

namespace tressel::codegen::test {
namespace {

class LoopNest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, LoopNest, ::testing::ValuesIn(levels()), [](const auto &info) { return info.param; });

TEST_P(LoopNest, ElementwiseOfAnySize) {
  for (int64_t n : {1, 2, 3, 7, 16, 17, 63, 64, 65, 100, 1000, 8191, 40000}) {
    Graph g;
    const int x = g.input({f32, {n}}), one = g.splat(f32, 1);
    g.results = {g.binary(ScalarOp::Add, x, one, {n})};
    Compiled k(g, GetParam());
    Data a = randomFloats({n}, 1);
    std::vector<double> want;
    for (int64_t i = 0; i < n; ++i)
      want.push_back(a.as<float>()[i] + 1.0f);
    expectNear(k.run({&a})[0], want, 0, 0);
    expectNear(k.run({&a}, 1)[0], want, 0, 0);
  }
}

TEST_P(LoopNest, BroadcastsInEveryPosition) {
  for (const Shape &s :
       {Shape{5, 7, 33}, Shape{1, 7, 33}, Shape{5, 1, 33}, Shape{5, 7, 1}, Shape{33}, Shape{7, 1}, Shape{}}) {
    Graph g;
    const Shape out{5, 7, 33};
    const int x = g.input({f32, out}), y = g.input({f32, s});
    g.results = {g.binary(ScalarOp::Sub, x, y, out)};
    Compiled k(g, GetParam());
    Data a = randomFloats(out, 2), b = randomFloats(s, 3);
    std::vector<double> want;
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 7; ++j)
        for (int64_t l = 0; l < 33; ++l) {
          int64_t at = 0;
          const int64_t index[] = {i, j, l};
          for (int d = 0; d < s.rank(); ++d)
            at = at * s.extent(d) + (s.extent(d) == 1 ? 0 : index[3 - s.rank() + d]);
          want.push_back(a.as<float>()[(i * 7 + j) * 33 + l] - b.as<float>()[at]);
        }
    expectNear(k.run({&a, &b}, 3)[0], want, 0, 0);
  }
}

TEST_P(LoopNest, MatmulWithEpilogue) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 64, 32},
                         {1, 16, 64},
                         {3, 10, 5},
                         {7, 100, 33},
                         {64, 48, 20},
                         {13, 1, 9},
                         {2, 3, 1},
                         {17, 130, 64},
                         {1, 5, 71},
                         {2, 20, 19}})
    for (bool transposed : {false, true}) {
      Graph g;
      const int x = g.input({f32, {m, k}}), w = g.input({f32, transposed ? Shape{n, k} : Shape{k, n}}),
                b = g.input({f32, {n}});
      const int y = g.binary(ScalarOp::Add, g.matmul(x, w, m, n, k, transposed), b, {m, n});
      g.results = {g.binary(ScalarOp::Max, y, g.splat(f32, 0), {m, n})};
      Compiled kernel(g, GetParam());
      Data a = randomFloats({m, k}, 4), c = randomFloats({k, n}, 5), d = randomFloats({n}, 6);
      std::vector<double> want;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = d.as<float>()[j];
          for (int64_t l = 0; l < k; ++l)
            sum += double(a.as<float>()[i * k + l]) * c.as<float>()[transposed ? j * k + l : l * n + j];
          want.push_back(std::max(sum, 0.0));
        }
      expectNear(kernel.run({&a, &c, &d})[0], want, 1e-5, 1e-5);
      expectNear(kernel.run({&a, &c, &d}, 1)[0], want, 1e-5, 1e-5);
    }
}

// A right side that a near cache does not hold is read panel by panel, whatever is left over at the ends.
TEST_P(LoopNest, ProductsByPanels) {
  struct Case {
    int64_t batch, m, n, k;
    bool shared; ///< one right side for all of the batch
    int place;   ///< LoopSchedule::tilePlace
  };
  for (const Case &c : {Case{1, 37, 1030, 300, true, 0}, Case{3, 37, 515, 300, false, 1}, Case{3, 13, 515, 300, true, 0}, Case{1, 1, 1030, 300, true, -1}, Case{1, 37, 100, 300, true, -1}}) {
    Graph g;
    const int x = g.input({f32, {c.batch, c.m, c.k}}), w = g.input({f32, {c.shared ? 1 : c.batch, c.k, c.n}});
    LoopForm form;
    form.domain = {c.batch, c.m, c.n, c.k};
    form.numParallel = 3;
    form.operands = {{{dim(0), dim(1), dim(3)}}, {{c.shared ? at(0) : dim(0), dim(3), dim(2)}}};
    Body body;
    const int left = body.operand(0, f32), right = body.operand(1, f32);
    form.body = body.result(body.op(ScalarOp::Mul, f32, left, right));
    form.combine = Combine::Sum;
    g.results = {g.op(std::move(form), {x, w}, {f32, {c.batch, c.m, c.n}})};
    Compiled kernel(g, GetParam());
    EXPECT_EQ(kernel.schedule.tilePlace, c.place) << c.batch << " x " << c.m << " x " << c.n;
    Data a = randomFloats({c.batch, c.m, c.k}, 4), b = randomFloats({c.shared ? 1 : c.batch, c.k, c.n}, 5);
    std::vector<double> want;
    for (int64_t i = 0; i < c.batch * c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < c.k; ++l)
          sum += double(a.as<float>()[i * c.k + l]) * b.as<float>()[(c.shared ? 0 : i / c.m * c.k * c.n) + l * c.n + j];
        want.push_back(sum);
      }
    expectNear(kernel.run({&a, &b})[0], want, 1e-5, 1e-4);
    expectNear(kernel.run({&a, &b}, 1)[0], want, 1e-5, 1e-4);
  }
}

// Few sums would wait for themselves: several indices of the reduced dimension run side by side.
TEST_P(LoopNest, ReducedIndicesSideBySide) {
  for (int64_t n : {3, 8, 15, 16, 17, 63, 64, 65, 70, 200}) {
    const int64_t columns = 5;
    Graph g;
    const int x = g.input({f32, {n, columns}});
    g.results = {g.reduce(Combine::Sum, x, {0}, f32, 0.5)};
    Graph order;
    const int y = order.input({f32, {n, columns}});
    order.results = {order.reduce(Combine::ArgMax, y, {0}, DType::i64), order.reduce(Combine::Min, y, {0}, f32)};
    Compiled sums(g, GetParam()), orders(order, GetParam());
    EXPECT_EQ(sums.schedule.chains > 1, n >= 8);
    if (GetParam() == "v4") // others have too few registers
      EXPECT_EQ(orders.schedule.chains > 1, n >= 8);
    Data a = randomFloats({n, columns}, 8, -3, 3);
    for (int64_t i = 0; i < a.size(); ++i) // with equal ones
      a.as<float>()[i] = std::round(a.as<float>()[i]);
    auto sum = sums.run({&a}), found = orders.run({&a});
    for (int64_t c = 0; c < columns; ++c) {
      double total = 0;
      float least = INFINITY;
      int64_t most = 0;
      for (int64_t i = 0; i < n; ++i) {
        const float v = a.as<float>()[i * columns + c];
        total += v, least = std::min(least, v);
        if (v > a.as<float>()[most * columns + c])
          most = i;
      }
      EXPECT_EQ(sum[0].as<float>()[c], 0.5 * total) << n;
      EXPECT_EQ(found[0].as<int64_t>()[c], most) << n;
      EXPECT_EQ(found[1].as<float>()[c], least) << n;
    }
  }
}

TEST_P(LoopNest, SoftmaxAlongEveryAxis) {
  for (const Shape &shape : {Shape{6, 10}, Shape{3, 1000}, Shape{2, 5, 7}, Shape{4, 17, 64}})
    for (int axis = 0; axis < shape.rank(); ++axis) {
      Graph g;
      const int x = g.input({f32, shape});
      const int centred = g.binary(ScalarOp::Sub, x, g.reduce(Combine::Max, x, {axis}, f32), shape);
      const int e = g.unary(ScalarOp::Exp, centred);
      g.results = {g.binary(ScalarOp::Div, e, g.reduce(Combine::Sum, e, {axis}, f32), shape)};
      Compiled k(g, GetParam());
      EXPECT_EQ(k.plan.numStages, 2);
      Data a = randomFloats(shape, 7, -10, 10);
      int64_t outer = 1, inner = 1;
      for (int d = 0; d < axis; ++d)
        outer *= shape.extent(d);
      for (int d = axis + 1; d < shape.rank(); ++d)
        inner *= shape.extent(d);
      std::vector<double> want(static_cast<size_t>(a.size()));
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
          double sum = 0;
          auto at = [&](int64_t r) { return (o * shape.extent(axis) + r) * inner + i; };
          for (int64_t r = 0; r < shape.extent(axis); ++r)
            sum += std::exp(double(a.as<float>()[at(r)]));
          for (int64_t r = 0; r < shape.extent(axis); ++r)
            want[static_cast<size_t>(at(r))] = std::exp(double(a.as<float>()[at(r)])) / sum;
        }
      expectNear(k.run({&a})[0], want, 1e-5, 1e-7);
      expectNear(k.run({&a}, 1)[0], want, 1e-5, 1e-7);
    }
}

TEST_P(LoopNest, LayerNormWithTwoResults) {
  const int64_t rows = 9, n = 77;
  Graph g;
  const int x = g.input({f32, {rows, n}}), scale = g.input({f32, {n}});
  const int mean = g.reduce(Combine::Sum, x, {1}, f32, 1.0 / n);
  const int d = g.binary(ScalarOp::Sub, x, mean, {rows, n});
  const int variance = g.reduce(Combine::Sum, g.binary(ScalarOp::Mul, d, d, {rows, n}), {1}, f32, 1.0 / n);
  const int rstd = g.unary(ScalarOp::Rsqrt, g.binary(ScalarOp::Add, variance, g.splat(f32, 1e-5), {rows, 1}));
  const int y = g.binary(ScalarOp::Mul, g.binary(ScalarOp::Mul, d, rstd, {rows, n}), scale, {rows, n});
  g.results = {y, rstd};
  Compiled k(g, GetParam());
  EXPECT_EQ(k.plan.numStages, 2);
  Data a = randomFloats({rows, n}, 8), s = randomFloats({n}, 9);
  std::vector<double> wantY, wantR;
  for (int64_t r = 0; r < rows; ++r) {
    double m = 0, v = 0;
    for (int64_t i = 0; i < n; ++i)
      m += a.as<float>()[r * n + i] / double(n);
    for (int64_t i = 0; i < n; ++i)
      v += (a.as<float>()[r * n + i] - m) * (a.as<float>()[r * n + i] - m) / n;
    wantR.push_back(1 / std::sqrt(v + 1e-5));
    for (int64_t i = 0; i < n; ++i)
      wantY.push_back((a.as<float>()[r * n + i] - m) * wantR.back() * s.as<float>()[i]);
  }
  auto out = k.run({&a, &s}, 2);
  expectNear(out[0], wantY, 1e-5, 1e-5);
  expectNear(out[1], wantR, 1e-5, 0);
}

} // namespace
} // namespace tressel::codegen::test
