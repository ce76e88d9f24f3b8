// Ops become operations of the graph dialect as they are called: no second form of the program in between.
#include "frontend/trace/TraceImpl.h"
#include "frontend/tensor/Fail.h"
#include "frontend/trace/Recorder.h"

#include "frontend/tensor/Machine.h"

#include "codegen/Compile.h"
#include "codegen/Layouts.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Stage.h"
#include "ir/graph/Structure.h"
#include "passes/shard/Parts.h"
#include "tressel/runtime/Cpu.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Package.h"
#include "tressel/runtime/States.h"

#include <tressel/jit.h>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace tressel::detail {

TraceRecorder::TraceRecorder() : impl_(std::make_unique<Impl>()) {}
TraceRecorder::~TraceRecorder() = default;

Tensor TraceRecorder::input(const TensorType &type, const std::string &name, SourceLoc where, uint32_t home) {
  if (home)
    impl_->homes.emplace_back(impl_->args.size(), home);
  if (impl_->args.empty())
    impl_->at = where;
  mlir::Value v = impl_->addArgument(type, Impl::ArgKind::Input, impl_->uniqueName(name), 0, where);
  return makeValue(type, v.getAsOpaquePointer(), where);
}

void TraceRecorder::op(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const TensorType> types,
                       const op::Attrs &attrs, SourceLoc where, std::span<Tensor> results) {
  impl_->fingerprint.op(info, inputs, attrs, where);
  llvm::SmallVector<mlir::Value, 4> operands;
  for (const Tensor &t : inputs)
    operands.push_back(impl_->valueIn(t, where));
  mlir::Operation *op = graph::createOp(impl_->builder, impl_->locate(where), info, operands, attrs);
  Impl::place(op);
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
  const auto given = givenNames.find(variable.get());
  State state{.variable = variable,
              .name = given != givenNames.end() ? given->second
                                                : uniqueName(variable->name.empty() ? "state" : variable->name)};
  if ((state.home = variable->value.impl()->home))
    homes.emplace_back(args.size(), state.home);
  mlir::Value v = addArgument(variable->value.type(), ArgKind::State, state.name, states.size(), where);
  state.initial = recorder.makeValue(variable->value.type(), v.getAsOpaquePointer(), userLine(where));
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

void TraceRecorder::Impl::freeStates() {
  const auto computed = builder.getStringAttr(graph::kComputed);
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (func.getArgAttr(i, graph::kStateAttr))
      func.setArgAttr(i, graph::kHomeAttr, computed);
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (func.getResultAttr(i, graph::kStateAttr))
      func.setResultAttr(i, graph::kHomeAttr, computed);
}

void TraceRecorder::Impl::cutValues(const FinishOptions &options) {
  if (options.mesh.empty())
    return;
  func->setAttr(graph::kMeshAttr, builder.getStringAttr(options.mesh));
  std::string along = options.mesh.substr(0, options.mesh.find('='));
  if (const FinishOptions::Pipeline &pipeline = options.pipeline; !pipeline.axis.empty()) {
    func->setAttr(graph::kPipelineAttr,
                  graph::pipelineAttr(func.getContext(), pipeline.axis, pipeline.inRow, pipeline.order));
    if (along != pipeline.axis)
      along += "+" + pipeline.axis;
  }
  for (auto [i, arg] : llvm::enumerate(args)) {
    std::string words;
    if (arg.kind == ArgKind::State)
      words = states[arg.state].variable->sharding;
    else if (const int rank = graph::fromMlir(func.getArgument(static_cast<unsigned>(i)).getType()).rank();
             options.shardAxis && *options.shardAxis < rank)
      for (int d = 0; d < rank; ++d)
        words += (d ? ", " : "") + (d == *options.shardAxis ? along : std::string("-"));
    if (!words.empty())
      func.setArgAttr(static_cast<unsigned>(i), graph::kShardingAttr, builder.getStringAttr(words));
  }
}

/// The accelerators at each place in the row of a pipeline, as TensorImpl::home.
static std::vector<std::vector<uint32_t>> rowsOf(const graph::Mesh &mesh, const FinishOptions &options) {
  std::vector<std::vector<uint32_t>> rows(1);
  for (const runtime::DeviceRef device : passes::acceleratorsOf(options.model, options.devices)) {
    if (rows.back().size() == static_cast<size_t>(mesh.numPlaces())) {
      if (rows.size() == static_cast<size_t>(mesh.inRow))
        break;
      rows.emplace_back();
    }
    rows.back().push_back(homeNumber(device));
  }
  return rows;
}

void TraceRecorder::Impl::checkHomes(const FinishOptions &options) {
  const llvm::FailureOr<graph::Mesh> mesh = graph::meshOf(func);
  if (failed(mesh) || mesh->empty())
    return;
  if (mesh->inRow > 1 && !func.walk([](mlir::Operation *op) {
                                return graph::stageOf(op) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
                              })
                              .wasInterrupted())
    fail<Error>("the program is a pipeline of " + std::to_string(mesh->inRow) +
                    " accelerators in a row, and no op belongs to a stage",
                at, "jit", "say which do with Module::stage or with_stage, or leave Pipeline::size at 1");
  const std::vector<std::vector<uint32_t>> rows = rowsOf(*mesh, options);
  auto namesOf = [](llvm::ArrayRef<uint32_t> homes) {
    return llvm::join(llvm::map_range(homes, [](uint32_t home) { return runtime::nameOf(deviceOfHome(home)); }), ", ");
  };
  for (auto [i, arg] : llvm::enumerate(args)) {
    if (arg.kind != ArgKind::State)
      continue;
    const State &state = states[arg.state];
    std::vector<uint32_t> there;
    if (const StateGroup::Lock lock(*state.variable); state.variable->spread)
      there = state.variable->spread->homes;
    else if (state.home)
      there = {state.home};
    const bool isSpread = there.size() > 1;
    const auto row = llvm::find(rows, there);
    const SourceLoc line = state.initial.impl()->where;
    if (isSpread && row == rows.end())
      fail<Error>("the Variable '" + state.name + "' lies on " + namesOf(there) +
                      ", and the program that uses it computes on " +
                      llvm::join(llvm::map_range(rows, namesOf), mesh->inRow > 1 ? ", then " : ", "),
                  line, "jit",
                  mesh->inRow > 1 ? "name the accelerators of its place in the row: stage(0, {gpu(0), gpu(1)})"
                                  : "name the same accelerators in Variable::on, or Module::on, as the mesh has");
    if (mesh->inRow < 2 || there.empty())
      continue;
    std::optional<int64_t> stage;
    const bool isOfOne =
        llvm::all_of(func.getArgument(static_cast<unsigned>(i)).getUsers(), [&](mlir::Operation *user) {
          const auto own = graph::stageOf(user);
          return !own || (*own == stage.value_or(*own) && (stage = own));
        });
    if (!isOfOne || !stage || row - rows.begin() == *stage % mesh->inRow)
      continue;
    const std::vector<uint32_t> &own = rows[static_cast<size_t>(*stage % mesh->inRow)];
    fail<Error>("the Variable '" + state.name + "' lies on " + namesOf(there) + ", and stage " +
                    std::to_string(*stage) + ", which uses it, is computed by " + namesOf(own),
                line, "jit", "a stage's own accelerators are the last argument of Module::stage");
  }
}

/// Variables that are spread over exactly the mesh's accelerators become states of the ranks.
std::vector<SpreadUse> TraceRecorder::Impl::spreadStates(const FinishOptions &options,
                                                         std::map<std::string, std::shared_ptr<VariableImpl>> &parts) {
  std::vector<SpreadUse> uses;
  const llvm::FailureOr<graph::Mesh> mesh = graph::meshOf(func);
  if (failed(mesh) || mesh->empty() || mesh->numPlaces() < 2)
    return uses;
  const std::vector<std::vector<uint32_t>> rows = rowsOf(*mesh, options);
  for (auto [i, arg] : llvm::enumerate(args)) {
    if (arg.kind != ArgKind::State)
      continue;
    State &state = states[arg.state];
    const StateGroup::Lock lock(*state.variable);
    const std::shared_ptr<Spread> &spread = state.variable->spread;
    const auto row = spread ? llvm::find(rows, spread->homes) : rows.end();
    if (row == rows.end()) // not spread, or over other accelerators
      continue;
    const TensorType type = state.variable->value.type();
    const graph::ParsedSharding parsed = graph::parseSharding(state.variable->sharding, type.rank(), *mesh);
    const graph::Sharding sharding =
        state.variable->sharding.empty() ? graph::Sharding::whole(type.rank()) : parsed.sharding;
    bool fits = true;
    for (auto [d, axes] : llvm::enumerate(sharding.dims))
      fits = fits && type.shape.extent(static_cast<int>(d)) % mesh->numAlong(axes) == 0;
    if (!fits || (!state.variable->sharding.empty() && !parsed.error.empty()))
      continue; // uneven parts have their home on the host; the compiler reports a wrong sharding
    std::vector<Box> boxes;
    for (int64_t rank = 0; rank < mesh->numRanks(); ++rank) {
      if (mesh->microBatchOf(rank) > 0)
        continue; // all micro-batches of an accelerator share one part
      const dim::Values at = graph::coordinatesOf(rank, *mesh);
      Box box;
      for (auto [d, axes] : llvm::enumerate(sharding.dims)) {
        const Size size = type.shape[static_cast<int>(d)];
        box.dims.emplace_back(dim::evaluate(graph::firstOf(size, axes, *mesh), at),
                              dim::evaluate(graph::partOf(size, axes, *mesh), at));
      }
      boxes.push_back(std::move(box));
    }
    const auto home = builder.getStringAttr(graph::kRanks);
    const auto place = builder.getI64IntegerAttr(row - rows.begin());
    func.setArgAttr(static_cast<unsigned>(i), graph::kHomeAttr, home);
    if (mesh->inRow > 1)
      func.setArgAttr(static_cast<unsigned>(i), graph::kStageAttr, place);
    if (state.assigned)
      for (unsigned r = 0; r < func.getNumResults(); ++r)
        if (auto name = func.getResultAttrOfType<mlir::StringAttr>(r, graph::kStateAttr); name && name == state.name) {
          func.setResultAttr(r, graph::kHomeAttr, home);
          if (mesh->inRow > 1)
            func.setResultAttr(r, graph::kStageAttr, place);
        }
    auto layout = spread->layoutOf(*state.variable, boxes, state.variable->readAt);
    for (auto [rank, part] : llvm::enumerate(layout->parts))
      parts[graph::nameOfPart(state.name, static_cast<int64_t>(rank))] = part;
    uses.push_back({state.variable, spread, std::move(layout), state.assigned});
  }
  return uses;
}

std::vector<uint32_t> TraceRecorder::homes() const {
  std::vector<uint32_t> homes;
  for (auto [i, home] : impl_->homes)
    homes.push_back(home);
  return homes;
}

/// Classifies what a trace returns: constants, inputs, states, and outputs of the program.
class TraceRecorder::Results {
public:
  explicit Results(TraceRecorder &recorder) : recorder_(recorder), impl_(*recorder.impl_) {}

  /// Numbers the inputs, the Variables that are only read, and those that are assigned.
  void numberArguments(Traced &traced) {
    for (const Impl::ArgInfo &arg : impl_.args) {
      if (arg.kind == Impl::ArgKind::Input) {
        index_.push_back(numInputs++);
        continue;
      }
      auto &list = impl_.states[arg.state].assigned ? traced.updated : traced.states;
      index_.push_back(list.size());
      list.push_back(impl_.states[arg.state].variable);
    }
  }
  TraceResult classify(const Tensor &t) {
    if (!t.defined())
      fail<TraceError>("the traced function returned an empty Tensor", {}, "return");
    // A program with effects may fail (an assertion), and everything it returns must carry the failure. So it also
    // returns arguments, Variables and constants as outputs.
    if (!t.traced() && !impl_.hasEffects)
      return {.kind = TraceResult::Kind::Constant, .constant = t};
    if (t.traced() && t.impl()->trace != recorder_.number())
      fail<TraceError>("the traced function returned a tensor of another trace", t.impl()->where, "return");
    mlir::Value v = impl_.valueIn(t, {});
    if (auto arg = llvm::dyn_cast<mlir::BlockArgument>(v); arg && !impl_.hasEffects) {
      const Impl::ArgInfo &info = impl_.args[arg.getArgNumber()];
      const bool isState = info.kind == Impl::ArgKind::State;
      if (!isState || !impl_.states[info.state].assigned) // else an output: its old value is overwritten
        return {.kind = isState ? TraceResult::Kind::State : TraceResult::Kind::Input, .index = index_[arg.getArgNumber()], .constant = {}};
    }
    auto [it, isNew] = outputOf_.try_emplace(v, outputs.size());
    if (isNew)
      outputs.push_back({v, graph::kNameAttr, "out" + std::to_string(outputs.size())});
    return {.kind = TraceResult::Kind::Output, .index = it->second, .constant = {}};
  }

  size_t numInputs = 0;
  std::vector<Impl::Result> outputs;

private:
  TraceRecorder &recorder_;
  Impl &impl_;
  std::vector<size_t> index_; ///< by argument: its number among those of its kind
  llvm::DenseMap<mlir::Value, size_t> outputOf_;
};

void TraceRecorder::Impl::pinValues(size_t numOutputs) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (func.getArgAttr(i, graph::kNameAttr))
      func.setArgAttr(i, graph::kPinnedAttr, builder.getUnitAttr());
  for (unsigned i = 0; i < numOutputs; ++i)
    func.setResultAttr(i, graph::kPinnedAttr, builder.getUnitAttr());
}

