// Cuts kernels along the leading dimension of their results: a row block is a kernel for some of the rows.
#pragma once

#include "passes/Passes.h"

#include "ir/graph/Structure.h"

#include <map>

namespace tressel::passes {

/// How a kernel's results depend on its operands: row i of each result reads row i of some operands, and all of the
/// others.
struct RowForm {
  int64_t rows = 0;              ///< of each result
  llvm::SmallVector<bool> byRow; ///< by operand: a row block reads only its own rows
};
/// Nothing if rows depend on one another or on their number, or if the kernel's ops do not say how they depend.
std::optional<RowForm> rowFormOf(graph::KernelOp kernel);

class RowBlocks {
public:
  explicit RowBlocks(const Providers &providers) : providers(providers) {}

  /// The kernel for `rows` rows, inserted beside `kernel`; equal requests share one. Null if the provider of `kernel`
  /// does not bid for the block, or wants other operands packed.
  graph::KernelOp blockOf(graph::KernelOp kernel, const RowForm &form, int64_t rows);
  /// Whether `kernel` was made by blockOf.
  bool isBlock(graph::KernelOp kernel) const { return packers.contains(kernel); }
  /// For a block made by blockOf: the kernels that pack its packed operands, in operand order.
  llvm::ArrayRef<graph::KernelOp> packersOf(graph::KernelOp block) { return packers[block]; }

private:
  /// The ops of a block, without constants.
  struct Parts {
    llvm::SmallVector<mlir::Operation *> ops, root, epilogue;
  };
  bool rewriteBody(graph::KernelOp kernel, graph::KernelOp block, int64_t rows, Parts &parts) const;
  std::optional<Bid> bidOf(llvm::StringRef provider, graph::KernelOp kernel, const RowForm &form,
                           llvm::ArrayRef<mlir::Operation *> part, llvm::ArrayRef<mlir::Value> results) const;
  llvm::StringRef epilogueProvider(llvm::StringRef root) const;
  /// `packed`: the types of its packed operands.
  std::optional<Bid> bidFor(graph::KernelOp kernel, graph::KernelOp block, const RowForm &form, const Parts &parts,
                            llvm::SmallVectorImpl<mlir::Type> &packed) const;
  graph::KernelOp make(graph::KernelOp kernel, const RowForm &form, int64_t rows);
  graph::KernelOp packerFor(graph::KernelOp block, mlir::Type operand, const PackRequest &request);

  const Providers &providers;
  std::map<std::pair<std::string, int64_t>, graph::KernelOp> made;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<graph::KernelOp>> packers;
};

} // namespace tressel::passes
