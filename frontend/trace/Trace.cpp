// Ops become operations of the graph dialect as they are called: no second form of the program in between.
#include "frontend/trace/Trace.h"

#include "frontend/tensor/Machine.h"

#include "codegen/Compile.h"
#include "tressel/runtime/Shutdown.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "tressel/runtime/Cpu.h"
#include "tressel/runtime/Engine.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Package.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>
#include <set>
#include <unordered_map>

namespace tressel::detail {
namespace {

/// Making a context costs more than compiling a small program in it, so some are kept. What is uniqued in one stays
/// until it goes, so it goes after a number of uses, and when large constants were put into it.
class ContextLease {
public:
  ContextLease() {
    std::lock_guard lock(pool().mutex);
    if (!pool().spare.empty()) {
      entry_ = std::move(pool().spare.back());
      pool().spare.pop_back();
    }
    if (!entry_) {
      mlir::DialectRegistry registry;
      graph::registerDialects(registry);
      entry_ = std::make_unique<Entry>();
      entry_->context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
      entry_->context->loadAllAvailableDialects();
    }
  }
  ~ContextLease() {
    if (++entry_->uses >= 256 || holdsBlobs_)
      return;
    std::lock_guard lock(pool().mutex);
    if (pool().spare.size() < 4)
      pool().spare.push_back(std::move(entry_));
  }
  ContextLease(const ContextLease &) = delete;
  ContextLease &operator=(const ContextLease &) = delete;

  mlir::MLIRContext &operator*() const { return *entry_->context; }
  mlir::MLIRContext *get() const { return entry_->context.get(); }
  void noteBlob() { holdsBlobs_ = true; }

private:
  struct Entry {
    std::unique_ptr<mlir::MLIRContext> context;
    int uses = 0;
  };
  struct Pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<Entry>> spare;
  };
  /// Never destroyed: threads may still trace while the process ends.
  static Pool &pool() {
    static auto *pool = new Pool;
    return *pool;
  }
  std::unique_ptr<Entry> entry_;
  bool holdsBlobs_ = false;
};

mlir::Value valueOf(const Tensor &t) { return mlir::Value::getFromOpaquePointer(t.impl()->value); }

std::span<const std::byte> bytesOf(const Tensor &t) {
  return {static_cast<const std::byte *>(elementsOf(*t.impl(), t.impl()->where, "a constant of the trace")),
          static_cast<size_t>(t.type().bytes())};
}

} // namespace

struct TraceRecorder::Impl {
  const runtime::StaticsUse use; // first in, last out
  enum class ArgKind : uint8_t { Input, State };
  struct ArgInfo {
    ArgKind kind = ArgKind::Input;
    std::string name;
    size_t state = 0; ///< index into `states`
  };
  struct State {
    std::shared_ptr<VariableImpl> variable;
    std::string name;
    Tensor initial, current;
    bool assigned = false;
    uint32_t home = 0; ///< of the Variable, when it was first touched
  };

  ContextLease context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp func;
  mlir::OpBuilder builder{context.get()};
  std::vector<ArgInfo> args;
  std::vector<std::pair<size_t, uint32_t>> homes; ///< of arguments that are not on the host: TensorImpl::home
  std::vector<State> states;
  std::unordered_map<const VariableImpl *, size_t> stateOf;
  std::set<std::string> names;
  std::unordered_map<const TensorImpl *, mlir::Value> constants;
  Fingerprint fingerprint;
  std::vector<Tensor> captured; ///< keeps the keys of `constants` alive
  /// Bodies of control flow that are being recorded, or wait for the op that they become part of.
  struct Body {
    std::unique_ptr<mlir::Block> block = std::make_unique<mlir::Block>();
    std::vector<mlir::Value> results;
    std::vector<std::pair<VariableImpl *, mlir::Value>> variables; ///< at its end
    mlir::OpBuilder::InsertPoint outside;
  };
  std::vector<Body> open, closed;
  bool hasEffects = false; ///< the program does more than compute what it returns
  SourceLoc lastWhere, lastUser;
  mlir::Location lastLocation = mlir::UnknownLoc::get(context.get());