static codegen::CompileOptions compileOptionsOf(const FinishOptions &options) {
  codegen::CompileOptions compile;
  compile.deterministic = options.deterministic;
  compile.name = options.name;
  compile.dump = options.dump;
  compile.measure = options.measure;
  compile.winograd = options.winograd;
  compile.keepSubnormals = options.keepSubnormals;
  compile.memoryBudget = options.memoryBudget;
  compile.autocast = options.autocast;
  compile.bucketBytes = options.bucketBytes;
  compile.scheduleOnly = options.ofOneRank;
  compile.machine = options.model;
  compile.devices = options.devices;
  if (options.model)
    for (const runtime::DeviceModel &device : options.model->devices)
      if (!device.architecture.empty()) {
        compile.gpus = {device.architecture};
        compile.emulateGpu = options.machine && !runtime::runsGpuCode(*options.machine);
      }
  if (!options.architecture.empty() && (!options.machine || runtime::runsGpuCode(*options.machine))) {
    compile.gpus = {options.architecture};
    compile.assembleGpu = false; // it would assemble for other cards than this architecture's
  }
  compile.gpuLibraries = options.gpuLibraries;
  compile.gpuArchive = options.gpuArchive;
  compile.gpuCodeUsed = options.gpuCodeUsed;
  if (!options.diskCache)
    compile.cache = nullptr;
  return compile;
}

