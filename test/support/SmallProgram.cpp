#include "test/support/SmallProgram.h"

#include "ir/graph/Graph.h"
#include "ir/sched/Export.h"
#include "ir/sched/Sched.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "test/support/BestOrder.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Simulate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <sstream>

namespace tressel::test {

using namespace runtime;

namespace {
constexpr uint32_t kDevices = 3;
constexpr double kHostFlops = 1e12, kFlops = 1e13, kCommand = 5e-6, kMemory = 1e12, kLink = 1e10, kPeer = 2e10,
                 kLatency = 1e-5;
DeviceRef refOf(uint32_t device) {
  return device == 0 ? DeviceRef{} : DeviceRef{DeviceKind::Gpu, static_cast<uint16_t>(device - 1)};
}
} // namespace

std::vector<uint32_t> SmallProgram::results() const {
  std::vector<bool> isRead(elements.size(), false);
  for (const Launch &launch : launches)
    for (uint32_t value : launch.reads)
      isRead[value] = true;
  std::vector<uint32_t> list;
  for (uint32_t v = numInputs; v < elements.size(); ++v)
    if (!isRead[v])
      list.push_back(v);
  return list;
}

std::string SmallProgram::text() const {
  std::ostringstream kernels, body, arguments, outputs, returned, types;
  auto type = [&](uint32_t v) { return "tensor<" + std::to_string(elements[v]) + "xf32>"; };
  for (uint32_t v = 0; v < numInputs; ++v)
    arguments << (v ? ", " : "") << "%v" << v << ": " << type(v) << " {tressel.name = \"x" << v
              << "\", tressel.pinned}";
  for (uint32_t i = 0; i < launches.size(); ++i) {
    const Launch &launch = launches[i];
    const uint32_t result = numInputs + i;
    int64_t bytes = 4 * elements[result];
    std::string parameters, operands, operandTypes, inside, sum;
    for (size_t k = 0; k < launch.reads.size(); ++k) {
      const std::string of = type(launch.reads[k]), n = std::to_string(k), comma = k ? ", " : "";
      bytes += 4 * elements[launch.reads[k]];
      operands += comma + "%v" + std::to_string(launch.reads[k]);
      operandTypes += comma + of;
      parameters += comma + "%a" + n + ": " + of;
      inside += "  %s" + n + " = tressel.sum %a" + n + " {axis = array<i64: 0>} : (" + of + ") -> tensor<f32>\n";
      if (k > 0)
        inside += "  %t" + n + " = tressel.add " + sum + ", %s" + n + " : (tensor<f32>, tensor<f32>) -> tensor<f32>\n";
      sum = (k > 0 ? "%t" : "%s") + n;
    }
    // Something that needs all of what it reads: what it costs is said apart.
    kernels << "tressel.kernel @work_" << i << "(" << parameters << ") -> " << type(result)
            << " attributes {provider = \"generated\", flops = " << launch.flops << " : i64, bytes = " << bytes
            << " : i64} {\n"
            << inside << "  %r = tressel.broadcast_to " << sum << " {shape = array<i64: " << elements[result]
            << ">} : (tensor<f32>) -> " << type(result) << "\n  tressel.yield %r : " << type(result) << "\n}\n";
    body << "  %v" << result << " = tressel.launch @work_" << i << "(" << operands << ") ";
    if (launch.device)
      body << "{tressel.device = \"" << nameOf(refOf(*launch.device)) << "\"} ";
    body << ": (" << operandTypes << ") -> " << type(result) << "\n";
  }
  size_t n = 0;
  for (uint32_t v : results()) {
    const char *comma = n ? ", " : "";
    outputs << comma << type(v) << " {tressel.name = \"y" << n << "\", tressel.pinned}";
    returned << comma << "%v" << v;
    types << comma << type(v);
    ++n;
  }
  return kernels.str() + "func.func @main(" + arguments.str() + ") -> (" + outputs.str() + ") {\n" + body.str() +
         "  return " + returned.str() + " : " + types.str() + "\n}\n";
}

SmallProgram randomSmallProgram(uint64_t seed, int mostLaunches, bool isPlaced) {
  std::mt19937_64 random(seed * 2 + isPlaced);
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  SmallProgram p;
  p.numInputs = static_cast<uint32_t>(1 + pick(2));
  // 64 KB to 16 MB: some 16 us to 1.6 ms on a link.
  auto elements = [&] { return int64_t(16'000) << pick(9); };
  for (uint32_t v = 0; v < p.numInputs; ++v)
    p.elements.push_back(elements());
  const int launches = std::min(mostLaunches, 3 + pick(mostLaunches - 2));
  for (int i = 0; i < launches; ++i) {
    SmallProgram::Launch launch;
    const auto known = static_cast<int>(p.elements.size());
    for (int k = 1 + pick(2); k > 0; --k) // rather what was made last
      if (const auto v = static_cast<uint32_t>(std::max(pick(known), pick(known)));
          !std::ranges::count(launch.reads, v))
        launch.reads.push_back(v);
    // 20 us to 5 ms on an accelerator, ten times that on the host.
    launch.flops = static_cast<int64_t>(2e8 * std::pow(256.0, static_cast<double>(random() >> 11) * 0x1p-53));
    if (isPlaced)
      launch.device = pick(8) == 0 ? 0 : static_cast<uint32_t>(1 + pick(2));
    p.launches.push_back(launch);
    p.elements.push_back(elements());
  }
  return p;
}

MachineModel smallMachine() {
  MachineModel machine{.name = "small"};
  for (uint32_t d = 0; d < kDevices; ++d) {
    DeviceModel model;
    model.device = refOf(d);
    model.name = nameOf(model.device);
    model.flopsPerSecond[f32] = d == 0 ? kHostFlops : kFlops;
    model.bytesPerSecond = kMemory;
    model.memoryBytes = int64_t(1) << 36;
    model.commandSeconds = kCommand;
    machine.devices.push_back(model);
  }
  for (uint32_t from = 0; from < kDevices; ++from)
    for (uint32_t to = 0; to < kDevices; ++to)
      if (from != to) {
        machine.links.push_back(
            {"link" + std::to_string(from) + std::to_string(to), from && to ? kPeer : kLink, kLatency});
        machine.routes.push_back({refOf(from), refOf(to), {static_cast<uint32_t>(machine.links.size() - 1)}});
      }
  return machine;
}

namespace {

int64_t whole(double seconds) { return static_cast<int64_t>(std::ceil(seconds * 1e12 - 1e-6)); }

/// The commands of a program whose launches are on these devices: a copy of each value for each other device that
/// reads it, and of results to the host.
std::vector<Job> jobsOf(const SmallProgram &p, const std::vector<uint32_t> &devices) {
  enum { Compute, In, Out };
  std::vector<Job> jobs;
  std::vector<uint32_t> home(p.elements.size(), 0);
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> madeBy; // value and device: the job
  auto bring = [&](uint32_t v, uint32_t to, std::vector<uint32_t> &after) {
    auto made = madeBy.find({v, to});
    if (made == madeBy.end() && home[v] != to) {
      Job copy{.engine = home[v] == 0 ? 3 * to + In : 3 * home[v] + Out};
      copy.time = whole(kLatency) + whole(4.0 * static_cast<double>(p.elements[v]) / (home[v] && to ? kPeer : kLink));
      if (auto source = madeBy.find({v, home[v]}); source != madeBy.end())
        copy.after.push_back(source->second);
      jobs.push_back(copy);
      made = madeBy.insert({{v, to}, static_cast<uint32_t>(jobs.size() - 1)}).first;
    }
    if (made != madeBy.end())
      after.push_back(made->second);
  };
  for (uint32_t i = 0; i < p.launches.size(); ++i) {
    const SmallProgram::Launch &launch = p.launches[i];
    const uint32_t device = devices[i], result = p.numInputs + i;
    Job job{.engine = 3 * device + Compute};
    double bytes = 4.0 * static_cast<double>(p.elements[result]);
    for (uint32_t v : launch.reads) {
      bytes += 4.0 * static_cast<double>(p.elements[v]);
      bring(v, device, job.after);
    }
    job.time =
        whole(kCommand + std::max(static_cast<double>(launch.flops) / (device ? kFlops : kHostFlops), bytes / kMemory));
    jobs.push_back(job);
    home[result] = device;
    madeBy[{result, device}] = static_cast<uint32_t>(jobs.size() - 1);
  }
  std::vector<uint32_t> last;
  for (uint32_t v : p.results())
    bring(v, 0, last);
  return jobs;
}

int64_t plannedEnd(const SmallProgram &program, const MachineModel &machine) {
  mlir::DialectRegistry registry;
  graph::registerDialects(registry);
  sched::registerDialect(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) { message += d.str(); });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(program.text(), &context);
  if (!module)
    throw Error("a small program does not parse: " + message + "\n" + program.text());
  mlir::PassManager pm(&context);
  pm.addPass(passes::createPlaceClusters({}, &machine));
  pm.addPass(passes::createInsertTransfers(&machine));
  pm.addPass(passes::createFitMemory(&machine));
  pm.addPass(passes::createBuildSchedule({}, &machine));
  pm.addPass(passes::createPlanMemory({}, &machine));
  pm.addPass(passes::createInsertWaits());
  pm.addPass(passes::createVerifySchedule());
  if (mlir::failed(pm.run(*module)))
    throw Error("a small program cannot be planned: " + message + "\n" + program.text());
  return simulate(sched::exportSchedule(*module->getOps<sched::ProgramOp>().begin()), machine).end;
}

} // namespace

std::optional<SmallPlan> planSmall(const SmallProgram &program) {
  const MachineModel machine = smallMachine();
  SmallPlan plan;
  plan.planned = plannedEnd(program, machine);
  // Picoseconds are rounded a little differently: what is not better by more counts as the plan itself.
  plan.best = plan.planned;
  const int64_t slack =
      static_cast<int64_t>(jobsOf(program, std::vector<uint32_t>(program.launches.size(), 1)).size()) * 4;
  std::vector<uint32_t> devices(program.launches.size(), 0);
  for (size_t i = 0; i < devices.size(); ++i)
    devices[i] = program.launches[i].device.value_or(0);
  int64_t steps = 20'000'000;
  while (true) {
    const std::optional<int64_t> end = bestEnd(jobsOf(program, devices), plan.best - slack, steps);
    if (!end)
      return std::nullopt;
    if (*end < plan.best - slack)
      plan.best = *end;
    size_t i = 0; // the next placement
    for (; i < devices.size(); ++i) {
      if (program.launches[i].device)
        continue;
      if (++devices[i] < kDevices)
        break;
      devices[i] = 0;
    }
    if (i == devices.size())
      return plan;
  }
}

double SmallPlans::mean() const {
  double sum = 0;
  for (double ratio : ratios)
    sum += std::log(ratio);
  return std::exp(sum / static_cast<double>(ratios.size()));
}

std::string SmallPlans::text() const {
  char line[200];
  const auto optimal = std::ranges::count_if(ratios, [](double r) { return r < 1.0001; });
  std::snprintf(line, sizeof line,
                "%zu programs: %td as good as any; geometric mean %.4f, median %.4f, 90%% below %.4f, 95%% below %.4f, "
                "worst %.4f; %d not searched to the end",
                ratios.size(), optimal, mean(), at(0.5), at(0.9), at(0.95), at(1), skipped);
  return line;
}

SmallPlans planManySmall(uint64_t seed, int count, int mostLaunches, bool isPlaced) {
  SmallPlans plans;
  for (int i = 0; i < count; ++i)
    if (const auto plan = planSmall(randomSmallProgram(seed + static_cast<uint64_t>(i), mostLaunches, isPlaced)))
      plans.ratios.push_back(plan->ratio());
    else
      ++plans.skipped;
  std::ranges::sort(plans.ratios);
  return plans;
}

} // namespace tressel::test
