// Matrix products against a plain loop.
#include "Kernels.h"
#include "runtime/kernels/ProductKernel.h"
#include "runtime/kernels/ProductParams.h"
#include "tressel/runtime/Error.h"

#include <cstring>
#include <thread>

namespace tressel::kernels::test {
namespace {

class Products : public ::testing::TestWithParam<Level> {};
INSTANTIATE_TEST_SUITE_P(Levels, Products, ::testing::ValuesIn(levelsAndTiles()),
                         [](const auto &info) { return nameOf(info.param); });

/// Elements that a tensor with these sizes and strides spans.
int64_t extent(std::initializer_list<std::pair<int64_t, int64_t>> dims) {
  int64_t last = 0;
  for (auto [size, stride] : dims)
    last += (size - 1) * stride;
  return last + 1;
}

runtime::KernelDesc describe(const ProductParams &p, const std::string &text, int32_t numInputs) {
  runtime::KernelDesc desc;
  desc.symbol = "test", desc.provider = "builtin", desc.params = text, desc.numInputs = numInputs;
  desc.scratchBytes = p.scratchBytes();
  return desc;
}

runtime::LoadedKernel load(const ProductParams &p, const Level &level) {
  return makeProduct(describe(p, p.text(), p.packed >= 0 ? 3 : 2), Fields::parse(p.text()), level);
}

/// One call of `kernel`, which was made of `p`; `scalars` are the values of its symbols.
void call(const runtime::LoadedKernel &kernel, const ProductParams &symbolic, const Level &level,
          const std::vector<int64_t> &scalars = {}, int64_t chunk = 1) {
  const ProductSizes<int64_t> p = symbolic.at(scalars.data());
  Stored left(randomValues(extent({{p.batch, p.a[0]}, {p.m, p.a[1]}, {p.k, p.a[2]}}), 1), p.element),
      right(randomValues(extent({{p.batch, p.b[0]}, {p.k, p.b[1]}, {p.n, p.b[2]}}), 2), p.element);
  const std::vector<float> &a = left.values, &b = right.values;
  Memory c(p.batch * p.m * p.n * bytesOf(p.element)), packed(p.packed >= 0 ? symbolic.packedBytes() : 0);
  std::vector<void *> buffers{left.get(), right.get(), c.get()};
  if (p.packed >= 0) {
    run(makeProductPack(describe(symbolic, symbolic.packText(), 1), Fields::parse(symbolic.packText()), level),
        {buffers[1], packed.get()}, 1, 1, 0);
    buffers.insert(buffers.begin() + 2, packed.get());
  }
  run(kernel, buffers, p.units(), chunk, symbolic.scratchBytes(), scalars);
  for (int64_t i = 0; i < p.batch; ++i)
    for (int64_t r = 0; r < p.m; ++r)
      for (int64_t n = 0; n < p.n; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < p.k; ++k)
          sum += double(a[static_cast<size_t>(i * p.a[0] + r * p.a[1] + k * p.a[2])]) *
                 b[static_cast<size_t>(i * p.b[0] + k * p.b[1] + n * p.b[2])];
        ASSERT_NEAR(c.at((i * p.m + r) * p.n + n, p.element), sum,
                    1e-5 * std::sqrt(double(p.k)) + epsilonOf(p.element) * std::abs(sum))
            << symbolic.text() << " at " << i << " " << r << " " << n;
      }
}

/// In all types, and with the right side packed as each.
void check(ProductParams p, const Level &level, int64_t chunk = 1) {
  for (Element element : {Element::F32, Element::F16, Element::BF16})
    for (Element packedAs : {Element::F32, element}) {
      p.element = element, p.packedAs = packedAs;
      call(load(p, level), p, level, {}, chunk);
      if (p.packed < 0 || element == Element::F32)
        break;
    }
}

/// Row-major operands.
ProductParams plain(Size m, Size n, Size k) {
  ProductParams p;
  p.m = m, p.n = n, p.k = k, p.a = {0, k, 1}, p.b = {0, n, 1}, p.rows = m, p.typicalRows = dim::hint(m);
  return p;
}

TEST_P(Products, AllNumbersOfRows) {
  for (int64_t m = 1; m <= 70; ++m)
    for (bool packed : {false, true}) {
      ProductParams p = plain(m, 80 + m % 3, 37);
      p.packed = packed ? 2 : -1;
      check(p, GetParam());
    }
}

TEST_P(Products, AllNumbersOfColumnsAndDepths) {
  for (int64_t size = 1; size <= 70; ++size)
    for (int64_t m : {1, 5, 13})
      for (bool packed : {false, true}) {
        ProductParams wide = plain(m, size, 9), deep = plain(m, 21, size);
        wide.packed = deep.packed = packed ? 2 : -1;
        check(wide, GetParam());
        check(deep, GetParam());
      }
}

TEST_P(Products, FewColumnsOfGreatDepth) {
  for (int64_t n = 1; n <= 26; ++n)
    for (auto [m, k] :
         {std::array<int64_t, 2>{1, 12 * n}, {7, 230}, {n == 10 ? 20 : 3, n % 9 == 1 ? 1100 + n : 200 - n}})
      for (bool packed : {false, true}) {
        ProductParams p = plain(m, n, k);
        p.packed = packed ? 2 : -1, p.parts = 1 + n % 3;
        check(p, GetParam());
        p.b = {0, 1, k};
        check(p, GetParam());
        p.a = {0, 1, m};
        check(p, GetParam());
      }
}

TEST_P(Products, BlocksOfDepthAndRows) {
  for (bool packed : {false, true})
    for (auto [m, n, k] : {std::array<int64_t, 3>{3, 70, 2500}, {150, 33, 1100}, {270, 130, 20}}) {
      ProductParams p = plain(m, n, k);
      p.packed = packed ? 2 : -1;
      check(p, GetParam());
    }
}

/// Sizes for tiles, where there are some: several blocks of rows and depth, ranges of the columns, other strides.
TEST_P(Products, ManyRows) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{64, 100, 40}, {97, 321, 70}, {300, 130, 1100}, {530, 64, 33}})
    for (bool packed : {false, true})
      for (bool turned : {false, true}) {
        ProductParams p = plain(m, n, k);
        p.packed = packed ? 2 : -1, p.parts = n > 300 ? 3 : 1;
        if (turned)
          p.a = {0, 1, m}, p.b = {0, 1, k};
        check(p, GetParam());
      }
}

