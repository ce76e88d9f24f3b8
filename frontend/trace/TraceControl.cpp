// Control flow of a trace: bodies are recorded into blocks of their own, which become regions of the op that runs them.
#include "frontend/tensor/ThreadState.h"
#include "frontend/trace/Recorder.h"
#include "frontend/trace/TraceImpl.h"

#include "ir/graph/ControlGradient.h"
#include "ir/graph/Structure.h"

namespace tressel::detail {

/// The op of a control call whose bodies are recorded. Its operands come in groups: iteration number, carried values,
/// slices, invariants. Each operand has an argument in every body.
class TraceRecorder::ControlOp {
public:
  ControlOp(Impl &impl, const ControlCall &call, std::span<const BodyRecord> records, std::span<const std::shared_ptr<VariableImpl>> assigned)
      : impl_(impl), call_(call), records_(records), assigned_(assigned), where_(toLoc(call.where)), loc_(impl.locate(where_)),
        isCond_(call.kind == ControlCall::Kind::Cond), isScan_(call.kind == ControlCall::Kind::Scan),
        bodies_(std::make_move_iterator(impl.closed.end() - static_cast<ptrdiff_t>(records.size())), std::make_move_iterator(impl.closed.end())) {
    impl.closed.resize(impl.closed.size() - records.size());
    addArguments();
    addVariablesThatAreRead();
    if (!isCond_)
      addVariablesThatAreCarried();
    orderResults();
  }

  mlir::Operation *create(std::span<const TensorType> types);
  /// The op's results (carried values, then assigned Variables, then stacks) as indices into the call's results
  /// followed by the Variables.
  const std::vector<size_t> &order() const { return order_; }

private:
  struct Part {
    mlir::Value operand; ///< null for the iteration number
    mlir::Type type;
    std::vector<mlir::Value> arguments; ///< by body; null where it has none
  };
  using Parts = std::vector<Part>;

  size_t numResults() const { return records_.back().results.size(); }
  std::array<const Parts *, 4> groups() const { return {&index_, &carried_, &slices_, &invariants_}; }
  std::vector<mlir::Value> argumentsAt(size_t i) const {
    std::vector<mlir::Value> arguments;
    for (const BodyRecord &record : records_)
      arguments.push_back(valueOf(record.arguments[i]));
    return arguments;
  }
  static const BodyVariable *find(const BodyRecord &record, const VariableImpl *variable) {
    const auto found = llvm::find_if(record.variables, [&](const BodyVariable &v) { return v.variable.get() == variable; });
    return found == record.variables.end() ? nullptr : &*found;
  }
  /// The Variable's value before the op, from the first body that uses it.
  mlir::Value valueBefore(const VariableImpl *variable) const {
    for (const BodyRecord &record : records_)
      if (const BodyVariable *v = find(record, variable))
        return impl_.valueIn(v->outside, where_);
    return {};
  }
  Part partOf(const VariableImpl *variable) const;
  void addArguments();
  void addVariablesThatAreRead();
  void addVariablesThatAreCarried();
  void orderResults();
  /// The region of body k.
  void fill(mlir::Region &region, size_t k);
  /// The value in the region that corresponds to one of body k.
  mlir::Value inRegion(mlir::Value value, size_t k, mlir::Block &block) const;
  /// What a branch that does not assign the Variable yields: the operand, which captureInvariants turns into an
  /// argument.
  mlir::Value nextValue(const VariableImpl *variable, size_t k, mlir::Block &block) const;

