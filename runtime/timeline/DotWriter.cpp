// Writes the commands as a graph for Graphviz.
#include "Format.h"

#include <algorithm>

namespace tressel::runtime {

using namespace timeline;

std::string timelineDot(const Schedule &schedule, std::span<const Timeline> timelines) {
  std::string text = "digraph " + dotQuoted(schedule.name) + " {\n";
  text += "  graph [rankdir=LR, fontname=\"Helvetica\", labelloc=t, nodesep=0.15, ranksep=0.4];\n"
          "  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=11, fontcolor=white, "
          "height=0.3];\n"
          "  edge [color=\"#6b7280\", arrowsize=0.7];\n";
  if (timelines.empty())
    return text + "}\n";
  const Timeline &t = timelines.front();
  const std::string bound = t.lowerBound ? ", at least " + timeText(t.lowerBound) : "";
  text += "  label=" + dotQuoted(t.program + ": " + headingOf(t) + ", " + timeText(t.end) + bound) + ";\n";

  const std::vector<bool> critical = criticalSpans(t);
  std::vector<std::vector<uint32_t>> onResource(t.resources.size());
  for (uint32_t i = 0; i < t.spans.size(); ++i)
    onResource[t.spans[i].resource].push_back(i);
  for (size_t r = 0; r < t.resources.size(); ++r) {
    if (onResource[r].empty())
      continue;
    text += "  subgraph cluster_" + std::to_string(r) +
            " {\n    label=" + dotQuoted(t.resources[r].name + ", busy " + timeText(t.resources[r].busy)) +
            "; color=\"#9ca3af\";\n";
    for (uint32_t i : onResource[r]) {
      const Span &span = t.spans[i];
      const Location &location = locationOf(schedule, span);
      // Line breaks are inserted between quoted texts, as quoting would escape them.
      std::string label = dotQuoted(elided(clean(titleOf(schedule, span)), 48));
      label.pop_back();
      label += "\\n" + timeText(span.end - span.begin) + "\"";
      text += "    s" + std::to_string(i) + " [label=" + label +
              ", tooltip=" + dotQuoted(span.name + (location.file.empty() ? "" : ", " + placeOf(location))) +
              ", fillcolor=\"" + std::string(fillOf(schedule, span)) + "\"" +
              (critical[i] ? ", penwidth=3, color=\"#e11d48\"" : ", color=\"#00000000\"") + "];\n";
    }
    text += "  }\n";
  }
  // The critical path may lead from one command to the next on its engine, between which there is no wait.
  std::vector<int64_t> criticalBefore(t.spans.size(), -1);
  for (size_t i = 1; i < t.criticalPath.size(); ++i)
    criticalBefore[t.criticalPath[i]] = t.criticalPath[i - 1];
  auto edge = [&](uint32_t from, uint32_t to, bool inOrder) {
    std::string attributes = inOrder ? "style=dotted" : "";
    if (criticalBefore[to] == from)
      attributes += (attributes.empty() ? "" : ", ") + std::string("penwidth=3, color=\"#e11d48\"");
    text += "  s" + std::to_string(from) + " -> s" + std::to_string(to) +
            (attributes.empty() ? "" : " [" + attributes + "]") + ";\n";
  };
  for (uint32_t i = 0; i < t.spans.size(); ++i)
    for (uint32_t before : t.spans[i].after)
      edge(before, i, false);
  for (const std::vector<uint32_t> &spans : onResource)
    for (size_t i = 1; i < spans.size(); ++i)
      if (std::ranges::find(t.spans[spans[i]].after, spans[i - 1]) == t.spans[spans[i]].after.end())
        edge(spans[i - 1], spans[i], true);
  return text + "}\n";
}

} // namespace tressel::runtime
