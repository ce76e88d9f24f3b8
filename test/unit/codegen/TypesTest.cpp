// Every element type, conversion and combiner against plain C++.
#include "Harness.h"

#include "tressel/runtime/Half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

namespace tressel::codegen::test {
namespace {

class Types : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Types, ::testing::ValuesIn(levels()), [](const auto &info) { return info.param; });

template <typename T> constexpr DType dtypeOf();
template <> constexpr DType dtypeOf<float>() { return DType::f32; }
template <> constexpr DType dtypeOf<double>() { return DType::f64; }
template <> constexpr DType dtypeOf<int8_t>() { return DType::i8; }
template <> constexpr DType dtypeOf<int16_t>() { return DType::i16; }
template <> constexpr DType dtypeOf<int32_t>() { return DType::i32; }
template <> constexpr DType dtypeOf<int64_t>() { return DType::i64; }
template <> constexpr DType dtypeOf<uint8_t>() { return DType::u8; }
template <> constexpr DType dtypeOf<bool>() { return DType::boolean; }

template <typename T> std::vector<T> integers(int64_t n, uint32_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<T> v;
  using L = std::numeric_limits<T>;
  for (T special : {T(0), T(1), T(2), T(3), L::max(), L::min(), T(L::max() / 2)})
    v.push_back(special);
  if (std::is_signed_v<T>)
    v.push_back(T(-1)), v.push_back(T(-3));
  while (static_cast<int64_t>(v.size()) < n)
    v.push_back(static_cast<T>(rng() % 3 ? rng() % 16 : rng()));
  std::shuffle(v.begin(), v.end(), rng);
  return v;
}

template <typename T, typename R = T>
void checkBinary(const std::string &level, ScalarOp op, std::type_identity_t<R (*)(T, T)> reference) {
  const int64_t n = 333;
  const std::vector<T> a = integers<T>(n, 1), b = integers<T>(n, 2);
  Graph g;
  const int x = g.input({dtypeOf<T>(), {n}}), y = g.input({dtypeOf<T>(), {n}});
  g.results = {g.binary(op, x, y, {n})};
  Compiled k(g, level);
  Data da({dtypeOf<T>(), {n}}), db = da;
  std::copy(a.begin(), a.end(), da.as<T>());
  std::copy(b.begin(), b.end(), db.as<T>());
  auto out = k.run({&da, &db});
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(out[0].as<R>()[i], reference(a[i], b[i]))
        << nameOf(dtypeOf<T>()) << " op " << int(op) << " of " << +a[i] << ", " << +b[i];
}

template <typename T> T floorDiv(T a, T b) {
  if (b == 0)
    return 0;
  if (std::is_signed_v<T> && b == T(-1))
    return static_cast<T>(-static_cast<uint64_t>(a));
  const T q = static_cast<T>(a / b);
  return static_cast<T>(a % b != 0 && ((a < 0) != (b < 0)) ? q - 1 : q);
}
template <typename T> T floorRem(T a, T b) {
  if (b == 0 || (std::is_signed_v<T> && b == T(-1)))
    return 0;
  const T r = static_cast<T>(a % b);
  return static_cast<T>(r != 0 && ((r < 0) != (b < 0)) ? r + b : r);
}

template <typename T> void checkIntegers(const std::string &level) {
  using U = uint64_t;
  checkBinary<T>(level, ScalarOp::Add, [](T a, T b) { return static_cast<T>(U(a) + U(b)); });
  checkBinary<T>(level, ScalarOp::Sub, [](T a, T b) { return static_cast<T>(U(a) - U(b)); });
  checkBinary<T>(level, ScalarOp::Mul, [](T a, T b) { return static_cast<T>(U(a) * U(b)); });
  checkBinary<T>(level, ScalarOp::Div, floorDiv<T>);
  checkBinary<T>(level, ScalarOp::Rem, floorRem<T>);
  checkBinary<T>(level, ScalarOp::Min, [](T a, T b) { return std::min(a, b); });
  checkBinary<T>(level, ScalarOp::Max, [](T a, T b) { return std::max(a, b); });
  checkBinary<T>(level, ScalarOp::And, [](T a, T b) { return static_cast<T>(a & b); });
  checkBinary<T>(level, ScalarOp::Xor, [](T a, T b) { return static_cast<T>(a ^ b); });
  checkBinary<T, bool>(level, ScalarOp::Lt, [](T a, T b) { return a < b; });
  checkBinary<T, bool>(level, ScalarOp::Ge, [](T a, T b) { return a >= b; });
  checkBinary<T, bool>(level, ScalarOp::Eq, [](T a, T b) { return a == b; });
}

TEST_P(Types, IntegerArithmetic) {
  checkIntegers<int8_t>(GetParam());
  checkIntegers<int16_t>(GetParam());
  checkIntegers<int32_t>(GetParam());
  checkIntegers<int64_t>(GetParam());
  checkIntegers<uint8_t>(GetParam());
}

template <typename From, typename To> void checkCast(const std::string &level, std::vector<From> values) {
  const auto n = static_cast<int64_t>(values.size());
  Graph g;
  const int x = g.input({dtypeOf<From>(), {n}});
  Body b;
  g.results = {g.elementwise(b.result(b.op(ScalarOp::Cast, dtypeOf<To>(), b.operand(0, dtypeOf<From>()))), {x},
                             {dtypeOf<To>(), {n}})};
  Compiled k(g, level);
  Data d({dtypeOf<From>(), {n}});
  std::copy(values.begin(), values.end(), d.as<From>());
  auto out = k.run({&d});
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(out[0].as<To>()[i], static_cast<To>(values[i]))
        << nameOf(dtypeOf<From>()) << " to " << nameOf(dtypeOf<To>());
}

TEST_P(Types, Conversions) {
  const std::vector<float> floats{0, -0.0f, 1, 1.5f, 2.9f, 100, 127.9f, 0.3f, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
  checkCast<float, int8_t>(GetParam(), floats);
  checkCast<float, int16_t>(GetParam(), floats);
  checkCast<float, int32_t>(GetParam(), floats);
  checkCast<float, int64_t>(GetParam(), {1e15f, -1e15f, -7.7f, 0});
  checkCast<float, uint8_t>(GetParam(), floats);
  checkCast<float, bool>(GetParam(), {0, -0.0f, 0.1f, NAN, -3});
  checkCast<float, double>(GetParam(), floats);
  checkCast<double, float>(GetParam(), {0.1, 1e-300, 1e300, -7.25});
  checkCast<int8_t, float>(GetParam(), integers<int8_t>(50, 3));
  checkCast<uint8_t, float>(GetParam(), integers<uint8_t>(50, 3));
  checkCast<uint8_t, int32_t>(GetParam(), integers<uint8_t>(50, 3));
  checkCast<int64_t, int8_t>(GetParam(), integers<int64_t>(50, 3));
  checkCast<int64_t, double>(GetParam(), integers<int64_t>(50, 3));
  checkCast<int64_t, float>(GetParam(), integers<int64_t>(50, 3));
  checkCast<int32_t, bool>(GetParam(), integers<int32_t>(50, 3));
  checkCast<bool, int64_t>(GetParam(), {false, true, true});
  checkCast<bool, float>(GetParam(), {false, true, true});
}

TEST_P(Types, HalfFloatsRoundLikeTheRuntime) {
  for (DType type : {DType::f16, DType::bf16}) {
    // Every bit pattern widens exactly; f32 values of all magnitudes narrow to nearest even.
    Graph g;
    const int x = g.input({type, {65536}});
    Body b;
    g.results = {g.elementwise(b.result(b.op(ScalarOp::Cast, f32, b.operand(0, type))), {x}, {f32, {65536}})};
    Data d({type, {65536}});
    for (int i = 0; i < 65536; ++i)
      d.as<uint16_t>()[i] = static_cast<uint16_t>(i);
    auto wide = Compiled(g, GetParam()).run({&d});
    auto widen = [&](uint16_t bits) { return type == DType::f16 ? halfToFloat(bits) : bfloatToFloat(bits); };
    for (int i = 0; i < 65536; ++i) {
      const float want = widen(static_cast<uint16_t>(i)), got = wide[0].as<float>()[i];
      ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << i << ": " << got << ' ' << want;
    }
    Graph h;
    const int64_t n = 40000;
    const int y = h.input({f32, {n}});
    Body c;
    h.results = {h.elementwise(c.result(c.op(ScalarOp::Cast, type, c.operand(0, f32))), {y}, {type, {n}})};
    Data s({f32, {n}});
    std::mt19937 rng(4);
    for (int64_t i = 0; i < n; ++i)
      s.as<float>()[i] = std::bit_cast<float>(static_cast<uint32_t>(i % 2 ? rng() : 0x33000000u + rng() % 0x15000000u));
    auto narrow = Compiled(h, GetParam()).run({&s});
    for (int64_t i = 0; i < n; ++i) {
      const float v = s.as<float>()[i];
      const uint16_t got = narrow[0].as<uint16_t>()[i],
                     want = type == DType::f16 ? halfFromFloat(v) : bfloatFromFloat(v);
      if (std::isnan(v))
        ASSERT_TRUE(std::isnan(widen(got)));
      else
        ASSERT_EQ(got, want) << v;
    }
  }
}

TEST_P(Types, HalfSumsAccumulateInSingle) {
  for (DType type : {DType::f16, DType::bf16})
    for (int axis : {0, 1}) {
      Graph g;
      const int x = g.input({type, {300, 40}});
      g.results = {g.reduce(Combine::Sum, x, {axis}, type)};
      Data d({type, {300, 40}});
      std::vector<float> sums(axis ? 300 : 40, 0.f);
      for (int i = 0; i < 300; ++i)
        for (int j = 0; j < 40; ++j) {
          const float v = float((i * 7 + j) % 13) / 4; // sums are exact in f32
          d.as<uint16_t>()[i * 40 + j] = type == DType::f16 ? halfFromFloat(v) : bfloatFromFloat(v);
          sums[static_cast<size_t>(axis ? i : j)] += v;
        }
      auto out = Compiled(g, GetParam()).run({&d});
      for (size_t i = 0; i < sums.size(); ++i)
        EXPECT_EQ(out[0].as<uint16_t>()[i], type == DType::f16 ? halfFromFloat(sums[i]) : bfloatFromFloat(sums[i]));
    }
}

template <typename T, typename R> R reference(Combine c, const std::vector<T> &v) {
  R r{};
  switch (c) {
  case Combine::Sum:
    for (T x : v)
      r = static_cast<R>(r + x);
    return r;
  case Combine::Prod:
    r = 1;
    for (T x : v)
      r = static_cast<R>(r * x);
    return r;
  case Combine::Max:
    return static_cast<R>(*std::max_element(v.begin(), v.end()));
  case Combine::Min:
    return static_cast<R>(*std::min_element(v.begin(), v.end()));
  case Combine::Any:
    return static_cast<R>(std::any_of(v.begin(), v.end(), [](T x) { return x != 0; }));
  case Combine::All:
    return static_cast<R>(std::all_of(v.begin(), v.end(), [](T x) { return x != 0; }));
  case Combine::ArgMax:
    return static_cast<R>(std::max_element(v.begin(), v.end()) - v.begin());
  case Combine::ArgMin:
    return static_cast<R>(std::min_element(v.begin(), v.end()) - v.begin());
  default:
    return r;
  }
}

/// Reduces axis 0 or 1 of values that fit every type, with ties.
template <typename T, typename R> void checkCombine(const std::string &level, Combine c, int modulus) {
  for (const Shape &shape : {Shape{3, 5}, Shape{70, 33}, Shape{9, 200}})
    for (int axis : {0, 1}) {
      Graph g;
      const int x = g.input({dtypeOf<T>(), shape});
      g.results = {g.reduce(c, x, {axis}, dtypeOf<R>())};
      Data d({dtypeOf<T>(), shape});
      for (int64_t i = 0; i < d.size(); ++i)
        d.as<T>()[i] = static_cast<T>((i * 31 + i / 7) % modulus);
      auto out = Compiled(g, level).run({&d});
      for (int64_t o = 0; o < shape.extent(1 - axis); ++o) {
        std::vector<T> line;
        for (int64_t r = 0; r < shape.extent(axis); ++r)
          line.push_back(d.as<T>()[axis ? o * shape.extent(1) + r : r * shape.extent(1) + o]);
        const R want = reference<T, R>(c, line);
        ASSERT_EQ(out[0].as<R>()[o], want) << nameOf(dtypeOf<T>()) << " combine " << int(c) << " axis " << axis;
      }
    }
}

template <typename T> void checkCombines(const std::string &level) {
  checkCombine<T, T>(level, Combine::Sum, 13);
  checkCombine<T, T>(level, Combine::Prod, 2);
  checkCombine<T, T>(level, Combine::Max, 97);
  checkCombine<T, T>(level, Combine::Min, 97);
  checkCombine<T, int64_t>(level, Combine::ArgMax, 11);
  checkCombine<T, int64_t>(level, Combine::ArgMin, 11);
  checkCombine<T, int32_t>(level, Combine::ArgMax, 97);
}

TEST_P(Types, Combiners) {
  checkCombines<float>(GetParam());
  checkCombines<double>(GetParam());
  checkCombines<int8_t>(GetParam());
  checkCombines<int32_t>(GetParam());
  checkCombines<int64_t>(GetParam());
  checkCombines<uint8_t>(GetParam());
  checkCombine<bool, bool>(GetParam(), Combine::Any, 2);
  checkCombine<bool, bool>(GetParam(), Combine::All, 2);
}

/// One after the other, so many terms of 0.1 would be off in the third digit.
TEST_P(Types, LongSumsKeepTheirDigits) {
  for (const Shape &s : {Shape{5000003}, Shape{70001, 3}}) {
    Graph g;
    const int x = g.input({f32, s});
    g.results = {g.reduce(Combine::Sum, x, {0}, f32)};
    Compiled k(g, GetParam());
    Data a({f32, s});
    std::fill_n(a.as<float>(), s.numElements(), 0.1f);
    const Shape out = s.rank() == 1 ? Shape{} : Shape{3};
    const double want = double(0.1f) * double(s[0]);
    expectNear(k.run({&a})[0], std::vector<double>(size_t(out.numElements()), want), 1e-6, 0);
    a.as<float>()[7] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(k.run({&a})[0].as<float>()[s.rank() == 1 ? 0 : 1], std::numeric_limits<float>::infinity());
  }
}

TEST_P(Types, NanAndInfinityInReductions) {
  const float nan = NAN, inf = INFINITY;
  const std::vector<std::vector<float>> rows{
      {1, nan, 3, nan}, {-inf, -inf, -inf, -inf}, {inf, 2, inf, 1}, {nan, nan, nan, nan}, {-inf, -inf, -5, -5}};
  for (int axis : {0, 1}) { // as rows, and as columns
    const int64_t n = static_cast<int64_t>(rows.size());
    Graph g;
    const Shape shape = axis ? Shape{n, 4} : Shape{4, n};
    const int x = g.input({f32, shape});
    g.results = {g.reduce(Combine::Max, x, {axis}, f32), g.reduce(Combine::Min, x, {axis}, f32),
                 g.reduce(Combine::ArgMax, x, {axis}, DType::i64)};
    Data d({f32, shape});
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < 4; ++j)
        d.as<float>()[axis ? i * 4 + j : j * n + i] = rows[static_cast<size_t>(i)][static_cast<size_t>(j)];
    auto out = Compiled(g, GetParam()).run({&d});
    const float maxima[] = {nan, -inf, inf, nan, -5}, minima[] = {nan, -inf, 1, nan, -inf};
    const int64_t places[] = {1, 0, 0, 0, 2};
    for (int64_t i = 0; i < n; ++i) {
      auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
      EXPECT_TRUE(same(out[0].as<float>()[i], maxima[i])) << out[0].as<float>()[i];
      EXPECT_TRUE(same(out[1].as<float>()[i], minima[i])) << out[1].as<float>()[i];
      EXPECT_EQ(out[2].as<int64_t>()[i], places[i]);
    }
  }
}

TEST_P(Types, BoolsAreOneByteOfZeroOrOne) {
  const int64_t n = 100;
  Graph g;
  const int x = g.input({f32, {n}}), y = g.input({bool_, {n}});
  const int p = g.binary(ScalarOp::Gt, x, g.splat(f32, 0), {n});
  Body b;
  const int u = b.operand(0, bool_), v = b.operand(1, bool_);
  g.results = {
      g.elementwise(b.result(b.op(ScalarOp::Not, bool_, b.op(ScalarOp::Xor, bool_, u, v))), {p, y}, {bool_, {n}})};
  Data a = randomFloats({n}, 20), c({bool_, {n}});
  for (int64_t i = 0; i < n; ++i)
    c.as<uint8_t>()[i] = i % 3 == 0;
  auto out = Compiled(g, GetParam()).run({&a, &c});
  for (int64_t i = 0; i < n; ++i)
    EXPECT_EQ(out[0].as<uint8_t>()[i], uint8_t((a.as<float>()[i] > 0) == (i % 3 == 0)));
}

} // namespace
} // namespace tressel::codegen::test