  Impl() {
    module = mlir::ModuleOp::create(lastLocation);
    builder.setInsertionPointToEnd(module->getBody());
    func = mlir::func::FuncOp::create(builder, lastLocation, "main", builder.getFunctionType({}, {}));
    builder.setInsertionPointToEnd(func.addEntryBlock());
  }

  mlir::Location fileLine(SourceLoc where) {
    if (!where)
      return mlir::UnknownLoc::get(context.get());
    return mlir::FileLineColLoc::get(context.get(), where.file, where.line, 0);
  }
  /// The user's line; an op inside a layer of the library has both lines. Ops of one line follow each other, so the
  /// last location is kept.
  mlir::Location locate(SourceLoc where) {
    const SourceLoc user = userLine(where);
    auto equal = [](SourceLoc a, SourceLoc b) { return a.file == b.file && a.line == b.line; };
    if (equal(where, lastWhere) && equal(user, lastUser))
      return lastLocation;
    lastWhere = where;
    lastUser = user;
    lastLocation = equal(where, user) ? fileLine(where) : mlir::CallSiteLoc::get(fileLine(where), fileLine(user));
    return lastLocation;
  }

  mlir::Value addArgument(const TensorType &type, ArgKind kind, std::string name, size_t state, SourceLoc where) {
    args.push_back({kind, std::move(name), state});
    return func.getBody().front().addArgument(graph::toMlir(context.get(), type), locate(where));
  }

  std::string uniqueName(std::string wanted) {
    for (std::string name = wanted;; name = wanted + "." + std::to_string(names.size()))
      if (names.insert(name).second)
        return name;
  }

  /// A tensor from outside becomes a constant of the program.
  mlir::Value constant(const Tensor &t, SourceLoc where) {
    auto [it, isNew] = constants.try_emplace(t.impl());
    if (isNew) {
      runtime::Engine::global().wait(*t.impl()->storage, where, "a constant of the trace");
      mlir::OpBuilder::InsertionGuard guard(builder);
      if (!open.empty()) // for all bodies
        builder.setInsertionPointToStart(&func.getBody().front());
      it->second = graph::createConstant(builder, locate(where), t.type(), bytesOf(t));
      captured.push_back(t);
      if (t.type().bytes() > 256)
        context.noteBlob();
    }
    return it->second;
  }
  mlir::Value valueIn(const Tensor &t, SourceLoc where) {
    if (!t.traced())
      return constant(t, where);
    mlir::Value value = valueOf(t);
    mlir::Block *block = value.getParentBlock();
    if (block != &func.getBody().front() &&
        llvm::none_of(open, [&](const Body &body) { return body.block.get() == block; }))
      fail<TraceError>("a tensor " + t.type().str() + " that was made in a body (at " + t.impl()->where.str() +
                           ") is used outside of it",
                       where, "control flow", "return it from the body");
    return value;
  }

  size_t stateIndex(Recorder &recorder, const std::shared_ptr<VariableImpl> &variable, SourceLoc where);

  /// Ends the function with these results; the attributes say what arguments and results are.
  struct Result {
    mlir::Value value;
    mlir::StringRef attr;
    std::string name;
  };
  void close(const std::vector<Result> &results);
  /// Arguments and next values of Variables are where they are, and outputs stay where they are computed.
  void placeValues(size_t numOutputs);
  /// The next values of Variables that are assigned are further results.
  void addNextStates(std::vector<Result> &results) {
    for (const State &state : states)
      if (state.assigned)
        results.push_back({valueIn(state.current, {}), graph::kStateAttr, state.name});
  }
};

TraceRecorder::TraceRecorder() : impl_(std::make_unique<Impl>()) {}
TraceRecorder::~TraceRecorder() = default;

Tensor TraceRecorder::input(const TensorType &type, const std::string &name, SourceLoc where, uint32_t home) {
  if (home)
    impl_->homes.emplace_back(impl_->args.size(), home);
  mlir::Value v = impl_->addArgument(type, Impl::ArgKind::Input, impl_->uniqueName(name), 0, where);
  return makeValue(type, v.getAsOpaquePointer(), where);
}

