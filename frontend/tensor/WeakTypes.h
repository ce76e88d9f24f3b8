// The element types of the numbers among an op's arguments.
#pragma once

#include "ir/op/OpInfo.h"

#include <tressel/arg.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

namespace tressel::detail {

inline bool fitsNumber(int64_t v, DType type) {
  switch (type) {
  case DType::i8:
    return v >= INT8_MIN && v <= INT8_MAX;
  case DType::i16:
    return v >= INT16_MIN && v <= INT16_MAX;
  case DType::i32:
    return v >= INT32_MIN && v <= INT32_MAX;
  case DType::u8:
    return v >= 0 && v <= UINT8_MAX;
  default:
    return true;
  }
}

/// Elementwise ops give numbers the type of the tensors beside them, unless a float meets integers, or an integer meets
/// bools.
class WeakTypes {
public:
  WeakTypes(const op::OpInfo &info, std::span<const Arg> args)
      : elementwise_(info.family == op::Family::Elementwise),
        conditions_(info.elementwise ? info.elementwise->boolOperands : 0) {
    if (!elementwise_)
      return;
    for (size_t i = 0; i < args.size(); ++i) {
      if (isCondition(i))
        continue;
      if (args[i].kind() != Arg::Kind::Tensor)
        weakest_ = std::max(weakest_, args[i].kind());
      else if (args[i].tensor().defined())
        strong_ = strong_ ? op::promote(*strong_, args[i].tensor().dtype()) : args[i].tensor().dtype();
    }
  }

  DType of(const Arg &arg, size_t index) const {
    if (isCondition(index))
      return DType::boolean;
    const Arg::Kind kind = elementwise_ ? weakest_ : arg.kind();
    if (kind == Arg::Kind::Float)
      return strong_ && isFloat(*strong_) ? *strong_ : DType::f32;
    if (kind == Arg::Kind::Int)
      return strong_ && *strong_ != DType::boolean ? *strong_ : DType::i64;
    return strong_.value_or(DType::boolean);
  }

private:
  bool isCondition(size_t i) const { return i < 8 && (conditions_ >> i & 1); }
  bool elementwise_;
  uint8_t conditions_;
  std::optional<DType> strong_;
  Arg::Kind weakest_ = Arg::Kind::Tensor;
};

} // namespace tressel::detail
