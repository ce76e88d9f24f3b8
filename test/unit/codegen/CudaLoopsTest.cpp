// Loop nests as GPU kernels against plain loops, over sizes with tails and every way of sharing the work; and what
// their PTX must and must not contain.
#include "CudaLoopHarness.h"
#include "codegen/cuda/target/Assemble.h"

#include <cmath>

namespace tressel::codegen::test {
namespace {

/// Every way of sharing a reduction, and the one that is chosen. Those with more than a few threads only for few
/// results: threads take time here.
std::vector<cuda::LoopTuning> tunings(int64_t results) {
  std::vector<cuda::LoopTuning> all;
  for (const cuda::LoopTuning &t : std::vector<cuda::LoopTuning>{{},
                                                                 {0, 1, 0},
                                                                 {0, 2, 1},
                                                                 {0, 8, 4},
                                                                 {0, 32, 1},
                                                                 {128, 32, 4},
                                                                 {64, 64, 0},
                                                                 {256, 64, 1},
                                                                 {256, 256, 4},
                                                                 {1024, 1024, 1}})
    if (t.threadsPerRow * results <= 50000)
      all.push_back(t);
  return all;
}
std::string nameOf(const cuda::LoopTuning &t) {
  return "threads " + std::to_string(t.threads) + ", per row " + std::to_string(t.threadsPerRow) + ", vector " +
         std::to_string(t.vector);
}

/// NumPy's tolerance for f32 (test/oracle/numpy_oracle.py); and half a unit in the last place of 1: a sum of terms of random signs is off by less than that
/// times the number of its terms times the largest, far within the 48 u of the sum of their sizes that docs/numbers.md promises.
constexpr double kRelative = 4e-6, kAbsolute = 2e-6, kUnit = 0x1p-24;

Graph softmax(const Shape &shape, int axis) {
  Graph g;
  const int x = g.input({f32, shape});
  const int centred = g.binary(ScalarOp::Sub, x, g.reduce(Combine::Max, x, {axis}, f32), shape);
  const int e = g.unary(ScalarOp::Exp, centred);
  g.results = {g.binary(ScalarOp::Div, e, g.reduce(Combine::Sum, e, {axis}, f32), shape)};
  return g;
}
Graph layerNorm(const Shape &shape) {
  Graph g;
  const Size rows = shape[0], n = shape[1];
  const int x = g.input({f32, shape}), scale = g.input({f32, {n}}), bias = g.input({f32, {n}});
  auto mean = [&](int v) {
    const int sum = g.reduce(Combine::Sum, v, {1}, f32);
    g.ops.back().form.divisor = n;
    return sum;
  };
  const int d = g.binary(ScalarOp::Sub, x, mean(x), shape), variance = mean(g.binary(ScalarOp::Mul, d, d, shape));
  const int root = g.unary(ScalarOp::Sqrt, g.binary(ScalarOp::Add, variance, g.splat(f32, 1e-5), {rows, 1}));
  const int y = g.binary(ScalarOp::Mul, g.binary(ScalarOp::Div, d, root, shape), scale, shape);
  g.results = {g.binary(ScalarOp::Add, y, bias, shape)};
  return g;
}
std::vector<double> softmaxOf(Data &x, int64_t outer, int64_t n, int64_t inner) {
  std::vector<double> want(static_cast<size_t>(x.size()));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      auto at = [&](int64_t r) { return static_cast<size_t>((o * n + r) * inner + i); };
      double sum = 0;
      for (int64_t r = 0; r < n; ++r)
        sum += std::exp(double(x.as<float>()[at(r)]));
      for (int64_t r = 0; r < n; ++r)
        want[at(r)] = std::exp(double(x.as<float>()[at(r)])) / sum;
    }
  return want;
}
std::vector<double> layerNormOf(Data &x, Data &scale, Data &bias, int64_t rows, int64_t n) {
  std::vector<double> want;
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; ++i)
      mean += x.as<float>()[r * n + i] / double(n);
    for (int64_t i = 0; i < n; ++i)
      variance += std::pow(x.as<float>()[r * n + i] - mean, 2) / double(n);
    for (int64_t i = 0; i < n; ++i)
      want.push_back((x.as<float>()[r * n + i] - mean) / std::sqrt(variance + 1e-5) * scale.as<float>()[i] +
                     bias.as<float>()[i]);
  }
  return want;
}

