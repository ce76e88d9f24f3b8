// Canonical form. An expression is a sum of terms, each an integer times a product of atoms; an atom is a symbol, a
// floor division or a maximum. Atoms are interned by their text, terms are sorted by the text of their atoms, so that
// the text of an expression is canonical too and expressions are interned by it; nothing depends on the order in which
// they were made. A floor division by a number keeps only coefficients in [0, number), so equal ones meet.
#include "tressel/runtime/Dim.h"

#include "Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <unordered_map>

namespace tressel::dim {

using runtime::concat;
using runtime::throwError;

namespace {

enum class AtomKind : uint8_t { Symbol, FloorDiv, Max };
struct Atom {
  AtomKind kind;
  std::string text, shown; ///< as spelled, and without bounds
  std::string name;        ///< Symbol
  Bounds bounds;
  Size a, b; ///< FloorDiv, Max
};

struct ByText {
  bool operator()(const Atom *x, const Atom *y) const { return x != y && x->text < y->text; }
};
/// Sorted by text; powers are repeated.
using Monomial = std::vector<const Atom *>;
struct TermOrder {
  bool operator()(const Monomial &x, const Monomial &y) const {
    if (x.size() != y.size())
      return x.size() > y.size(); // the constant term last
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end(), ByText());
  }
};
using Poly = std::map<Monomial, int64_t, TermOrder>;

struct Node {
  Poly poly;
  Bounds bounds;
  std::string text, shown;
};

constexpr int64_t kFirstHandle = kDynamic.bits() + 1;
[[noreturn]] void tooLarge() { throwError<Error>("a size is too large: it leaves 64 bits"); }
int64_t addChecked(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    tooLarge();
  return sum;
}
int64_t floorDivNumbers(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
int64_t mulChecked(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    tooLarge();
  return product;
}

//--- Intervals --------------------------------------------------------------------------------------------------------
int64_t saturate(__int128 v) { return static_cast<int64_t>(std::clamp<__int128>(v, -kUnbounded, kUnbounded)); }
Bounds mulBounds(Bounds x, Bounds y) {
  const __int128 p[] = {__int128(x.lo) * y.lo, __int128(x.lo) * y.hi, __int128(x.hi) * y.lo, __int128(x.hi) * y.hi};
  return {saturate(*std::min_element(p, p + 4)), saturate(*std::max_element(p, p + 4))};
}
Bounds addBounds(Bounds x, Bounds y) { return {saturate(__int128(x.lo) + y.lo), saturate(__int128(x.hi) + y.hi)}; }
/// Term by term, as if each took its values by itself.
Bounds boundsOf(const Poly &poly) {
  Bounds sum{0, 0};
  for (const auto &[atoms, coef] : poly) {
    Bounds term{coef, coef};
    for (const Atom *atom : atoms)
      term = mulBounds(term, atom->bounds);
    sum = addBounds(sum, term);
  }
  return sum;
}

//--- Text -------------------------------------------------------------------------------------------------------------
std::string print(const Poly &poly, std::string Atom::*text) {
  std::string out;
  for (const auto &[atoms, coef] : poly) {
    const bool negative = coef < 0;
    out += out.empty() ? (negative ? "-" : "") : negative ? " - " : " + ";
    const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(coef) : static_cast<uint64_t>(coef);
    std::string product;
    if (magnitude != 1 || atoms.empty())
      product = std::to_string(magnitude);
    for (const Atom *atom : atoms)
      product += (product.empty() ? "" : "*") + atom->*text;
    out += product;
  }
  return out.empty() ? "0" : out;
}

//--- The table --------------------------------------------------------------------------------------------------------
Bounds tightBounds(const Poly &poly);

/// Nodes are published in chunks that never move, so that reading one takes no lock: whoever has a handle got it after
/// the node was written.
class Table {
public:
  static Table &instance() {
    static Table &table = *new Table();
    return table;
  }

  bool has(int64_t handle) const {
    const int64_t place = handle - kFirstHandle;
    return place % kSpacing == 0 && static_cast<size_t>(place / kSpacing) < count_.load(std::memory_order_acquire);
  }
  const Node &node(Size size) const {
    const auto i = static_cast<size_t>((size.bits() - kFirstHandle) / kSpacing);
    return chunks_[i / kChunk].load(std::memory_order_acquire)[i % kChunk];
  }

  /// Expressions of expressions of themselves double with each step.
  static constexpr size_t kMostText = 1 << 16;
  Size intern(Poly poly) {
    if (poly.empty())
      return 0;
    if (poly.size() == 1 && poly.begin()->first.empty()) {
      return poly.begin()->second;
    }
    std::string text = print(poly, &Atom::text);
    std::lock_guard lock(mutex_);
    if (auto it = handles_.find(text); it != handles_.end())
      return it->second;
    if (count_ == kChunk * kChunks || text.size() > kMostText)
      throwError<Error>("too many or too long size expressions");
    auto &chunk = chunks_[count_ / kChunk];
    if (count_ % kChunk == 0)
      chunk.store(new Node[kChunk], std::memory_order_release);
    Node &node = chunk.load(std::memory_order_relaxed)[count_ % kChunk];
    node.bounds = tightBounds(poly);
    node.shown = print(poly, &Atom::shown);
    node.poly = std::move(poly);
    node.text = text;
    const int64_t handle = kFirstHandle + static_cast<int64_t>(count_) * kSpacing;
    count_.fetch_add(1, std::memory_order_release);
    const Size size = Size::fromBits(handle);
    handles_.emplace(std::move(text), size);
    return size;
  }

  const Atom *intern(Atom atom) {
    std::lock_guard lock(mutex_);
    auto &known = atoms_[atom.text];
    if (!known)
      known = new Atom(std::move(atom));
    return known;
  }

private:
  /// Between two handles, so that most forged ones are none.
  static constexpr int64_t kSpacing = 256;
  static constexpr size_t kChunk = 1024, kChunks = 1 << 14;
  mutable std::mutex mutex_;
  std::atomic<Node *> chunks_[kChunks] = {};
  std::atomic<size_t> count_{0};
  std::unordered_map<std::string, Size> handles_;
  std::unordered_map<std::string, const Atom *> atoms_;
};

Poly polyOf(Size size) {
  if (size.isSymbolic())
    return Table::instance().node(size).poly;
  Poly poly;
  if (size != 0)
    poly[{}] = size.number();
  return poly;
}
Size make(Poly poly) { return Table::instance().intern(std::move(poly)); }
Size makeAtom(const Atom *atom) { return make({{{atom}, 1}}); }

void accumulate(Poly &into, const Monomial &atoms, int64_t coef) {
  auto [it, isNew] = into.try_emplace(atoms, 0);
  it->second = addChecked(it->second, coef);
  if (it->second == 0)
    into.erase(it);
}
/// poly + factor * other, or false where a coefficient leaves 64 bits.
bool addMultiple(Poly &poly, const Poly &other, int64_t factor) {
  for (const auto &[atoms, coef] : other) {
    int64_t &sum = poly[atoms], term;
    if (__builtin_mul_overflow(coef, factor, &term) || __builtin_add_overflow(sum, term, &sum))
      return false;
    if (sum == 0)
      poly.erase(atoms);
  }
  return true;
}

/// What is in both; the first where nothing is.
Bounds both(Bounds x, Bounds y) {
  const Bounds common{std::max(x.lo, y.lo), std::min(x.hi, y.hi)};
  return common.lo <= common.hi ? common : x;
}

/// `left`: how many more forms of the sum may be tried.
Bounds tightBounds(const Poly &poly, int &left) {
  Bounds found = boundsOf(poly);
  if (poly.size() < 2)
    return found;
  for (const auto &[atoms, coef] : poly) {
    if (atoms.size() != 1 || atoms.front()->kind == AtomKind::Symbol)
      continue;
    const Atom &atom = *atoms.front();
    // Of `scale` times the sum, with `factor` times `part` for the atom's term.
    auto with = [&, &atoms = atoms](Size part, int64_t factor, int64_t scale) -> std::optional<Bounds> {
      Poly rest = poly, other;
      rest.erase(atoms);
      if (left <= 0 || !addMultiple(other, rest, scale) || !addMultiple(other, polyOf(part), factor))
        return std::nullopt;
      --left;
      return tightBounds(other, left);
    };
    if (atom.kind == AtomKind::Max) {
      const auto a = with(atom.a, coef, 1), b = with(atom.b, coef, 1);
      if (!a || !b)
        continue;
      // It is one of the two, and the larger one.
      found = both(found, coef > 0 ? Bounds{std::max(a->lo, b->lo), std::max(a->hi, b->hi)}
                                   : Bounds{std::min(a->lo, b->lo), std::min(a->hi, b->hi)});
    } else if (atom.b.isNumber() && atom.b.number() > 0 && coef != INT64_MIN) {
      // k * (a//k) is a less a rest of 0 to k - 1.
      const int64_t k = atom.b.number(), scale = k / std::gcd(k, coef), times = coef / std::gcd(k, coef);
      if (const auto whole = with(atom.a, times, scale)) {
        const Bounds scaled = addBounds(*whole, mulBounds({times, times}, {1 - k, 0}));
        found = both(found, {scaled.lo <= -kUnbounded ? scaled.lo : -floorDivNumbers(-scaled.lo, scale),
                             scaled.hi >= kUnbounded ? scaled.hi : floorDivNumbers(scaled.hi, scale)});
      }
    }
  }
  return found;
}
/// Also where terms depend on each other: 2 * ((n + 1)//2) - n is 0 or 1.
Bounds tightBounds(const Poly &poly) {
  int left = 24;
  return tightBounds(poly, left);
}

Monomial product(const Monomial &a, const Monomial &b) {
  Monomial atoms;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(atoms), ByText());
  return atoms;
}

/// a / b as monomials, if b divides a.
std::optional<Monomial> quotient(const Monomial &a, const Monomial &b) {
  Monomial rest;
  auto at = b.begin();
  for (const Atom *atom : a) {
    if (at != b.end() && *at == atom)
      ++at;
    else
      rest.push_back(atom);
  }
  return at == b.end() ? std::optional(rest) : std::nullopt;
}

/// Polynomial division without rest, by the leading terms.
std::optional<Poly> divide(Poly a, const Poly &b) {
  Poly out;
  const auto &[leading, coef] = *b.begin();
  for (int steps = 0; !a.empty(); ++steps) {
    const auto [atoms, value] = *a.begin();
    const auto rest = quotient(atoms, leading);
    if (!rest || value % coef || steps > 64)
      return std::nullopt;
    const int64_t factor = value / coef;
    accumulate(out, *rest, factor);
    for (const auto &[other, otherCoef] : b)
      accumulate(a, product(*rest, other), mulChecked(-factor, otherCoef));
    if (a.count(atoms))
      return std::nullopt; // the order is no monomial order here: no progress
  }
  return out;
}

/// In parentheses, unless it is one factor already.
std::string wrapped(Size size, bool bounds) {
  const std::string text = bounds ? spell(size) : str(size);
  int depth = 0;
  for (char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth == 0 && (c == ' ' || c == '*' || c == '/' || c == '-'))
      return concat("(", text, ")");
  }
  return text;
}

