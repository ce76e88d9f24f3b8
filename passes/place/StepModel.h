// A placed step in the numbers that Residency.h works on, and what was decided there as IR.
#pragma once

#include "passes/place/Footprint.h"
#include "passes/schedule/ListSchedule.h"
#include "passes/place/Residency.h"

#include "llvm/ADT/MapVector.h"

namespace tressel::passes {

class StepModel {
public:
  /// Of @main as insert-transfers left it. Reads it; the ops outlive the model. `hostIsBounded`: what lies on the host
  /// counts as well, and cannot be copied anywhere.
  StepModel(mlir::func::FuncOp main, MachineCosts &costs, bool hostIsBounded = false);

  residency::Step step;
  llvm::ArrayRef<mlir::Operation *> ops() const { return opOf; } ///< by task
  mlir::Value valueOf(uint32_t v) const { return values[v].value; }

  /// What prepare leaves on a device for the step, by value: it may be resident or streamed in each call.
  llvm::ArrayRef<uint32_t> parameters() const { return prepared; }
  /// Bytes of the device for what is resident; and those that prepare takes besides at its peak, when the others are
  /// made there, and leave.
  int64_t heldOn(unsigned device) const;
  int64_t preparePeak(unsigned device) const;
  /// The ops of prepare in the order that takes little: what is copied in comes when it is needed.
  const std::vector<mlir::Operation *> &prepareOrder() const { return prepare; }

  residency::Sequence sequenceOf(llvm::ArrayRef<mlir::Operation *> order) const;

  /// Makes @main what the sequence says: its ops in that order, with copies and what is rematerialized. The model is of
  /// no use then.
  void apply(llvm::ArrayRef<residency::Item> sequence);

private:
  struct Known {
    mlir::Value value;  ///< as the step makes it
    mlir::Value source; ///< on the host, where it is copied from
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
