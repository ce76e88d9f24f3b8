// The cheapest way to put things on one of two sides, where some pairs cost something apart: assign-layouts decides by it.
//
// A minimum cut by Dinic's algorithm ("Algorithm for solution of a problem of maximum flow in networks with power
// estimation", 1970): shortest augmenting paths, many at a time.
#pragma once

#include <cstdint>
#include <vector>

namespace tressel::passes {

class MinCut {
public:
  using Node = uint32_t;
  static constexpr Node first = 0, second = 1; ///< what stands on either side for sure
  /// More than all costs together: what costs that much does not happen.
  static constexpr int64_t never = int64_t(1) << 60;

  Node add();
  /// Costs `cost` when `a` is on the first side and `b` on the second.
  void pay(Node a, Node b, int64_t cost);
  /// Of all cheapest ways the one with the fewest on the second side. To be called once.
  void solve();
  bool isSecond(Node node) const { return onSecond[node]; }

private:
  struct Edge {
    Node to;
    int64_t left; ///< capacity that is not used
  };
  bool findLevels();
  int64_t push(Node from, int64_t most);

  std::vector<Edge> edges; ///< each followed by its reverse
  std::vector<std::vector<uint32_t>> out{2};
  std::vector<uint32_t> level, next;
  std::vector<bool> onSecond;
};

} // namespace tressel::passes
