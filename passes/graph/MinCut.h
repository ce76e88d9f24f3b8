// Assigns nodes to one of two sides at least cost, where some pairs cost something when separated. assign-layouts uses
// it.
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
  static constexpr Node first = 0, second = 1; ///< nodes fixed to the first and to the second side
  /// Larger than the sum of all costs: a cut of this cost is never chosen.
  static constexpr int64_t never = int64_t(1) << 60;

  Node add();
  /// Adds a cost of `cost` if `a` is on the first side and `b` on the second.
  void pay(Node a, Node b, int64_t cost);
  /// Finds a minimum cut; among equal ones that with the fewest nodes on the second side. Call it once.
  void solve();
  bool isSecond(Node node) const { return onSecond[node]; }

private:
  struct Edge {
    Node to;
    int64_t left; ///< residual capacity
  };
  bool findLevels();
  int64_t push(Node from, int64_t most);

  std::vector<Edge> edges; ///< each followed by its reverse
  std::vector<std::vector<uint32_t>> out{2};
  std::vector<uint32_t> level, next;
  std::vector<bool> onSecond;
};

} // namespace tressel::passes
