// What records say of ops on tensors in parts: an op on the parts of its operands makes the parts of its result, or
// parts of its terms, by the interpreter, on calls made up at random.
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Evaluate.h"
#include "ir/op/Infer.h"
#include "ir/op/ShardingRule.h"
#include "test/support/RandomOps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using namespace tressel;
using namespace tressel::op;

namespace {

HostTensor runOne(const char *name, std::vector<HostTensor> operands, Attrs attrs) {
  const OpInfo &info = *findOp(name);
  EXPECT_EQ(completeAttrs(info, attrs), "");
  interp::Evaluation run = interp::run(info, operands, std::move(attrs));
  EXPECT_TRUE(run) << run.error;
  return run.outputs.at(0);
}

/// The first `low` and the other elements of a dimension.
HostTensor partOf(const HostTensor &x, int dim, int64_t first, int64_t count) {
  Sizes starts(x.type.shape.size(), 0), limits(x.type.shape.begin(), x.type.shape.end());
  starts[static_cast<size_t>(dim)] = first;
  limits[static_cast<size_t>(dim)] = first + count;
  return runOne("slice", {x}, {starts, limits, Ints()});
}

/// Part `i` of two: the dimensions whose outermost factor is the one that is cut.
HostTensor partOf(HostTensor x, const ShardingRule::Dims &dims, int factor, Size size, int i) {
  for (int d = 0; d < x.type.rank(); ++d) {
    const std::vector<int> &list = dims[static_cast<size_t>(d)];
    if (list.empty() || list.front() != factor)
      continue;
    const int64_t n = size.number(), low = (n + 1) / 2, inner = x.type.shape.extent(d) / n;
    x = partOf(x, d, (i ? low : 0) * inner, (i ? n - low : low) * inner);
  }
  return x;
}

const char *combiner(Combine combine) {
  switch (combine) {
  case Combine::Sum:
    return "add";
  case Combine::Prod:
    return "mul";
  case Combine::Max:
    return "maximum";
  case Combine::Min:
    return "minimum";
  case Combine::Any:
    return "logical_or";
  case Combine::All:
    return "logical_and";
  default:
    return nullptr;
  }
}

class Sharding : public testing::TestWithParam<const OpInfo *> {};

TEST_P(Sharding, PartsOfOperandsMakePartsOfResults) {
  const OpInfo &info = *GetParam();
  test::Random random(31);
  int compared = 0, combined = 0;
  for (int round = 0; round < 60; ++round) {
    const DType dtype = random.pick(std::vector<DType>{f32, f32, f64, i64, bool_});
    std::optional<test::OpCall> call = test::proposeCall(info, dtype, random);
    if (!call)
      continue;
    const ShardingRule rule = shardingOf(info, call->operands, call->results, call->attrs);
    ASSERT_EQ(rule.operands.size(), call->operands.size());
    ASSERT_EQ(rule.results.size(), call->results.size());
    for (size_t r = 0; r < rule.results.size(); ++r) {
      ASSERT_EQ(rule.results[r].size(), static_cast<size_t>(call->results[r].rank()));
      for (const std::vector<int> &list : rule.results[r])
        ASSERT_FALSE(list.empty()) << info.name << ": each dimension of a result has a factor";
    }
    std::vector<HostTensor> inputs;
    for (size_t i = 0; i < call->operands.size(); ++i)
      inputs.push_back(test::randomOperand(*call, i, random));
    const interp::Evaluation whole = interp::run(info, inputs, call->attrs);
    if (!whole && info.family == Family::Indexing)
      continue; // nothing to index
    ASSERT_TRUE(whole) << whole.error;
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      const ShardingRule::Factor &factor = rule.factors[f];
      const bool reduces = factor.combine != Combine::None;
      if (factor.isWhole || factor.size.number() < 2 * rule.leastPart || (reduces && info.isMean) || factor.fromParts)
        continue;
      ASSERT_TRUE(!reduces || combiner(factor.combine));
      std::vector<HostTensor> parts[2];
      for (int i : {0, 1}) {
        std::vector<HostTensor> operands;
        for (size_t k = 0; k < inputs.size(); ++k)
          operands.push_back(partOf(inputs[k], rule.operands[k], static_cast<int>(f), factor.size, i));
        if (reduces && i == 1 && rule.onceOperand >= 0) {
          HostTensor &once = operands[static_cast<size_t>(rule.onceOperand)];
          once = HostTensor::allocate(once.type);
        }
        Attrs attrs = call->attrs;
        if (rule.shapeAttr >= 0) {
          const Shape part = partOf(whole.outputs[0], rule.results[0], static_cast<int>(f), factor.size, i).type.shape;
          attrs[static_cast<size_t>(rule.shapeAttr)] = Sizes(part.begin(), part.end());
        }
        if (rule.firstAttr >= 0 && i == 1) {
          ASSERT_EQ(f, 0u);
          const Shape &shape = whole.outputs[0].type.shape;
          const int64_t rows = (shape.extent(0) + 1) / 2;
          Size &first = std::get<Size>(attrs[static_cast<size_t>(rule.firstAttr)]);
          first = first + rows * (shape.numElements() / shape.extent(0));
        }
        interp::Evaluation part = interp::run(info, operands, attrs);
        ASSERT_TRUE(part) << info.name << " of part " << i << " of factor " << f << ": " << part.error;
        parts[i] = part.outputs;
      }
      for (size_t r = 0; r < whole.outputs.size(); ++r) {
        const interp::Tolerance tolerance = interp::looseTolerance(call->results[r].dtype);
        if (reduces) {
          EXPECT_EQ(interp::compare(runOne(combiner(factor.combine), {parts[0][r], parts[1][r]}, {}), whole.outputs[r],
                                    tolerance),
                    "")
              << info.name << " of " << call->operands[0].str() << ", factor " << f;
          ++combined;
          continue;
        }
        for (int i : {0, 1})
          EXPECT_EQ(interp::compare(parts[i][r],
                                    partOf(whole.outputs[r], rule.results[r], static_cast<int>(f), factor.size, i),
                                    tolerance),
                    "")
              << info.name << ", part " << i << " of factor " << f;
      }
      ++compared;
    }
  }
  // Ops along rows, and those that see where elements stand, have nothing to cut; these do.
  if (info.elementwise && !info.operands.empty() && info.family == Family::Elementwise)
    EXPECT_GT(compared, 0);
  if (info.family == Family::Contraction && !info.decompose)
    EXPECT_GT(combined, 0);
}