TEST(CudaLoops, SeveralNestsInPlace) {
  const std::vector<int64_t> sizes{5, 3000, 1, 5, 64, 4099};
  Graph g;
  const int rate = g.input({f32, {1}});
  std::vector<Data> inputs{randomFloats({1}, 1)};
  std::vector<std::pair<size_t, size_t>> shared;
  for (int64_t n : sizes) {
    const int p = g.input({f32, {n}}), grad = g.input({f32, {n}});
    shared.emplace_back(g.results.size(), inputs.size());
    g.results.push_back(g.binary(ScalarOp::Sub, p, g.binary(ScalarOp::Mul, grad, rate, {n}), {n}));
    inputs.push_back(randomFloats({n}, uint32_t(n))), inputs.push_back(randomFloats({n}, uint32_t(n + 1)));
  }
  const GpuKernel k = GpuKernel::ofParts(g);
  std::vector<Data *> pointers;
  for (Data &input : inputs)
    pointers.push_back(&input);
  std::vector<Data> got = k.run(pointers, {}, 0, shared);
  for (size_t i = 0; i < sizes.size(); ++i)
    for (int64_t j = 0; j < sizes[i]; ++j)
      ASSERT_NEAR(got[i].as<float>()[j],
                  inputs[2 * i + 1].as<float>()[j] - inputs[0].as<float>()[0] * inputs[2 * i + 2].as<float>()[j], 1e-6)
          << "nest " << i << " element " << j;
}

TEST(CudaLoops, ElementwiseOfAnySize) {
  for (int64_t n : {0, 1, 2, 31, 32, 33, 127, 1000, 1001, 1023, 4099})
    for (int vector : {0, 1, 2, 4, 8})
      for (DType type : {f32, DType::f64, DType::i16, DType::u8}) {
        Graph g;
        const int x = g.input({type, {n}}), y = g.input({type, {n}});
        g.results = {g.binary(ScalarOp::Sub, x, y, {n})};
        const GpuKernel k(g, {0, 0, vector});
        EXPECT_EQ(k.kernel.blocks > 0, n > 0);
        EXPECT_TRUE(k.kernel.seconds >= 0 && k.kernel.seconds < 1e-3) << k.kernel.seconds;
        Data a({type, {n}}), b({type, {n}});
        for (int64_t i = 0; i < n; ++i)
          switch (type) {
          case DType::f64:
            a.as<double>()[i] = double(i), b.as<double>()[i] = 0.25;
            break;
          case DType::i16:
            a.as<int16_t>()[i] = int16_t(i), b.as<int16_t>()[i] = 7;
            break;
          case DType::u8:
            a.as<uint8_t>()[i] = uint8_t(i), b.as<uint8_t>()[i] = 7;
            break;
          default:
            a.as<float>()[i] = float(i), b.as<float>()[i] = 0.25f;
          }
        Data c = std::move(k.run({&a, &b})[0]);
        for (int64_t i = 0; i < n; ++i)
          switch (type) {
          case DType::f64:
            ASSERT_EQ(c.as<double>()[i], double(i) - 0.25);
            break;
          case DType::i16:
            ASSERT_EQ(c.as<int16_t>()[i], int16_t(i - 7));
            break;
          case DType::u8:
            ASSERT_EQ(c.as<uint8_t>()[i], uint8_t(i - 7));
            break;
          default:
            ASSERT_EQ(c.as<float>()[i], float(i) - 0.25f);
          }
      }
}

TEST(CudaLoops, BuffersThatAreNotAligned) {
  Data x = randomFloats({5, 1024}, 8), scale = randomFloats({1024}, 9), bias = randomFloats({1024}, 10);
  const GpuKernel k(layerNorm({5, 1024}), {.aligned = false});
  expectNear(k.run({&x, &scale, &bias})[0], layerNormOf(x, scale, bias, 5, 1024), kRelative, kAbsolute);
  Graph g;
  const int a = g.input({f32, {1024}});
  g.results = {g.binary(ScalarOp::Add, a, a, {1024})};
  const GpuKernel sum(g, {.aligned = false});
  expectNear(
      sum.run({&scale})[0],
      [&] {
        std::vector<double> want;
        for (int64_t i = 0; i < 1024; ++i)
          want.push_back(2 * scale.as<float>()[i]);
        return want;
      }(),
      0, 0);
}

