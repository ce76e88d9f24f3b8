// Every op that is one loop nest, as a kernel for GPUs, on calls made up at random: what the reference evaluation
// gives.
#include "CudaLoopHarness.h"
#include "codegen/OpKernel.h"
#include "ir/interpreter/Evaluate.h"
#include "ir/op/Infer.h"
#include "test/support/OpBounds.h"

using namespace tressel;
using namespace tressel::codegen;
using namespace tressel::codegen::test;
using op::HostTensor;
using op::OpInfo;
using tressel::test::Random;

namespace {

std::optional<LoopPlan> planOf(const OpInfo &info, const tressel::test::OpCall &call,
                               const std::vector<Size> &symbols) {
  if (info.loopForm && call.results.size() == 1)
    if (auto form = info.loopForm(info, call.operands, call.results, call.attrs)) {
      Graph g;
      std::vector<int32_t> operands;
      for (const TensorType &type : call.operands)
        operands.push_back(g.input(type));
      g.results = {g.op(std::move(*form), operands, call.results[0])};
      return buildLoopPlan(g);
    }
  const auto planned = planOpKernel({&info, call.operands, call.attrs, symbols});
  if (!planned || planned->source->bitcode)
    return {};
  return planned->source->plan;
}

cuda::LoopTuning randomTuning(Random &random) {
  cuda::LoopTuning tuning;
  if (random.chance(0.5))
    tuning.threadsPerRow = 1 << random.below(9);
  if (random.chance(0.3))
    tuning.threads = 32 << random.below(4);
  if (random.chance(0.3))
    tuning.vector = 1 << random.below(4);
  return tuning;
}

/// The same call over a symbol: every size that is `value` becomes it, if the op accepts that and gives the same
/// results.
std::optional<tressel::test::OpCall> symbolic(const tressel::test::OpCall &call, Size value, Size symbol) {
  tressel::test::OpCall out = call;
  for (TensorType &type : out.operands)
    for (Size &size : type.shape)
      size = size == value ? symbol : size;
  const op::Inferred inferred = op::inferTypes(*call.op, out.operands, out.attrs);
  if (!inferred || inferred.types.size() != call.results.size())
    return {};
  dim::Values values;
  values.bind(symbol, value);
  for (size_t i = 0; i < call.results.size(); ++i)
    if (!dim::isKnown(inferred.types[i].shape) ||
        dim::evaluate(inferred.types[i].shape, values) != call.results[i].shape)
      return {};
  out.results = inferred.types;
  return out;
}

class CudaOps : public testing::TestWithParam<const OpInfo *> {
protected:
  /// Whether the call is one loop nest, which is then run and compared.
  bool compare(const tressel::test::OpCall &call, const std::vector<HostTensor> &inputs, Random &random,
               const std::vector<Size> &symbols = {}, const dim::Values &values = {}) {
    const OpInfo &info = *GetParam();
    const auto plan = planOf(info, call, symbols);
    if (!plan)
      return false;
    const op::interp::Evaluation want = op::interp::run(info, inputs, call.attrs);
    const auto &arch = random.pick(cuda::architectures());
    const GpuKernel kernel(*plan, call.results, randomTuning(random), symbols, arch.name);
    SCOPED_TRACE(kernel.kernel.text);
    std::vector<Data> operands;
    std::vector<Data *> buffers;
    for (const HostTensor &t : inputs) {
      operands.emplace_back(t.type);
      std::memcpy(operands.back().bytes.data(), t.data.get(), static_cast<size_t>(t.type.bytes()));
    }
    for (Data &d : operands)
      buffers.push_back(&d);
    std::vector<Data> got = kernel.run(buffers, values, want ? 0 : runtime::kKernelIndexOutOfRange);
    std::vector<HostTensor> results;
    for (const Data &data : got) {
      results.push_back(HostTensor::allocate(data.type));
      std::memcpy(results.back().data.get(), data.bytes.data(), static_cast<size_t>(data.type.bytes()));
    }
    tressel::test::OpCall sized = call; // by their numbers
    for (size_t i = 0; i < inputs.size(); ++i)
      sized.operands[i] = inputs[i].type;
    for (size_t i = 0; i < results.size(); ++i)
      sized.results[i] = results[i].type;
    if (want)
      EXPECT_EQ(tressel::test::outsideBounds(sized, inputs, results, want), "") << info.name;
    return true;
  }
};

TEST_P(CudaOps, AgreeWithReference) {
  using tressel::test::Values;
  const OpInfo &info = *GetParam();
  const bool pointwise = info.family == op::Family::Elementwise;
  int compared = 0;
  for (int type = 0; type < kNumDTypes; ++type) {
    Random random(17 + static_cast<uint64_t>(type));
    int ofType = 0;
    for (int tries = 0; tries < 20 && ofType < 2; ++tries) {
      const auto call =
          tressel::test::proposeCall(info, static_cast<DType>(type), random,
                                     {.maxSize = tries % 2 ? 5 : 12, .zeroSize = tries % 4 == 3 ? 0.5 : 0});
      if (!call)
        continue;
      const bool ofFloats = isFloat(call->results[0].dtype);
      // Sums of the greatest integers as floats would cancel; a product with padding has no NaN in the reference.
      const Values values = tries % 2 && (pointwise || info.family == op::Family::Reduction) ? Values::Special
                            : pointwise && !ofFloats                                         ? Values::Wide
                                                                                             : Values::Domain;
      std::vector<HostTensor> inputs;
      for (size_t i = 0; i < call->operands.size(); ++i)
        inputs.push_back(tressel::test::randomOperand(*call, i, random, values));
      if (!compare(*call, inputs, random))
        continue;
      ++ofType;
      const Size n = dim::symbol("n", 0),
                 size = call->operands.empty() || call->operands[0].rank() == 0 ? 1 : call->operands[0].shape[0];
      dim::Values sizes;
      sizes.bind(n, size);
      if (size != 1)
        if (const auto sized = symbolic(*call, size, n))
          compare(*sized, inputs, random, {n}, sizes);
    }
    compared += ofType;
  }
  EXPECT_GT(compared, 0) << "no call is a loop nest";
}

/// Whether some call is one loop nest. GpuOpsTest lists the ops that have no kernel of their own.
bool isOneNest(const OpInfo &info) {
  for (int type = 0; type < kNumDTypes; ++type) {
    Random random(17 + static_cast<uint64_t>(type));
    for (int tries = 0; tries < 4; ++tries)
      if (const auto call = tressel::test::proposeCall(info, static_cast<DType>(type), random, {.maxSize = 12}))
        if (planOf(info, *call, {}))
          return true;
  }
  return false;
}

std::vector<const OpInfo *> opsThatLoop() {
  std::vector<const OpInfo *> ops;
  for (const OpInfo *info : op::allOps())
    if (!info->hasEffects && (info->loopForm || info->decompose) &&
        (info->family == op::Family::Elementwise || info->family == op::Family::Reduction || isOneNest(*info)))
      ops.push_back(info);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Ops, CudaOps, testing::ValuesIn(opsThatLoop()),
                         [](const auto &param) { return std::string(param.param->name); });

} // namespace
