// Every op over symbolic sizes: what its rules refuse is written down here, everything else is compiled once and
// compared with the interpreter at several sizes.
#include "ir/graph/Graph.h"
#include "ir/op/Infer.h"
#include "test/support/RandomOps.h"
#include "test/support/SizedRun.h"
#include "tressel/runtime/Error.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace tressel;
using namespace tressel::test;
using op::Ints;

namespace {

const Size n = dim::symbol("n", 1, 512);

/// A call one of whose sizes is a symbol.
struct SymbolicCall {
  const op::OpInfo *op;
  std::vector<TensorType> operands;
  op::Attrs attrs;
  std::vector<TensorType> results;
};

/// Sizes that are `value` become the symbol: in the operands, and in the attributes where `named`; with `multiples`,
/// those that are a multiple of it become one of the symbol.
SymbolicCall substituted(const OpCall &call, int64_t value, bool named, bool multiples) {
  SymbolicCall out{call.op, call.operands, call.attrs, {}};
  auto replace = [&](auto &sizes) {
    for (Size &size : sizes)
      if (size > 0 && (multiples ? size % value == 0 : size == value))
        size = n * (size / value);
  };
  for (TensorType &type : out.operands)
    replace(type.shape);
  for (op::Attr &attr : out.attrs)
    if (auto *list = std::get_if<op::Sizes>(&attr); list && named)
      replace(*list);
  return out;
}

/// The call over the symbol in place of `value`, if there is a way that the op accepts and that gives the same results
/// for it.
std::optional<SymbolicCall> symbolic(const OpCall &call, int64_t value, std::string &error) {
  const dim::Values values = sizes({{n, value}});
  for (bool multiples : {false, true})
    for (bool named : {false, true}) {
      SymbolicCall attempt = substituted(call, value, named, multiples);
      op::Inferred inferred = op::inferTypes(*call.op, attempt.operands, attempt.attrs);
      bool same = inferred && inferred.types.size() == call.results.size();
      for (size_t i = 0; same && i < inferred.types.size(); ++i)
        same = dim::isKnown(inferred.types[i].shape) &&
               dim::evaluate(inferred.types[i].shape, values) == call.results[i].shape;
      attempt.results = std::move(inferred.types);
      if (same)
        return attempt;
      if (error.empty())
        error = inferred.error;
    }
  return {};
}

/// Sizes above 1 of the operands.
std::set<int64_t> sizesOf(const OpCall &call) {
  std::set<int64_t> sizes;
  for (const TensorType &type : call.operands)
    for (Size size : type.shape)
      if (size > 1)
        sizes.insert(size.number());
  return sizes;
}

/// Which rules refuse symbols, and why they must. A rule that is not here refuses none.
const std::map<std::string, std::string> refused = {
    {"conv (C1)", "a window is unrolled"},
    {"conv (C3)", "groups are convolutions of their own"},
    {"conv_by_weights (C3)", "groups are products of their own"},
    {"conv_by_weights (C4)", "the number of places follows from the image's size"},
    {"conv_transpose (C1)", "a window is unrolled"},
    {"conv_transpose (C4)", "the result could be empty"},
    {"cross (C3)", "vectors have three elements"},
    {"dynamic_slice (C1)", "the number of starts is a rank"},
    {"dynamic_update_slice (C1)", "the number of starts is a rank"},
    {"gather_nd (C3)", "the length of a place is a rank"},
    {"group_norm (C3)", "channels must divide"},
    {"gru_cell (C2)", "gates are a multiple of the units"},
    {"lstm_cell (C2)", "gates are a multiple of the units"},
    {"reshape (C2)", "the number of elements must stay"},
    {"scaled_dot_product_attention (C2)", "heads of a group must divide"},
    {"scatter_nd (C2)", "the length of a place is a rank"},
    {"split (C2)", "the pieces must add up"},
    {"unstack (C2)", "the number of results"},
};

TEST(SymbolicOps, RefusalsAreDeliberate) {
  Random random(5);
  std::set<std::string> seen;
  for (const op::OpInfo *info : op::allOps()) {
    int accepted = 0, tried = 0;
    for (int i = 0; i < 600; ++i) {
      const auto call =
          proposeCall(*info, random.pick(std::vector<DType>{f32, f32, i64, bool_}), random, {.maxSize = 9});
      for (int64_t size : call ? sizesOf(*call) : std::set<int64_t>()) {
        ++tried;
        std::string error;
        if (symbolic(*call, size, error)) {
          ++accepted;
          continue;
        }
        const size_t rule = error.find("(C");
        const std::string where =
            std::string(info->name) + (rule == std::string::npos ? "" : " " + error.substr(rule, 4));
        EXPECT_TRUE(refused.contains(where)) << where << ": " << error;
        seen.insert(where);
      }
    }
    EXPECT_TRUE(accepted > 0 || tried == 0) << info->name;
  }
  for (const auto &[where, why] : refused)
    EXPECT_TRUE(seen.contains(where)) << where << " does not refuse symbols: " << why;
}

class CompiledOps : public testing::TestWithParam<int> {
protected:
  CompiledOps() : context(mlir::MLIRContext::Threading::DISABLED) {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
  }
  mlir::OwningOpRef<mlir::ModuleOp> program(const SymbolicCall &call) {
    ProgramBuilder b(context);
    std::vector<mlir::Value> operands;
    for (const TensorType &type : call.operands)
      operands.push_back(b.input(type));
    return b.finish(b.call(*call.op, operands, call.attrs));
  }
  mlir::MLIRContext context;
};
constexpr int kShards = 6;

/// As often as an op accepts them, for a few ways to call it.
TEST_P(CompiledOps, AgreeAtAllSizes) {
  for (size_t i = static_cast<size_t>(GetParam()); i < op::allOps().size(); i += kShards) {
    const op::OpInfo &info = *op::allOps()[i];
    if (info.hasEffects)
      continue;
    Random random(11 + i);
    int compiled = 0;
    for (int tries = 0; tries < 60 && compiled < (info.samples.empty() ? 1 : 3); ++tries) {
      const auto call = proposeCall(info, tries % 3 == 2 ? i64 : f32, random, {.maxRank = 3, .maxSize = 7});
      if (!call || sizesOf(*call).empty())
        continue;
      std::string error;
      const auto sizes = sizesOf(*call);
      const int64_t value = random.pick(std::vector<int64_t>(sizes.begin(), sizes.end()));
      const auto sized = symbolic(*call, value, error);
      if (!sized)
        continue;
      ++compiled;
      std::string text = info.name;
      for (const TensorType &type : sized->operands)
        text += " " + type.str();
      SCOPED_TRACE(text);
      try {
        const auto module = program(*sized);
        SizedRun run(*module);
        for (int64_t size : {value, int64_t(1), int64_t(2), int64_t(35)}) {
          const std::string why = run.differsAt(test::sizes({{n, size}}), {1e-4, 1e-5});
          if (!why.starts_with("the interpreter: ")) // an index that is outside, say
            EXPECT_EQ(why, "") << "at " << size;
        }
      } catch (const Error &e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Symbolic, CompiledOps, testing::Range(0, kShards));

} // namespace
