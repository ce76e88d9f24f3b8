#include "codegen/cuda/loops/KernelSource.h"

#include "codegen/cuda/Library.h"
#include "codegen/cuda/Provider.h"
#include "codegen/cuda/library/DeviceTiles.h"
#include "codegen/cuda/loops/Kernel.h"
#include "codegen/cuda/loops/Loops.h"
#include "codegen/cuda/loops/Root.h"
#include "codegen/cuda/tuning/Tunings.h"
#include "codegen/loops/FromGraph.h"
#include "codegen/loops/KernelParts.h"
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

/// Sets what follows; false if that is not point by point, or has no loops.
bool makeTail(const KernelBody &body, llvm::ArrayRef<mlir::Operation *> after, mlir::Value value, Root &root) {
  root.epilogue.type = graph::fromMlir(value.getType()).dtype;
  root.epilogue.numBuffers = static_cast<int>(body.inputs.size() + body.results.size());
  const auto numInputs = static_cast<int32_t>(body.inputs.size());
  root.result = numInputs;
  if (after.empty()) {
    const int32_t result = indexIn(body.results, value);
    root.epilogue.rootBuffer = numInputs + result;
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
  llvm::SmallVector<mlir::Value> results;
  for (auto [i, result] : llvm::enumerate(body.results)) {
    const int32_t buffer = numInputs + static_cast<int32_t>(i);
    if (result == value) {
      root.epilogue.rootBuffer = buffer;
      continue;
    }
    results.push_back(result);
    operands.push_back(buffer);
  }
  auto graph = kernelGraphOf(after, inputs, results);
  auto plan = graph ? buildLoopPlan(*graph) : std::nullopt;
  if (!plan)
    return false;
  root.tail = std::make_shared<const LoopPlan>(std::move(*plan));
  root.epilogue.plan = root.tail.get();
  root.epilogue.rootInput = 0;
  root.epilogue.signature.symbol = body.symbol;
  root.epilogue.signature.operands = std::move(operands);
  root.epilogue.signature.symbols = body.symbols;
  return true;
}

/// The ops of the root, and those behind it.
void divide(const KernelBody &body, llvm::SmallVectorImpl<mlir::Operation *> &root,
            llvm::SmallVectorImpl<mlir::Operation *> &after) {
  for (auto [i, op] : llvm::enumerate(body.ops))
    if (passes::isComputation(op) && !op->hasTrait<mlir::OpTrait::ConstantLike>())
      (i < body.rootOps || body.rootOps == 0 ? root : after).push_back(op);
}

} // namespace

namespace {

std::optional<Kernel> makeRoot(const Root &root, const KernelBody &body, const Arch &arch, const Cut &cut);

/// Gives each way to cut the loops its kernel; nothing if they are no one nest, or several, which are not cut in other
/// ways. A product or convolution is also made of tiles.
class LoopMaker {
public:
  LoopMaker(const KernelBody &body, const Arch &arch) : body_(body), arch_(arch) {
    if (auto graph = kernelGraphOf(body.ops, body.inputs, body.results))
      parts_ = planParts(*graph);
  }
  bool hasOneNest() const { return parts_ && parts_->size() == 1; }
  std::optional<Kernel> operator()(const Cut &cut) const {
    if (!cut.tile.empty()) {
      const auto root = Root::of(body_);
      return root ? makeRoot(*root, body_, arch_, cut) : std::nullopt;
    }
    if (!parts_)
      return std::nullopt;
    const auto numBuffers = static_cast<int>(body_.inputs.size() + body_.results.size());
    if (parts_->size() > 1)
      return cut == Cut() ? makePartsKernel(body_.symbol, *parts_, numBuffers, arch_) : std::nullopt;
    KernelSignature signature;
    signature.symbol = body_.symbol;
    signature.symbols = body_.symbols;
    return makeLoopKernel(parts_->front().plan, signature, numBuffers, arch_, cut.loops);
  }

private:
  const KernelBody &body_;
  const Arch &arch_;
  std::optional<std::vector<KernelPart>> parts_;
};

/// The same for a root, by its tiles, or as loops that are cut so.
std::optional<Kernel> makeRoot(const Root &root, const KernelBody &body, const Arch &arch, const Cut &cut) {
  if (cut.loops != LoopTuning())
    return cut.tile.empty() ? LoopMaker(body, arch)(cut) : std::nullopt;
  return root.convolution ? makeConvolutionKernel(body.symbol, *root.convolution, root.type, root.buffers,
                                                  root.epilogue, body.symbols, arch, cut.tile)
                          : makeProductKernel(body.symbol, *root.product, root.type, root.buffers, root.epilogue,
                                              body.symbols, arch, cut.tile, std::max(1, cut.parts));
}

/// Ways to cut loops, in no order.
std::vector<Cut> loopCuts() {
  std::vector<Cut> cuts;
  for (int threads : {0, 64, 128, 256, 512, 1024})
    for (int row : {0, 1, 8, 32, 64, 128, 256, 512})
      for (int vector : {0, 1, 2, 4, 8})
        if (threads || row || vector)
          cuts.push_back({.loops = {.threads = threads, .threadsPerRow = row, .vector = vector}, .tile = {}});
  return cuts;
}
std::vector<Cut> tileCuts(const Root &root, const Arch &arch) {
  std::vector<Cut> cuts;
  auto add = [&](std::span<const TileShape> tiles) {
    for (const TileShape &tile : tiles)
      for (int parts = 1; parts <= (root.product ? arch.clusterBlocks : 1); parts *= 2)
        cuts.push_back({.loops = {}, .tile = tile.name, .parts = parts > 1 ? parts : 0});
  };
  add(tileShapes(root.type));
  if (root.product)
    add(copiedTiles(arch));
  return cuts;
}

} // namespace

