// The expansions of elementary functions against libm in higher precision, in units of the last place.
#include "Harness.h"

#include <cmath>
#include <functional>

namespace tressel::codegen::test {
namespace {

using Reference = long double (*)(long double);

struct Function {
  const char *name;
  ScalarOp op;
  Reference reference;
  double low, high; ///< range of the random arguments
  double ulpSingle, ulpDouble;
};

long double logistic(long double x) { return 1 / (1 + std::exp(-x)); }
long double rsqrt(long double x) { return 1 / std::sqrt(x); }

const Function kFunctions[] = {
    {"exp", ScalarOp::Exp, std::exp, -110, 95, 1.5, 1.5},
    {"expm1", ScalarOp::Expm1, std::expm1, -30, 95, 2, 2},
    {"log", ScalarOp::Log, std::log, 0, 1e30, 1.5, 1.5},
    {"logNearOne", ScalarOp::Log, std::log, 0.5, 2, 1.5, 1.5},
    {"log1p", ScalarOp::Log1p, std::log1p, -0.999, 5, 2, 2},
    {"sin", ScalarOp::Sin, std::sin, -1000, 1000, 1, 1.5},
    {"cos", ScalarOp::Cos, std::cos, -1000, 1000, 1, 1.5},
    {"tan", ScalarOp::Tan, std::tan, -100, 100, 1, 3},
    {"asin", ScalarOp::Asin, std::asin, -1, 1, 4, 4},
    {"acos", ScalarOp::Acos, std::acos, -1, 1, 4, 4},
    {"atan", ScalarOp::Atan, std::atan, -20, 20, 3, 3},
    {"sinh", ScalarOp::Sinh, std::sinh, -89, 89, 4, 4},
    {"cosh", ScalarOp::Cosh, std::cosh, -89, 89, 4, 4},
    {"tanh", ScalarOp::Tanh, std::tanh, -12, 12, 4, 4},
    {"erf", ScalarOp::Erf, std::erf, -5, 5, 6, 5},
    {"erfSmall", ScalarOp::Erf, std::erf, -0.1, 0.1, 4, 3},
    {"logistic", ScalarOp::Logistic, logistic, -80, 80, 3, 3},
    {"rsqrt", ScalarOp::Rsqrt, rsqrt, 1e-20, 1e20, 1.5, 1.5},
};

/// Distance in units of the last place of T at the exact value, denormals included.
template <typename T> double ulps(T got, long double exact) {
  if (std::isnan(exact))
    return std::isnan(got) ? 0 : 1e30;
  const T rounded = static_cast<T>(exact);
  if (std::isinf(rounded) || std::isinf(got))
    return got == rounded ? 0 : 1e30;
  const T next = std::nextafter(std::abs(rounded), std::numeric_limits<T>::infinity());
  const long double unit = std::isinf(next) ? 1 : static_cast<long double>(next) - std::abs(rounded);
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / unit);
}

class MathFunction : public ::testing::TestWithParam<std::tuple<std::string, Function>> {
protected:
  template <typename T> void check(DType type, double bound) {
    const auto &[level, f] = GetParam();
    std::vector<T> x;
    std::mt19937_64 rng(5);
    std::uniform_real_distribution<double> u(f.low, f.high);
    for (int i = 0; i < 20000; ++i)
      x.push_back(static_cast<T>(u(rng)));
    for (int e = -140; e <= 120; ++e) { // small and large magnitudes
      const double v = std::ldexp(1 + u(rng) / (f.high - f.low), e);
      for (double s : {v, -v})
        if (s >= f.low && s <= f.high)
          x.push_back(static_cast<T>(s));
    }
    using L = std::numeric_limits<T>;
    for (T s :
         {T(0), -T(0), L::infinity(), -L::infinity(), L::quiet_NaN(), L::denorm_min(), L::min(), T(1), T(-1), T(0.5)})
      x.push_back(s);
    const auto n = static_cast<int64_t>(x.size());
    Graph g;
    g.results = {g.unary(f.op, g.input({type, {n}}))};
    Compiled k(g, level);
    Data in({type, {n}});
    std::copy(x.begin(), x.end(), in.as<T>());
    auto out = k.run({&in});
    double worst = 0;
    for (int64_t i = 0; i < n; ++i) {
      const T got = out[0].as<T>()[i];
      const double distance = ulps<T>(got, f.reference(x[static_cast<size_t>(i)]));
      worst = std::max(worst, distance);
      ASSERT_LE(distance, bound) << f.name << '(' << x[static_cast<size_t>(i)] << ") = " << got;
    }
    RecordProperty("ulps", std::to_string(worst));
  }
};

TEST_P(MathFunction, Single) { check<float>(f32, std::get<1>(GetParam()).ulpSingle); }
TEST_P(MathFunction, Double) { check<double>(f64, std::get<1>(GetParam()).ulpDouble); }
INSTANTIATE_TEST_SUITE_P(All, MathFunction,
                         ::testing::Combine(::testing::ValuesIn(levels()), ::testing::ValuesIn(kFunctions)),
                         [](const auto &info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param).name; });

