#include "codegen/cuda/Library.h"

#include "codegen/cuda/library/DeviceCost.h"
#include "codegen/cuda/Provider.h"
#include "codegen/cuda/loops/Root.h"
#include "ir/graph/Graph.h"
#include "tressel/runtime/Dim.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/JSON.h"

#include <algorithm>

namespace tressel::codegen::cuda {
namespace {

using op::ScalarOp;

/// What of an epilogue the libraries compute: activation(alpha * product + beta * residual + bias).
struct LibraryEpilogue {
  double alpha = 1;
  bool relu = false;
  int32_t bias = -1;     ///< the launch's buffer with a value per column (products) or channel (convolutions), -1: none
  int32_t residual = -1; ///< the launch's buffer of the result's shape that is added, -1: none
};
/// Follows the expression of the one result from its end to the root's value. Nothing for what is no LibraryEpilogue,
/// stores more than one result, or needs other types. A bias has `period` values: element i of the result gets number i
/// / `stride` % `period`.
class Matcher {
public:
  Matcher(const Epilogue &epilogue, Size stride, Size period)
      : epilogue_(epilogue), plan_(*epilogue.plan), stride_(stride), period_(period) {}

  std::optional<LibraryEpilogue> run() {
    if (plan_.stores.size() != 1 || !plan_.reductions.empty() ||
        plan_.buffers[static_cast<size_t>(plan_.stores[0].buffer)].dtype != epilogue_.type)
      return std::nullopt;
    int32_t e = skipCasts(plan_.stores[0].value);
    if (const Expr &last = at(e); last.kind == ExprKind::Scalar && last.op == ScalarOp::Max) {
      const int other = isNumber(last.args[0]) ? 0 : 1;
      if (!isNumber(last.args[other]) || numberOf(last.args[other]) != 0)
        return std::nullopt;
      out_.relu = true;
      e = skipCasts(last.args[1 - other]);
    }
    return terms(e) && seen_ ? std::optional(out_) : std::nullopt;
  }

private:
  const Expr &at(int32_t e) const { return plan_.exprs[static_cast<size_t>(e)]; }
  int32_t skipCasts(int32_t e) const {
    while (at(e).kind == ExprKind::Scalar && at(e).op == ScalarOp::Cast && isFloat(at(e).dtype) &&
           isFloat(at(at(e).args[0]).dtype))
      e = at(e).args[0];
    return e;
  }
  bool isNumber(int32_t e) const {
    return at(skipCasts(e)).kind == ExprKind::Scalar && at(skipCasts(e)).op == ScalarOp::Const;
  }
  double numberOf(int32_t e) const { return at(skipCasts(e)).f; }
  bool isRoot(int32_t e) const { return at(e).kind == ExprKind::Load && at(e).buffer == epilogue_.rootInput; }

  /// A sum of the root's value, at most one bias and at most one residual.
  bool terms(int32_t e) {
    e = skipCasts(e);
    const Expr &x = at(e);
    if (isRoot(e))
      return !std::exchange(seen_, true);
    if (x.kind == ExprKind::Load)
      return addend(x);
    if (x.kind != ExprKind::Scalar)
      return false;
    if (x.op == ScalarOp::Add)
      return terms(x.args[0]) && terms(x.args[1]);
    if (x.op == ScalarOp::Mul) {
      const int number = isNumber(x.args[0]) ? 0 : 1;
      const int32_t value = skipCasts(x.args[1 - number]);
      if (!isNumber(x.args[number]) || !isRoot(value))
        return false;
      out_.alpha = numberOf(x.args[number]);
      return !std::exchange(seen_, true);
    }
    return false;
  }

  bool addend(const Expr &x) {
    if (x.guard >= 0 || !x.index.indirect.empty() || x.dtype != epilogue_.type)
      return false;
    const auto &operands = epilogue_.signature.operands;
    const int32_t buffer = operands.empty() ? x.buffer : operands[static_cast<size_t>(x.buffer)];
    if (x.index == plan_.stores[0].index && out_.residual < 0)
      return out_.residual = buffer, true;
    if (out_.bias >= 0 || plan_.buffers[static_cast<size_t>(x.buffer)].elements != period_)
      return false;
    // Element i of the result reads i / stride % period: each loop dimension moves by as much, as far as it goes.
    if (x.index.offset != 0)
      return false;
    for (size_t d = 0; d < plan_.dims.size(); ++d) {
      const Size size = plan_.dims[d].size, to = plan_.stores[0].index.coef[d], from = x.index.coef[d];
      if (!to.isNumber() || !from.isNumber())
        return false;
      if (size == 1)
        continue;
      const bool inside = size.isNumber() && to * size <= stride_, beyond = to >= stride_ * period_;
      if (inside || beyond
              ? from != 0
              : to % stride_ != 0 || from != to / stride_ || !size.isNumber() || to * size > stride_ * period_)
        return false;
    }
    out_.bias = buffer;
    return true;
  }