Size floorDivAtom(Size a, Size b) {
  Atom atom{.kind = AtomKind::FloorDiv};
  atom.text = concat("(", wrapped(a, true), "//", wrapped(b, true), ")");
  atom.shown = concat("(", wrapped(a, false), "//", wrapped(b, false), ")");
  const Bounds x = bounds(a), y = bounds(b);
  if (y.lo > 0) {
    const int64_t q[] = {floorDivNumbers(x.lo, y.lo), floorDivNumbers(x.lo, y.hi), floorDivNumbers(x.hi, y.lo),
                         floorDivNumbers(x.hi, y.hi)};
    atom.bounds = {*std::min_element(q, q + 4), *std::max_element(q, q + 4)};
  }
  atom.a = a, atom.b = b;
  return makeAtom(Table::instance().intern(std::move(atom)));
}

Size floorDivByNumber(Size a, int64_t c) {
  // By c * Q + R with the coefficients of R in [0, c), in (-c, 0] where the term is never positive: so that R's terms
  // do not cancel, and its bounds stay tight.
  Poly whole, rest;
  int64_t common = c;
  for (const auto &[atoms, coef] : polyOf(a)) {
    Bounds term{1, 1};
    for (const Atom *atom : atoms)
      term = mulBounds(term, atom->bounds);
    const bool flipped = term.hi <= 0 && coef != INT64_MIN;
    const int64_t q = flipped ? -floorDivNumbers(-coef, c) : floorDivNumbers(coef, c), r = coef - q * c;
    if (q)
      whole[atoms] = q;
    if (r) {
      rest[atoms] = r;
      if (!atoms.empty())
        common = std::gcd(common, r);
    }
  }
  // What the coefficients have in common; the constant's rest by it cannot reach the next multiple.
  if (common > 1) {
    Poly smaller;
    for (const auto &[atoms, coef] : rest)
      if (coef / common)
        smaller[atoms] = coef / common;
    rest = std::move(smaller);
    c /= common;
  }
  const Size q = make(std::move(whole));
  const Bounds range = boundsOf(rest);
  if (c == 1)
    return q + make(std::move(rest));
  const int64_t lowest = floorDivNumbers(range.lo, c);
  if (lowest == floorDivNumbers(range.hi, c))
    return q + lowest;
  // x//b//c is x//(b*c), and (x//b + k)//c is (x + k*b)//(b*c).
  const auto &first = *rest.begin();
  const bool plusConstant = rest.size() == 2 && rest.rbegin()->first.empty();
  if ((rest.size() == 1 || plusConstant) && first.second == 1 && first.first.size() == 1 &&
      first.first[0]->kind == AtomKind::FloorDiv && first.first[0]->b.isNumber()) {
    const Atom *inner = first.first[0];
    const int64_t k = plusConstant ? rest.rbegin()->second : 0;
    return q + floorDiv(inner->a + inner->b * k, inner->b * c);
  }
  return q + floorDivAtom(make(std::move(rest)), c);
}

