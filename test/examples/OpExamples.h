// The examples of the op records, compiled: each prints the value of its expression.
#pragma once

#include "tressel/tressel.h"

#include <ostream>
#include <span>
#include <tuple>
#include <vector>

namespace tressel {

struct OpExample {
  const char *op;
  void (*run)(std::ostream &); ///< null when the record has no example
};
/// Generated from the records, in their order.
std::span<const OpExample> opExamples();

/// One result, or one below the other.
inline void show(std::ostream &os, const Tensor &t) { os << t << "\n"; }
inline void show(std::ostream &os, const std::vector<Tensor> &list) {
  for (const Tensor &t : list)
    show(os, t);
}
template <typename... Ts> void show(std::ostream &os, const std::tuple<Ts...> &results) {
  std::apply([&](const auto &...t) { (show(os, t), ...); }, results);
}

} // namespace tressel
