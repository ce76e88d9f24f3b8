// Rows of schedules over several devices, in virtual time on machines that are described by figures: the same figures
// on every run and every computer. Arms: run.py.
#include "Bench.h"
#include "Bounds.h"
#include "Workloads.h"

#include "codegen/Compile.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "passes/schedule/ListSchedule.h"
#include "test/support/SmallProgram.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Explain.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Simulate.h"
#include "tressel/runtime/Simulated.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <thread>

using namespace tressel;
using namespace tressel::bench;
using runtime::MachineModel;

namespace {

using AfterPass = std::function<llvm::LogicalResult(mlir::ModuleOp, llvm::StringRef pass)>;

/// A program of the graph dialect, in a context of its own.
struct Parsed {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;

  explicit Parsed(const std::string &program) : context(registry(), mlir::MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
    module = mlir::parseSourceString<mlir::ModuleOp>(program, &context);
    if (!module) {
      std::cerr << "the row's program does not parse\n";
      std::exit(1);
    }
  }

private:
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry made;
    graph::registerDialects(made);
    return made;
  }
};

/// leastSeconds of Bounds.h.
double boundOf(const std::string &program, const MachineModel &machine) { return leastSeconds(*Parsed(program).module, machine); }

runtime::Schedule scheduleOf(const std::string &program, const MachineModel &machine,
                             codegen::CompileReport *report = nullptr, const AfterPass &afterPass = {}) {
  const Parsed parsed(program);
  codegen::CompileOptions options;
  options.scheduleOnly = true;
  options.cache = nullptr;
  options.machine = &machine;
  options.report = report;
  options.afterPass = afterPass;
  return codegen::compile(*parsed.module, options).schedule;
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

/// The same with all results going back to the host, whose end of the bus both devices share: over the bound that no plan makes.
Arms twoDevicesCopyBack() {
  return {{"tressel", [] {
             const MachineModel machine = runtime::machinePreset("2gpu-pcie3");
             const std::string program = productsOnDevices(4000, 50, 2, true);
             return TimedRun(scheduleOf(program, machine), machine).time() / boundOf(program, machine);
           }}};
}

Arms copyBack() {
  return {{"tressel", [](size_t which) {
             const MachineModel machine = which == 0 ? runtime::machinePreset("2gpu-pcie3") : referenceMachine();
             return TimedRun(scheduleOf(productsOnDevices(4000, 50, 1, true), machine), machine).overlap();
           }}};
}

/// All arms over one bound, that of the annotated program.
Arms choleskyArms() {
  constexpr int tiles = 16, devices = 4;
  constexpr int64_t size = 2048;
  registerTileOps();
  auto ours = [](int placedOn = devices) {
    const MachineModel machine = runtime::machinePreset("4gpu-pcie3");
    return scheduleOf(cholesky(tiles, size, placedOn), machine);
  };
  auto bound = [] {
    static const double seconds = boundOf(cholesky(tiles, size, devices), runtime::machinePreset("4gpu-pcie3"));
    return seconds;
  };
  return {{"tressel",
           [=] { return TimedRun(ours(), runtime::machinePreset("4gpu-pcie3")).time() / bound(); }},
          {"unannotated", [=] { return TimedRun(ours(0), runtime::machinePreset("4gpu-pcie3")).time() / bound(); }},
          {"dmda", [=] {
             const MachineModel machine = runtime::machinePreset("4gpu-pcie3");
             return TimedRun(dynamicSchedule(choleskyTasks(tiles, size), machine), machine).time() / bound();
           }}};
}

/// The plan's own cost, of the program as the scheduler is given it, by the scheduler's prices; and the executor's log of the same plan.
Arms predictionError() {
  return {{"tressel", [] {
             double worst = 0;
             for (const Workload &workload : workloads()) {
               const MachineModel machine = runtime::machinePreset(workload.machine);
               double planned = 0;
               const AfterPass price = [&](mlir::ModuleOp module, llvm::StringRef pass) {
                 if (pass == "settle-kernels") {
                   passes::MachineCosts costs(machine);
                   auto main = *module.getOps<mlir::func::FuncOp>().begin();
                   planned = passes::lengthOf(
                       passes::planStep(main, passes::IssueOrder(main, /*leastMemory=*/false), costs, passes::Effort::Thorough));
                 }
                 return mlir::success();
               };
               const double ran = TimedRun(scheduleOf(workload.program, machine, nullptr, price), machine).time();
               if (std::getenv("TRESSEL_BENCH_VERBOSE"))
                 std::cerr << workload.name << ": planned " << planned << " s, ran " << ran << " s\n";
               worst = std::max(worst, std::abs(planned - ran) / ran);
             }
             return worst;
           }}};
}

Arms optimality() {
  return {{"tressel", [](size_t which) {
             const Workload workload = workloads().at(which);
             const MachineModel machine = runtime::machinePreset(workload.machine);
             const double ran = TimedRun(scheduleOf(workload.program, machine), machine).time(), bound = boundOf(workload.program, machine);
             if (std::getenv("TRESSEL_BENCH_VERBOSE"))
               std::cerr << workload.name << ": " << ran << " s, bound " << bound << " s\n";
             return ran / bound;
           }}};
}

/// What really happens, which differs from what plans are made with: every launch and every link takes up to a share
/// more or less, as a seed decides. A plan can know it: kernels carry the launches' figures, the machine those of
/// links.
class Truth {
public:
  Truth(uint64_t seed, double share) : seed(seed), share(share) {}

  MachineModel of(MachineModel machine) const {
    for (runtime::LinkModel &link : machine.links)
      link.bytesPerSecond /= factor(link.name);
    return machine;
  }
  /// Of a launch by the name of its kernel, which is its alone; all blocks of rows of a launch have one.
  double ofKernel(llvm::StringRef name) const {
    if (name.consume_back("_rows"))
      name = name.rtrim("0123456789").drop_back(); // "_512"
    return factor(name);
  }
  runtime::Schedule of(runtime::Schedule schedule, bool isKnown) const {
    for (runtime::KernelDesc &kernel : schedule.kernels)
      if (!isKnown || kernel.provider == "generated") // of which code generation has counted the figures anew
        scale(kernel.flops, kernel.bytes, ofKernel(kernel.symbol));
    return schedule;
  }
  static void scale(Size &flops, Size &bytes, double by) {
    flops = std::llround(static_cast<double>(flops) * by);
    bytes = std::llround(static_cast<double>(bytes) * by);
  }

private:
  /// FNV-1a of the name and the seed, then the finalizer of SplitMix64.
  double factor(llvm::StringRef name) const {
    uint64_t x = 0xcbf29ce484222325u;
    for (const char c : name)
      x = (x ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    x += seed * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return 1 + share * (static_cast<double>(x >> 11) * 0x1p-52 - 1);
  }
  uint64_t seed;
  double share;
};

/// Every launch gets a kernel of its own, that costs what the truth says, or, without one, what it is thought to.
AfterPass withLaunchesApart(const Truth *truth) {
  return [truth](mlir::ModuleOp module, llvm::StringRef pass) {
    auto tell = [&](graph::KernelOp kernel) {
      Size flops = kernel.getFlops(), bytes = kernel.getBytes();
      Truth::scale(flops, bytes, truth->ofKernel(kernel.getSymName()));
      kernel.setFlops(static_cast<uint64_t>(flops));
      kernel.setBytes(static_cast<uint64_t>(bytes));
    };
    if (pass == "split-producers" && truth)
      for (auto kernel : module.getOps<graph::KernelOp>())
        if (kernel.getSymName().ends_with("_rows")) // made of the ops
          tell(kernel);
    if (pass != "outline-kernels")
      return mlir::success();
    int number = 0;
    std::vector<graph::KernelOp> shared(module.getOps<graph::KernelOp>().begin(),
                                        module.getOps<graph::KernelOp>().end());
    mlir::SymbolTable symbols(module);
    module.walk([&](graph::LaunchOp launch) {
      auto kernel = symbols.lookup<graph::KernelOp>(launch.getKernel());
      mlir::OpBuilder builder(kernel);
      auto own = mlir::cast<graph::KernelOp>(builder.clone(*kernel));
      own.setSymName((kernel.getSymName() + "_of_" + llvm::Twine(number++)).str());
      launch.setKernel(own.getSymName());
      if (truth)
        tell(own);
    });
    for (graph::KernelOp kernel : shared)
      kernel.erase();
    return mlir::success();
  };
}

constexpr uint64_t kTruths = 1000;

/// Of one of the programs and its share of the truths: our plan's time over that of the plan that knew the truth,
/// sorted.
std::vector<double> perturbedRatios(size_t which) {
  const Workload &workload = workloads()[which];
  const MachineModel believed = runtime::machinePreset(workload.machine);
  const runtime::Schedule plan = scheduleOf(workload.program, believed, nullptr, withLaunchesApart(nullptr));
  std::vector<double> ratios;
  for (uint64_t seed = which; seed < kTruths; seed += workloads().size()) {
    const Truth truth(seed, 0.2);
    const MachineModel machine = truth.of(believed);
    const runtime::Schedule known = scheduleOf(workload.program, machine, nullptr, withLaunchesApart(&truth));
    ratios.push_back(TimedRun(truth.of(plan, false), machine).time() / TimedRun(truth.of(known, true), machine).time());
  }
  std::ranges::sort(ratios);
  return ratios;
}

/// The 95th percentile of all.
double perturbed95() {
  std::vector<std::vector<double>> ofProgram(workloads().size());
  std::atomic<size_t> next{0};
  {
    std::vector<std::jthread> threads(std::max(1u, std::thread::hardware_concurrency()));
    for (std::jthread &thread : threads)
      thread = std::jthread([&] {
        for (size_t which; (which = next++) < ofProgram.size();)
          ofProgram[which] = perturbedRatios(which);
      });
  }
  std::vector<double> all;
  for (size_t which = 0; which < ofProgram.size(); ++which) {
    const std::vector<double> &own = ofProgram[which];
    std::cerr << workloads()[which].name << ": least " << own.front() << ", median " << own[own.size() / 2]
              << ", 95% below " << own[own.size() * 95 / 100] << ", most " << own.back() << "\n";
    all.insert(all.end(), own.begin(), own.end());
  }
  std::ranges::sort(all);
  return all[all.size() * 95 / 100];
}

Arms perturbed() {
  return {{"tressel", [] {
             static const double once = perturbed95(); // the same each time
             return once;
           }}};
}

Arms optimalityOfSmall() {
  return {{"tressel", [](size_t which) {
             const test::SmallPlans plans =
                 which == 0 ? test::planManySmall(1, 1000, 10, true) : test::planManySmall(1, 300, 7, false);
             std::cerr << (which == 0 ? "placed by hand: " : "placed by the planner: ") << plans.text() << "\n";
             return plans.mean();
           }}};
}

/// Bytes of accelerator `gpu0` that a schedule takes all the time, or at its peak.
int64_t bytesOf(const runtime::Schedule &schedule) {
  const runtime::DeviceRef device{runtime::DeviceKind::Gpu, 0};
  int64_t bytes = 0;
  for (const runtime::ArenaDesc &arena : schedule.arenas)
    bytes += (arena.device == device ? arena.bytes : 0).number();
  for (const runtime::StateDesc &state : schedule.states)
    bytes += state.home.device == device ? (state.type.bytes() + 63) / 64 * 64 : 0;
  return bytes;
}

Arms memory70() {
  return {{"tressel", [](size_t which) {
             const Workload workload = memoryWorkloads().at(which);
             MachineModel machine = runtime::machinePreset(workload.machine);
             const TimedRun whole(scheduleOf(workload.program, machine), machine);
             for (runtime::DeviceModel &device : machine.devices)
               if (device.device == runtime::DeviceRef{runtime::DeviceKind::Gpu, 0})
                 device.memoryBytes = bytesOf(whole.schedule()) * 7 / 10;
             const TimedRun bound(scheduleOf(workload.program, machine), machine);
             if (std::getenv("TRESSEL_BENCH_VERBOSE"))
               std::cerr << workload.name << ": " << whole.time() << " s in " << bytesOf(whole.schedule()) << " bytes, " << bound.time() << " s in "
                         << bytesOf(bound.schedule()) << "\n";
             return bound.time() / whole.time();
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
  const std::map<std::string, Arms (*)()> rows{
      {"sim.two-devices", twoDevices}, {"sim.two-devices.copy-back", twoDevicesCopyBack}, {"sim.overlap.copy-back", copyBack},
      {"sim.cholesky", choleskyArms},  {"sim.prediction-error", predictionError},
      {"sim.optimality", optimality},  {"sim.perturbed", perturbed},
      {"sim.optimality.small", optimalityOfSmall},
      {"sim.memory-70", memory70},     {"plan.100k", planOf100k}};
  if (argc == 4 && argv[1] == std::string("--bound")) {
    std::ifstream file(argv[2]);
    std::cout << boundOf({std::istreambuf_iterator<char>(file), {}}, runtime::machinePreset(argv[3])) << "\n";
    return 0;
  }
  const auto row = argc > 1 ? rows.find(argv[1]) : rows.end();
  if (row == rows.end()) {
    std::cerr << "usage: schedule-bench ROW\n       schedule-bench --bound PROGRAM.mlir PRESET   seconds that no plan can beat\nrows:";
    for (const auto &[name, arms] : rows)
      std::cerr << " " << name;
    std::cerr << "\n";
    return 2;
  }
  return serve(row->second());
}
