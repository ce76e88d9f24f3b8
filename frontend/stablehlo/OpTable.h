// Which ops of StableHLO are imported, and by what. An op is added by one function in ops/ and one line of that file's
// table.
#pragma once

#include <span>
#include <string_view>

namespace tressel::stablehlo {

class OpImporter;
using ImportFn = void (*)(OpImporter &);

struct OpEntry {
  std::string_view name; ///< "stablehlo.dot_general"
  ImportFn import;
};
/// Null if the op is unknown.
ImportFn findImporter(std::string_view name);

// The tables, by family (ops/).
std::span<const OpEntry> elementwiseOps();
std::span<const OpEntry> shapeOps();
std::span<const OpEntry> reductionOps();
std::span<const OpEntry> linearOps();
std::span<const OpEntry> indexingOps();
std::span<const OpEntry> orderingOps();

/// Ops that are one op of the graph dialect under another name, with the same operands and no attributes.
struct Renamed {
  std::string_view name, ours;
};
std::span<const Renamed> renamedOps();

} // namespace tressel::stablehlo
