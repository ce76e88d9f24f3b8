// What bitcode kernels are written with. They are freestanding: no library is called, nothing is allocated, nothing is
// thrown. Each is a function
//   int32_t name_type(void *const *buffers, void *scratch, const int64_t *params, int64_t begin, int64_t end)
// over the op's operands and then its results (null where nobody reads a result). `params` are those of the op's
// KernelForm; they are constants where sizes are static, so that loops and branches are specialized when a program is
// compiled. The units [begin, end) of the form's range are done; two calls never write the same byte.
#pragma once

#include "tressel/runtime/Half.h"

#include <cstdint>

namespace tressel::bitcode {

// Statuses of tressel/runtime/Kernel.h.
inline constexpr int32_t kOk = 0, kIndexOutOfRange = 1;

/// The type that arithmetic on T is done in.
template <class T> struct Wide {
  using Type = T;
};
template <> struct Wide<Half> {
  using Type = float;
};
template <> struct Wide<BFloat16> {
  using Type = float;
};
template <class T> using WideOf = typename Wide<T>::Type;

template <class T> WideOf<T> widen(T x) { return static_cast<WideOf<T>>(x); }
template <class T> T narrow(WideOf<T> x) { return T(x); }

template <class T> struct IsFloat {
  static constexpr bool value = false;
};
template <> struct IsFloat<float> {
  static constexpr bool value = true;
};
template <> struct IsFloat<double> {
  static constexpr bool value = true;
};

enum class Mode : int64_t { Set, Add, Mul, Min, Max }; // in the order of op::scatterModes

/// Integers wrap around; of bools the sum is "or", the product "and"; min and max propagate NaN.
template <class W> W combine(Mode mode, W a, W b) {
  constexpr bool isBool = __is_same(W, bool);
  switch (mode) {
  case Mode::Set:
    return b;
  case Mode::Add:
    if constexpr (isBool)
      return a || b;
    else if constexpr (IsFloat<W>::value)
      return a + b;
    else
      return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  case Mode::Mul:
    if constexpr (isBool)
      return a && b;
    else if constexpr (IsFloat<W>::value)
      return a * b;
    else
      return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  case Mode::Min:
    return a != a ? a : b != b ? b : b < a ? b : a;
  case Mode::Max:
    return a != a ? a : b != b ? b : a < b ? b : a;
  }
  return b;
}

/// Ranges that do not overlap.
template <class T> void copy(T *__restrict to, const T *__restrict from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = from[i];
}

/// An index counted from the front, or -1 if it is outside [-size, size).
inline int64_t place(int64_t index, int64_t size) {
  index += index < 0 ? size : 0;
  return index >= 0 && index < size ? index : -1;
}

/// One exported function per element type.
#define TRESSEL_KERNEL_OF(name, suffix, T, function)                                                                   \
  extern "C" int32_t name##_##suffix(void *const *buffers, void *scratch, const int64_t *params, int64_t begin,        \
                                     int64_t end) {                                                                    \
    return function<T>(buffers, scratch, params, begin, end);                                                          \
  }
#define TRESSEL_KERNEL(name, function)                                                                                 \
  TRESSEL_KERNEL_OF(name, f32, float, function)                                                                        \
  TRESSEL_KERNEL_OF(name, f64, double, function)                                                                       \
  TRESSEL_KERNEL_OF(name, f16, tressel::Half, function)                                                                \
  TRESSEL_KERNEL_OF(name, bf16, tressel::BFloat16, function)                                                           \
  TRESSEL_KERNEL_OF(name, i8, int8_t, function)                                                                        \
  TRESSEL_KERNEL_OF(name, i16, int16_t, function)                                                                      \
  TRESSEL_KERNEL_OF(name, i32, int32_t, function)                                                                      \
  TRESSEL_KERNEL_OF(name, i64, int64_t, function)                                                                      \
  TRESSEL_KERNEL_OF(name, u8, uint8_t, function)                                                                       \
  TRESSEL_KERNEL_OF(name, bool, bool, function)
/// For movement of data: one function per width.
#define TRESSEL_KERNEL_BY_WIDTH(name, function)                                                                        \
  TRESSEL_KERNEL_OF(name, b1, uint8_t, function)                                                                       \
  TRESSEL_KERNEL_OF(name, b2, uint16_t, function)                                                                      \
  TRESSEL_KERNEL_OF(name, b4, uint32_t, function)                                                                      \
  TRESSEL_KERNEL_OF(name, b8, uint64_t, function)

} // namespace tressel::bitcode
