// Typed numbers: widths, wrapping, rounding towards minus infinity, NaN.
#include "ir/op/Num.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace tressel::op;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T> T as(Num<T> x) { return x.v; }

TEST(Num, IntegersWrapAround) {
  EXPECT_EQ(as(Num<int8_t>(127) + Num<int8_t>(1)), -128);
  EXPECT_EQ(as(Num<uint8_t>(3) - Num<uint8_t>(5)), 254);
  EXPECT_EQ(as(Num<int16_t>(-32768) * Num<int16_t>(-1)), -32768);
  EXPECT_EQ(as(-Num<int32_t>(std::numeric_limits<int32_t>::min())), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(as(Num<int64_t>(std::numeric_limits<int64_t>::max()) + 1), std::numeric_limits<int64_t>::min());
}

TEST(Num, WideIntegersDoNotGoThroughDouble) {
  const int64_t odd = (int64_t(1) << 53) + 1; // no double holds it
  EXPECT_EQ(as(Num<int64_t>(odd) * 1), odd);
  EXPECT_EQ(as(max(Num<int64_t>(odd), Num<int64_t>(odd - 1))), odd);
  EXPECT_EQ(as(Num<int64_t>(odd) / Num<int64_t>(1)), odd);
  EXPECT_EQ(as(pow(Num<int64_t>(3), 39)), 4052555153018976267);
}

TEST(Num, FlooredQuotientsOfZeroHaveTheirSign) {
  // a, b, and what floor(a / b) is, with the sign of its zero.
  const double cases[][3] = {{5, 34, 0.0}, {-0.0, 34, -0.0}, {0.0, -34, -0.0}, {-3, -34, 0.0}, {-0.0, -34, 0.0}, {-3, 34, -1}, {3, -34, -1}, {68, 34, 2}};
  for (const auto &[a, b, want] : cases) {
    const double got = as(floorQuotient(Num<double>(a), Num<double>(b), NumTag<double>()));
    EXPECT_EQ(got, want) << a << " " << b;
    EXPECT_EQ(std::signbit(got), std::signbit(want)) << a << " " << b;
  }
}

TEST(Num, IntegerDivisionFloors) {
  for (int a = -9; a <= 9; ++a)
    for (int b = -4; b <= 4; ++b) {
      if (b == 0)
        continue;
      const int quotient = static_cast<int>(std::floor(static_cast<double>(a) / b));
      EXPECT_EQ(as(Num<int32_t>(a) / Num<int32_t>(b)), quotient) << a << " / " << b;
      EXPECT_EQ(as(Num<int32_t>(a) % Num<int32_t>(b)), a - quotient * b) << a << " % " << b;
    }
  EXPECT_EQ(as(Num<int32_t>(7) / 0), 0);
  EXPECT_EQ(as(Num<int32_t>(7) % 0), 0);
  EXPECT_EQ(as(Num<int8_t>(-128) / Num<int8_t>(-1)), -128);
  EXPECT_EQ(as(Num<int8_t>(-128) % Num<int8_t>(-1)), 0);
}

TEST(Num, FloatRemainderHasTheSignOfTheDivisor) {
  EXPECT_EQ(as(Num<double>(-1) % Num<double>(3)), 2);
  EXPECT_EQ(as(Num<double>(1) % Num<double>(-3)), -2);
  EXPECT_TRUE(std::signbit(as(Num<double>(6) % Num<double>(-3))));
  // Exact: a - b * floor(a / b) would round.
  EXPECT_EQ(as(Num<float>(1e8f) % Num<float>(3.0f)), 1.0f);
}

TEST(Num, FloatsRoundToTheirOwnType) {
  EXPECT_EQ(as(Num<float>(16777216.0f) + 1), 16777216.0f);
  EXPECT_EQ(as(Num<float>(1) * 0.1), 0.1f);
  EXPECT_EQ(as(exp(Num<float>(1))), static_cast<float>(std::exp(1.0)));
}

TEST(Num, MinimumAndMaximumPropagateNan) {
  EXPECT_TRUE(as(isnan(min(Num<double>(kNan), Num<double>(1)))));
  EXPECT_TRUE(as(isnan(min(Num<double>(1), Num<double>(kNan)))));
  EXPECT_TRUE(as(isnan(max(Num<double>(kNan), 1))));
  EXPECT_TRUE(as(isnan(max(1, Num<double>(kNan)))));
  EXPECT_TRUE(as(isnan(sign(Num<double>(kNan)))));
}

TEST(Num, HalvesRoundToEven) {
  EXPECT_EQ(as(round(Num<float>(0.5f))), 0);
  EXPECT_EQ(as(round(Num<float>(1.5f))), 2);
  EXPECT_EQ(as(round(Num<float>(-2.5f))), -2);
  EXPECT_EQ(as(round(Num<int32_t>(3))), 3);
}

TEST(Num, PowersOfIntegers) {
  EXPECT_EQ(as(pow(Num<int8_t>(2), 7)), -128); // wraps
  EXPECT_EQ(as(pow(Num<int32_t>(0), 0)), 1);
  EXPECT_EQ(as(pow(Num<int32_t>(2), -1)), 0);
  EXPECT_EQ(as(pow(Num<int32_t>(-1), -3)), -1);
  EXPECT_EQ(as(pow(Num<int32_t>(1), -3)), 1);
}

TEST(Num, RightShiftsBringInZeros) {
  EXPECT_EQ(as(Num<int64_t>(-1) >> 32), 0xffffffff);
  EXPECT_EQ(as(Num<int64_t>(1) << 64), 0);
  EXPECT_EQ(as(Num<int64_t>(0xffffffff) * 0xD2511F53), static_cast<int64_t>(0xffffffffull * 0xD2511F53ull));
  EXPECT_EQ(as(Num<uint8_t>(0xF0) ^ Num<uint8_t>(0xFF)), 0x0F);
}

TEST(Num, CastsTruncateAndSaturate) {
  const NumTag<int8_t> toI8;
  EXPECT_EQ(as(cast(Num<float>(-1.9f), toI8)), -1);
  EXPECT_EQ(as(cast(Num<float>(1000.0f), toI8)), 127);
  EXPECT_EQ(as(cast(Num<double>(kNan), toI8)), 0);
  EXPECT_EQ(as(cast(Num<int32_t>(300), toI8)), 44); // integers wrap around
  EXPECT_EQ(as(cast(Num<double>(9.3e18), NumTag<int64_t>())), std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(as(cast(Num<float>(0.5f), NumTag<bool>())));
}

TEST(Num, SelectTakesLiterals) {
  EXPECT_EQ(as(select(Num<float>(-1) >= 0, Num<float>(2), 0.5)), 0.5f);
  EXPECT_EQ(as(select(!Num<bool>(false), 3, Num<int32_t>(2))), 3);
}

} // namespace
