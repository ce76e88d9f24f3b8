// A failing op that nobody waits for: whoever waits later is told op and line, the rest goes on, and what nobody ever
// asks for is printed when the program ends.
#include <tressel/tressel.h>

#include <cmath>
#include <gtest/gtest.h>

using namespace tressel;

namespace {

constexpr int64_t kLarge = 1 << 20; // queued, not run in the caller

/// An index outside: known only when the op runs.
Tensor fail(std::source_location where = std::source_location::current()) {
  Tensor index = arange(kLarge) + kLarge;
  return take(Arg(zeros({kLarge}), where), Arg(index, where));
}

void expectFailureAt(uint32_t line, const std::function<void()> &call) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const RuntimeError &e) {
    EXPECT_TRUE(e.op().starts_with("take")) << e.what(); // or the ops that it became one kernel with
    EXPECT_EQ(e.where().line, line) << e.what();
    EXPECT_NE(std::string(e.where().file).find("AsyncErrorTest.cpp"), std::string::npos) << e.what();
    EXPECT_NE(e.message().find("out of range"), std::string::npos) << e.what();
  }
}

TEST(AsyncError, IsToldToEachThatAsks) {
  const uint32_t line = __LINE__ + 1;
  Tensor bad = fail();
  Tensor dependent = exp(bad) + 1, unrelated = ones({kLarge}) + 1;
  expectFailureAt(line, [&] { bad.wait(); });
  expectFailureAt(line, [&] { bad.wait(); }); // and again
  expectFailureAt(line, [&] { dependent.to_vector<float>(); });
  EXPECT_EQ(unrelated.to_vector<float>()[kLarge - 1], 2);
  wait_all(); // seen by now
  EXPECT_EQ((unrelated + 1).to_vector<float>()[0], 3);
}

TEST(AsyncError, WaitAllFindsWhatNobodyAskedFor) {
  const uint32_t line = __LINE__ + 1;
  Tensor bad = fail();
  expectFailureAt(line, [] { wait_all(); });
  wait_all();
}

TEST(AsyncError, ComesOutOfCompiledPrograms) {
  const uint32_t line = __LINE__ + 1;
  auto f = jit([](Tensor x, Tensor i) { return exp(take(x, i)) + 1; });
  Tensor x = ones({kLarge}), bad = f(x, arange(kLarge) + kLarge), good = f(x, arange(kLarge));
  expectFailureAt(line, [&] { (bad * 2).wait(); });
  EXPECT_NEAR(good.to_vector<float>()[7], std::exp(1.0f) + 1, 1e-5);
  EXPECT_NEAR(f(x, arange(kLarge)).to_vector<float>()[7], std::exp(1.0f) + 1, 1e-5); // the program goes on
}

TEST(AsyncErrorDeathTest, UnobservedIsOneLineAtExit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        { Tensor bad = fail(); }
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "^tressel: a failure that nobody waited for: [^\n]*AsyncErrorTest.cpp:[0-9]+: take: [^\n]*out of range[^\n]*\n$");
}

} // namespace
