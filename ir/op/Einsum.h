// Einstein's summation: an equation such as "bij,bjk->bik" over tensors, written in products, transposes and sums.
#pragma once

#include "ir/op/Expr.h"

#include <optional>
#include <string>
#include <string_view>

namespace tressel::op {

/// An equation for operands of known ranks. A label is a letter, or a negative number for a dimension of `...`, counted
/// from the last.
struct Einsum {
  using Labels = std::vector<int>;
  std::vector<Labels> operands;
  Labels result;

  /// Nothing if the equation is malformed or does not fit the operands; `error` gets the reason.
  static std::optional<Einsum> parse(std::string_view equation, std::span<const TensorType> operands, std::string &error);
  /// The shape of the result. Sizes of equal labels must agree, or be 1 for labels of `...`; nothing if they do not.
  std::optional<Shape> shape(std::span<const TensorType> operands) const;
};

namespace expr {
Expr einsumOf(const Einsum &equation, std::vector<Expr> operands);
} // namespace expr

} // namespace tressel::op
