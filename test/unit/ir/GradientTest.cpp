// Reverse rules of all records, against central differences of the interpreter's values in f64.
#include "ir/op/Gradient.h"

#include "ir/op/Exprs.h"
#include "ir/op/Table.h"
#include "test/support/OpGradient.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <set>

namespace tressel::op {
namespace {

using test::OpCall;
using test::OpGradient;
using Tensors = std::vector<HostTensor>;

bool holdsFloats(const TensorType &type) { return type.dtype == DType::f64; }

double dot(const Tensors &a, const Tensors &b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k)
    if (a[k].data && holdsFloats(a[k].type))
      for (int64_t i = 0; i < a[k].type.shape.numElements(); ++i)
        sum += a[k].as<double>()[i] * b[k].as<double>()[i];
  return sum;
}

/// The sum of the results' elements, each times its cotangent; NaN if the call fails.
double weighted(const OpCall &call, const Tensors &operands, const Tensors &cotangents) {
  const interp::Evaluation run = interp::run(*call.op, operands, call.attrs);
  return run ? dot(run.outputs, cotangents) : std::nan("");
}

/// The partial derivative of a function of the operands at one element, or nothing at a kink or a step.
using Function = std::function<double(const Tensors &)>;
std::optional<double> difference(const Function &fn, Tensors &operands, size_t k, int64_t i) {
  HostTensor moved = HostTensor::allocate(operands[k].type);
  std::memcpy(moved.data.get(), operands[k].data.get(), static_cast<size_t>(moved.type.bytes()));
  std::swap(moved, operands[k]);
  double &x = operands[k].as<double>()[i];
  const double at = x, h = 1e-5;
  auto value = [&](double v) {
    x = v;
    return fn(operands);
  };
  const double up = value(at + h), up2 = value(at + 2 * h), here = value(at), down = value(at - h), down2 = value(at - 2 * h);
  std::swap(moved, operands[k]);
  const double right = (up - here) / h, left = (here - down) / h;
  const double near = (up - down) / (2 * h), far = (up2 - down2) / (4 * h);
  if (!std::isfinite(up2 + up + down + down2) || std::abs(right - left) > 1e-2 * (1 + std::abs(right) + std::abs(left)) ||
      std::abs(near - far) > 1e-5 * (1 + std::abs(near)))
    return {};
  return (8 * (up - down) - (up2 - down2)) / (12 * h);
}

struct Outcome {
  int calls = 0, elements = 0, kinks = 0, failures = 0;
  std::set<std::string> without; ///< what has no gradient
};

/// Compares gradients with differences of `fn`, at some elements of each operand.
void compare(const OpCall &call, const char *what, Tensors &operands, const Tensors &made, const Function &fn, Outcome &outcome) {
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!holdsFloats(operands[k].type))
      continue;
    const HostTensor &g = made[k];
    if (g.data && g.type != operands[k].type) {
      ADD_FAILURE() << call.op->name << ", operand " << k << ": " << what << ' ' << g.type.str() << " of " << operands[k].type.str();
      return;
    }
    const int64_t n = operands[k].type.shape.numElements();
    for (int64_t i = 0; i < n; i += std::max<int64_t>(1, n / 8)) {
      const auto wanted = difference(fn, operands, k, i);
      if (!wanted) {
        ++outcome.kinks;
        continue;
      }
      ++outcome.elements;
      const double got = g.data ? g.as<double>()[i] : 0;
      if (!(std::abs(got - *wanted) <= 1e-5 * (1 + std::abs(*wanted)))) {
        std::string types;
        for (const HostTensor &operand : operands)
          types += " " + operand.type.str();
        ADD_FAILURE() << call.op->name << ", operand " << k << ", element " << i << " = " << operands[k].as<double>()[i] << ": "
                      << what << ' ' << got << ", differences give " << *wanted << "; of" << types;
        ++outcome.failures;
        return;
      }
    }
  }
}

