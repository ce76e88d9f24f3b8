// The interface by which kernel providers bid for candidates. It lives here so that clustering does not depend on code
// generation; codegen/ implements it (generated loops, oneDNN) and hands its providers to the pipeline.
#pragma once

#include "ir/graph/Structure.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tressel::passes {

/// A region that might become one kernel. Ops are in program order; results are the values used outside. Constants of
/// one value (a scalar, a splat) are neither ops nor inputs: the kernel contains them as immediates.
struct Candidate {
  mlir::Operation *root = nullptr; ///< the op that decides the loops: see rootOf
  llvm::ArrayRef<mlir::Operation *> ops;
  llvm::ArrayRef<mlir::Value> inputs, results;
};

/// A request to pack an operand that is made of parameters and constants alone, once, ahead of the step.
struct PackRequest {
  unsigned input;     ///< index into Candidate::inputs
  std::string params; ///< JSON for the provider's factory: a library kernel of one operand and one result
  int64_t bytes;      ///< of the packed form
};

struct Bid {
  double seconds = 0; ///< predicted, on this machine's model
  /// The parts of `seconds`: runtime::KernelDesc::costs. Empty: the provider does not break them down.
  std::vector<runtime::KernelCost> costs;
  std::string params; ///< JSON for the provider's factory (library kernels); empty for generated ones
  Size range = 1, scratchBytes;
  int64_t grain = 1;
  std::vector<PackRequest> packs;
  /// A generated epilogue may follow on the same chunk (KernelDesc::epilogue): a unit writes consecutive elements,
  /// their number given by "unit" in `params`.
  bool takesEpilogue = false;
  /// The provider may bid for these ops together with others that exchange no values with them, as one kernel.
  bool joins = false;

  /// Adds the costs of `next`, which the kernel executes after its own work. If either has no breakdown, the sum has
  /// none.
  void addCosts(const Bid &next) {
    if (costs.empty() || next.costs.empty())
      return costs.clear();
    costs.insert(costs.end(), next.costs.begin(), next.costs.end());
  }
};

class KernelProvider {
public:
  virtual ~KernelProvider() = default;
  virtual llvm::StringRef name() const = 0; ///< "generated", "onednn": KernelDesc::provider
  /// The target of all its kernels. Kernels for GPUs run on accelerators with an architecture of their own
  /// (DeviceModel::architecture); others run on hosts and on simulated accelerators, which execute the host's
  /// instructions.
  virtual graph::KernelTarget target() const = 0;
  bool isForGpu() const { return target() >= graph::KernelTarget::Gpu; }
  /// Whether it generates epilogues for roots of other providers for the same kind of device.
  virtual bool writesEpilogues() const { return false; }
  /// For a provider of roots that take epilogues: whether it computes `whole`, which begins with the ops of `root`, in
  /// one kernel.
  virtual bool takes(const Candidate &, llvm::ArrayRef<mlir::Operation *> /*root*/) const { return true; }
  /// Nothing if it cannot run exactly these ops as one kernel. Must be cheap: clustering asks often.
  /// `parameterOnly[i]`: input i could be packed ahead of the step.
  virtual std::optional<Bid> bid(const Candidate &candidate, llvm::ArrayRef<bool> parameterOnly) const = 0;
};

} // namespace tressel::passes