std::optional<Kernel> planLoops(const KernelBody &body, const Arch &arch) { return tuned(arch, LoopMaker(body, arch)); }

double Root::flops() const {
  if (convolution)
    return hinted(convolution->batch) * flopsPerImage(*convolution);
  return 2 * hinted(product->batch) * hinted(product->m) * hinted(product->n) * hinted(product->k);
}

std::optional<Root> Root::of(const KernelBody &body) {
  llvm::SmallVector<mlir::Operation *> ops, after;
  divide(body, ops, after);
  if (ops.size() != 1 || ops.front()->getNumResults() != 1)
    return std::nullopt;
  mlir::Operation *op = ops.front();
  const llvm::SmallVector<mlir::Value> results(op->getResults());
  llvm::SetVector<mlir::Value> inputs;
  for (mlir::Value operand : op->getOperands())
    inputs.insert(operand);
  const auto binary = binaryRootOf({op, ops, inputs.getArrayRef(), results});
  if (!binary)
    return std::nullopt;
  Root root;
  root.type = binary->type();
  auto bufferOf = [&](int32_t operand) { return indexIn(body.inputs, op->getOperand(static_cast<unsigned>(operand))); };
  if ((root.convolution = asConvolution(*binary)))
    root.buffers = {bufferOf(0), bufferOf(1)};
  else if ((root.product = asMatrixProduct(*binary)))
    root.buffers = {bufferOf(root.product->leftOperand), bufferOf(root.product->rightOperand)};
  if (!(root.convolution || root.product) || root.buffers.left < 0 || root.buffers.right < 0 ||
      !makeTail(body, after, results.front(), root))
    return std::nullopt;
  return root;
}

std::optional<FormCall> FormCall::of(const KernelBody &body) {
  llvm::SmallVector<mlir::Operation *> ops, after;
  divide(body, ops, after);
  if (ops.size() != 1 || !after.empty())
    return std::nullopt;
  mlir::Operation *op = ops.front();
  std::optional<op::KernelForm> form = passes::kernelFormOf(op);
  if (!form)
    return std::nullopt;
  FormCall call{std::move(*form), {}, {}};
  for (mlir::Value operand : op->getOperands()) {
    call.types.push_back(graph::fromMlir(operand.getType()));
    call.buffers.push_back(indexIn(body.inputs, operand));
    if (call.buffers.back() < 0)
      return std::nullopt; // a constant
  }
  for (mlir::Value result : op->getResults()) {
    call.types.push_back(graph::fromMlir(result.getType()));
    const int32_t at = indexIn(body.results, result);
    call.buffers.push_back(at < 0 ? -1 : static_cast<int32_t>(body.inputs.size()) + at);
  }
  return call;
}

std::optional<RootKernel> planRoot(const KernelBody &body, const Arch &arch) {
  if (const auto call = FormCall::of(body)) {
    auto kernel = makeFormKernel(body.symbol, call->form, call->types, call->buffers,
                                 static_cast<int>(body.inputs.size() + body.results.size()), body.symbols, arch);
    return kernel ? std::optional(RootKernel{std::move(*kernel)}) : std::nullopt;
  }
  const auto root = Root::of(body);
  if (!root)
    return std::nullopt;
  auto kernel = tuned(arch, [&](const Cut &cut) { return makeRoot(*root, body, arch, cut); });
  if (!kernel)
    return std::nullopt;
  return RootKernel{std::move(*kernel), /*takesEpilogue=*/true};
}

std::optional<LibraryTuning> libraryTuning(const KernelBody &body, const Arch &arch) {
  const auto root = Root::of(body);
  const auto byModel = root ? makeRoot(*root, body, arch, {}) : std::nullopt;
  const auto entry = byModel ? currentTuning(arch, *byModel) : std::nullopt;
  if (!entry || entry->librarySeconds <= 0)
    return std::nullopt;
  return LibraryTuning{entry->librarySeconds / entry->seconds,
                       byModel->seconds * entry->seconds / entry->defaultSeconds};
}