/// The Variables of a compiled program's states, in the order in which it binds them.
static std::vector<std::shared_ptr<VariableImpl>> variablesOf(const runtime::Schedule &schedule,
                                                              const std::function<std::shared_ptr<VariableImpl>(const std::string &)> &find) {
  std::vector<std::shared_ptr<VariableImpl>> variables;
  for (const runtime::StateDesc &state : schedule.states)
    if (state.kind != runtime::StateKind::Derived) {
      variables.push_back(find(state.name));
      if (!variables.back())
        throw InternalError("the compiler made a state '" + state.name + "' that the program has not");
    }
  return variables;
}

static std::shared_ptr<const ParallelComparison> comparisonOf(codegen::LayoutComparison from) {
  auto comparison =
      std::make_shared<ParallelComparison>(ParallelComparison{.best = from.best, .text = std::move(from.text)});
  for (const codegen::Layout &layout : from.layouts) {
    ParallelLayout &made = comparison->layouts.emplace_back(ParallelLayout{.name = layout.name,
                                                                           .step_seconds = layout.stepSeconds,
                                                                           .compute_seconds = layout.computeSeconds,
                                                                           .transfer_seconds = layout.transferSeconds,
                                                                           .rank_bytes = layout.rankBytes,
                                                                           .error = layout.error});
    for (const auto &[axis, size] : layout.mesh)
      made.mesh.push_back({axis, static_cast<int>(size)});
    if (layout.inRow > 0)
      made.pipeline =
          Pipeline{.micro_batches = static_cast<int>(layout.microBatches), .size = static_cast<int>(layout.inRow)};
  }
  return comparison;
}

