#include "frontend/tensor/Fail.h"

#include <tressel/spec.h>

#include <algorithm>
#include <map>

namespace tressel {
namespace {

/// "input 1 ('mask')".
std::string placeOf(const char *what, size_t i, const std::string &name) {
  return std::string(what) + " " + std::to_string(i) + (name.empty() ? "" : " ('" + name + "')");
}

/// The bounds that each name of a dimension has, and where they were given.
class NamedBounds {
public:
  NamedBounds(const char *op, const std::source_location &where) : op_(op), where_(where) {}

  void add(std::string_view name, dim::Bounds bounds, const std::string &place) {
    auto [it, isNew] = bounds_.try_emplace(std::string(name), bounds, place);
    const auto &[known, at] = it->second;
    if (isNew || known == bounds)
      return;
    detail::fail<Error>("the dimension '" + it->first + "' is " + str(known) + " in " + at + " and " + str(bounds) +
                            " in " + place,
                        detail::toLoc(where_), op_, "give it the same bounds in both places, or two names");
  }
  dim::Bounds of(const std::string &name) const {
    auto it = bounds_.find(name);
    return it == bounds_.end() ? kAny : it->second.first;
  }

  static constexpr dim::Bounds kAny{1, dim::kMaxSize};

private:
  static std::string str(dim::Bounds b) { return std::to_string(b.lo) + " to " + std::to_string(b.hi); }
  const char *op_;
  const std::source_location &where_;
  std::map<std::string, std::pair<dim::Bounds, std::string>> bounds_;
};

} // namespace

TensorType TensorSpec::type() const { return detail::typesOf({this, 1}, "", {}).front(); }

namespace detail {

void checkDistinct(std::span<const std::string> names, const char *what, const char *op,
                   const std::source_location &where) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty())
      if (auto [it, isNew] = places.try_emplace(names[i], i); !isNew)
        fail<Error>("'" + names[i] + "' is the name of " + placeOf(what, it->second, {}) + " and of " +
                        placeOf(what, i, {}),
                    toLoc(where), op, "give each a name of its own");
}

std::vector<TensorType> typesOf(std::span<const TensorSpec> specs, const char *op, const std::source_location &where) {
  std::vector<std::string> names;
  for (const TensorSpec &spec : specs)
    names.push_back(spec.name);
  checkDistinct(names, "input", op, where);
  NamedBounds bounds(op, where);
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::string place = placeOf("input", i, specs[i].name);
    for (const DimSpec &d : specs[i].dims) {
      std::vector<Size> symbols; // of a size that is an expression already
      if (d.size == kDynamic) {
        if (const dim::Bounds given{d.lo, d.hi}; given != NamedBounds::kAny)
          bounds.add(d.name, given, place);
      } else if (d.size.isSymbolic()) {
        dim::collectSymbols(d.size, symbols);
      }
      for (Size symbol : symbols)
        bounds.add(dim::symbolName(symbol), dim::bounds(symbol), place);
    }
  }
  std::vector<TensorType> types;
  for (const TensorSpec &spec : specs) {
    if (spec.dims.size() > static_cast<size_t>(kMaxRank))
      fail<ShapeError>("a tensor of " + std::to_string(spec.dims.size()) + " dimensions: at most " +
                           std::to_string(kMaxRank) + " are supported",
                       toLoc(where), op);
    TensorType &type = types.emplace_back(TensorType{spec.dtype, {}});
    for (const DimSpec &d : spec.dims) {
      if (d.size.numberOr(0) < 0)
        fail<ShapeError>("the size " + dim::str(d.size) + " is negative", toLoc(where), op);
      const dim::Bounds range = d.size == kDynamic ? bounds.of(d.name) : NamedBounds::kAny;
      type.shape.push_back(d.size != kDynamic ? d.size : dim::symbol(d.name, range.lo, range.hi));
    }
  }
  return types;
}

} // namespace detail
} // namespace tressel
