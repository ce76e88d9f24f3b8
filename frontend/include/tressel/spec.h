// Types of inputs that do not exist yet: for compiling ahead, for shapes of parameters, for a package's signature.
#pragma once

#include <tressel/dim.h>
#include <tressel/tensor.h>

#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <vector>

namespace tressel {

/// A dimension's size, or the name of a dynamic one. Among types that are given together, equal names are one size, and
/// bounds given once hold for all uses of the name. Two different bounds are an Error that names both places.
struct DimSpec {
  template <typename T>
  requires std::is_integral_v<T> DimSpec(T n) : size(Size::clamped(static_cast<int64_t>(n))) {}
  DimSpec(Size n) : size(n) {}
  DimSpec(const char *dimName) : size(kDynamic), name(dimName) {}
  /// With bounds of what calls may give: {"batch", 1, 512}.
  DimSpec(std::string dimName, int64_t least, int64_t most)
      : size(kDynamic), name(std::move(dimName)), lo(least), hi(most) {}
  Size size;
  std::string name = {};
  int64_t lo = 1, hi = dim::kMaxSize; ///< of a named one
};

/// {64, 784} or {"batch", 784}, or a Shape.
struct DimSpecs {
  DimSpecs() = default;
  DimSpecs(std::initializer_list<DimSpec> list) : dims(list) {}
  DimSpecs(const Shape &shape) : dims(shape.begin(), shape.end()) {}
  std::vector<DimSpec> dims;
};

/// {f32, {64, 784}} or {f32, {"batch", 784}, "x"}.
struct TensorSpec {
  TensorSpec(DType type, DimSpecs sizes, std::string inputName = {})
      : dtype(type), dims(std::move(sizes.dims)), name(std::move(inputName)) {}
  TensorSpec(const TensorType &type) : TensorSpec(type.dtype, DimSpecs(type.shape)) {}
  DType dtype;
  std::vector<DimSpec> dims;
  std::string name;

  /// Named sizes are symbols. Throws ShapeError for more than kMaxRank dimensions or a negative size, and Error for a
  /// name or bounds that no dimension can have.
  TensorType type() const;
};

namespace detail {
/// The types of inputs that are given together to the function `op`. Throws as TensorSpec::type does, and Error when
/// two inputs have one name, or a dimension has two bounds.
std::vector<TensorType> typesOf(std::span<const TensorSpec> specs, const char *op, const std::source_location &where);
/// Throws Error, which names both places, when two of the names are one. `what` is "input" or "output"; empty ones are
/// none.
void checkDistinct(std::span<const std::string> names, const char *what, const char *op,
                   const std::source_location &where);
} // namespace detail

} // namespace tressel