/// The last unit has so few rows that it would be multiplied otherwise if it stood alone.
TEST_P(Products, ManyRowsAndAFew) {
  for (int64_t few : {1, 5, 8, 13, 40})
    for (bool turned : {false, true}) {
      ProductParams p = plain(192 + few, 128, 300);
      p.rows = 192;
      if (turned)
        p.b = {0, 1, p.k};
      check(p, GetParam());
      check(p, GetParam(), 2);
    }
}

/// What tiles cannot multiply exactly comes out as it does without them: infinities, NaNs, the largest and the smallest
/// numbers, in one place of a side that is otherwise plain.
TEST_P(Products, NumbersThatTilesDoNotKnow) {
  const ProductParams p = [] {
    ProductParams p = plain(150, 200, 500);
    p.packed = 2;
    return p;
  }();
  const Level plainLevel(GetParam().cpu);
  for (float value : {INFINITY, -INFINITY, NAN, 3.4e38f, 1e-30f, 1e-38f, 1e-42f})
    for (bool everywhere : {false, true}) // all of them so, or a single one
      for (bool left : {false, true}) {
        std::vector<float> a = randomValues(p.m * p.k, 1), b = randomValues(p.k * p.n, 2);
        std::vector<float> &side = left ? a : b;
        for (size_t i = everywhere ? 0 : 4321; i < (everywhere ? side.size() : 4322); ++i)
          side[i] = everywhere ? side[i] * value : value;
        Memory packed(p.packedBytes());
        run(makeProductPack(describe(p, p.packText(), 1), Fields::parse(p.packText()), GetParam()),
            {b.data(), packed.get()}, 1, 1, 0);
        std::vector<float> results[2];
        for (int tiles : {0, 1}) {
          results[tiles].resize(static_cast<size_t>(p.m * p.n));
          run(load(p, tiles ? GetParam() : plainLevel), {a.data(), b.data(), packed.get(), results[tiles].data()},
              p.units(), 1, p.scratchBytes());
        }
        double largest = 0;
        for (float x : results[0])
          if (std::isfinite(x))
            largest = std::max(largest, std::abs(double(x)));
        for (size_t i = 0; i < results[0].size(); ++i) {
          const float want = results[0][i], got = results[1][i];
          if (std::isfinite(want))
            ASSERT_NEAR(got, want, (everywhere ? 1e-5 * largest : 1e-4)) << value << " at " << i;
          else
            ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << value << " at " << i << ": " << got;
        }
      }
}