/// Where the scopes of this thread say.
static void place(mlir::Operation *op) {
  if (const auto device = currentDevice(); device && !graph::isTransfer(op)) [[unlikely]]
    graph::setDevice(op, *device);
}

void TraceRecorder::op(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const TensorType> types,
                       const op::Attrs &attrs, SourceLoc where, std::span<Tensor> results) {
  impl_->fingerprint.op(info, inputs, attrs, where);
  llvm::SmallVector<mlir::Value, 4> operands;
  for (const Tensor &t : inputs)
    operands.push_back(impl_->valueIn(t, where));
  mlir::Operation *op = graph::createOp(impl_->builder, impl_->locate(where), info, operands, attrs);
  place(op);
  const SourceLoc user = userLine(where);
  for (size_t i = 0; i < types.size(); ++i)
    results[i] = makeValue(types[i], op->getResult(static_cast<unsigned>(i)).getAsOpaquePointer(), user);
  impl_->hasEffects |= info.hasEffects;
}

size_t TraceRecorder::Impl::stateIndex(Recorder &recorder, const std::shared_ptr<VariableImpl> &variable,
                                       SourceLoc where) {
  auto [it, isNew] = stateOf.try_emplace(variable.get(), states.size());
  if (!isNew)
    return it->second;
  fingerprint.read(*variable, where);
  State state{.variable = variable, .name = uniqueName(variable->name.empty() ? "state" : variable->name)};
  if ((state.home = variable->value.impl()->home))
    homes.emplace_back(args.size(), state.home);
  mlir::Value v = addArgument(variable->value.type(), ArgKind::State, state.name, states.size(), where);
  state.initial = recorder.makeValue(variable->value.type(), v.getAsOpaquePointer(), where);
  state.current = state.initial;
  states.push_back(std::move(state));
  return states.size() - 1;
}

Tensor TraceRecorder::read(const std::shared_ptr<VariableImpl> &variable, SourceLoc where) {
  return impl_->states[impl_->stateIndex(*this, variable, where)].current;
}

void TraceRecorder::assign(const std::shared_ptr<VariableImpl> &variable, const Tensor &value, SourceLoc where) {
  if (value.traced() && value.impl()->trace != number())
    fail<TraceError>("the value assigned to '" + variable->name + "' belongs to a trace that has ended", where,
                     "assign");
  Impl::State &state = impl_->states[impl_->stateIndex(*this, variable, where)];
  impl_->fingerprint.assign(*variable, value, where);
  state.current = value;
  state.assigned = true;
}

void TraceRecorder::Impl::close(const std::vector<Result> &results) {
  mlir::Block &block = func.getBody().front();
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<mlir::Type> types;
  for (const Result &r : results) {
    values.push_back(r.value);
    types.push_back(r.value.getType());
  }
  mlir::func::ReturnOp::create(builder, mlir::UnknownLoc::get(context.get()), values);
  func.setFunctionType(builder.getFunctionType(block.getArgumentTypes(), types));
  for (auto [i, arg] : llvm::enumerate(args)) {
    func.setArgAttr(static_cast<unsigned>(i), arg.kind == ArgKind::State ? graph::kStateAttr : graph::kNameAttr,
                    builder.getStringAttr(arg.name));
  }
  for (auto [i, r] : llvm::enumerate(results))
    func.setResultAttr(static_cast<unsigned>(i), r.attr, builder.getStringAttr(r.name));
}

void TraceRecorder::Impl::placeValues(size_t numOutputs) {
  auto name = [&](uint32_t home) { return builder.getStringAttr(runtime::nameOf(deviceOfHome(home))); };
  for (auto [i, home] : homes)
    func.setArgAttr(static_cast<unsigned>(i), graph::kHomeAttr, name(home));
  for (unsigned i = 0; i < numOutputs; ++i)
    func.setResultAttr(i, graph::kHomeAttr, builder.getStringAttr(graph::kComputed));
  auto result = static_cast<unsigned>(numOutputs);
  for (const State &state : states)
    if (state.assigned) {
      if (state.home)
        func.setResultAttr(result, graph::kHomeAttr, name(state.home));
      ++result;
    }
}

