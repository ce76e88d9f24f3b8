// Reading in other orders and places: transposes, slices, padding, concatenation, gathers, windows; empty tensors, and
// results that share their bytes with an operand.
#include "Harness.h"

#include <algorithm>

namespace tressel::codegen::test {
namespace {

class Movement : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Movement, ::testing::ValuesIn(levels()), [](const auto &info) { return info.param; });

/// One loop over `shape` that copies operand values read by the maps.
LoopForm copyForm(const Shape &shape, std::vector<OperandMap> maps, DType type = f32) {
  LoopForm form;
  form.domain.assign(shape.begin(), shape.end());
  form.numParallel = shape.rank();
  form.operands = std::move(maps);
  Body b;
  form.body = b.result(b.operand(0, type));
  return form;
}

TEST_P(Movement, TransposeThenAdd) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{5, 9}, {64, 33}, {100, 3}}) {
    Graph g;
    const int x = g.input({f32, {m, n}}), y = g.input({f32, {n, m}});
    const int t = g.op(copyForm({n, m}, {{{dim(1), dim(0)}}}), {x}, {f32, {n, m}});
    g.results = {g.binary(ScalarOp::Add, t, y, {n, m})};
    Compiled k(g, GetParam());
    Data a = randomFloats({m, n}, 1), b = randomFloats({n, m}, 2);
    std::vector<double> want;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i)
        want.push_back(a.as<float>()[i * n + j] + b.as<float>()[j * m + i]);
    expectNear(k.run({&a, &b}, 2)[0], want, 0, 0);
  }
}

/// Random bits; of bool, 0 or 1.
Data randomBits(const TensorType &type, uint32_t seed) {
  Data d(type);
  std::mt19937 rng(seed);
  for (std::byte &b : d.bytes)
    b = std::byte(type.dtype == DType::boolean ? rng() & 1 : rng() & 0xff);
  return d;
}

TEST_P(Movement, TransposesOfEveryTypeGoByTiles) {
  for (DType type : {f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8,
                     DType::boolean})
    for (auto [m, n] : {std::pair<int64_t, int64_t>{64, 64}, {37, 50}, {33, 32}, {32, 97}, {81, 47}, {200, 130}, {700, 65}}) {
      Graph g;
      g.results = {g.op(copyForm({n, m}, {{{dim(1), dim(0)}}}, type), {g.input({type, {m, n}})}, {type, {n, m}})};
      Compiled k(g, GetParam());
      EXPECT_TRUE(k.schedule.tiles);
      Data x = randomBits({type, {m, n}}, 11);
      for (int64_t chunk : {int64_t(1), int64_t(1) << 30}) {
        Data y = std::move(k.run({&x}, chunk)[0]);
        const auto size = static_cast<size_t>(sizeOf(type));
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j)
            ASSERT_EQ(std::memcmp(&x.bytes[static_cast<size_t>(i * n + j) * size],
                                  &y.bytes[static_cast<size_t>(j * m + i) * size], size),
                      0)
                << nameOf(type) << " " << m << "x" << n << " at " << i << ", " << j;
      }
    }
}

TEST_P(Movement, OrdersOfThreeDimensions) {
  int byTiles = 0;
  for (const Shape &shape : {Shape{3, 40, 35}, Shape{34, 5, 41}, Shape{19, 33, 3}}) {
    int order[] = {0, 1, 2};
    do {
      const Shape to{shape[order[0]], shape[order[1]], shape[order[2]]};
      OperandMap map{{dim(0), dim(0), dim(0)}};
      for (int d = 0; d < 3; ++d)
        map.dims[static_cast<size_t>(order[d])] = dim(d);
      Graph g;
      g.results = {g.op(copyForm(to, {map}), {g.input({f32, shape})}, {f32, to})};
      Compiled k(g, GetParam());
      byTiles += k.schedule.tiles;
      Data x = randomFloats(shape, 12);
      std::vector<double> want;
      int64_t at[3];
      for (at[order[0]] = 0; at[order[0]] < to[0]; ++at[order[0]])
        for (at[order[1]] = 0; at[order[1]] < to[1]; ++at[order[1]])
          for (at[order[2]] = 0; at[order[2]] < to[2]; ++at[order[2]])
            want.push_back(x.as<float>()[(at[0] * shape.extent(1) + at[1]) * shape.extent(2) + at[2]]);
      expectNear(k.run({&x}, 1)[0], want, 0, 0);
    } while (std::next_permutation(order, order + 3));
  }
  EXPECT_GE(byTiles, 6);
}