/// A product has the same bits however its units are divided among calls, with the right side packed, plain, and transposed. The last unit has
/// too few rows for tiles.
TEST_P(Products, AnyCutGivesTheSameBits) {
  for (int form : {0, 1, 2}) {
    ProductParams p = plain(form == 0 ? 700 : 605, 130, form == 0 ? 600 : 80);
    p.rows = 100, p.packed = form == 0 ? 2 : -1;
    if (form == 2)
      p.b = {0, 1, p.k};
    std::vector<float> a = randomValues(p.m * p.k, 1), b = randomValues(p.k * p.n, 2);
    for (size_t i = 0; i < a.size(); ++i)
      a[i] *= 1.1f + static_cast<float>(i % 13) * 0.37f;
    a[static_cast<size_t>(7 * p.k + 7)] = INFINITY, a[static_cast<size_t>(415 * p.k)] = 2e38f;
    for (int64_t k = 0; k < p.k; ++k)
      a[static_cast<size_t>(333 * p.k + k)] *= 1e-33f;
    Memory packed(p.packed >= 0 ? p.packedBytes() : 0);
    if (p.packed >= 0)
      run(makeProductPack(describe(p, p.packText(), 1), Fields::parse(p.packText()), GetParam()),
          {b.data(), packed.get()}, 1, 1, 0);
    std::vector<float> first;
    for (int64_t chunk : {7, 1, 2, 3}) {
      std::vector<float> c(static_cast<size_t>(p.m * p.n));
      std::vector<void *> buffers{a.data(), b.data(), c.data()};
      if (p.packed >= 0)
        buffers.insert(buffers.begin() + 2, packed.get());
      run(load(p, GetParam()), buffers, p.units(), chunk, p.scratchBytes());
      if (first.empty())
        first = c;
      EXPECT_EQ(std::memcmp(c.data(), first.data(), c.size() * 4), 0) << chunk << " of form " << form;
    }
  }
}

/// Sums that are finite stay so, and those that are not are infinite.
TEST_P(Products, LargeNumbers) {
  for (auto [x, w, sum] :
       {std::array<float, 3>{0x1.ffcp63f, 0x1.ff8p63f, 0x1.ffcp63f * 0x1.ff8p63f}, {1e20f, 1.7e20f, INFINITY}}) {
    ProductParams p = plain(128, 96, 64);
    p.packed = 2;
    std::vector<float> a(static_cast<size_t>(p.m * p.k), std::isinf(sum) ? x : 0), b(static_cast<size_t>(p.k * p.n), w),
        c(static_cast<size_t>(p.m * p.n));
    for (int64_t r = 0; r < p.m; ++r)
      a[static_cast<size_t>(r * p.k + r % p.k)] = x;
    Memory packed(p.packedBytes());
    run(makeProductPack(describe(p, p.packText(), 1), Fields::parse(p.packText()), GetParam()),
        {b.data(), packed.get()}, 1, 1, 0);
    run(load(p, GetParam()), {a.data(), b.data(), packed.get(), c.data()}, p.units(), 1, p.scratchBytes());
    for (float y : c)
      ASSERT_EQ(y, sum);
  }
}

TEST_P(Products, PackedForOtherRows) { // a packed side serves any number of rows
  for (int64_t typical : {1, 10, 16, 64, 100})
    for (int64_t m : {1, 2, 17, 60}) {
      ProductParams p = plain(m, 150, 40);
      p.packed = 2, p.typicalRows = typical;
      check(p, GetParam());
    }
}

TEST_P(Products, TransposedAndStridedOperands) {
  for (int64_t m : {1, 4, 9, 40, 140})
    for (bool packed : {false, true}) {
      ProductParams p = plain(m, 50, 70);
      p.packed = packed ? 2 : -1;
      p.a = {0, 1, m};
      check(p, GetParam());
      p.b = {0, 1, 70};
      check(p, GetParam());
      p.a = {0, 70, 1};
      check(p, GetParam());
      p.a = {0, 150, 2}, p.b = {0, 200, 3};
      check(p, GetParam());
      p.a = {0, 0, 1}, p.b = {0, 0, 1}; // broadcast
      check(p, GetParam());
    }
}

