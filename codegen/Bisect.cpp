#include "codegen/Bisect.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Interpreter.h"
#include "passes/verify/ExtractProgram.h"
#include "passes/Pipeline.h"
#include "passes/Util.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Executor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SetVector.h"

#include <chrono>
#include <map>

namespace tressel::codegen {
namespace {

using mlir::func::FuncOp;
using op::HostTensor;
using Inputs = llvm::ArrayRef<HostTensor>;

FuncOp mainOf(mlir::ModuleOp module) { return module.lookupSymbol<FuncOp>("main"); }

mlir::OwningOpRef<mlir::ModuleOp> copyOf(mlir::ModuleOp module) { return mlir::cast<mlir::ModuleOp>(module->clone()); }

/// An argument or result of @main: (is a state, name).
using Slot = std::pair<bool, std::string>;
Slot argumentSlot(FuncOp main, unsigned i) {
  if (auto state = main.getArgAttrOfType<mlir::StringAttr>(i, graph::kStateAttr))
    return {true, state.str()};
  auto name = main.getArgAttrOfType<mlir::StringAttr>(i, graph::kNameAttr);
  return {false, name ? name.str() : ""};
}
Slot resultSlot(FuncOp main, unsigned i) {
  if (auto state = main.getResultAttrOfType<mlir::StringAttr>(i, graph::kStateAttr))
    return {true, state.str()};
  auto name = main.getResultAttrOfType<mlir::StringAttr>(i, graph::kNameAttr);
  return {false, name ? name.str() : ""};
}

struct Outcome {
  std::vector<HostTensor> outputs;
  std::string error;
};

class Bisection {
public:
  explicit Bisection(const BisectOptions &options) : options(options) {
    if (!options.machine)
      return;
    machine = options.machine->model();
    for (runtime::DeviceModel &device : machine->devices)
      if (device.device.kind == runtime::DeviceKind::Gpu)
        device.architecture = options.gpu;
  }

  /// What the compiled program gives.
  Outcome run(mlir::ModuleOp module, Inputs inputs) const {
    std::map<Slot, HostTensor> given;
    std::vector<Slot> results;
    std::vector<TensorType> types;
    FuncOp main = mainOf(module);
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      given[argumentSlot(main, i)] = inputs[i];
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      results.push_back(resultSlot(main, i));
      types.push_back(graph::fromMlir(main.getResultTypes()[i]));
    }
    try {
      CompileOptions compileOptions;
      compileOptions.cpu = options.cpu;
      compileOptions.allowLibrary = options.allowLibrary;
      compileOptions.afterPass = options.afterPass;
      compileOptions.machine = model();
      if (!options.gpu.empty())
        compileOptions.gpus = {options.gpu}, compileOptions.emulateGpu = !options.machine || !runtime::runsGpuCode(*options.machine);
      mlir::OwningOpRef<mlir::ModuleOp> copy = copyOf(module);
      CompiledProgram program = compile(*copy, compileOptions);
      const runtime::Schedule schedule = program.schedule;
      auto executable =
          program.load();
      std::map<Slot, HostTensor> made; // states are written in place, so they are copies
      auto fresh = [&](const Slot &slot, const TensorType &type) -> void * {
        HostTensor tensor = HostTensor::allocate(type);
        if (auto it = given.find(slot); it != given.end())
          std::memcpy(tensor.data.get(), it->second.data.get(), static_cast<size_t>(type.bytes()));
        return (made[slot] = tensor).data.get();
      };
      std::vector<void *> states, out;
      std::vector<const void *> in;
      for (const runtime::StateDesc &state : schedule.states)
        if (state.kind != runtime::StateKind::Derived)
          states.push_back(fresh({true, state.name}, state.type));
      for (const runtime::ValueDesc &input : schedule.inputs)
        in.push_back(given.at({false, input.name}).data.get());
      for (const runtime::ValueDesc &output : schedule.outputs)
        out.push_back((made[{false, output.name}] = HostTensor::allocate(output.type)).data.get());
      if (options.machine) {
        runtime::Executor executor(std::move(executable), options.machine);
        executor.bindStates(states);
        executor.run(in, out);
      } else {
        runtime::Context context(std::move(executable));
        context.bindStates(states);
        context.run(in, out);
      }
      Outcome outcome;
      for (const Slot &slot : results)
        outcome.outputs.push_back(made.at(slot));
      return outcome;
    } catch (const Error &e) {
      return {{}, e.what()};
    }
  }

