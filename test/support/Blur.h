// What rounding may make of a program: its values off by a few units in the last place after every op, so that programs
// whose results depend on that are not made, and a difference is an error of who computed it.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "test/support/RandomOps.h"

#include "llvm/ADT/DenseMap.h"

namespace tressel::test {

/// Moves floats by what an op may round. Two of one seed and of opposite directions, asked the same, move the same
/// elements by the same amounts up and down: a step (of floor, of a comparison) is seen on either side of it.
class Blur {
public:
  enum Direction { Up, Down };
  Blur(uint64_t seed, Direction direction) : random_(seed), sign_(direction == Up ? 1 : -1) {}
  /// `result` of `op` becomes a blurred copy.
  void apply(const op::OpInfo &op, std::span<const op::HostTensor> operands, op::HostTensor &result);

private:
  Random random_;
  double sign_;
};

/// Finite, not so large that a few ops later something overflows, and apart by less than a part of `looseTolerance`.
bool isHarmless(const op::HostTensor &exact, const op::HostTensor &blurred);
/// Whether the tensor may be operand `index` in a random program. Indices count as such: the op itself checks them.
bool inDomain(const op::OpInfo &op, size_t index, const op::HostTensor &tensor);

/// What every value of a program was when it was last computed.
using Computed = llvm::DenseMap<mlir::Value, op::HostTensor>;
/// Whether all values of the program are harmless and, unless `anyOperands`, all operands in their ops' domains, in
/// every iteration of its loops. Evaluates it three times: as it is, and blurred up and down. `computed` receives the
/// first.
bool isHarmless(mlir::func::FuncOp function, llvm::ArrayRef<op::HostTensor> inputs, uint64_t seed, Computed &computed,
                bool anyOperands = false);

} // namespace tressel::test