/// Rebuilds a size with every symbol replaced by what `value` says.
template <typename Fn> Size rebuild(Size size, Fn value) {
  if (!size.isSymbolic())
    return size;
  Size sum;
  for (const auto &[atoms, coef] : Table::instance().node(size).poly) {
    Size term = coef;
    for (const Atom *atom : atoms) {
      Size v;
      switch (atom->kind) {
      case AtomKind::Symbol:
        v = value(atom);
        break;
      case AtomKind::FloorDiv: {
        const Size by = rebuild(atom->b, value);
        if (by == 0)
          throwError<Error>("a size divides by zero: ", atom->shown);
        v = floorDiv(rebuild(atom->a, value), by);
        break;
      }
      case AtomKind::Max:
        v = max(rebuild(atom->a, value), rebuild(atom->b, value));
        break;
      }
      term *= v;
    }
    sum += term;
  }
  return sum;
}

const Atom *symbolAtom(Size size) {
  if (!size.isSymbolic())
    return nullptr;
  const Poly &poly = Table::instance().node(size).poly;
  const auto &[atoms, coef] = *poly.begin();
  return poly.size() == 1 && coef == 1 && atoms.size() == 1 && atoms[0]->kind == AtomKind::Symbol ? atoms[0] : nullptr;
}
Size symbolOf(const Atom *symbol) { return makeAtom(symbol); }

bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

} // namespace

namespace detail {

Size max(Size a, Size b) {
  if (a == kDynamic || b == kDynamic)
    return kDynamic;
  const Poly apart = polyOf(a - b);
  auto larger = [&, a = a, b = b](Bounds difference) {
    return difference.lo >= 0 ? std::optional(a) : difference.hi <= 0 ? std::optional(b) : std::nullopt;
  };
  if (const auto found = larger(boundsOf(apart)))
    return *found;
  // Of a maximum and something more, one side may be settled: max(0, max(-1, -n) + n) is max(0, n - 1).
  for (auto [one, other] : {std::pair(a, b), std::pair(b, a)})
    for (const auto &[atoms, coef] : polyOf(one)) {
      if (coef != 1 || atoms.size() != 1 || atoms.front()->kind != AtomKind::Max)
        continue;
      const Size rest = one - makeAtom(atoms.front());
      const Size p = atoms.front()->a + rest, q = atoms.front()->b + rest;
      const Bounds overP = bounds(other - p), overQ = bounds(other - q);
      if (overP.hi <= 0 || overQ.hi <= 0)
        return dim::max(p, q);
      if (overP.lo >= 0)
        return dim::max(other, q);
      if (overQ.lo >= 0)
        return dim::max(other, p);
    }
  if (const auto found = larger(bounds(a - b))) // behind the above, which gives shorter expressions
    return *found;
  // A common factor stands outside, where a multiple is seen to be one.
  int64_t common = 0;
  for (Size size : {a, b})
    for (const auto &[atoms, coef] : polyOf(size))
      common = std::gcd(common, coef);
  if (common > 1)
    return max(*divideExactly(a, common), *divideExactly(b, common)) * common;
  if (spell(b) < spell(a))
    std::swap(a, b);
  Atom atom{.kind = AtomKind::Max};
  atom.text = concat("max(", spell(a), ", ", spell(b), ")");
  atom.shown = concat("max(", str(a), ", ", str(b), ")");
  const Bounds x = bounds(a), y = bounds(b);
  atom.bounds = {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
  atom.a = a, atom.b = b;
  return makeAtom(Table::instance().intern(std::move(atom)));
}

} // namespace detail

Size symbol(std::string_view name, int64_t lo, int64_t hi) {
  bool valid = !name.empty() && isNameStart(name[0]) && name != "max" && name != "min";
  for (size_t i = 0; i < name.size(); ++i)
    valid &= isNameStart(name[i]) || isDigit(name[i]) || (name[i] == '.' && i + 1 < name.size() && name[i + 1] != '.');
  if (!valid)
    throwError<Error>("'", name, "' is no name for a dimension: letters, digits and _, not a digit first");
  if (lo < 0 || lo > hi || hi > kMaxSize)
    throwError<Error>("dimension '", name, "' cannot lie between ", lo, " and ", hi,
                      ": bounds are 0 <= least <= most <= ", kMaxSize);
  if (lo == hi)
    return lo;
  Atom atom{.kind = AtomKind::Symbol};
  atom.shown = atom.name = name;
  atom.text = name;
  if (lo != 1 || hi != kMaxSize)
    atom.text += concat("[", lo, "..", hi, "]");
  atom.bounds = {lo, hi};
  return makeAtom(Table::instance().intern(std::move(atom)));
}

std::optional<Size> divideExactly(Size a, Size b) {
  if (a == kDynamic || b == kDynamic || b == 0)
    return std::nullopt;
  if (a == 0)
    return a;
  if (a.isNumber() && b.isNumber())
    return a.number() % b.number() ? std::nullopt : std::optional(Size(a.number() / b.number()));
  auto whole = divide(polyOf(a), polyOf(b));
  return whole ? std::optional(make(std::move(*whole))) : std::nullopt;
}

Bounds bounds(Size size) {
  if (size.isSymbolic())
    return Table::instance().node(size).bounds;
  return size == kDynamic ? Bounds() : Bounds{size.number(), size.number()};
}

bool distinct(Size a, Size b) {
  if (a == kDynamic || b == kDynamic)
    return false;
  if (a.isNumber() && b.isNumber()) // their difference may leave 64 bits
    return a != b;
  const Bounds difference = bounds(a - b);
  return difference.lo > 0 || difference.hi < 0;
}

std::optional<bool> less(Size a, Size b) {
  if (a == kDynamic || b == kDynamic)
    return std::nullopt;
  if (a.isNumber() && b.isNumber())
    return a.number() < b.number();
  const Bounds difference = bounds(a - b);
  if (difference.hi < 0)
    return true;
  return difference.lo >= 0 ? std::optional(false) : std::nullopt;
}

bool Values::bind(Size symbol, Size value) {
  if (const Size *known = find(symbol))
    return *known == value;
  values_.emplace_back(symbol, value);
  return true;
}
const Size *Values::find(Size symbol) const {
  for (const auto &[known, value] : values_)
    if (known == symbol)
      return &value;
  return nullptr;
}

int64_t evaluate(Size size, const Values &values) {
  if (size.isNumber())
    return size.number();
  if (size == kDynamic)
    throwError<Error>("a size is not known");
  return rebuild(size,
                 [&](const Atom *atom) {
                   const Size *value = values.find(symbolOf(atom));
                   if (!value)
                     throwError<Error>("the size of dimension '", atom->name, "' is not known");
                   return *value;
                 })
      .number();
}
Shape evaluate(const Shape &shape, const Values &values) {
  Shape out;
  for (Size d : shape)
    out.push_back(evaluate(d, values));
  return out;
}
Size substitute(Size size, const Values &values) {
  return rebuild(size, [&](const Atom *atom) {
    const Size symbol = symbolOf(atom);
    const Size *value = values.find(symbol);
    return value ? *value : symbol;
  });
}
int64_t hint(Size size) {
  static constexpr int64_t kTypical = 64;
  return rebuild(size, [](const Atom *atom) { return std::clamp<int64_t>(kTypical, atom->bounds.lo, atom->bounds.hi); })
      .numberOr(kTypical);
}
void collectSymbols(Size size, std::vector<Size> &out) {
  rebuild(size, [&](const Atom *atom) {
    const Size symbol = symbolOf(atom);
    if (std::find(out.begin(), out.end(), symbol) == out.end())
      out.push_back(symbol);
    return symbol;
  });
}
std::vector<Term> terms(Size size) {
  std::vector<Term> out;
  for (const auto &[atoms, coef] : polyOf(size)) {
    Term &term = out.emplace_back(Term{coef, {}});
    for (const Atom *atom : atoms)
      term.factors.push_back(atom->kind == AtomKind::Symbol     ? Factor{Factor::Kind::Symbol, symbolOf(atom), {}}
                             : atom->kind == AtomKind::FloorDiv ? Factor{Factor::Kind::FloorDiv, atom->a, atom->b}
                                                                : Factor{Factor::Kind::Max, atom->a, atom->b});
  }
  return out;
}
bool isSymbol(Size size) { return symbolAtom(size) != nullptr; }
std::string_view symbolName(Size symbol) { return symbolAtom(symbol)->name; }

/// An atom alone needs no parentheses around it.
static std::string unwrapped(const std::string &text) {
  if (!text.starts_with('(') || !text.ends_with(')'))
    return text;
  int depth = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0)
      return text;
  }
  return text.substr(1, text.size() - 2);
}
std::string str(Size size) {
  if (size.isSymbolic())
    return unwrapped(Table::instance().node(size).shown);
  return size == kDynamic ? "?" : std::to_string(size.number());
}
std::string spell(Size size) { return size.isSymbolic() ? unwrapped(Table::instance().node(size).text) : str(size); }

