// How kernels bid for clusters. The interface lives here so that the clustering pass needs no code generation; codegen/
// implements it (generated loops, oneDNN) and hands its providers to the pipeline.
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
/// one value (a scalar, a splat) are neither ops nor inputs: they become part of the kernel.
struct Candidate {
  mlir::Operation *root = nullptr; ///< the op that decides the loops: a contraction, a reduction, or the last op
  llvm::ArrayRef<mlir::Operation *> ops;
  llvm::ArrayRef<mlir::Value> inputs, results;
};

/// An operand the provider wants rearranged once, ahead of the step, when it is made of parameters and constants only.
struct PackRequest {
  unsigned input;     ///< index into Candidate::inputs
  std::string params; ///< JSON for the provider's factory: a library kernel of one operand and one result
  int64_t bytes;      ///< of the packed form
};

struct Bid {
  double seconds = 0; ///< predicted, on this machine's model
  /// What `seconds` are made of, besides bytes, threads and the call: runtime::KernelDesc::costs. Empty: the provider does not tell.
  std::vector<runtime::KernelCost> costs;
  std::string params; ///< JSON for the provider's factory (library kernels); empty for generated ones
  Size range = 1, scratchBytes;
  int64_t grain = 1;
  std::vector<PackRequest> packs;
  /// A generated epilogue may follow on the same chunk (KernelDesc::epilogue): a unit writes neighbouring elements, as
  /// many as "unit" in `params` says.
  bool takesEpilogue = false;
  /// The same ops and others that exchange no values with them may be one kernel of this provider, if it bids so for
  /// them too.
  bool joins = false;

  /// Of a kernel that does what `next` bids for behind its own work. What is known of only one part tells nothing of both.
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
  /// Of all of its kernels. Those for GPUs run on accelerators with an architecture of their own (DeviceModel::architecture); others
  /// on hosts, and on simulated accelerators, whose instructions are the host's.
  virtual graph::KernelTarget target() const = 0;
  bool isForGpu() const { return target() >= graph::KernelTarget::Gpu; }
  /// Whether it writes what follows a root that takes an epilogue, for providers of its own kind of device.
  virtual bool writesEpilogues() const { return false; }
  /// Of one that takes epilogues: whether it computes just this, `whole` with the ops of `root` first, in one.
  virtual bool takes(const Candidate &, llvm::ArrayRef<mlir::Operation *> /*root*/) const { return true; }
  /// Nothing if it cannot run exactly these ops as one kernel. Must be cheap: asked often while clusters grow.
  /// `parameterOnly(i)` tells whether input i could be packed ahead of the step.
  virtual std::optional<Bid> bid(const Candidate &candidate, llvm::ArrayRef<bool> parameterOnly) const = 0;
};

} // namespace tressel::passes
