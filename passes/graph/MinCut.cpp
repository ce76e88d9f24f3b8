#include "passes/graph/MinCut.h"

#include <algorithm>
#include <limits>

namespace tressel::passes {

MinCut::Node MinCut::add() {
  out.emplace_back();
  return static_cast<Node>(out.size() - 1);
}

void MinCut::pay(Node a, Node b, int64_t cost) {
  if (cost <= 0 || a == b)
    return;
  out[a].push_back(static_cast<uint32_t>(edges.size()));
  edges.push_back({b, std::min(cost, never)});
  out[b].push_back(static_cast<uint32_t>(edges.size()));
  edges.push_back({a, 0});
}

static constexpr uint32_t kUnreached = std::numeric_limits<uint32_t>::max();

bool MinCut::findLevels() {
  level.assign(out.size(), kUnreached);
  std::vector<Node> queue{first};
  level[first] = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (uint32_t e : out[queue[i]])
      if (edges[e].left > 0 && level[edges[e].to] == kUnreached) {
        level[edges[e].to] = level[queue[i]] + 1;
        queue.push_back(edges[e].to);
      }
  return level[second] != kUnreached;
}

/// Pushes flow along one path of rising levels. Not recursive: paths are as long as networks are deep.
int64_t MinCut::push(Node from, int64_t most) {
  std::vector<uint32_t> path;
  Node at = from;
  while (at != second) {
    bool found = false;
    for (; next[at] < out[at].size(); ++next[at]) {
      const Edge &edge = edges[out[at][next[at]]];
      if (edge.left > 0 && level[edge.to] == level[at] + 1) {
        path.push_back(out[at][next[at]]);
        at = edge.to;
        found = true;
        break;
      }
    }
    if (found)
      continue;
    if (path.empty())
      return 0;
    at = edges[path.back() ^ 1].to; // backtrack from a dead end
    ++next[at];
    path.pop_back();
  }
  for (uint32_t e : path)
    most = std::min(most, edges[e].left);
  for (uint32_t e : path)
    edges[e].left -= most, edges[e ^ 1].left += most;
  return most;
}

void MinCut::solve() {
  while (findLevels()) {
    next.assign(out.size(), 0);
    while (push(first, never) > 0)
      ;
  }
  // Nodes with a residual path to the second side are on that side.
  onSecond.assign(out.size(), false);
  onSecond[second] = true;
  std::vector<Node> queue{second};
  for (size_t i = 0; i < queue.size(); ++i)
    for (uint32_t e : out[queue[i]])
      if (const Node from = edges[e].to; edges[e ^ 1].left > 0 && !onSecond[from]) {
        onSecond[from] = true;
        queue.push_back(from);
      }
}

} // namespace tressel::passes