/// relu(transpose(x)) + y + v, where the result takes the place of y.
TEST_P(Movement, TilesAmongOtherOperands) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{64, 64}, {50, 37}, {131, 90}}) {
    Graph g;
    const int x = g.input({f32, {m, n}}), y = g.input({f32, {n, m}}), v = g.input({f32, {n, 1}});
    const int t = g.op(copyForm({n, m}, {{{dim(1), dim(0)}}}), {x}, {f32, {n, m}});
    const int relu = g.binary(ScalarOp::Max, t, g.splat(f32, 0), {n, m});
    g.results = {g.binary(ScalarOp::Add, g.binary(ScalarOp::Add, relu, y, {n, m}), v, {n, m})};
    Compiled k(g, GetParam());
    EXPECT_TRUE(k.schedule.tiles);
    Data a = randomFloats({m, n}, 13), b = randomFloats({n, m}, 14), c = randomFloats({n, 1}, 15);
    std::vector<double> want;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i)
        want.push_back((std::max(a.as<float>()[i * n + j], 0.0f) + b.as<float>()[j * m + i]) + c.as<float>()[j]);
    for (int64_t u = 0; u < k.schedule.range; ++u)
      EXPECT_EQ(k.call({a.bytes.data(), b.bytes.data(), c.bytes.data(), b.bytes.data()}, u, u + 1), 0);
    expectNear(b, want, 0, 0);
  }
}

/// transpose(x + y + z) and transpose(x + y < z): lanes along what is read, so that it is the result that goes by tiles.
TEST_P(Movement, ResultsByTiles) {
  for (bool compare : {false, true})
    for (auto [m, n] : {std::pair<int64_t, int64_t>{64, 64}, {50, 37}, {33, 49}, {131, 90}}) {
      Graph g;
      const int x = g.input({f32, {m, n}}), y = g.input({f32, {m, n}}), z = g.input({f32, {m, n}});
      const DType type = compare ? DType::boolean : f32;
      const int sum = g.binary(ScalarOp::Add, x, y, {m, n});
      const int value = g.binary(compare ? ScalarOp::Lt : ScalarOp::Add, sum, z, {m, n});
      g.results = {g.op(copyForm({n, m}, {{{dim(1), dim(0)}}}, type), {value}, {type, {n, m}})};
      Compiled k(g, GetParam());
      EXPECT_TRUE(movesByTiles(k.plan.stores[0].index, -1, k.plan, k.schedule));
      Data a = randomFloats({m, n}, 16), b = randomFloats({m, n}, 17), c = randomFloats({m, n}, 18);
      Data got = std::move(k.run({&a, &b, &c}, 1)[0]);
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i) {
          const float s = a.as<float>()[i * n + j] + b.as<float>()[i * n + j], r = c.as<float>()[i * n + j];
          if (compare)
            ASSERT_EQ(got.as<bool>()[j * m + i], s < r) << i << ", " << j;
          else
            ASSERT_EQ(got.as<float>()[j * m + i], s + r) << i << ", " << j;
        }
    }
}

TEST_P(Movement, ATensorPlusItsTranspose) {
  const int64_t n = 21;
  Graph g;
  const int x = g.input({f32, {n, n}});
  const int t = g.op(copyForm({n, n}, {{{dim(1), dim(0)}}}), {x}, {f32, {n, n}});
  g.results = {g.binary(ScalarOp::Sub, x, t, {n, n})};
  Compiled k(g, GetParam());
  Data a = randomFloats({n, n}, 3);
  std::vector<double> want;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      want.push_back(a.as<float>()[i * n + j] - a.as<float>()[j * n + i]);
  expectNear(k.run({&a})[0], want, 0, 0);
}

TEST_P(Movement, SliceWithStridesBothWays) {
  Graph g;
  const int x = g.input({f32, {7, 90}});
  g.results = {g.op(copyForm({3, 29}, {{{dim(0, 2, 1), dim(1, -3, 88)}}}), {x}, {f32, {3, 29}})};
  Compiled k(g, GetParam());
  Data a = randomFloats({7, 90}, 4);
  std::vector<double> want;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 29; ++j)
      want.push_back(a.as<float>()[(2 * i + 1) * 90 + 88 - 3 * j]);
  expectNear(k.run({&a})[0], want, 0, 0);
}

