// Kernels chosen by timing them, where the user asks for it. Predictions rank kernels well on the machine that they were fitted on; where
// two providers bid for a contraction or a convolution, measuring decides between them for the sizes and the machine at hand.
#pragma once

#include "codegen/ObjectCache.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/cluster/KernelProvider.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace tressel::codegen {

/// Seconds of one run of the program's step by kernels of the provider alone; nothing if it cannot be compiled or run.
/// The module is a copy: one @main, whose states are operands that may be packed ahead.
using KernelTimer = std::function<std::optional<double>(mlir::ModuleOp module, const passes::KernelProvider &provider)>;

/// What was measured over what was predicted, for the op that decides a candidate's loops, provider by provider. Thread-safe.
///
/// Only what has a choice is measured: contractions and convolutions of fixed sizes for which at least two providers bid, and no bid
/// that is predicted to take more than `kHopeless` times the best one's time. A time is found by the op, its types, the
/// bid's parameters, the compiler and the machine: in the process, and in `cache`, if not null, for the next one.
class Measurements {
public:
  static constexpr double kHopeless = 20;

  Measurements(std::vector<const passes::KernelProvider *> providers, KernelTimer timer, ObjectCache *cache,
               std::string machine);

  double factorOf(const passes::KernelProvider &provider, const passes::Candidate &candidate,
                  llvm::ArrayRef<bool> parameterOnly);
  /// Times taken, and times found.
  int numMeasured() const { return measured_; }
  int numFound() const { return found_; }
  /// Candidates among both that cannot be compiled or run alone: what is predicted counts for them.
  int numFailed() const { return static_cast<int>(failed_.size()); }
  /// Forgets what the process knows.
  static void clear();

private:
  std::optional<double> secondsOf(const passes::KernelProvider &provider, const passes::Bid &bid, mlir::Operation *root,
                                  llvm::ArrayRef<mlir::Value> parameters);

  const std::vector<const passes::KernelProvider *> providers_;
  const KernelTimer timer_;
  ObjectCache *const cache_;
  const std::string machine_;
  std::mutex mutex_;
  int measured_ = 0, found_ = 0;
  std::set<CacheKey> failed_;
};

/// The provider with seconds and costs of its bids times a factor.
using BidFactor = std::function<double(const passes::Candidate &, llvm::ArrayRef<bool> parameterOnly)>;
std::unique_ptr<passes::KernelProvider> makeScaled(const passes::KernelProvider &provider, BidFactor factor);
/// The provider with its bids' seconds times their factor. Both arguments outlive the result.
std::unique_ptr<passes::KernelProvider> makeMeasured(const passes::KernelProvider &provider, Measurements &measurements);

} // namespace tressel::codegen
