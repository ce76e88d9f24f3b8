#include "ModelProviders.h"

#include "ir/graph/Graph.h"
#include "passes/Util.h"
#include "tressel/runtime/Dim.h"

using namespace mlir;

namespace tressel::tools {
namespace {

constexpr double kSecondsPerLaunch = 1e-6, kBytesPerSecond = 1e10, kFlopsPerSecond = 1e10;

double secondsOf(const passes::Candidate &candidate, double flopsPerSecond) {
  int64_t bytes = 0, flops = 0;
  for (ArrayRef<Value> values : {candidate.inputs, candidate.results})
    for (Value value : values)
      bytes += passes::bytesOf(value.getType());
  for (Operation *op : candidate.ops)
    flops += passes::flopsOf(op);
  return kSecondsPerLaunch + static_cast<double>(bytes) / kBytesPerSecond + static_cast<double>(flops) / flopsPerSecond;
}

bool isContraction(Operation *op) {
  op::Family family = graph::infoOf(op)->family;
  return family == op::Family::Contraction || family == op::Family::Convolution || family == op::Family::Window;
}

class Generated final : public passes::KernelProvider {
public:
  StringRef name() const override { return "generated"; }
  graph::KernelTarget target() const override { return graph::KernelTarget::Host; }
  bool writesEpilogues() const override { return true; }
  std::optional<passes::Bid> bid(const passes::Candidate &candidate, ArrayRef<bool>) const override {
    std::vector<Size> domain;
    SmallVector<op::LoopForm> forms;
    for (Operation *op : candidate.ops) {
      std::optional<op::LoopForm> form = passes::loopFormOf(op);
      if (!form || (candidate.ops.size() > 1 && isContraction(op)))
        return std::nullopt;
      if (dim::hint(elements(wholeDomain(*form))) > dim::hint(elements(domain)) || domain.empty())
        domain = wholeDomain(*form);
      forms.push_back(std::move(*form));
    }
    if (candidate.ops.size() > 1)
      for (const op::LoopForm &form : forms)
        if (!isRowsOf(wholeDomain(form), domain))
          return std::nullopt;
    passes::Bid bid;
    bid.seconds = secondsOf(candidate, kFlopsPerSecond);
    bid.range = domain.empty() ? 1 : std::max<int64_t>(dim::hint(domain.front()), 1);
    bid.joins = llvm::all_of(forms, [](const op::LoopForm &form) { return form.combine == op::Combine::None; });
    return bid;
  }

private:
  /// Reduced dimensions back in the places that keepdims left for them.
  static std::vector<Size> wholeDomain(const op::LoopForm &form) {
    if (form.operands.size() == 1 && form.combine != op::Combine::None) {
      std::vector<Size> whole;
      for (const op::IndexExpr &expr : form.operands[0].dims)
        whole.push_back(expr.terms.empty() ? Size(1) : form.domain[static_cast<size_t>(expr.terms[0].dim)]);
      return whole;
    }
    return form.domain;
  }
  static Size elements(ArrayRef<Size> domain) {
    Size n = 1;
    for (Size d : domain)
      n *= d;
    return n;
  }
  /// The domain itself, or one value for each of its rows.
  static bool isRowsOf(ArrayRef<Size> part, ArrayRef<Size> domain) {
    if (part.size() > domain.size())
      return false;
    size_t common = 0;
    while (common < part.size() && part[common] == domain[common])
      ++common;
    return llvm::all_of(part.drop_front(common), [](Size d) { return d == 1; });
  }
};

class Bitcode final : public passes::KernelProvider {
public:
  StringRef name() const override { return "bitcode"; }
  graph::KernelTarget target() const override { return graph::KernelTarget::Host; }
  std::optional<passes::Bid> bid(const passes::Candidate &candidate, ArrayRef<bool>) const override {
    if (candidate.ops.size() != 1)
      return std::nullopt;
    std::optional<op::KernelForm> form = passes::kernelFormOf(candidate.ops[0]);
    if (!form)
      return std::nullopt;
    passes::Bid bid;
    bid.seconds = secondsOf(candidate, kFlopsPerSecond);
    bid.range = dim::max(form->range, 1);
    bid.scratchBytes = dim::bounds(form->scratchBytes).hi; // allocated ahead, for the largest size
    bid.params = form->kernel;
    return bid;
  }
};

/// How many channels stand last in the image of a convolution.
std::optional<int64_t> channelsLast(Operation *op) {
  const op::OpInfo &info = *graph::infoOf(op);
  const int last = info.attrIndex("channels_last");
  if (last < 0 || !std::get<bool>(graph::attrsOf(op, info)[static_cast<size_t>(last)]))
    return std::nullopt;
  return cast<RankedTensorType>(op->getOperand(0).getType()).getShape().back();
}

class Library final : public passes::KernelProvider {
public:
  StringRef name() const override { return "library"; }
  graph::KernelTarget target() const override { return graph::KernelTarget::HostLibrary; }
  std::optional<passes::Bid> bid(const passes::Candidate &candidate, ArrayRef<bool> parameterOnly) const override {
    op::Family family = graph::infoOf(candidate.root)->family;
    if (candidate.ops.size() != 1 || (family != op::Family::Contraction && family != op::Family::Convolution))
      return std::nullopt;
    const std::optional<int64_t> vector = channelsLast(candidate.ops[0]); // what it likes, if it is long
    if (vector && *vector < 16)
      return std::nullopt;
    passes::Bid bid;
    bid.seconds = secondsOf(candidate, (vector ? 20 : 10) * kFlopsPerSecond);
    auto result = cast<RankedTensorType>(candidate.results[0].getType());
    bid.range = result.getRank() > 0 ? std::max<int64_t>(result.getDimSize(0), 1) : 1;
    bid.params = "{\"model\": true}";
    bid.takesEpilogue = true;
    if (family == op::Family::Contraction && candidate.inputs.size() == 2 && parameterOnly[1])
      bid.packs.push_back({1, "{\"pack\": true}", passes::bytesOf(candidate.inputs[1].getType())});
    return bid;
  }
};
} // namespace

passes::Providers modelProviders() {
  static const Library library;
  static const Generated generated;
  static const Bitcode bitcode;
  return {&library, &generated, &bitcode};
}

} // namespace tressel::tools