TEST_P(Movement, PaddingOfAComputedValue) {
  // exp(x) padded by 7: beyond the edge nothing is read, and the padding is not exponentiated.
  Graph g;
  const int x = g.input({f32, {5, 19}});
  LoopForm pad = copyForm({8, 40}, {{{dim(0, 1, -2), dim(1, 1, -9)}, true, 7.0}});
  g.results = {g.op(pad, {g.unary(ScalarOp::Exp, x)}, {f32, {8, 40}})};
  Compiled k(g, GetParam());
  Data a = randomFloats({5, 19}, 5);
  std::vector<double> want;
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 40; ++j) {
      const bool in = i >= 2 && i < 7 && j >= 9 && j < 28;
      want.push_back(in ? std::exp(double(a.as<float>()[(i - 2) * 19 + j - 9])) : 7);
    }
  expectNear(k.run({&a}, 1)[0], want, 1e-6, 0);
}

TEST_P(Movement, ConcatenationAlongEachAxis) {
  for (int axis : {0, 1}) {
    Graph g;
    const Shape sa = axis ? Shape{6, 5} : Shape{2, 30}, sb = axis ? Shape{6, 18} : Shape{1, 30},
                sc = axis ? Shape{6, 7} : Shape{3, 30};
    const Shape out = axis ? Shape{6, 30} : Shape{6, 30};
    const int x = g.input({f32, sa}), y = g.input({f32, sb}), z = g.input({f32, sc});
    LoopForm form = copyForm(out, {});
    form.alternatives = true;
    int64_t offset = 0;
    for (const Shape &s : {sa, sb, sc}) {
      OperandMap map{{dim(0), dim(1)}, true, 0};
      map.dims[static_cast<size_t>(axis)].offset = -offset;
      offset += s.extent(axis);
      form.operands.push_back(map);
    }
    g.results = {g.op(form, {x, g.unary(ScalarOp::Neg, y), z}, {f32, out})};
    Compiled k(g, GetParam());
    Data a = randomFloats(sa, 6), b = randomFloats(sb, 7), c = randomFloats(sc, 8);
    std::vector<double> want;
    for (int64_t i = 0; i < 6; ++i)
      for (int64_t j = 0; j < 30; ++j) {
        int64_t at = axis ? j : i;
        auto read = [&](Data &d, int64_t p) {
          return axis ? d.as<float>()[i * d.type.shape.extent(1) + p] : d.as<float>()[p * 30 + j];
        };
        if (at < sa.extent(axis))
          want.push_back(read(a, at));
        else if ((at -= sa.extent(axis)) < sb.extent(axis))
          want.push_back(-read(b, at));
        else
          want.push_back(read(c, at - sb.extent(axis)));
      }
    expectNear(k.run({&a, &b, &c})[0], want, 0, 0);
  }
}

/// y[i, j] = x[index[i], j], or y[i, j] = x[j, index[i]].
Graph gather(bool rows, DType indexType, int64_t n, int64_t count) {
  Graph g;
  const int x = g.input({f32, rows ? Shape{n, 20} : Shape{20, n}}), index = g.input({indexType, {count}});
  IndexExpr e = at(0);
  e.indirect = 1;
  LoopForm form = copyForm({count, 20}, {{rows ? std::vector{e, dim(1)} : std::vector{dim(1), e}}, {{dim(0)}}});
  g.results = {g.op(form, {x, index}, {f32, {count, 20}})};
  return g;
}

TEST_P(Movement, GatherCountsNegativeIndicesFromTheEnd) {
  for (bool rows : {true, false}) {
    Compiled k(gather(rows, DType::i32, 11, 6), GetParam());
    Data x = randomFloats(rows ? Shape{11, 20} : Shape{20, 11}, 9), index({DType::i32, {6}});
    const int32_t at[] = {0, 10, -1, -11, 5, 5};
    std::copy(at, at + 6, index.as<int32_t>());
    std::vector<double> want;
    for (int32_t i : at)
      for (int64_t j = 0; j < 20; ++j) {
        const int64_t r = i < 0 ? i + 11 : i;
        want.push_back(x.as<float>()[rows ? r * 20 + j : j * 11 + r]);
      }
    expectNear(k.run({&x, &index})[0], want, 0, 0);
  }
}

TEST_P(Movement, GatherOutsideFailsTheLaunch) {
  for (bool rows : {true, false})
    for (int64_t bad : {int64_t(11), int64_t(-12), int64_t(1) << 40}) {
      Compiled k(gather(rows, DType::i64, 11, 6), GetParam());
      Data x = randomFloats(rows ? Shape{11, 20} : Shape{20, 11}, 9), index({DType::i64, {6}});
      index.as<int64_t>()[4] = bad;
      k.run({&x, &index}, 1 << 30, runtime::kKernelIndexOutOfRange);
    }
}

