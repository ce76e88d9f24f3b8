// Recording what a program does.
#include "frontend/eager/EagerTimeline.h"

#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

using namespace tressel;
using runtime::TaskRecord;
using Kind = runtime::TaskRecord::Kind;

namespace {

constexpr SourceLoc at(uint32_t line) { return {"train.cpp", line}; }

/// A product and what reads it on another lane, a sum in the caller, and a wait that nobody wrote.
std::vector<TaskRecord> someRecords() {
  TaskRecord product{.kind = Kind::Lane, .lane = 0, .thread = 2, .caller = 1, .op = "matmul", .where = at(10)};
  product.sequence = 7, product.submitNs = 1000, product.beginNs = 2000, product.endNs = 9000;
  TaskRecord tail{.kind = Kind::Helped, .lane = 1, .thread = 1, .caller = 1, .op = "add", .where = at(11)};
  tail.sequence = 8, tail.submitNs = 1500, tail.beginNs = 9500, tail.endNs = 9900, tail.after = {7};
  TaskRecord tiny{.kind = Kind::Inline, .thread = 1, .caller = 1, .op = "sum", .where = at(12)};
  tiny.submitNs = 1600, tiny.beginNs = 1600, tiny.endNs = 1700;
  TaskRecord wait{.kind = Kind::Wait, .hidden = true, .thread = 1, .op = "item", .where = at(13)};
  wait.sequence = 8, wait.beginNs = 1800, wait.endNs = 10000;
  return {product, tail, tiny, wait};
}

const runtime::Span *find(const runtime::Timeline &t, const std::string &name) {
  auto found = std::ranges::find(t.spans, name, &runtime::Span::name);
  return found == t.spans.end() ? nullptr : &*found;
}

TEST(Profile, RecordsBecomeRowsOfThreadsAndLanes) {
  const auto records = someRecords();
  const auto [names, t] = detail::timelineOf(records, "train");
  ASSERT_EQ(t.resources.size(), 3u);
  EXPECT_EQ(t.resources[0].name, "frontend thread");
  EXPECT_EQ(t.resources[1].name, "lane 0");
  EXPECT_EQ(t.resources[2].name, "lane 1");
  ASSERT_EQ(t.spans.size(), 6u) << "four records, and a mark for each of the two that were handed over";
  EXPECT_EQ(t.end, 9'000'000);

  const runtime::Span *product = find(t, "matmul"), *tail = find(t, "add, run by a thread that waited");
  ASSERT_TRUE(product && tail);
  EXPECT_EQ(product->resource, 1u);
  EXPECT_EQ(product->begin, 1'000'000);
  EXPECT_EQ(product->end, 8'000'000);
  EXPECT_EQ(names.locations[product->loc].file, "train.cpp");
  EXPECT_EQ(names.locations[product->loc].line, 10u);
  EXPECT_EQ(tail->resource, 2u);
  std::set<std::string> before;
  for (uint32_t i : tail->after)
    before.insert(t.spans[i].name);
  EXPECT_EQ(before, (std::set<std::string>{"matmul", "call of add"}));
  const runtime::Span *wait = find(t, "hidden wait: item");
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->kind, runtime::SpanKind::HiddenWait);
  EXPECT_EQ(wait->resource, 0u);
}

TEST(Profile, TheReportAddsUp) {
  auto records = someRecords();
  records.push_back(records.back());
  records.back().beginNs = 10000, records.back().endNs = 11000;
  const ProfileReport report = detail::reportOf(records);
  EXPECT_EQ(report.inlined, 1u);
  EXPECT_EQ(report.queued, 2u);
  EXPECT_EQ(report.helped, 1u);
  EXPECT_EQ(report.failed, 0u);
  EXPECT_DOUBLE_EQ(report.seconds, 10e-6);
  EXPECT_DOUBLE_EQ(report.busy_seconds, 7.5e-6);
  EXPECT_DOUBLE_EQ(report.waiting_seconds, 9.2e-6);
  ASSERT_EQ(report.waits.size(), 1u);
  EXPECT_EQ(report.waits[0].what, "item");
  EXPECT_EQ(report.waits[0].where, "train.cpp:13");
  EXPECT_EQ(report.waits[0].times, 2u);
  EXPECT_TRUE(report.waits[0].hidden);
}

TEST(Profile, WhatWasHandedOverBeforeIsNotKnown) {
  auto records = someRecords();
  records.erase(records.begin()); // the product
  const auto [names, t] = detail::timelineOf(records, "train");
  const runtime::Span *tail = find(t, "add, run by a thread that waited");
  ASSERT_TRUE(tail);
  EXPECT_EQ(tail->after.size(), 1u);
}