Traced TraceRecorder::finish(std::span<const Tensor> results, const FinishOptions &options) {
  Impl &impl = *impl_;
  Traced traced;
  Results sorted(*this);
  sorted.numberArguments(traced);
  for (const Tensor &t : results)
    traced.results.push_back(sorted.classify(t));
  for (const Tensor &t : results)
    impl.fingerprint.result(t);
  traced.fingerprint = std::move(impl.fingerprint);
  const size_t numOutputs = sorted.outputs.size();
  impl.addNextStates(sorted.outputs);
  impl.close(sorted.outputs);
  if (options.model) {
    impl.placeValues(numOutputs);
    impl.pinValues(numOutputs); // memory of tensors can be pinned
  }
  impl.cutValues(options);
  std::map<std::string, std::shared_ptr<VariableImpl>> parts;
  std::vector<SpreadUse> spread;
  if (options.ofOneRank) {
    codegen::makeRankProgram(*impl.module, options.mesh, {}); // cutValues has cut the inputs
  } else if (options.compile && !options.compare) {
    impl.checkHomes(options);
    spread = impl.spreadStates(options, parts);
  }
  if (options.text) {
    llvm::raw_string_ostream os(traced.text);
    impl.module->print(os);
  }
  if (!options.compile || (sorted.outputs.empty() && !impl.hasEffects))
    return traced;

  for (const Impl::State &state : impl.states)
    if (state.home && !options.ofOneRank && !options.compare)
      checkMachine(*state.variable->value.impl(), options.machine, {}, options.name.c_str());
  codegen::CompileOptions compile = compileOptionsOf(options);
  if (options.compare) {
    traced.layouts = comparisonOf(codegen::compareLayouts(*impl.module, options.compare, {}, compile));
    return traced;
  }
  codegen::CompileReport report;
  compile.report = &report;
  compile.decisions = &traced.decisions;
  codegen::CompiledProgram compiled = codegen::compile(*impl.module, compile);
  if (options.ofOneRank) {
    traced.schedule = std::move(compiled.schedule);
    return traced;
  }
  if (options.gpuCodeUsed)
    return traced;
  traced.kernelsCompiled = report.numCompiled, traced.kernelsCached = report.numCached;
  auto variables = variablesOf(compiled.schedule, [&](const std::string &name) {
    if (const auto part = parts.find(name); part != parts.end())
      return part->second;
    const auto found = llvm::find_if(impl.states, [&](const Impl::State &s) { return s.name == name; });
    return found == impl.states.end() ? nullptr : found->variable;
  });
  if (compiled.schedule.inputs.size() != sorted.numInputs || compiled.schedule.outputs.size() != numOutputs)
    throw InternalError("the compiler changed the program's signature");
  auto executable = compiled.load();
  traced.function =
      std::make_shared<CompiledFunction>(std::move(executable), std::move(variables),
                                         CompiledFunctionOptions{.name = options.name,
                                                                 .machine = options.machine,
                                                                 .spread = std::move(spread),
                                                                 .strictDonation = options.strictDonation});
  return traced;
}

