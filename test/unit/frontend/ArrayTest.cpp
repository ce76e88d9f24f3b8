// Functions of the array API whose exactness, or use, the random cases against NumPy do not show.
#include <tressel/array_names.h>
#include <tressel/jit.h>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace tressel;

namespace {

template <typename T> std::vector<T> interesting() {
  using L = std::numeric_limits<T>;
  std::vector<T> list{0,     -T(0), L::denorm_min(), -L::denorm_min(), L::min(),     L::max(),     L::lowest(),   T(1),
                      T(-1), T(2),  L::infinity(),   -L::infinity(),   L::epsilon(), L::min() / 2, L::quiet_NaN()};
  std::mt19937_64 random(3);
  for (int e = L::min_exponent - L::digits; e < L::max_exponent; ++e) { // each power of two, and something above it
    list.push_back(std::ldexp(T(1), e));
    list.push_back(-std::ldexp(T(1) + static_cast<T>(random() % 1000) / 1024, e));
  }
  return list;
}

template <typename T> void checkNextafter() {
  const auto n = static_cast<int64_t>(interesting<T>().size());
  for (T goal : {std::numeric_limits<T>::infinity(), T(0), -std::numeric_limits<T>::max(),
                 std::numeric_limits<T>::quiet_NaN()}) {
    std::vector<T> from = interesting<T>(), to(from.size(), goal);
    Tensor x = from_span(from, {n}), y = from_span(to, {n});
    auto compiled = jit([](Tensor a, Tensor b) { return nextafter(a, b); }, {.keep_subnormals = true});
    const std::vector<T> imperative = nextafter(x, y).to_vector<T>(), kept = compiled(x, y).template to_vector<T>();
    for (size_t i = 0; i < from.size(); ++i) {
      const T want = std::nextafter(from[i], goal);
      auto check = [&](const char *how, T got) {
        EXPECT_TRUE((std::isnan(want) && std::isnan(got)) || (want == got && std::signbit(want) == std::signbit(got)))
            << how << ": " << from[i] << " towards " << goal << ": " << got << ", not " << want;
      };
      check("compiled", kept[i]);
      // Imperative ops of f32 take subnormal numbers for zeros.
      if (std::is_same_v<T, double> || (std::fpclassify(want) != FP_SUBNORMAL && std::fpclassify(from[i]) != FP_SUBNORMAL))
        check("imperative", imperative[i]);
    }
  }
}
TEST(Array, NextafterIsTheNextSingle) { checkNextafter<float>(); }
TEST(Array, NextafterIsTheNextDouble) { checkNextafter<double>(); }

/// Of 16-bit floats the next one up has the next bits.
void checkNextafter16(DType type, uint16_t infinity) {
  std::vector<uint16_t> bits(infinity);
  for (uint16_t i = 0; i < infinity; ++i)
    bits[i] = i;
  Tensor x = from_bytes(bits.data(), {type, {infinity}});
  auto towards = jit([](Tensor a, Tensor b) { return nextafter(a, b); }, {.keep_subnormals = true});
  Tensor up = towards(x, full({}, std::numeric_limits<float>::infinity(), type)), down = towards(up, full({}, 0.0, type));
  for (uint16_t i = 0; i < infinity; ++i)
    bits[i] = static_cast<uint16_t>(i + 1);
  Tensor want = from_bytes(bits.data(), {type, {infinity}});
  EXPECT_EQ(up.dtype(), type);
  EXPECT_EQ(up.to_vector<float>(), want.to_vector<float>());
  EXPECT_EQ(down.to_vector<float>(), x.to_vector<float>());
}
TEST(Array, NextafterIsTheNextHalf) { checkNextafter16(f16, 0x7c00); }
TEST(Array, NextafterIsTheNextBfloat) { checkNextafter16(bf16, 0x7f80); }

TEST(Array, NumbersBesideOpsWrittenInElementwiseOnesAreWeak) {
  auto [quotient, rest] = divmod(tensor({7, 8}, i8), 3);
  EXPECT_EQ(quotient.dtype(), i8);
  EXPECT_EQ(rest.dtype(), i8);
}

TEST(Array, SearchsortedWithAnOrder) {
  Tensor x = tensor({3.0, 1, 2}), values = tensor({0, 1, 2.5, 3, 4});
  EXPECT_EQ(searchsorted(x, values, argsort(x)).to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 2, 2, 3}));
  EXPECT_EQ(searchsorted(x, values, argsort(x), "right").to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3, 3}));
}
TEST(Array, SearchsortedPutsNanLast) {
  const float nan = std::nanf("");
  Tensor x = tensor({1, 2, nan, nan}), values = tensor({nan, 2.5});
  EXPECT_EQ(searchsorted(x, values).to_vector<int64_t>(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(searchsorted(x, values, Tensor(), "right").to_vector<int64_t>(), (std::vector<int64_t>{4, 2}));
}

TEST(Array, CumulativeLogsumexpNeitherOverflowsNorVanishes) {
  const float infinity = std::numeric_limits<float>::infinity();
  Tensor x = tensor({-1000.0, -1000, 0, 1000, 1000}), none = tensor({-infinity, -infinity, 1});
  EXPECT_EQ(cumulative_logsumexp(x).to_vector<float>(),
            (std::vector<float>{-1000, -1000 + std::log(2.0f), 0, 1000, 1000 + std::log(2.0f)}));
  EXPECT_EQ(cumulative_logsumexp(none).to_vector<float>(), (std::vector<float>{-infinity, -infinity, 1}));
}

TEST(Array, NamesOfTheStandard) {
  Tensor x = tensor({{1.0, 2}, {3, 4}});
  EXPECT_EQ(tensordot(x, x, 1).to_vector<float>(), (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(tensordot(x, x).item<float>(), 30);
  EXPECT_THROW(tensordot(x, x, 3), ShapeError);
  EXPECT_EQ(cumulative_sum(x, 0, true).to_vector<float>(), (std::vector<float>{0, 0, 1, 2, 4, 6}));
  EXPECT_EQ(cumulative_prod(x, -1, true).to_vector<float>(), (std::vector<float>{1, 1, 2, 1, 3, 12}));
  EXPECT_THROW(cumulative_sum(x, 2, true), ShapeError);
  EXPECT_EQ(matrix_transpose(x).to_vector<float>(), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(permute_dims(x, {1, 0}).to_vector<float>(), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(subtract(x, multiply(x, 2)).to_vector<float>(), (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_EQ(divide(x, ones_like(x)).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
}

} // namespace
