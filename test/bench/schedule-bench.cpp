// Rows of schedules over several devices, in virtual time on machines that are described by figures: the same figures
// on every run and every computer. Arms: run.py.
#include "Bench.h"
#include "Workloads.h"

#include "codegen/Compile.h"
#include "ir/graph/Graph.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Explain.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Simulate.h"
#include "tressel/runtime/Simulated.h"

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>

using namespace tressel;
using namespace tressel::bench;
using runtime::MachineModel;

namespace {

runtime::Schedule scheduleOf(const std::string &program, const MachineModel &machine,
                             codegen::CompileReport *report = nullptr) {
  mlir::DialectRegistry registry;
  graph::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(program, &context);
  if (!module) {
    std::cerr << "the row's program does not parse\n";
    std::exit(1);
  }
  codegen::CompileOptions options;
  options.scheduleOnly = true;
  options.cache = nullptr;
  options.machine = &machine;
  options.report = report;
  return codegen::compile(*module, options).schedule;
}

/// One call on a machine that keeps the time alone: sizes may be any.
class TimedRun {
public:
  TimedRun(runtime::Schedule schedule, const MachineModel &model)
      : machine_(runtime::SimulatedMachine::create(model, {.computes = false})),
        executor_(std::move(schedule), machine_) {
    size_t bound = 0;
    for (const runtime::StateDesc &state : executor_.schedule().states)
      bound += state.kind != runtime::StateKind::Derived;
    std::vector<void *> states(bound, place()), outputs(executor_.schedule().outputs.size(), place());
    std::vector<const void *> inputs(executor_.schedule().inputs.size(), place());
    executor_.bindStates(states);
    executor_.run(inputs, outputs);
  }
  /// Seconds.
  double time(const runtime::VirtualTimeOptions &options = {}) const {
    return runtime::seconds(runtime::virtualTimes(machine_->log(), machine_->model(), options).total);
  }
  /// (T_c + T_m - T) / min(T_c, T_m).
  double overlap() const {
    const double computing = time({.transferTime = false}), copying = time({.computeTime = false});
    return (computing + copying - time()) / std::min(computing, copying);
  }
  const runtime::Schedule &schedule() const { return executor_.schedule(); }

private:
  /// Somewhere: nothing is read or written there.
  static void *place() {
    alignas(64) static char bytes[64];
    return bytes;
  }
  std::shared_ptr<runtime::SimulatedMachine> machine_;
  runtime::Executor executor_;
};

Arms twoDevices() {
  return {{"tressel", [] {
             const MachineModel machine = runtime::machinePreset("2gpu-pcie3");
             const double both = TimedRun(scheduleOf(productsOnDevices(4000, 50, 2, false), machine), machine).time();
             const double one = TimedRun(scheduleOf(productsOnDevices(4000, 50, 1, false), machine), machine).time();
             return both / one;
           }}};
}

Arms copyBack() {
  return {{"tressel", [](size_t which) {
             const MachineModel machine = which == 0 ? runtime::machinePreset("2gpu-pcie3") : referenceMachine();
             return TimedRun(scheduleOf(productsOnDevices(4000, 50, 1, true), machine), machine).overlap();
           }}};
}

/// Both arms over one bound, that of our plan's commands.
Arms choleskyArms() {
  constexpr int tiles = 16, devices = 4;
  constexpr int64_t size = 2048;
  registerTileOps();
  auto ours = [] {
    const MachineModel machine = runtime::machinePreset("4gpu-pcie3");
    return scheduleOf(cholesky(tiles, size, devices), machine);
  };
  auto bound = [ours] {
    static const double seconds =
        runtime::seconds(runtime::simulate(ours(), runtime::machinePreset("4gpu-pcie3")).lowerBound);
    return seconds;
  };
  return {{"tressel",
           [=] { return TimedRun(ours(), runtime::machinePreset("4gpu-pcie3")).time() / bound(); }},
          {"dmda", [=] {
             const MachineModel machine = runtime::machinePreset("4gpu-pcie3");
             return TimedRun(dynamicSchedule(choleskyTasks(tiles, size), machine), machine).time() / bound();
           }}};
}

Arms predictionError() {
  return {{"tressel", [] {
             double worst = 0;
             for (const Workload &workload : workloads()) {
               const MachineModel machine = runtime::machinePreset(workload.machine);
               const runtime::Schedule schedule = scheduleOf(workload.program, machine);
               const double planned = runtime::seconds(runtime::simulate(schedule, machine).end);
               const double ran = TimedRun(schedule, machine).time();
               worst = std::max(worst, std::abs(planned - ran) / ran);
             }
             return worst;
           }}};
}

Arms optimality() {
  return {{"tressel", [](size_t which) {
             const Workload workload = workloads().at(which);
             const MachineModel machine = runtime::machinePreset(workload.machine);
             const runtime::Timeline plan = runtime::simulate(scheduleOf(workload.program, machine), machine);
             return static_cast<double>(plan.end) / static_cast<double>(plan.lowerBound);
           }}};
}

Arms planOf100k() {
  return {{"tressel", [] {
             const MachineModel machine = runtime::machinePreset("4gpu-pcie3");
             const std::string program = branches(100'000);
             codegen::CompileReport report;
             scheduleOf(program, machine, &report);
             double seconds = 0;
             for (const codegen::PassTiming &pass : report.timings)
               if (seconds > 0 || pass.pass == "place-clusters") // what comes before is as for one device
                 seconds += pass.pass == "codegen" || pass.pass == "link" || pass.pass == "export" ? 0 : pass.seconds;
             return seconds;
           }}};
}

} // namespace

int main(int argc, char **argv) {
  const std::map<std::string, Arms (*)()> rows{{"sim.two-devices", twoDevices},
                                               {"sim.overlap.copy-back", copyBack},
                                               {"sim.cholesky", choleskyArms},
                                               {"sim.prediction-error", predictionError},
                                               {"sim.optimality", optimality},
                                               {"plan.100k", planOf100k}};
  const auto row = argc > 1 ? rows.find(argv[1]) : rows.end();
  if (row == rows.end()) {
    std::cerr << "usage: schedule-bench ROW; rows:";
    for (const auto &[name, arms] : rows)
      std::cerr << " " << name;
    std::cerr << "\n";
    return 2;
  }
  return serve(row->second());
}
