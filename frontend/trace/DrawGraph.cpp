// The graph of a recorded function as a picture.
#include "ir/graph/Draw.h"

#include "tressel/runtime/File.h"

#include <tressel/debug.h>

#include <filesystem>

namespace tressel::detail {

void drawGraph(const std::string &graph, const std::string &path) {
  const auto form = graph::drawingOf(path);
  if (!form)
    throw Error(Error::Details{.message = "'" + path + "' does not say in which form the graph is to be drawn",
                               .hint = "name it .svg, .dot or .txt"});
  const graph::Drawn drawn = graph::draw(graph, *form, std::filesystem::path(path).stem().string());
  if (!drawn.problem.empty())
    throw Error(drawn.problem);
  runtime::writeFile(path, std::as_bytes(std::span(drawn.text)));
}

} // namespace tressel::detail
