// Imperative ops: kernels by layout class, against the interpreter; what is compiled and when; what goes wrong.
#include "frontend/Eager.h"
#include "frontend/eager/Kernel.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Evaluate.h"
#include "test/support/RandomOps.h"

#include <tressel/runtime/Engine.h>
#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <iostream>
#include <map>
#include <thread>

using namespace tressel;

namespace {

Tensor tensorOf(const op::HostTensor &t) { return from_bytes(t.data.get(), t.type); }
op::HostTensor hostOf(const Tensor &t) {
  op::HostTensor host = op::HostTensor::allocate(t.type());
  if (t.type().bytes())
    std::memcpy(host.data.get(), t.data(), static_cast<size_t>(t.type().bytes()));
  return host;
}

std::vector<Tensor> call(const op::OpInfo &info, std::span<const Tensor> operands, const op::Attrs &attrs, size_t numResults) {
  const std::vector<Arg> args(operands.begin(), operands.end());
  std::vector<Tensor> results(numResults);
  detail::recordInto(info, args, attrs, std::source_location::current(), results);
  return results;
}

/// Compares one call with the interpreter; what differs, or "".
std::string differs(const op::OpInfo &info, const std::vector<op::HostTensor> &inputs, const op::Attrs &attrs) {
  const op::interp::Evaluation want = op::interp::run(info, inputs, attrs);
  if (!want)
    return "the interpreter: " + want.error;
  std::vector<Tensor> operands;
  for (const op::HostTensor &t : inputs)
    operands.push_back(tensorOf(t));
  std::vector<Tensor> got;
  try {
    got = call(info, operands, attrs, want.outputs.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const DType type = want.outputs[i].type.dtype;
      std::string why = op::interp::compare(hostOf(got[i]), want.outputs[i], op::interp::looseTolerance(type));
      if (!why.empty())
        return why;
    }
  } catch (const Error &e) {
    return e.what();
  }
  return {};
}

std::string describe(const op::OpInfo &info, const std::vector<op::HostTensor> &inputs, const op::Attrs &attrs) {
  codegen::OpCall call{&info, {}, attrs, {}};
  for (const op::HostTensor &t : inputs)
    call.operands.push_back(t.type);
  return call.str();
}

/// Shapes of two operands, and of one in the middle of three: each layout class, with sizes 0 and 1 and odd tails.
const std::vector<std::vector<Shape>> kLayouts = {
    {{}, {}, {}},
    {{1}, {1}, {1}},
    {{7}, {7}, {7}},
    {{3, 5}, {3, 5}, {3, 5}},                // flat
    {{67}, {}, {67}},                        // single on the right
    {{}, {4, 33}, {4, 33}},                  // on the left
    {{2, 3, 5}, {1, 1}, {1}},
    {{1, 1, 1}, {3}, {3}},                   // the rank is the single's
    {{6, 17}, {17}, {6, 17}},                // rows
    {{17}, {6, 17}, {17}},
    {{6, 17}, {6, 1}, {6, 17}},              // columns
    {{6, 1}, {1, 17}, {6, 17}},              // outer
    {{2, 3, 4, 5}, {3, 1, 5}, {2, 1, 4, 1}}, // by rank
    {{0, 4}, {4}, {}},                       // nothing
    {{0}, {1}, {0}},
    {{130, 31}, {130, 31}, {130, 31}},
};

constexpr size_t kStep = 5;

TEST(Eager, ElementwiseOpsInEachLayoutAreTheInterpreters) {
  const uint64_t seed = 20;
  test::Random random(seed);
  std::map<DType, int> calls;
  std::vector<int> ofLayout(kLayouts.size());
  int numOps = 0;
  for (const op::OpInfo *info : op::allOps()) {
    if (info->family != op::Family::Elementwise || info->operands.empty() || info->operands.back().variadic)
      continue;
    ++numOps;
    int ofOp = 0;
    for (int t = 0; t < kNumDTypes; ++t) {
      const auto dtype = static_cast<DType>(t);
      // Three layouts of each op and type, so that both have met all.
      for (size_t l = static_cast<size_t>(numOps * 3 + t) % kStep; l < kLayouts.size(); l += kStep) {
        const std::vector<Shape> &layout = kLayouts[l];
        test::OpCall c{info, {}, {}, {}};
        for (size_t i = 0; i < info->operands.size(); ++i) {
          const bool condition = info->elementwise && info->elementwise->boolOperands >> i & 1;
          c.operands.push_back({condition ? bool_ : dtype, layout[std::min<size_t>(i, 2)]});
        }
        const auto proposed = test::proposeAttrs(*info, c.operands, random);
        if (!proposed)
          continue;
        std::vector<op::HostTensor> inputs;
        for (size_t i = 0; i < proposed->operands.size(); ++i)
          inputs.push_back(test::randomOperand(*proposed, i, random));
        ++calls[dtype], ++ofOp, ++ofLayout[l];
        ASSERT_EQ(differs(*info, inputs, proposed->attrs), "") << describe(*info, inputs, proposed->attrs) << ", seed " << seed;
      }
    }
    EXPECT_GT(ofOp, 0) << info->name << " was never called";
  }
  std::cout << "seed " << seed << ": " << numOps << " ops; calls by element type:";
  for (auto [type, n] : calls)
    std::cout << " " << nameOf(type) << " " << n;
  std::cout << "; by layout:";
  for (int n : ofLayout) {
    std::cout << " " << n;
    EXPECT_GT(n, 0);
  }
  std::cout << "\n";
  EXPECT_EQ(calls.size(), size_t(kNumDTypes));
  EXPECT_GT(numOps, 50);
}

TEST(Eager, AllOpsAreTheInterpreters) {
  const uint64_t seed = 21;
  test::Random random(seed);
  std::map<std::string, int> calls;
  int all = 0;
  for (const op::OpInfo *info : op::allOps()) {
    if (info->family == op::Family::Control || info->family == op::Family::Collective)
      continue;
    for (DType dtype : {f32, i32}) {
      for (int trial = 0; trial < 3; ++trial) {
        const auto c = test::proposeCall(*info, dtype, random, {.maxRank = 4, .maxSize = trial == 2 ? 19 : 6, .zeroSize = trial == 1 ? 0.1 : 0});
        if (!c)
          continue;
        std::vector<op::HostTensor> inputs;
        for (size_t i = 0; i < c->operands.size(); ++i)
          inputs.push_back(test::randomOperand(*c, i, random));
        ++calls[info->name], ++all;
        EXPECT_EQ(differs(*info, inputs, c->attrs), "") << describe(*info, inputs, c->attrs) << ", seed " << seed;
      }
    }
  }
  std::cout << "seed " << seed << ": " << all << " calls of " << calls.size() << " ops\n";
  EXPECT_GT(calls.size(), 150u);
}

} // namespace
