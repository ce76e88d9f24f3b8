// Products on tiles, by themselves: every part of every number counts, and nothing beside the result is written. On tiles
// that are emulated, and on the CPU's own where it has some: the same bits then.
#include "Kernels.h"

#include <limits>

namespace tressel::kernels::test {
namespace {

/// Numbers that use all bits of the type.
std::vector<float> fineValues(int64_t n, unsigned seed, Element element) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(static_cast<size_t>(n));
  for (float &x : v)
    x = element == Element::F32 ? normal(rng) : widened(narrowed(normal(rng), element), element);
  return v;
}

struct Sides {
  int64_t rows, depth, columns, width;
  Element element;
  std::vector<float> a, b; ///< rows by depth; a panel
  Memory left, right;
  SplitLeft how;
  Magnitudes magnitudes;

  Sides(int64_t rows, int64_t depth, int64_t columns, Element element)
      : rows(rows), depth(depth), columns(columns), width((columns + 15) / 16 * 16), element(element),
        a(fineValues(rows * depth, 1, element)), b(fineValues(depth * width, 2, element)),
        left(splitLeftBytes(rows, depth)),
        right(splitBytes(width, depth)), how{nullptr, 0, 0, rows, 1, depth, partsOf(element), a.data(), depth} {
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t c = columns; c < width; ++c)
        b[static_cast<size_t>(k * width + c)] = 0;
  }
  SplitRight panel() const { return {b.data(), depth, width, partsOf(element)}; }
  Magnitude ofRow(int64_t row) const { return static_cast<const Magnitude *>(left.get())[row]; }
  void split(const SplitKernels &kernels) {
    kernels.splitLeft(how, static_cast<char *>(left.get()));
    magnitudes = kernels.splitRight(panel(), static_cast<char *>(right.get()));
  }
};

void checkOn(const SplitKernels &kernels, Sides &s, bool add, std::vector<float> &c) {
  s.split(kernels);
  const int64_t cRow = s.columns + 3;
  c.assign(static_cast<size_t>((s.rows + 1) * cRow), 0.5f);
  const SplitRight panel = s.panel();
  kernels.multiply({s.how, panel, static_cast<const char *>(s.left.get()), static_cast<const char *>(s.right.get()),
                    s.magnitudes, s.columns, c.data(), cRow, add});
  for (int64_t r = 0; r < s.rows; ++r) {
    for (int64_t j = 0; j < s.columns; ++j) {
      double sum = add ? 0.5 : 0, magnitude = std::abs(sum);
      for (int64_t k = 0; k < s.depth; ++k) {
        const double product =
            double(s.a[static_cast<size_t>(r * s.depth + k)]) * s.b[static_cast<size_t>(k * s.width + j)];
        sum += product, magnitude += std::abs(product);
      }
      // A wrong third part would show: it is up to 2^-16 of a number.
      ASSERT_NEAR(c[static_cast<size_t>(r * cRow + j)], sum, 0x1p-21 * magnitude)
          << s.rows << " x " << s.depth << " x " << s.columns << " at " << r << " " << j;
    }
    for (int64_t j = s.columns; j < cRow; ++j)
      ASSERT_EQ(c[static_cast<size_t>(r * cRow + j)], 0.5f) << "behind row " << r;
  }
  for (int64_t j = 0; j < cRow; ++j)
    ASSERT_EQ(c[static_cast<size_t>(s.rows * cRow + j)], 0.5f) << "behind " << s.rows << " rows";
}

void check(Sides &s, bool add) {
  std::vector<float> emulated, real;
  checkOn(tressel_emulated_tiles, s, add, emulated);
  if (!realTiles())
    return;
  checkOn(*realTiles(), s, add, real);
  ASSERT_EQ(std::memcmp(emulated.data(), real.data(), real.size() * sizeof(float)), 0)
      << "emulated tiles differ from the CPU's: " << s.rows << " x " << s.depth << " x " << s.columns;
}

class Tiles : public ::testing::TestWithParam<Element> {
protected:
  void SetUp() override {
    if (runtime::hostCpuLevel() != runtime::CpuLevel::V4)
      GTEST_SKIP() << "tiles are emulated beside AVX-512, which this CPU has not";
  }
};
INSTANTIATE_TEST_SUITE_P(
    Elements, Tiles, ::testing::Values(Element::F32, Element::F16, Element::BF16), [](const auto &info) {
      return std::string(info.param == Element::F32 ? "f32" : info.param == Element::F16 ? "f16" : "bf16");
    });

