// Tensor: an n-dimensional array by value. Copies share the elements; nothing ever writes to them again, so sharing is
// never visible. `x += 1` makes a new tensor and rebinds x. The one mutable cell is a Variable (variable.h).
//
//   Tensor x = tensor({{1.0, 2}, {3, 4}}); // f32[2, 2]
//   Tensor y = matmul(x, x) + 1;           // returns at once: y is a future; shape and type are known already
//   float first = slice(y, {0, 0}, {1, 1}).item<float>();   // waits
//
// A failure of an op travels with its result and with everything computed from it; the call that waits for one of these
// throws it.
#pragma once

#include <tressel/dim.h>
#include <tressel/runtime/Error.h>
#include <tressel/runtime/Half.h>
#include <tressel/runtime/Storage.h>
#include <tressel/runtime/Types.h>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tressel {

class Arg;
struct Device;
class Tensor;

namespace detail {

/// What a tensor handle points to: elements in memory, or a value of a program that is being traced.
struct TensorImpl {
  mutable std::atomic<uint32_t> references{1};
  uint32_t home = 0; ///< where the elements are: 0 the host, i + 1 accelerator i
  TensorType type;
  runtime::StorageRef storage; ///< null for a traced value
  uint64_t trace = 0;          ///< number of the trace that the value belongs to, 0 for elements in memory
  uint64_t number = 0;         ///< counts the values of the trace
  void *value = nullptr;       ///< the trace's own handle of the value
  SourceLoc where;             ///< the user's line that made it

  // Each thread caches a few freed ones, as a call makes one and often drops one.
  static void *operator new(size_t bytes);
  static void operator delete(void *memory);
};

/// For handles that were moved from: throws Error. `what` is the handle's class, "Variable".
[[noreturn]] void failMoved(const std::string &what, const std::source_location &where);

/// None when default constructed.
inline SourceLoc toLoc(const std::source_location &w) {
  return w.line() ? SourceLoc{w.file_name(), static_cast<uint32_t>(w.line())} : SourceLoc{};
}

/// The element type that a C++ type stands for.
template <typename T> constexpr DType dtypeFor() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::boolean;
  else if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, Half>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::bf16;
  else {
    static_assert(std::is_integral_v<T>, "no element type for this C++ type: use bool, an integer, float, double, Half or BFloat16");
    static_assert(std::is_signed_v<T> || sizeof(T) == 1, "unsigned elements have 8 bits: use uint8_t or a signed type");
    if constexpr (sizeof(T) == 1)
      return std::is_signed_v<T> ? DType::i8 : DType::u8;
    else
      return sizeof(T) == 2 ? DType::i16 : sizeof(T) == 4 ? DType::i32 : DType::i64;
  }
}

} // namespace detail