TEST(Profile, NothingHappened) {
  profile_start();
  const ProfileReport report = profile_stop();
  EXPECT_EQ(report.inlined + report.queued, 0u);
  EXPECT_EQ(report.seconds, 0);
  EXPECT_TRUE(report.complete);
}

TEST(Profile, OpsAndWaitsOfAProgram) {
  const Tensor a = full({300, 300}, 0.01), b = full({300, 300}, 0.01);
  matmul(a, b).wait(); // its kernel is made
  profile_start();
  Tensor c = matmul(a, b), d = matmul(b, a);
  const uint32_t line = __LINE__ + 1;
  const float corner = slice(c + d, {0, 0}, {1, 1}).item<float>();
  wait_all();
  const auto path = std::filesystem::path(testing::TempDir()) / "profile-test.svg";
  const ProfileReport report = profile_stop(path.string());
  EXPECT_NEAR(corner, 0.06f, 1e-5f);
  EXPECT_GE(report.inlined + report.queued, 4u); // two products, a sum, a slice
  EXPECT_GT(report.busy_seconds, 0);
  EXPECT_GT(report.seconds, 0);
  EXPECT_NE(report.drawing.find("frontend thread"), std::string::npos) << report.drawing;
  for (const ProfiledWait &wait : report.waits)
    if (wait.hidden) {
      EXPECT_TRUE(wait.where.ends_with("ProfileTest.cpp:" + std::to_string(line))) << wait.what << " " << wait.where;
    }
  std::stringstream file;
  file << std::ifstream(path).rdbuf();
  EXPECT_NE(file.str().find("matmul"), std::string::npos);
  EXPECT_NE(file.str().find("</svg>"), std::string::npos);
  std::filesystem::remove(path);
  std::ostringstream text;
  text << report;
  EXPECT_NE(text.str().find("ops ran where they were called"), std::string::npos);
}

TEST(Profile, EachThreadHasARow) {
  const Tensor x = ones({4});
  (x + 1.0f).wait();
  profile_start();
  Tensor y = x + 1.0f;
  std::thread([&] { (x + 1.0f).wait(); }).join();
  const ProfileReport report = profile_stop();
  EXPECT_EQ(y.to_vector<float>()[3], 2);
  EXPECT_NE(report.drawing.find("frontend thread 2"), std::string::npos) << report.drawing;
}

TEST(Profile, OnlySoManyAreKept) {
  const Tensor x = ones({4});
  (x + 1.0f).wait();
  profile_start(10);
  for (int i = 0; i < 100; ++i)
    x + 1.0f;
  const ProfileReport report = profile_stop();
  EXPECT_FALSE(report.complete);
  EXPECT_LE(report.inlined + report.queued, 10u);
}

TEST(Profile, WrongUseIsAnError) {
  EXPECT_THROW(profile_stop(), Error);
  profile_start();
  EXPECT_THROW(profile_start(), Error);
  try {
    profile_stop("timeline.png");
    FAIL();
  } catch (const Error &e) {
    EXPECT_NE(std::string(e.what()).find(".svg, .html"), std::string::npos) << e.what();
  }
  EXPECT_NO_THROW(profile_stop()) << "the recording went on";
}

// In a process of its own: the environment is read before main.
TEST(Profile, TheEnvironmentRecordsAProgram) {
  const auto path = std::filesystem::path(testing::TempDir()) / "whole-program.svg";
  auto run = [&](const std::string &file) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command = "TRESSEL_PROFILE='" + file + "' '" + self + "' --gtest_filter='Profile.SomeOps' 2>&1";
    std::string out;
    if (FILE *pipe = popen(command.c_str(), "r")) {
      for (int c; (c = std::fgetc(pipe)) != EOF;)
        out += static_cast<char>(c);
      EXPECT_EQ(pclose(pipe), 0) << out;
    }
    return out;
  };
  const std::string out = run(path.string());
  EXPECT_NE(out.find("tressel: recorded in " + path.string()), std::string::npos) << out;
  EXPECT_NE(out.find("hidden wait: "), std::string::npos) << out;
  std::stringstream file;
  file << std::ifstream(path).rdbuf();
  EXPECT_NE(file.str().find("matmul"), std::string::npos);
  std::filesystem::remove(path);
  EXPECT_NE(run("steps.png").find("TRESSEL_PROFILE is 'steps.png', which is no name of a .svg"), std::string::npos);
}
TEST(Profile, SomeOps) {
  const Tensor a = full({400, 400}, 0.5);
  EXPECT_EQ(slice(matmul(matmul(a, a), a), {0, 0}, {1, 1}).item<float>(), 20000);
}

} // namespace
