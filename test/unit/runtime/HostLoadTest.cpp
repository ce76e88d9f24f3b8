// What is said of a machine that is slower than when it was calibrated.
#include "tressel/runtime/HostLoad.h"

#include "gtest/gtest.h"

#include <thread>
#include <vector>

using namespace tressel::runtime;

namespace {

DeviceModel calibratedAt(double seconds) {
  DeviceModel cpu;
  cpu.pieceSeconds = seconds;
  return cpu;
}

TEST(HostLoad, APieceOfWorkTakesTime) {
  const PieceTime one = timePiece(1), two = timePiece(2);
  for (const PieceTime &time : {one, two}) {
    EXPECT_GT(time.seconds, 1e-5);
    EXPECT_GT(time.share, 0);
    EXPECT_LE(time.share, 1);
  }
}

TEST(HostLoad, OtherWorkOnTheCoresIsSeen) {
  std::vector<std::jthread> others;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
    others.emplace_back([](const std::stop_token &stop) {
      while (!stop.stop_requested()) {
      }
    });
  for (int i = 0; i < 5; ++i) {
    const PieceTime busy = timePiece(2);
    EXPECT_LT(busy.share, 0.8);
    const auto load = describeLoad(calibratedAt(busy.seconds * busy.share), busy);
    ASSERT_TRUE(load);
    EXPECT_NE(load->find("of the cores"), std::string::npos) << *load;
  }
}

TEST(HostLoad, CalibrationOfABusyMachineIsTold) {
  const std::vector<PieceTime> quiet{{1e-3, 0.97}, {1e-3, 1}, {1e-3, 0.99}}, busy{{1e-3, 0.97}, {2e-3, 0.52}, {1e-3, 0.99}};
  EXPECT_FALSE(describeBusyCalibration(quiet));
  const auto told = describeBusyCalibration(busy);
  ASSERT_TRUE(told);
  EXPECT_NE(told->find("52% of the cores"), std::string::npos) << *told;
  EXPECT_NE(told->find("calibrate again"), std::string::npos) << *told;
}

TEST(HostLoad, AMachineAsItWasNeedsNoWord) {
  EXPECT_FALSE(describeLoad(calibratedAt(2e-3), {2.1e-3, 1}));
  EXPECT_FALSE(describeLoad(calibratedAt(2e-3), {1e-3, 1}));
}

TEST(HostLoad, ABusyMachineIsToldWithTheFactor) {
  const auto load = describeLoad(calibratedAt(2e-3), {4.6e-3, 0.48});
  ASSERT_TRUE(load);
  EXPECT_NE(load->find("2.3 times"), std::string::npos) << *load;
  EXPECT_NE(load->find("48% of the cores"), std::string::npos) << *load;
}

TEST(HostLoad, WithAllCoresItIsTheClockOrTheMemory) {
  const auto load = describeLoad(calibratedAt(2e-3), {3e-3, 0.99});
  ASSERT_TRUE(load);
  EXPECT_EQ(load->find("of the cores"), std::string::npos) << *load;
}

TEST(HostLoad, WithoutCalibrationNothingIsKnown) { EXPECT_FALSE(describeLoad(calibratedAt(0), {4e-3, 0.5})); }

} // namespace
