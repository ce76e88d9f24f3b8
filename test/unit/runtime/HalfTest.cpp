#include "tressel/runtime/Half.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tressel;

TEST(Half, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const uint16_t h = static_cast<uint16_t>(bits);
    const float value = halfToFloat(h);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(halfToFloat(halfFromFloat(value))));
    else
      EXPECT_EQ(halfFromFloat(value), h) << bits;
    const float brain = bfloatToFloat(h);
    if (std::isnan(brain))
      EXPECT_TRUE(std::isnan(bfloatToFloat(bfloatFromFloat(brain))));
    else
      EXPECT_EQ(bfloatFromFloat(brain), h) << bits;
  }
}

#ifdef __FLT16_MAX__
TEST(Half, AgreesWithTheCompiler) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
    if (!std::isnan(value))
      EXPECT_EQ(halfToFloat(static_cast<uint16_t>(bits)), value);
  }
  uint64_t state = 1;
  for (int i = 0; i < 200000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Exponents around the range of f16, all mantissas.
    const uint32_t exponent = 127 - 27 + (state >> 33) % 46;
    const float value = std::bit_cast<float>(
        static_cast<uint32_t>(state >> 63 << 31 | exponent << 23 | (static_cast<uint32_t>(state >> 40) & 0x7fffff)));
    EXPECT_EQ(halfFromFloat(value), std::bit_cast<uint16_t>(static_cast<_Float16>(value))) << value;
  }
}
#endif

TEST(Half, TiesGoToEven) {
  EXPECT_EQ(halfFromFloat(2049.0f), halfFromFloat(2048.0f));
  EXPECT_EQ(halfFromFloat(2051.0f), halfFromFloat(2052.0f));
  EXPECT_EQ(halfFromFloat(65519.0f), 0x7bff);
  EXPECT_EQ(halfFromFloat(65520.0f), 0x7c00);
  EXPECT_EQ(halfFromFloat(0x1p-25f), 0);
  EXPECT_EQ(halfFromFloat(-0x1p-25f), 0x8000);
  EXPECT_EQ(halfFromFloat(0x1.8p-25f), 1);
  EXPECT_EQ(bfloatFromFloat(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(bfloatFromFloat(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(bfloatFromFloat(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(Half, DoublesAreRoundedOnce) {
  // To float first this would be a tie, and lose its last bit.
  const double justAbove = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(halfFromDouble(justAbove), 0x3c01);
  EXPECT_EQ(halfFromFloat(static_cast<float>(justAbove)), 0x3c00);
}
