// Every op that is one kernel, in every type: the GPU's kernel, run by the emulator with all its checks, gives what the
// reference evaluation gives. What has no kernel of its own is written down here.
#include "codegen/Convolution.h"
#include "codegen/MatrixProduct.h"
#include "codegen/OpKernel.h"
#include "codegen/cpu/CompileKernels.h"
#include "codegen/cuda/Device.h"
#include "codegen/cuda/Emulate.h"
#include "codegen/cuda/Loops.h"
#include "codegen/cuda/Target.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Evaluate.h"
#include "test/support/RandomOps.h"
#include "tressel/runtime/Error.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <map>

using namespace tressel;
using namespace tressel::codegen;
using op::HostTensor;
using op::OpInfo;
using test::Random;

namespace {

using cuda::Kernel;

/// Where a kernel comes from.
enum class Source : uint8_t { Loops, Device, Product };
constexpr char kLetters[] = {'l', 'd', 'p'};

struct Case {
  test::OpCall call;
  std::vector<HostTensor> inputs;
  op::interp::Evaluation want;
  Kernel kernel;
  std::shared_ptr<LoopPlan> plan; ///< what the kernel may refer to
  Source source = Source::Loops;
  std::string str() const {
    return OpCall{call.op, call.operands, call.attrs, {}}.str() + " (" + kernel.symbol + ")";
  }
};

/// A loop plan of one op.
std::optional<LoopPlan> planOf(const test::OpCall &call) {
  if (call.op->loopForm && call.results.size() == 1)
    if (auto form = call.op->loopForm(*call.op, call.operands, call.results, call.attrs)) {
      KernelGraph graph;
      KernelGraph::Op op;
      op.form = std::move(*form);
      for (const TensorType &type : call.operands) {
        graph.inputs.push_back(graph.addValue(type));
        op.operands.push_back(graph.inputs.back());
      }
      op.result = graph.addValue(call.results.front());
      graph.results = {op.result};
      graph.ops.push_back(std::move(op));
      if (auto plan = buildLoopPlan(graph))
        return plan;
    }
  if (auto kernel = planOpKernel({call.op, call.operands, call.attrs, {}}))
    return kernel->source->plan;
  return std::nullopt;
}

class GpuOps : public testing::TestWithParam<op::Family> {
protected:
  /// The kernels for a call: of each kind that takes it.
  std::vector<Case> casesOf(const test::OpCall &call, int number) const {
    std::vector<Case> cases;
    const std::string symbol = "k" + std::to_string(number);
    const auto numBuffers = static_cast<int>(call.operands.size() + call.results.size());
    auto add = [&](Source source, Kernel kernel, std::shared_ptr<LoopPlan> plan = nullptr) {
      cases.push_back({call, {}, {}, std::move(kernel), std::move(plan), source});
    };
    if (call.op->kernelForm) {
      std::vector<TensorType> types = call.operands;
      types.insert(types.end(), call.results.begin(), call.results.end());
      std::vector<int32_t> buffers;
      for (int32_t i = 0; i < numBuffers; ++i)
        buffers.push_back(i);
      if (auto form = call.op->kernelForm(*call.op, call.operands, call.results, call.attrs))
        if (auto kernel = cuda::makePrebuiltKernel(symbol + "d", *form, types, buffers, numBuffers, {}, arch))
          add(Source::Device, std::move(*kernel));
    }
    const DType type = call.results.front().dtype;
    const bool isFloat = type == f32 || type == f16 || type == bf16;
    if (call.operands.size() == 2 && call.results.size() == 1 && isFloat && call.operands[0].dtype == type &&
        call.operands[1].dtype == type && call.results[0].bytes() > 0 && call.operands[0].bytes() > 0 &&
        call.operands[1].bytes() > 0) {
      const BinaryRoot root{call.op, call.attrs, call.operands, call.results[0]};
      cuda::Epilogue epilogue;
      epilogue.rootBuffer = 2, epilogue.type = type, epilogue.numBuffers = 3;
      std::optional<Kernel> kernel;
      if (auto convolution = asConvolution(root))
        kernel = cuda::makeConvolutionKernel(symbol + "p", *convolution, type, {0, 1}, epilogue, {}, arch);
      else if (auto product = asMatrixProduct(root))
        kernel = cuda::makeProductKernel(symbol + "p", *product, type, {product->leftOperand, product->rightOperand},
                                         epilogue, {}, arch);
      if (kernel)
        add(Source::Product, std::move(*kernel));
    }
    if (auto plan = planOf(call)) {
      auto kept = std::make_shared<LoopPlan>(std::move(*plan));
      // As chosen, and one other way in turn.
      static constexpr cuda::LoopTuning ways[] = {{.threadsPerRow = 1}, {.threadsPerRow = 32}, {.threads = 256},
                                                  {.vector = 1},        {.threadsPerRow = 8},  {.threads = 64}};
      add(Source::Loops, cuda::makeLoopKernel(*kept, {symbol + "l", {}, {}, {}}, numBuffers, arch), kept);
      add(Source::Loops,
          cuda::makeLoopKernel(*kept, {symbol + "t", {}, {}, {}}, numBuffers, arch,
                               ways[static_cast<size_t>(number) % std::size(ways)]),
          kept);
    }
    return cases;
  }