/// The op of each of some equal parts along dimension 0, and what its record makes of them.
std::vector<HostTensor> fromParts(const OpInfo &info, const HostTensor &x, Attrs attrs, int64_t parts) {
  attrs[static_cast<size_t>(info.attrIndex("keepdims"))] = false;
  const int64_t rows = x.type.shape.extent(0) / parts;
  std::vector<std::vector<HostTensor>> stacks(static_cast<size_t>(info.numResults)); // rows of one each
  for (int64_t i = 0; i < parts; ++i) {
    const interp::Evaluation part = interp::run(info, std::vector{partOf(x, 0, i * rows, rows)}, attrs);
    EXPECT_TRUE(part) << part.error;
    for (size_t r = 0; r < stacks.size(); ++r)
      stacks[r].push_back(runOne("expand_dims", {part.outputs.at(r)}, {int64_t(-1)}));
  }
  interp::EvaluatingEmitter emitter;
  std::vector<Emitter::Ref> in;
  for (const std::vector<HostTensor> &stack : stacks)
    in.push_back(emitter.add(runOne("concat", stack, {int64_t(-1)})));
  std::vector<HostTensor> results;
  for (Emitter::Ref ref : info.fromParts(info, emitter, in, attrs))
    results.push_back(emitter.valueOf(ref));
  return results;
}

