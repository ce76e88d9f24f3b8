// Arg: the type of an op's parameters. Implicitly made from a Tensor, a Variable or a number. It records the caller's
// line, as an operator cannot have a parameter for that. A number is a weak scalar: it takes the element type of the
// tensor beside it.
#pragma once

#include <tressel/tensor.h>
#include <tressel/variable.h>

#include <concepts>
#include <source_location>
#include <type_traits>
#include <utility>

namespace tressel {

class Arg {
public:
  enum class Kind : uint8_t { Tensor, Bool, Int, Float };

  Arg(Tensor t, std::source_location where = std::source_location::current()) : tensor_(std::move(t)), where_(where) {}
  Arg(const Variable &v, std::source_location where = std::source_location::current())
      : tensor_(v.value(where)), where_(where) {}
  template <typename T>
  requires std::is_arithmetic_v<T> Arg(T v, std::source_location where = std::source_location::current())
      : where_(where) {
    if constexpr (std::is_floating_point_v<T>) {
      kind_ = Kind::Float;
      float_ = static_cast<double>(v);
    } else {
      kind_ = std::is_same_v<T, bool> ? Kind::Bool : Kind::Int;
      int_ = static_cast<int64_t>(v);
    }
  }

  /// A size as a number, or as the op that gives it.
  Arg(const Dim &d);

  Kind kind() const { return kind_; }
  /// Only of a tensor.
  const Tensor &tensor() const { return tensor_; }
  /// The tensor, or the number as a tensor of rank 0: f32, i64 or bool.
  Tensor as_tensor() const;
  double as_double() const { return kind_ == Kind::Float ? float_ : static_cast<double>(int_); }
  int64_t as_int() const { return int_; }
  const std::source_location &where() const { return where_; }

private:
  Tensor tensor_;
  union {
    double float_;
    int64_t int_ = 0;
  };
  Kind kind_ = Kind::Tensor;
  std::source_location where_;
};

Tensor operator+(Arg a, Arg b);
Tensor operator-(Arg a, Arg b);
Tensor operator*(Arg a, Arg b);
Tensor operator/(Arg a, Arg b);
Tensor operator%(Arg a, Arg b);
Tensor operator-(Arg a);
/// Elementwise, as all comparisons: `same(a, b)` asks whether two handles are one tensor.
Tensor operator==(Arg a, Arg b);
Tensor operator!=(Arg a, Arg b);
Tensor operator<(Arg a, Arg b);
Tensor operator<=(Arg a, Arg b);
Tensor operator>(Arg a, Arg b);
Tensor operator>=(Arg a, Arg b);

} // namespace tressel