//--- Control flow -----------------------------------------------------------------------------------------------------

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
  Impl &impl = *impl_;
  const SourceLoc where = toLoc(call.where);
  const mlir::Location loc = impl.locate(where);
  const bool isCond = call.kind == ControlCall::Kind::Cond, isScan = call.kind == ControlCall::Kind::Scan;
  std::vector<Impl::Body> bodies(std::make_move_iterator(impl.closed.end() - static_cast<ptrdiff_t>(records.size())),
                                 std::make_move_iterator(impl.closed.end()));
  impl.closed.resize(impl.closed.size() - records.size());

  // Operands in the order of the op's groups, each with its argument of every body (none: a new one).
  struct Part {
    mlir::Value operand; ///< null for the number of the iteration
    mlir::Type type;
    std::vector<mlir::Value> arguments;
  };
  std::vector<Part> index, carried, slices, invariants;
  auto argumentsAt = [&](size_t i) {
    std::vector<mlir::Value> arguments;
    for (const BodyRecord &record : records)
      arguments.push_back(valueOf(record.arguments[i]));
    return arguments;
  };
  size_t next = 0;
  if (isScan)
    index.push_back({{}, valueOf(records[0].arguments[0]).getType(), argumentsAt(next++)});
  for (const Tensor &t : call.carried) {
    mlir::Value value = impl.valueIn(t, where);
    (isCond ? invariants : carried).push_back({value, value.getType(), argumentsAt(next++)});
  }
  for (const Tensor &t : call.slices) {
    mlir::Type type = valueOf(records[0].arguments[next]).getType();
    slices.push_back({impl.valueIn(t, where), type, argumentsAt(next++)});
  }
  std::vector<const VariableImpl *> seen;
  for (const BodyRecord &record : records)
    for (const BodyVariable &v : record.variables) {
      if (llvm::is_contained(seen, v.variable.get()))
        continue;
      seen.push_back(v.variable.get());
      mlir::Value value = impl.valueIn(v.outside, where);
      Part part{value, value.getType(), {}};
      for (const BodyRecord &other : records) {
        auto found = llvm::find_if(other.variables, [&](const BodyVariable &o) { return o.variable == v.variable; });
        part.arguments.push_back(found == other.variables.end() ? mlir::Value() : valueOf(found->argument));
      }
      const bool isCarried = !isCond && llvm::any_of(assigned, [&](auto &a) { return a == v.variable; });
      if (!isCarried)
        invariants.push_back(std::move(part));
    }
  for (const auto &variable : assigned) { // carried in the order of the results
    if (isCond)
      break;
    for (const BodyRecord &record : records)
      if (auto found = llvm::find_if(record.variables, [&](const BodyVariable &o) { return o.variable == variable; });
          found != record.variables.end()) {
        mlir::Value value = impl.valueIn(found->outside, where);
        Part part{value, value.getType(), {}};
        for (const BodyRecord &other : records) {
          auto own = llvm::find_if(other.variables, [&](const BodyVariable &o) { return o.variable == variable; });
          part.arguments.push_back(own == other.variables.end() ? mlir::Value() : valueOf(own->argument));
        }
        carried.push_back(std::move(part));
        break;
      }
  }

  // The op. Results: explicit carried, assigned Variables, the stacked.
  const size_t numExplicit = isCond ? records.back().results.size() : call.carried.size();
  std::vector<size_t> order; // of `types`, by result
  for (size_t i = 0; i < numExplicit; ++i)
    order.push_back(i);
  for (size_t i = 0; i < assigned.size(); ++i)
    order.push_back(records.back().results.size() + i);
  for (size_t i = numExplicit; i < records.back().results.size(); ++i)
    order.push_back(i);
  auto operandsOf = [](const std::vector<Part> &parts) {
    return llvm::map_to_vector(parts, [](const Part &part) { return part.operand; });
  };
  llvm::SmallVector<mlir::Type> resultTypes;
  for (size_t i : order)
    resultTypes.push_back(graph::toMlir(impl.context.get(), types[i]));
  mlir::OpBuilder &b = impl.builder;
  mlir::Operation *op;
  if (isCond)
    op = graph::CondOp::create(b, loc, resultTypes, impl.valueIn(call.condition, where), operandsOf(invariants));
  else if (isScan)
    op = graph::ScanOp::create(b, loc, resultTypes, graph::sizeAttr(impl.context.get(), call.trips), operandsOf(carried),
                               operandsOf(slices), operandsOf(invariants));
  else
    op = graph::WhileOp::create(b, loc, resultTypes, operandsOf(carried), operandsOf(invariants));

  for (size_t k = 0; k < bodies.size(); ++k) {
    mlir::OpBuilder::InsertionGuard guard(b);
    mlir::Block *block = b.createBlock(&op->getRegion(static_cast<unsigned>(k)));
    block->getOperations().splice(block->end(), bodies[k].block->getOperations());
    auto replaced = [&](mlir::Value value) {
      auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
      if (argument && argument.getOwner() == bodies[k].block.get())
        for (const auto *parts : {&index, &carried, &slices, &invariants})
          for (size_t i = 0; i < parts->size(); ++i)
            if ((*parts)[i].arguments[k] == value) {
              size_t at = i;
              for (const auto *before : {&index, &carried, &slices, &invariants}) {
                if (before == parts)
                  break;
                at += before->size();
              }
              return mlir::Value(block->getArgument(static_cast<unsigned>(at)));
            }
      return value;
    };
    for (const auto *parts : {&index, &carried, &slices, &invariants})
      for (const Part &part : *parts) {
        mlir::Value argument = block->addArgument(part.type, loc);
        if (mlir::Value recorded = part.arguments[k])
          recorded.replaceAllUsesWith(argument);
      }
    llvm::SmallVector<mlir::Value> yielded;
    if (records[k].isCondition) {
      yielded.push_back(replaced(bodies[k].results[0]));
    } else {
      for (size_t i : order) {
        if (i < records.back().results.size()) {
          yielded.push_back(replaced(bodies[k].results[i]));
          continue;
        }
        const VariableImpl *variable = assigned[i - records.back().results.size()].get();
        auto found = llvm::find_if(bodies[k].variables, [&](auto &v) { return v.first == variable; });
        mlir::Value value;
        if (found != bodies[k].variables.end())
          value = replaced(found->second);
        else // this branch leaves it as it was: the operand, which captureInvariants makes an argument
          for (const BodyRecord &record : records)
            for (const BodyVariable &v : record.variables)
              if (v.variable.get() == variable)
                value = impl.valueIn(v.outside, where);
        yielded.push_back(value);
      }
    }
    b.setInsertionPointToEnd(block);
    graph::YieldOp::create(b, loc, yielded);
  }
  place(op);
  graph::captureInvariants(llvm::cast<graph::ControlOpInterface>(op));
  std::vector<Tensor> results(types.size());
  for (size_t i = 0; i < types.size(); ++i) { // numbered as the other recorders do
    auto at = static_cast<unsigned>(llvm::find(order, i) - order.begin());
    results[i] = makeValue(types[i], op->getResult(at).getAsOpaquePointer(), userLine(where));
  }
  return results;
}

