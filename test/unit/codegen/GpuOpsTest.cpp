// Every op that is one kernel, in every type: the GPU's kernel, run by the emulator with all its checks, gives what the
// reference evaluation gives. What has no kernel of its own is written down here.
#include "codegen/cuda/target/Target.h"
#include "ir/op/Infer.h"
#include "test/support/CardModule.h"
#include "test/unit/codegen/GpuCases.h"
#include "tressel/runtime/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

using namespace tressel;
using namespace tressel::codegen;
using namespace tressel::codegen::test;
using op::HostTensor;
using op::OpInfo;
using tressel::test::Random;

namespace {

constexpr char kLetters[] = {'l', 'd', 'p'};

class GpuOps : public testing::TestWithParam<op::Family> {};

/// Integers of the whole range for what only compares and moves; NaN for what loops compute, which agree on what 0 *
/// NaN is.
tressel::test::Values valuesFor(const OpInfo &info, int number) {
  if (op::isProduct(info.family))
    return tressel::test::Values::Domain;
  return number % 2        ? tressel::test::Values::Special
         : info.kernelForm ? tressel::test::Values::Wide
                           : tressel::test::Values::Domain;
}

/// What has no kernel for GPUs in any type, and why. All run as programs of other ops.
constexpr const char *kSeveral = "several loop nests", *kResults = "several results that are moved",
                     *kTables = "needs constants", *kIsOther = "is written with others";
const std::map<std::string, std::string> without = {
    {"scaled_dot_product_attention", "few queries: see below"},
    {"permutation", kSeveral},
    {"stack", kSeveral},
    {"unstack", kResults},
    {"diagonal", kTables},
    {"trace", kTables},
    {"broadcast_arrays", kResults},
    {"meshgrid", kResults},
    {"einsum", kIsOther},
    {"outer", kIsOther},
    {"tensordot", kIsOther},
    {"vecdot", kIsOther},
    {"cross", kIsOther},
    {"conv_transpose", kSeveral},
    {"one_hot", kTables},
    {"batch_norm_train", kSeveral},
    {"group_norm", kSeveral},
    {"instance_norm", kSeveral},
    {"nll_loss", kSeveral},
    {"multi_margin_loss", kSeveral},
    {"multilabel_margin_loss", kSeveral},
    {"lstm_cell", kSeveral},
    {"gru_cell", kSeveral},
    {"scatter", kIsOther},
    {"adaptive_avg_pool", kSeveral},
    {"adaptive_max_pool", kSeveral},
};

TEST_P(GpuOps, AgreeWithReference) {
  const cuda::Arch &arch = cuda::findArch("sm_90");
  const cuda::Target target(arch);
  std::string table;
  int numKernels = 0;
  for (size_t number = 0; number < op::allOps().size(); ++number) {
    const OpInfo &info = *op::allOps()[number];
    if (info.family != GetParam() || info.hasEffects || info.isView)
      continue;
    // All calls of an op are one module.
    std::vector<GpuCase> cases;
    std::map<DType, std::map<GpuSource, int>> counts;
    int possible = 0;
    for (int type = 0; type < kNumDTypes; ++type) {
      Random random(1000 * number + static_cast<uint64_t>(type));
      int calls = 0;
      for (int tries = 0; tries < 40 && calls < 3; ++tries) {
        // A small one, one of several blocks and vectors with a rest, and one that may be empty.
        const tressel::test::ShapeLimits limits{
            .maxRank = calls == 1 ? 3 : 4, .maxSize = calls == 1 ? 33 : 5, .zeroSize = calls == 2 ? 0.5 : 0};
        const auto call = tressel::test::proposeCall(info, static_cast<DType>(type), random, limits);
        if (!call || call->results.empty())
          continue;
        ++possible;
        const int serial = static_cast<int>(cases.size()) * kNumDTypes + type;
        auto found = gpuCasesOf(*call, "k" + std::to_string(serial), serial, arch);
        if (found.empty())
          continue;
        ++calls;
        std::vector<HostTensor> inputs;
        for (size_t i = 0; i < call->operands.size(); ++i)
          inputs.push_back(tressel::test::randomOperand(*call, i, random, valuesFor(info, tries)));
        const op::interp::Evaluation want = op::interp::run(info, inputs, call->attrs);
        for (GpuCase &each : found) {
          each.inputs = inputs, each.want = want;
          ++counts[static_cast<DType>(type)][each.source];
          EXPECT_TRUE(std::isfinite(each.kernel.seconds) && each.kernel.seconds >= 0)
              << each.str() << ": takes " << each.kernel.seconds << " seconds";
          cases.push_back(std::move(each));
        }
      }
    }
    std::string row = info.name;
    row.resize(std::max<size_t>(row.size(), 30), ' ');
    for (int type = 0; type < kNumDTypes; ++type) {
      std::string cell;
      for (auto [source, count] : counts[static_cast<DType>(type)])
        cell += std::to_string(count) + kLetters[static_cast<int>(source)];
      row += " " + (cell.empty() ? std::string(".") : cell) + std::string(cell.size() < 6 ? 6 - cell.size() : 0, ' ');
    }
    table += row + "\n";
    const auto reason = without.find(info.name);
    if (cases.empty())
      EXPECT_TRUE(reason != without.end() || !possible) << info.name << " has no kernel for GPUs";
    else
      EXPECT_TRUE(reason == without.end()) << info.name << " has a kernel: " << cases.front().str();
    if (cases.empty())
      continue;
    numKernels += static_cast<int>(cases.size());
    try {
      llvm::LLVMContext context;
      llvm::Module module(info.name, context);
      for (const GpuCase &each : cases)
        each.kernel.emit(module);
      target.optimize(module);
      const auto emulated = tressel::test::runnable(module, target);
      for (const GpuCase &each : cases)
        try {
          EXPECT_EQ(problemOf(each, *emulated), "") << each.str();
        } catch (const Error &error) {
          ADD_FAILURE() << each.str() << ": " << error.what();
        }
    } catch (const Error &error) {
      ADD_FAILURE() << info.name << ": " << error.what();
    }
  }
  std::string head(30, ' ');
  for (int type = 0; type < kNumDTypes; ++type)
    head += " " + std::string(nameOf(static_cast<DType>(type))) +
            std::string(6 - nameOf(static_cast<DType>(type)).size(), ' ');
  std::cout << numKernels << " kernels; l: of a loop plan, d: of the device library, p: a product\n"
            << head << "\n"
            << table;
}

/// Kernels of the device library that want more than the sizes above.
struct Sized {
  const char *op;
  std::vector<Shape> shapes;
};
TEST(GpuOpsOfSize, AgreeWithReference) {
  const Sized calls[] = {
      {"matmul", {{70, 96}, {96, 136}}},
      {"matmul", {{3, 33, 40}, {3, 40, 64}}},
      {"matmul", {{2, 200}, {200, 300}}},
      {"matmul", {{40, 2048}, {2048, 72}}}, // of clusters
      {"conv", {{2, 8, 10, 9}, {16, 8, 3, 3}}},
      {"conv", {{1, 16, 40}, {8, 16, 5}}},
      {"scaled_dot_product_attention", {{2, 3, 20, 32}, {2, 3, 24, 32}, {2, 3, 24, 32}}},
      {"scaled_dot_product_attention", {{1, 2, 70, 64}, {1, 2, 100, 64}, {1, 2, 100, 64}}},
  };
  const cuda::Arch &arch = cuda::findArch("sm_90");
  const cuda::Target target(arch);
  for (const Sized &sized : calls)
    for (DType type : {f32, f16, bf16}) {
      const OpInfo &info = *op::findOp(sized.op);
      tressel::test::OpCall call{&info, {}, op::Attrs(info.attrs.size()), {}};
      for (const Shape &shape : sized.shapes)
        call.operands.push_back({type, shape});
      ASSERT_EQ(op::completeAttrs(info, call.attrs), "");
      const op::Inferred inferred = op::inferTypes(info, call.operands, call.attrs);
      ASSERT_TRUE(inferred) << inferred.error;
      call.results = inferred.types;
      Random random(5);
      std::vector<HostTensor> inputs;
      for (size_t i = 0; i < call.operands.size(); ++i)
        inputs.push_back(tressel::test::randomOperand(call, i, random));
      const op::interp::Evaluation want = op::interp::run(info, inputs, call.attrs);
      bool ofLibrary = false;
      for (GpuCase &each : gpuCasesOf(call, "k", 0, arch)) {
        if (each.source == GpuSource::Loops)
          continue;
        ofLibrary = true;
        EXPECT_EQ(each.kernel.cluster != 1, sized.shapes[0].back() == 2048) << each.str();
        each.inputs = inputs, each.want = want;
        llvm::LLVMContext context;
        llvm::Module module(info.name, context);
        each.kernel.emit(module);
        target.optimize(module);
        try {
          EXPECT_EQ(problemOf(each, *tressel::test::runnable(module, target)), "") << each.str();
        } catch (const Error &error) {
          ADD_FAILURE() << each.str() << ": " << error.what();
        }
      }
      EXPECT_TRUE(ofLibrary) << info.name << " of " << call.operands[0].str() << " has no kernel in the device library";
    }
}

std::vector<op::Family> families() {
  std::vector<op::Family> all;
  for (const OpInfo *info : op::allOps())
    if (std::ranges::find(all, info->family) == all.end())
      all.push_back(info->family);
  return all;
}
std::string familyName(const testing::TestParamInfo<op::Family> &info) {
  static constexpr const char *names[] = {"Elementwise",
                                          "Reduction",
                                          "Contraction",
                                          "Convolution",
                                          "ConvolutionByWeights",
                                          "ConvolutionByData",
                                          "Window",
                                          "Shape",
                                          "Indexing",
                                          "Ordering",
                                          "Control",
                                          "Random",
                                          "Collective",
                                          "Composite",
                                          "Constant",
                                          "Custom"};
  static_assert(std::size(names) == static_cast<size_t>(op::Family::Custom) + 1);
  return names[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Families, GpuOps, testing::ValuesIn(families()), familyName);

} // namespace
