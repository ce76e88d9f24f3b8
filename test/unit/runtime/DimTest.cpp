#include "tressel/runtime/Dim.h"

#include "tressel/runtime/Error.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>
#include <thread>
#include <type_traits>

namespace tressel::dim {
namespace {

const Size n = symbol("n"), m = symbol("m"), k = symbol("k", 0, 512);

TEST(Dim, NumbersArePlainArithmetic) {
  EXPECT_EQ(Size(2) + 3, 5);
  EXPECT_EQ(floorDiv(-7, 2), -4);
  EXPECT_EQ(Size(-7) / 2, -4);
  EXPECT_EQ(Size(-7) % 2, 1);
  EXPECT_TRUE(Size(2) < 3 && Size(3) >= 3);
  EXPECT_THROW(Size(1) / 0, Error);
  EXPECT_EQ(ceilDiv(7, 2), 4);
  EXPECT_EQ(mod(-1, 4), 3);
  EXPECT_EQ(alignUp(65, 64), 128);
  EXPECT_EQ(min(2, 3), 2);
  EXPECT_FALSE(Size(-1).isSymbolic());
  EXPECT_FALSE(kDynamic.isSymbolic());
  EXPECT_EQ(symbol("one", 7, 7), 7) << "bounds that leave one size are that size";
}

// What a size is taken for by mistake does not compile.
static_assert(!std::is_convertible_v<Size, int64_t> && !std::is_convertible_v<Size, double> &&
              !std::is_convertible_v<Size, bool>);
static_assert(!std::is_convertible_v<const Size *, const int64_t *>);
static_assert(!std::is_convertible_v<bool, Size> && !std::is_convertible_v<double, Size>);
static_assert(std::is_trivially_copyable_v<Size> && sizeof(Size) == 8);

TEST(Dim, NumbersThatLeave64BitsAreErrors) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = Size::kLeast;
  EXPECT_EQ(Size(most) + -1, most - 1);
  EXPECT_EQ(Size(int64_t(1) << 31) * (int64_t(1) << 31), int64_t(1) << 62);
  EXPECT_THROW(Size(most) + 1, Error);
  EXPECT_EQ(Size(least) - -5, least + 5);
  EXPECT_THROW(Size(least) - 5, Error);
  EXPECT_THROW(Size(-1) - most, Error);
  EXPECT_THROW(-Size(most), Error);
  EXPECT_EQ(-(-Size(least)), least);
  EXPECT_THROW(Size(int64_t(1) << 32) * (int64_t(1) << 31), Error);
  EXPECT_THROW(Size(most) * -2, Error);
  EXPECT_THROW(alignUp(most, 64), Error);
  EXPECT_THROW(numElements(Shape{int64_t(1) << 31, int64_t(1) << 31, int64_t(1) << 31}), Error);
  EXPECT_THROW(Size(uint64_t(most) + 1), Error);
  EXPECT_EQ(Size::clamped(std::numeric_limits<int64_t>::min()), least);
  // Comparisons take them all.
  EXPECT_EQ(less(-1, most), std::optional(true));
  EXPECT_EQ(less(most, least), std::optional(false));
  EXPECT_TRUE(distinct(-5, most));
}

TEST(Dim, NoIntegerIsAnExpression) {
  for (int64_t bits : {n.bits(), n.bits() + 1, kDynamic.bits(), Size::kLeast - 1})
    EXPECT_THROW(Size{bits}, Error) << bits;
  EXPECT_EQ(Size::fromBits(n.bits()), n);
  EXPECT_EQ(Size::fromBits(kDynamic.bits()), kDynamic);
  EXPECT_EQ(Size::fromBits(-3), -3);
  EXPECT_THROW(Size::fromBits(n.bits() + 1), Error);
  EXPECT_THROW(Size::fromBits(Size::kLeast - 1), Error);
}

TEST(Dim, ExpressionsAreNoNumbers) {
  EXPECT_THROW(n.number(), InternalError);
  EXPECT_THROW(static_cast<int>(n + 1), InternalError);
  EXPECT_THROW(kDynamic.number(), InternalError);
  EXPECT_EQ(n.numberOr(3), 3);
  EXPECT_TRUE(n < n + 1 && n > 0 && k <= 512) << "by the bounds";
  EXPECT_THROW((void)(n < 5), InternalError);
  EXPECT_THROW((void)(n < m), InternalError);
}

TEST(Dim, EqualExpressionsAreEqualNumbers) {
  EXPECT_EQ(n + m, m + n);
  EXPECT_EQ((n + 1) * (n + -1), n * n - 1);
  EXPECT_EQ(n - n, 0);
  EXPECT_EQ(floorDiv(n * 784, 28), n * 28);
  EXPECT_EQ(floorDiv(n * m, n), m);
  EXPECT_EQ(floorDiv(n * 784 + 784, n + 1), 784);
  EXPECT_EQ(floorDiv(n * 2 + 1, 4), floorDiv(n, 2));
  EXPECT_EQ(floorDiv(floorDiv(n, 2), 3), floorDiv(n, 6));
  EXPECT_EQ(floorDiv(floorDiv(n, 2) + 1, 2), floorDiv(n + 2, 4));
  EXPECT_EQ(floorDiv(n * 3, 2), n + floorDiv(n, 2));
  EXPECT_EQ(floorDiv(k, 1024), 0) << "by the bounds";
  EXPECT_EQ(mod(n * 6, 3), 0);
  EXPECT_EQ(max(n, 1), n);
  EXPECT_EQ(max(k, 512), 512);
  EXPECT_EQ(max(n, m), max(m, n));
  EXPECT_EQ(max(n * 64, floorDiv(m, 3) * 64), max(n, floorDiv(m, 3)) * 64); // so it is seen to be a multiple
  // The elements but the first and but the last are equally many, also of none.
  const Size some = symbol("z", 0, 77);
  EXPECT_EQ(max(0, some - min(1, some)), max(0, some - 1));
  EXPECT_EQ(max(max(n, m), n), max(n, m));
  EXPECT_NE(symbol("n", 1, 2), symbol("n", 1, 3));
  EXPECT_EQ(kDynamic + n, kDynamic);
}

TEST(Dim, ExpressionsThatDoubleAreRefused) {
  Size n = dim::symbol("n");
  EXPECT_THROW(for (int i = 0; i < 64; ++i) n = dim::floorDiv(n * 3, n + 2), Error);
}

TEST(Dim, Bounds) {
  EXPECT_EQ(bounds(k * 2 + 3), (Bounds{3, 1027}));
  EXPECT_EQ(bounds(3 - k), (Bounds{-509, 3}));
  EXPECT_EQ(bounds(floorDiv(k + 1, 2)), (Bounds{0, 256}));
  EXPECT_EQ(less(k, 513), true);
  EXPECT_EQ(less(k, 0), false);
  EXPECT_EQ(less(k, 5), std::nullopt);
  EXPECT_TRUE(distinct(n, n + 1));
  EXPECT_FALSE(distinct(n, m));
  EXPECT_TRUE(atMost(n, n * 2));
}

/// Terms that depend on each other: whole steps, and the larger of two.
TEST(Dim, BoundsOfSumsOfDependentTerms) {
  const Size n = symbol("n", 0, 95);
  auto expect = [](Size size, int64_t lo, int64_t hi) {
    EXPECT_EQ(bounds(size).lo, lo) << str(size);
    EXPECT_EQ(bounds(size).hi, hi) << str(size);
  };
  expect(ceilDiv(n, 2) * 2 - n, 0, 1);
  expect(n - floorDiv(n, 3) * 3, 0, 2);
  expect(n - floorDiv(n, 3) * 6 + n, 0, 4);
  expect(max(n, 7) - n, 0, 7);
  expect(n - max(n, 7), -7, 0);
  expect(max(0, 10 - n) + n, 10, 95);
  EXPECT_EQ(min(ceilDiv(n, 2) * 2, n), n);
  EXPECT_GE(bounds(ceilDiv(floorDiv(n, 2), 2) * 2 - floorDiv(n, 2)).lo, 0);
}

TEST(Dim, QuotientsOfMinimaKeepTheirBounds) {
  const Size n = symbol("q", 4, 100), least = min(floorDiv(n + 1, 2), floorDiv(n, 2));
  EXPECT_EQ(bounds(least), (Bounds{2, 50}));
  EXPECT_EQ(bounds(ceilDiv(least, 3)), (Bounds{1, 17}));
  EXPECT_EQ(floorDiv(least + 3, 3), floorDiv(least, 3) + 1);
  EXPECT_EQ(floorDiv(least * 4 - 3, 4), least - 1 + 0);
}

TEST(Dim, TextIsReadBack) {
  EXPECT_EQ(str(n * 4 + 4), "4*n + 4");
  EXPECT_EQ(str(n * m - 1), "m*n - 1");
  EXPECT_EQ(str(floorDiv(n + 1, 2)), "(n + 1)//2");
  EXPECT_EQ(str(floorDiv(n, 2) + 1), "(n//2) + 1");
  EXPECT_EQ(str(k), "k");
  EXPECT_EQ(spell(k + n), "k[0..512] + n");
  EXPECT_EQ((TensorType{f32, Shape{n, 784, kDynamic}}.str()), "f32[n, 784, ?]");
  for (Size size : {n, n * 4 + 4, -n, max(floorDiv(n, m), k - 7), mod(n + m, 5), min(n, m)})
    EXPECT_EQ(parse(spell(size)), size) << spell(size);
  EXPECT_EQ(parse(" 3 + 4*2 "), 11);
  for (auto [text, value] : {std::pair("-3 + 10 % 4", -1), {"2 - 3 - 4", -5}, {"(0 - 7) // 2", -4}, {"(0 - 7) % 2", 1},
                             {"7 % (0 - 2)", -1}, {"min(3, 5) + max(2, 4)", 7}})
    EXPECT_EQ(parse(text), value) << text;
  for (const char *bad : {"", "n +", "n n", "(n", "n/2", "n // 0", "n[3..2]", "99999999999999999999", "max(n)", "-",
                          "1666666666*666666666666", "9223372036854775807 + 1", "-9223372036854775807", "3 - 9223372036854775807 - 9",
                          "9223372036854775807 % (0 - 2)", "min(9223372036854775807 * 2, n)"})
    EXPECT_EQ(parse(bad), std::nullopt) << bad;
  EXPECT_EQ(parse(std::string(100000, '(')), std::nullopt);
}

TEST(Dim, Errors) {
  EXPECT_THROW(symbol("2n"), Error);
  EXPECT_THROW(symbol("batch size"), Error);
  EXPECT_THROW(symbol("n", 5, 4), Error);
  EXPECT_THROW(symbol("n", -1, 4), Error);
  EXPECT_THROW(evaluate(n, {}), Error);
  EXPECT_THROW(n * (int64_t(1) << 40) * (int64_t(1) << 40), Error);
  Values huge;
  huge.bind(n, kMaxSize);
  EXPECT_THROW(evaluate(n * n * (n * n), huge), Error);
}

/// Random expressions, built in two orders of the operands, against the same arithmetic on numbers.
TEST(Dim, RandomExpressionsKeepTheirValue) {
  std::mt19937 random(7);
  const Size symbols[] = {n, m, k};
  auto floorDivNumbers = [](int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); };
  for (int round = 0; round < 2000; ++round) {
    Values values;
    std::vector<std::pair<Size, int64_t>> pool; // expression and number
    for (Size s : symbols) {
      const auto v = static_cast<int64_t>(random() % 40 + 1);
      values.bind(s, v);
      pool.push_back({s, v});
    }
    for (int i = 0; i < 8; ++i) {
      const auto [a, x] = pool[random() % pool.size()];
      const auto [b, y] = pool[random() % pool.size()];
      const int64_t c = static_cast<int64_t>(random() % 9) - 4;
      std::pair<Size, int64_t> made;
      switch (random() % 7) {
      case 0:
        made = {a + b, x + y};
        break;
      case 1:
        made = {a - b * c, x - y * c};
        break;
      case 2:
        made = {std::abs(x) < 10000 && std::abs(y) < 10000 ? b * a : a,
                std::abs(x) < 10000 && std::abs(y) < 10000 ? x * y : x};
        break;
      case 3:
        made = {floorDiv(a, c ? c : 3), floorDivNumbers(x, c ? c : 3)};
        break;
      case 4:
        made = {mod(a + c, 6), x + c - 6 * floorDivNumbers(x + c, 6)};
        break;
      case 5:
        made = {max(a, b + c), std::max(x, y + c)};
        break;
      default:
        made = {min(a, b), std::min(x, y)};
        break;
      }
      ASSERT_EQ(evaluate(made.first, values), made.second) << spell(made.first);
      const Bounds range = bounds(made.first);
      ASSERT_TRUE(range.lo <= made.second && made.second <= range.hi) << spell(made.first);
      ASSERT_EQ(parse(spell(made.first)), made.first) << spell(made.first);
      pool.push_back(made);
    }
  }
}

