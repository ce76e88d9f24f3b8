// Costs that are corrected by what first calls took.
#include "tressel/runtime/Corrections.h"
#include "tressel/runtime/File.h"

#include "gtest/gtest.h"

#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

using namespace tressel;
using namespace tressel::runtime;

namespace {

class CorrectionsTest : public testing::Test {
protected:
  CorrectionsTest() : path((std::filesystem::temp_directory_path() / ("tressel-corrections-" + std::to_string(::getpid()) + ".json")).string()) {}
  ~CorrectionsTest() override {
    for (const char *end : {"", ".lock"})
      std::filesystem::remove(path + end);
  }
  const std::string path;
};

const KernelCost kCost{"builtin/convolution/v4", 61e-6};

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
  EXPECT_EQ(second.apply({"builtin/convolution/v4", 62e-6}).seconds, 62e-6) << "another shape";
  EXPECT_EQ(second.apply({"builtin/convolution/v3", 61e-6}).seconds, 61e-6) << "other instructions";
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

TEST_F(CorrectionsTest, AreWithinLimits) {
  Corrections all(path);
  EXPECT_EQ(all.note(kCost, 1e6), 50);
  const KernelCost corrected = all.apply(kCost);
  EXPECT_FALSE(all.note(corrected, 3)) << "it counts no more than that already";
  EXPECT_EQ(all.apply(kCost), corrected);
}

const KernelCost kOther{"builtin/product/v4", 9e-6}, kThird{"builtin/product/v4", 7e-6};

TEST_F(CorrectionsTest, OfSeveralProcessesAreAllKept) {
  Corrections one(path), two(path);
  one.note(kCost, 2);
  one.note(kOther, 2);
  two.note(kOther, 3);
  two.note(kThird, 4);
  one.save();
  two.save();
  const std::string names[] = {"read later", "that saved last"};
  Corrections later(path);
  for (Corrections *all : {&later, &two}) {
    const std::string &which = names[all == &two];
    EXPECT_EQ(all->size(), 3u) << which;
    EXPECT_DOUBLE_EQ(all->apply(kCost).seconds, 2 * kCost.seconds) << which;
    EXPECT_DOUBLE_EQ(all->apply(kOther).seconds, 3 * kOther.seconds) << which;
    EXPECT_DOUBLE_EQ(all->apply(kThird).seconds, 4 * kThird.seconds) << which;
  }
}

TEST_F(CorrectionsTest, OfSeveralProcessesAreAllKeptAtTheSameTime) {
  std::vector<std::jthread> processes;
  for (int p = 0; p < 8; ++p)
    processes.emplace_back([&, p] {
      Corrections all(path);
      for (int i = 0; i < 10; ++i) {
        all.note({"kind" + std::to_string(p), 1e-6 * (i + 1)}, 2);
        all.save();
      }
    });
  processes.clear();
  EXPECT_EQ(Corrections(path).size(), 80u);
}

TEST_F(CorrectionsTest, ThatAreRemovedStayGone) {
  Corrections one(path);
  one.note(kCost, 2);
  one.save();
  std::filesystem::remove(path);
  one.note(kOther, 2);
  one.save();
  EXPECT_EQ(one.size(), 1u);
  EXPECT_EQ(one.apply(kCost), kCost);
  EXPECT_EQ(Corrections(path).size(), 1u);
  one.forget();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(one.apply(kOther), kOther);
}

TEST_F(CorrectionsTest, AreNotWaitedFor) {
  const int fd = ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); // by another process that was stopped
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  Corrections all(path);
  all.note(kCost, 2);
  all.save();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(all.size(), 1u);
  ::close(fd);
  all.save();
  EXPECT_EQ(Corrections(path).size(), 1u) << "the next time";
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
  EXPECT_TRUE(calls.findings()[0].text.ends_with("counts 12 times as much for kind2")) << calls.findings()[0].text;
  EXPECT_EQ(calls.findings()[0].text.find("would"), std::string::npos) << "no other provider bid";
}

TEST_F(CorrectionsTest, FindingsSayWhatTheNextCompilationWouldChoose) {
  for (const auto &[over, choice] : {std::pair{50e-6, "and would choose onednn"}, std::pair{500e-6, "and would keep generated"}}) {
    Schedule s = programOf(5);
    s.kernels[2].runnerUp = {"onednn", over};
    FirstCalls calls(s);
    Corrections none(path + choice);
    for (int i = 0; i < FirstCalls::kSkipped + FirstCalls::kCalls; ++i)
      calls.add(profileOf({10000, 10500, 120000, 9800, 10100}), oneThread(), none);
    for (const char *end : {"", ".lock"})
      std::filesystem::remove(path + choice + end);
    ASSERT_EQ(calls.findings().size(), 1u);
    EXPECT_TRUE(calls.findings()[0].text.ends_with(choice)) << calls.findings()[0].text;
  }
}

/// Times of a program whose other kernels take what is typical: (ns of the third, ns of the others), and what its cost is counted after them.
TEST_F(CorrectionsTest, ContradictionsAreNextToOtherKernels) {
  struct Case {
    int64_t third, others;
    double factor;
  };
  for (const Case &c : {Case{14000, 12500, 1},   // longer than predicted, but so are the others
                        {15500, 12500, 1},       // by half, of which most is the machine
                        {20000, 12500, 1.6},     // what is left of it is the kernel's
                        {9000, 12500, 1},        // shorter, next to the others by 0.72
                        {6000, 12500, 0.48}, {13000, 8000, 1.6}, {5000, 8000, 0.625}, {5500, 8000, 1}}) {
    const std::string file = path + std::to_string(c.third);
    const Schedule s = programOf(5);
    FirstCalls calls(s);
    Corrections all(file);
    for (int i = 0; i < FirstCalls::kSkipped + FirstCalls::kCalls; ++i)
      calls.add(profileOf({c.others, c.others, c.third, c.others, c.others}), oneThread(), all);
    for (const char *end : {"", ".lock"})
      std::filesystem::remove(file + end);
    const double factor = all.apply({"kind2", 10e-6}).seconds / 10e-6;
    EXPECT_NEAR(factor, c.factor, 0.03) << c.third << " ns beside " << c.others;
    EXPECT_EQ(all.size(), c.factor == 1 ? 0u : 1u) << c.third << " ns beside " << c.others;
    EXPECT_EQ(calls.findings().size(), all.size());
  }
}

TEST_F(CorrectionsTest, BusyMachinesCorrectNothing) {
  const Schedule s = programOf(5);
  FirstCalls calls(s);
  Corrections all(path);
  for (int i = 0; i < FirstCalls::kSkipped + FirstCalls::kCalls; ++i) // most of it takes 1.4 times as long
    calls.add(profileOf({14000, 14000, 120000, 10000, 14000}), oneThread(), all);
  EXPECT_EQ(all.size(), 0u);
  EXPECT_TRUE(calls.findings().empty());
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
