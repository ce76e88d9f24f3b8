// The bounds that kernels of single ops are held to take what the reference evaluation gives, and refuse what is a little further off.
#include "ir/interpreter/Element.h"
#include "ir/op/Infer.h"
#include "test/support/OpBounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace tressel;
using tressel::test::OpCall;
using tressel::test::Random;

namespace {

struct Case {
  const char *op;
  std::vector<Shape> shapes;
  double off;             ///< units in the last place of the element, at which it is refused
  double offDouble = off; ///< of f64
};

class OpBounds : public testing::TestWithParam<Case> {};

TEST_P(OpBounds, RefuseWhatIsOff) {
  const op::OpInfo &info = *op::findOp(GetParam().op);
  for (DType type : {f32, f64, f16, bf16}) {
    OpCall call{&info, {}, op::Attrs(info.attrs.size()), {}};
    for (const Shape &shape : GetParam().shapes)
      call.operands.push_back({type, shape});
    ASSERT_EQ(op::completeAttrs(info, call.attrs), "");
    call.results = op::inferTypes(info, call.operands, call.attrs).types;
    Random random(3);
    std::vector<op::HostTensor> inputs;
    for (size_t i = 0; i < call.operands.size(); ++i)
      inputs.push_back(tressel::test::randomOperand(call, i, random));
    const op::interp::Evaluation want = op::interp::run(info, inputs, call.attrs);
    ASSERT_TRUE(want) << want.error;
    EXPECT_EQ(tressel::test::outsideBounds(call, inputs, want.outputs, want), "");
    // The largest element, of which no unit is lost in what others leave.
    op::HostTensor wrong = op::HostTensor::allocate(want.outputs[0].type);
    std::memcpy(wrong.data.get(), want.outputs[0].data.get(), static_cast<size_t>(wrong.type.bytes()));
    int64_t largest = 0;
    auto sizeAt = [&](int64_t i) { return std::abs(op::interp::load(wrong, i).as<double>()); };
    for (int64_t i = 0; i < wrong.type.shape.numElements(); ++i)
      largest = sizeAt(i) > sizeAt(largest) ? i : largest;
    const int bits = type == f64 ? 53 : type == f32 ? 24 : type == f16 ? 11 : 8;
    const double off = type == f16 || type == bf16 ? 2.5 + GetParam().off / 16 : type == f64 ? GetParam().offDouble : GetParam().off; // computed in f32
    const double x = op::interp::load(wrong, largest).as<double>();
    op::interp::store(wrong, largest, x + off * std::ldexp(1.0, std::ilogb(x) - bits + 1));
    EXPECT_NE(tressel::test::outsideBounds(call, inputs, std::vector{wrong}, want), "") << nameOf(type);
  }
}

const Case kCases[] = {
    {"add", {{40}, {40}}, 2},
    {"transpose", {{5, 8}}, 1.1},
    {"relu", {{40}}, 1.1},
    {"exp", {{40}}, 3},
    {"sin", {{40}}, 3},
    {"gelu", {{40}}, 12},
    {"softplus", {{40}}, 8},
    {"matmul", {{4, 8}, {8, 4}}, 60},
    {"softmax", {{4, 8}}, 200, 1e5}, // NumPy's tolerance
};
INSTANTIATE_TEST_SUITE_P(Ops, OpBounds, testing::ValuesIn(kCases), [](const auto &info) { return std::string(info.param.op); });

} // namespace
