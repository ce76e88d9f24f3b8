// Translates a placed step to the numbers of Residency.h, and the decisions made there back to IR.
#pragma once

#include "passes/place/Footprint.h"
#include "passes/schedule/ListSchedule.h"
#include "passes/place/Residency.h"

#include "llvm/ADT/MapVector.h"

namespace tressel::passes {

class StepModel {
public:
  /// Reads @main as insert-transfers left it; its ops outlive the model. `hostIsBounded`: the host's memory is bounded
  /// too, and there is no other memory to spill its values to.
  StepModel(mlir::func::FuncOp main, MachineCosts &costs, bool hostIsBounded = false);

  residency::Step step;
  llvm::ArrayRef<mlir::Operation *> ops() const { return opOf; } ///< by task
  mlir::Value valueOf(uint32_t v) const { return values[v].value; }

  /// Values that prepare leaves on a device for the step: each may be resident or streamed.
  llvm::ArrayRef<uint32_t> parameters() const { return prepared; }
  /// Bytes of the device for resident values; and the further bytes that prepare takes at its peak, when it computes
  /// the other values there and they are copied out.
  int64_t heldOn(unsigned device) const;
  int64_t preparePeak(unsigned device) const;
  /// The ops of prepare in an order with a low peak: each copy stands right ahead of its first use.
  const std::vector<mlir::Operation *> &prepareOrder() const { return prepare; }

  residency::Sequence sequenceOf(llvm::ArrayRef<mlir::Operation *> order) const;

  /// Rewrites @main as the sequence says: its ops in that order, with the copies and rematerializations. The model is
  /// invalid afterwards.
  void apply(llvm::ArrayRef<residency::Item> sequence);

private:
  struct Known {
    mlir::Value value;  ///< the value as the step computes it
    mlir::Value source; ///< the value on the host that it is copied from
  };
  struct Apply;

  uint32_t add(mlir::Value value, unsigned device);
  void readValues();
  void readTasks();
  void fixResults();
  int64_t bodyBytes(mlir::Operation *op);

  mlir::func::FuncOp main;
  MachineCosts &costs;
  std::vector<mlir::Operation *> prepare, opOf;
  std::vector<Known> values;
  std::vector<uint32_t> prepared;
  llvm::DenseMap<mlir::Value, uint32_t> indexOf; ///< by base
  llvm::DenseMap<mlir::Operation *, uint32_t> taskOf;
};

} // namespace tressel::passes
