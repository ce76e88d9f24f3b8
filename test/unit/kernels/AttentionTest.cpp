// Attention against plain loops.
#include "Kernels.h"
#include "runtime/kernels/AttentionKernel.h"
#include "runtime/kernels/AttentionParams.h"
#include "tressel/runtime/Error.h"

#include <limits>

namespace tressel::kernels::test {
namespace {

class Attention : public ::testing::TestWithParam<Level> {};
INSTANTIATE_TEST_SUITE_P(Levels, Attention, ::testing::ValuesIn(levels()),
                         [](const auto &info) { return nameOf(info.param); });

runtime::LoadedKernel load(const AttentionParams &p, const Level &level, Size scratchBytes) {
  runtime::KernelDesc desc;
  desc.symbol = "test", desc.params = p.text(), desc.numInputs = p.mask < 0 ? 3 : 4, desc.scratchBytes = scratchBytes;
  return makeAttention(desc, Fields::parse(desc.params), level);
}

void check(const AttentionParams &symbolic, const Level &level, const std::vector<int64_t> &scalars = {}, float factor = 1,
           float firstKey = 0) {
  const AttentionSizes<int64_t> p = symbolic.at(scalars.data());
  auto q = randomValues(p.heads * p.queries * p.size, 1), k = randomValues(p.heads / p.shared * p.keys * p.size, 2),
       v = randomValues(p.heads / p.shared * p.keys * p.width, 3);
  for (float &x : q)
    x *= factor;
  k[0] += firstKey;
  Memory out(p.heads * p.queries * p.width * 4);
  const int64_t maskFloats = p.mask < 0 ? 0 : p.maskHeads * (p.maskRow ? p.queries * p.maskRow : p.keys);
  const auto added = randomValues(maskFloats, 4);
  Memory shown(maskFloats);
  for (int64_t i = 0; i < maskFloats; ++i)
    static_cast<uint8_t *>(shown.get())[i] = added[static_cast<size_t>(i)] < 0;
  std::vector<void *> buffers{q.data(), k.data(), v.data(), out.get()};
  if (p.mask >= 0)
    buffers.insert(buffers.begin() + 3, p.maskHides ? shown.get() : const_cast<float *>(added.data()));
  dim::Values values;
  for (size_t i = 0; i < symbolic.symbols.size(); ++i)
    values.bind(symbolic.symbols[i], scalars[i]);
  const int64_t scratch = dim::evaluate(symbolic.scratchBytes(), values);
  run(load(symbolic, level, scratch), buffers, p.units(), 1, scratch, scalars);
  for (int64_t h = 0; h < p.heads; ++h)
    for (int64_t i = 0; i < p.queries; ++i) {
      const int64_t group = h / p.shared, visible = p.causal ? std::min(p.keys, i + 1) : p.keys;
      std::vector<double> weights;
      double most = -std::numeric_limits<double>::infinity(), total = 0;
      for (int64_t j = 0; j < visible; ++j) {
        double score = 0;
        for (int64_t d = 0; d < p.size; ++d)
          score += double(q[(h * p.queries + i) * p.size + d]) * k[(group * p.keys + j) * p.size + d];
        score *= p.scale;
        if (p.mask >= 0) {
          const float x = added[static_cast<size_t>(h / p.maskShared % p.maskHeads * (p.maskRow ? p.queries * p.maskRow : p.keys) +
                                                    i * p.maskRow + j)];
          score = !p.maskHides ? score + x : x < 0 ? score : -std::numeric_limits<double>::infinity();
        }
        weights.push_back(score);
        most = weights.back() > most || std::isnan(weights.back()) ? weights.back() : most;
      }
      for (double &w : weights)
        total += w = std::exp(w - most);
      for (int64_t e = 0; e < p.width; ++e) {
        double want = 0;
        for (int64_t j = 0; j < visible; ++j)
          want += weights[j] / total * v[(group * p.keys + j) * p.width + e];
        const float got = out.floats()[(h * p.queries + i) * p.width + e];
        if (std::isnan(want))
          ASSERT_TRUE(std::isnan(got)) << symbolic.text() << " at " << h << " " << i << " " << e;
        else
          ASSERT_NEAR(got, want, 3e-6 * factor) << symbolic.text() << " at " << h << " " << i << " " << e;
      }
    }
}

AttentionParams some(int64_t heads, int64_t queries, int64_t keys, int64_t size, int64_t width) {
  AttentionParams p;
  p.heads = heads, p.queries = p.rows = queries, p.keys = keys, p.size = size, p.width = width;
  p.scale = 1 / std::sqrt(double(size));
  return p;
}

TEST_P(Attention, AllNumbersOfQueriesAndKeys) {
  for (int64_t queries : {1, 2, 5, 8, 9, 20, 48, 49, 100})
    for (int64_t keys : {1, 2, 3, 15, 16, 17, 33, 70})
      for (bool causal : {false, true}) {
        AttentionParams p = some(2, queries, keys, 12, 20);
        p.causal = causal;
        check(p, GetParam());
      }
}

TEST_P(Attention, OfManyKeys) { check(some(1, 50, 1500, 64, 64), GetParam()); }

TEST_P(Attention, GroupsAndBlocks) {
  AttentionParams p = some(6, 70, 40, 8, 8);
  p.shared = 3, p.rows = 32;
  check(p, GetParam());
  p.causal = true;
  check(p, GetParam());
}

TEST_P(Attention, Masks) {
  for (bool hides : {false, true})
    for (auto [heads, shared] : {std::pair<int64_t, int64_t>{1, 1}, {6, 1}, {2, 3}, {3, 1}})
      for (int64_t keys : {7, 50})
        for (int64_t row : {int64_t(0), keys})
          for (bool causal : {false, true}) {
            AttentionParams p = some(6, 70, keys, 8, 8);
            p.rows = 32, p.causal = causal;
            p.mask = 3, p.maskHides = hides, p.maskHeads = heads, p.maskShared = shared, p.maskRow = row;
            check(p, GetParam());
            p.queries = p.rows = 5;
            check(p, GetParam());
          }
}

TEST_P(Attention, ScoresFarApart) { // beyond what an exponential can hold
  check(some(1, 20, 30, 16, 16), GetParam(), {}, 64);
}

TEST_P(Attention, InfinitiesAndNaN) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (int64_t queries : {3, 20})
    for (float bad : {-infinity, infinity, std::numeric_limits<float>::quiet_NaN()})
      check(some(1, queries, 21, 4, 4), GetParam(), {}, 1, bad);
}

TEST_P(Attention, SymbolicSizes) {
  const Size s = dim::symbol("s", 0), t = dim::symbol("t"), b = dim::symbol("b");
  AttentionParams p = some(1, 1, 1, 16, 16);
  p.heads = b * 3, p.queries = p.rows = s, p.keys = t, p.symbols = {b, s, t};
  for (std::vector<int64_t> sizes : {std::vector<int64_t>{1, 1, 1}, {2, 0, 4}, {2, 64, 64}, {1, 9, 130}})
    check(p, GetParam(), sizes);
}

TEST(AttentionParams, DamagedDescriptionsAreRefused) {
  auto refused = [&](auto change) {
    AttentionParams p = some(2, 3, 4, 5, 6);
    const int64_t scratch = p.scratchBytes().number();
    change(p);
    EXPECT_THROW(load(p, runtime::CpuLevel::Baseline, scratch), InputError) << p.text();
  };
  refused([](AttentionParams &p) { p.q = 3; });
  refused([](AttentionParams &p) { p.v = -1; });
  refused([](AttentionParams &p) { p.keys = 0; });
  refused([](AttentionParams &p) { p.shared = 0; });
  refused([](AttentionParams &p) { p.rows = 0; });
  refused([](AttentionParams &p) { p.heads = -2; });
  refused([](AttentionParams &p) { p.keys = 1 << 20; });
  refused([](AttentionParams &p) { p.maskHeads = 0; });
  refused([](AttentionParams &p) { p.maskShared = -5; });
}

} // namespace
} // namespace tressel::kernels::test
