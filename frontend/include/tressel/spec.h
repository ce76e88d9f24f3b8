// Types of inputs that are not there yet: for compiling ahead, for shapes of parameters, for a package's signature.
#pragma once

#include <tressel/tensor.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace tressel {

/// A dimension's size, or the name of one that is not fixed.
struct DimSpec {
  template <typename T>
  requires std::is_integral_v<T> DimSpec(T n) : size(static_cast<int64_t>(n)) {}
  DimSpec(const char *dimName) : size(kDynamic), name(dimName) {}
  int64_t size;
  std::string name = {};
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

  /// With every named size replaced. Throws ShapeError for more than kMaxRank dimensions, a negative size, and, when
  /// `named` is below 0, for a named one: sizes must be fixed then.
  TensorType type(int64_t named = -1) const;
};

} // namespace tressel