  Outcome interpret(mlir::ModuleOp module, Inputs inputs) const {
    graph::Interpretation result = graph::interpret(mainOf(module), inputs);
    return {std::move(result.outputs), std::move(result.error)};
  }

  /// How the compiled program differs from the interpreted one, or "". A failure to compile or run begins with "!".
  std::string differenceOf(mlir::ModuleOp module, Inputs inputs) const {
    Outcome want = interpret(module, inputs);
    if (!want.error.empty())
      return ""; // no program to compare with
    Outcome got = run(module, inputs);
    if (!got.error.empty())
      return "!" + got.error;
    return compare(mainOf(module), got.outputs, want.outputs);
  }

  /// The pass that changes what the interpreter gives, or "".
  std::string guiltyPass(mlir::ModuleOp module, Inputs inputs) const {
    std::string pass;
    passes::PipelineOptions pipeline = pipelineOptions();
    pipeline.verifyEach = true;
    pipeline.inputs = {inputs.begin(), inputs.end()};
    pipeline.blamed = &pass;
    runPipeline(module, pipeline);
    return pass;
  }

  struct Guilty {
    std::string kernel, provider;
    passes::Example example; ///< its body as a program, with what it was given
  };
  /// The first launch whose kernel alone does not give what its body says.
  std::optional<Guilty> guiltyKernel(mlir::ModuleOp module, Inputs inputs) const {
    mlir::OwningOpRef<mlir::ModuleOp> copy = copyOf(module);
    passes::PipelineOptions pipeline = pipelineOptions();
    pipeline.stopAfter = "form-clusters";
    if (!runPipeline(*copy, pipeline))
      return std::nullopt;
    llvm::DenseMap<mlir::Value, HostTensor> values;
    FuncOp main = mainOf(*copy);
    for (auto [argument, input] : llvm::zip(main.getArguments(), inputs))
      values[argument] = input;
    graph::interpret(main, inputs, [&](mlir::Operation *op, auto, auto results) {
      for (auto [value, result] : llvm::zip_equal(op->getResults(), results))
        values[value] = result;
    });
    for (auto cluster : main.getBody().front().getOps<graph::ClusterOp>()) {
      llvm::SmallVector<mlir::Operation *> body;
      for (mlir::Operation &op : cluster.getBody().front().without_terminator())
        if (graph::infoOf(&op))
          body.push_back(&op);
      passes::ExtractedProgram part = passes::extractProgram(body);
      std::vector<HostTensor> operands;
      for (mlir::Value input : part.inputs)
        operands.push_back(values.lookup(cluster.getInputs()[mlir::cast<mlir::BlockArgument>(input).getArgNumber()]));
      if (part.results.empty() || differenceOf(*part.module, operands).empty())
        continue;
      return Guilty{graph::describeBody(cluster.getBody(), cluster.getProvider()),
                    cluster.getProvider().str(),
                    {std::move(part.module), std::move(operands)}};
    }
    return std::nullopt;
  }

  /// Throws for a program that this machine cannot run, whatever is wrong with it.
  void checkDevices(mlir::ModuleOp module) const {
    mlir::OwningOpRef<mlir::ModuleOp> copy = copyOf(module);
    passes::PipelineOptions pipeline = pipelineOptions();
    pipeline.stopAfter = "resolve-devices";
    Error::Details details;
    mlir::ScopedDiagnosticHandler handler(copy->getContext(), [&](mlir::Diagnostic &d) {
      if (details.message.empty()) {
        details.message = d.str();
        const graph::FileLine at = graph::fileLineOf(d.getLocation());
        if (!at.file.empty())
          details.where = {internName(at.file), at.line};
      }
      return mlir::success();
    });
    if (mlir::failed(passes::runPipeline(*copy, pipeline)))
      throw Error(details);
  }