TEST(CudaLoops, BroadcastsInEveryPosition) {
  for (const Shape &s :
       {Shape{5, 7, 36}, Shape{1, 7, 36}, Shape{5, 1, 36}, Shape{5, 7, 1}, Shape{36}, Shape{7, 1}, Shape{}}) {
    Graph g;
    const Shape out{5, 7, 36};
    const int x = g.input({f32, out}), y = g.input({f32, s});
    g.results = {g.binary(ScalarOp::Sub, x, y, out)};
    Data a = randomFloats(out, 2), b = randomFloats(s, 3);
    std::vector<double> want;
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 7; ++j)
        for (int64_t l = 0; l < 36; ++l) {
          int64_t at = 0;
          const int64_t index[] = {i, j, l};
          for (int d = 0; d < s.rank(); ++d)
            at = (at * s[d] + (s[d] == 1 ? 0 : index[3 - s.rank() + d])).number();
          want.push_back(a.as<float>()[(i * 7 + j) * 36 + l] - b.as<float>()[at]);
        }
    expectNear(GpuKernel(g).run({&a, &b})[0], want, 0, 0);
  }
}

TEST(CudaLoops, SoftmaxAlongEveryAxis) {
  for (const Shape &shape : {Shape{3, 1000}, Shape{5, 31}, Shape{2, 33, 20}})
    for (int axis = 0; axis < shape.rank(); ++axis) {
      int64_t outer = 1, inner = 1;
      for (int d = 0; d < axis; ++d)
        outer *= shape[d].number();
      for (int d = axis + 1; d < shape.rank(); ++d)
        inner *= shape[d].number();
      Data x = randomFloats(shape, 7, -10, 10);
      const std::vector<double> want = softmaxOf(x, outer, shape.extent(axis), inner);
      const Graph g = softmax(shape, axis);
      for (const cuda::LoopTuning &tuning : tunings(outer * inner)) {
        SCOPED_TRACE(shape.str() + " axis " + std::to_string(axis) + " " + nameOf(tuning));
        expectNear(GpuKernel(g, tuning).run({&x})[0], want, kRelative, 0);
      }
    }
}

TEST(CudaLoops, LayerNorm) {
  for (int64_t n : {1, 8, 31, 33, 768, 1000, 1001})
    for (const cuda::LoopTuning &tuning : tunings(5)) {
      const int64_t rows = 5;
      SCOPED_TRACE(std::to_string(n) + " " + nameOf(tuning));
      Data x = randomFloats({rows, n}, 8), scale = randomFloats({n}, 9), bias = randomFloats({n}, 10);
      expectNear(GpuKernel(layerNorm({rows, n}), tuning).run({&x, &scale, &bias})[0],
                 layerNormOf(x, scale, bias, rows, n), kRelative, kAbsolute);
    }
}

/// One kernel for all sizes.
TEST(CudaLoops, SymbolicSizes) {
  const Size n = dim::symbol("n", 0), m = dim::symbol("m");
  auto sizes = [&](int64_t rows, int64_t columns) {
    dim::Values values;
    values.bind(n, rows), values.bind(m, columns);
    return values;
  };
  Graph sums;
  const int x = sums.input({f32, {n, m}});
  sums.results = {sums.reduce(Combine::Sum, x, {0}, f32)};
  for (const cuda::LoopTuning &tuning : tunings(33)) {
    const GpuKernel rows(softmax({n, m}, 1), tuning, {n, m}), norm(layerNorm({n, m}), tuning, {n, m}),
        columns(sums, tuning, {n, m});
    for (auto [r, c] : {std::pair<int64_t, int64_t>{0, 5}, {1, 1}, {3, 31}, {2, 33}, {33, 7}, {1, 1500}}) {
      SCOPED_TRACE(std::to_string(r) + " x " + std::to_string(c) + " " + nameOf(tuning));
      Data a = randomFloats({r, c}, 3, -10, 10), scale = randomFloats({c}, 9), bias = randomFloats({c}, 10);
      expectNear(rows.run({&a}, sizes(r, c))[0], softmaxOf(a, r, c, 1), kRelative, 0);
      expectNear(norm.run({&a, &scale, &bias}, sizes(r, c))[0], layerNormOf(a, scale, bias, r, c), kRelative, kAbsolute);
      std::vector<double> want(static_cast<size_t>(c), 0);
      for (int64_t i = 0; i < r * c; ++i)
        want[static_cast<size_t>(i % c)] += a.as<float>()[i];
      expectNear(columns.run({&a}, sizes(r, c))[0], want, 0, kUnit * 10 * static_cast<double>(r));
    }
  }
}

