#include "passes/place/Footprint.h"

#include "passes/schedule/IssueOrder.h"
#include "passes/Util.h"

#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "tressel/runtime/Dim.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tressel::passes {

int64_t slotBytesOf(Type type) { return dim::alignUp(bytesOf(type), 64).number(); }

static llvm::SmallSetVector<Value, 8> basesOf(Operation *work) {
  llvm::SmallSetVector<Value, 8> values;
  for (Value operand : work->getOperands())
    values.insert(baseOf(operand));
  values.insert(work->result_begin(), work->result_end());
  return values;
}

int64_t footprintOf(Operation *work) {
  int64_t bytes = 0;
  for (Value value : basesOf(work))
    bytes += slotBytesOf(value.getType());
  auto launch = dyn_cast<graph::LaunchOp>(work);
  if (!launch || launch.getNumResults() != 1)
    return bytes;
  auto kernel = SymbolTable::lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr());
  const int64_t made = slotBytesOf(launch.getResult(0).getType());
  for (OpOperand &operand : work->getOpOperands())
    if (kernel && baseOf(operand.get()) == operand.get() && slotBytesOf(operand.get().getType()) == made &&
        mayOverwrite(kernel, operand.getOperandNumber()))
      return bytes - made;
  return bytes;
}

static std::string nameOf(Operation *work) {
  if (auto launch = dyn_cast<graph::LaunchOp>(work))
    if (auto kernel = SymbolTable::lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr()))
      return graph::describeBody(kernel.getBody(), kernel.getProvider());
  return work->getName().stripDialect().str();
}

std::string spellValue(Value value) {
  value = baseOf(value);
  Operation *def = value.getDefiningOp();
  if (def && graph::isTransfer(def))
    return spellValue(def->getOperand(0));
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto main = dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp());
    if (!main)
      return "a value that a body is given";
    if (auto state = main.getArgAttrOfType<StringAttr>(arg.getArgNumber(), graph::kStateAttr))
      return "the parameter '" + state.str() + "'";
    if (auto name = main.getArgAttrOfType<StringAttr>(arg.getArgNumber(), graph::kNameAttr))
      return "the input '" + name.str() + "'";
    return "argument " + std::to_string(arg.getArgNumber());
  }
  if (!isWork(def))
    return "a constant";
  const graph::FileLine line = graph::fileLineOf(def->getLoc());
  const std::string of = "the result of '" + nameOf(def) + "'";
  return line.file.empty() ? of : of + " (" + line.file + ":" + std::to_string(line.line) + ")";
}

std::string spellHolders(ArrayRef<std::pair<int64_t, std::string>> holders) {
  SmallVector<std::pair<int64_t, std::string>> largest(holders);
  llvm::sort(largest, [](const auto &a, const auto &b) {
    return std::pair(-a.first, a.second) < std::pair(-b.first, b.second);
  });
  constexpr size_t kMost = 4;
  std::string text;
  for (const auto &[bytes, what] : ArrayRef(largest).take_front(kMost))
    text += (text.empty() ? "" : ", ") + std::to_string(bytes) + " for " + what;
  if (largest.size() > kMost)
    text += ", the rest for " + std::to_string(largest.size() - kMost) + " more";
  return text;
}

LogicalResult refuse(Operation *work, int64_t bytes, StringRef device, int64_t memory, const Twine &more) {
  SmallVector<std::pair<int64_t, std::string>> holders;
  for (Value value : basesOf(work))
    holders.push_back({slotBytesOf(value.getType()), value.getDefiningOp() == work ? "its result" : spellValue(value)});
  return work->emitError("'") << nameOf(work) << "' needs " << bytes << " bytes of " << device << " at once, which has "
                              << memory << more << ": " << spellHolders(holders);
}

} // namespace tressel::passes
