// What follows a library's root on the same units: other buffers, other units than a kernel of its own would have.
#include "Harness.h"

namespace tressel::codegen::test {
namespace {

class Epilogue : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Epilogue, ::testing::ValuesIn(levels()), [](const auto &info) { return info.param; });

/// y = max(y + bias, 0) in place and z = y > 0, over 7 x 5 x n elements in units of `block` rows of the first `rowDims`
/// dims.
void check(const std::string &level, int64_t n, int rowDims, int64_t block) {
  const Shape shape{7, 5, n};
  Graph g;
  const int bias = g.input({f32, {n}}), y = g.input({f32, shape});
  const int out = g.binary(ScalarOp::Max, g.binary(ScalarOp::Add, y, bias, shape), g.splat(f32, 0), shape);
  g.results = {out, g.binary(ScalarOp::Gt, out, g.splat(f32, 0), shape)};
  std::string why;
  auto plan = buildLoopPlan(g, &why, rowDims);
  ASSERT_TRUE(plan) << why;
  const Target target(level);
  Compiled k;
  k.plan = *plan, k.schedule = scheduleLoops(*plan, target.features());
  int64_t rows = 1;
  for (int d = 0; d < rowDims; ++d)
    rows *= shape.extent(d);
  // The launch's operands: root's inputs 0 and 1, bias 2, results 3 and 4; the root's value is in 3.
  k.load({k.plan, k.schedule, {"k", {2, 3, 3, 4}, UnitRows{rows, block}}}, target);
  Data value = randomFloats(shape, 1), b = randomFloats({n}, 2), positive({bool_, shape});
  const Data before = value;
  std::memset(positive.bytes.data(), 7, positive.bytes.size());
  const int64_t units = (rows + block - 1) / block, perRow = before.size() / rows;
  std::vector<void *> buffers{nullptr, nullptr, b.bytes.data(), value.bytes.data(), positive.bytes.data()};
  for (int64_t u = units; u-- > 0;) {
    ASSERT_EQ(k.call(buffers, u, u + 1), 0);
    for (int64_t i = 0; i < before.size(); ++i) { // exactly the rows of the units so far
      const bool done = i >= u * block * perRow;
      const float was = reinterpret_cast<const float *>(before.bytes.data())[i],
                  want = std::max(was + b.as<float>()[i % n], 0.f);
      ASSERT_EQ(value.as<float>()[i], done ? want : was) << "unit " << u << " element " << i;
      ASSERT_EQ(positive.as<uint8_t>()[i], done ? want > 0 : 7);
    }
  }
}

TEST_P(Epilogue, CoversTheUnitsOfTheRoot) {
  for (int64_t n : {1, 10, 64, 100})
    for (auto [rowDims, block] : {std::pair<int, int64_t>{2, 1}, {2, 8}, {2, 35}, {1, 1}, {1, 3}, {0, 1}})
      check(GetParam(), n, rowDims, block);
}

} // namespace
} // namespace tressel::codegen::test
