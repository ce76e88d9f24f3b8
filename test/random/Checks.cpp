#include "test/random/Checks.h"
#include "codegen/Compile.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Interpreter.h"
#include "test/support/Placement.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Ranks.h"
#include "tressel/runtime/Simulated.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace tressel::test {

Check simplifies() {
  return [](mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs,
            std::vector<op::HostTensor> &outputs) -> std::string {
    mlir::PassManager passes(module.getContext());
    passes.addPass(mlir::createCanonicalizerPass());
    passes.addPass(mlir::createCSEPass());
    if (mlir::failed(passes.run(module)) || mlir::failed(mlir::verify(module)))
      return "the simplifier fails";
    graph::Interpretation result = graph::interpret(module.lookupSymbol<mlir::func::FuncOp>("main"), inputs);
    outputs = std::move(result.outputs);
    return result.error;
  };
}

namespace {
using Run = std::function<void(mlir::ModuleOp module, llvm::ArrayRef<const void *> in, llvm::ArrayRef<void *> out,
                               const dim::Values &sizes)>;
Check runs(Run run) {
  return [run = std::move(run)](mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs,
                                std::vector<op::HostTensor> &outputs) -> std::string {
    std::vector<const void *> in;
    for (const op::HostTensor &t : inputs)
      in.push_back(t.data.get());
    auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
    dim::Values sizes;
    for (auto [type, tensor] : llvm::zip_equal(main.getArgumentTypes(), inputs))
      if (std::string problem = dim::unify(graph::fromMlir(type).shape, tensor.type.shape, sizes, true);
          !problem.empty())
        return problem;
    std::vector<void *> out;
    try {
      for (mlir::Type type : main.getResultTypes()) {
        const TensorType declared = graph::fromMlir(type);
        outputs.push_back(op::HostTensor::allocate({declared.dtype, dim::evaluate(declared.shape, sizes)}));
        out.push_back(outputs.back().data.get());
      }
      run(module, in, out, sizes);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
}

std::shared_ptr<const runtime::Executable> executableOf(mlir::ModuleOp module, codegen::CompileOptions options,
                                                        const std::function<void(const runtime::Schedule &)> &look = {}) {
  options.cache = nullptr; // what is tested is compiled, and the user's cache is not for programs that nobody wrote
  codegen::CompiledProgram program = codegen::compile(module, options);
  if (look)
    look(program.schedule);
  return program.load();
}
} // namespace

Check compiles(bool allowLibrary, bool quick) {
  return runs([allowLibrary, quick](mlir::ModuleOp module, auto in, auto out, const dim::Values &sizes) {
    runtime::Context context(executableOf(module, {.allowLibrary = allowLibrary, .quickCode = quick}));
    context.bindStates({});
    context.run(in, out, sizes);
  });
}

std::string MemoryCoverage::str() const {
  return std::to_string(programs) + " programs had less memory than they take: " + std::to_string(changed) + " were changed; " +
         std::to_string(refused) + " times there was an op that is too large; " + std::to_string(out) + " values were spilled and " + std::to_string(back) +
         " prefetched, " + std::to_string(repeated) + " were rematerialized, " + std::to_string(streamed) + " parameters were streamed";
}

namespace {
codegen::CompileOptions onMachine(const runtime::MachineModel &model, runtime::Decisions *decisions = nullptr) {
  codegen::CompileOptions options;
  options.machine = &model;
  options.quickCode = true;
  options.decisions = decisions;
  return options;
}

/// Puts what nobody has placed on one accelerator, so that much is there at once.
void crowd(mlir::ModuleOp module, uint16_t accelerator) {
  for (mlir::Operation &each : module.lookupSymbol<mlir::func::FuncOp>("main").getBody().front()) {
    const op::OpInfo *info = graph::infoOf(&each);
    if (info && !info->isView && !info->hasEffects && !graph::deviceOf(&each) && !graph::isTransfer(&each))
      graph::setDevice(&each, {runtime::DeviceKind::Gpu, accelerator});
  }
}

/// Leaves the accelerators the fewest tenths, from some on, of what the program takes that no op is too large for.
void takeMemory(mlir::ModuleOp module, runtime::MachineModel &model, uint64_t seed, MemoryCoverage &memory) {
  auto schedule = [&](const runtime::MachineModel &machine, runtime::Decisions *decisions) {
    mlir::OwningOpRef<mlir::ModuleOp> copy = mlir::cast<mlir::ModuleOp>(module->clone());
    codegen::CompileOptions options = onMachine(machine, decisions);
    options.scheduleOnly = true;
    options.cache = nullptr;
    return codegen::compile(*copy, options).schedule;
  };
  const runtime::Schedule whole = schedule(model, nullptr);
  ++memory.programs;
  runtime::MachineModel smaller = model;
  runtime::Decisions decisions;
  for (auto tenths = static_cast<int64_t>(3 + seed % 4);; ++tenths) {
    for (runtime::DeviceModel &device : smaller.devices) {
      int64_t bytes = 0;
      for (const runtime::ArenaDesc &arena : whole.arenas)
        bytes += (arena.device == device.device ? arena.bytes : 0).number();
      for (const runtime::StateDesc &state : whole.states)
        bytes += state.home.device == device.device ? (state.type.bytes() + 63) / 64 * 64 : 0;
      if (device.device.kind == runtime::DeviceKind::Gpu && bytes > 0)
        device.memoryBytes = std::max<int64_t>(64, bytes * tenths / 10);
    }
    decisions.clear();
    try {
      schedule(smaller, &decisions);
      break;
    } catch (const Error &error) {
      const std::string_view message = error.message();
      // A loop's or branch's operands, results and what is in its bodies are counted as if all were there at once.
      const size_t at = message.find("' needs ");
      const bool hasBodies = message.find("'while'") == 0 || message.find("'scan'") == 0 || message.find("'cond'") == 0;
      const int64_t needed = at == message.npos ? 0 : std::stoll(std::string(message.substr(at + 8)));
      if (!hasBodies && llvm::none_of(smaller.devices, [&](const runtime::DeviceModel &device) {
            return device.device.kind == runtime::DeviceKind::Gpu && device.memoryBytes < needed;
          }))
        throw;
      ++memory.refused;
      if (tenths == 10)
        return;
    }
  }
  model = smaller;
  for (const runtime::Decision &d : decisions) {
    if (d.pass != "fit-memory" || d.where.op != "the program")
      continue;
    ++memory.changed;
    auto add = [&](int64_t &sum, const char *behind) {
      const size_t at = d.text.find(behind);
      sum += std::stoll(d.text.substr(d.text.rfind(' ', at - 1) + 1));
    };
    add(memory.out, " values are spilled"), add(memory.back, " prefetched"), add(memory.repeated, " are rematerialized");
    add(memory.streamed, " parameters");
  }
}
/// The same for the same program, also while it is shrunk.
uint64_t seedOf(mlir::ModuleOp module) {
  uint64_t seed = 1;
  module.walk(
      [&](mlir::Operation *op) { seed = seed * 31 + op->getNumOperands() + op->getName().getStringRef().size(); });
  return seed;
}

/// Compiles for the machine, tries mutations of the schedule if they are to be counted, and runs with all checks.
void runSimulated(mlir::ModuleOp module, const runtime::MachineModel &model, uint64_t seed, MutationTally *tally,
                  llvm::ArrayRef<const void *> in, llvm::ArrayRef<void *> out, const dim::Values &sizes) {
  auto executable = executableOf(module, onMachine(model), [&](const runtime::Schedule &s) {
    if (!tally)
      return;
    std::vector<runtime::Schedule> otherSizes;
    for (int64_t more : {3, 7})
      if (!s.dims.empty()) {
        dim::Values other;
        for (Size symbol : s.dims)
          other.bind(symbol, std::min(dim::bounds(symbol).hi, dim::substitute(symbol, sizes).number() + more));
        otherSizes.push_back(runtime::instantiate(s, other));
      }
    if (const std::string problem =
            tryMutations(s.dims.empty() ? s : runtime::instantiate(s, sizes), *tally, otherSizes);
        !problem.empty())
      throw Error(problem);
  });
  auto machine = runtime::SimulatedMachine::create(
      model, {.interleaving = seed, .checkRaces = true, .poison = true, .isolate = true, .checkCopies = true});
  runtime::Executor executor(executable, machine);
  executor.bindStates({});
  executor.run(in, out, sizes);
}
} // namespace

Check runsOnDevices(MutationTally *tally, MemoryCoverage *memory) {
  return runs([tally, memory](mlir::ModuleOp module, auto in, auto out, const dim::Values &sizes) {
    const uint64_t seed = seedOf(module);
    runtime::MachineModel model = runtime::machinePreset("2gpu-pcie3");
    if (seed % 3 == 0) // copies take long, but begin at once: it pays to cut what waits for them
      for (runtime::LinkModel &link : model.links)
        link.bytesPerSecond = 1e6, link.latencySeconds = 1e-12;
    if (seed % 6 == 0) // and longer still without pinned memory: it pays to copy into it first
      for (runtime::RouteModel &route : model.routes)
        route.pageableBytesPerSecond = 1e5;
    placeAtRandom(module, seed, 2);
    if (memory && sizes.empty() && seed / 3 % 2 == 0) {
      crowd(module, seed % 2);
      takeMemory(module, model, seed / 7, *memory);
    }
    runSimulated(module, model, seed, tally, in, out, sizes);
  });
}

Check runsInParts(MutationTally *tally) {
  return runs([tally](mlir::ModuleOp module, auto in, auto out, const dim::Values &sizes) {
    const uint64_t seed = seedOf(module);
    static constexpr const char *kMeshes[] = {"data=2", "data=3", "data=4", "data=2, model=2"};
    runtime::MachineModel model = runtime::machinePreset("4gpu-pcie3");
    if (seed % 3 == 0) // a latency for each copy makes fewer of them, through the host, the shorter way
      for (runtime::LinkModel &link : model.links)
        link.latencySeconds = link.name.starts_with("root") ? 1e-12 : 1e-3;
    if (seed % 3 == 1) // and bytes that take long, in steps
      for (runtime::LinkModel &link : model.links)
        link.bytesPerSecond = 1e5, link.latencySeconds = 1e-12;
    static constexpr const char *kMicroBatches[] = {"data=1, micro=2", "data=1, micro=3", "data=2, micro=2", "micro=4, data=1"};
    if (seed % 4 == 0) // micro-batches through one or two accelerators in a row
      cutAtRandom(module, seed, kMicroBatches[seed / 4 % 4], false, false,
                  graph::pipelineAttr(module.getContext(), "micro", 1 + static_cast<int64_t>(seed / 16 % 2)));
    else
      cutAtRandom(module, seed, kMeshes[seed / 3 % 4]);
    runSimulated(module, model, seed, tally, in, out, sizes);
  });
}

std::string RankCoverage::str() const {
  return std::to_string(programs) + " programs of one rank ran on all, with " + std::to_string(collectives) +
         " collectives and " + std::to_string(cut) + " arguments and results in parts; " + std::to_string(uneven) +
         " had parts of different sizes";
}

namespace {
/// How arguments and results lie on the ranks, from the program after the pass `shard`.
struct RankLayout {
  graph::Mesh mesh;
  std::vector<graph::Sharding> arguments, results;
  int64_t collectives = 0;

  void read(mlir::ModuleOp module) {
    auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
    mesh = *graph::meshOf(main);
    auto parse = [&](mlir::Attribute text, mlir::Type type) {
      return graph::parseSharding(mlir::cast<mlir::StringAttr>(text).getValue(), graph::fromMlir(type).rank(), mesh)
          .sharding;
    };
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      arguments.push_back(parse(main.getArgAttr(i, graph::kShardingAttr), main.getArgumentTypes()[i]));
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      results.push_back(parse(main.getResultAttr(i, graph::kShardingAttr), main.getResultTypes()[i]));
    for (mlir::Operation &op : main.getBody().front())
      collectives += graph::isCollective(&op);
  }
};
} // namespace

Check runsAsRanks(RankCoverage *coverage) {
  return [coverage](mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs,
                    std::vector<op::HostTensor> &outputs) -> std::string {
    const uint64_t seed = seedOf(module);
    static constexpr const char *kMeshes[] = {"data=2", "data=4", "data=2, model=2"};
    const runtime::MachineModel model = runtime::machinePreset("dgx-h100");
    mlir::OwningOpRef<mlir::ModuleOp> uncut = mlir::cast<mlir::ModuleOp>(module->clone());
    cutAtRandom(module, seed, kMeshes[seed / 3 % 3], /*hold=*/false, /*ofOneRank=*/true);
    try {
      RankLayout layout;
      codegen::CompileOptions options = onMachine(model);
      options.cache = nullptr;
      options.afterPass = [&](mlir::ModuleOp now, llvm::StringRef pass) {
        if (pass == "shard")
          layout.read(now);
        return mlir::success();
      };
      codegen::CompiledProgram program = codegen::compile(module, options);
      program.schedule = runtime::expandRanks(program.schedule);
      const std::shared_ptr<const runtime::Executable> executable = program.load();
      const auto ranks = static_cast<size_t>(layout.mesh.numRanks());
      // Of each rank the inputs, in its program's order.
      std::vector<std::vector<op::HostTensor>> parts;
      for (auto [input, sharding] : llvm::zip_equal(inputs, layout.arguments))
        parts.push_back(graph::partsOf(input, sharding, layout.mesh));
      dim::Values sizes;
      for (auto [i, each] : llvm::enumerate(parts))
        if (std::string problem =
                dim::unify(executable->schedule().inputs[i].type.shape, each.front().type.shape, sizes, true);
            !problem.empty())
          return problem;
      std::vector<const void *> in;
      std::vector<void *> out;
      std::vector<std::vector<op::HostTensor>> results(layout.results.size());
      for (size_t rank = 0; rank < ranks; ++rank) {
        for (const auto &each : parts)
          in.push_back(each[rank].data.get());
        for (auto &result : results) {
          TensorType type = executable->schedule().outputs[out.size()].type;
          type.shape = dim::evaluate(type.shape, sizes);
          result.push_back(op::HostTensor::allocate(type));
          out.push_back(result.back().data.get());
        }
      }
      auto machine = runtime::SimulatedMachine::create(
          model, {.interleaving = seed, .checkRaces = true, .poison = true, .isolate = true, .checkCopies = true});
      runtime::Executor executor(executable, machine);
      executor.bindStates({});
      executor.run(in, out, sizes);
      for (auto [result, sharding] : llvm::zip_equal(results, layout.results)) {
        outputs.push_back(graph::joined(result, sharding, layout.mesh));
        if (sharding.isWhole())
          for (const op::HostTensor &other : result)
            if (std::string why = op::interp::compare(other, result.front(), op::interp::kExact); !why.empty())
              return "ranks have different results: " + why;
      }
      if (coverage) {
        ++coverage->programs;
        coverage->collectives += layout.collectives;
        for (const auto *list : {&layout.arguments, &layout.results})
          coverage->cut += llvm::count_if(*list, [](const graph::Sharding &sharding) { return !sharding.isWhole(); });
      }
    } catch (const Error &error) {
      // Kernels of one process have the same sizes for all ranks.
      constexpr std::string_view kUneven[] = {"has other sizes on rank", "with other operands than"};
      if (std::ranges::none_of(
              kUneven, [&](std::string_view text) { return error.message().find(text) != std::string_view::npos; }))
        return error.what();
      if (coverage)
        ++coverage->uneven;
      outputs = graph::interpret(uncut->lookupSymbol<mlir::func::FuncOp>("main"), inputs).outputs;
    }
    return "";
  };
}

std::string GpuCoverage::str() const {
  std::string text = std::to_string(kernels) + " kernels of " + std::to_string(programs) + " programs ran as a GPU runs them, " +
                     std::to_string(onHost) + " on the host";
  const char *separator = ": ";
  for (const auto &[op, count] : hostOps) {
    text += separator + std::to_string(count) + " " + op;
    separator = ", ";
  }
  return text;
}

Check runsOnGpu(GpuCoverage *coverage, bool onCard) {
  return runs([coverage, onCard](mlir::ModuleOp module, auto in, auto out, const dim::Values &sizes) {
    const runtime::MachineModel model = runtime::machineOfArchitecture("sm_90");
    placeOn(module, {runtime::DeviceKind::Gpu, 0});
    codegen::CompileOptions options = onMachine(model);
    options.gpus = {"sm_90"};
    options.emulateGpu = !onCard;
    auto executable = executableOf(module, options, [&](const runtime::Schedule &s) {
      if (!coverage)
        return;
      ++coverage->programs;
      for (const runtime::KernelDesc &kernel : s.kernels)
        if (kernel.provider == "cuda") {
          ++coverage->kernels;
        } else {
          ++coverage->onHost;
          ++coverage->hostOps[kernel.symbol.substr(0, kernel.symbol.find_last_not_of("0123456789_") + 1)];
        }
    });
    std::shared_ptr<runtime::Machine> machine;
    if (onCard)
      machine = runtime::openMachine("cuda");
    else
      machine = runtime::SimulatedMachine::create(
          model, {.interleaving = 1, .checkRaces = true, .poison = true, .isolate = true});
    runtime::Executor executor(executable, machine);
    executor.bindStates({});
    for (int call = 0; call < (onCard ? 3 : 1); ++call) // command by command, and then as graphs
      executor.run(in, out, sizes);
  });
}

} // namespace tressel::test
