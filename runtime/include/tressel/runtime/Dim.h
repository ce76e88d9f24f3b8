// Sizes that are known only when a program runs, as exact integer expressions over named symbols.
//
// A size is an int64_t everywhere: a number stands for itself, and a few numbers next to INT64_MIN (which nothing else
// ever is) are handles of expressions. So shapes, strides, offsets and byte counts keep their type, and code that uses
// the functions below instead of operators works on both; on plain numbers they are plain arithmetic.
//
//   int64_t n = dim::symbol("n", 1, 512);
//   dim::str(dim::mul(dim::add(n, 1), 4))                       // "4*n + 4"
//   dim::floorDiv(dim::mul(n, 784), 28) == dim::mul(n, 28)      // canonical: equal expressions are equal numbers
//
// Expressions are integer polynomials over symbols, floor divisions and maxima. They are interned: made once,
// immutable, never freed; every function here may be called from any thread. An expression's value may be negative (n -
// 5), its symbols never are. kDynamic, the size of which nothing is known, absorbs everything.
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
inline constexpr int64_t kFirstHandle = kDynamic + 1, kEndHandle = kDynamic + (int64_t(1) << 32);
int64_t add(int64_t a, int64_t b);
int64_t mul(int64_t a, int64_t b);
int64_t floorDiv(int64_t a, int64_t b);
int64_t max(int64_t a, int64_t b);
constexpr int64_t floorDivNumbers(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
} // namespace detail

/// The handle of an expression that is no plain number.
constexpr bool isSymbolic(int64_t size) { return size >= detail::kFirstHandle && size < detail::kEndHandle; }
/// A plain number: neither symbolic nor kDynamic.
constexpr bool isConstant(int64_t size) { return size >= detail::kEndHandle; }

/// The symbol of this name and bounds; a number if the bounds leave one. Symbols with other bounds are other symbols.
/// Throws Error if the name is no identifier ([A-Za-z_][A-Za-z0-9_.]*) or not 0 <= lo <= hi <= kMaxSize.
int64_t symbol(std::string_view name, int64_t lo = 1, int64_t hi = kMaxSize);

// Arithmetic. Throws Error when a coefficient leaves 64 bits.
inline int64_t add(int64_t a, int64_t b) { return isConstant(a) && isConstant(b) ? a + b : detail::add(a, b); }
inline int64_t mul(int64_t a, int64_t b) { return isConstant(a) && isConstant(b) ? a * b : detail::mul(a, b); }
inline int64_t neg(int64_t a) { return isConstant(a) ? -a : detail::mul(a, -1); }
inline int64_t sub(int64_t a, int64_t b) { return isConstant(a) && isConstant(b) ? a - b : detail::add(a, neg(b)); }
/// Rounds towards minus infinity; `b` must not be 0.
inline int64_t floorDiv(int64_t a, int64_t b) {
  return isConstant(a) && isConstant(b) ? detail::floorDivNumbers(a, b) : detail::floorDiv(a, b);
}
inline int64_t ceilDiv(int64_t a, int64_t b) { return floorDiv(sub(add(a, b), 1), b); }
/// a - b * floorDiv(a, b).
inline int64_t mod(int64_t a, int64_t b) { return sub(a, mul(b, floorDiv(a, b))); }
inline int64_t max(int64_t a, int64_t b) {
  return isConstant(a) && isConstant(b) ? (a < b ? b : a) : detail::max(a, b);
}
inline int64_t min(int64_t a, int64_t b) { return neg(max(neg(a), neg(b))); }
/// The next multiple.
inline int64_t alignUp(int64_t a, int64_t multiple) { return mul(ceilDiv(a, multiple), multiple); }
/// a / b if b certainly divides a.
std::optional<int64_t> divideExactly(int64_t a, int64_t b);

// What is known whatever the symbols are.

struct Bounds {
  int64_t lo = -kUnbounded, hi = kUnbounded;
  bool operator==(const Bounds &) const = default;
};
/// The value lies in [lo, hi]; not always the tightest bounds.
Bounds bounds(int64_t size);
/// Certainly the same size.
constexpr bool equal(int64_t a, int64_t b) { return a == b && a != kDynamic; }
/// Certainly different.
bool distinct(int64_t a, int64_t b);
/// a < b, if that is decided by the bounds.
std::optional<bool> less(int64_t a, int64_t b);
/// Certainly a <= b.
inline bool atMost(int64_t a, int64_t b) {
  const auto greater = less(b, a);
  return greater && !*greater;
}

// Values.

/// Sizes of symbols, each a handle made by `symbol`.
class Values {
public:
  /// The value that stays; false if the symbol has another one already.
  bool bind(int64_t symbol, int64_t value);
  const int64_t *find(int64_t symbol) const;
  bool empty() const { return values_.empty(); }
  void clear() { values_.clear(); }
  const std::vector<std::pair<int64_t, int64_t>> &all() const { return values_; }
  bool operator==(const Values &) const = default;

private:
  std::vector<std::pair<int64_t, int64_t>> values_;
};
/// The size for these values. Throws Error when a symbol has none or the number leaves 64 bits.
int64_t evaluate(int64_t size, const Values &values);
Shape evaluate(const Shape &shape, const Values &values);
/// Symbols replaced by their values, which may be expressions too; those without one stay.
int64_t substitute(int64_t size, const Values &values);
/// A typical size, for cost models and choices that do not touch correctness: symbols at 64 within their bounds.
int64_t hint(int64_t size);
/// The symbols in it are added to `out` where it lacks them, in the order of their text.
void collectSymbols(int64_t size, std::vector<int64_t> &out);
bool isSymbol(int64_t size);
/// What a symbolic size is made of, for those who compute it themselves: the sum of the terms, each its coefficient times
/// the product of its factors.
struct Factor {
  enum class Kind : uint8_t { Symbol, FloorDiv, Max } kind;
  int64_t a = 0, b = 0; ///< Symbol: itself. FloorDiv: a // b. Max: of both.
};
struct Term {
  int64_t coefficient = 1;
  std::vector<Factor> factors;
};
std::vector<Term> terms(int64_t size);
/// Of a size for which isSymbol holds.
std::string_view symbolName(int64_t symbol);

// Text.

/// "4*n + 4", "(n + 1)//2", "7", "?".
std::string str(int64_t size);
/// The same with the bounds of symbols that do not have the usual ones, as `parse` reads it: "4*n[1..512] + 4".
std::string spell(int64_t size);
/// Reads + - * // % ( ) max(a, b) min(a, b), numbers and symbols with their bounds; nothing if it is something else.
std::optional<int64_t> parse(std::string_view text);

// Shapes.

int64_t numElements(const Shape &shape);
int64_t bytes(const TensorType &type);
/// Whether every size is a number or an expression.
bool isKnown(const Shape &shape);
/// Nothing is certain to be wrong with `value` as the run-time shape of `declared`: binds the symbols that stand alone
/// in it, then compares everything. Returns what is wrong ("dimension 0 is 3, but n is 4 already"), else nothing. Sizes
/// in `declared` with symbols that are not bound yet are left out when `partial`.
std::string unify(const Shape &declared, const Shape &value, Values &values, bool partial = false);

} // namespace tressel::dim
