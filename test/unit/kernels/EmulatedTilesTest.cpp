// Emulated tile registers: against plain loops, at the ends of f32's range, where a CPU faults; and against the CPU's
// own tiles, bit for bit, where it has some. This file is compiled for them (CMakeLists.txt).
#include "runtime/kernels/EmulatedTiles.h"
#include "Kernels.h"
#include "runtime/kernels/AmxTiles.h"

#include <array>
#include <thread>

namespace tressel::kernels::test {
namespace {

/// As LDTILECFG reads them: tile 0 of sums, 1 the left side, 2 the right side.
struct alignas(64) Shapes {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};
Shapes shapesOf(int rows, int pairs, int columns) {
  Shapes s;
  s.rows[0] = s.rows[1] = static_cast<uint8_t>(rows), s.rows[2] = static_cast<uint8_t>(pairs);
  s.bytes[0] = s.bytes[2] = static_cast<uint16_t>(4 * columns), s.bytes[1] = static_cast<uint16_t>(4 * pairs);
  return s;
}

/// Bits of bf16: rows x 2 pairs, and pairs x columns x 2. Bits of f32: rows x columns.
struct Operands {
  int rows, pairs, columns;
  std::vector<uint16_t> left, right;
  std::vector<uint32_t> sums;

  template <typename Number>
  Operands(int rows, int pairs, int columns, Number number) : rows(rows), pairs(pairs), columns(columns) {
    for (int i = 0; i < rows * pairs * 2; ++i)
      left.push_back(bfloatFromFloat(number()));
    for (int i = 0; i < pairs * columns * 2; ++i)
      right.push_back(bfloatFromFloat(number()));
    for (int i = 0; i < rows * columns; ++i)
      sums.push_back(__builtin_bit_cast(uint32_t, number()));
  }
};

/// sums + left * right, or left * right.
template <typename Tiles> std::vector<uint32_t> multiply(const Operands &o, bool add = true) {
  const Shapes shapes = shapesOf(o.rows, o.pairs, o.columns);
  const int64_t gap = 3; // elements between rows
  std::vector<uint32_t> sums(static_cast<size_t>(o.rows * (o.columns + gap)), 7);
  for (int r = 0; r < o.rows; ++r)
    std::copy_n(o.sums.begin() + r * o.columns, o.columns, sums.begin() + r * (o.columns + gap));
  Tiles::configure(&shapes);
  if (add)
    Tiles::template load<0>(sums.data(), (o.columns + gap) * 4);
  else
    Tiles::template zero<0>();
  Tiles::template load<1>(o.left.data(), o.pairs * 4);
  Tiles::template load<2>(o.right.data(), o.columns * 4);
  Tiles::template multiply<0, 1, 2>();
  Tiles::template store<0>(sums.data(), (o.columns + gap) * 4);
  Tiles::release();
  std::vector<uint32_t> dense;
  for (int r = 0; r < o.rows; ++r)
    for (int c = 0; c < o.columns + gap; ++c) {
      const uint32_t bits = sums[static_cast<size_t>(r * (o.columns + gap) + c)];
      if (c < o.columns)
        dense.push_back(bits);
      else
        EXPECT_EQ(bits, 7u) << "behind row " << r;
    }
  return dense;
}

float ofBits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
/// All NaNs are one.
uint32_t bitsOf(float x) { return std::isnan(x) ? 0x7fc00000 : __builtin_bit_cast(uint32_t, x); }

/// One element, in numbers whose sums f64 holds exactly, so that a conversion is the only rounding.
float expected(const Operands &o, int row, int column, bool add) {
  float sums[2] = {};
  for (int k = 0; k < 2 * o.pairs; ++k)
    sums[k % 2] = static_cast<float>(
        sums[k % 2] + double(bfloatToFloat(o.left[static_cast<size_t>(row * 2 * o.pairs + k)])) *
                          bfloatToFloat(o.right[static_cast<size_t>((k / 2 * o.columns + column) * 2 + k % 2)]));
  const float pairs = static_cast<float>(double(sums[0]) + sums[1]);
  return add ? static_cast<float>(double(ofBits(o.sums[static_cast<size_t>(row * o.columns + column)])) + pairs)
             : pairs;
}

TEST(EmulatedTiles, AreAPlainLoopForAllShapes) {
  std::mt19937 rng(1);
  auto number = [&] {
    return static_cast<float>(static_cast<int>(rng() % 513) - 256) * (rng() % 8 == 0 ? 0x1p-15f : 0x1p-6f);
  };
  for (int rows = 1; rows <= 16; ++rows)
    for (int pairs : {1, 2, 7, 15, 16})
      for (int columns : {1, 3, 8, 15, 16})
        for (bool add : {false, true}) {
          const Operands o(rows, pairs, columns, number);
          const std::vector<uint32_t> result = multiply<EmulatedTiles>(o, add);
          for (int r = 0; r < rows; ++r)
            for (int c = 0; c < columns; ++c)
              ASSERT_EQ(ofBits(result[static_cast<size_t>(r * columns + c)]), expected(o, r, c, add))
                  << rows << " x " << pairs << " x " << columns << " at " << r << " " << c;
        }
}

/// a * b + c * d, added to `sum`.
float pairOf(float a, float b, float c, float d, float sum) {
  Operands o(1, 1, 1, [] { return 0.f; });
  o.left = {bfloatFromFloat(a), bfloatFromFloat(c)}, o.right = {bfloatFromFloat(b), bfloatFromFloat(d)};
  o.sums = {__builtin_bit_cast(uint32_t, sum)};
  return ofBits(multiply<EmulatedTiles>(o)[0]);
}

TEST(EmulatedTiles, RoundEachSumToNearestEven) {
  EXPECT_EQ(pairOf(1, 1, 0x1p-12f, 0x1p-12f, 0), 1) << "half a unit";
  EXPECT_EQ(pairOf(1, 0x1.02p0f, 0x1p-12f, 0x1p-12f, 0), 0x1.02p0f);
  EXPECT_EQ(pairOf(1, 1, 0x1p-12f, 0x1.02p-12f, 0), 0x1.000002p0f) << "more than half";
  EXPECT_EQ(pairOf(0x1p-12f, 0x1p-12f, 0x1p-12f, 0x1p-12f, 1), 0x1.000002p0f) << "the pair first";
  EXPECT_EQ(pairOf(3e38f, 3e38f, 0, 0, 1), INFINITY);
  EXPECT_EQ(pairOf(0x1p127f, 1, 0x1p127f, -1, -INFINITY), -INFINITY);
  EXPECT_TRUE(std::isnan(pairOf(INFINITY, 0, 0, 0, 1)));
  EXPECT_TRUE(std::isnan(pairOf(NAN, 1, 0, 0, 1)));
}

TEST(EmulatedTiles, FlushWhatIsBelowTheSmallestNormalNumber) {
  EXPECT_EQ(pairOf(0x1p-127f, 0x1p100f, 0, 0, 0), 0) << "an operand";
  EXPECT_EQ(pairOf(1, 1, 0, 0, 0x1p-127f), 1);
  EXPECT_EQ(pairOf(0, 0, 0, 0, 0x1p-127f), 0) << "a sum that was there";
  EXPECT_EQ(pairOf(0x1p-64f, 0x1p-64f, 0, 0, 0), 0) << "a product";
  EXPECT_EQ(pairOf(0x1p-63f, 0x1p-63f, 0, 0, 0), 0x1p-126f);
  EXPECT_EQ(pairOf(0x1.8p-63f, 0x1p-63f, 0x1p-63f, -0x1p-63f, 0), 0) << "a sum of a pair";
  EXPECT_EQ(pairOf(0x1.8p-63f, 0x1p-63f, 0, 0, -0x1p-126f), 0) << "a sum";
  EXPECT_EQ(bitsOf(pairOf(-0x1p-64f, 0x1p-64f, -0x1p-64f, 0x1p-64f, -0.f)), 0x80000000) << "a zero has a sign";
}

/// (1 + x) 2^-126 with one bit of the product below what f32 has there: with exponents that have no end it rounds to
/// less.
TEST(EmulatedTiles, FlushWhatIsRoundedToTheSmallestNormalNumberAsASubnormalOne) {
  auto after = [](float first, float a, float b) { // first * 2^-63 squared, then a * b: two pairs in one sum
    Operands o(1, 2, 1, [] { return 0.f; });
    o.left = {bfloatFromFloat(first), 0, bfloatFromFloat(a), 0};
    o.right = {bfloatFromFloat(0x1p-63f), 0, bfloatFromFloat(b), 0};
    return ofBits(multiply<EmulatedTiles>(o)[0]);
  };
  EXPECT_EQ(after(0x1.02p-63f, -0x1p-66f, 0x1.02p-67f), 0) << "below by much";
  EXPECT_EQ(after(0x1p-63f, -0x1p-75f, 0x1p-75f), 0) << "2^-126 - 2^-150: a subnormal number would round up";
  EXPECT_EQ(after(-0x1p-63f, 0x1p-75f, 0x1p-75f), 0);
  EXPECT_EQ(after(0x1p-63f, -0x1p-75f, 0x1p-76f), 0x1p-126f) << "2^-126 - 2^-151: any number rounds to even";
  EXPECT_EQ(after(0x1p-63f, -0x1p-75f, 0x1.02p-76f), 0) << "a little less";
  EXPECT_EQ(after(0x1p-63f, -0x1p-75f, 0x1p-77f), 0x1p-126f);
}

TEST(EmulatedTiles, AreEachThreadsOwn) {
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t)
    threads.emplace_back([t] {
      std::mt19937 rng(static_cast<unsigned>(t));
      for (int i = 0; i < 20; ++i) {
        const Operands o(4 * t, 2 * t, 3 * t, [&] { return static_cast<float>(rng() % 17) - 8; });
        const std::vector<uint32_t> result = multiply<EmulatedTiles>(o);
        for (int r = 0; r < o.rows; ++r)
          for (int c = 0; c < o.columns; ++c)
            ASSERT_EQ(ofBits(result[static_cast<size_t>(r * o.columns + c)]), expected(o, r, c, true));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(EmulatedTilesDeathTest, EndWhereACpuFaults) {
  using Tiles = EmulatedTiles;
  float memory[256] = {};
  auto with = [](auto change) {
    Shapes shapes = shapesOf(16, 16, 16);
    change(shapes);
    Tiles::configure(&shapes);
  };
  auto usual = [](Shapes &) {};
  EXPECT_DEATH(Tiles::zero<0>(), "TILEZERO faults: no tiles are configured");
  EXPECT_DEATH(Tiles::load<0>(memory, 64), "TILELOADD faults: no tiles are configured");
  EXPECT_DEATH((Tiles::multiply<0, 1, 2>()), "TDPBF16PS faults: no tiles are configured");
  EXPECT_DEATH((with(usual), Tiles::release(), Tiles::store<0>(memory, 64)),
               "TILESTORED faults: no tiles are configured");
  EXPECT_DEATH((with(usual), std::thread([&] { Tiles::load<0>(memory, 64); }).join()),
               "no tiles are configured in this thread");
  EXPECT_DEATH((with(usual), Tiles::load<3>(memory, 64)), "tile 3 has no shape");
  EXPECT_DEATH((with(usual), Tiles::multiply<0, 1, 1>()), "two of its tiles are the same");
  EXPECT_DEATH((with(usual), Tiles::multiply<0, 0, 2>()), "two of its tiles are the same");
  EXPECT_DEATH((with([](Shapes &s) { s.rows[0] = 15; }), Tiles::multiply<0, 1, 2>()), "do not fit together");
  EXPECT_DEATH((with([](Shapes &s) { s.rows[2] = 15; }), Tiles::multiply<0, 1, 2>()), "do not fit together");
  EXPECT_DEATH((with([](Shapes &s) { s.bytes[2] = 60; }), Tiles::multiply<0, 1, 2>()), "do not fit together");
  EXPECT_DEATH((with([](Shapes &s) { s.bytes[0] = 62; }), Tiles::load<0>(memory, 64)), "no multiple of 4");
  EXPECT_DEATH(with([](Shapes &s) { s.palette = 2; }), "LDTILECFG faults: there is no such palette");
  EXPECT_DEATH(with([](Shapes &s) { s.rows[1] = 17; }), "tile 1 has more than 16 rows");
  EXPECT_DEATH(with([](Shapes &s) { s.bytes[1] = 256; }), "tile 1 has more than 16 rows or 64 bytes");
  EXPECT_DEATH(with([](Shapes &s) { s.rows[7] = 1; }), "tile 7 has rows or bytes alone");
  EXPECT_DEATH(with([](Shapes &s) { s.rows[8] = 16; }), "reserved byte");
  EXPECT_DEATH(with([](Shapes &s) { s.bytes[8] = 64; }), "reserved byte");
  EXPECT_DEATH(with([](Shapes &s) { s.reserved[13] = 1; }), "reserved byte");
  with([](Shapes &s) { s.palette = 0; });
  EXPECT_DEATH(Tiles::zero<0>(), "no tiles are configured");
}

/// All kinds of numbers, by their bits.
TEST(EmulatedTiles, AreTheCpus) {
  if (!realTiles())
    GTEST_SKIP() << "this CPU or system has no tile registers to compare with";
  std::mt19937 rng(1);
  for (int i = 0; i < 2000; ++i) {
    // Near the ends of the range, where flushing and overflow are; anywhere; of much the same size, so that sums
    // cancel.
    const int kind = i % 4;
    const Operands o(1 + static_cast<int>(rng() % 16), 1 + static_cast<int>(rng() % 16),
                     1 + static_cast<int>(rng() % 16), [&] {
                       const auto bits = static_cast<uint32_t>(rng());
                       const uint32_t exponent = kind == 0   ? 64 + bits % 4
                                                 : kind == 1 ? bits % 256
                                                 : kind == 2 ? 126 + bits % 3
                                                             : 189 + bits % 4;
                       const uint32_t fraction = static_cast<uint32_t>(rng()) & (rng() % 4 == 0 ? 0 : 0x7fffff);
                       return rng() % 16 == 0 ? 0.f : ofBits((bits & 0x80000000) | exponent << 23 | fraction);
                     });
    const std::vector<uint32_t> emulated = multiply<EmulatedTiles>(o), real = multiply<AmxTiles>(o);
    for (size_t e = 0; e < real.size(); ++e)
      ASSERT_EQ(bitsOf(ofBits(emulated[e])), bitsOf(ofBits(real[e]))) << "call " << i << " element " << e;
  }
}

} // namespace
} // namespace tressel::kernels::test