  void run(const Case &each, const cuda::EmulatedModule &module) const {
    std::vector<HostTensor> operands, results;
    std::vector<void *> buffers;
    std::vector<int64_t> bytes;
    for (const HostTensor &t : each.inputs)
      buffers.push_back(t.data.get()), bytes.push_back(t.type.bytes());
    for (const TensorType &type : each.call.results) {
      results.push_back(HostTensor::allocate(type));
      std::memset(results.back().data.get(), 0xa5, static_cast<size_t>(type.bytes()));
      buffers.push_back(results.back().data.get()), bytes.push_back(type.bytes());
    }
    int32_t status = 0;
    try {
      status = module.run({each.kernel.symbol, each.kernel.threads, buffers, {}, bytes, true}, 0, each.kernel.blocks,
                          each.kernel.blocks);
    } catch (const Error &error) {
      ADD_FAILURE() << each.str() << ": " << error.what();
      return;
    }
    EXPECT_EQ(status != 0, !each.want) << each.str() << ": " << each.want.error;
    for (size_t i = 0; each.want && i < results.size(); ++i)
      EXPECT_EQ(op::interp::compare(results[i], each.want.outputs[i],
                                    op::interp::looseTolerance(results[i].type.dtype)),
                "")
          << each.str();
  }

  const cuda::Arch &arch = cuda::findArch("sm_90");
};

/// Integers of the whole range for what only compares and moves; NaN for what loops compute, which agree on what 0 * NaN is.
test::Values valuesFor(const OpInfo &info, int number) {
  if (info.family == op::Family::Contraction || info.family == op::Family::Convolution)
    return test::Values::Domain;
  return number % 2 ? test::Values::Special : info.kernelForm ? test::Values::Wide : test::Values::Domain;
}

/// What has no kernel for GPUs in any type, and why. All run as programs of other ops.
constexpr const char *kSeveral = "several loop nests", *kResults = "several results that are moved", *kTables = "needs constants",
                     *kIsOther = "is written with others";
const std::map<std::string, std::string> without = {
    {"permutation", kSeveral},    {"stack", kSeveral},
    {"unstack", kResults},        {"diagonal", kTables},
    {"trace", kTables},           {"broadcast_arrays", kResults},
    {"meshgrid", kResults},       {"einsum", kIsOther},
    {"outer", kIsOther},          {"tensordot", kIsOther},
    {"vecdot", kIsOther},         {"cross", kIsOther},
    {"conv_transpose", kSeveral}, {"one_hot", kTables},
    {"batch_norm_train", kSeveral}, {"group_norm", kSeveral},
    {"instance_norm", kSeveral},  {"nll_loss", kSeveral},
    {"lstm_cell", kSeveral},      {"gru_cell", kSeveral},
    {"adaptive_avg_pool", kSeveral}, {"adaptive_max_pool", kSeveral},
};

TEST_P(GpuOps, AgreeWithReference) {
  const cuda::Target target(arch);
  std::string table;
  int numKernels = 0;
  for (size_t number = 0; number < op::allOps().size(); ++number) {
    const OpInfo &info = *op::allOps()[number];
    if (info.family != GetParam() || info.hasEffects || info.isView)
      continue;
    // All calls of an op are one module.
    std::vector<Case> cases;
    std::map<DType, std::map<Source, int>> counts;
    int possible = 0;
    for (int type = 0; type < kNumDTypes; ++type) {
      Random random(1000 * number + static_cast<uint64_t>(type));
      int calls = 0;
      for (int tries = 0; tries < 30 && calls < 2; ++tries) {
        // A small one, and one of several blocks and vectors with a rest.
        test::ShapeLimits limits{.maxRank = calls ? 3 : 4, .maxSize = calls ? 33 : 5, .zeroSize = tries == 7 ? 0.5 : 0};
        const auto call = test::proposeCall(info, static_cast<DType>(type), random, limits);
        if (!call || call->results.empty())
          continue;
        ++possible;
        auto found = casesOf(*call, static_cast<int>(cases.size()) * kNumDTypes + type);
        if (found.empty())
          continue;
        ++calls;
        std::vector<HostTensor> inputs;
        for (size_t i = 0; i < call->operands.size(); ++i)
          inputs.push_back(test::randomOperand(*call, i, random, valuesFor(info, tries)));
        const op::interp::Evaluation want = op::interp::run(info, inputs, call->attrs);
        for (Case &each : found) {
          each.inputs = inputs, each.want = want;
          ++counts[static_cast<DType>(type)][each.source];
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
      EXPECT_TRUE(reason != without.end() || !possible || info.kernelForm) << info.name << " has no kernel for GPUs";
    else
      EXPECT_TRUE(reason == without.end()) << info.name << " has a kernel: " << cases.front().str();
    if (cases.empty())
      continue;
    numKernels += static_cast<int>(cases.size());
    try {
      llvm::LLVMContext context;
      llvm::Module module(info.name, context);
      for (const Case &each : cases)
        each.kernel.emit(module);
      target.optimize(module);
      const auto emulated = cuda::EmulatedModule::create(module);
      for (const Case &each : cases)
        run(each, *emulated);
    } catch (const Error &error) {
      ADD_FAILURE() << info.name << ": " << error.what();
    }
  }
  std::string head(30, ' ');
  for (int type = 0; type < kNumDTypes; ++type)
    head += " " + std::string(nameOf(static_cast<DType>(type))) + std::string(6 - nameOf(static_cast<DType>(type)).size(), ' ');
  std::cout << numKernels << " kernels; l: of a loop plan, d: of the device library, p: a product\n" << head << "\n" << table;
}

std::vector<op::Family> families() {
  std::vector<op::Family> all;
  for (const OpInfo *info : op::allOps())
    if (std::ranges::find(all, info->family) == all.end())
      all.push_back(info->family);
  return all;
}
std::string familyName(const testing::TestParamInfo<op::Family> &info) {
  static constexpr const char *names[] = {"Elementwise", "Reduction", "Contraction", "Convolution", "Window",
                                          "Shape",       "Indexing",  "Ordering",    "Control",     "Random",
                                          "Collective",  "Composite", "Constant",    "Custom"};
  return names[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Families, GpuOps, testing::ValuesIn(families()), familyName);

} // namespace