TEST(ShardingFromParts, PartsOfEqualSizesMakeTheWhole) {
  int compared = 0;
  test::Random random(7);
  for (const OpInfo *info : allOps()) {
    if (!info->fromParts)
      continue;
    ASSERT_GE(info->attrIndex("axis"), 0) << info->name;
    ASSERT_GE(info->attrIndex("keepdims"), 0) << info->name;
    Attrs attrs;
    ASSERT_EQ(completeAttrs(*info, attrs), "");
    attrs[static_cast<size_t>(info->attrIndex("axis"))] = Ints{0, 2};
    for (double offset : {0.0, 1000.0}) // far from 0 what a square loses would show
      for (int64_t parts : {2, 3, 12}) {
        HostTensor x = HostTensor::allocate({f32, Shape{12, 3, 5}});
        for (int64_t i = 0; i < x.type.shape.numElements(); ++i)
          x.as<float>()[i] = static_cast<float>(offset + 4 * random.unit() - 2);
        const ShardingRule rule =
            shardingOf(*info, std::vector{x.type}, inferTypes(*info, std::vector{x.type}, attrs).types, attrs);
        ASSERT_TRUE(rule.factors[static_cast<size_t>(rule.operands[0][0].front())].fromParts);
        const interp::Evaluation whole = interp::run(*info, std::vector{x}, attrs);
        ASSERT_TRUE(whole) << whole.error;
        const std::vector<HostTensor> made = fromParts(*info, x, attrs, parts);
        ASSERT_EQ(made.size(), whole.outputs.size());
        for (size_t r = 0; r < made.size(); ++r)
          EXPECT_EQ(interp::compare(made[r], whole.outputs[r], interp::looseTolerance(f32)), "")
              << info->name << ", result " << r << " of " << parts << " parts";
        ++compared;
      }
  }
  EXPECT_GE(compared, 6);
}

INSTANTIATE_TEST_SUITE_P(Ops, Sharding, testing::ValuesIn(allOps().begin(), allOps().end()),
                         [](const auto &param) { return std::string(param.param->name); });

ShardingRule ruleOf(const char *name, std::vector<TensorType> operands, Attrs attrs) {
  const OpInfo &info = *findOp(name);
  EXPECT_EQ(completeAttrs(info, attrs), "");
  return shardingOf(info, operands, info.infer(info, operands, attrs).types, attrs);
}

TEST(Sharding, CompositesFollowTheirDecomposition) {
  const ShardingRule softmax = ruleOf("softmax", {{f32, {4, 6, 8}}}, {int64_t(1)});
  ASSERT_EQ(softmax.operands[0].size(), 3u);
  EXPECT_EQ(softmax.operands[0], softmax.results[0].size() == 3
                                     ? (ShardingRule::Dims{softmax.results[0][0], {}, softmax.results[0][2]})
                                     : ShardingRule::Dims());
  EXPECT_FALSE(softmax.factors[static_cast<size_t>(softmax.results[0][0][0])].isWhole);
  EXPECT_TRUE(softmax.factors[static_cast<size_t>(softmax.results[0][1][0])].isWhole);
}

TEST(Sharding, AttentionIsCutByHeadsAndImages) {
  const TensorType q{f32, {2, 4, 16, 8}};
  const ShardingRule rule = ruleOf("scaled_dot_product_attention", {q, q, q}, {});
  for (int d : {0, 1}) {
    const int f = rule.results[0][static_cast<size_t>(d)][0];
    EXPECT_FALSE(rule.factors[static_cast<size_t>(f)].isWhole) << d;
    for (const ShardingRule::Dims &operand : rule.operands)
      EXPECT_EQ(operand[static_cast<size_t>(d)], std::vector<int>{f});
  }
}

TEST(Sharding, ReshapesKeepTheOutermostFactor) {
  const ShardingRule merged = ruleOf("reshape", {{f32, {4, 6, 8}}}, {Sizes{24, 8}});
  EXPECT_EQ(merged.operands[0], (ShardingRule::Dims{{0}, {1}, {2}}));
  EXPECT_EQ(merged.results[0], (ShardingRule::Dims{{0, 1}, {2}}));
  EXPECT_TRUE(merged.factors[1].isWhole);
  const ShardingRule split = ruleOf("reshape", {{f32, {24, 8}}}, {Sizes{4, 6, 8}});
  EXPECT_EQ(split.operands[0], (ShardingRule::Dims{{0, 1}, {2}}));
  const ShardingRule mixed = ruleOf("reshape", {{f32, {4, 6}}}, {Sizes{6, 4}});
  EXPECT_EQ(mixed.operands[0], (ShardingRule::Dims{{}, {}}));
}

} // namespace
