// What records say of ops on tensors whose dimensions stand in another order: the reordered op of the transposed operands is
// the transposed result, by the interpreter, on calls made up at random.
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Evaluate.h"
#include "ir/op/OpInfo.h"
#include "test/support/RandomOps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace tressel;
using namespace tressel::op;

namespace {

HostTensor runOne(const char *name, const HostTensor &x, Attrs attrs) {
  return interp::run(*findOp(name), std::span(&x, 1), std::move(attrs)).outputs.at(0);
}

/// With leading dimensions of size 1 and then transposed.
HostTensor inOrder(HostTensor x, const Ints &order) {
  if (order.empty())
    return x;
  Ints shape(x.type.shape.begin(), x.type.shape.end());
  shape.insert(shape.begin(), order.size() - shape.size(), 1);
  return runOne("transpose", runOne("reshape", x, {shape}), {order});
}

std::vector<const OpInfo *> reorderable() {
  std::vector<const OpInfo *> ops;
  for (const OpInfo *info : allOps())
    if (info->reorder)
      ops.push_back(info);
  return ops;
}

class Reorder : public testing::TestWithParam<const OpInfo *> {};

TEST_P(Reorder, IsTheTransposedResult) {
  const OpInfo &info = *GetParam();
  int compared = 0, moved = 0;
  bool seesPlaces = false;
  test::Random random(23);
  for (int round = 0; round < 120; ++round) {
    const DType dtype = random.pick(std::vector<DType>{f32, f32, f64, i64, bool_});
    std::optional<test::OpCall> call = test::proposeCall(info, dtype, random);
    if (!call || call->results.size() != 1)
      continue;
    if (const auto form = info.loopForm(info, call->operands, call->results, call->attrs))
      seesPlaces |= std::ranges::any_of(form->body.nodes, [](const ScalarNode &n) { return n.op == ScalarOp::Index; });
    const int rank = (info.family == Family::Reduction ? call->operands[0] : call->results[0]).rank();
    Ints order(static_cast<size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    const int64_t from = rank > 1 ? random.below(rank) : 0, to = rank > 1 ? random.below(rank) : 0;
    if (random.chance(0.4)) { // any
      for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    } else if (rank > 2 && random.chance(0.7)) { // channels to the end or back
      random.chance(0.5) ? std::rotate(order.begin() + 1, order.begin() + 2, order.end())
                         : std::rotate(order.begin() + 1, order.end() - 1, order.end());
    } else if (rank > 1) { // one of them moves
      order.erase(order.begin() + from);
      order.insert(order.begin() + to, from);
    }
    const auto reordered = info.reorder(info, call->operands, call->results, call->attrs, order);
    if (!reordered)
      continue;
    ASSERT_EQ(reordered->operands.size(), call->operands.size());
    EXPECT_EQ(info.family == Family::Reduction ? reordered->operands[0] : reordered->result, order);
    std::vector<HostTensor> inputs, transposed;
    for (size_t i = 0; i < call->operands.size(); ++i) {
      inputs.push_back(test::randomOperand(*call, i, random));
      transposed.push_back(inOrder(inputs.back(), reordered->operands[i]));
    }
    const interp::Evaluation plain = interp::run(info, inputs, call->attrs);
    if (!plain && info.family == Family::Indexing)
      continue; // nothing to index
    ASSERT_TRUE(plain) << plain.error;
    const interp::Evaluation other = interp::run(info, transposed, reordered->attrs);
    ASSERT_TRUE(other) << other.error;
    EXPECT_EQ(interp::compare(other.outputs[0], inOrder(plain.outputs[0], reordered->result),
                              interp::looseTolerance(call->results[0].dtype)),
              "")
        << info.name << " of " << call->operands[0].str() << " in order " << testing::PrintToString(order);
    ++compared;
    moved += !std::ranges::is_sorted(order);
  }
  EXPECT_EQ(compared > 0, !seesPlaces);
  EXPECT_EQ(moved > 0, !seesPlaces);
}

INSTANTIATE_TEST_SUITE_P(Ops, Reorder, testing::ValuesIn(reorderable()),
                         [](const auto &param) { return std::string(param.param->name); });

TEST(Reorder, ChannelsGoToTheEndAndBackOnly) {
  const OpInfo &info = *findOp("max_pool");
  const TensorType x{f32, {2, 3, 8, 8}}, y{f32, {2, 3, 4, 4}};
  Attrs attrs{Ints{2, 2}};
  ASSERT_EQ(completeAttrs(info, attrs), "");
  EXPECT_FALSE(info.reorder(info, {&x, 1}, {&y, 1}, attrs, {1, 0, 2, 3}));
  EXPECT_FALSE(info.reorder(info, {&x, 1}, {&y, 1}, attrs, {0, 3, 1, 2})); // from channels last, which these are not
  const auto last = info.reorder(info, {&x, 1}, {&y, 1}, attrs, {0, 2, 3, 1});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->attrs.back(), Attr(true));
  EXPECT_FALSE(info.reorder(info, {&x, 1}, {&y, 1}, last->attrs, {0, 2, 3, 1}));
  EXPECT_TRUE(info.reorder(info, {&x, 1}, {&y, 1}, last->attrs, {0, 3, 1, 2}));
}

} // namespace
