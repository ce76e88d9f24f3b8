// Runs functions of the graph dialect on host tensors, op by op: the oracle for everything that is compiled, and what
// verifies passes. It understands every stage of the pipeline that still has values: the graph, clusters, and outlined
// kernels with their launches.
#pragma once

#include "ir/graph/Mesh.h"
#include "ir/op/OpInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>
#include <string>
#include <vector>

namespace tressel::graph {

struct Interpretation {
  std::vector<op::HostTensor> outputs;
  /// Empty: fine. Else one line: "file:line: op: what is wrong".
  std::string error;
  explicit operator bool() const { return error.empty(); }
};

/// Called after every op that computes something, in program order, also inside of bodies, clusters and kernels. The results
/// may be replaced by others of their types: the program goes on with these.
using Observer = llvm::function_ref<void(mlir::Operation *, llvm::ArrayRef<op::HostTensor> operands,
                                         llvm::MutableArrayRef<op::HostTensor> results)>;

/// The function's results on these inputs, which must have the types of its arguments; nothing is changed. Symbolic sizes
/// have the values that the inputs give them. A `tressel.pack` has a value that no body reads (kernels keep the operand that was packed), and it is zeros.
Interpretation interpret(mlir::func::FuncOp function, llvm::ArrayRef<op::HostTensor> inputs,
                         Observer observer = nullptr);

/// A tensor as the ranks of a mesh have it, and put together again: of what several ranks have, the first one's counts.
std::vector<op::HostTensor> partsOf(const op::HostTensor &whole, const Sharding &sharding, const Mesh &mesh);
op::HostTensor joined(const std::vector<op::HostTensor> &parts, const Sharding &sharding, const Mesh &mesh);

/// The results of one op, given its operands, and values of symbols that do not follow from their shapes.
Interpretation interpret(mlir::Operation *op, llvm::ArrayRef<op::HostTensor> operands, const dim::Values &dims = {});

/// Seeded inputs for a function's arguments: floats in [low, high], small integers, bools. Integers are also valid as
/// indices of dimensions of at least 2 elements (0 and 1). `dims` are the values of all symbols in their types.
std::vector<op::HostTensor> randomInputs(mlir::func::FuncOp function, uint64_t seed, double low = -1, double high = 1,
                                         const dim::Values &dims = {});

} // namespace tressel::graph
