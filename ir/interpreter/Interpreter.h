// Interprets functions of the graph dialect on host tensors, op by op: the reference for compiled code and for the
// verification of passes. Works at every stage of the pipeline that still has values: graphs, clusters, and outlined
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
  /// Empty on success, else one line: "file:line: op: what is wrong".
  std::string error;
  explicit operator bool() const { return error.empty(); }
};

/// Called after every op that computes something, in program order, also within bodies, clusters and kernels. It may
/// replace the results by others of their types, with which interpretation continues.
using Observer = llvm::function_ref<void(mlir::Operation *, llvm::ArrayRef<op::HostTensor> operands,
                                         llvm::MutableArrayRef<op::HostTensor> results)>;

/// The function's results on inputs of its arguments' types; nothing is changed. Symbolic sizes get their values from
/// the inputs. The value of a `tressel.pack` is zeros, as no body reads it (bodies read the operand that was packed).
Interpretation interpret(mlir::func::FuncOp function, llvm::ArrayRef<op::HostTensor> inputs,
                         Observer observer = nullptr);

/// The parts of a tensor on the ranks of a mesh; and the whole from the parts. Of parts that several ranks have, the
/// first rank's counts.
std::vector<op::HostTensor> partsOf(const op::HostTensor &whole, const Sharding &sharding, const Mesh &mesh);
op::HostTensor joined(const std::vector<op::HostTensor> &parts, const Sharding &sharding, const Mesh &mesh);

/// The results of one op on these operands; `dims` gives symbols that do not follow from their shapes.
Interpretation interpret(mlir::Operation *op, llvm::ArrayRef<op::HostTensor> operands, const dim::Values &dims = {});

/// Seeded random inputs for a function's arguments: floats in [low, high], small integers, bools. Integers are valid
/// indices of dimensions of at least 2 elements (0 and 1). `dims` are the values of all symbols in the types.
std::vector<op::HostTensor> randomInputs(mlir::func::FuncOp function, uint64_t seed, double low = -1, double high = 1,
                                         const dim::Values &dims = {});

} // namespace tressel::graph