/// Sums of nothing.
TEST(CudaLoops, EmptyRows) {
  const Size m = dim::symbol("m", 0);
  for (bool symbolic : {false, true}) {
    Graph g;
    g.results = {g.reduce(Combine::Sum, g.input({f32, {3, symbolic ? m : 0}}), {1}, f32)};
    const GpuKernel k(g, {}, symbolic ? std::vector<Size>{m} : std::vector<Size>());
    EXPECT_TRUE(k.kernel.seconds >= 0 && k.kernel.seconds < 1e-3) << k.kernel.seconds;
    dim::Values values;
    values.bind(m, 0);
    Data x({f32, {3, 0}});
    expectNear(k.run({&x}, values)[0], {0, 0, 0}, 0, 0);
  }
}

/// Sizes whose product has more than 64 bits where they are large.
TEST(CudaLoops, ManySymbols) {
  Shape shape;
  dim::Values values;
  std::vector<Size> symbols;
  for (int d = 0; d < 8; ++d) {
    symbols.push_back(dim::symbol("n" + std::to_string(d)));
    shape.push_back(symbols.back());
    values.bind(symbols.back(), d % 3 + 1);
  }
  Graph g;
  const int x = g.input({f32, shape});
  g.results = {g.binary(ScalarOp::Sub, x, g.reduce(Combine::Max, x, {0, 2, 7}, f32), shape)};
  Data a = randomFloats(dim::evaluate(shape, values), 3);
  Data y = std::move(GpuKernel(g, {}, symbols).run({&a}, values)[0]);
  Shape sizes = a.type.shape;
  for (int64_t i = 0; i < a.size(); ++i) {
    float most = -INFINITY;
    for (int64_t j = 0; j < a.size(); ++j) {
      bool together = true;
      int64_t p = i, q = j;
      for (int d = 8; d-- > 0; p /= sizes[d].number(), q /= sizes[d].number())
        together &= d == 0 || d == 2 || d == 7 || p % sizes[d] == q % sizes[d];
      if (together)
        most = std::max(most, a.as<float>()[j]);
    }
    ASSERT_EQ(y.as<float>()[i], a.as<float>()[i] - most);
  }
}

/// Rows of a length that is bounded stay in registers as well.
TEST(CudaLoops, BoundedRows) {
  const Size m = dim::symbol("m", 1, 300);
  for (const cuda::LoopTuning &tuning : tunings(3)) {
    const GpuKernel k(softmax({3, m}, 1), tuning, {m});
    if (tuning.threadsPerRow == 0 || tuning.threadsPerRow >= 64)
      EXPECT_EQ(k.kernel.text.find("kept 0"), std::string::npos) << k.kernel.text;
    for (int64_t n : {1, 2, 31, 64, 299, 300}) {
      dim::Values values;
      values.bind(m, n);
      Data x = randomFloats({3, n}, 3, -10, 10);
      expectNear(k.run({&x}, values)[0], softmaxOf(x, 3, n, 1), kRelative, 0);
    }
  }
}

/// Over the outer dimension, the inner one, both, and around one that stays.
TEST(CudaLoops, ReductionsOfEveryKind) {
  const Shape shape{12, 7, 40};
  Data x = randomFloats(shape, 5, -3, 3);
  for (int64_t i = 0; i < x.size(); ++i) // with equal ones
    x.as<float>()[i] = std::round(x.as<float>()[i]);
  for (const std::vector<int> &axes : {std::vector{0}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}})
    for (Combine combine : {Combine::Sum, Combine::Max, Combine::Min, Combine::ArgMax, Combine::ArgMin}) {
      const bool arg = combine >= Combine::ArgMax;
      if (arg && axes.size() > 1)
        continue;
      Graph g;
      g.results = {g.reduce(combine, g.input({f32, shape}), axes, arg ? i64 : f32)};
      auto reduced = [&](int d) { return std::find(axes.begin(), axes.end(), d) != axes.end(); };
      std::map<int64_t, std::pair<double, int64_t>> best;
      for (int64_t i = 0; i < x.size(); ++i) {
        const int64_t at[] = {i / 280, i / 40 % 7, i % 40};
        int64_t to = 0;
        for (int d = 0; d < 3; ++d)
          to = (reduced(d) ? to : to * shape[d] + at[d]).number();
        const double v = x.as<float>()[i];
        auto [it, fresh] = best.try_emplace(to, v, at[axes[0]]);
        if (fresh)
          continue;
        if (combine == Combine::Sum)
          it->second.first += v;
        else if (combine == Combine::Max || combine == Combine::ArgMax ? v > it->second.first : v < it->second.first)
          it->second = {v, at[axes[0]]};
      }
      for (const cuda::LoopTuning &tuning : tunings(static_cast<int64_t>(best.size()))) {
        SCOPED_TRACE("combine " + std::to_string(int(combine)) + " " + nameOf(tuning));
        Data y = std::move(GpuKernel(g, tuning).run({&x})[0]);
        ASSERT_EQ(static_cast<size_t>(y.size()), best.size());
        for (const auto &[at, want] : best)
          if (arg)
            ASSERT_EQ(y.as<int64_t>()[at], want.second);
          else
            ASSERT_EQ(y.as<float>()[at], want.first);
      }
    }
}

