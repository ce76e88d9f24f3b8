#include "tressel/runtime/Types.h"

#include "Concat.h"
#include "tressel/runtime/Dim.h"

#include <utility>

namespace tressel {

std::string Shape::str() const {
  std::string text = "[";
  for (int i = 0; i < rank(); ++i) {
    if (i)
      text += ", ";
    text += dim::str((*this)[i]);
  }
  return runtime::concat(text, "]");
}

std::string TensorType::str() const { return runtime::concat(nameOf(dtype), shape.str()); }

bool parseDType(std::string_view text, DType &out) {
  static constexpr std::pair<std::string_view, DType> longNames[] = {
      {"float32", f32}, {"float64", f64}, {"float16", f16}, {"bfloat16", bf16}, {"int8", i8},
      {"int16", i16},   {"int32", i32},   {"int64", i64},   {"uint8", u8}};
  for (int i = 0; i < kNumDTypes; ++i)
    if (nameOf(static_cast<DType>(i)) == text) {
      out = static_cast<DType>(i);
      return true;
    }
  for (auto [name, type] : longNames)
    if (name == text) {
      out = type;
      return true;
    }
  return false;
}

} // namespace tressel