TEST_P(Tiles, AllSizes) {
  for (int64_t rows = 1; rows <= 70; rows += rows < 18 ? 1 : 7)
    for (int64_t columns : {1, 15, 16, 17, 31, 32, 33, 48, 57, 64})
      for (int64_t depth : {1, 2, 31, 32, 33, 64, 95}) {
        Sides s(rows, depth, columns, GetParam());
        check(s, (rows + columns + depth) % 2 != 0);
      }
}

/// Tiles of nearly equal heights: each pair of them has the shapes of its own, larger and smaller ones.
TEST_P(Tiles, ManyPairsOfTiles) {
  for (int64_t rows = 71; rows <= 140; ++rows) {
    Sides s(rows, 33, 40, GetParam());
    check(s, true);
  }
}

/// Rows that consist of pieces, as those of convolutions.
TEST_P(Tiles, Pieces) {
  for (auto [pieces, run] :
       {std::array<int64_t, 2>{1, 70}, {3, 32}, {2, 64}, {7, 21}, {9, 3}, {5, 17}, {4, 48}, {3, 1}}) {
    Sides s(37, pieces * run, 40, GetParam());
    std::vector<const float *> starts;
    for (int64_t piece = 0; piece < pieces; ++piece)
      for (int64_t r = 0; r < s.rows; ++r)
        starts.push_back(s.a.data() + r * s.depth + piece * run - 5);
    s.how = {starts.data(), s.rows, 5, s.rows, pieces, run, partsOf(GetParam())};
    check(s, false);
  }
}

Magnitude bitsOf(float value) {
  Magnitude bits;
  value = std::abs(value);
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// The largest number of a row or column, wherever it stands, and whatever its sign; columns of zeros are none.
TEST_P(Tiles, Magnitudes) {
  for (int64_t at : {0, 31, 32, 99})
    for (float value : {-64.0f, 128.0f, -std::numeric_limits<float>::infinity()}) {
      Sides s(40, 100, 40, GetParam());
      s.a[static_cast<size_t>(7 * 100 + at)] = value, s.b[static_cast<size_t>(at * 48 + 39)] = value;
      s.split(tressel_emulated_tiles);
      EXPECT_EQ(s.ofRow(7), bitsOf(value));
      EXPECT_LT(s.ofRow(6), bitsOf(8));
      EXPECT_EQ(s.magnitudes.most, bitsOf(value));
      for (int64_t k = 0; k < 100; ++k)
        s.b[static_cast<size_t>(k * 48 + 17)] *= 0x1p-20f;
      s.split(tressel_emulated_tiles);
      EXPECT_LT(s.magnitudes.least, bitsOf(0x1p-15f));
      EXPECT_GT(s.magnitudes.least, 0u);
    }
}

/// Rows that are multiplied as f32 are beside rows on tiles, with and without what is there already.
TEST_P(Tiles, RowsOfTheirOwn) {
  for (bool add : {false, true})
    for (int64_t rows : {5, 16, 37}) {
      Sides s(rows, 70, 41, GetParam());
      for (int64_t row = 2; row < rows; row += row < 20 ? 3 : 1)
        for (int64_t k = 0; k < 70; ++k)
          s.a[static_cast<size_t>(row * 70 + k)] *= 0x1p-100f;
      check(s, add);
      ASSERT_FALSE(mayMultiply(s.ofRow(2), s.magnitudes));
    }
}

TEST(TilesOf, WhatTheyMayMultiply) {
  const float infinity = std::numeric_limits<float>::infinity();
  auto may = [](float row, float least, float most) { return mayMultiply(bitsOf(row), {bitsOf(least), bitsOf(most)}); };
  EXPECT_TRUE(may(1, 1, 1));
  EXPECT_TRUE(mayMultiply(0, {bitsOf(1e-38f), bitsOf(1e20f)})) << "nothing is lost of zeros";
  EXPECT_TRUE(mayMultiply(bitsOf(1e-40f), {})) << "of zeros alone neither";
  EXPECT_TRUE(may(1e-20f, 1e20f, 1e20f));
  EXPECT_FALSE(may(1e-36f, 1, 1)) << "its parts are below 2^-126";
  EXPECT_FALSE(may(1, 1e-36f, 1)) << "the column's are";
  EXPECT_FALSE(may(1e-20f, 1e-20f, 1)) << "its products are";
  EXPECT_FALSE(may(1, 1, infinity)) << "has no parts";
  EXPECT_FALSE(may(1e20f, 1, 1e20f)) << "sums could become infinite";
  EXPECT_FALSE(mayMultiply(0, {bitsOf(1), bitsOf(infinity)})) << "is NaN";
  EXPECT_FALSE(mayMultiply(bitsOf(infinity), {})) << "is NaN";
}

} // namespace
} // namespace tressel::kernels::test