TEST_P(Products, Batches) {
  for (int64_t rows : {5, 15}) {
    ProductParams p = plain(15, 40, 33);
    p.batch = 4, p.a[0] = 15 * 33, p.b[0] = 33 * 40, p.rows = rows;
    check(p, GetParam());
    check(p, GetParam(), 5);
    p.b[0] = 0; // one right side for all
    check(p, GetParam(), 3);
    p.packed = 2;
    check(p, GetParam(), 3);
    p.a[0] = 0, p.b[0] = 33 * 40, p.packed = -1;
    check(p, GetParam(), 3);
  }
}

TEST_P(Products, UnitsAreIndependent) {
  for (bool packed : {false, true})
    for (int64_t parts : {1, 2, 5, 60})
      for (int64_t rows : {1, 7, 30})
        for (int64_t chunk : {1, 3, 100}) {
          ProductParams p = plain(30, 200, 17);
          p.rows = rows, p.parts = parts, p.packed = packed ? 2 : -1;
          check(p, GetParam(), chunk);
        }
  ProductParams row = plain(1, 333, 40);
  row.parts = 4;
  check(row, GetParam());
  row.b = {0, 1, 40};
  check(row, GetParam());
}

TEST_P(Products, SymbolicSizes) {
  const Size s = dim::symbol("s", 0), t = dim::symbol("t");
  for (bool packed : {false, true}) {
    ProductParams p = plain(s, 70, 40);
    p.rows = 16, p.typicalRows = 64, p.symbols = {s}, p.packed = packed ? 2 : -1;
    const auto kernel = load(p, GetParam());
    for (int64_t m : {1, 0, 5, 64, 7, 8, 9, 10, 11, 12, 13, 5})
      call(kernel, p, GetParam(), {m}, 2);
    p.element = p.packedAs = Element::BF16;
    for (int64_t m : {1, 0, 5, 64, 13, 200})
      call(load(p, GetParam()), p, GetParam(), {m}, 2);
  }
  // Attention's scores and values: everything but the depth of heads.
  ProductParams scores;
  scores.batch = 3, scores.m = s, scores.n = t, scores.k = 16, scores.symbols = {s, t};
  scores.a = {s * 16, 16, 1}, scores.b = {t * 16, 1, 16}, scores.rows = s;
  ProductParams values = scores;
  values.n = 16, values.k = t, values.a = {s * t, t, 1}, values.b = {t * 16, 16, 1};
  const auto first = load(scores, GetParam()), second = load(values, GetParam());
  for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {64, 1}, {1, 33}, {20, 1500}})
    call(first, scores, GetParam(), {m, n}), call(second, values, GetParam(), {m, n});
}

TEST_P(Products, ConcurrentCallersShareAKernel) {
  const Size s = dim::symbol("s");
  ProductParams p = plain(s, 64, 64);
  p.rows = 16, p.typicalRows = 16, p.symbols = {s};
  const auto kernel = load(p, GetParam());
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 1; i < 12; ++i)
        call(kernel, p, GetParam(), {i * (t + 1)});
    });
  for (std::thread &t : threads)
    t.join();
}

/// All 65536 values through one product by 1, and what rounds to them: ties, overflow, subnormal and special numbers.
TEST_P(Products, HalvesAreWidenedAndRounded) {
  for (Element element : {Element::F16, Element::BF16}) {
    ProductParams one = plain(1 << 16, 1, 1);
    one.element = element;
    std::vector<uint16_t> all(1 << 16), factor{narrowed(1, element)};
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<uint16_t>(i);
    Memory c(int64_t(all.size()) * 2);
    auto results = [&](const ProductParams &p) {
      std::vector<void *> buffers{all.data(), factor.data(), c.get()};
      run(load(p, GetParam()), buffers, p.units(), 1, p.scratchBytes());
    };
    results(one);
    for (size_t i = 0; i < all.size(); ++i) {
      const float x = widened(all[i], element), y = c.at(int64_t(i), element);
      ASSERT_TRUE(std::isnan(x) ? std::isnan(y) : x == y) << i << ": " << x << " is " << y;
    }
    for (float by :
         {0.3f, 1.0009765625f, 1.0078125f, 100.0f, 1e-3f, -7.0f}) { // sums of one product have all their bits
      factor[0] = narrowed(by, element);
      results(one);
      for (size_t i = 0; i < all.size(); ++i) {
        const float expected =
                        widened(narrowed(widened(all[i], element) * widened(factor[0], element), element), element),
                    y = c.at(int64_t(i), element);
        ASSERT_TRUE(std::isnan(expected) ? std::isnan(y) : expected == y)
            << i << " times " << by << " is " << y << ", not " << expected;
      }
    }
  }
}

