// Branches and loops of the flat schedule, run.
#include "ScheduleBuilder.h"
#include "TestImages.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Package.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <numeric>

using namespace tressel;
using namespace tressel::runtime;

namespace {

constexpr int64_t kN = 16;
const TensorType kRow = ScheduleBuilder::floats(kN), kOne = ScheduleBuilder::floats(1), kFlag{DType::boolean, Shape{}},
                 kIndex{i64, Shape{}};

std::vector<float> run(const ScheduleBuilder &b, std::vector<std::vector<float>> inputs, int calls = 1) {
  Context context(Executable::create(b.s, testImage("kernels"), nullptr));
  std::vector<float> out(size_t(b.s.outputs[0].type.shape.numElements()), -1);
  std::vector<const void *> in;
  for (const auto &values : inputs)
    in.push_back(values.data());
  void *outputs[] = {out.data()};
  for (int i = 0; i < calls; ++i)
    context.run(in, outputs);
  return out;
}

/// out = a < b ? 2 * a : a + b
ScheduleBuilder branch() {
  ScheduleBuilder b;
  const uint32_t a = b.input("a", kRow), c = b.input("b", kRow), out = b.output("out", kRow);
  const uint32_t flag = b.buffer(Space::Arena, b.arena(64), 0, kFlag);
  const uint32_t less = b.kernel("less"), twice = b.kernel("twice", kN, 1000), add = b.kernel("add", kN, 1000);
  b.s.kernels[twice].scratchBytes = 4;
  b.launch(less, {a, c}, {flag});
  const uint32_t first = b.bodies(2);
  b.branch(flag, first);
  b.into(first);
  b.launch(twice, {a}, {out});
  b.into(first + 1);
  b.launch(add, {a, c}, {out});
  return b;
}

/// h starts at zero; for each of the n rows of x: h = h + row, and y gets it. out = y, n rows of kN.
ScheduleBuilder runningSum(int64_t n) {
  ScheduleBuilder b;
  const TensorType rows{f32, Shape{n, kN}};
  const uint32_t x = b.input("x", rows), out = b.output("out", rows);
  const uint32_t h = b.buffer(Space::Arena, b.arena(64), 0, kRow);
  const uint32_t row = b.buffer(Space::Input, 0, 0, kRow);
  const uint32_t result = b.buffer(Space::Output, 0, 0, kRow);
  const uint32_t add = b.kernel("add", kN, 1000);
  (void)x, (void)out;
  b.fill(h, 0);
  const uint32_t body = b.bodies();
  b.loop(n, body, {{row, kRow.bytes()}, {result, kRow.bytes()}});
  b.into(body);
  b.launch(add, {h, row}, {result});
  b.copy(result, h);
  return b;
}

} // namespace

TEST(Bodies, BranchRunsOneOfTwo) {
  const std::vector<float> small(kN, 1), large(kN, 5);
  EXPECT_EQ(run(branch(), {small, large}), std::vector<float>(kN, 2));
  EXPECT_EQ(run(branch(), {large, small}), std::vector<float>(kN, 6));
}

TEST(Bodies, LoopMovesBuffers) {
  for (int64_t n : {0, 1, 2, 3, 50}) {
    std::vector<float> x(size_t(n * kN));
    std::iota(x.begin(), x.end(), 0.0f);
    std::vector<float> expected = x;
    for (size_t i = kN; i < expected.size(); ++i)
      expected[i] += expected[i - kN];
    EXPECT_EQ(run(runningSum(n), {x}, /*calls=*/2), expected) << n << " rows";
  }
}

TEST(Bodies, LoopCountsItsIterations) {
  ScheduleBuilder b;
  const uint32_t out = b.output("out", {f32, Shape{5, kN}});
  const uint32_t row = b.buffer(Space::Output, 0, 0, kRow), index = b.buffer(Space::Arena, b.arena(64), 0, kIndex);
  const uint32_t number = b.kernel("number", kN, 1000), body = b.bodies();
  (void)out;
  b.loop(5, body, {{row, kRow.bytes()}}, {}, 0, index);
  b.into(body);
  b.launch(number, {index}, {row});
  std::vector<float> expected(5 * kN);
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = float(i / kN);
  EXPECT_EQ(run(b, {}), expected);
}

