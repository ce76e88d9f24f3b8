// Kernels cut along the leading dimension of their results: the same work on some rows, as a kernel of its own.
#pragma once

#include "passes/Passes.h"

#include "ir/graph/Structure.h"

#include <map>

namespace tressel::passes {

/// How a kernel's results depend on its operands, if each row of all results needs the same row of some operands, and
/// others whole.
struct RowForm {
  int64_t rows = 0;              ///< of each result
  llvm::SmallVector<bool> byRow; ///< by operand: only the rows that are computed are read
};
/// Nothing if rows depend on one another, on their number, or on what the kernel's ops do not say.
std::optional<RowForm> rowFormOf(graph::KernelOp kernel);

class RowBlocks {
public:
  explicit RowBlocks(const Providers &providers) : providers(providers) {}

  /// The kernel for so many rows, beside `kernel`; one for equal requests. Null if the provider that runs the whole
  /// does not bid for the part, or wants other operands packed.
  graph::KernelOp blockOf(graph::KernelOp kernel, const RowForm &form, int64_t rows);
  /// Whether blockOf gave it.
  bool isBlock(graph::KernelOp kernel) const { return packers.contains(kernel); }
  /// For a kernel that blockOf gave: what packs its packed operands, in their order.
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
