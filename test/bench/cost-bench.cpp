// What kernels take beside what their cost models count, for fitting the models: fit_costs.py drives it.
//
// usage: cost-bench PROVIDER LEVEL < FILES      (one program of the graph dialect a line)
//
// Each program is compiled with kernels of PROVIDER wherever that has one ("any": the cheapest bid) and generated code for LEVEL, and run
// until its times are steady. A line of JSON for each kernel: program, costs with their counts, bytes, tasks, threads, and the seconds that a
// quarter of its runs stay below, as what else the machine does only ever adds.
#include "codegen/Compile.h"
#include "codegen/CostModel.h"
#include "ir/graph/Graph.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/ThreadPool.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace tressel;

namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

using CostKey = std::pair<std::string, double>;
std::map<CostKey, std::vector<double>> countsOf;

/// Memory for a value, with numbers that no kernel takes a shortcut for.
std::shared_ptr<std::byte> numbersOf(const TensorType &type) {
  const auto bytes = static_cast<size_t>(dim::hint(dim::bytes(type)) + 64);
  std::shared_ptr<std::byte> data(static_cast<std::byte *>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)), std::free);
  std::fill_n(data.get(), bytes, std::byte{0});
  const int64_t count = dim::hint(dim::numElements(type.shape));
  if (type.dtype == f32)
    for (int64_t i = 0; i < count; ++i)
      reinterpret_cast<float *>(data.get())[i] = 0.5f + 1e-3f * static_cast<float>(i % 613);
  else if (type.dtype == f64)
    std::fill_n(reinterpret_cast<double *>(data.get()), count, 0.75);
  else if (type.dtype == f16 || type.dtype == bf16)
    std::fill_n(reinterpret_cast<uint16_t *>(data.get()), count, type.dtype == f16 ? uint16_t(0x3a00) : uint16_t(0x3f40));
  return data;
}

std::string textOf(const std::string &path) {
  const std::vector<std::byte> bytes = runtime::readFile(path);
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

void measure(const std::string &path, const std::string &provider, const std::string &level) {
  mlir::DialectRegistry registry;
  graph::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(textOf(path), &context);
  if (!module)
    throw Error("'" + path + "' is no program of the graph dialect");
  countsOf.clear();
  codegen::CompileOptions options;
  options.cpu = level, options.cache = nullptr;
  if (provider != "any")
    options.prefer = provider;
  codegen::CompiledProgram program = codegen::compile(*module, options);
  const runtime::Schedule s = program.schedule;
  runtime::Context call(program.load());
  std::vector<std::shared_ptr<std::byte>> kept;
  auto data = [&](const TensorType &type) { return kept.emplace_back(numbersOf(type)).get(); };
  std::vector<void *> states, outputs;
  std::vector<const void *> inputs;
  for (const runtime::StateDesc &state : s.states)
    if (state.kind != runtime::StateKind::Derived)
      states.push_back(data(state.type));
  for (const runtime::ValueDesc &input : s.inputs)
    inputs.push_back(data(input.type));
  for (const runtime::ValueDesc &output : s.outputs)
    outputs.push_back(data(output.type));
  call.bindStates(states);
  runtime::Profile profile;
  call.setProfile(&profile);
  for (auto start = Clock::now(); secondsSince(start) < 4e-3;)
    call.run(inputs, outputs);
  std::vector<std::vector<double>> times(s.step.commands.size());
  const auto start = Clock::now();
  for (int runs = 0; runs < 7 || (secondsSince(start) < 12e-3 && runs < 1000); ++runs) {
    call.run(inputs, outputs);
    for (size_t i = 0; i < times.size(); ++i)
      times[i].push_back(static_cast<double>(profile.commands[i].endNs - profile.commands[i].startNs) * 1e-9);
  }
  for (size_t i = 0; i < times.size(); ++i) {
    const runtime::Command &c = s.step.commands[i];
    if (c.kind != runtime::CommandKind::Launch)
      continue;
    const runtime::KernelDesc &k = s.kernels[c.kernel];
    std::ranges::sort(times[i]);
    std::string costs;
    for (const runtime::KernelCost &cost : k.costs) {
      costs += (costs.empty() ? "" : ", ") + ("{\"kind\": \"" + cost.kind) + "\", \"counts\": [";
      const auto known = countsOf.find({cost.kind, cost.seconds});
      if (known == countsOf.end())
        return; // of several parts of one kind
      for (size_t n = 0; n < known->second.size(); ++n)
        costs += (n ? ", " : "") + std::to_string(known->second[n]);
      costs += "]}";
    }
    const int64_t grain = std::max<int64_t>(1, k.grain.number()), tasks = (k.range.number() + grain - 1) / grain;
    std::printf("{\"program\": \"%s\", \"kernel\": \"%s\", \"costs\": [%s], \"bytes\": %lld, \"tasks\": %lld, "
                "\"threads\": %d, \"predicted\": %.9g, "
                "\"seconds\": %.9g}\n",
                path.c_str(), k.symbol.c_str(), costs.c_str(), static_cast<long long>(k.bytes),
                static_cast<long long>(tasks), runtime::ThreadPool::global().numThreads(),
                codegen::predictSeconds(k.costs, static_cast<double>(k.bytes), tasks), times[i][times[i].size() / 4]);
  }
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: cost-bench PROVIDER LEVEL < FILES\n");
    return 2;
  }
  codegen::costObserver = [](const runtime::KernelCost &cost, std::span<const double> counts) {
    countsOf[{cost.kind, cost.seconds}].assign(counts.begin(), counts.end());
  };
  for (std::string path; std::getline(std::cin, path);)
    try {
      measure(path, argv[1], argv[2]);
    } catch (const Error &error) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), error.what());
    }
}