TEST(CudaLoops, FirstNanWins) {
  for (const cuda::LoopTuning &tuning : tunings(3)) {
    Graph g;
    const int x = g.input({f32, {3, 200}});
    g.results = {g.reduce(Combine::ArgMax, x, {1}, i64), g.reduce(Combine::Max, x, {1}, f32)};
    Data a = randomFloats({3, 200}, 5);
    a.as<float>()[200 + 150] = a.as<float>()[200 + 77] = NAN;
    for (int i = 0; i < 200; ++i)
      a.as<float>()[400 + i] = -INFINITY;
    auto y = GpuKernel(g, tuning).run({&a});
    EXPECT_EQ(y[0].as<int64_t>()[1], 77) << nameOf(tuning);
    EXPECT_EQ(y[0].as<int64_t>()[2], 0) << nameOf(tuning);
    EXPECT_TRUE(std::isnan(y[1].as<float>()[1]) && y[1].as<float>()[2] == -INFINITY) << nameOf(tuning);
  }
}

/// 2^20 terms of one result in one thread: rounding would show.
TEST(CudaLoops, LongSums) {
  const int64_t n = 1 << 20;
  Graph g;
  g.results = {g.reduce(Combine::Sum, g.input({f32, {n}}), {0}, f32)};
  Data x({f32, {n}});
  for (int64_t i = 0; i < n; ++i)
    x.as<float>()[i] = 0.1f;
  for (int row : {1, 2, 0})
    expectNear(GpuKernel(g, {0, row, 0}).run({&x})[0], {0.1f * double(n)}, row ? 1e-7 : 1e-5, 0);
}

/// |error| <= 48 u sum |x| (docs/numbers.md), by threads, by groups of them along rows, and across rows.
TEST(CudaLoops, SumsWithinTheirBound) {
  for (const Shape &shape : {Shape{512, 70}, Shape{70, 512}, Shape{20000, 3}, Shape{3, 20000}})
    for (int axis : {0, 1})
      for (int row : {1, 2, 0}) {
        Graph g;
        g.results = {g.reduce(Combine::Sum, g.input({f32, shape}), {axis}, f32)};
        Data x = randomFloats(shape, 5, -0.5, 1);
        for (int64_t i = 0; i < x.size(); i += 2)
          x.as<float>()[i] = 0.7f;
        const auto out = GpuKernel(g, {0, row, 0}).run({&x});
        const int64_t n = shape[1 - axis].number();
        std::vector<double> sum(size_t(n), 0.0), absolute(sum);
        for (int64_t i = 0; i < x.size(); ++i) {
          const double v = x.as<float>()[i];
          const auto at = size_t(axis ? i / shape[1] : i % shape[1]);
          sum[at] += v, absolute[at] += std::abs(v);
        }
        for (int64_t i = 0; i < n; ++i)
          ASSERT_LE(std::abs(double(Data(out[0]).as<float>()[i]) - sum[size_t(i)]), 48 * 0x1p-24 * absolute[size_t(i)])
              << shape.str() << " along " << axis << ", rows " << row << ", element " << i;
      }
}

