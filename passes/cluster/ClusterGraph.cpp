#include "passes/cluster/ClusterGraph.h"

#include "passes/Util.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;

namespace tressel::passes {

ClusterGraph::ClusterGraph(Block &block, int64_t maxSearch) : maxSearch(maxSearch) {
  Operation *lastEffect = nullptr;
  SymbolTableCollection symbols;
  for (Operation &op : block) {
    if (hasEffects(&op, symbols)) {
      if (lastEffect) {
        nextEffect[lastEffect] = &op;
        previousEffect[&op] = lastEffect;
      }
      lastEffect = &op;
    }
    uint32_t index = static_cast<uint32_t>(ops.size());
    ops.push_back(&op);
    indexOf[&op] = index;
    group.push_back(index);
    members.push_back({&op});
    order.push_back(index);
  }
  visited.assign(ops.size(), 0);
}

/// Calls `fn` for each group that reads `g` (forward) or that `g` reads; stops and returns false when `fn` does.
template <typename Fn> bool ClusterGraph::forEachNeighbour(Group g, bool forward, Fn fn) {
  for (Operation *op : members[g]) {
    if (forward) {
      for (Operation *user : op->getUsers())
        if (Group other = groupOf(user); other != g && !fn(other))
          return false;
    } else {
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp())
          if (Group other = groupOf(def); other != g && !fn(other))
            return false;
    }
    if (Operation *linked = (forward ? nextEffect : previousEffect).lookup(op))
      if (Group other = groupOf(linked); other != g && !fn(other))
        return false;
  }
  return true;
}

bool ClusterGraph::blocked(Group producer, Group consumer) {
  int64_t budget = maxSearch;
  // Groups on a path between the two are between them in the order, so the search visits no others.
  auto search = [&](Group start, Group goal, bool forward, std::vector<Group> &reached) {
    reached.clear();
    ++epoch;
    std::vector<Group> work{start};
    while (!work.empty()) {
      Group g = work.back();
      work.pop_back();
      bool open = forEachNeighbour(g, forward, [&](Group next) {
        if (--budget < 0)
          return false;
        if (next == goal)
          return g == start; // the direct edge is no path through a third group
        bool between = forward ? order[next] < order[goal] : order[next] > order[goal];
        if (between && visited[next] != epoch) {
          visited[next] = epoch;
          reached.push_back(next);
          work.push_back(next);
        }
        return true;
      });
      if (!open)
        return false;
    }
    return true;
  };
  return !search(producer, consumer, true, reachedForward) || !search(consumer, producer, false, reachedBackward);
}

void ClusterGraph::join(Group into, Group from) {
  // Groups that reach the pair come before it, groups that it reaches behind; they are redistributed over their old
  // places.
  auto byOrder = [&](Group a, Group b) { return order[a] < order[b]; };
  std::vector<uint32_t> places{order[into], order[from]};
  for (auto *reached : {&reachedForward, &reachedBackward}) {
    llvm::sort(*reached, byOrder);
    for (Group g : *reached)
      places.push_back(order[g]);
  }
  llvm::sort(places);
  size_t next = 0;
  for (Group g : reachedBackward)
    order[g] = places[next++];
  order[into] = places[next];
  order[from] = places[++next]; // empty from now on
  ++next;
  for (Group g : reachedForward)
    order[g] = places[next++];

  SmallVector<Operation *, 2> merged;
  std::merge(members[into].begin(), members[into].end(), members[from].begin(), members[from].end(),
             std::back_inserter(merged),
             [&](Operation *a, Operation *b) { return indexOf.lookup(a) < indexOf.lookup(b); });
  for (Operation *op : members[from])
    group[indexOf.lookup(op)] = into;
  members[into] = std::move(merged);
  members[from].clear();
}

std::vector<ClusterGraph::Group> ClusterGraph::inOrder() const {
  std::vector<Group> groups;
  for (Group g = 0; g < members.size(); ++g)
    if (!members[g].empty())
      groups.push_back(g);
  llvm::sort(groups, [&](Group a, Group b) { return order[a] < order[b]; });
  return groups;
}

} // namespace tressel::passes