Outcome check(const OpInfo &op, uint64_t seed, int tries, bool twice) {
  Outcome outcome;
  test::Random random(seed);
  for (int t = 0; t < tries && !outcome.failures; ++t) {
    const auto call = test::proposeCall(op, DType::f64, random, {.maxRank = 4, .maxSize = 4});
    if (!call || std::ranges::none_of(call->operands, holdsFloats) || std::ranges::none_of(call->results, holdsFloats))
      continue;
    Tensors operands, cotangents, weights;
    for (size_t i = 0; i < call->operands.size(); ++i)
      operands.push_back(randomOperand(*call, i, random));
    for (const TensorType &type : call->results)
      cotangents.push_back(test::randomTensor(type, random, {-1, 1}));
    for (const TensorType &type : call->operands)
      weights.push_back(test::randomTensor(type, random, {-1, 1}));
    if (!interp::run(op, operands, call->attrs))
      continue; // an index outside
    try {
      OpGradient run(*call, operands, cotangents);
      if (twice)
        compare(
            *call, "gradient of the gradient", operands, run.gradientsOfGradients(weights),
            [&](const Tensors &at) { return dot(OpGradient(*call, at, cotangents).gradients(), weights); }, outcome);
      else
        compare(*call, "gradient", operands, run.gradients(),
                [&](const Tensors &at) { return weighted(*call, at, cotangents); }, outcome);
      ++outcome.calls;
    } catch (const expr::NoGradient &e) {
      outcome.without.insert(e.message());
    } catch (const Error &e) {
      ADD_FAILURE() << op.name << ": " << e.message();
      ++outcome.failures;
    }
  }
  return outcome;
}

/// Ops, or calls of ops, without a reverse rule, and why.
const std::set<std::string> reviewed = {
    "writes of mode 'max' cannot be differentiated",
    "writes of mode 'min' cannot be differentiated",
    "writes of mode 'mul' cannot be differentiated",
};

/// Ops whose gradient is not their slope, on purpose.
bool stopsGradients(const OpInfo &op) { return &op == &table::stop_gradient; }

TEST(Gradient, OfAllRecordsIsThatOfDifferences) {
  std::set<std::string> without;
  int tested = 0;
  for (const OpInfo *op : allOps()) {
    if (stopsGradients(*op))
      continue;
    const Outcome outcome = check(*op, 7, 100, false);
    without.insert(outcome.without.begin(), outcome.without.end());
    tested += outcome.calls > 0;
    if (outcome.calls > 0)
      EXPECT_GT(outcome.elements, 0) << op->name << " has kinks everywhere";
  }
  EXPECT_EQ(without, reviewed);
  EXPECT_GT(tested, 100);
}

TEST(Gradient, OfGradientsOfAllRecordsIsThatOfDifferences) {
  std::set<std::string> without;
  int tested = 0;
  for (const OpInfo *op : allOps()) {
    if (stopsGradients(*op))
      continue;
    const Outcome outcome = check(*op, 8, 20, true);
    without.insert(outcome.without.begin(), outcome.without.end());
    tested += outcome.elements > 0;
  }
  EXPECT_EQ(without, reviewed);
  EXPECT_GT(tested, 100);
}

/// Cotangents have the operands' types, whatever these are.
TEST(Gradient, HasTheOperandsTypes) {
  int compared = 0;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    for (const OpInfo *op : allOps()) {
      test::Random random(9);
      for (int t = 0; t < 10; ++t) {
        const auto call = test::proposeCall(*op, dtype, random, {.maxRank = 3, .maxSize = 3});
        if (!call)
          continue;
        Tensors operands, cotangents;
        for (size_t i = 0; i < call->operands.size(); ++i)
          operands.push_back(randomOperand(*call, i, random));
        for (const TensorType &type : call->results)
          cotangents.push_back(test::randomTensor(type, random, {-1, 1}));
        if (!interp::run(*op, operands, call->attrs) ||
            std::ranges::none_of(cotangents, [](const HostTensor &t) { return isFloat(t.type.dtype); }))
          continue;
        try {
          const Tensors made = OpGradient(*call, operands, cotangents).gradients();
          for (size_t k = 0; k < made.size(); ++k)
            if (made[k].data && ++compared)
              EXPECT_EQ(made[k].type.str(), operands[k].type.str()) << op->name;
        } catch (const expr::NoGradient &) {
        } catch (const Error &e) {
          ADD_FAILURE() << op->name << " of " << nameOf(dtype) << ": " << e.message();
          break;
        }
      }
    }
  EXPECT_GT(compared, 1000);
}