TEST(Bodies, WhileRunsAsLongAsItsFlagSays) {
  // h = x; while (h[0] < limit[0]) h = h + h
  ScheduleBuilder b;
  const uint32_t x = b.input("x", kRow), limit = b.input("limit", kRow), out = b.output("out", kRow);
  const uint32_t arena = b.arena(192), flag = b.buffer(Space::Arena, arena, 0, kFlag);
  const uint32_t next = b.buffer(Space::Arena, arena, 128, kRow);
  const uint32_t less = b.kernel("less"), add = b.kernel("add", kN, 1000);
  b.copy(x, out);
  const uint32_t first = b.bodies(2);
  b.whileLoop(flag, first);
  b.into(first);
  b.launch(less, {out, limit}, {flag});
  b.into(first + 1);
  b.launch(add, {out, out}, {next});
  b.copy(next, out);
  EXPECT_EQ(run(b, {std::vector<float>(kN, 3), std::vector<float>(kN, 100)}), std::vector<float>(kN, 192));
  EXPECT_EQ(run(b, {std::vector<float>(kN, 3), std::vector<float>(kN, 3)}), std::vector<float>(kN, 3));
}

TEST(Bodies, LoopsNest) {
  // Of x[3][4][kN]: out[i][j] = x[i][0] + ... + x[i][j], through buffers that move with both loops.
  ScheduleBuilder b;
  const TensorType all{f32, Shape{3, 4, kN}};
  b.input("x", all), b.output("out", all);
  const uint32_t row = b.buffer(Space::Input, 0, 0, kRow), result = b.buffer(Space::Output, 0, 0, kRow);
  const uint32_t h = b.buffer(Space::Arena, b.arena(64), 0, kRow), add = b.kernel("add", kN, 1000);
  const uint32_t outer = b.bodies(), inner = b.bodies();
  b.loop(3, outer, {{row, 4 * kRow.bytes()}, {result, 4 * kRow.bytes()}});
  b.into(outer);
  b.fill(h, 0);
  b.loop(4, inner, {{row, kRow.bytes()}, {result, kRow.bytes()}});
  b.into(inner);
  b.launch(add, {h, row}, {result});
  b.copy(result, h);
  std::vector<float> x(3 * 4 * kN), expected;
  std::iota(x.begin(), x.end(), 0.0f);
  expected = x;
  for (size_t i = 0; i < x.size(); ++i)
    if (i / kN % 4)
      expected[i] += expected[i - kN];
  EXPECT_EQ(run(b, {x}), expected);
}

TEST(Bodies, FailureNamesItsLineAndLeavesTheContextUsable) {
  ScheduleBuilder b;
  const uint32_t table = b.input("table", ScheduleBuilder::floats(4)), out = b.output("out", {f32, Shape{3, 1}});
  b.input("index", {i32, Shape{3, 1}});
  const uint32_t one = b.buffer(Space::Input, 1, 0, {i32, Shape{1}}), result = b.buffer(Space::Output, 0, 0, kOne);
  const uint32_t gather = b.kernel("gather"), body = b.bodies();
  (void)out;
  b.loop(3, body, {{one, 4}, {result, 4}});
  b.into(body);
  b.launch(gather, {table, one}, {result});
  b.s.bodies[0].commands[0].loc = b.location("take", "model.cpp", 7);

  Context context(Executable::create(b.s, testImage("kernels"), nullptr));
  const float rows[] = {10, 11, 12, 13};
  int32_t index[] = {1, 9, 3};
  float results[3] = {};
  const void *inputs[] = {rows, index};
  void *outputs[] = {results};
  try {
    context.run(inputs, outputs);
    FAIL() << "nothing thrown";
  } catch (const RuntimeError &e) {
    EXPECT_NE(std::string(e.what()).find("model.cpp:7"), std::string::npos) << e.what();
    EXPECT_EQ(e.op(), "take");
  }
  index[1] = 2;
  context.run(inputs, outputs);
  EXPECT_EQ((std::vector<float>(results, results + 3)), (std::vector<float>{11, 12, 13}));
}

TEST(Bodies, TravelInPackages) {
  const std::string path = std::filesystem::path(testing::TempDir()) / "bodies.tsl";
  const ScheduleBuilder b = runningSum(4);
  const auto image = testImage("kernels");
  PackageFunction function{.name = "main", .schedule = &b.s};
  function.images.push_back({CpuLevel::Baseline, image});
  writePackage(path, {&function, 1}, {});
  Context context = Package::open(path).context();
  std::vector<float> x(4 * kN, 1), out(4 * kN);
  const void *inputs[] = {x.data()};
  void *outputs[] = {out.data()};
  context.run(inputs, outputs);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[4 * kN - 1], 4);
}
