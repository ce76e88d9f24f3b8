#include "ir/graph/Stage.h"

#include "ir/graph/DeviceAttr.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace tressel::graph {

static constexpr StringLiteral kAll[] = {kDeviceAttr, kStageAttr, kBackwardAttr, kMicroBatchAttr};

static std::optional<int64_t> numberOf(Operation *op, StringRef name) {
  auto number = op->getAttrOfType<IntegerAttr>(name);
  return number && number.getInt() >= 0 ? std::optional(number.getInt()) : std::nullopt;
}
static void setNumber(Operation *op, StringRef name, int64_t number) {
  op->setAttr(name, IntegerAttr::get(IntegerType::get(op->getContext(), 64), number));
}

std::optional<int64_t> stageOf(Operation *op) { return numberOf(op, kStageAttr); }
std::optional<int64_t> microBatchOf(Operation *op) { return numberOf(op, kMicroBatchAttr); }
void setMicroBatch(Operation *op, int64_t number) { setNumber(op, kMicroBatchAttr, number); }

void setStage(Operation *op, int64_t stage, bool isBackward) {
  setNumber(op, kStageAttr, stage);
  if (isBackward)
    op->setAttr(kBackwardAttr, UnitAttr::get(op->getContext()));
}

void copyStage(Operation *op, Operation *made) {
  for (StringRef name : {kStageAttr, kBackwardAttr, kMicroBatchAttr})
    if (Attribute attribute = op->getAttr(name))
      made->setAttr(name, attribute);
}

void takeStage(Operation *op) {
  for (StringRef name : {kStageAttr, kBackwardAttr, kMicroBatchAttr})
    op->removeAttr(name);
}

DictionaryAttr placeOf(Operation *op) {
  SmallVector<NamedAttribute> found;
  for (StringRef name : kAll)
    if (Attribute attribute = op->getAttr(name))
      found.emplace_back(StringAttr::get(op->getContext(), name), attribute);
  return found.empty() ? DictionaryAttr() : DictionaryAttr::get(op->getContext(), found);
}
void setPlace(Operation *op, DictionaryAttr place) {
  for (NamedAttribute attribute : place ? place.getValue() : ArrayRef<NamedAttribute>())
    op->setAttr(attribute.getName(), attribute.getValue());
}
DictionaryAttr takePlace(Operation *op) {
  DictionaryAttr place = placeOf(op);
  for (StringRef name : kAll)
    op->removeAttr(name);
  return place;
}

} // namespace tressel::graph