/// A value that stands in several places of a call gets the sum of what each place gives, once.
TEST(Gradient, OfAValueThatStandsInSeveralPlaces) {
  int compared = 0;
  for (const OpInfo *op : allOps()) {
    test::Random random(10);
    for (int t = 0; t < 20; ++t) {
      const auto call = test::proposeCall(*op, DType::f64, random, {.maxRank = 3, .maxSize = 3});
      if (!call || call->operands.size() < 2 || call->operands[0].dtype != DType::f64 ||
          call->operands[1] != call->operands[0])
        continue;
      Tensors operands;
      for (size_t i = 0; i < call->operands.size(); ++i)
        operands.push_back(i && call->operands[i] == call->operands[0] ? operands[0] : randomOperand(*call, i, random));
      const interp::Evaluation run = interp::run(*op, operands, call->attrs);
      if (!run || std::ranges::none_of(run.outputs, [](const HostTensor &t) { return holdsFloats(t.type); }))
        continue;
      try {
        auto gradientOf = [&](bool together) { // of the sum of all results
          interp::EvaluatingEmitter emitter;
          std::vector<Emitter::Ref> in, given;
          for (size_t i = 0; i < operands.size(); ++i)
            in.push_back(i && together && call->operands[i] == call->operands[0] ? in[0] : emitter.add(operands[i]));
          Tape tape(emitter, in);
          const std::vector<Emitter::Ref> out = tape.emit(*op, in, call->attrs);
          for (Emitter::Ref ref : out)
            given.push_back(isFloat(emitter.typeOf(ref).dtype)
                                ? emitter.add(test::randomTensor(emitter.typeOf(ref), random, {1, 1}))
                                : nullptr);
          double sum = 0; // of the elements of all gradients with respect to that value
          std::vector<Emitter::Ref> wanted;
          for (size_t i = 0; i < in.size(); ++i)
            if (call->operands[i] == call->operands[0] && (wanted.empty() || !together))
              wanted.push_back(in[i]);
          for (Emitter::Ref made : tape.backward(out, given, wanted)) {
            const HostTensor value = made ? emitter.valueOf(made) : HostTensor();
            for (int64_t i = 0; value.data && i < value.type.shape.numElements(); ++i)
              sum += value.as<double>()[i];
          }
          return sum;
        };
        const double apart = gradientOf(false), together = gradientOf(true);
        ++compared;
        if (std::isfinite(apart))
          EXPECT_NEAR(together, apart, 1e-9 * (1 + std::abs(apart))) << op->name;
      } catch (const expr::NoGradient &) {
      }
    }
  }
  EXPECT_GT(compared, 200);
}

/// f16 ends at 65504, which a number of elements may pass.
TEST(Gradient, OfTheMeanOfManyHalves) {
  OpCall call{&table::mean, {{DType::f16, {70000}}}, {}, {{DType::f16, {}}}};
  ASSERT_EQ(completeAttrs(table::mean, call.attrs), "");
  HostTensor one = HostTensor::allocate(call.results[0]);
  *one.as<uint16_t>() = 0x3C00;
  const Tensors made = OpGradient(call, {HostTensor::allocate(call.operands[0])}, {one}).gradients();
  ASSERT_TRUE(made[0].data);
  EXPECT_NEAR(made[0].as<uint16_t>()[0] * 0x1p-24, 1.0 / 70000, 0x1p-24); // a subnormal number: a multiple of 2^-24
}

} // namespace
} // namespace tressel::op