namespace {

/// sum := product (('+' | '-') product)*, product := factor (('*' | '//' | '%') factor)*.
class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<Size> run() {
    const auto value = sum(0);
    skipSpaces();
    return value && at_ == text_.size() ? value : std::nullopt;
  }

private:
  using Result = std::optional<Size>;
  static constexpr int kMaxDepth = 64;

  void skipSpaces() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
  }
  bool eat(std::string_view token) {
    skipSpaces();
    if (!text_.substr(at_).starts_with(token))
      return false;
    at_ += token.size();
    return true;
  }
  Result number() {
    skipSpaces();
    const size_t start = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && isDigit(text_[at_]); ++at_)
      value = addChecked(mulChecked(value, 10), text_[at_] - '0');
    return at_ > start ? Result(value) : std::nullopt;
  }
  Result sum(int depth) {
    if (depth > kMaxDepth)
      return std::nullopt;
    Size sum;
    bool minus = eat("-");
    while (true) {
      const Result term = product(depth);
      if (!term)
        return std::nullopt;
      sum += minus ? -*term : *term;
      minus = eat("-");
      if (!minus && !eat("+"))
        return sum;
    }
  }
  Result product(int depth) {
    Result value = factor(depth);
    while (value) {
      if (eat("*")) {
        const Result other = factor(depth);
        if (!other)
          return std::nullopt;
        value = *value * *other;
        continue;
      }
      const bool divides = eat("//");
      if (!divides && !eat("%"))
        break;
      const Result other = factor(depth);
      if (!other || *other == 0)
        return std::nullopt;
      const Size whole = floorDiv(*value, *other);
      value = divides ? whole : *value - whole * *other;
    }
    return value;
  }
  Result factor(int depth) {
    if (eat("(")) {
      const Result value = sum(depth + 1);
      return value && eat(")") ? value : std::nullopt;
    }
    skipSpaces();
    if (at_ == text_.size() || !isNameStart(text_[at_]))
      return number();
    const size_t start = at_;
    while (at_ < text_.size() && (isNameStart(text_[at_]) || isDigit(text_[at_]) || text_[at_] == '.'))
      ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if ((name == "max" || name == "min") && eat("(")) {
      const Result a = sum(depth + 1);
      const Result b = a && eat(",") ? sum(depth + 1) : std::nullopt;
      if (!b || !eat(")"))
        return std::nullopt;
      return name == "max" ? max(*a, *b) : min(*a, *b);
    }
    int64_t lo = 1, hi = kMaxSize;
    if (at_ < text_.size() && text_[at_] == '[') {
      ++at_;
      const Result low = number();
      const Result high = low && eat("..") ? number() : std::nullopt;
      if (!high || !eat("]"))
        return std::nullopt;
      lo = low->number(), hi = high->number();
    }
    return symbol(name, lo, hi);
  }

  std::string_view text_;
  size_t at_ = 0;
};

} // namespace