std::vector<uint32_t> TraceRecorder::homes() const {
  std::vector<uint32_t> homes;
  for (auto [i, home] : impl_->homes)
    homes.push_back(home);
  return homes;
}

Traced TraceRecorder::finish(std::span<const Tensor> results, const FinishOptions &options) {
  Impl &impl = *impl_;
  Traced traced;
  std::vector<size_t> index(impl.args.size()); // among the inputs, or the states that are only read
  size_t numInputs = 0;
  for (size_t i = 0; i < impl.args.size(); ++i) {
    const Impl::ArgInfo &arg = impl.args[i];
    if (arg.kind == Impl::ArgKind::Input) {
      index[i] = numInputs++;
    } else {
      auto &list = impl.states[arg.state].assigned ? traced.updated : traced.states;
      index[i] = list.size();
      list.push_back(impl.states[arg.state].variable);
    }
  }
  std::vector<Impl::Result> outputs;
  llvm::DenseMap<mlir::Value, size_t> outputOf;
  auto classify = [&](const Tensor &t) -> TraceResult {
    if (!t.defined())
      fail<TraceError>("the traced function returned an empty Tensor", {}, "return");
    // What a program does beside computing may fail (an assertion): all that it returns is made by it then, so that it
    // carries the failure, also what is an argument, a Variable or a constant.
    if (!t.traced() && !impl.hasEffects)
      return {.kind = TraceResult::Kind::Constant, .constant = t};
    if (t.traced() && t.impl()->trace != number())
      fail<TraceError>("the traced function returned a tensor of another trace", t.impl()->where, "return");
    mlir::Value v = impl.valueIn(t, {});
    if (auto arg = llvm::dyn_cast<mlir::BlockArgument>(v); arg && !impl.hasEffects) {
      const Impl::ArgInfo &info = impl.args[arg.getArgNumber()];
      const bool isState = info.kind == Impl::ArgKind::State;
      if (!isState || !impl.states[info.state].assigned) // else it is the value of before, which the program overwrites
        return {.kind = isState ? TraceResult::Kind::State : TraceResult::Kind::Input,
                .index = index[arg.getArgNumber()],
                .constant = {}};
    }
    auto [it, isNew] = outputOf.try_emplace(v, outputs.size());
    if (isNew)
      outputs.push_back({v, graph::kNameAttr, "out" + std::to_string(outputs.size())});
    return {.kind = TraceResult::Kind::Output, .index = it->second, .constant = {}};
  };
  for (const Tensor &t : results)
    traced.results.push_back(classify(t));
  for (const Tensor &t : results)
    impl.fingerprint.result(t);
  traced.fingerprint = std::move(impl.fingerprint);
  const size_t numOutputs = outputs.size();
  impl.addNextStates(outputs);
  impl.close(outputs);
  if (options.model)
    impl.placeValues(numOutputs);
  if (options.model) { // tensors' memory can be pinned
    for (unsigned i = 0; i < impl.func.getNumArguments(); ++i)
      if (impl.func.getArgAttr(i, graph::kNameAttr))
        impl.func.setArgAttr(i, graph::kPinnedAttr, impl.builder.getUnitAttr());
    for (unsigned i = 0; i < numOutputs; ++i)
      impl.func.setResultAttr(i, graph::kPinnedAttr, impl.builder.getUnitAttr());
  }
  if (options.text) {
    llvm::raw_string_ostream os(traced.text);
    impl.module->print(os);
  }
  if (!options.compile || (outputs.empty() && !impl.hasEffects))
    return traced;

  for (const Impl::State &state : impl.states)
    if (state.home)
      checkMachine(*state.variable->value.impl(), options.machine, {}, options.name.c_str());

  codegen::CompileOptions compile;
  compile.deterministic = options.deterministic;
  compile.name = options.name;
  compile.dump = options.dump;
  compile.measure = options.measure;
  compile.winograd = options.winograd;
  compile.keepSubnormals = options.keepSubnormals;
  compile.machine = options.model;
  compile.devices = options.devices;
  if (options.model)
    for (const runtime::DeviceModel &device : options.model->devices)
      if (!device.architecture.empty()) {
        compile.gpus = {device.architecture};
        compile.emulateGpu = !runtime::runsGpuCode(*options.machine);
      }
  if (!options.diskCache)
    compile.cache = nullptr;
  codegen::CompileReport report;
  compile.report = &report;
  compile.decisions = &traced.decisions;
  codegen::CompiledProgram compiled = codegen::compile(*impl.module, compile);
  traced.kernelsCompiled = report.numCompiled, traced.kernelsCached = report.numCached;
  std::vector<std::shared_ptr<VariableImpl>> bound;
  for (const runtime::StateDesc &state : compiled.schedule.states) {
    if (state.kind == runtime::StateKind::Derived)
      continue;
    auto found = std::find_if(impl.states.begin(), impl.states.end(),
                              [&](const Impl::State &s) { return s.name == state.name; });
    if (found == impl.states.end())
      throw InternalError("the compiler made a state '" + state.name + "' that the program has not");
    bound.push_back(found->variable);
  }
  if (compiled.schedule.inputs.size() != numInputs || compiled.schedule.outputs.size() != numOutputs)
    throw InternalError("the compiler changed the program's signature");
  auto executable = compiled.load();
  traced.function = std::make_shared<CompiledFunction>(
      std::move(executable), std::move(bound),
      CompiledFunctionOptions{.name = options.name, .machine = options.machine, .strictDonation = options.strictDonation});
  return traced;
}

