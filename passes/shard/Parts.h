// Builds the ops that cut, join and combine the parts that ranks have.
#pragma once

#include "ir/graph/Mesh.h"
#include "ir/op/OpInfo.h"
#include "mlir/IR/Builders.h"
#include "tressel/runtime/CollectivePlan.h"

namespace tressel::passes {

class PartBuilder {
public:
  /// `mesh` and `like` outlive it. Ops that run on ranks get the stage of `like`, if that has one.
  PartBuilder(mlir::OpBuilder &b, mlir::Location loc, const graph::Mesh &mesh, mlir::Operation *like = nullptr)
      : b(b), loc(loc), mesh(mesh), like(like) {}

  /// Creates an op of the table on whole values, or on values of the ranks. An op whose rules reject the operands is a
  /// bug of the caller (asserts).
  mlir::Value make(llvm::StringRef op, mlir::ValueRange operands, const op::Attrs &attrs, bool onRanks);
  /// `count` elements along `dim`, from `first` on.
  mlir::Value slice(mlir::Value value, unsigned dim, Size first, Size count, bool onRanks);
  mlir::Value concat(mlir::ValueRange parts, unsigned dim, bool onRanks);
  /// Combines the values in a fixed tree of halves, the first half as long as a power of two. So micro-batches combined
  /// first, and then a power of two of ranks, give the same bits as all of these as ranks.
  mlir::Value combine(mlir::ValueRange values, op::Combine how, bool onRanks);
  mlir::Value deal(mlir::ValueRange values, llvm::ArrayRef<unsigned> axes, mlir::Type type);
  /// One value per rank along the axes, of the size that the rank has.
  llvm::SmallVector<mlir::Value> collect(mlir::Value value, llvm::ArrayRef<unsigned> axes, bool onRanks);
  /// An all-to-all: each rank has one block for every rank along the axes, and gets the blocks meant for it, in the
  /// order of the ranks that they come from. Blocks for one rank are alike.
  llvm::SmallVector<mlir::Value> exchange(mlir::ValueRange blocks, llvm::ArrayRef<unsigned> axes);
  /// Combines the terms of a value along an axis that lies in time: each micro-batch adds its term to what the one
  /// before has.
  mlir::Value accumulate(mlir::Value value, op::Combine how, unsigned axis);
  mlir::OpBuilder &builder() { return b; }
  /// Sets device and stage of an op that runs on ranks.
  void putOnRanks(mlir::Operation *op) const;
  /// The part of `size` on the rank at `place`, its coordinates along the axes counted row-major.
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

/// The ranks along some axes, each an accelerator like `device` in a process of its own. Nothing if the machine has too
/// few.
std::optional<runtime::CollectiveGroup> groupAlong(llvm::ArrayRef<unsigned> axes, const graph::Mesh &mesh,
                                                   const runtime::MachineModel &machine, runtime::DeviceRef device);

/// Erases the ops of a block that have no effect and whose results have no use.
void eraseUnused(mlir::Block &block);

/// The name that all_reduce has for a way to combine.
llvm::StringRef nameOf(op::Combine combine);
std::optional<op::Combine> parseCombine(llvm::StringRef name);

} // namespace tressel::passes