  void say(const std::string &text) const {
    if (options.progress)
      options.progress(text);
  }

private:
  passes::PipelineOptions pipelineOptions() const {
    passes::PipelineOptions pipeline;
    pipeline.providers = providers.list;
    pipeline.hostProviders = providers.hostList;
    pipeline.afterPass = options.afterPass;
    pipeline.machine = machine ? &*machine : nullptr;
    return pipeline;
  }
  const runtime::MachineModel *model() const { return options.machine ? &options.machine->model() : nullptr; }
  /// Runs passes on a copy or on the caller's own; what they say is not for the user.
  static bool runPipeline(mlir::ModuleOp module, const passes::PipelineOptions &pipeline) {
    mlir::ScopedDiagnosticHandler quiet(module.getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
    return mlir::succeeded(passes::runPipeline(module, pipeline));
  }

  std::string compare(FuncOp main, llvm::ArrayRef<HostTensor> got, llvm::ArrayRef<HostTensor> want) const {
    for (size_t i = 0; i < want.size(); ++i) {
      op::interp::Tolerance tolerance = op::interp::looseTolerance(want[i].type.dtype);
      if (options.rtol || options.atol)
        tolerance = {options.rtol.value_or(0), options.atol.value_or(0), 0};
      if (std::string why = op::interp::compare(got[i], want[i], tolerance); !why.empty()) {
        Slot slot = resultSlot(main, static_cast<unsigned>(i));
        return (slot.first ? "state '" : "output '") + slot.second + "': " + why;
      }
    }
    return "";
  }

  const BisectOptions &options;
  ProviderSet providers{options.cpu, options.allowLibrary, false, false, options.gpu};
  std::optional<runtime::MachineModel> machine; ///< with the architecture
};

} // namespace

BisectReport bisect(mlir::ModuleOp module, const BisectOptions &options) {
  Bisection bisection(options);
  bisection.checkDevices(module);
  if (Outcome want = bisection.interpret(module, options.inputs); !want.error.empty())
    throw Error("the program cannot be interpreted: " + want.error);
  BisectReport report;
  report.difference = bisection.differenceOf(module, options.inputs);
  if (report.difference.empty())
    return report;

  using Kind = BisectReport::Kind;
  passes::StillFails stillFails = [&](mlir::ModuleOp m, Inputs in) {
    const std::string left = bisection.differenceOf(m, in);
    return !left.empty() && (left[0] == '!') == (report.difference[0] == '!');
  };
  passes::Example found{copyOf(module), options.inputs};
  if (report.difference[0] == '!') {
    report.kind = Kind::CannotRun;
    report.difference.erase(0, 1);
    stillFails = [&](mlir::ModuleOp m, Inputs in) { return bisection.differenceOf(m, in).starts_with("!"); };
  } else {
    bisection.say("interpreting the program after each pass");
    mlir::OwningOpRef<mlir::ModuleOp> copy = copyOf(module);
    report.culprit = bisection.guiltyPass(*copy, options.inputs);
    if (!report.culprit.empty()) {
      report.kind = Kind::Pass;
      stillFails = [&](mlir::ModuleOp m, Inputs in) { return bisection.guiltyPass(m, in) == report.culprit; };
    } else {
      bisection.say("running kernel by kernel");
      if (auto guilty = bisection.guiltyKernel(module, options.inputs)) {
        report.kind = Kind::Kernel;
        report.culprit = guilty->kernel;
        report.provider = guilty->provider;
        found = std::move(guilty->example);
      } else {
        report.kind = Kind::Combination;
      }
    }
  }
  bisection.say("making the program small");
  // Of a large program each trial takes long: what is small by then has to do.
  constexpr auto patience = std::chrono::seconds(60);
  const auto start = std::chrono::steady_clock::now();
  bool gaveUp = false;
  passes::Example small = passes::shrinkProgram(*found.module, found.inputs, [&](mlir::ModuleOp module, llvm::ArrayRef<HostTensor> inputs) {
    if (gaveUp |= std::chrono::steady_clock::now() - start > patience; gaveUp)
      return false;
    return stillFails(module, inputs);
  });
  if (gaveUp)
    bisection.say("the program could be smaller: stopped after a minute");
  llvm::SetVector<llvm::StringRef> names;
  small.module->walk([&](mlir::Operation *op) {
    const op::OpInfo *info = graph::infoOf(op);
    if (!info)
      return;
    names.insert(info->name);
    if (graph::FileLine at = graph::fileLineOf(op->getLoc()); report.where.empty() && !at.file.empty())
      report.where = at.file + ":" + std::to_string(at.line);
  });
  for (llvm::StringRef name : names)
    report.ops += (report.ops.empty() ? "" : ", ") + name.str();
  llvm::raw_string_ostream os(report.reproducer);
  small.module->print(os);
  report.inputs = std::move(small.inputs);
  return report;
}

} // namespace tressel::codegen
