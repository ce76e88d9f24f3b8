#include "passes/cluster/Traffic.h"

#include "ir/graph/Graph.h"
#include "ir/op/OpInfo.h"
#include "passes/Util.h"
#include "llvm/ADT/DenseMap.h"

#include <bit>

using namespace mlir;

namespace tressel::passes {

namespace {
/// Bytes of a row that stay close between passes: in registers and shared memory of a GPU's multiprocessor, or in the
/// second-level cache of a CPU core. Some hundred kilobytes on all machines of the presets.
constexpr int64_t kKept = 256 * 1024;

bool isReduction(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  return info && info->family == op::Family::Reduction && info->combine != op::Combine::None;
}
int64_t rowBytes(Operation *reduction) {
  const Type result = reduction->getResult(0).getType();
  const int64_t rows = bytesOf(result) / static_cast<int64_t>(sizeOf(graph::fromMlir(result).dtype));
  return bytesOf(reduction->getOperand(0).getType()) / std::max<int64_t>(1, rows);
}
} // namespace

int64_t bytesReadAgain(Block &body) {
  // Each reduction of rows that do not stay close ends a pass over the elements.
  constexpr unsigned kMost = 63;
  llvm::DenseMap<Value, unsigned> passOf; // the first pass in which the value is known
  for (Operation &op : body) {
    unsigned pass = 0;
    for (Value operand : op.getOperands())
      pass = std::max(pass, passOf.lookup(operand));
    if (isReduction(&op) && rowBytes(&op) > kKept)
      pass = std::min(pass + 1, kMost);
    for (Value result : op.getResults())
      passOf[result] = pass;
  }
  llvm::DenseMap<Value, uint64_t> neededIn; // one bit per pass: elements are recomputed in each pass that needs them
  for (Operation &op : llvm::reverse(body)) {
    uint64_t passes = 0;
    for (Value result : op.getResults())
      passes |= neededIn.lookup(result);
    for (Value operand : op.getOperands())
      // reductions are kept, and results of the kernel written
      if (isReduction(&op) || op.hasTrait<OpTrait::IsTerminator>())
        neededIn[operand] |= uint64_t(1) << passOf.lookup(operand);
      else
        neededIn[operand] |= passes;
  }
  int64_t bytes = 0;
  for (BlockArgument argument : body.getArguments())
    if (const int passes = std::popcount(neededIn.lookup(argument)); passes > 1)
      bytes += (passes - 1) * bytesOf(argument.getType());
  return bytes;
}

} // namespace tressel::passes
