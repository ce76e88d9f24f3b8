#include "codegen/cuda/KernelSource.h"

#include "codegen/cpu/KernelSource.h"
#include "codegen/cuda/Device.h"
#include "codegen/cuda/Provider.h"
#include "ir/graph/Graph.h"
#include "passes/Util.h"
#include "tressel/runtime/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace tressel::codegen::cuda {
namespace {

int32_t indexIn(llvm::ArrayRef<mlir::Value> values, mlir::Value value) {
  auto at = llvm::find(values, value);
  return at == values.end() ? -1 : static_cast<int32_t>(at - values.begin());
}

/// What follows a root, as a loop plan over the root's result.
struct Tail {
  std::optional<LoopPlan> plan;
  Epilogue epilogue;
};

/// Nothing if what follows is not point by point, or has no loops.
bool makeTail(const KernelBody &body, llvm::ArrayRef<mlir::Operation *> root, llvm::ArrayRef<mlir::Operation *> after,
              Tail &tail) {
  mlir::Value value = root.back()->getResult(0);
  tail.epilogue.type = graph::fromMlir(value.getType()).dtype;
  tail.epilogue.numBuffers = static_cast<int>(body.inputs.size() + body.results.size());
  const auto numInputs = static_cast<int32_t>(body.inputs.size());
  if (after.empty()) {
    const int32_t result = indexIn(body.results, value);
    tail.epilogue.rootBuffer = numInputs + result;
    return result >= 0 && body.results.size() == 1;
  }
  llvm::SmallVector<mlir::Value> inputs{value};
  std::vector<int32_t> operands{-1};
  for (mlir::Operation *op : after)
    for (mlir::Value v : op->getOperands())
      if (const int32_t at = indexIn(body.inputs, v); at >= 0 && !llvm::is_contained(inputs, v)) {
        inputs.push_back(v);
        operands.push_back(at);
      }
  for (size_t i = 0; i < body.results.size(); ++i)
    operands.push_back(numInputs + static_cast<int32_t>(i));
  auto graph = kernelGraphOf(after, inputs, body.results);
  if (!graph)
    return false;
  tail.plan = buildLoopPlan(*graph);
  if (!tail.plan)
    return false;
  tail.epilogue.rootInput = 0;
  tail.epilogue.signature.symbol = body.symbol;
  tail.epilogue.signature.operands = std::move(operands);
  tail.epilogue.signature.symbols = body.symbols;
  return true;
}

} // namespace

std::optional<Kernel> planLoops(const KernelBody &body, const Arch &arch) {
  auto graph = kernelGraphOf(body.ops, body.inputs, body.results);
  if (!graph)
    return std::nullopt;
  auto plan = buildLoopPlan(*graph);
  if (!plan)
    return std::nullopt;
  KernelSignature signature;
  signature.symbol = body.symbol;
  signature.symbols = body.symbols;
  return makeLoopKernel(*plan, signature, static_cast<int>(body.inputs.size() + body.results.size()), arch);
}

std::optional<RootKernel> planRoot(const KernelBody &body, const Arch &arch) {
  llvm::SmallVector<mlir::Operation *> root, after;
  for (auto [i, op] : llvm::enumerate(body.ops))
    if (passes::isComputation(op) && !op->hasTrait<mlir::OpTrait::ConstantLike>())
      (i < body.rootOps || body.rootOps == 0 ? root : after).push_back(op);
  if (root.size() != 1)
    return std::nullopt;
  mlir::Operation *op = root.front();

  if (std::optional<op::KernelForm> form = passes::kernelFormOf(op); form && after.empty()) {
    std::vector<TensorType> types;
    std::vector<int32_t> buffers;
    for (mlir::Value operand : op->getOperands()) {
      types.push_back(graph::fromMlir(operand.getType()));
      buffers.push_back(indexIn(body.inputs, operand));
      if (buffers.back() < 0)
        return std::nullopt; // a constant
    }
    for (mlir::Value result : op->getResults()) {
      types.push_back(graph::fromMlir(result.getType()));
      const int32_t at = indexIn(body.results, result);
      buffers.push_back(at < 0 ? -1 : static_cast<int32_t>(body.inputs.size()) + at);
    }
    if (auto kernel =
            makePrebuiltKernel(body.symbol, *form, types, buffers,
                               static_cast<int>(body.inputs.size() + body.results.size()), body.symbols, arch))
      return RootKernel{std::move(*kernel)};
    return std::nullopt;
  }

  if (op->getNumResults() != 1)
    return std::nullopt;
  const llvm::SmallVector<mlir::Value> results(op->getResults());
  llvm::SetVector<mlir::Value> inputs;
  for (mlir::Value operand : op->getOperands())
    inputs.insert(operand);
  const auto binary = binaryRootOf({op, root, inputs.getArrayRef(), results});
  Tail tail;
  if (!binary || !makeTail(body, root, after, tail))
    return std::nullopt;
  if (tail.plan)
    tail.epilogue.plan = &*tail.plan;
  auto bufferOf = [&](int32_t operand) { return indexIn(body.inputs, op->getOperand(static_cast<unsigned>(operand))); };
  std::optional<Kernel> kernel;
  if (auto convolution = asConvolution(*binary)) {
    const RootBuffers buffers{bufferOf(0), bufferOf(1)};
    if (buffers.left >= 0 && buffers.right >= 0)
      kernel =
          makeConvolutionKernel(body.symbol, *convolution, binary->type(), buffers, tail.epilogue, body.symbols, arch);
  } else if (auto product = asMatrixProduct(*binary)) {
    const RootBuffers buffers{bufferOf(product->leftOperand), bufferOf(product->rightOperand)};
    if (buffers.left >= 0 && buffers.right >= 0)
      kernel = makeProductKernel(body.symbol, *product, binary->type(), buffers, tail.epilogue, body.symbols, arch);
  }
  if (!kernel)
    return std::nullopt;
  return RootKernel{std::move(*kernel), /*takesEpilogue=*/true};
}

Kernel makeKernel(graph::KernelOp kernel, const Arch &arch) {
  mlir::Block &block = kernel.getBody().front();
  llvm::SmallVector<mlir::Operation *> ops;
  for (mlir::Operation &op : block.without_terminator())
    ops.push_back(&op);
  const llvm::SmallVector<mlir::Value> inputs(block.getArguments()), results(block.getTerminator()->getOperands());
  KernelBody body{kernel.getSymName().str(), ops, inputs, results, static_cast<size_t>(kernel.getRootOps().value_or(0)),
                  graph::symbolsOf(kernel)};
  std::optional<Kernel> made;
  if (kernel.getProvider() == kLoopProvider)
    made = planLoops(body, arch);
  else if (auto root = planRoot(body, arch))
    made = std::move(root->kernel);
  if (!made)
    throw InternalError("the kernel '" + body.symbol + "' was bid for, and cannot be made");
  return std::move(*made);
}

} // namespace tressel::codegen::cuda