TEST(CudaLoops, InstructionsOfF32FlushSubnormalNumbers) {
  const float tiny = 0x1p-130f;
  auto kernel = [](DType type, bool keep) {
    Graph g;
    g.keepSubnormals = keep;
    const int x = g.input({type, {64}});
    g.results = {g.binary(ScalarOp::Add, x, x, {64}), g.binary(ScalarOp::Max, x, x, {64})};
    return GpuKernel(g);
  };
  Data x({f32, {64}}), y({DType::f64, {64}});
  for (int i = 0; i < 64; ++i)
    x.as<float>()[i] = i % 2 ? float(i) : tiny, y.as<double>()[i] = 1e-310;
  for (bool keep : {false, true}) {
    const GpuKernel k = kernel(f32, keep);
    EXPECT_EQ(k.ptx().find(".ftz") == std::string::npos, keep) << k.ptx();
    auto out = k.run({&x});
    EXPECT_EQ(out[0].as<float>()[0], keep ? 2 * tiny : 0);
    EXPECT_EQ(out[1].as<float>()[0], keep ? tiny : 0);
    EXPECT_EQ(out[0].as<float>()[1], 2);
  }
  const GpuKernel full = kernel(DType::f64, false);
  EXPECT_EQ(full.run({&y})[0].as<double>()[3], 2e-310);
}

TEST(CudaLoops, HalvesAreNotFlushedWithF32) {
  // Whether a number that was rounded to 16 bits is 0: the comparison is of 16 bits. Assemblers refuse to flush one of bf16, and f16 would lose numbers.
  for (const DType type : {DType::f16, DType::bf16}) {
    Graph g;
    const int x = g.input({f32, {64}});
    Body b;
    const int rounded = b.op(ScalarOp::Cast, type, b.op(ScalarOp::Mul, f32, b.operand(0, f32), b.number(0.5)));
    g.results = {g.elementwise(b.result(b.op(ScalarOp::Cast, DType::boolean, rounded)), {x}, {DType::boolean, {64}})};
    const GpuKernel kernel(g);
    EXPECT_EQ(kernel.ptx().find(type == DType::f16 ? ".ftz.f16" : ".ftz.bf16"), std::string::npos) << kernel.ptx();
    if (type != DType::f16)
      continue;
    Data values({f32, {64}});
    for (int i = 0; i < 64; ++i)
      values.as<float>()[i] = i % 2 ? 0x1p-20f : 0; // half of it is a subnormal number of f16
    const auto out = kernel.run({&values});
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(Data(out[0]).as<uint8_t>()[i], i % 2) << i;
  }
}

Graph transpose(Size n, Size m, DType type) {
  Graph g;
  LoopForm f;
  f.domain = {n, m}, f.numParallel = 2;
  f.operands = {{{dim(1), dim(0)}}, {{dim(0), dim(1)}}};
  Body b;
  const int x = b.operand(0, type), y = b.operand(1, type);
  f.body = b.result(b.op(ScalarOp::Add, type, x, y));
  g.results = {g.op(f, {g.input({type, {m, n}}), g.input({type, {n, m}})}, {type, {n, m}})};
  return g;
}

TEST(CudaLoops, TransposesGoByTiles) {
  const Size s = dim::symbol("s"), t = dim::symbol("t");
  for (auto [n, m] : {std::pair<int64_t, int64_t>{32, 32}, {33, 64}, {100, 31}, {70, 130}, {1030, 513}})
    for (bool symbolic : {false, true}) {
      const GpuKernel k(symbolic ? transpose(s, t, DType::i16) : transpose(n, m, DType::i16), {},
                        symbolic ? std::vector<Size>{s, t} : std::vector<Size>());
      if (symbolic || n > 1000)
        EXPECT_NE(k.kernel.text.find("tile d0"), std::string::npos) << k.kernel.text;
      Data a({DType::i16, {m, n}}), b({DType::i16, {n, m}});
      for (int64_t i = 0; i < a.size(); ++i)
        a.as<int16_t>()[i] = int16_t(i), b.as<int16_t>()[i] = int16_t(3 * i);
      dim::Values values;
      values.bind(s, n), values.bind(t, m);
      // In place on what is read point by point.
      Data y = std::move(k.run({&a, &b}, values, 0, {{0, 1}})[0]);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < m; ++j)
          ASSERT_EQ(y.as<int16_t>()[i * m + j], int16_t(j * n + i + 3 * (i * m + j))) << i << ' ' << j;
    }
}

