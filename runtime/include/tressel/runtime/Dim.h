// What is asked of sizes (Size.h) and of shapes made of them: divisions, maxima, bounds, values, text.
//
// Expressions are integer polynomials over symbols, floor divisions and maxima. An expression's value may be negative
// (n - 5), its symbols never are. kDynamic, the size of which nothing is known, absorbs everything.
#pragma once

#include "tressel/runtime/Types.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tressel::dim {

/// Upper bound of a symbol of which none is given.
inline constexpr int64_t kMaxSize = (int64_t(1) << 31) - 1;
/// Bounds of expressions saturate here.
inline constexpr int64_t kUnbounded = int64_t(1) << 62;

namespace detail {
Size max(Size a, Size b);
} // namespace detail

/// The symbol of this name and bounds; a number if the bounds leave one. Symbols with other bounds are other symbols.
/// Throws Error if the name is no identifier ([A-Za-z_][A-Za-z0-9_.]*) or not 0 <= lo <= hi <= kMaxSize.
Size symbol(std::string_view name, int64_t lo = 1, int64_t hi = kMaxSize);

// Arithmetic beside + - *. Throws Error when a number or a coefficient leaves 64 bits.
/// Rounds towards minus infinity. Throws Error if `b` is the number 0.
inline Size floorDiv(Size a, Size b) { return a / b; }
inline Size ceilDiv(Size a, Size b) { return floorDiv(a + b - 1, b); }
constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; } ///< of a >= 0, b > 0
/// a - b * floorDiv(a, b).
inline Size mod(Size a, Size b) { return a % b; }
inline Size max(Size a, Size b) {
  return a.isNumber() && b.isNumber() ? (a.number() < b.number() ? b : a) : detail::max(a, b);
}
constexpr int64_t max(int64_t a, int64_t b) { return a < b ? b : a; }
inline Size min(Size a, Size b) {
  return a.isNumber() && b.isNumber() ? (b.number() < a.number() ? b : a) : -detail::max(-a, -b);
}
/// The next multiple.
inline Size alignUp(Size a, Size multiple) { return ceilDiv(a, multiple) * multiple; }
/// a / b if b certainly divides a.
std::optional<Size> divideExactly(Size a, Size b);

// What is known whatever the symbols are.

struct Bounds {
  int64_t lo = -kUnbounded, hi = kUnbounded;
  bool operator==(const Bounds &) const = default;
};
/// The value lies in [lo, hi]; not always the tightest bounds.
Bounds bounds(Size size);
/// Certainly the same size.
constexpr bool equal(Size a, Size b) { return a == b && a != kDynamic; }
/// Certainly different.
bool distinct(Size a, Size b);
/// a < b, if that is decided by the bounds.
std::optional<bool> less(Size a, Size b);
/// Certainly a <= b.
inline bool atMost(Size a, Size b) {
  const auto greater = less(b, a);
  return greater && !*greater;
}

// Values.

/// Sizes of symbols, each made by `symbol`.
class Values {
public:
  /// The value that stays; false if the symbol has another one already.
  bool bind(Size symbol, Size value);
  const Size *find(Size symbol) const;
  bool empty() const { return values_.empty(); }
  void clear() { values_.clear(); }
  const std::vector<std::pair<Size, Size>> &all() const { return values_; }
  bool operator==(const Values &) const = default;

private:
  std::vector<std::pair<Size, Size>> values_;
};
/// The size for these values. Throws Error when a symbol has none or the number leaves 64 bits.
int64_t evaluate(Size size, const Values &values);
Shape evaluate(const Shape &shape, const Values &values);
/// Symbols replaced by their values, which may be expressions too; those without one stay.
Size substitute(Size size, const Values &values);
/// A typical size, for cost models and choices that do not touch correctness: symbols at 64 within their bounds.
int64_t hint(Size size);
/// The symbols in it are added to `out` where it lacks them, in the order of their text.
void collectSymbols(Size size, std::vector<Size> &out);
bool isSymbol(Size size);
/// What a symbolic size is made of, for those who compute it themselves: the sum of the terms, each its coefficient times
/// the product of its factors.
struct Factor {
  enum class Kind : uint8_t { Symbol, FloorDiv, Max } kind;
  Size a, b; ///< Symbol: itself. FloorDiv: a // b. Max: of both.
};
struct Term {
  int64_t coefficient = 1;
  std::vector<Factor> factors;
};
std::vector<Term> terms(Size size);
/// Of a size for which isSymbol holds.
std::string_view symbolName(Size symbol);

// Text.

/// "4*n + 4", "(n + 1)//2", "7", "?".
std::string str(Size size);
/// The same with the bounds of symbols that do not have the usual ones, as `parse` reads it: "4*n[1..512] + 4".
std::string spell(Size size);
/// Reads + - * // % ( ) max(a, b) min(a, b), numbers and symbols with their bounds; nothing if it is something else.
std::optional<Size> parse(std::string_view text);

// Shapes.

Size numElements(const Shape &shape);
Size bytes(const TensorType &type);
/// Whether every size is a number or an expression.
bool isKnown(const Shape &shape);
/// Nothing is certain to be wrong with `value` as the run-time shape of `declared`: binds the symbols that stand alone
/// in it, then compares everything. Returns what is wrong ("dimension 0 is 3, but n is 4 already"), else nothing. Sizes
/// in `declared` with symbols that are not bound yet are left out when `partial`.
std::string unify(const Shape &declared, const Shape &value, Values &values, bool partial = false);

} // namespace tressel::dim
