// Sorting. The comparator is a region; recognised are those that compare keys lexicographically.
#include "frontend/stablehlo/Body.h"
#include "frontend/stablehlo/OpImporter.h"
#include "frontend/stablehlo/OpTable.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <algorithm>
#include <ranges>

namespace tressel::stablehlo {

namespace {
using N = OpImporter;
using V = mlir::Value;

struct Key {
  size_t operand;
  bool descending;
};

/// Reads an order of elements from what a comparator computes.
class Order {
public:
  explicit Order(N &n) : n_(n) {}

  /// The keys by which the expression orders the first element before the second; empty if it has another form.
  std::vector<Key> parse(std::string_view expression) {
    const Call call = callOf(expression);
    if (std::optional<Key> key = strict(call))
      return {*key};
    // One key, or, where it is equal, the further ones.
    if (call.name != "or" || call.operands.size() != 2)
      return {};
    for (size_t i : {0, 1}) {
      const std::optional<Key> key = strict(callOf(call.operands[i]));
      const Call rest = callOf(call.operands[1 - i]);
      if (!key || rest.name != "and" || rest.operands.size() != 2)
        continue;
      for (size_t j : {0, 1}) {
        if (!isEquality(callOf(rest.operands[j]), *key))
          continue;
        std::vector<Key> keys = parse(rest.operands[1 - j]);
        if (!keys.empty())
          keys.insert(keys.begin(), *key);
        return keys;
      }
    }
    return {};
  }

private:
  /// The argument that is compared there.
  std::optional<size_t> argument(std::string_view text, bool totalOrder) {
    for (size_t i = 0; i < 2 * static_cast<size_t>(n_.numInputs()); ++i) {
      const std::string a = "a" + std::to_string(i);
      const DType type = typeOf(n_.in(static_cast<int>(i / 2))).dtype;
      // The bare total order tells zeros, and NaNs, apart by their signs, which sorting here does not.
      if ((text == a && !(totalOrder && isFloat(type))) || (isFloat(type) && text == canonicalFloat(a, type)))
        return i;
    }
    return {};
  }
  std::optional<Key> strict(const Call &call) {
    const bool less = call.name.starts_with("compare.LT"), greater = call.name.starts_with("compare.GT");
    const auto places = compared(call);
    if ((!less && !greater) || !places)
      return {};
    return Key{places->first / 2, greater == (places->first < places->second)};
  }
  bool isEquality(const Call &call, const Key &key) {
    const auto places = compared(call);
    return call.name.starts_with("compare.EQ") && places && places->first / 2 == key.operand;
  }
  /// The two arguments of one operand.
  std::optional<std::pair<size_t, size_t>> compared(const Call &call) {
    if (call.operands.size() != 2)
      return {};
    const bool total = call.name.ends_with(".TOTALORDER");
    const auto a = argument(call.operands[0], total), b = argument(call.operands[1], total);
    if (!a || !b || *a / 2 != *b / 2 || *a == *b)
      return {};
    return std::pair(*a, *b);
  }

  N &n_;
};

void sort(N &n) {
  const int count = n.numInputs();
  const TensorType first = typeOf(n.in(0));
  const int64_t axis = n.integer("dimension", -1);
  n.ignore("is_stable"); // Tressel's sort is always stable
  for (int i = 0; i < count; ++i)
    if (typeOf(n.in(i)).shape != first.shape)
      n.fail("operands have different shapes: " + first.str() + " and " + typeOf(n.in(i)).str());
  const std::vector<std::string> body = expressionsOf(n.region(0));
  if (n.numResults() != count || body.size() != 1 || n.region(0).getNumArguments() != 2 * static_cast<unsigned>(count))
    n.fail("its results, or what its region takes and returns, do not fit " + std::to_string(count) + " operands");
  const std::vector<Key> keys = Order(n).parse(body.front());
  if (keys.empty())
    n.unsupported("an order by " + body.front());
  if (count == 1)
    return n.out(0, n.emit("sort", {n.in(0)}, {{"axis", axis}, {"descending", keys.front().descending}}));
  V places; // sort by the last key first: each stable sort keeps the order of equal elements
  auto placed = [&](V v) { return places ? n.emit("take_along_axis", {v, places}, {{"axis", axis}}) : v; };
  for (const Key &key : std::views::reverse(keys)) {
    V by = placed(n.in(static_cast<int>(key.operand)));
    V order = n.emit("argsort", {by}, {{"axis", axis}, {"descending", key.descending}});
    places = places ? n.emit("take_along_axis", {places, order}, {{"axis", axis}}) : order;
  }
  for (int i = 0; i < count; ++i)
    n.out(i, placed(n.in(i)));
}

void largest(N &n, int64_t k, bool isLargest) {
  n.wantInputs(1);
  if (n.numResults() != 2)
    n.fail("has " + std::to_string(n.numResults()) + " results");
  std::vector<V> both = n.emitAll("top_k", {n.in(0)}, {{"k", k}, {"axis", int64_t(-1)}, {"largest", isLargest}});
  n.out(0, both[0]);
  n.out(1, n.cast(both[1], n.resultType(1).dtype));
}

void topK(N &n) { largest(n, n.integer("k"), true); }

/// Custom calls that exporters expect every compiler to know.
void customCall(N &n) {
  auto target = llvm::dyn_cast_or_null<mlir::StringAttr>(n.attribute("call_target_name"));
  if (!target)
    n.fail("attribute 'call_target_name' must be a string");
  if (target.getValue() != "mhlo.topk")
    n.unsupported("a call of " + target.getValue().str());
  for (const char *name : {"api_version", "backend_config", "called_computations", "has_side_effect"})
    n.ignore(name);
  auto settings = llvm::dyn_cast_or_null<mlir::DictionaryAttr>(n.attribute("mhlo.attributes"));
  auto k = settings ? settings.getAs<mlir::IntegerAttr>("k") : mlir::IntegerAttr();
  auto isLargest = settings ? settings.getAs<mlir::BoolAttr>("largest") : mlir::BoolAttr();
  if (!k)
    n.fail("attribute 'mhlo.attributes' must have an integer 'k'");
  largest(n, k.getInt(), !isLargest || isLargest.getValue());
}

void randomBits(N &n) {
  n.unsupported("a generator of random bits; make random numbers outside, and pass them as arguments");
}

constexpr OpEntry kTable[] = {
    {"chlo.top_k", topK},          {"stablehlo.custom_call", customCall},
    {"stablehlo.rng", randomBits}, {"stablehlo.rng_bit_generator", randomBits},
    {"stablehlo.sort", sort},
};
} // namespace

std::span<const OpEntry> orderingOps() { return kTable; }

} // namespace tressel::stablehlo