/// y[i, j] = x[index[i], j]; the last index is bad.
TEST(CudaLoops, GathersAndBadIndices) {
  for (int64_t m : {1, 5, 64, 100})
    for (bool bad : {false, true}) {
      Graph g;
      const int x = g.input({f32, {10, m}}), index = g.input({DType::i32, {7}});
      LoopForm f;
      f.domain = {7, m}, f.numParallel = 2;
      f.operands = {{{{{}, 0, 1}, dim(1)}}, {{dim(0)}}};
      Body b;
      f.body = b.result(b.operand(0, f32));
      g.results = {g.op(f, {x, index}, {f32, {7, m}})};
      Data a = randomFloats({10, m}, 4), i({DType::i32, {7}});
      const int32_t at[] = {3, -1, 0, 9, -10, 5, bad ? 10 : 2};
      std::memcpy(i.bytes.data(), at, sizeof at);
      Data y = std::move(GpuKernel(g).run({&a, &i}, {}, bad ? runtime::kKernelIndexOutOfRange : 0)[0]);
      for (int64_t r = 0; r < 6; ++r)
        for (int64_t c = 0; c < m; ++c)
          ASSERT_EQ(y.as<float>()[r * m + c], a.as<float>()[(at[r] + 10) % 10 * m + c]);
    }
}

TEST(CudaLoops, InPlace) {
  for (const cuda::LoopTuning &tuning : tunings(5)) {
    const Shape shape{5, 100};
    Data x = randomFloats(shape, 7, -10, 10);
    const std::vector<double> want = softmaxOf(x, 5, 100, 1);
    expectNear(GpuKernel(softmax(shape, 1), tuning).run({&x}, {}, 0, {{0, 0}})[0], want, kRelative, 0);
  }
}

/// A result of each row lies on an operand that all threads of the row need.
TEST(CudaLoops, RowsResultsInPlace) {
  const int64_t rows = 6;
  for (int64_t n : {7, 64, 500})
    for (const cuda::LoopTuning &tuning : tunings(rows)) {
      SCOPED_TRACE(std::to_string(n) + " " + nameOf(tuning));
      Graph g;
      const int x = g.input({f32, {rows, n}}), running = g.input({f32, {rows, 1}});
      const int sum = g.reduce(Combine::Sum, x, {1}, f32);
      g.results = {g.binary(ScalarOp::Sub, x, running, {rows, n}), g.binary(ScalarOp::Add, running, sum, {rows, 1})};
      Data a = randomFloats({rows, n}, 4), r = randomFloats({rows, 1}, 5);
      auto out = GpuKernel(g, tuning).run({&a, &r}, {}, 0, {{0, 0}, {1, 1}});
      std::vector<double> full, of;
      for (int64_t i = 0; i < rows; ++i) {
        of.push_back(r.as<float>()[i]);
        for (int64_t j = 0; j < n; ++j)
          of.back() += a.as<float>()[i * n + j], full.push_back(a.as<float>()[i * n + j] - r.as<float>()[i]);
      }
      expectNear(out[0], full, kUnit, 0);
      expectNear(out[1], of, 0, kUnit * 2 * static_cast<double>(n));
    }
}

TEST(CudaLoops, Products) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 64, 32}, {7, 100, 33}, {17, 13, 64}, {5, 1, 300}})
    for (bool transposed : {false, true})
      for (const cuda::LoopTuning &tuning : tunings(m * n)) {
        Graph g;
        const int x = g.input({f32, {m, k}}), w = g.input({f32, transposed ? Shape{n, k} : Shape{k, n}});
        g.results = {g.matmul(x, w, m, n, k, transposed)};
        Data a = randomFloats({m, k}, 4), c = randomFloats({k, n}, 5);
        std::vector<double> want;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t l = 0; l < k; ++l)
              sum += double(a.as<float>()[i * k + l]) * c.as<float>()[transposed ? j * k + l : l * n + j];
            want.push_back(sum);
          }
        expectNear(GpuKernel(g, tuning).run({&a, &c})[0], want, 0, kUnit * 4 * static_cast<double>(k));
      }
}

// What the PTX is made of.