  const Epilogue &epilogue_;
  const LoopPlan &plan_;
  const int64_t stride_, period_;
  bool seen_ = false;
  LibraryEpilogue out_;
};

llvm::json::Value size(Size value) {
  return value.isNumber() ? llvm::json::Value(value.number()) : llvm::json::Value(dim::spell(value));
}
template <typename List> llvm::json::Array sizes(const List &list) {
  llvm::json::Array array;
  for (Size value : list)
    array.push_back(size(value));
  return array;
}
void addEpilogue(llvm::json::Object &object, const LibraryEpilogue &epilogue) {
  object["alpha"] = epilogue.alpha;
  object["relu"] = epilogue.relu;
  if (epilogue.bias >= 0)
    object["bias"] = epilogue.bias;
  if (epilogue.residual >= 0)
    object["residual"] = epilogue.residual;
}
std::string spell(llvm::json::Object object) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
  return text;
}

std::optional<LibraryEpilogue> epilogueOf(const Root &root, Size stride, Size period) {
  if (!root.epilogue.plan)
    return LibraryEpilogue();
  if (root.epilogue.rootBuffer >= 0)
    return std::nullopt; // the product is wanted as well
  return stride.isNumber() && period.isNumber() ? Matcher(root.epilogue, stride.number(), period.number()).run()
                                                : std::nullopt;
}

std::optional<std::string> productCall(const Root &root) {
  const MatrixProduct &p = *root.product;
  // One of the inner strides of each side is 1, and rows lie at 16 bytes' distance: else the library has no fast way.
  auto isMatrix = [](const std::array<Size, 3> &strides) {
    const Size outer = strides[2] == 1 ? strides[1] : strides[2];
    return (strides[1] == 1 || strides[2] == 1) && outer.isNumber();
  };
  if (!isMatrix(p.left) || !isMatrix(p.right))
    return std::nullopt;
  const auto epilogue = epilogueOf(root, 1, p.n);
  if (!epilogue)
    return std::nullopt;
  llvm::json::Object object{{"name", kCublasProvider},
                            {"type", std::string(nameOf(root.type))},
                            {"batch", size(p.batch)},
                            {"m", size(p.m)},
                            {"n", size(p.n)},
                            {"k", size(p.k)},
                            {"result", root.result},
                            {"left", llvm::json::Object{{"buffer", root.buffers.left}, {"strides", sizes(p.left)}}},
                            {"right", llvm::json::Object{{"buffer", root.buffers.right}, {"strides", sizes(p.right)}}}};
  addEpilogue(object, *epilogue);
  return spell(std::move(object));
}

std::optional<std::string> convolutionCall(const Root &root) {
  const Convolution &c = *root.convolution;
  if (c.in.size() != 2 || c.padLow != c.padHigh)
    return std::nullopt;
  const Size pixels = c.out[0] * c.out[1];
  if (!pixels.isNumber())
    return std::nullopt;
  const auto epilogue = epilogueOf(root, c.channelsLast ? 1 : pixels, c.outChannels);
  if (!epilogue)
    return std::nullopt;
  llvm::json::Object object{{"name", kCudnnProvider},
                            {"type", std::string(nameOf(root.type))},
                            {"layout", c.channelsLast ? "nhwc" : "nchw"},
                            {"batch", size(c.batch)},
                            {"groups", c.groups},
                            {"in_channels", c.inChannels},
                            {"out_channels", c.outChannels},
                            {"in", sizes(c.in)},
                            {"window", sizes(c.window)},
                            {"out", sizes(c.out)},
                            {"strides", sizes(c.strides)},
                            {"dilations", sizes(c.dilations)},
                            {"pad", sizes(c.padLow)},
                            {"image", root.buffers.left},
                            {"weights", root.buffers.right},
                            {"result", root.result}};
  addEpilogue(object, *epilogue);
  return spell(std::move(object));
}

bool isAttention(const FormCall &call) { return llvm::StringRef(call.form.kernel).starts_with("attention_"); }

std::optional<std::string> attentionCall(const FormCall &call) {
  const TensorType &q = call.types[0], &k = call.types[1];
  const std::vector<Size> &p = call.form.params; // ir/op/KernelForms.cpp
  if ((q.dtype != DType::f16 && q.dtype != DType::bf16) || call.buffers.back() < 0)
    return std::nullopt;
  for (Size size : {p[4], p[5]}) // a launch looks at symbolic ones
    if (size.isNumber() && size.number() % 8 != 0)
      return std::nullopt;
  const int rank = q.rank();
  Size batch = 1;
  for (int d = 0; d < rank - 3; ++d)
    batch = batch * q.shape[d];
  const Size heads = rank > 2 ? q.shape[rank - 3] : Size(1), groups = rank > 2 ? k.shape[rank - 3] : Size(1);
  llvm::json::Object object{{"name", kCudnnAttention},
                            {"type", std::string(nameOf(q.dtype))},
                            {"batch", size(batch)},
                            {"heads", size(heads)},
                            {"groups", size(groups)},
                            {"queries", size(p[2])},
                            {"keys", size(p[3])},
                            {"size", size(p[4])},
                            {"width", size(p[5])},
                            {"causal", p[6] != 0},
                            {"scale", llvm::bit_cast<double>(p[7].number())},
                            {"q", call.buffers[0]},
                            {"k", call.buffers[1]},
                            {"v", call.buffers[2]},
                            {"result", call.buffers.back()}};
  if (p.size() > 8) {
    // Head h of all has the mask's matrix h / shared % matrices.
    const Size matrices = p[8], shared = p[9];
    const bool isOne = dim::equal(matrices, 1), isOwn = dim::equal(shared, 1);
    const bool both = isOwn && dim::equal(matrices, batch * heads), ofHead = isOwn && dim::equal(matrices, heads),
               ofBatch = dim::equal(shared, heads) && dim::equal(matrices, batch);
    if (call.types[3].dtype != q.dtype || !(isOne || both || ofHead || ofBatch))
      return std::nullopt;
    object["mask"] = llvm::json::Object{{"buffer", call.buffers[3]},
                                        {"by_batch", !isOne && (both || !ofHead)},
                                        {"by_head", !isOne && (both || ofHead)},
                                        {"by_query", p[10] != 0}};
  }
  return spell(std::move(object));
}

/// A bidder for roots whose calls are described, with the generated kernel beside.
class LibraryProvider final : public passes::KernelProvider {
public:
  LibraryProvider(const Arch &arch, llvm::StringRef name) : arch_(arch), name_(name) {}
  llvm::StringRef name() const override { return name_; }
  graph::KernelTarget target() const override { return graph::KernelTarget::GpuLibrary; }