/// The rest of gelu far from 0 is x times what erf lacks of 1.
TEST(Math, ErfReachesOne) {
  Graph g;
  const int x = g.input({f32, {6}});
  g.results = {g.unary(ScalarOp::Erf, x)};
  for (const std::string &level : levels()) {
    Compiled k(g, level);
    Data in({f32, {6}});
    const float at[] = {4, 5, 1e10f, -4, -7, -std::numeric_limits<float>::infinity()};
    std::copy(at, at + 6, in.as<float>());
    expectNear(k.run({&in})[0], {1, 1, 1, -1, -1, -1}, 0, 0);
  }
}

TEST(Math, SignOfAZeroIsZero) {
  Graph g;
  const int x = g.input({f32, {4}});
  g.results = {g.unary(ScalarOp::Sign, x)};
  for (const std::string &level : levels()) {
    Compiled k(g, level);
    Data in({f32, {4}});
    const float at[] = {-0.f, 0.f, -3, 1e-40f};
    std::copy(at, at + 4, in.as<float>());
    Data out = std::move(k.run({&in})[0]);
    expectNear(out, {0, 0, -1, 1}, 0, 0);
    EXPECT_FALSE(std::signbit(out.as<float>()[0]));
  }
}

TEST(Math, OfEqualZerosTheFirst) {
  Graph g;
  const int x = g.input({f32, {4}}), y = g.input({f32, {4}});
  g.results = {g.binary(ScalarOp::Max, x, y, {4}), g.binary(ScalarOp::Min, x, y, {4})};
  for (const std::string &level : levels()) {
    Compiled k(g, level);
    Data a({f32, {4}}), b({f32, {4}});
    const float first[] = {-0.f, 0, -0.f, 0}, second[] = {0, -0.f, -0.f, 0};
    std::copy(first, first + 4, a.as<float>());
    std::copy(second, second + 4, b.as<float>());
    auto out = k.run({&a, &b});
    for (Data &d : out)
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(std::signbit(d.as<float>()[i]), std::signbit(first[i])) << level << " " << i;
  }
}

class BinaryMath : public ::testing::TestWithParam<std::string> {
protected:
  template <typename T>
  void check(ScalarOp op, DType type, long double (*reference)(long double, long double), double bound, double lowA,
             double highA, double lowB, double highB) {
    std::vector<T> a, b;
    std::mt19937_64 rng(6);
    std::uniform_real_distribution<double> ua(lowA, highA), ub(lowB, highB);
    for (int i = 0; i < 20000; ++i)
      a.push_back(static_cast<T>(ua(rng))), b.push_back(static_cast<T>(ub(rng)));
    using L = std::numeric_limits<T>;
    const T special[] = {0, -T(0), 1, -1, 2, -2, 3, -3, T(0.5), T(-2.5), L::infinity(), -L::infinity(), L::quiet_NaN()};
    for (T s : special)
      for (T t : special)
        a.push_back(s), b.push_back(t);
    const auto n = static_cast<int64_t>(a.size());
    Graph g;
    const int x = g.input({type, {n}}), y = g.input({type, {n}});
    g.results = {g.binary(op, x, y, {n})};
    Compiled k(g, GetParam());
    Data da({type, {n}}), db({type, {n}});
    std::copy(a.begin(), a.end(), da.as<T>());
    std::copy(b.begin(), b.end(), db.as<T>());
    auto out = k.run({&da, &db});
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_LE(ulps<T>(out[0].as<T>()[i], reference(a[i], b[i])), bound)
          << a[i] << ", " << b[i] << " gives " << out[0].as<T>()[i] << ", not "
          << static_cast<double>(reference(a[i], b[i]));
  }
};
INSTANTIATE_TEST_SUITE_P(Levels, BinaryMath, ::testing::ValuesIn(levels()),
                         [](const auto &info) { return info.param; });

TEST_P(BinaryMath, Pow) {
  auto pow = [](long double a, long double b) -> long double { return std::pow(a, b); };
  check<float>(ScalarOp::Pow, f32, pow, 1, 0, 50, -20, 20);
  check<double>(ScalarOp::Pow, f64, pow, 100, 0, 50, -20, 20);
}
TEST_P(BinaryMath, Atan2) {
  auto atan2 = [](long double a, long double b) -> long double { return std::atan2(a, b); };
  check<float>(ScalarOp::Atan2, f32, atan2, 4, -3, 3, -3, 3);
  check<double>(ScalarOp::Atan2, f64, atan2, 4, -3, 3, -3, 3);
}
TEST_P(BinaryMath, Remainder) {
  auto rem = [](long double a, long double b) -> long double { // the divisor's sign, as in the array API
    const long double r = std::fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  };
  check<float>(ScalarOp::Rem, f32, rem, 1, -100, 100, -7, 7);
  check<double>(ScalarOp::Rem, f64, rem, 1, -100, 100, -7, 7);
}

} // namespace
} // namespace tressel::codegen::test
