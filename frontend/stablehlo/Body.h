// Recognises by their structure what the regions of reductions, windows, scatters and sorts compute.
#pragma once

#include "mlir/IR/Region.h"
#include "mlir/IR/ValueRange.h"
#include "tressel/runtime/Types.h"

#include <string>
#include <string_view>
#include <vector>

namespace tressel::stablehlo {

/// Each value that a region returns as one expression over its arguments a0, a1, ... without blanks: "add(a0,a1)",
/// "select(compare.LT(a0,a1),a0,a1)"; comparisons by the total order of floats are "compare.LT.TOTALORDER(a0,a1)".
/// Operands of commutative ops are sorted, so that equal structures are equal text.
/// Constants are "c(value)". "?" for a value that is made otherwise, or by more than a page of text.
std::vector<std::string> expressionsOf(mlir::Region &region);

/// "add" when `expression` combines arguments `a` and `b` and nothing else by one commutative op; else empty.
std::string combinerOf(const std::string &expression, size_t a, size_t b);

/// The same of one value of a program, over `arguments`. A constant is broadcast to any shape.
std::string expressionOf(mlir::Value v, mlir::ValueRange arguments);

/// How JAX canonicalizes a float `a` for a comparison by the total order: zeros become equal, and so do NaNs, which
/// sort last.
std::string canonicalFloat(const std::string &a, DType type);
/// Whether a value has that form.
bool isCanonicalFloat(mlir::Value v, DType type);

/// The outermost op of an expression, and its operands; an argument is an op without operands.
struct Call {
  std::string_view name;
  std::vector<std::string_view> operands;
};
Call callOf(std::string_view expression);

} // namespace tressel::stablehlo
