// The dependencies of a graph as a picture: a node per input, constant, op and output, and an edge from each value to
// whoever reads it. No MLIR in this header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tressel::graph {

enum class Drawing : uint8_t {
  Dot,  ///< for Graphviz
  Svg,  ///< laid out here: what can run at once stands side by side
  Text, ///< the same rows for a terminal: each op stands in the first row behind all that it reads
};
/// .dot, .svg or .txt at the end of a file's name; nothing for others.
std::optional<Drawing> drawingOf(std::string_view file);

/// More nodes than that make no picture: as Svg the graph is refused. Graphviz has no bound.
inline constexpr size_t kMostDrawnNodes = 500;

struct Drawn {
  std::string text;
  std::string problem; ///< why there is none
};
/// Draws @main of a module in the graph dialect. An op with bodies is one node, named by what its bodies do.
Drawn draw(std::string_view mlir, Drawing form, const std::string &title);

} // namespace tressel::graph
