#include "test/unit/codegen/GpuCases.h"

#include "codegen/Convolution.h"
#include "codegen/MatrixProduct.h"
#include "codegen/OpKernel.h"
#include "codegen/cpu/CompileKernels.h"
#include "codegen/cuda/library/LibraryKernels.h"
#include "codegen/cuda/loops/Loops.h"
#include "test/support/OpBounds.h"

#include <cstring>

namespace tressel::codegen::test {

using cuda::Kernel;
using op::HostTensor;
using tressel::test::OpCall;

std::string GpuCase::str() const {
  return codegen::OpCall{call.op, call.operands, call.attrs, {}}.str() + " (" + kernel.symbol + ")";
}

namespace {
/// A loop plan of one op.
std::optional<LoopPlan> planOf(const OpCall &call) {
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

} // namespace

std::vector<GpuCase> gpuCasesOf(const OpCall &call, const std::string &symbol, int number, const cuda::Arch &arch) {
  std::vector<GpuCase> cases;
  const auto numBuffers = static_cast<int>(call.operands.size() + call.results.size());
  auto add = [&](GpuSource source, Kernel kernel, std::shared_ptr<LoopPlan> plan = nullptr) {
    cases.push_back({call, {}, {}, std::move(kernel), std::move(plan), source});
  };
  if (call.op->kernelForm) {
    std::vector<TensorType> types = call.operands;
    types.insert(types.end(), call.results.begin(), call.results.end());
    std::vector<int32_t> buffers;
    for (int32_t i = 0; i < numBuffers; ++i)
      buffers.push_back(i);
    if (auto form = call.op->kernelForm(*call.op, call.operands, call.results, call.attrs))
      if (auto kernel = cuda::makeFormKernel(symbol + "d", *form, types, buffers, numBuffers, {}, arch))
        add(GpuSource::Device, std::move(*kernel));
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
      add(GpuSource::Product, std::move(*kernel));
  }
  if (auto plan = planOf(call)) {
    auto kept = std::make_shared<LoopPlan>(std::move(*plan));
    // As chosen, and one other way in turn.
    static constexpr cuda::LoopTuning ways[] = {{.threadsPerRow = 1}, {.threadsPerRow = 32}, {.threads = 256},
                                                {.vector = 1},        {.threadsPerRow = 8},  {.threads = 64}};
    add(GpuSource::Loops, cuda::makeLoopKernel(*kept, {symbol + "l", {}, {}, {}}, numBuffers, arch), kept);
    add(GpuSource::Loops,
        cuda::makeLoopKernel(*kept, {symbol + "t", {}, {}, {}}, numBuffers, arch,
                             ways[static_cast<size_t>(number) % std::size(ways)]),
        kept);
  }
  return cases;
}

std::string problemOf(const GpuCase &each, const cuda::EmulatedModule &module) {
  std::vector<HostTensor> results;
  std::vector<void *> buffers;
  std::vector<int64_t> bytes;
  for (const HostTensor &t : each.inputs)
    buffers.push_back(t.data.get()), bytes.push_back(t.type.bytes());
  for (const TensorType &type : each.call.results) {
    results.push_back(HostTensor::allocate(type));
    std::memset(results.back().data.get(), 0xa5, static_cast<size_t>(type.bytes()));
    buffers.push_back(results.back().data.get()), bytes.push_back(type.bytes());
  }
  const int32_t status = module.run({each.kernel.symbol,
                                     each.kernel.threads,
                                     buffers,
                                     {},
                                     bytes,
                                     /*watchBuffers=*/true,
                                     each.kernel.cluster.number()},
                                    0, each.kernel.blocks.number(), each.kernel.blocks.number());
  if ((status != 0) != !each.want)
    return "the status is " + std::to_string(status) + " where the reference says '" + each.want.error + "'";
  return each.want ? tressel::test::outsideBounds(each.call, each.inputs, results, each.want) : "";
}

} // namespace tressel::codegen::test
