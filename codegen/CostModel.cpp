#include "codegen/CostModel.h"

#include "tressel/runtime/Corrections.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

namespace tressel::codegen {

using runtime::CpuLevel;
using runtime::KernelCost;

namespace {

struct Model {
  std::string_view name;
  std::array<std::vector<double>, 3> coefficients; ///< nanoseconds, for baseline, v3, v4
};

const std::vector<Model> &models() {
  static const std::vector<Model> &all = *new std::vector<Model>{ // programs may be compiled while the process ends
#include "codegen/CostTable.inc"
  };
  return all;
}

} // namespace

std::function<void(const KernelCost &, std::span<const double>)> costObserver;

/// Results that must not depend on what was measured must not depend on how many threads there are either, which decide
/// what is cheapest.
static constexpr int kTypicalThreads = 2;
/// Typical, all threads.
static thread_local std::pair<bool, bool> scope;
CostScope::CostScope(bool typical, bool allThreads) : before_(scope) { scope = {typical, allThreads}; }
CostScope::~CostScope() { scope = before_; }

const runtime::DeviceModel &hostCpuModel() {
  static const auto &models = *[] {
    auto all = new std::array<std::array<runtime::DeviceModel, 2>, 2>; // programs may be compiled while the process ends
    const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    for (int threads : {0, processors}) {
      (*all)[0][threads > 0] = runtime::hostMachine(threads).devices.front();
      (*all)[1][threads > 0] = runtime::typicalHostMachine(kTypicalThreads).devices.front();
    }
    return all;
  }();
  return models[scope.first][scope.second];
}

bool hasCostModel(std::string_view name) { return std::ranges::find(models(), name, &Model::name) != models().end(); }

KernelCost costOf(std::string_view name, CpuLevel level, std::span<const double> counts) {
  const auto model = std::ranges::find(models(), name, &Model::name);
  if (model == models().end())
    throw InternalError("there is no cost model '" + std::string(name) + "'");
  const std::vector<double> &coefficients = model->coefficients[static_cast<size_t>(level)];
  if (coefficients.size() != counts.size())
    throw InternalError("the cost model '" + std::string(name) + "' has " + std::to_string(coefficients.size()) + " coefficients, but " +
                        std::to_string(counts.size()) + " counts are given");
  KernelCost cost{std::string(name) + "/" + std::string(runtime::nameOf(level)), 0};
  for (size_t i = 0; i < counts.size(); ++i)
    cost.seconds += 1e-9 * coefficients[i] * counts[i];
  if (costObserver)
    costObserver(cost, counts);
  return scope.first ? cost : runtime::Corrections::ofHost().apply(std::move(cost));
}

int lanesOf(CpuLevel level) { return level == CpuLevel::V4 ? 16 : level == CpuLevel::V3 ? 8 : 4; }

double predictSeconds(std::span<const KernelCost> costs, double bytes, int64_t tasks) {
  const runtime::DeviceModel &cpu = hostCpuModel();
  return cpu.commandSeconds + runtime::workSeconds(cpu, {.bytes = bytes, .tasks = tasks, .costs = costs});
}

double serialSeconds(std::span<const KernelCost> costs, double bytes) { return predictSeconds(costs, bytes, 1); }

int64_t grainFor(double serial, int64_t range) {
  return std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(range) * kWorthSplitting / std::max(serial, 1e-12)), 1,
                             std::max<int64_t>(1, range));
}

} // namespace tressel::codegen
