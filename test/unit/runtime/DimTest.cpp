#include "tressel/runtime/Dim.h"

#include "tressel/runtime/Error.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace tressel::dim {
namespace {

const int64_t n = symbol("n"), m = symbol("m"), k = symbol("k", 0, 512);

TEST(Dim, NumbersArePlainArithmetic) {
  EXPECT_EQ(add(2, 3), 5);
  EXPECT_EQ(floorDiv(-7, 2), -4);
  EXPECT_EQ(ceilDiv(7, 2), 4);
  EXPECT_EQ(mod(-1, 4), 3);
  EXPECT_EQ(alignUp(65, 64), 128);
  EXPECT_EQ(min(2, 3), 2);
  EXPECT_FALSE(isSymbolic(-1));
  EXPECT_FALSE(isSymbolic(kDynamic));
  EXPECT_EQ(symbol("one", 7, 7), 7) << "bounds that leave one size are that size";
}

TEST(Dim, EqualExpressionsAreEqualNumbers) {
  EXPECT_EQ(add(n, m), add(m, n));
  EXPECT_EQ(mul(add(n, 1), add(n, -1)), sub(mul(n, n), 1));
  EXPECT_EQ(sub(n, n), 0);
  EXPECT_EQ(floorDiv(mul(n, 784), 28), mul(n, 28));
  EXPECT_EQ(floorDiv(mul(n, m), n), m);
  EXPECT_EQ(floorDiv(add(mul(n, 784), 784), add(n, 1)), 784);
  EXPECT_EQ(floorDiv(add(mul(n, 2), 1), 4), floorDiv(n, 2));
  EXPECT_EQ(floorDiv(floorDiv(n, 2), 3), floorDiv(n, 6));
  EXPECT_EQ(floorDiv(add(floorDiv(n, 2), 1), 2), floorDiv(add(n, 2), 4));
  EXPECT_EQ(floorDiv(mul(n, 3), 2), add(n, floorDiv(n, 2)));
  EXPECT_EQ(floorDiv(k, 1024), 0) << "by the bounds";
  EXPECT_EQ(mod(mul(n, 6), 3), 0);
  EXPECT_EQ(max(n, 1), n);
  EXPECT_EQ(max(k, 512), 512);
  EXPECT_EQ(max(n, m), max(m, n));
  EXPECT_EQ(max(mul(n, 64), mul(floorDiv(m, 3), 64)), mul(max(n, floorDiv(m, 3)), 64)); // so it is seen to be a multiple
  // The elements but the first and but the last are equally many, also of none.
  const int64_t some = symbol("z", 0, 77);
  EXPECT_EQ(max(0, sub(some, min(1, some))), max(0, sub(some, 1)));
  EXPECT_EQ(max(max(n, m), n), max(n, m));
  EXPECT_NE(symbol("n", 1, 2), symbol("n", 1, 3));
  EXPECT_EQ(add(kDynamic, n), kDynamic);
}

TEST(Dim, ExpressionsThatDoubleAreRefused) {
  int64_t n = dim::symbol("n");
  EXPECT_THROW(
      for (int i = 0; i < 64; ++i) n = dim::floorDiv(dim::mul(n, 3), dim::add(n, 2)), Error);
}

TEST(Dim, Bounds) {
  EXPECT_EQ(bounds(add(mul(k, 2), 3)), (Bounds{3, 1027}));
  EXPECT_EQ(bounds(sub(3, k)), (Bounds{-509, 3}));
  EXPECT_EQ(bounds(floorDiv(add(k, 1), 2)), (Bounds{0, 256}));
  EXPECT_EQ(less(k, 513), true);
  EXPECT_EQ(less(k, 0), false);
  EXPECT_EQ(less(k, 5), std::nullopt);
  EXPECT_TRUE(distinct(n, add(n, 1)));
  EXPECT_FALSE(distinct(n, m));
  EXPECT_TRUE(atMost(n, mul(n, 2)));
}

TEST(Dim, QuotientsOfMinimaKeepTheirBounds) {
  const int64_t n = symbol("q", 4, 100), least = min(floorDiv(add(n, 1), 2), floorDiv(n, 2));
  EXPECT_EQ(bounds(least), (Bounds{2, 50}));
  EXPECT_EQ(bounds(ceilDiv(least, 3)), (Bounds{1, 17}));
  EXPECT_EQ(floorDiv(add(least, 3), 3), add(floorDiv(least, 3), 1));
  EXPECT_EQ(floorDiv(sub(mul(least, 4), 3), 4), add(sub(least, 1), 0));
}

TEST(Dim, TextIsReadBack) {
  EXPECT_EQ(str(add(mul(n, 4), 4)), "4*n + 4");
  EXPECT_EQ(str(sub(mul(n, m), 1)), "m*n - 1");
  EXPECT_EQ(str(floorDiv(add(n, 1), 2)), "(n + 1)//2");
  EXPECT_EQ(str(add(floorDiv(n, 2), 1)), "(n//2) + 1");
  EXPECT_EQ(str(k), "k");
  EXPECT_EQ(spell(add(k, n)), "k[0..512] + n");
  EXPECT_EQ((TensorType{f32, Shape{n, 784, kDynamic}}.str()), "f32[n, 784, ?]");
  for (int64_t size : {n, add(mul(n, 4), 4), neg(n), max(floorDiv(n, m), sub(k, 7)), mod(add(n, m), 5), min(n, m)})
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
  EXPECT_THROW(mul(mul(n, int64_t(1) << 40), int64_t(1) << 40), Error);
  Values huge;
  huge.bind(n, kMaxSize);
  EXPECT_THROW(evaluate(mul(mul(n, n), mul(n, n)), huge), Error);
}

/// Random expressions, built in two orders of the operands, against the same arithmetic on numbers.
TEST(Dim, RandomExpressionsKeepTheirValue) {
  std::mt19937 random(7);
  const int64_t symbols[] = {n, m, k};
  for (int round = 0; round < 2000; ++round) {
    Values values;
    std::vector<std::pair<int64_t, int64_t>> pool; // expression and number
    for (int64_t s : symbols) {
      const auto v = static_cast<int64_t>(random() % 40 + 1);
      values.bind(s, v);
      pool.push_back({s, v});
    }
    for (int i = 0; i < 8; ++i) {
      const auto [a, x] = pool[random() % pool.size()];
      const auto [b, y] = pool[random() % pool.size()];
      const int64_t c = static_cast<int64_t>(random() % 9) - 4;
      std::pair<int64_t, int64_t> made;
      switch (random() % 7) {
      case 0:
        made = {add(a, b), x + y};
        break;
      case 1:
        made = {sub(a, mul(b, c)), x - y * c};
        break;
      case 2:
        made = {std::abs(x) < 10000 && std::abs(y) < 10000 ? mul(b, a) : a,
                std::abs(x) < 10000 && std::abs(y) < 10000 ? x * y : x};
        break;
      case 3:
        made = {floorDiv(a, c ? c : 3), detail::floorDivNumbers(x, c ? c : 3)};
        break;
      case 4:
        made = {mod(add(a, c), 6), x + c - 6 * detail::floorDivNumbers(x + c, 6)};
        break;
      case 5:
        made = {max(a, add(b, c)), std::max(x, y + c)};
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
  EXPECT_EQ(unify({k, add(k, 1)}, {3, 4}, values), "");
  EXPECT_EQ(unify({k}, {4}, values), "dimension 0 is 4, but k is 3 already");
  EXPECT_EQ(unify({add(k, 1)}, {3}, values), "dimension 0 is 3, not k + 1 = 4");
  EXPECT_EQ(unify({784}, {3}, values), "dimension 0 is 3, not 784");
  EXPECT_EQ(unify({784}, {784, 1}, values), "has 2 dimensions, not 1");
  Values other;
  EXPECT_EQ(unify({k}, {513}, other), "dimension 0 is 513, but k lies between 0 and 512");
  EXPECT_EQ(unify({add(n, 1)}, {5}, other, true), "");
}

TEST(Dim, InternedFromManyThreads) {
  std::vector<int64_t> results[4];
  std::vector<std::thread> threads;
  for (auto &out : results)
    threads.emplace_back([&out] {
      for (int64_t i = 0; i < 3000; ++i)
        out.push_back(floorDiv(add(mul(symbol("t"), i), symbol("u")), 7));
    });
  for (auto &thread : threads)
    thread.join();
  for (auto &out : results)
    EXPECT_EQ(out, results[0]);
}

} // namespace
} // namespace tressel::dim