size_t count(const std::string &text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

class CudaPtx : public testing::TestWithParam<std::string> {
protected:
  /// PTX without calls and without local memory, which the assembler takes, where there is one, without spilling.
  std::string ptx(const GpuKernel &k, int registers = 64) {
    const std::string text = k.ptx(GetParam());
    EXPECT_EQ(count(text, "call"), 0u);
    EXPECT_EQ(count(text, ".local"), 0u);
    if (const auto assembled = cuda::assemble(text, cuda::findArch(GetParam()))) {
      EXPECT_EQ(assembled->kernels.size(), 1u);
      for (const cuda::KernelResources &r : assembled->kernels) {
        EXPECT_LE(r.registers, registers);
        EXPECT_EQ(r.spillStores + r.spillLoads + r.stackBytes, 0);
      }
    }
    return text;
  }
};
INSTANTIATE_TEST_SUITE_P(Archs, CudaPtx, testing::Values("sm_80", "sm_90", "sm_100", "sm_120"),
                         [](const auto &info) { return info.param; });

TEST_P(CudaPtx, RowsStayInRegisters) {
  const std::string text = ptx(GpuKernel(softmax({8192, 1024}, 1)), 40);
  EXPECT_EQ(count(text, "ld.global.v4"), count(text, "ld.global")) << text;
  EXPECT_EQ(count(text, "ld.global.v4"), count(text, "st.global.v4")); // each element once
  EXPECT_GT(count(text, "shfl.sync.bfly"), 0u);
  const std::string norm = ptx(GpuKernel(layerNorm({8192, 1024})), 40);
  EXPECT_EQ(count(norm, "ld.global.v4"), 3 * count(norm, "st.global.v4"));
}

TEST_P(CudaPtx, VectorsOf16Bytes) {
  for (DType type : {f32, DType::f16, DType::bf16, DType::i8, DType::i32}) {
    Graph g;
    const int x = g.input({type, {1 << 22}}), y = g.input({type, {1 << 22}});
    g.results = {g.binary(ScalarOp::Max, x, y, {1 << 22})};
    const std::string text = ptx(GpuKernel(g), 72);
    EXPECT_EQ(count(text, "ld.global.v4") + count(text, "ld.global.nc.v4"), 2u) << text;
    EXPECT_EQ(count(text, "st.global.v4"), 1u);
    EXPECT_EQ(count(text, "ld.global"), 2u);
  }
}

/// All scalar functions of all types become instructions, and none that rounds otherwise than IEEE 754 says. (That f32 flushes subnormal numbers is
/// no matter of rounding.)
TEST_P(CudaPtx, ScalarFunctions) {
  auto check = [&](const Graph &g, const char *what) {
    SCOPED_TRACE(what);
    const std::string text = ptx(GpuKernel(g, {32, 0, 1}), 255);
    for (const char *inexact : {".approx", "div.full"})
      EXPECT_EQ(count(text, inexact), 0u) << inexact << text;
  };
  for (DType type : {f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i32, DType::i64, DType::u8}) {
    Graph unary, binary, casts;
    const int x = unary.input({type, {64}});
    for (int o = static_cast<int>(ScalarOp::Neg); o <= static_cast<int>(ScalarOp::Logistic); ++o)
      if (isFloat(type) || o <= static_cast<int>(ScalarOp::Trunc))
        unary.results.push_back(unary.unary(static_cast<ScalarOp>(o), x));
    check(unary, "unary");
    const int a = binary.input({type, {64}}), b = binary.input({type, {64}});
    for (ScalarOp o : {ScalarOp::Add, ScalarOp::Sub, ScalarOp::Mul, ScalarOp::Div, ScalarOp::Rem, ScalarOp::Pow,
                       ScalarOp::Min, ScalarOp::Max, ScalarOp::Eq, ScalarOp::Lt})
      binary.results.push_back(binary.binary(o, a, b, {64}));
    check(binary, "binary");
    const int c = casts.input({type, {64}});
    for (DType to : {f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8,
                     DType::boolean})
      if (to != type) {
        Body body;
        casts.results.push_back(
            casts.elementwise(body.result(body.op(ScalarOp::Cast, to, body.operand(0, type))), {c}, {to, {64}}));
      }
    check(casts, "casts");
  }
}

TEST_P(CudaPtx, SharedMemoryOnlyWhereWarpsMeet) {
  auto sums = [](const Shape &shape, int axis) {
    Graph g;
    g.results = {g.reduce(Combine::Sum, g.input({f32, shape}), {axis}, f32)};
    return g;
  };
  const std::string warps = ptx(GpuKernel(sums({100000, 64}, 1))), blocks = ptx(GpuKernel(sums({200, 100000}, 1)), 64),
                    columns = ptx(GpuKernel(sums({1000, 300}, 0)), 64),
                    tiles = ptx(GpuKernel(transpose(2048, 2048, f32)));
  EXPECT_EQ(count(warps, "bar.sync") + count(warps, "barrier.sync"), 0u) << warps;
  EXPECT_EQ(count(warps, ".shared"), 0u);
  for (const std::string *text : {&blocks, &columns, &tiles})
    EXPECT_GT(count(*text, "bar.sync") + count(*text, "barrier.sync"), 0u) << *text;
  EXPECT_GT(count(blocks, "shfl.sync.bfly"), 0u);
}

} // namespace
} // namespace tressel::codegen::test