  std::optional<passes::Bid> bid(const passes::Candidate &candidate, llvm::ArrayRef<bool>) const override {
    if (candidate.ops.size() != 1)
      return std::nullopt;
    const KernelBody body = bodyOf(candidate);
    auto fallback = planRoot(body, arch_);
    if (!fallback || !libraryCall(body, name_))
      return std::nullopt;
    passes::Bid bid;
    const auto tuning = libraryTuning(body, arch_);
    bid.seconds =
        (tuning ? tuning->timesKernel * tuning->kernelSeconds : librarySeconds(body, name_, arch_)) + kLaunchSeconds;
    bid.params = launchParams(fallback->kernel);
    bid.range = dim::max(1, fallback->kernel.blocks);
    bid.takesEpilogue = fallback->takesEpilogue;
    return bid;
  }

  bool takes(const passes::Candidate &whole, llvm::ArrayRef<mlir::Operation *> root) const override {
    KernelBody body = bodyOf(whole);
    llvm::SmallVector<mlir::Operation *> ordered(root);
    for (mlir::Operation *op : whole.ops)
      if (!llvm::is_contained(root, op))
        ordered.push_back(op);
    body.ops = ordered;
    body.rootOps = root.size();
    return libraryCall(body, name_).has_value();
  }

private:
  const Arch &arch_;
  const llvm::StringRef name_;
};

} // namespace

std::optional<std::string> libraryCall(const KernelBody &body, llvm::StringRef provider) {
  if (provider == kCudnnProvider)
    if (const auto call = FormCall::of(body))
      return isAttention(*call) ? attentionCall(*call) : std::nullopt;
  const auto root = Root::of(body);
  if (!root)
    return std::nullopt;
  if (provider == kCublasProvider && root->product)
    return productCall(*root);
  if (provider == kCudnnProvider && root->convolution)
    return convolutionCall(*root);
  return std::nullopt;
}

double librarySeconds(const KernelBody &body, llvm::StringRef provider, const Arch &arch) {
  double flops = 0, bytes = 0;
  DType type;
  if (const auto call = FormCall::of(body)) // attention: half of it where that is causal
    flops = call->form.flops * (call->form.params[6] != 0 ? 0.5 : 1), type = call->types[0].dtype;
  else if (const auto root = Root::of(body))
    flops = root->flops(), type = root->type;
  else
    return 0;
  for (llvm::ArrayRef<mlir::Value> list : {body.inputs, body.results})
    for (mlir::Value value : list)
      bytes += static_cast<double>(dim::hint(dim::bytes(graph::fromMlir(value.getType()))));
  const Peak peak = peakOf(arch, type);
  const double share = provider == kCublasProvider ? 0.7 : 0.5; // of the peak: typical of large ones
  return std::max(flops / (share * peak.flops), bytes / (0.8 * peak.bytesPerSecond));
}

std::unique_ptr<passes::KernelProvider> makeCublasProvider(const Arch &arch) {
  return std::make_unique<LibraryProvider>(arch, kCublasProvider);
}
std::unique_ptr<passes::KernelProvider> makeCudnnProvider(const Arch &arch) {
  return std::make_unique<LibraryProvider>(arch, kCudnnProvider);
}

} // namespace tressel::codegen::cuda