std::optional<Size> parse(std::string_view text) {
  try {
    return Parser(text).run();
  } catch (const Error &) {
    return std::nullopt;
  }
}

Size numElements(const Shape &shape) {
  Size n = 1;
  for (Size d : shape)
    n *= d;
  return n;
}
Size bytes(const TensorType &type) { return numElements(type.shape) * sizeOf(type.dtype); }
bool isKnown(const Shape &shape) {
  return std::none_of(shape.begin(), shape.end(), [](Size d) { return d == kDynamic; });
}

std::string unify(const Shape &declared, const Shape &value, Values &values, bool partial) {
  if (declared.rank() != value.rank())
    return concat("has ", value.rank(), " dimensions, not ", declared.rank());
  for (int i = 0; i < declared.rank(); ++i) {
    const Atom *atom = symbolAtom(declared[i]);
    if (!atom)
      continue;
    const int64_t given = value.extent(i);
    if (given < atom->bounds.lo || given > atom->bounds.hi)
      return concat("dimension ", i, " is ", given, ", but ", atom->name, " lies between ", atom->bounds.lo, " and ",
                    atom->bounds.hi);
    if (!values.bind(declared[i], value[i]))
      return concat("dimension ", i, " is ", given, ", but ", atom->name, " is ", str(*values.find(declared[i])),
                    " already");
  }
  for (int i = 0; i < declared.rank(); ++i) {
    if (declared[i] == kDynamic || symbolAtom(declared[i]))
      continue;
    std::vector<Size> symbols;
    collectSymbols(declared[i], symbols);
    const bool bound = std::all_of(symbols.begin(), symbols.end(), [&](Size s) { return values.find(s); });
    if (!bound && partial)
      continue;
    const int64_t expected = evaluate(declared[i], values);
    if (expected != value[i])
      return concat("dimension ", i, " is ", str(value[i]), ", not ",
                    declared[i].isNumber() ? "" : concat(str(declared[i]), " = "), expected);
  }
  return {};
}

} // namespace tressel::dim

