// The sides that a minimum cut gives, against all sides tried.
#include "passes/graph/MinCut.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

using namespace tressel::passes;

namespace {

struct Pay {
  uint32_t a, b;
  int64_t cost;
};

TEST(MinCut, IsTheCheapestOfAll) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const uint32_t inner = 1 + random() % 8;
    MinCut cut;
    for (uint32_t i = 0; i < inner; ++i)
      cut.add();
    std::vector<Pay> pays;
    for (uint32_t i = 0; i < inner * 3; ++i) {
      pays.push_back({static_cast<uint32_t>(random() % (inner + 2)), static_cast<uint32_t>(random() % (inner + 2)),
                      static_cast<int64_t>(random() % 10)});
      if (pays.back().a == MinCut::second || pays.back().b == MinCut::first || pays.back().a == pays.back().b)
        pays.pop_back();
      else
        cut.pay(pays.back().a, pays.back().b, pays.back().cost);
    }
    cut.solve();
    // A set of bits: who is on the second side.
    auto costOf = [&](uint32_t seconds) {
      auto isSecond = [&](uint32_t node) { return node >= 2 ? (seconds >> (node - 2) & 1) != 0 : node == MinCut::second; };
      int64_t cost = 0;
      for (const Pay &pay : pays)
        if (!isSecond(pay.a) && isSecond(pay.b))
          cost += pay.cost;
      return cost;
    };
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < inner; ++i)
      chosen |= uint32_t(cut.isSecond(i + 2)) << i;
    for (uint32_t other = 0; other < 1u << inner; ++other) {
      ASSERT_GE(costOf(other), costOf(chosen)) << "round " << round;
      if (costOf(other) == costOf(chosen))
        ASSERT_GE(std::popcount(other), std::popcount(chosen)) << "round " << round;
    }
  }
}

TEST(MinCut, DeepNetworksNeedNoStack) {
  constexpr uint32_t depth = 100'000;
  MinCut cut;
  MinCut::Node before = MinCut::first;
  for (uint32_t i = 0; i < depth; ++i) {
    const MinCut::Node node = cut.add();
    cut.pay(before, node, i == depth / 2 ? 1 : 2);
    before = node;
  }
  cut.pay(before, MinCut::second, MinCut::never);
  cut.solve();
  EXPECT_FALSE(cut.isSecond(2 + depth / 2 - 1));
  EXPECT_TRUE(cut.isSecond(2 + depth / 2));
}

} // namespace
