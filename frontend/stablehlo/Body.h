// What the regions of reductions, windows, scatters and sorts compute, recognised by their structure.
#pragma once

#include "mlir/IR/Region.h"

#include <string>
#include <vector>

namespace tressel::stablehlo {

/// Each value that a region returns as one expression over its arguments a0, a1, ... without blanks: "add(a0,a1)",
/// "select(compare.LT(a0,a1),a0,a1)". Operands of commutative ops are sorted, so that equal structures are equal text.
/// Constants are "c(value)". "?" for a value that is made otherwise, or by more than a page of text.
std::vector<std::string> expressionsOf(mlir::Region &region);

/// "add" when `expression` combines arguments `a` and `b` and nothing else by one commutative op; else empty.
std::string combinerOf(const std::string &expression, size_t a, size_t b);

} // namespace tressel::stablehlo
