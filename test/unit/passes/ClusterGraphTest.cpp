// Joins groups of random graphs wherever ClusterGraph allows it, and checks against plain searches that it allows
// exactly what keeps groups convex, and that its order stays topological.
#include "passes/cluster/ClusterGraph.h"

#include "ir/graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace mlir;
using namespace tressel;
using passes::ClusterGraph;

namespace {

/// A function of `size` additions of random earlier values.
OwningOpRef<ModuleOp> randomAdditions(MLIRContext &context, int size, std::mt19937 &random) {
  auto module = OwningOpRef<ModuleOp>(ModuleOp::create(UnknownLoc::get(&context)));
  OpBuilder b(module->getBodyRegion());
  auto type = RankedTensorType::get({4}, b.getF32Type());
  auto main = func::FuncOp::create(b, b.getUnknownLoc(), "main", b.getFunctionType(type, type));
  b.setInsertionPointToStart(main.addEntryBlock());
  std::vector<Value> values{main.getArgument(0)};
  const op::OpInfo &add = *op::findOp("add");
  for (int i = 0; i < size; ++i) {
    // Mostly near values, as in real programs, with some long edges.
    auto pick = [&] {
      size_t reach = random() % 4 ? std::min<size_t>(values.size(), 6) : values.size();
      return values[values.size() - 1 - random() % reach];
    };
    values.push_back(graph::createOp(b, b.getUnknownLoc(), add, {pick(), pick()}, {})->getResult(0));
  }
  func::ReturnOp::create(b, b.getUnknownLoc(), values.back());
  return module;
}

/// Groups that a group feeds, by looking at every op.
std::set<ClusterGraph::Group> fedBy(const ClusterGraph &graph, ClusterGraph::Group g) {
  std::set<ClusterGraph::Group> fed;
  for (Operation *op : graph.opsOf(g))
    for (Operation *user : op->getUsers())
      if (graph.groupOf(user) != g)
        fed.insert(graph.groupOf(user));
  return fed;
}

bool pathThroughThird(const ClusterGraph &graph, ClusterGraph::Group from, ClusterGraph::Group to) {
  std::vector<ClusterGraph::Group> work;
  std::set<ClusterGraph::Group> seen;
  for (ClusterGraph::Group g : fedBy(graph, from))
    if (g != to && seen.insert(g).second)
      work.push_back(g);
  while (!work.empty()) {
    ClusterGraph::Group g = work.back();
    work.pop_back();
    for (ClusterGraph::Group next : fedBy(graph, g)) {
      if (next == to)
        return true;
      if (seen.insert(next).second)
        work.push_back(next);
    }
  }
  return false;
}

class ClusterGraphTest : public ::testing::Test {
protected:
  ClusterGraphTest() {
    DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  MLIRContext context;
};

TEST_F(ClusterGraphTest, JoinsExactlyWhatStaysConvex) {
  int joined = 0, refused = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    OwningOpRef<ModuleOp> module = randomAdditions(context, 60, random);
    Block &block = (*module->getOps<func::FuncOp>().begin()).getBody().front();
    ClusterGraph clusters(block, /*maxSearch=*/1 << 20);
    for (Operation &op : block) {
      if (op.hasTrait<OpTrait::IsTerminator>())
        continue;
      for (Value operand : op.getOperands()) {
        Operation *def = operand.getDefiningOp();
        if (!def || random() % 3 == 0)
          continue;
        ClusterGraph::Group producer = clusters.groupOf(def), consumer = clusters.groupOf(&op);
        if (producer == consumer)
          continue;
        bool blocked = clusters.blocked(producer, consumer);
        ASSERT_EQ(blocked, pathThroughThird(clusters, producer, consumer));
        ++(blocked ? refused : joined);
        if (!blocked)
          clusters.join(consumer, producer);
      }
    }
    for (ClusterGraph::Group g : clusters.inOrder())
      for (ClusterGraph::Group next : fedBy(clusters, g))
        ASSERT_LT(clusters.placeOf(g), clusters.placeOf(next));
  }
  EXPECT_GT(joined, 100);
  EXPECT_GT(refused, 100); // else the test proves nothing
}

TEST_F(ClusterGraphTest, GivesUpALongSearch) {
  std::mt19937 random(1);
  OwningOpRef<ModuleOp> module = randomAdditions(context, 200, random);
  Block &block = (*module->getOps<func::FuncOp>().begin()).getBody().front();
  ClusterGraph patient(block, 1 << 20), hasty(block, 2);
  int gaveUp = 0;
  for (Operation &op : block)
    for (Operation *user : op.getUsers()) {
      if (user->hasTrait<OpTrait::IsTerminator>())
        continue;
      bool free = !patient.blocked(patient.groupOf(&op), patient.groupOf(user));
      bool hastyFree = !hasty.blocked(hasty.groupOf(&op), hasty.groupOf(user));
      EXPECT_TRUE(free || !hastyFree); // it may refuse too much, never too little
      gaveUp += free && !hastyFree;
    }
  EXPECT_GT(gaveUp, 0);
}

} // namespace