void TraceRecorder::exportPackage(std::span<const Tensor> results, const ExportRequest &request) {
  Impl &impl = *impl_;
  if (!request.outputNames.empty() && request.outputNames.size() != results.size())
    throw Error("the function has " + std::to_string(results.size()) + " outputs, but " +
                std::to_string(request.outputNames.size()) + " names were given");
  std::vector<Impl::Result> outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.push_back({impl.valueIn(results[i], {}), graph::kNameAttr,
                       request.outputNames.empty() ? "out" + std::to_string(i) : request.outputNames[i]});
  impl.addNextStates(outputs);
  impl.close(outputs);
  impl.func.walk([&](mlir::Operation *op) {
    const auto named = op->getAttrOfType<mlir::StringAttr>(graph::isTransfer(op) ? "device" : graph::kDeviceAttr);
    if (!named || graph::parseDevice(named) == graph::kHost || !request.gpus.empty())
      return;
    const graph::FileLine at = graph::fileLineOf(op->getLoc());
    throw Error(Error::Details{
        .message = (graph::isTransfer(op) ? "a value is moved to " : "it is to be computed on ") + named.str() +
                   ", but a package for GPUs needs their architecture",
        .where = at.file.empty() ? SourceLoc() : SourceLoc{internName(at.file), at.line},
        .op = op->getName().stripDialect().str(),
        .hint = "name it in ExportOptions::gpus ({\"sm_90\"}), or export the function without with_device(), to() and on()"});
  });

  codegen::CompileOptions compile;
  compile.cpu = request.cpu;
  compile.allowLibrary = false; // a package runs with the runtime library alone
  compile.forPackage = true;
  compile.deterministic = request.deterministic, compile.measure = request.measure, compile.winograd = request.winograd;
  compile.keepSubnormals = request.keepSubnormals;
  runtime::MachineModel machine;
  if (!request.gpus.empty()) {
    const auto current = currentMachine();
    machine = current ? current->model() : runtime::machineOfArchitecture(request.gpus.front());
    compile.machine = &machine;
    compile.gpus = request.gpus;
  }
  codegen::CompiledProgram compiled = codegen::compile(*impl.module, compile);
  runtime::PackageFunction function{.name = "main", .schedule = &compiled.schedule};
  runtime::CpuLevel level = runtime::CpuLevel::Baseline;
  if (!runtime::parseCpuLevel(compiled.cpuLevel, level) && !compiled.image.empty())
    throw InternalError("the compiler names an unknown CPU level '" + compiled.cpuLevel + "'");
  if (!compiled.image.empty())
    function.images.push_back({level, compiled.image});
  function.constants = compiled.constants;
  std::vector<runtime::PackageState> states;
  std::vector<Tensor> values; // held until they are written
  for (const Impl::State &state : impl.states) {
    const Tensor &value = values.emplace_back(state.variable->get({}));
    runtime::Engine::global().wait(*value.impl()->storage, {}, "state of the program");
    states.push_back({state.name, value.type(), bytesOf(value)});
  }
  std::vector<std::vector<std::byte>> storage;
  const std::vector<runtime::PackageState> gpu = runtime::gpuSections(compiled.gpu, storage);
  states.insert(states.end(), gpu.begin(), gpu.end());
  runtime::writePackage(request.path, {&function, 1}, states);
}

void clearCompilerCaches() { codegen::clearCaches(); }

} // namespace tressel::detail