void TraceRecorder::nameStates(const StateNameMap &names) {
  for (const auto &[name, variable] : names) {
    impl_->names.insert(name);
    impl_->givenNames.emplace(variable.get(), name);
  }
}

struct ExportedFunction {
  codegen::CompiledProgram program;
  runtime::CpuLevel level = runtime::CpuLevel::Baseline;
};

std::shared_ptr<const ExportedFunction> TraceRecorder::finishExport(std::span<const Tensor> results,
                                                                    const ExportRequest &request, StateNameMap &names) {
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
  compile.memoryBudget = request.memoryBudget;
  compile.autocast = request.autocast;
  runtime::MachineModel machine;
  if (!request.gpus.empty()) {
    impl.freeStates();
    const auto current = currentMachine();
    machine = current ? current->model() : runtime::machineOfArchitecture(request.gpus.front());
    compile.machine = &machine;
    compile.gpus = request.gpus;
    compile.gpuLibraries = request.gpuLibraries;
  }
  auto exported = std::make_shared<ExportedFunction>();
  exported->program = codegen::compile(*impl.module, compile);
  if (!runtime::parseCpuLevel(exported->program.cpuLevel, exported->level) && !exported->program.image.empty())
    throw InternalError("the compiler names an unknown CPU level '" + exported->program.cpuLevel + "'");
  for (const Impl::State &state : impl.states)
    names.emplace(state.name, state.variable);
  return exported;
}

void writePackage(const std::string &path,
                  const std::vector<std::pair<std::string, std::shared_ptr<const ExportedFunction>>> &functions,
                  const StateNameMap &names, const std::string &metadata) {
  std::vector<runtime::PackageFunction> parts;
  for (const auto &[name, exported] : functions) {
    const codegen::CompiledProgram &program = exported->program;
    runtime::PackageFunction &part =
        parts.emplace_back(runtime::PackageFunction{.name = name, .schedule = &program.schedule});
    if (!program.image.empty())
      part.images.push_back({exported->level, program.image});
    part.constants = program.constants;
  }
  std::vector<runtime::PackageState> states;
  std::vector<Tensor> values; // held until they are written
  for (const auto &[name, variable] : names) {
    const Tensor &value = values.emplace_back(variable->get({}));
    runtime::Engine::global().wait(*value.impl()->storage, {}, "state of the program");
    states.push_back({name, value.type(), bytesOf(value)});
  }
  if (!metadata.empty())
    states.push_back(
        {runtime::kStateMetadata, {u8, {static_cast<int64_t>(metadata.size())}}, std::as_bytes(std::span(metadata))});
  std::vector<std::vector<std::byte>> storage;
  const std::vector<runtime::PackageState> gpu = runtime::gpuSections(functions.front().second->program.gpu, storage);
  states.insert(states.end(), gpu.begin(), gpu.end());
  runtime::writePackage(path, parts, states);
}

void clearCompilerCaches() { codegen::clearCaches(); }

} // namespace tressel::detail
