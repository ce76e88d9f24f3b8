// Plans of small programs against the best that there is, found by trying every order, and every placement where they
// are free.
#include "test/support/BestOrder.h"
#include "test/support/SmallProgram.h"

#include <gtest/gtest.h>

using namespace tressel::test;

namespace {

TEST(BestOrder, SmallOnesByHand) {
  constexpr int64_t high = 1000;
  EXPECT_EQ(bestEnd({}, high), 0);
  // One engine; two.
  EXPECT_EQ(bestEnd({{0, 3, {}}, {0, 4, {}}}, high), 7);
  EXPECT_EQ(bestEnd({{0, 3, {}}, {1, 4, {}}}, high), 4);
  // What others wait for goes first, though it stands last.
  EXPECT_EQ(bestEnd({{0, 5, {}}, {0, 2, {}}, {1, 6, {1}}}, high), 8);
  // The engine waits for what is to come rather than take what is there: jobs 10 long on engine 0, the one that a long
  // chain needs arrives at 1.
  EXPECT_EQ(bestEnd({{0, 10, {}}, {1, 1, {}}, {0, 2, {1}}, {1, 20, {2}}}, high), 23);
  // Nothing better than a bound.
  EXPECT_EQ(bestEnd({{0, 3, {}}, {0, 4, {}}}, 7), 7);
  EXPECT_EQ(bestEnd({{0, 3, {}}, {0, 4, {}}}, 6), 6);
  // Fisher and Thompson's 6 x 6 job shop (1963), whose best is known: 55.
  const int shop[6][6][2] = {
      {{2, 1}, {0, 3}, {1, 6}, {3, 7}, {5, 3}, {4, 6}}, {{1, 8}, {2, 5}, {4, 10}, {5, 10}, {0, 10}, {3, 4}},
      {{2, 5}, {3, 4}, {5, 8}, {0, 9}, {1, 1}, {4, 7}}, {{1, 5}, {0, 5}, {2, 5}, {3, 3}, {4, 8}, {5, 9}},
      {{2, 9}, {1, 3}, {4, 5}, {5, 4}, {0, 3}, {3, 1}}, {{1, 3}, {3, 3}, {5, 9}, {0, 10}, {4, 4}, {2, 1}}};
  std::vector<Job> jobs;
  for (const auto &row : shop)
    for (int k = 0; k < 6; ++k) {
      jobs.push_back({static_cast<uint32_t>(row[k][0]), row[k][1], {}});
      if (k)
        jobs.back().after.push_back(static_cast<uint32_t>(jobs.size() - 2));
    }
  EXPECT_EQ(bestEnd(jobs, high), 55);
  EXPECT_EQ(bestEnd(jobs, high, /*steps=*/5), std::nullopt);
}

/// The planner's times are by the clock of plans, the best by the search alone: a plan below the best would show that
/// one of them is wrong.
void check(const SmallPlans &plans, const char *what) {
  printf("%s: %s\n", what, plans.text().c_str());
  EXPECT_LE(plans.skipped, 5);
  EXPECT_GE(plans.ratios.front(), 1);
  EXPECT_LE(plans.at(0.5), 1.02);
  EXPECT_LE(plans.mean(), 1.1);
}
TEST(Optimality, OrdersOfSmallPrograms) { check(planManySmall(1, 500, 10, true), "placed by hand, up to 10 launches"); }
TEST(Optimality, PlacementsOfSmallPrograms) {
  check(planManySmall(1, 200, 7, false), "placed by the planner, up to 7 launches");
}

} // namespace
