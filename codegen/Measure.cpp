#include "codegen/Measure.h"

#include "codegen/cpu/CompilerId.h"
#include "ir/graph/Graph.h"
#include "passes/verify/ExtractProgram.h"
#include "passes/Util.h"

#include "llvm/ADT/SetVector.h"

#include <cstring>
#include <limits>

namespace tressel::codegen {
namespace {

using passes::Bid;
using passes::Candidate;
using passes::KernelProvider;

/// Of the process. A negative time: it cannot be run.
struct Known {
  std::mutex mutex;
  std::map<CacheKey, double> seconds;
};
Known &known() {
  static Known &all = *new Known(); // programs may be compiled while the process ends
  return all;
}

bool isWorthMeasuring(mlir::Operation *root) {
  return op::isProduct(graph::infoOf(root)->family) && graph::symbolsOf(root).empty();
}

/// The root as a candidate of its own.
struct Alone {
  llvm::SmallVector<mlir::Operation *, 1> ops;
  llvm::SetVector<mlir::Value> inputs;
  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<bool> parameterOnly;

  Alone(const Candidate &candidate, llvm::ArrayRef<bool> isParameter) : ops{candidate.root} {
    for (mlir::Value operand : candidate.root->getOperands())
      if (!passes::isImmediate(candidate.root, operand))
        inputs.insert(operand);
    results.assign(candidate.root->result_begin(), candidate.root->result_end());
    for (mlir::Value input : inputs) {
      const auto at = static_cast<size_t>(llvm::find(candidate.inputs, input) - candidate.inputs.begin());
      parameterOnly.push_back(at < isParameter.size() && isParameter[at]);
    }
  }
  std::optional<Bid> bidOf(const KernelProvider &provider) const {
    return provider.bid({ops.front(), ops, inputs.getArrayRef(), results}, parameterOnly);
  }
};

class Scaled final : public KernelProvider {
public:
  Scaled(const KernelProvider &inner, BidFactor factor) : inner_(inner), factor_(std::move(factor)) {}
  llvm::StringRef name() const override { return inner_.name(); }
  graph::KernelTarget target() const override { return inner_.target(); }
  bool writesEpilogues() const override { return inner_.writesEpilogues(); }
  bool takes(const Candidate &whole, llvm::ArrayRef<mlir::Operation *> root) const override { return inner_.takes(whole, root); }
  std::optional<Bid> bid(const Candidate &candidate, llvm::ArrayRef<bool> parameterOnly) const override {
    std::optional<Bid> bid = inner_.bid(candidate, parameterOnly);
    if (!bid)
      return bid;
    const double factor = factor_(candidate, parameterOnly);
    bid->seconds *= factor;
    for (runtime::KernelCost &cost : bid->costs)
      cost.seconds *= factor;
    return bid;
  }

private:
  const KernelProvider &inner_;
  const BidFactor factor_;
};

} // namespace

Measurements::Measurements(std::vector<const KernelProvider *> providers, KernelTimer timer, ObjectCache *cache,
                           std::string machine)
    : providers_(std::move(providers)), timer_(std::move(timer)), cache_(cache), machine_(std::move(machine)) {}

double Measurements::factorOf(const KernelProvider &provider, const Candidate &candidate,
                              llvm::ArrayRef<bool> parameterOnly) {
  if (!isWorthMeasuring(candidate.root))
    return 1;
  const Alone alone(candidate, parameterOnly);
  const std::optional<Bid> mine = alone.bidOf(provider);
  if (!mine || mine->seconds <= 0)
    return 1; // it wants the root with something beside it
  int bidders = 0;
  double best = std::numeric_limits<double>::infinity();
  for (const KernelProvider *other : providers_)
    if (std::optional<Bid> bid = alone.bidOf(*other)) {
      ++bidders;
      best = std::min(best, bid->seconds);
    }
  if (bidders < 2 || mine->seconds > kHopeless * best)
    return 1;
  llvm::SmallVector<mlir::Value> parameters;
  for (const auto &[input, isParameter] : llvm::zip(alone.inputs, alone.parameterOnly))
    if (isParameter)
      parameters.push_back(input);
  const std::optional<double> seconds = secondsOf(provider, *mine, candidate.root, parameters);
  return seconds ? *seconds / mine->seconds : 1;
}

std::optional<double> Measurements::secondsOf(const KernelProvider &provider, const Bid &bid, mlir::Operation *root,
                                              llvm::ArrayRef<mlir::Value> parameters) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << root->getName() << root->getAttrDictionary();
  for (mlir::Value operand : root->getOperands())
    os << " " << operand.getType() << (llvm::is_contained(parameters, operand) ? "p" : "");
  const std::string_view parts[] = {"seconds", compilerId(), machine_, {provider.name().data(), provider.name().size()}, bid.params, text};
  const CacheKey key = cacheKeyOf(parts);

  std::lock_guard lock(mutex_); // one measurement at a time, or they disturb each other
  auto answer = [&](double seconds) -> std::optional<double> {
    if (seconds >= 0)
      return seconds;
    failed_.insert(key);
    return std::nullopt;
  };
  {
    std::lock_guard all(known().mutex);
    if (auto it = known().seconds.find(key); it != known().seconds.end())
      return ++found_, answer(it->second);
  }
  double seconds = -1;
  bool isNew = true;
  if (cache_)
    if (std::optional<std::vector<char>> bytes = cache_->find(key); bytes && bytes->size() == sizeof seconds) {
      std::memcpy(&seconds, bytes->data(), sizeof seconds);
      isNew = false;
    }
  if (isNew) {
    passes::ExtractedProgram program = passes::extractProgram(root);
    auto main = program.module->lookupSymbol<mlir::func::FuncOp>("main");
    mlir::Builder b(main.getContext());
    for (unsigned i = 0; i < program.inputs.size(); ++i)
      if (llvm::is_contained(parameters, program.inputs[i])) {
        main.removeArgAttr(i, graph::kNameAttr);
        main.setArgAttr(i, graph::kStateAttr, b.getStringAttr("x" + std::to_string(i)));
      }
    seconds = timer_(*program.module, provider).value_or(-1);
    if (cache_) {
      char bytes[sizeof seconds];
      std::memcpy(bytes, &seconds, sizeof seconds);
      cache_->insert(key, bytes);
    }
  }
  ++(isNew ? measured_ : found_);
  std::lock_guard all(known().mutex);
  known().seconds.emplace(key, seconds);
  return answer(seconds);
}

void Measurements::clear() {
  std::lock_guard lock(known().mutex);
  known().seconds.clear();
}

std::unique_ptr<KernelProvider> makeScaled(const KernelProvider &provider, BidFactor factor) {
  return std::make_unique<Scaled>(provider, std::move(factor));
}
std::unique_ptr<KernelProvider> makeMeasured(const KernelProvider &provider, Measurements &measurements) {
  return makeScaled(provider, [&](const Candidate &candidate, llvm::ArrayRef<bool> parameterOnly) {
    return measurements.factorOf(provider, candidate, parameterOnly);
  });
}

} // namespace tressel::codegen
