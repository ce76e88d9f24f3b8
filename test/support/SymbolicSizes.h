// Sizes of random programs that are known only when they run.
#pragma once

#include "test/support/RandomOps.h"
#include "tressel/runtime/Dim.h"

namespace tressel::test {

/// Some numbers stand for symbols: every size that is such a number is declared as the symbol, and has its value when
/// the program runs.
class SymbolicSizes {
public:
  /// One or two symbols, `n` and `m`.
  void draw(Random &random);
  void add(int64_t value, Size symbol);
  bool empty() const { return symbols_.empty(); }
  const dim::Values &values() const { return values_; }

  TensorType declared(const TensorType &type) const;
  /// An input has these sizes: an attribute may name their symbols from here on.
  void give(const TensorType &declared);

  /// The declared types of a call's operands: those that are `known` (declared already), and of the others whether they
  /// are declared with symbols. The op must accept them, and its results be, for these values, those of the call, whose
  /// shape attribute may come to name sizes. Nothing if neither way is legal.
  std::optional<bool> declare(OpCall &call, const std::vector<std::optional<TensorType>> &known) const;

private:
  template <typename Sizes> Sizes replaced(Sizes sizes, bool givenOnly) const;

  std::vector<std::pair<int64_t, Size>> symbols_; ///< value and symbol
  std::vector<Size> given_;
  dim::Values values_;
};

/// Whether any size is not a number.
inline bool isDynamic(const TensorType &type) { return !type.shape.isStatic(); }

} // namespace tressel::test