class Tensor {
public:
  /// No tensor, like one that was moved from: using it throws Error.
  Tensor() = default;
  Tensor(const Tensor &o) : impl_(o.impl_) { retain(); }
  Tensor(Tensor &&o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
  Tensor &operator=(Tensor o) noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~Tensor() {
    if (impl_ && impl_->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      destroy(impl_);
  }

  /// Known at once, without waiting. Throws Error when there is no tensor.
  const TensorType &type() const {
    return get().type;
  } ///< in a trace its sizes may be expressions: shape() and dim() give them as Dim
  TensorShape shape(std::source_location where = std::source_location::current()) const { return {get().type.shape, where}; }
  DType dtype() const { return get().type.dtype; }
  int rank() const { return get().type.rank(); }
  /// Number of elements. Throws TraceError in a trace where it depends on dynamic sizes.
  int64_t size(std::source_location where = std::source_location::current()) const {
    return Dim(dim::numElements(get(where).type.shape), where);
  }
  /// Size of dimension i, a symbol where it is dynamic; negative counts from the end. Throws ShapeError when there is no
  /// such dimension.
  Dim dim(int i, std::source_location where = std::source_location::current()) const;
  bool defined() const { return impl_ != nullptr; }
  /// A value of a program that is being traced: it has a type, but no elements.
  bool traced() const { return impl_ && impl_->trace; }

  /// Whether the elements are there.
  bool ready() const;
  /// Returns when the elements are there. Throws the failure of the op that made them, or of one before it, and
  /// TraceError in a trace.
  void wait(std::source_location where = std::source_location::current()) const;
  /// The one element, converted to T. Waits. Throws ShapeError when there is not exactly one.
  template <typename T> T item(std::source_location where = std::source_location::current()) const {
    if constexpr (std::is_same_v<T, bool>)
      return itemAsDouble(where) != 0;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(itemAsInt(where));
    else
      return static_cast<T>(itemAsDouble(where));
  }
  /// All elements in row-major order, converted to T. Waits.
  template <typename T> std::vector<T> to_vector(std::source_location where = std::source_location::current()) const {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    std::vector<Stored> elements(static_cast<size_t>(size(where)));
    copyTo(elements.data(), detail::dtypeFor<T>(), where);
    if constexpr (std::is_same_v<T, bool>)
      return {elements.begin(), elements.end()};
    else
      return elements;
  }
  /// The elements in memory of the host, dense and row-major, valid as long as a tensor shares them. Waits. The
  /// elements of a tensor on an accelerator are copied, once.
  const void *data(std::source_location where = std::source_location::current()) const;

  /// Where the elements are: the host, or an accelerator of the machine that was chosen when they were made. Throws TraceError in a trace,
  /// where that is not known yet.
  Device device(std::source_location where = std::source_location::current()) const;
  /// The same value in the memory of that device; the tensor itself if it is there already. Returns at once; the copy
  /// runs when the elements are ready. In a trace, ops that read the result are computed there, unless they are placed
  /// elsewhere. Throws Error when the machine has no such device.
  Tensor to(Device device, std::source_location where = std::source_location::current()) const;

  /// The value of a single element. Waits; throws TraceError in a trace, where control flow cannot depend on a value.
  explicit operator bool() const;

  Tensor &operator+=(Arg other);
  Tensor &operator-=(Arg other);
  Tensor &operator*=(Arg other);
  Tensor &operator/=(Arg other);

  /// For the library: takes the reference.
  explicit Tensor(detail::TensorImpl *adopt) : impl_(adopt) {}
  detail::TensorImpl *impl() const { return impl_; }

private:
  const detail::TensorImpl &get(const std::source_location &where = {}) const {
    if (!impl_)
      failEmpty(where);
    return *impl_;
  }
  [[noreturn]] static void failEmpty(const std::source_location &where);
  static void destroy(detail::TensorImpl *impl);
  void retain() const {
    if (impl_)
      impl_->references.fetch_add(1, std::memory_order_relaxed);
  }
  double itemAsDouble(std::source_location where) const;
  int64_t itemAsInt(std::source_location where) const;
  void copyTo(void *to, DType as, std::source_location where) const;

  detail::TensorImpl *impl_ = nullptr;
};

/// Whether both are the same tensor (`==` compares elements).
inline bool same(const Tensor &a, const Tensor &b) { return a.impl() == b.impl(); }

/// As NumPy prints it, large ones shortened; a traced one by its type and line. Waits.
std::ostream &operator<<(std::ostream &os, const Tensor &t);

/// Constants. They are there at once. In a trace they become constants of the program.
Tensor zeros(const Sizes &shape, DType dtype = f32, std::source_location where = std::source_location::current());
Tensor ones(const Sizes &shape, DType dtype = f32, std::source_location where = std::source_location::current());
/// start, start + step, ... below stop.
Tensor arange(const Dim &start, const Dim &stop, int64_t step = 1, DType dtype = i64,
              std::source_location where = std::source_location::current());
inline Tensor arange(const Dim &stop, std::source_location where = std::source_location::current()) {
  return arange(0, stop, 1, i64, where);
}

namespace detail {
/// Copies `bytes` of elements in row-major order.
Tensor fromBytes(const void *data, const TensorType &type, std::source_location where);

/// A number, or a nested braced list of numbers; its depth is the rank.
struct Nested {
  enum class Kind : uint8_t { Bool, Int, Float, List };
  template <typename T>
  requires std::is_arithmetic_v<T> Nested(T v)
      : number(static_cast<double>(v)), kind(std::is_same_v<T, bool>       ? Kind::Bool
                                             : std::is_floating_point_v<T> ? Kind::Float
                                                                           : Kind::Int) {
    if constexpr (std::is_integral_v<T>) {
      isInteger = static_cast<uint64_t>(v) <= uint64_t(std::numeric_limits<int64_t>::max()) || std::is_signed_v<T>;
      integer = isInteger ? static_cast<int64_t>(v) : 0;
    }
  }
  Nested(std::initializer_list<Nested> l) : list(l) {}
  double number = 0;
  int64_t integer = 0;    ///< the same, exactly
  bool isInteger = false; ///< there is one: not beyond 64 bits with a sign
  Kind kind = Kind::List;
  std::vector<Nested> list;
};
Tensor fromNested(const Nested &list, std::optional<DType> dtype, std::source_location where);
} // namespace detail

/// A tensor from a nested list. Without a type, integers make i64, numbers of which some are written with a fraction
/// (1.5, 2.0) f32, and bools alone bool. Throws ShapeError when the rows differ in length, and Error when a number is
/// out of range of an integer type, or when an integer beside fractional numbers has no exact f32. With an integer
/// type, fractions are cut off.
inline Tensor tensor(std::initializer_list<detail::Nested> list, std::optional<DType> dtype = {},
                     std::source_location where = std::source_location::current()) {
  return detail::fromNested(detail::Nested(list), dtype, where);
}
/// A tensor of rank 0, by the same rules: tensor(1) is i64 and tensor(0.1) is f32, whatever the width of the C++ type.
template <typename T>
requires std::is_arithmetic_v<T> Tensor tensor(T value, std::optional<DType> dtype = {},
                                               std::source_location where = std::source_location::current()) {
  return detail::fromNested(detail::Nested(value), dtype, where);
}
/// Copies the elements. Throws ShapeError when their number is not the shape's.
template <typename T>
Tensor from_span(std::span<const T> elements, const Shape &shape,
                 std::source_location where = std::source_location::current());
template <typename T>
Tensor from_span(const std::vector<T> &elements, const Shape &shape,
                 std::source_location where = std::source_location::current()) {
  return from_span(std::span<const T>(elements), shape, where);
}
/// Elements of any type in memory (f16 and bf16 too), copied.
Tensor from_bytes(const void *data, const TensorType &type,
                  std::source_location where = std::source_location::current());
/// Takes the caller's memory without copying; `deleter(data, user)` runs once when no tensor uses it any more.
Tensor adopt(void *data, const TensorType &type, runtime::Storage::Deleter deleter, void *user);

namespace detail {
void checkCount(size_t have, const Shape &shape, std::source_location where);
}
template <typename T> Tensor from_span(std::span<const T> elements, const Shape &shape, std::source_location where) {
  detail::checkCount(elements.size(), shape, where);
  return detail::fromBytes(elements.data(), {detail::dtypeFor<T>(), shape}, where);
}

/// Waits for everything that was computed so far. Throws the first failure that no call has thrown yet.
void wait_all(std::source_location where = std::source_location::current());

} // namespace tressel
