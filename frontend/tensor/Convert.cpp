#include "frontend/tensor/Convert.h"

#include "tressel/runtime/Half.h"

#include <cstring>
#include <type_traits>

namespace tressel::detail {
namespace {

struct Bool {
  uint8_t value;
  Bool() = default;
  template <typename T> explicit Bool(T v) : value(static_cast<double>(v) != 0) {}
  operator float() const { return value; }
};

/// Calls fn with a null pointer of the element type's C++ type.
template <typename Fn> decltype(auto) visit(DType type, Fn fn) {
  switch (type) {
  case DType::f32:
    return fn(static_cast<float *>(nullptr));
  case DType::f64:
    return fn(static_cast<double *>(nullptr));
  case DType::f16:
    return fn(static_cast<Half *>(nullptr));
  case DType::bf16:
    return fn(static_cast<BFloat16 *>(nullptr));
  case DType::i8:
    return fn(static_cast<int8_t *>(nullptr));
  case DType::i16:
    return fn(static_cast<int16_t *>(nullptr));
  case DType::i32:
    return fn(static_cast<int32_t *>(nullptr));
  case DType::i64:
    return fn(static_cast<int64_t *>(nullptr));
  case DType::u8:
    return fn(static_cast<uint8_t *>(nullptr));
  case DType::boolean:
    break;
  }
  return fn(static_cast<Bool *>(nullptr));
}

/// A value of a wrapper type as the number it stands for.
template <typename T> auto plain(T v) {
  if constexpr (std::is_arithmetic_v<T>)
    return v;
  else
    return static_cast<float>(v);
}

template <typename To, typename From> To convert(From v) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (!(v >= -9.2233720368547758e18 && v < 9.2233720368547758e18))
      return To(0); // out of range and NaN: undefined in C++
    return static_cast<To>(static_cast<int64_t>(v));
  } else {
    return static_cast<To>(v);
  }
}

} // namespace

double loadDouble(const void *data, DType type, int64_t index) {
  return visit(type, [&](auto *p) -> double {
    return static_cast<double>(plain(static_cast<const std::remove_pointer_t<decltype(p)> *>(data)[index]));
  });
}

int64_t loadInt(const void *data, DType type, int64_t index) {
  return visit(type, [&](auto *p) -> int64_t {
    return convert<int64_t>(plain(static_cast<const std::remove_pointer_t<decltype(p)> *>(data)[index]));
  });
}

void convertElements(void *to, DType toType, const void *from, DType fromType, int64_t count) {
  if (toType == fromType) {
    if (count)
      std::memcpy(to, from, static_cast<size_t>(count * sizeOf(toType)));
    return;
  }
  visit(fromType, [&](auto *f) {
    visit(toType, [&](auto *t) {
      using From = std::remove_pointer_t<decltype(f)>;
      using To = std::remove_pointer_t<decltype(t)>;
      for (int64_t i = 0; i < count; ++i)
        static_cast<To *>(to)[i] = convert<To>(plain(static_cast<const From *>(from)[i]));
    });
  });
}

} // namespace tressel::detail