TEST(Dim, Unify) {
  Values values;
  EXPECT_EQ(unify({k, 784}, {3, 784}, values), "");
  EXPECT_EQ(unify({k, k + 1}, {3, 4}, values), "");
  EXPECT_EQ(unify({k}, {4}, values), "dimension 0 is 4, but k is 3 already");
  EXPECT_EQ(unify({k + 1}, {3}, values), "dimension 0 is 3, not k + 1 = 4");
  EXPECT_EQ(unify({784}, {3}, values), "dimension 0 is 3, not 784");
  EXPECT_EQ(unify({784}, {784, 1}, values), "has 2 dimensions, not 1");
  Values other;
  EXPECT_EQ(unify({k}, {513}, other), "dimension 0 is 513, but k lies between 0 and 512");
  EXPECT_EQ(unify({n + 1}, {5}, other, true), "");
}

TEST(Dim, InternedFromManyThreads) {
  std::vector<Size> results[4];
  std::vector<std::thread> threads;
  for (auto &out : results)
    threads.emplace_back([&out] {
      for (int64_t i = 0; i < 3000; ++i)
        out.push_back(floorDiv(symbol("t") * i + symbol("u"), 7));
    });
  for (auto &thread : threads)
    thread.join();
  for (auto &out : results)
    EXPECT_EQ(out, results[0]);
}

} // namespace
} // namespace tressel::dim
