// What is said of a machine that is slower than when it was calibrated.
#include "tressel/runtime/HostLoad.h"

#include "gtest/gtest.h"

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
