// Draws the dependencies of a graph: a node per input, constant, op and output, and an edge from each value to its
// readers. No MLIR in this header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tressel::graph {

enum class Drawing : uint8_t {
  Dot,  ///< for Graphviz
  Svg,  ///< laid out here, with ops that can run concurrently in one row
  Text, ///< the same rows for a terminal: each op is in the first row behind all its operands
};
/// By the ending of a file's name: .dot, .svg or .txt; nothing for others.
std::optional<Drawing> drawingOf(std::string_view file);

/// Larger graphs are unreadable: Svg rejects them. Graphviz has no bound.
inline constexpr size_t kMostDrawnNodes = 500;

struct Drawn {
  std::string text;
  std::string problem; ///< why there is no drawing
};
/// Draws @main of a module in the graph dialect. An op with bodies is one node, labelled with the ops in its bodies.
Drawn draw(std::string_view mlir, Drawing form, const std::string &title);

} // namespace tressel::graph
