#include "ir/interpreter/Element.h"

#include "ir/op/Infer.h"

#include <cassert>
#include <cmath>

namespace tressel::op::interp {

Element load(const HostTensor &tensor, int64_t position) {
  switch (tensor.type.dtype) {
  case DType::f32: return tensor.as<float>()[position];
  case DType::f64: return tensor.as<double>()[position];
  case DType::f16: return halfToFloat(tensor.as<uint16_t>()[position]);
  case DType::bf16: return bfloatToFloat(tensor.as<uint16_t>()[position]);
  case DType::i8: return tensor.as<int8_t>()[position];
  case DType::i16: return tensor.as<int16_t>()[position];
  case DType::i32: return tensor.as<int32_t>()[position];
  case DType::i64: return tensor.as<int64_t>()[position];
  case DType::u8: return tensor.as<uint8_t>()[position];
  case DType::boolean: return tensor.as<uint8_t>()[position] != 0;
  }
  assert(false && "unknown element type");
  return {};
}

void store(HostTensor &tensor, int64_t position, Element value) {
  switch (tensor.type.dtype) {
  case DType::f32: tensor.as<float>()[position] = value.as<float>(); return;
  case DType::f64: tensor.as<double>()[position] = value.as<double>(); return;
  // An i64 above 2^53 is first rounded to double, which does not matter: it is far beyond the precision of either
  // format.
  case DType::f16: tensor.as<uint16_t>()[position] = halfFromDouble(value.as<double>()); return;
  case DType::bf16: tensor.as<uint16_t>()[position] = bfloatFromDouble(value.as<double>()); return;
  case DType::i8: tensor.as<int8_t>()[position] = value.as<int8_t>(); return;
  case DType::i16: tensor.as<int16_t>()[position] = value.as<int16_t>(); return;
  case DType::i32: tensor.as<int32_t>()[position] = value.as<int32_t>(); return;
  case DType::i64: tensor.as<int64_t>()[position] = value.as<int64_t>(); return;
  case DType::u8: tensor.as<uint8_t>()[position] = value.as<uint8_t>(); return;
  case DType::boolean: tensor.as<uint8_t>()[position] = value.as<bool>(); return;
  }
  assert(false && "unknown element type");
}

Element flushedIn(DType type, Element value) {
  // Rounded to f32 as an arithmetic result would be, so a number that rounds up to the smallest normal one is flushed
  // too.
  const bool computesInSingle = accumulatorType(type) == DType::f32;
  if (computesInSingle && value.isFloat && num::flushed(static_cast<float>(value.f)) == 0)
    return Element(std::copysign(0.0, value.f));
  return value;
}
Element loadFlushed(const HostTensor &tensor, int64_t position) {
  return flushedIn(tensor.type.dtype, load(tensor, position));
}
void storeFlushed(HostTensor &tensor, int64_t position, Element value) {
  store(tensor, position, flushedIn(tensor.type.dtype, value));
}

Element roundTo(DType type, Element value) {
  HostTensor one = HostTensor::allocate({type, {}});
  store(one, 0, value);
  return load(one, 0);
}

int64_t positionOf(const Shape &shape, const Index &index) {
  int64_t position = 0;
  for (int d = 0; d < shape.rank(); ++d)
    position = (position * shape[d] + index[d]).number();
  return position;
}

int64_t broadcastPosition(const Shape &operand, const Index &resultIndex) {
  const int skipped = resultIndex.rank() - operand.rank();
  int64_t position = 0;
  for (int d = 0; d < operand.rank(); ++d)
    position = (position * operand[d] + (operand[d] == 1 ? 0 : resultIndex[d + skipped])).number();
  return position;
}

const Attr &attrNamed(const OpInfo &op, const Attrs &attrs, std::string_view name) {
  const int index = op.attrIndex(name);
  assert(index >= 0 && static_cast<size_t>(index) < attrs.size() && "the record has no such attribute");
  return attrs[static_cast<size_t>(index)];
}
int64_t intAttr(const OpInfo &op, const Attrs &attrs, std::string_view name) {
  return std::get<int64_t>(attrNamed(op, attrs, name));
}
bool boolAttr(const OpInfo &op, const Attrs &attrs, std::string_view name) {
  return std::get<bool>(attrNamed(op, attrs, name));
}
double floatAttr(const OpInfo &op, const Attrs &attrs, std::string_view name) {
  return std::get<double>(attrNamed(op, attrs, name));
}
Ints intsAttr(const OpInfo &op, const Attrs &attrs, std::string_view name, size_t size, int64_t fallback) {
  const Attr &attr = attrNamed(op, attrs, name);
  Ints given;
  if (const auto *list = std::get_if<Ints>(&attr))
    given = *list;
  else if (const auto *sizes = std::get_if<Sizes>(&attr))
    given = numbersOf(*sizes);
  if (given.empty())
    return Ints(size, fallback);
  assert(given.size() == size);
  return given;
}

} // namespace tressel::op::interp
