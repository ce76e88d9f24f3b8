// Comparison, random inputs and summaries of the command line.
#include "tools/tressel/Tensors.h"
#include "tools/tressel/Tool.h"

#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Device.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>

namespace tressel::tool {
namespace {

HostTensor floats(const std::vector<float> &values) {
  HostTensor t = HostTensor::allocate({f32, {static_cast<int64_t>(values.size())}});
  std::copy(values.begin(), values.end(), t.as<float>());
  return t;
}
const float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

TEST(ToolCompare, Tolerances) {
  EXPECT_TRUE(compare(floats({1, 100}), floats({1, 100}), 0, 0).within);
  EXPECT_TRUE(compare(floats({1.00009f, 100}), floats({1, 100}), 1e-4, 0).within);
  Difference d = compare(floats({1.5f, 101, 7}), floats({1, 100, 7}), 1e-4, 1e-5);
  EXPECT_FALSE(d.within);
  EXPECT_EQ(d.mismatches, 2);
  EXPECT_EQ(d.worst, 1);
  EXPECT_EQ(d.maxAbsolute, 1);
  EXPECT_EQ(d.maxRelative, 0.5);
}

TEST(ToolCompare, NotFinite) {
  EXPECT_TRUE(compare(floats({kNan, kInf, -kInf}), floats({kNan, kInf, -kInf}), 0, 0).within);
  EXPECT_FALSE(compare(floats({kNan}), floats({1}), 1, 1).within);
  EXPECT_FALSE(compare(floats({1}), floats({kNan}), 1, 1).within);
  EXPECT_FALSE(compare(floats({1e30f}), floats({kInf}), 1, 1).within); // an infinite bound allows nothing but infinity
  EXPECT_FALSE(compare(floats({kInf}), floats({-kInf}), 1, 1).within);
}

TEST(ToolRandom, DependsOnSeedAndName) {
  TensorType type{f32, {1000}};
  HostTensor a = randomTensor(type, 1, "x"), again = randomTensor(type, 1, "x"), seed = randomTensor(type, 2, "x"),
             name = randomTensor(type, 1, "y");
  EXPECT_TRUE(compare(a, again, 0, 0).within);
  EXPECT_FALSE(compare(a, seed, 0, 0).within);
  EXPECT_FALSE(compare(a, name, 0, 0).within);
  Summary s = summarize(a);
  EXPECT_LT(std::abs(s.mean), 0.2);
  EXPECT_GT(s.max, 2);
  EXPECT_LT(s.min, -2);
  EXPECT_LT(s.max, 6);
}

TEST(ToolRandom, EveryType) {
  for (int i = 0; i < kNumDTypes; ++i) {
    TensorType type{static_cast<DType>(i), {64}};
    Summary s = summarize(randomTensor(type, 3, "x"));
    if (isFloat(type.dtype)) {
      EXPECT_GT(s.max, 0.5) << type.str();
      EXPECT_LT(s.min, -0.5) << type.str();
    } else {
      EXPECT_EQ(s.min, 0) << type.str();
      EXPECT_EQ(s.max, 1) << type.str();
    }
  }
}

TEST(ToolSummary, OfNothingAndOfNan) {
  EXPECT_TRUE(summarize(floats({})).first.empty());
  Summary s = summarize(floats({1, kNan, 3}));
  EXPECT_TRUE(std::isnan(s.min) && std::isnan(s.mean) && std::isnan(s.max));
  EXPECT_EQ(summarize(floats({1, 2, 3, 4, 5, 6, 7, 8, 9})).first.size(), 8u);
}

TEST(ToolTensors, FilesRoundTrip) {
  const std::string path = ::testing::TempDir() + "/tressel-tensors.npy";
  for (int i = 0; i < kNumDTypes; ++i) {
    TensorType type{static_cast<DType>(i), {3, 5}};
    HostTensor t = randomTensor(type, 4, "x");
    writeTensor(path, t);
    auto read = readTensors(path);
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].second.type.dtype, type.dtype == bf16 ? f32 : type.dtype);
    EXPECT_EQ(read[0].second.type.shape, type.shape);
    EXPECT_TRUE(compare(read[0].second, t, 0, 0).within) << type.str();
  }
}

TEST(ToolTensors, DamagedFilesAreRefused) {
  for (const char *name : {"/damaged.npy", "/damaged.npz", "/damaged.pb"}) {
    const std::string path = ::testing::TempDir() + name;
    std::ofstream(path) << "\x93NUMPX nonsense";
    EXPECT_THROW(readTensors(path), InputError) << name;
    EXPECT_THROW(readTensors(path + ".missing" + std::string(name).substr(8)), InputError) << name;
  }
}

TEST(ToolOptions, Dims) {
  EXPECT_EQ(parseSizes({"batch=4", "a=b=2"}), (std::map<std::string, int64_t>{{"batch", 4}, {"a=b", 2}}));
  EXPECT_THROW(parseSizes({"batch=1..4"}), UsageError) << "a range where a size is wanted";
  std::map<std::string, DimRange> ranges = parseDims({"batch=2..64", "n=7"});
  EXPECT_EQ(ranges["batch"].lo, 2);
  EXPECT_EQ(ranges["batch"].hi, 64);
  EXPECT_EQ(ranges["n"].lo, 7);
  EXPECT_EQ(ranges["n"].hi, 7);
  for (const char *bad : {"batch", "=4", "batch=", "batch=x", "batch=4x", "batch=4..1", "batch=1..", "batch=..4",
                          "b=99999999999999999999"})
    EXPECT_THROW(parseDims({bad}), UsageError) << bad;
  EXPECT_THROW(parseDims({"a=1", "a=2"}), UsageError);
}

TEST(ToolOptions, Devices) {
  EXPECT_EQ(machineOf("cpu"), nullptr);
  EXPECT_EQ(machineOf("sim:2gpu-pcie3")->devices().size(), 3u);
  if (runtime::gpuCards().empty()) {
    EXPECT_THROW(machineOf("cuda"), EnvironmentError);
    EXPECT_THROW(machineOf("cuda:0"), EnvironmentError);
  }
  EXPECT_THROW(machineOf("sim:nothing"), UsageError);
  EXPECT_THROW(machineOf("tpu"), UsageError);
}

} // namespace
} // namespace tressel::tool
