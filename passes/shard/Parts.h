// Tensors in parts: the ops that cut, join and combine what ranks have, built at one place of a program.
#pragma once

#include "ir/graph/Mesh.h"
#include "ir/op/OpInfo.h"
#include "mlir/IR/Builders.h"
#include "tressel/runtime/CollectivePlan.h"

namespace tressel::passes {

class PartBuilder {
public:
  /// `mesh` and `like` outlive it. What ranks compute belongs to the stage of `like`, if that has one.
  PartBuilder(mlir::OpBuilder &b, mlir::Location loc, const graph::Mesh &mesh, mlir::Operation *like = nullptr)
      : b(b), loc(loc), mesh(mesh), like(like) {}

  /// An op of the table on values of the program, or of the ranks. Errors of its rules are the caller's mistake
  /// (asserts).
  mlir::Value make(llvm::StringRef op, mlir::ValueRange operands, const op::Attrs &attrs, bool onRanks);
  /// Elements along `dim` from `first` on.
  mlir::Value slice(mlir::Value value, unsigned dim, Size first, Size count, bool onRanks);
  mlir::Value concat(mlir::ValueRange parts, unsigned dim, bool onRanks);
  /// The values combined in their order, by halves, the first as long as a power of two: ranks whose number is a power
  /// of two, and micro-batches of them, combine as their product of ranks would.
  mlir::Value combine(mlir::ValueRange values, op::Combine how, bool onRanks);
  mlir::Value deal(mlir::ValueRange values, llvm::ArrayRef<unsigned> axes, mlir::Type type);
  /// One value per rank along the axes, with the sizes that it has there.
  llvm::SmallVector<mlir::Value> collect(mlir::Value value, llvm::ArrayRef<unsigned> axes, bool onRanks);
  /// Of blocks that each rank has, one for every rank along the axes, each rank gets those for it, in the order of the
  /// ranks that had them. Blocks for one rank are alike.
  llvm::SmallVector<mlir::Value> exchange(mlir::ValueRange blocks, llvm::ArrayRef<unsigned> axes);
  /// Of a value that ranks have terms of, the terms of all along an axis that lies in time, combined: each goes on with
  /// what the one before has.
  mlir::Value accumulate(mlir::Value value, op::Combine how, unsigned axis);
  mlir::OpBuilder &builder() { return b; }
  /// Sets device and stage of what ranks compute.
  void putOnRanks(mlir::Operation *op) const;
  /// What a rank of these coordinates along the axes (counted row-major) has for a size.
  Size at(Size size, int64_t place, llvm::ArrayRef<unsigned> axes) const;

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
  const graph::Mesh &mesh;
  mlir::Operation *like;
};

/// The accelerators that a program may use, in the order in which they are a mesh's ranks.
std::vector<runtime::DeviceRef> acceleratorsOf(const runtime::MachineModel *machine,
                                               llvm::ArrayRef<runtime::DeviceRef> devices);

/// The ranks along some axes, each with an accelerator like `device` in a process of its own. Nothing where the machine
/// has too few.
std::optional<runtime::CollectiveGroup> groupAlong(llvm::ArrayRef<unsigned> axes, const graph::Mesh &mesh,
                                                   const runtime::MachineModel &machine, runtime::DeviceRef device);

/// Erases the ops of a block that have no effect and whose results have no use.
void eraseUnused(mlir::Block &block);

/// How partial results of a reduction are combined, as the attribute of all_reduce says it.
llvm::StringRef nameOf(op::Combine combine);
std::optional<op::Combine> parseCombine(llvm::StringRef name);

} // namespace tressel::passes