TEST_P(Movement, GatherOutsideOfEqualElementsFailsToo) {
  for (int64_t size : {3, 0}) {
    Graph g; // y[i] = x[index[i]], and x is 2 everywhere
    const int index = g.input({DType::i64, {5}}), x = g.splat(f32, 2);
    g.types[static_cast<size_t>(x)].shape = {size};
    IndexExpr e = at(0);
    e.indirect = 1;
    g.results = {g.op(copyForm({5}, {{{e}}, {{dim(0)}}}), {x, index}, {f32, {5}})};
    Compiled k(g, GetParam());
    Data at({DType::i64, {5}});
    std::fill_n(at.as<int64_t>(), 5, 1);
    if (size)
      expectNear(k.run({&at})[0], {2, 2, 2, 2, 2}, 0, 0);
    at.as<int64_t>()[3] = size;
    k.run({&at}, 1 << 30, runtime::kKernelIndexOutOfRange);
  }
}

TEST_P(Movement, GatherFromNothingFails) {
  Graph g;
  const int x = g.input({f32, {0}}), index = g.input({DType::i64, {5}});
  IndexExpr e = at(0);
  e.indirect = 1;
  g.results = {g.op(copyForm({5}, {{{e}}, {{dim(0)}}}), {x, index}, {f32, {5}})};
  Compiled k(g, GetParam());
  Data a({f32, {0}}), at({DType::i64, {5}});
  std::fill_n(at.as<int64_t>(), 5, 0);
  k.run({&a, &at}, 1 << 30, runtime::kKernelIndexOutOfRange);
}

TEST_P(Movement, GatherAlongTheLanes) {
  Graph g; // y[i] = x[index[i]]
  const int x = g.input({f32, {50}}), index = g.input({DType::i64, {37}});
  IndexExpr e = at(0);
  e.indirect = 1;
  g.results = {g.op(copyForm({37}, {{{e}}, {{dim(0)}}}), {x, index}, {f32, {37}})};
  Compiled k(g, GetParam());
  Data a = randomFloats({50}, 10), at({DType::i64, {37}});
  std::vector<double> want;
  for (int64_t i = 0; i < 37; ++i) {
    at.as<int64_t>()[i] = i * 7 % 50 - (i % 2 ? 50 : 0);
    want.push_back(a.as<float>()[i * 7 % 50]);
  }
  expectNear(k.run({&a, &at})[0], want, 0, 0);
  at.as<int64_t>()[36] = 50;
  k.run({&a, &at}, 1 << 30, runtime::kKernelIndexOutOfRange);
}

TEST_P(Movement, ConvolutionAndPoolingWithPadding) {
  for (int64_t width : {9, 28}) {
    const int64_t channels = 3, features = 5, height = 6;
    Graph g;
    const int x = g.input({f32, {2, channels, height, width}}), w = g.input({f32, {features, channels, 3, 3}});
    LoopForm conv;
    conv.domain = {2, features, height, width, channels, 3, 3};
    conv.numParallel = 4;
    OperandMap image{{dim(0), dim(4), {{{2, 1}, {5, 1}}, -1}, {{{3, 1}, {6, 1}}, -1}}, true, 0};
    conv.operands = {image, {{dim(1), dim(4), dim(5), dim(6)}}};
    Body b;
    const int p = b.operand(0, f32), q = b.operand(1, f32);
    conv.body = b.result(b.op(ScalarOp::Mul, f32, p, q));
    conv.combine = Combine::Sum;
    const int y = g.op(conv, {x, w}, {f32, {2, features, height, width}});
    g.results = {g.unary(ScalarOp::Tanh, y)};
    Compiled k(g, GetParam());
    Data a = randomFloats({2, channels, height, width}, 11),
         c = randomFloats({features, channels, 3, 3}, 12, -0.2f, 0.2f);
    std::vector<double> sums;
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t o = 0; o < features; ++o)
        for (int64_t i = 0; i < height; ++i)
          for (int64_t j = 0; j < width; ++j) {
            double sum = 0;
            for (int64_t ch = 0; ch < channels; ++ch)
              for (int64_t r = 0; r < 3; ++r)
                for (int64_t s = 0; s < 3; ++s)
                  if (i + r >= 1 && i + r <= height && j + s >= 1 && j + s <= width)
                    sum += double(a.as<float>()[((n * channels + ch) * height + i + r - 1) * width + j + s - 1]) *
                           c.as<float>()[((o * channels + ch) * 3 + r) * 3 + s];
            sums.push_back(std::tanh(sum));
          }
    expectNear(k.run({&a, &c}, 3)[0], sums, 1e-5, 1e-6);

    Graph h; // 3x3 windows, stride 2, padding counts as minus infinity
    const int v = h.input({f32, {4, 7, width}});
    LoopForm pool;
    const int64_t out = (width + 1) / 2;
    pool.domain = {4, 4, out, 3, 3};
    pool.numParallel = 3;
    pool.operands = {
        {{dim(0), {{{1, 2}, {3, 1}}, -1}, {{{2, 2}, {4, 1}}, -1}}, true, -std::numeric_limits<double>::infinity()}};
    Body e;
    pool.body = e.result(e.operand(0, f32));
    pool.combine = Combine::Max;
    h.results = {h.op(pool, {v}, {f32, {4, 4, out}})};
    Compiled kp(h, GetParam());
    Data d = randomFloats({4, 7, width}, 13);
    std::vector<double> want;
    for (int64_t n = 0; n < 4; ++n)
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t j = 0; j < out; ++j) {
          double best = -1e30;
          for (int64_t r = 2 * i - 1; r < 2 * i + 2; ++r)
            for (int64_t s = 2 * j - 1; s < 2 * j + 2; ++s)
              if (r >= 0 && r < 7 && s >= 0 && s < width)
                best = std::max(best, double(d.as<float>()[(n * 7 + r) * width + s]));
          want.push_back(best);
        }
    expectNear(kp.run({&d})[0], want, 0, 0);
  }
}