  Impl &impl_;
  const ControlCall &call_;
  const std::span<const BodyRecord> records_;
  const std::span<const std::shared_ptr<VariableImpl>> assigned_;
  const SourceLoc where_;
  const mlir::Location loc_;
  const bool isCond_, isScan_;
  std::vector<Impl::Body> bodies_;
  Parts index_, carried_, slices_, invariants_;
  std::vector<size_t> order_;
};

void TraceRecorder::ControlOp::addArguments() {
  size_t next = 0;
  if (isScan_)
    index_.push_back({{}, valueOf(records_[0].arguments[0]).getType(), argumentsAt(next++)});
  for (const Tensor &t : call_.carried) {
    mlir::Value value = impl_.valueIn(t, where_);
    (isCond_ ? invariants_ : carried_).push_back({value, value.getType(), argumentsAt(next++)});
  }
  for (const Tensor &t : call_.slices) {
    mlir::Type type = valueOf(records_[0].arguments[next]).getType();
    slices_.push_back({impl_.valueIn(t, where_), type, argumentsAt(next++)});
  }
}

TraceRecorder::ControlOp::Part TraceRecorder::ControlOp::partOf(const VariableImpl *variable) const {
  mlir::Value value = valueBefore(variable);
  Part part{value, value.getType(), {}};
  for (const BodyRecord &record : records_) {
    const BodyVariable *v = find(record, variable);
    part.arguments.push_back(v ? valueOf(v->argument) : mlir::Value());
  }
  return part;
}

void TraceRecorder::ControlOp::addVariablesThatAreRead() {
  std::vector<const VariableImpl *> seen;
  for (const BodyRecord &record : records_)
    for (const BodyVariable &v : record.variables) {
      if (llvm::is_contained(seen, v.variable.get()))
        continue;
      seen.push_back(v.variable.get());
      if (isCond_ || llvm::none_of(assigned_, [&](auto &a) { return a == v.variable; }))
        invariants_.push_back(partOf(v.variable.get()));
    }
}

void TraceRecorder::ControlOp::addVariablesThatAreCarried() {
  for (const auto &variable : assigned_) // in the order of the results
    if (valueBefore(variable.get()))
      carried_.push_back(partOf(variable.get()));
}

void TraceRecorder::ControlOp::orderResults() {
  const size_t numExplicit = isCond_ ? numResults() : call_.carried.size();
  for (size_t i = 0; i < numExplicit; ++i)
    order_.push_back(i);
  for (size_t i = 0; i < assigned_.size(); ++i)
    order_.push_back(numResults() + i);
  for (size_t i = numExplicit; i < numResults(); ++i)
    order_.push_back(i);
}

mlir::Operation *TraceRecorder::ControlOp::create(std::span<const TensorType> types) {
  mlir::OpBuilder &b = impl_.builder;
  auto operandsOf = [](const Parts &parts) { return llvm::map_to_vector(parts, [](const Part &part) { return part.operand; }); };
  llvm::SmallVector<mlir::Type> resultTypes;
  for (size_t i : order_)
    resultTypes.push_back(graph::toMlir(impl_.context.get(), types[i]));
  mlir::Operation *op;
  if (isCond_)
    op = graph::CondOp::create(b, loc_, resultTypes, impl_.valueIn(call_.condition, where_), operandsOf(invariants_));
  else if (isScan_)
    op = graph::ScanOp::create(b, loc_, resultTypes, graph::sizeAttr(impl_.context.get(), call_.trips), operandsOf(carried_), operandsOf(slices_),
                               operandsOf(invariants_));
  else
    op = graph::WhileOp::create(b, loc_, resultTypes, operandsOf(carried_), operandsOf(invariants_),
                                call_.bound ? b.getI64IntegerAttr(*call_.bound) : mlir::IntegerAttr());
  for (size_t k = 0; k < bodies_.size(); ++k)
    fill(op->getRegion(static_cast<unsigned>(k)), k);
  Impl::place(op);
  auto control = llvm::cast<graph::ControlOpInterface>(op);
  graph::captureInvariants(control);
  return threadState.tape ? graph::exposeResiduals(control).getOperation() : op;
}

mlir::Value TraceRecorder::ControlOp::inRegion(mlir::Value value, size_t k, mlir::Block &block) const {
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
  if (!argument || argument.getOwner() != bodies_[k].block.get())
    return value;
  unsigned at = 0;
  for (const Parts *parts : groups())
    for (const Part &part : *parts) {
      if (part.arguments[k] == value)
        return block.getArgument(at);
      ++at;
    }
  return value;
}

mlir::Value TraceRecorder::ControlOp::nextValue(const VariableImpl *variable, size_t k, mlir::Block &block) const {
  for (const auto &[assigned, value] : bodies_[k].variables)
    if (assigned == variable)
      return inRegion(value, k, block);
  return valueBefore(variable);
}

void TraceRecorder::ControlOp::fill(mlir::Region &region, size_t k) {
  mlir::OpBuilder &b = impl_.builder;
  mlir::OpBuilder::InsertionGuard guard(b);
  mlir::Block *block = b.createBlock(&region);
  block->getOperations().splice(block->end(), bodies_[k].block->getOperations());
  for (const Parts *parts : groups())
    for (const Part &part : *parts) {
      mlir::Value argument = block->addArgument(part.type, loc_);
      if (mlir::Value recorded = part.arguments[k])
        recorded.replaceAllUsesWith(argument);
    }
  llvm::SmallVector<mlir::Value> yielded;
  if (records_[k].isCondition)
    yielded.push_back(inRegion(bodies_[k].results[0], k, *block));
  else
    for (size_t i : order_)
      yielded.push_back(i < numResults() ? inRegion(bodies_[k].results[i], k, *block) : nextValue(assigned_[i - numResults()].get(), k, *block));
  b.setInsertionPointToEnd(block);
  graph::YieldOp::create(b, loc_, yielded);
}

//--- The recorder -----------------------------------------------------------------------------------------------------
void TraceRecorder::beginControl(const ControlCall &call) { impl_->fingerprint.control(call); }

void TraceRecorder::beginBody() {
  Impl::Body body;
  body.outside = impl_->builder.saveInsertionPoint();
  impl_->builder.setInsertionPointToEnd(body.block.get());
  impl_->open.push_back(std::move(body));
}

Tensor TraceRecorder::bodyArgument(size_t depth, const TensorType &type, SourceLoc where) {
  mlir::Value argument =
      impl_->open[depth].block->addArgument(graph::toMlir(impl_->context.get(), type), impl_->locate(where));
  return makeValue(type, argument.getAsOpaquePointer(), where);
}

void TraceRecorder::endBody(const BodyRecord &record, SourceLoc where) {
  Impl::Body &body = impl_->open.back();
  for (const Tensor &t : record.results)
    body.results.push_back(impl_->valueIn(t.defined() ? t : record.arguments.front(), where)); // checked later
  for (const BodyVariable &v : record.variables)
    body.variables.push_back({v.variable.get(), impl_->valueIn(v.current, where)});
  impl_->builder.restoreInsertionPoint(body.outside);
  impl_->closed.push_back(std::move(body));
  impl_->open.pop_back();
}

std::vector<Tensor> TraceRecorder::endControl(const ControlCall &call, std::span<const BodyRecord> records,
                                              std::span<const std::shared_ptr<VariableImpl>> assigned,
                                              std::span<const TensorType> types) {
  ControlOp control(*impl_, call, records, assigned);
  mlir::Operation *op = control.create(types);
  std::vector<Tensor> results(types.size());
  for (size_t i = 0; i < types.size(); ++i) { // every recorder gives the results the same numbers
    auto at = static_cast<unsigned>(llvm::find(control.order(), i) - control.order().begin());
    results[i] = makeValue(types[i], op->getResult(at).getAsOpaquePointer(), userLine(toLoc(call.where)));
  }
  if (threadState.tape)
    noteOnTapes(op, call.where);
  return results;
}

} // namespace tressel::detail
