// Costs that are corrected by what first calls took.
#include "tressel/runtime/Corrections.h"
#include "tressel/runtime/File.h"

#include "gtest/gtest.h"

#include <filesystem>
#include <unistd.h>

using namespace tressel;
using namespace tressel::runtime;

namespace {

class CorrectionsTest : public testing::Test {
protected:
  CorrectionsTest() : path((std::filesystem::temp_directory_path() / ("tressel-corrections-" + std::to_string(::getpid()) + ".json")).string()) {}
  ~CorrectionsTest() override { std::filesystem::remove(path); }
  const std::string path;
};

const KernelCost kCost{"kernels/convolution/v4", 61e-6};

TEST_F(CorrectionsTest, AreKeptForTheNextProcess) {
  Corrections first(path);
  EXPECT_EQ(first.apply(kCost), kCost);
  EXPECT_TRUE(first.note(kCost, 12));
  first.save();
  Corrections second(path);
  const KernelCost corrected = second.apply(kCost);
  EXPECT_DOUBLE_EQ(corrected.seconds, 12 * kCost.seconds);
  EXPECT_TRUE(second.isCorrected(corrected));
  EXPECT_FALSE(second.isCorrected(kCost));
  EXPECT_EQ(second.apply({"kernels/convolution/v4", 62e-6}).seconds, 62e-6) << "another shape";
  EXPECT_EQ(second.apply({"kernels/convolution/v3", 61e-6}).seconds, 61e-6) << "other instructions";
}

TEST_F(CorrectionsTest, OfCorrectedCostsAddUp) {
  Corrections all(path);
  all.note(kCost, 12);
  const KernelCost corrected = all.apply(kCost);
  EXPECT_FALSE(all.note(corrected, 1.05)) << "noise";
  EXPECT_TRUE(all.note(corrected, 0.5));
  EXPECT_DOUBLE_EQ(all.apply(kCost).seconds, 6 * kCost.seconds);
  EXPECT_EQ(all.size(), 1u);
}

TEST_F(CorrectionsTest, AreBounded) {
  Corrections all(path);
  for (size_t i = 0; i < Corrections::kMost + 10; ++i)
    all.note({"kind", 1e-6 * static_cast<double>(i + 1)}, 2);
  EXPECT_EQ(all.size(), Corrections::kMost);
  EXPECT_EQ(all.apply({"kind", 1e-6}).seconds, 1e-6) << "the oldest went";
}

TEST_F(CorrectionsTest, OfADamagedFileAreNone) {
  const std::string text = "{\"corrections\": [{\"kind\": 3";
  writeFile(path, std::as_bytes(std::span(text)));
  EXPECT_EQ(Corrections(path).size(), 0u);
}

/// A program of launches that are predicted to take 10 us each.
Schedule programOf(size_t launches) {
  Schedule s;
  s.locations.push_back({"conv", "model.cpp", 7});
  for (size_t i = 0; i < launches; ++i) {
    KernelDesc kernel;
    kernel.symbol = "k" + std::to_string(i), kernel.provider = "generated", kernel.bytes = 64;
    kernel.costs = {{"kind" + std::to_string(i), 10e-6}};
    s.kernels.push_back(kernel);
    s.step.commands.push_back({.kind = CommandKind::Launch, .kernel = static_cast<uint32_t>(i)});
  }
  return s;
}
DeviceModel oneThread() {
  DeviceModel cpu;
  cpu.name = "cpu", cpu.flopsPerSecond[f32] = 1e11, cpu.bytesPerSecond = 1e10, cpu.speed = 1;
  return cpu;
}
Profile profileOf(const std::vector<int64_t> &nanoseconds) {
  Profile profile;
  for (int64_t ns : nanoseconds)
    profile.commands.push_back({0, ns});
  return profile;
}

TEST_F(CorrectionsTest, FirstCallsNoteWhatContradicts) {
  const Schedule s = programOf(5);
  FirstCalls calls(s);
  Corrections all(path);
  for (int i = 0; i < FirstCalls::kSkipped; ++i)
    calls.add(profileOf({900000, 900000, 900000, 900000, 900000}), oneThread(), all); // memory is touched
  for (int i = 0; i < FirstCalls::kCalls; ++i) {
    EXPECT_TRUE(calls.isOpen());
    calls.add(profileOf({10000, 10500, 120000, 9800, 10100}), oneThread(), all);
  }
  EXPECT_FALSE(calls.isOpen());
  EXPECT_EQ(all.size(), 1u);
  EXPECT_NEAR(all.apply({"kind2", 10e-6}).seconds, 120e-6, 1.5e-6);
  ASSERT_EQ(calls.findings().size(), 1u);
  EXPECT_EQ(calls.findings()[0].where.line, 7u);
  EXPECT_NE(calls.findings()[0].text.find("took 120 us"), std::string::npos) << calls.findings()[0].text;
  EXPECT_EQ(calls.findings()[0].text.find("would"), std::string::npos) << "no other provider bid";
}

TEST_F(CorrectionsTest, FindingsSayWhatTheNextCompilationWouldChoose) {
  for (const auto &[over, choice] : {std::pair{50e-6, "and would choose onednn"}, std::pair{500e-6, "and would keep generated"}}) {
    Schedule s = programOf(5);
    s.kernels[2].alternative = {"onednn", over};
    FirstCalls calls(s);
    Corrections none(path + choice);
    for (int i = 0; i < FirstCalls::kSkipped + FirstCalls::kCalls; ++i)
      calls.add(profileOf({10000, 10500, 120000, 9800, 10100}), oneThread(), none);
    std::filesystem::remove(path + choice);
    ASSERT_EQ(calls.findings().size(), 1u);
    EXPECT_TRUE(calls.findings()[0].text.ends_with(choice)) << calls.findings()[0].text;
  }
}

TEST_F(CorrectionsTest, BusyMachinesCorrectNothing) {
  const Schedule s = programOf(5);
  FirstCalls calls(s);
  Corrections all(path);
  for (int i = 0; i < FirstCalls::kSkipped + FirstCalls::kCalls; ++i) // everything takes twice as long
    calls.add(profileOf({20000, 20000, 20500, 20000, 19800}), oneThread(), all);
  EXPECT_EQ(all.size(), 0u);
}

TEST_F(CorrectionsTest, UnsteadyKernelsCorrectNothing) {
  const Schedule s = programOf(5);
  FirstCalls calls(s);
  Corrections all(path);
  for (int i = 0; i < FirstCalls::kSkipped + FirstCalls::kCalls; ++i)
    calls.add(profileOf({10000, 10000, i % 2 ? 30000 : 90000, 10000, 10000}), oneThread(), all);
  EXPECT_EQ(all.size(), 0u);
}

} // namespace