TEST_P(Movement, IndicesAsValues) {
  Graph g;
  LoopForm form;
  form.domain = {3, 40};
  form.numParallel = 2;
  Body b;
  const int sum = b.op(ScalarOp::Add, DType::i64,
                       b.op(ScalarOp::Mul, DType::i64, b.index(0), b.number(100, DType::i64)), b.index(1));
  form.body = b.result(b.op(ScalarOp::Cast, f32, sum));
  g.results = {g.op(form, {}, {f32, {3, 40}})};
  Compiled k(g, GetParam());
  std::vector<double> want;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 40; ++j)
      want.push_back(100 * i + j);
  expectNear(k.run({}, 1)[0], want, 0, 0);
}

TEST_P(Movement, EmptyTensors) {
  Graph g;
  const int x = g.input({f32, {4, 0}});
  g.results = {g.unary(ScalarOp::Exp, x)};
  Data a({f32, {4, 0}});
  Compiled(g, GetParam()).run({&a});
  Graph h; // the sum of nothing is 0, its maximum minus infinity
  const int y = h.input({f32, {4, 0}});
  h.results = {h.reduce(Combine::Sum, y, {1}, f32), h.reduce(Combine::Max, y, {1}, f32)};
  auto out = Compiled(h, GetParam()).run({&a});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(out[0].as<float>()[i], 0);
    EXPECT_EQ(out[1].as<float>()[i], -std::numeric_limits<float>::infinity());
  }
}

TEST_P(Movement, ResultInPlaceOfAnOperandReadPointByPoint) {
  const int64_t rows = 5, n = 1000;
  Graph g;
  const int x = g.input({f32, {rows, n}});
  const int e = g.unary(ScalarOp::Exp, g.binary(ScalarOp::Sub, x, g.reduce(Combine::Max, x, {1}, f32), {rows, n}));
  g.results = {g.binary(ScalarOp::Div, e, g.reduce(Combine::Sum, e, {1}, f32), {rows, n})};
  Compiled k(g, GetParam());
  Data a = randomFloats({rows, n}, 14), b = a;
  auto apart = k.run({&a});
  ASSERT_EQ(k.call({b.bytes.data(), b.bytes.data()}, 0, k.schedule.range.number()), 0);
  EXPECT_EQ(std::memcmp(apart[0].bytes.data(), b.bytes.data(), static_cast<size_t>(a.type.bytes())), 0);
}

TEST(LoopPlan, SaysWhyOpsDoNotShareANest) {
  Graph g; // a product summed over its columns, by which it is computed
  const int x = g.input({f32, {4, 5}}), w = g.input({f32, {5, 6}});
  g.results = {g.reduce(Combine::Sum, g.matmul(x, w, 4, 6, 5), {1}, f32)};
  std::string why;
  EXPECT_FALSE(buildLoopPlan(g, &why));
  EXPECT_EQ(why, "one op reduces a dimension that another one keeps");
}

} // namespace
} // namespace tressel::codegen::test
