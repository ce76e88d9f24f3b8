// The nodes of a graph in order, those of bodies included, and the ops that run bodies.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
#include "frontend/onnx/TensorData.h"
#include "ir/graph/Control.h"
#include "ir/graph/Structure.h"
#include "onnx.pb.h"

#include <algorithm>
#include <cstring>

namespace tressel::onnx {

/// The deepest nesting of bodies that a schedule supports.
static constexpr int kDeepestBody = 8;
/// A body is imported several times where a loop is unrolled, or where the first way to build it fails; nested loops
/// multiply that. This bounds the work that a small file can cause.
static constexpr int64_t kMostUnrolledNodes = 50'000;

//===-- Nodes ----------------------------------------------------------------------------------------------------===//

static void importNode(GraphState &state, const ::onnx::NodeProto &node, int index) {
  const ModelFile &model = state.model;
  const std::string label = state.where + nodeLabel(node, index);
  if (auto unknown = unknownOp(model, node, label)) {
    state.unsupported.push_back(std::move(*unknown));
    return;
  }
  if (std::ranges::any_of(node.input(), [&](const std::string &name) { return !name.empty() && !state.find(name); }))
    return;
  const bool inBody = state.scopes.size() > 1;
  if (!inBody)
    state.line = static_cast<unsigned>(index + 1);
  mlir::MLIRContext *context = state.builder.getContext();
  mlir::Location loc = mlir::NameLoc::get(
      mlir::StringAttr::get(context, label),
      mlir::FileLineColLoc::get(context, model.name(), state.line, inBody ? static_cast<unsigned>(index + 1) : 0));
  NodeImporter importer(state, node, label, loc);
  try {
    if (inBody && ++state.bodyNodes > state.mostBodyNodes && !state.exhausted)
      state.exhausted = {qualifiedOp(node), label, model.opset(node.domain()),
                         "bodies make more than " + std::to_string(state.mostBodyNodes) + " nodes where loops are unrolled"};
    if (state.exhausted)
      throw NodeUnsupported{"", true};
    importer.checkInputs();
    findImporter(node.domain(), node.op_type(), model.opset(node.domain()))(importer);
    importer.checkAllRead();
    for (int o = 0; o < node.output_size(); ++o)
      if (importer.wants(o) && !state.scopes.back().contains(node.output(o)))
        importer.unsupported("its output number " + std::to_string(o));
  } catch (const NodeUnsupported &e) {
    if (!e.listed)
      state.unsupported.push_back({qualifiedOp(node), label, model.opset(node.domain()), e.why});
  } catch (const MalformedInput &e) {
    if (!state.malformed)
      throw;
    state.malformed->push_back(e.input);
  } catch (const InputError &) {
    if (!state.malformed)
      throw;
  } catch (const InternalError &) {
    throw;
  } catch (const Error &e) { // arithmetic on sizes that leaves 64 bits
    if (!state.malformed)
      importer.fail(e.message());
  }
}

void importNodes(GraphState &state, const ::onnx::GraphProto &graph) {
  if (state.mostBodyNodes == 0) { // a large body may be imported once for each way to build a loop
    forEachNode(graph, [&](const ::onnx::NodeProto &, const std::string &) { state.mostBodyNodes += 3; });
    state.mostBodyNodes += kMostUnrolledNodes;
  }
  const bool isBody = state.scopes.size() > 1;
  for (int i = 0; i < graph.node_size(); ++i)
    if (isBody || !state.passedOver.contains(i))
      importNode(state, graph.node(i), i);
}

std::vector<Value> NodeImporter::importBody(const char *name, std::vector<Value> arguments) {
  const ::onnx::GraphProto &body = graphAttr(name);
  const auto inputs = givenInputs(body);
  if (inputs.size() != arguments.size())
    fail("'" + std::string(name) + "' takes " + std::to_string(inputs.size()) + " values instead of " +
         std::to_string(arguments.size()));
  struct Inside { // leaves the body also by an exception
    Inside(GraphState &state, std::string where) : state(state), outside(std::exchange(state.where, std::move(where))) {
      state.scopes.emplace_back();
    }
    ~Inside() {
      state.scopes.pop_back();
      state.where = outside;
    }
    GraphState &state;
    std::string outside;
  } inside(graph_, bodyLabel(label_, name));
  auto &scope = graph_.scopes.back();
  for (size_t i = 0; i < inputs.size(); ++i)
    scope.emplace(inputs[i]->name(), std::move(arguments[i]));
  for (const auto &tensor : body.initializer())
    scope.emplace(tensor.name(), Value(tensorData(tensor, graph_.model.name(), graph_.model.folder())));
  importNodes(graph_, body);
  std::vector<Value> results;
  for (const auto &output : body.output()) {
    const Value *v = graph_.find(output.name());
    if (!v)
      throw NodeUnsupported{"", true};
    results.push_back(*v);
  }
  return results;
}

//===-- Ops with bodies ------------------------------------------------------------------------------------------===//

/// A body that no op owns yet, and its values.
struct NodeImporter::Recorded {
  struct Delete {
    void operator()(mlir::Block *block) const {
      block->dropAllReferences();
      delete block;
    }
  };
  Recorded() : block(new mlir::Block()) {}
  std::unique_ptr<mlir::Block, Delete> block;
  std::vector<Value> results;
};

NodeImporter::Recorded NodeImporter::record(const std::vector<TensorType> &arguments, const BodyFn &fn) {
  if (graph_.openBodies >= kDeepestBody)
    unsupported("bodies within more than " + std::to_string(kDeepestBody) + " others");
  Recorded body;
  std::vector<Value> values;
  for (const TensorType &type : arguments)
    values.emplace_back(type, body.block->addArgument(graph::toMlir(graph_.builder.getContext(), type), loc_));
  struct Open {
    explicit Open(int &count) : count(count) { ++count; }
    ~Open() { --count; }
    int &count;
  } open(graph_.openBodies);
  mlir::OpBuilder::InsertionGuard guard(graph_.builder);
  graph_.builder.setInsertionPointToEnd(body.block.get());
  body.results = fn(values);
  return body;
}

/// Sizes are i64 while they are known; as a body's value they get the type that the other branch or iteration gives.
Value NodeImporter::fit(Value v, const TensorType &type) {
  if (v.symbolic && v.type.shape == type.shape && v.dtype() != type.dtype && isInteger(type.dtype))
    return cast(Value(v.type, materialize(v)), type.dtype);
  return v;
}

/// Builds a control op from recorded bodies, with the operands that they use from outside.
std::vector<Value> NodeImporter::addControl(std::vector<Recorded> bodies,
                                            llvm::function_ref<mlir::Operation *(mlir::OpBuilder &)> create) {
  std::vector<std::vector<mlir::Value>> yielded(bodies.size()); // before the op, as constants among them are made there
  for (size_t i = 0; i < bodies.size(); ++i)
    for (const Value &v : bodies[i].results)
      yielded[i].push_back(materialize(v));
  mlir::Operation *op = create(graph_.builder);
  mlir::OpBuilder::InsertionGuard guard(graph_.builder);
  for (size_t i = 0; i < bodies.size(); ++i) {
    mlir::Block *block = bodies[i].block.release();
    op->getRegion(static_cast<unsigned>(i)).push_back(block);
    graph_.builder.setInsertionPointToEnd(block);
    graph::YieldOp::create(graph_.builder, loc_, yielded[i]);
  }
  graph::captureInvariants(llvm::cast<graph::ControlOpInterface>(op));
  std::vector<Value> results;
  for (mlir::Value result : op->getResults())
    results.emplace_back(graph::fromMlir(result.getType()), result);
  return results;
}

static bool sameKnown(const Value &a, const Value &b) {
  return a.host && b.host && a.type == b.type && a.symbolic == b.symbolic &&
         std::memcmp(a.host->data.get(), b.host->data.get(), static_cast<size_t>(a.type.bytes())) == 0;
}

std::vector<Value> NodeImporter::emitCond(const Value &flag, const BodyFn &then, const BodyFn &otherwise) {
  std::vector<Recorded> bodies;
  bodies.push_back(record({}, then));
  bodies.push_back(record({}, otherwise));
  auto &yes = bodies[0].results, &no = bodies[1].results;
  if (yes.size() != no.size())
    fail("one branch gives " + std::to_string(yes.size()) + " values, the other " + std::to_string(no.size()));
  std::vector<std::optional<Value>> known(yes.size()); // values that both branches know to be equal stay known
  std::vector<mlir::Type> types;
  std::vector<Value> kept[2];
  for (size_t i = 0; i < yes.size(); ++i) {
    if (sameKnown(yes[i], no[i])) {
      known[i] = yes[i];
      continue;
    }
    for (size_t k = 0; k < 2; ++k) {
      mlir::OpBuilder::InsertionGuard guard(graph_.builder);
      graph_.builder.setInsertionPointToEnd(bodies[k].block.get());
      kept[k].push_back(fit(bodies[k].results[i], k ? kept[0].back().type : no[i].type));
    }
    if (!(kept[0].back().type == kept[1].back().type))
      unsupported("result " + std::to_string(i) + " is " + yes[i].type.str() + " in one branch and " +
                  no[i].type.str() + " in the other, and which one runs is known only when the program does");
    types.push_back(graph::toMlir(graph_.builder.getContext(), kept[0].back().type));
  }
  yes = std::move(kept[0]);
  no = std::move(kept[1]);
  std::vector<Value> results, made;
  if (!types.empty())
    made = addControl(std::move(bodies), [&, condition = materialize(flag)](mlir::OpBuilder &b) {
      return graph::CondOp::create(b, loc_, types, condition, mlir::ValueRange());
    });
  auto next = made.begin();
  for (const auto &value : known)
    results.push_back(value ? *value : *next++);
  return results;
}

static std::vector<TensorType> typesOf(const std::vector<Value> &values) {
  std::vector<TensorType> types;
  for (const Value &v : values)
    types.push_back(v.type);
  return types;
}

std::vector<Value> NodeImporter::emitWhile(std::vector<Value> carried, const BodyFn &condition, const BodyFn &body) {
  auto checked = [&](const std::vector<Value> &arguments) { return sameCarried(carried, body(arguments)); };
  std::vector<Recorded> bodies;
  bodies.push_back(record(typesOf(carried), condition));
  bodies.push_back(record(typesOf(carried), checked));
  std::vector<mlir::Value> operands;
  std::vector<mlir::Type> types;
  for (const Value &v : carried) {
    operands.push_back(materialize(v));
    types.push_back(operands.back().getType());
  }
  return addControl(std::move(bodies), [&](mlir::OpBuilder &b) {
    return graph::WhileOp::create(b, loc_, types, operands, mlir::ValueRange(), mlir::IntegerAttr());
  });
}

std::vector<Value> NodeImporter::emitScan(Size trips, std::vector<Value> carried, const std::vector<Value> &slices,
                                          const BodyFn &body) {
  std::vector<TensorType> arguments{{i64, {}}};
  for (const Value &v : carried)
    arguments.push_back(v.type);
  std::vector<mlir::Value> operands, taken;
  std::vector<mlir::Type> types;
  for (const Value &v : slices) {
    taken.push_back(materialize(v));
    arguments.push_back(graph::fromMlir(graph::sliceType(taken.back().getType())));
  }
  std::vector<Recorded> bodies;
  bodies.push_back(
      record(arguments, [&](const std::vector<Value> &values) { return sameCarried(carried, body(values)); }));
  for (const Value &v : carried) {
    operands.push_back(materialize(v));
    types.push_back(operands.back().getType());
  }
  for (size_t i = carried.size(); i < bodies[0].results.size(); ++i) {
    const Value &v = bodies[0].results[i];
    if (v.rank() >= kMaxRank)
      unsupported("results of more than " + std::to_string(kMaxRank) + " dimensions");
    types.push_back(graph::stackedType(graph::toMlir(graph_.builder.getContext(), v.type), trips));
    if (!fitsMemory(graph::fromMlir(types.back())))
      fail("a result of type " + graph::fromMlir(types.back()).str() + " is larger than any memory");
  }
  return addControl(std::move(bodies), [&](mlir::OpBuilder &b) {
    return graph::ScanOp::create(b, loc_, types, graph::sizeAttr(b.getContext(), trips), operands, taken,
                                 mlir::ValueRange());
  });
}

/// The body's results, the first of which are the next carried values. Unsupported if one of these changes its type.
std::vector<Value> NodeImporter::sameCarried(const std::vector<Value> &carried, std::vector<Value> results) {
  if (results.size() < carried.size())
    fail("a body gives " + std::to_string(results.size()) + " values, fewer than the " +
         std::to_string(carried.size()) + " that it hands on");
  for (size_t i = 0; i < carried.size(); ++i) {
    results[i] = fit(results[i], carried[i].type);
    if (!(results[i].type == carried[i].type))
      unsupported("carried value " + std::to_string(i) + " is " + carried[i].type.str() + " before an iteration and " +
                  results[i].type.str() + " after it");
  }
  return results;
}

std::optional<std::vector<Value>> NodeImporter::attempt(Refusal &refusal,
                                                        const std::function<std::vector<Value>()> &emission) {
  const size_t listed = graph_.unsupported.size();
  try {
    Recorded made; // in a block of its own, which is dropped if the attempt fails
    {
      mlir::OpBuilder::InsertionGuard guard(graph_.builder);
      graph_.builder.setInsertionPointToEnd(made.block.get());
      made.results = emission();
    }
    graph_.builder.getInsertionBlock()->getOperations().splice(graph_.builder.getInsertionPoint(),
                                                               made.block->getOperations());
    return std::move(made.results);
  } catch (const NodeUnsupported &e) {
    auto begin = graph_.unsupported.begin() + static_cast<std::ptrdiff_t>(listed);
    if (!refusal.why) {
      refusal.why = e;
      refusal.list.assign(begin, graph_.unsupported.end());
    }
    graph_.unsupported.erase(begin, graph_.unsupported.end());
    return {};
  }
}

void NodeImporter::refuse(Refusal refusal) {
  graph_.unsupported.insert(graph_.unsupported.end(), refusal.list.begin(), refusal.list.end());
  throw *refusal.why;
}

} // namespace tressel::onnx
