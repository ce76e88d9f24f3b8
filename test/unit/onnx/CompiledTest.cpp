// The public functions of tressel/onnx.h.
#include "ModelBuilder.h"

#include <tressel/onnx.h>

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

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

} // namespace
} // namespace tressel