namespace tressel {

Size Size::add(Size a, Size b) {
  using namespace dim;
  if (a == kDynamic || b == kDynamic)
    return kDynamic;
  if (a == 0 || b == 0)
    return a == 0 ? b : a;
  Poly sum = polyOf(a);
  for (const auto &[atoms, coef] : polyOf(b))
    accumulate(sum, atoms, coef);
  return make(std::move(sum));
}

Size Size::multiply(Size a, Size b) {
  using namespace dim;
  if (a == kDynamic || b == kDynamic)
    return kDynamic;
  if (a == 1 || b == 1)
    return a == 1 ? b : a;
  Poly out;
  const Poly x = polyOf(a), y = polyOf(b);
  for (const auto &[atoms, coef] : x)
    for (const auto &[others, otherCoef] : y)
      accumulate(out, product(atoms, others), mulChecked(coef, otherCoef));
  return make(std::move(out));
}

Size Size::divide(Size a, Size b) {
  using namespace dim;
  if (a == kDynamic || b == kDynamic)
    return kDynamic;
  if (b == 0)
    throwError<Error>("a size is divided by 0");
  if (a.isNumber() && b.isNumber())
    return floorDivNumbers(a.number(), b.number());
  if (b.numberOr(0) < 0)
    a = -a, b = -b;
  if (b.isNumber())
    return floorDivByNumber(a, b.number());
  if (auto whole = divideExactly(a, b))
    return *whole;
  const Bounds x = bounds(a), y = bounds(b);
  if (x.lo >= 0 && x.hi < y.lo)
    return 0;
  return floorDivAtom(a, b);
}

bool Size::isLess(Size a, Size b) {
  const std::optional<bool> less = dim::less(a, b);
  if (!less)
    runtime::throwError<InternalError>("whether ", dim::str(a), " is less than ", dim::str(b), " depends on the sizes");
  return *less;
}

void Size::checkBits(int64_t bits) {
  if (bits != kUnknown && !dim::Table::instance().has(bits))
    runtime::throwError<Error>(bits, " is no size");
}

void Size::failNumber() const {
  runtime::throwError<InternalError>("the size ", dim::str(*this), " was used as a number");
}
void Size::failRange() { runtime::throwError<Error>("a number is too large for a size: it leaves 64 bits"); }

} // namespace tressel
