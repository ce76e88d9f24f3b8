#include "test/support/SymbolicSizes.h"

#include <algorithm>

namespace tressel::test {

void SymbolicSizes::add(int64_t value, Size symbol) {
  symbols_.push_back({value, symbol});
  values_.bind(symbol, value);
}

void SymbolicSizes::draw(Random &random) {
  for (const char *name : {"n", "m"}) {
    const auto value = random.between(2, 6);
    if (!symbols_.empty() && (symbols_.front().first == value || random.chance(0.5)))
      continue;
    const auto low = random.between(0, value), high = value + random.below(100);
    add(value, dim::symbol(name, low, high));
  }
}

void SymbolicSizes::give(const TensorType &declared) {
  given_.insert(given_.end(), declared.shape.begin(), declared.shape.end());
}

template <typename Sizes> Sizes SymbolicSizes::replaced(Sizes sizes, bool givenOnly) const {
  for (Size &size : sizes)
    for (auto [value, symbol] : symbols_)
      if (size == value && (!givenOnly || std::find(given_.begin(), given_.end(), symbol) != given_.end()))
        size = symbol;
  return sizes;
}

TensorType SymbolicSizes::declared(const TensorType &type) const { return {type.dtype, replaced(type.shape, false)}; }

/// Whether a machine has room for it at the sizes that a planner counts on, which are larger than those of the run: ops
/// that join the sizes of their operands make tensors of hundreds of gigabytes of a few symbols.
static bool fitsMachines(const Shape &shape) {
  constexpr double kMost = 1 << 24;
  double elements = 1;
  for (Size size : shape)
    elements *= static_cast<double>(dim::hint(size));
  return elements <= kMost;
}

std::optional<bool> SymbolicSizes::declare(OpCall &call, const std::vector<std::optional<TensorType>> &known) const {
  if (empty())
    return false;
  for (bool dynamic : {true, false})
    for (bool named : {true, false}) {
      std::vector<TensorType> types;
      for (size_t i = 0; i < call.operands.size(); ++i)
        types.push_back(known[i] ? *known[i] : dynamic ? declared(call.operands[i]) : call.operands[i]);
      op::Attrs attrs = call.attrs;
      for (size_t i = 0; named && i < attrs.size(); ++i)
        if (auto *shape = std::get_if<op::Sizes>(&attrs[i]);
            shape && call.op->attrs[i].name == std::string_view("shape"))
          *shape = replaced(*shape, true);
      op::Inferred inferred = call.op->infer(*call.op, types, attrs);
      bool same = bool(inferred) && inferred.types.size() == call.results.size();
      for (size_t i = 0; same && i < inferred.types.size(); ++i)
        same = dim::isKnown(inferred.types[i].shape) && fitsMachines(inferred.types[i].shape) &&
               inferred.types[i].dtype == call.results[i].dtype &&
               dim::evaluate(inferred.types[i].shape, values_) == call.results[i].shape;
      if (same) {
        call.attrs = attrs;
        return dynamic;
      }
    }
  return {};
}

} // namespace tressel::test
