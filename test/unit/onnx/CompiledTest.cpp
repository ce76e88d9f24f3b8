// The public functions of tressel/onnx.h.
#include "ModelBuilder.h"

#include <tressel/onnx.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>

namespace tressel {
namespace {

TEST(OnnxCompiled, RunsAndSaysWhenItWasMovedFrom) {
  test::ModelBuilder b;
  b.input("x", {2, 3}).output("y");
  b.node("Neg", {"x"}, {"y"});
  const std::string path = testing::TempDir() + "tressel-compiled.onnx";
  std::ofstream(path, std::ios::binary) << b.bytes();
  onnx::Compiled net = onnx::compile(path), other = std::move(net);
  std::filesystem::remove(path);
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
  const void *in = x;
  void *out = y;
  EXPECT_THROW((void)net.inputs(), Error);
  EXPECT_THROW((void)net.outputs(), Error);
  EXPECT_THROW(net.run({&in, 1}, {&out, 1}), Error);
  EXPECT_EQ(other.inputs()[0].type.str(), "f32[2, 3]");
  other.run({&in, 1}, {&out, 1});
  EXPECT_EQ(y[5], -6);
  net = std::move(other);
  EXPECT_EQ(net.outputs()[0].name, "y");
}

TEST(OnnxCompiled, LogSumExpOfInfinities) {
  test::ModelBuilder b;
  b.input("x", {4, 2}).output("y");
  b.ints("axes", {1});
  b.model.mutable_opset_import(0)->set_version(18);
  b.node("ReduceLogSumExp", {"x", "axes"}, {"y"});
  const std::string path = testing::TempDir() + "tressel-logsumexp.onnx";
  std::ofstream(path, std::ios::binary) << b.bytes();
  onnx::Compiled net = onnx::compile(path);
  std::filesystem::remove(path);
  constexpr float inf = std::numeric_limits<float>::infinity();
  const float x[8] = {-inf, -inf, inf, 1, 0, 0, 500, -inf};
  float y[4];
  const void *in = x;
  void *out = y;
  net.run({&in, 1}, {&out, 1});
  EXPECT_EQ(y[0], -inf);
  EXPECT_EQ(y[1], inf);
  EXPECT_NEAR(y[2], std::log(2.0f), 1e-6f);
  EXPECT_EQ(y[3], 500);
}

} // namespace
} // namespace tressel
