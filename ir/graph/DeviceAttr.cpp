#include "ir/graph/DeviceAttr.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Segment.h"
#include "ir/graph/Stage.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace tressel::graph {

using runtime::DeviceKind;
using runtime::DeviceRef;

std::optional<DeviceRef> parseDevice(StringRef name) {
  const StringRef whole = name;
  const DeviceKind kind = name.starts_with("gpu") ? DeviceKind::Gpu : DeviceKind::Cpu;
  if (!name.consume_front(kind == DeviceKind::Gpu ? "gpu" : "cpu"))
    return std::nullopt;
  uint16_t index = 0;
  if (name.empty() ? kind == DeviceKind::Gpu : name.getAsInteger(10, index))
    return std::nullopt;
  const DeviceRef device{kind, index};
  // each device has a single name: "gpu00" is none
  return runtime::nameOf(device) == whole ? std::optional(device) : std::nullopt;
}

std::optional<DeviceRef> deviceOf(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>(kDeviceAttr);
  if (name && name == kRanks)
    return DeviceRef{DeviceKind::Gpu, 0};
  return name ? parseDevice(name) : std::nullopt;
}

void setDevice(Operation *op, DeviceRef device) {
  op->setAttr(kDeviceAttr, StringAttr::get(op->getContext(), runtime::nameOf(device)));
}

void copyAnnotations(Operation *op, Operation *made) {
  for (StringRef name : {kDeviceAttr, kSegmentAttr, kKeptAttr})
    if (Attribute attribute = op->getAttr(name))
      made->setAttr(name, attribute);
  copyStage(op, made);
}

DeviceRef homeOfArgument(Operation *main, unsigned i) {
  auto name = cast<func::FuncOp>(main).getArgAttrOfType<StringAttr>(i, kHomeAttr);
  return name ? parseDevice(name).value_or(kHost) : kHost;
}
std::optional<DeviceRef> homeOfResult(Operation *main, unsigned i) {
  auto name = cast<func::FuncOp>(main).getResultAttrOfType<StringAttr>(i, kHomeAttr);
  if (name && name == kComputed)
    return std::nullopt;
  return name ? parseDevice(name).value_or(kHost) : kHost;
}

static const op::OpInfo &transferInfo() {
  static const op::OpInfo &info = *op::findOp("to");
  return info;
}

bool isTransfer(Operation *op) { return infoOf(op) == &transferInfo(); }

DeviceRef destinationOf(Operation *transfer) {
  return parseDevice(transfer->getAttrOfType<StringAttr>("device")).value_or(kHost);
}

Value createTransfer(OpBuilder &b, Location loc, Value value, DeviceRef device) {
  return createOp(b, loc, transferInfo(), value, {runtime::nameOf(device)})->getResult(0);
}

} // namespace tressel::graph
