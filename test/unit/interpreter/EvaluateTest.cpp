// The evaluation of ops, on cases that can be checked by eye; NumPy checks the rest (test/oracle).
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace tressel;
using namespace tressel::op;
using interp::run;

namespace {

HostTensor tensor(DType type, Shape shape, std::vector<double> values) {
  HostTensor t = HostTensor::allocate({type, shape});
  for (size_t i = 0; i < values.size(); ++i)
    interp::store(t, static_cast<int64_t>(i), values[i]);
  return t;
}

HostTensor evaluate(const char *name, std::vector<HostTensor> inputs, std::vector<std::pair<const char *, Attr>> given = {}) {
  const OpInfo *op = findOp(name);
  EXPECT_NE(op, nullptr) << name;
  Attrs attrs(op->attrs.size());
  for (size_t i = 0; i < op->attrs.size(); ++i)
    attrs[i] = op->attrs[i].defaultValue;
  for (auto &[attr, value] : given)
    attrs[static_cast<size_t>(op->attrIndex(attr))] = value;
  interp::Evaluation result = run(*op, inputs, attrs);
  EXPECT_EQ(result.error, "");
  return result ? result.outputs[0] : HostTensor::allocate({f32, {0}});
}

void expectEqual(const HostTensor &got, const HostTensor &want) { EXPECT_EQ(interp::compare(got, want), ""); }

TEST(Evaluate, BroadcastsFromTheLastDimension) {
  expectEqual(evaluate("add", {tensor(f32, {2, 2}, {1, 2, 3, 4}), tensor(f32, {2}, {10, 20})}),
              tensor(f32, {2, 2}, {11, 22, 13, 24}));
  expectEqual(evaluate("sub", {tensor(f32, {2, 1}, {1, 2}), tensor(f32, {}, {1})}), tensor(f32, {2, 1}, {0, 1}));
}

TEST(Evaluate, SmallFloatsComputeInFloatAndRoundOnce) {
  // Neither 2049 nor 2051 is an f16: both are halfway, and rounded to even.
  expectEqual(evaluate("add", {tensor(f16, {1}, {2048}), tensor(f16, {1}, {1})}), tensor(f16, {1}, {2048}));
  expectEqual(evaluate("add", {tensor(f16, {1}, {2048}), tensor(f16, {1}, {3})}), tensor(f16, {1}, {2052}));
  // The sum of many accumulates beyond what f16 could.
  std::vector<double> ones(4096, 1);
  expectEqual(evaluate("sum", {tensor(f16, {4096}, ones)}), tensor(f16, {}, {4096}));
}

TEST(Evaluate, WideIntegersStayExact) {
  HostTensor big = HostTensor::allocate({i64, {2}});
  big.as<int64_t>()[0] = (int64_t(1) << 53) + 1;
  big.as<int64_t>()[1] = 2;
  HostTensor sum = evaluate("sum", {big});
  EXPECT_EQ(sum.as<int64_t>()[0], (int64_t(1) << 53) + 3);
  HostTensor product = evaluate("matmul", {big, tensor(i64, {2}, {1, 0})});
  EXPECT_EQ(product.as<int64_t>()[0], (int64_t(1) << 53) + 1);
}

TEST(Evaluate, RestsOfTheLeastInteger) {
  expectEqual(evaluate("fmod", {tensor(i8, {6}, {1, -1, -128, -128, -128, 5}), tensor(i8, {6}, {-128, -128, 3, -128, -1, 0})}),
              tensor(i8, {6}, {1, -1, -2, 0, 0, 0}));
  expectEqual(evaluate("fmod", {tensor(u8, {3}, {200, 7, 255}), tensor(u8, {3}, {7, 200, 128})}), tensor(u8, {3}, {4, 7, 127}));
  expectEqual(evaluate("fmod", {tensor(f32, {2}, {-1e-20, 7}), tensor(f32, {2}, {1, -4})}), tensor(f32, {2}, {-1e-20, 3}));
}

TEST(Evaluate, InverseHyperbolicCosineEndsAtOne) {
  const HostTensor y = evaluate("acosh", {tensor(f32, {5}, {1, 0.5, -5000, -1e10, -3e38})});
  EXPECT_EQ(y.as<float>()[0], 0);
  for (int i = 1; i < 5; ++i)
    EXPECT_TRUE(std::isnan(y.as<float>()[i])) << i;
}

TEST(Evaluate, ReductionsOfNothing) {
  expectEqual(evaluate("sum", {tensor(f32, {0, 2}, {})}, {{"axis", Ints{0}}}), tensor(f32, {2}, {0, 0}));
  expectEqual(evaluate("prod", {tensor(f32, {0}, {})}), tensor(f32, {}, {1}));
  expectEqual(evaluate("all", {tensor(bool_, {0}, {})}), tensor(bool_, {}, {1}));
  expectEqual(evaluate("any", {tensor(bool_, {0}, {})}), tensor(bool_, {}, {0}));
}

TEST(Evaluate, ReductionsPropagateNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const HostTensor x = tensor(f32, {4}, {3, nan, 5, nan});
  expectEqual(evaluate("max", {x}), tensor(f32, {}, {nan}));
  expectEqual(evaluate("min", {x}), tensor(f32, {}, {nan}));
  expectEqual(evaluate("argmax", {x}), tensor(i64, {}, {1}));
  expectEqual(evaluate("argmax", {tensor(f32, {3}, {1, 7, 7})}), tensor(i64, {}, {1}));
}

TEST(Evaluate, VectorsInMatrixProducts) {
  const HostTensor m = tensor(f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  expectEqual(evaluate("matmul", {m, tensor(f32, {3}, {1, 0, 1})}), tensor(f32, {2}, {4, 10}));
  expectEqual(evaluate("matmul", {tensor(f32, {2}, {1, 1}), m}), tensor(f32, {3}, {5, 7, 9}));
  expectEqual(evaluate("matmul", {tensor(f32, {2, 0}, {}), tensor(f32, {0, 1}, {})}), tensor(f32, {2, 1}, {0, 0}));
}

TEST(Evaluate, ConvolutionDoesNotFlip) {
  expectEqual(evaluate("conv", {tensor(f32, {1, 1, 3}, {1, 2, 3}), tensor(f32, {1, 1, 2}, {1, 10})}),
              tensor(f32, {1, 1, 2}, {21, 32}));
  // Two groups: each feature sees its own channel.
  expectEqual(evaluate("conv", {tensor(f32, {1, 2, 1}, {3, 5}), tensor(f32, {2, 1, 1}, {1, 10})}, {{"groups", int64_t(2)}}),
              tensor(f32, {1, 2, 1}, {3, 50}));
}

TEST(Evaluate, SlicesFollowPython) {
  const HostTensor x = tensor(i32, {4}, {0, 1, 2, 3});
  auto slice = [&](int64_t start, int64_t limit, int64_t stride) {
    return evaluate("slice", {x}, {{"starts", Ints{start}}, {"limits", Ints{limit}}, {"strides", Ints{stride}}});
  };
  expectEqual(slice(-3, 100, 2), tensor(i32, {2}, {1, 3}));
  expectEqual(slice(10, std::numeric_limits<int64_t>::min(), -1), tensor(i32, {4}, {3, 2, 1, 0}));
  expectEqual(slice(-100, 2, 1), tensor(i32, {2}, {0, 1}));
}

TEST(Evaluate, AnIndexOutsideIsAnError) {
  const OpInfo *take = findOp("take");
  const std::vector<HostTensor> inputs = {tensor(f32, {3}, {1, 2, 3}), tensor(i64, {2}, {-1, 3})};
  interp::Evaluation result = run(*take, inputs);
  EXPECT_EQ(result.error, "index 3 is outside the dimension of size 3");
  EXPECT_TRUE(result.outputs.empty());
}

TEST(Evaluate, RefusesWhatInferRefuses) {
  const std::vector<HostTensor> inputs = {tensor(f32, {2}, {1, 2}), tensor(f32, {3}, {1, 2, 3})};
  EXPECT_NE(run(*findOp("add"), inputs).error, "");
}

TEST(Evaluate, CompositesThroughTheirDecomposition) {
  ASSERT_EQ(findOp("softmax")->evaluate, nullptr);
  // Without the subtraction of the maximum this would be NaN.
  expectEqual(evaluate("softmax", {tensor(f32, {1, 2}, {1000, 1000})}), tensor(f32, {1, 2}, {0.5, 0.5}));
}

TEST(Compare, SaysWhereAndHowMany) {
  const HostTensor a = tensor(f32, {2, 2}, {1, 2, 3, 4}), b = tensor(f32, {2, 2}, {1, 2, 3.5, 8});
  EXPECT_EQ(interp::compare(a, b),
            "at [1, 0] of f32[2, 2]: got 3, expected 3.5; 2 of 4 elements differ, by at most 4");
  EXPECT_EQ(interp::compare(a, b, {.rtol = 0.5}), "");
  EXPECT_EQ(interp::compare(tensor(f32, {1}, {1}), tensor(f64, {1}, {1})), "the type is f32[1], expected f64[1]");
}

TEST(Compare, UnitsInTheLastPlace) {
  const float next = std::nextafter(1.0f, 2.0f);
  const HostTensor a = tensor(f32, {1}, {1}), b = tensor(f32, {1}, {next});
  EXPECT_NE(interp::compare(a, b), "");
  EXPECT_EQ(interp::compare(a, b, {.ulps = 1}), "");
  // The neighbours of zero on both sides are two apart.
  const HostTensor below = tensor(f32, {1}, {-0x1p-149}), above = tensor(f32, {1}, {0x1p-149});
  EXPECT_NE(interp::compare(below, above, {.ulps = 1}), "");
  EXPECT_EQ(interp::compare(below, above, {.ulps = 2}), "");
  // Values far apart and of opposite sign do not overflow the count.
  EXPECT_NE(interp::compare(tensor(f64, {1}, {-1e308}), tensor(f64, {1}, {1e308}), {.ulps = 1000}), "");
}

TEST(Compare, NanEqualsNanAndNothingElse) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(interp::compare(tensor(f32, {1}, {nan}), tensor(f32, {1}, {nan})), "");
  EXPECT_NE(interp::compare(tensor(f32, {1}, {nan}), tensor(f32, {1}, {0}), {.rtol = 1, .atol = 1e9}), "");
  EXPECT_NE(interp::compare(tensor(f32, {1}, {infinity}), tensor(f32, {1}, {3e38}), {.rtol = 1, .ulps = 1 << 30}), "");
  EXPECT_EQ(interp::compare(tensor(f32, {1}, {-0.0}), tensor(f32, {1}, {0})), "");
}

} // namespace