KernelBody bodyOf(const passes::Candidate &candidate) {
  KernelBody body{"k", candidate.ops, candidate.inputs, candidate.results, 0, {}};
  for (mlir::Operation *op : candidate.ops)
    for (Size symbol : graph::symbolsOf(op))
      if (!llvm::is_contained(body.symbols, symbol))
        body.symbols.push_back(symbol);
  return body;
}

namespace {

/// An outlined kernel's body, and what it names.
struct Outlined {
  explicit Outlined(graph::KernelOp kernel)
      : inputs(kernel.getBody().front().getArguments()),
        results(kernel.getBody().front().getTerminator()->getOperands()) {
    for (mlir::Operation &op : kernel.getBody().front().without_terminator())
      ops.push_back(&op);
    body = {kernel.getSymName().str(), ops, inputs, results, static_cast<size_t>(kernel.getRootOps().value_or(0)),
            graph::symbolsOf(kernel)};
  }
  Outlined(const Outlined &) = delete;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<mlir::Value> inputs, results;
  KernelBody body;
};

} // namespace

std::vector<Variant> variantsOf(graph::KernelOp kernel, const Arch &arch, size_t most) {
  Outlined outlined(kernel);
  KernelBody &body = outlined.body;
  const bool keeps = graph::floatModeOf(kernel) == runtime::FloatMode::Keep;
  std::vector<Variant> all;
  const std::string symbol = body.symbol;
  auto add = [&](std::vector<Variant> &to, const Cut &cut, auto &&make) {
    body.symbol = symbol + "_v" + std::to_string(all.size() + (&to == &all ? 0 : to.size()));
    std::optional<Kernel> made = make(cut);
    auto isSame = [&](const Variant &other) { return other.kernel.text == made->text; };
    if (made && llvm::none_of(all, isSame) && llvm::none_of(to, isSame))
      to.push_back({cut, std::move(*made)});
  };
  const LoopMaker loops(body, arch);
  const auto root = Root::of(body);
  auto tiles = [&](const Cut &cut) { return makeRoot(*root, body, arch, cut); };
  const bool isLoops = kernel.getProvider() == kLoopProvider;
  if (isLoops) {
    add(all, {}, loops);
    if (!loops.hasOneNest())
      return {};
    for (const Cut &cut : loopCuts())
      add(all, cut, loops);
  } else if (root) {
    add(all, {}, tiles);
  }
  if (root)
    for (const Cut &cut : tileCuts(*root, arch))
      add(all, cut, tiles);
  if (root && !isLoops && !all.empty() && loops.hasOneNest()) {
    // The few that are predicted to be the fastest: there are many.
    constexpr size_t kLoops = 4;
    std::vector<Variant> some;
    for (const Cut &cut : loopCuts())
      add(some, cut, loops);
    std::ranges::stable_sort(some, {}, [](const Variant &v) { return v.kernel.seconds; });
    some.resize(std::min(some.size(), kLoops));
    std::ranges::move(some, std::back_inserter(all));
  }
  if (all.size() < 2)
    return {};
  std::stable_sort(all.begin() + 1, all.end(),
                   [](const Variant &a, const Variant &b) { return a.kernel.seconds < b.kernel.seconds; });
  if (all.size() > most)
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(most), all.end());
  for (const char *library : {kCublasProvider, kCudnnProvider})
    if (auto call = root && !isLoops ? libraryCall(body, library) : std::nullopt) {
      body.symbol = symbol + "_library";
      Variant &last = all.emplace_back(Variant{{}, *tiles({})});
      last.library = std::move(*call);
    }
  if (keeps)
    for (Variant &variant : all)
      variant.measured = keepingSubnormals(variant.kernel);
  return all;
}

MadeKernel makeKernel(graph::KernelOp kernel, const Arch &arch) {
  const Outlined outlined(kernel);
  const KernelBody &body = outlined.body;
  std::optional<Kernel> made;
  if (kernel.getProvider() == kLoopProvider)
    made = planLoops(body, arch);
  else if (auto root = planRoot(body, arch))
    made = std::move(root->kernel);
  if (!made)
    throw InternalError("the kernel '" + body.symbol + "' was bid for, and cannot be made");
  if (graph::floatModeOf(kernel) == runtime::FloatMode::Keep)
    made = keepingSubnormals(*std::move(made));
  MadeKernel out{std::move(*made), libraryCall(body, kernel.getProvider()).value_or("")};
  if (!out.library.empty()) // who is expected to run
    if (const auto tuning = libraryTuning(body, arch); tuning && tuning->timesKernel > 1)
      out.library.clear();
    else
      out.kernel.seconds = librarySeconds(body, kernel.getProvider(), arch);
  return out;
}

} // namespace tressel::codegen::cuda