/// 1 and many times what is too small to change it, one by one, in 16 bits.
TEST_P(Products, SumsOfHalvesAreF32) {
  for (Element element : {Element::F16, Element::BF16})
    for (int64_t m : {1, 40})
      for (bool packed : {false, true}) {
        ProductParams p = plain(m, 33, 4097);
        p.element = p.packedAs = element, p.packed = packed ? 2 : -1;
        std::vector<uint16_t> a(static_cast<size_t>(m * p.k), narrowed(0x1p-12f, element)),
            b(static_cast<size_t>(p.n * p.k), narrowed(1, element));
        for (int64_t r = 0; r < m; ++r)
          a[static_cast<size_t>(r * p.k)] = narrowed(1, element);
        Memory c(m * p.n * 2), to(packed ? p.packedBytes() : 0);
        std::vector<void *> buffers{a.data(), b.data(), c.get()};
        if (packed) {
          run(makeProductPack(describe(p, p.packText(), 1), Fields::parse(p.packText()), GetParam()),
              {b.data(), to.get()}, 1, 1, 0);
          buffers.insert(buffers.begin() + 2, to.get());
        }
        run(load(p, GetParam()), buffers, 1, 1, p.scratchBytes());
        for (int64_t i = 0; i < m * p.n; ++i)
          ASSERT_EQ(c.at(i, element), 2) << p.text() << " at " << i;
      }
}

TEST(Product, DamagedDescriptionsAreRefused) {
  const ProductParams good = plain(4, 5, 6);
  const Level level = runtime::CpuLevel::Baseline;
  auto refused = [&](auto change) {
    ProductParams p = good;
    change(p);
    EXPECT_THROW(load(p, level), InputError) << p.text();
  };
  refused([](ProductParams &p) { p.left = 2; });
  refused([](ProductParams &p) { p.right = -1; });
  refused([](ProductParams &p) { p.packed = 9; });
  refused([](ProductParams &p) { p.m = -1; });
  refused([](ProductParams &p) { p.k = 0; });
  refused([](ProductParams &p) { p.rows = 0; });
  refused([](ProductParams &p) { p.parts = 0; });
  refused([](ProductParams &p) { p.a[1] = -3; });
  refused([](ProductParams &p) { p.symbols = {3}; });
  refused([](ProductParams &p) { p.packedAs = Element::F16; });
  EXPECT_THROW(Fields::parse("{\"element\":\"f64\"}").element("element"), InputError);
  runtime::KernelDesc desc = describe(good, good.text(), 2);
  desc.scratchBytes = 0;
  EXPECT_THROW(makeProduct(desc, Fields::parse(desc.params), level), InputError);
  EXPECT_THROW(makeProduct(desc, Fields::parse("{\"kind\":\"product\"}"), level), InputError);
}

TEST(Product, TheRuntimeFindsTheLibrary) { // the name says which library it is
  const runtime::KernelFactory factory = runtime::findKernelProvider("builtin");
  ASSERT_NE(factory, nullptr);
  EXPECT_EQ(runtime::findKernelProvider("nothing"), nullptr);
  EXPECT_EQ(runtime::findKernelProvider("../kernels"), nullptr);
  const ProductParams p = plain(4, 5, 6);
  EXPECT_NE(factory(describe(p, p.text(), 2)).fn, nullptr);
  runtime::KernelDesc desc = describe(p, "{\"kind\":\"sort\"}", 2);
  EXPECT_THROW(factory(desc), InputError);
}

} // namespace
} // namespace tressel::kernels::test
