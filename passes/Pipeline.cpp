#include "passes/Pipeline.h"

#include "ir/graph/Graph.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Util.h"
#include "passes/verify/VerifyEach.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/MachineModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <limits>

using namespace mlir;

namespace tressel::passes {

namespace {
struct Stage {
  const char *name;
  Contract contract;
  bool optional; ///< may be disabled: the program is still valid without it
  std::function<std::unique_ptr<Pass>(const PipelineOptions &)> create;
};

Providers allProviders(const PipelineOptions &options) {
  Providers all = options.providers;
  for (const KernelProvider *provider : options.hostProviders)
    if (!llvm::is_contained(all, provider))
      all.push_back(provider);
  return all;
}

/// The stages in order, each with the reason for its position.
const std::vector<Stage> &stages() {
  static const std::vector<Stage> all = {
      // First: from here on, only an op's attribute tells where it is computed.
      {"resolve-devices", Contract::Exact, false,
       [](auto &options) { return createResolveDevices(options.machine, options.devices); }},
      // Before the rest, so that all later passes have less to do.
      {"simplify", Contract::Exact, true, [](auto &) { return createSimplify(); }},
      // Before clustering: a row kernel found among primitives is the same whether a model called softmax or wrote it
      // out. After simplify, which recognizes whole composites.
      {"decompose-composites", Contract::Reassociates, false,
       [](auto &options) { return createDecomposeComposites(options.providers); }},
      // Decompositions are written for readability and leave equal ops and constants behind.
      {"simplify", Contract::Exact, true, [](auto &) { return createSimplify(); }},
      // After decompositions and folding, so on primitives; before layouts and kernels, which are chosen by types.
      {"autocast", Contract::Precision, true,
       [](auto &options) {
         return createAutocast(
             AutocastOptions{options.autocast ? std::string(nameOf(*options.autocast)) : std::string()});
       }},
      // A composite that a kernel took in f32 may have no kernel in the narrow type.
      {"decompose-composites", Contract::Reassociates, false,
       [](auto &options) { return createDecomposeComposites(options.providers); }},
      // On primitives, which have sharding rules, in their final types; before all passes that look at sizes, which are
      // those of parts from here on.
      {"shard", Contract::Reassociates, false,
       [](auto &options) { return createShard(options.machine, options.devices, options.decisions); }},
      // Before clustering, which fuses sums of parts with their readers.
      {"lower-collectives", Contract::Exact, false,
       [](auto &options) {
         LowerCollectivesOptions o;
         o.bucketBytes = options.bucketBytes;
         return createLowerCollectives(o, options.machine, options.devices, options.decisions);
       }},
      // Ranks that differ in sizes get kernels of their own; all others share one compilation and are expanded after
      // it.
      {"expand-ranks", Contract::Exact, false,
       [](auto &options) { return createExpandRanks(options.machine, options.devices, /*onlyUneven=*/true); }},
      // On primitives, most of which work with any order of dimensions; before all passes that look at single ops,
      // since layouts are chosen for the whole network.
      {"assign-layouts", Contract::Reassociates, true,
       [](auto &options) { return createAssignLayouts(options.providers); }},
      // Cancels transposes of the program with those at the borders of the new layouts.
      {"simplify", Contract::Exact, true, [](auto &) { return createSimplify(); }},
      // On primitives; before clustering, which fuses the first step with the ops that compute its operand.
      {"split-reductions", Contract::Reassociates, true,
       [](auto &options) {
         SplitReductionsOptions o;
         // a block per result, so enough results to occupy the largest cards
         if (llvm::any_of(options.providers, [](auto *p) { return p->isForGpu(); }))
           o.minUnits = 256, o.minElements = 65536, o.splitDimensions = true;
         return createSplitReductions(o);
       }},
      // On the final graph; before clustering, so that recomputed ops join the kernels that read them.
      {"recompute-cheap", Contract::Reassociates, true,
       [](auto &options) {
         RecomputeCheapOptions o;
         if (options.machine &&
             // a kernel that recomputes reads more operands at once, which may not fit into an accelerator
             options.machine->devices.size() > 1)
           o.minBytes = std::numeric_limits<int64_t>::max();
         return createRecomputeCheap(o);
       }},
      // On the final graph. Bids tell the scratch memory of kernels, and the operands to pack.
      {"form-clusters", Contract::Exact, false,
       [](auto &options) {
         return createFormClusters(options.providers, options.decisions, options.machine, options.hostProviders);
       }},
      // After clustering, whose clusters become symbols; before scheduling, which works on launches, not ops.
      {"outline-kernels", Contract::Exact, false, [](auto &) { return createOutlineKernels(); }},
      // The launches of one rank become those of all ranks.
      {"expand-ranks", Contract::Exact, false,
       [](auto &options) { return createExpandRanks(options.machine, options.devices); }},
      // On clusters, as single ops would be mispriced; after outlining, so that equal ones are priced once.
      {"place-clusters", Contract::Exact, true,
       [](auto &options) {
         return createPlaceClusters(allProviders(options), options.machine, options.decisions, options.devices);
       }},
      // Once it is known which device reads which value.
      {"insert-transfers", Contract::Exact, false,
       [](auto &options) { return createInsertTransfers(options.machine); }},
      // Once all transfers exist; before row blocks, whose copies are staged one by one.
      {"stage-copies", Contract::Exact, true,
       [](auto &options) { return createStageCopies(options.machine, options.decisions); }},
      // Once all transfers exist; before fit-memory and the final order, which it predicts to find launches that
      // transfers wait for.
      {"split-producers", Contract::Reassociates, true,
       [](auto &options) { return createSplitProducers(allProviders(options), options.machine, options.decisions); }},
      // Once every copy exists. Spills and prefetches are transfers too, and whether all values fit depends on the
      // order.
      {"fit-memory", Contract::Exact, true,
       [](auto &options) { return createFitMemory(options.machine, options.decisions); }},
      // The same for the host, whose only bound is the caller's budget.
      {"fit-budget", Contract::Exact, false,
       [](auto &options) { return createFitBudget(options.memoryBudget, options.machine, options.decisions); }},
      // Once every launch has its device, row blocks and rematerialized launches included.
      {"settle-kernels", Contract::Reassociates, false,
       [](auto &options) { return createSettleKernels(options.hostProviders); }},
      // Here, and nowhere else, the order of commands is settled.
      {"build-schedule", Contract::Exact, false,
       [](auto &options) {
         BuildScheduleOptions o;
         o.streams = options.streams;
         return createBuildSchedule(o, options.machine, options.decisions);
       }},
      // Lifetimes follow from the order.
      {"plan-memory", Contract::Exact, false,
       [](auto &options) { return createPlanMemory(PlanMemoryOptions(), options.machine); }},
      // Reuse of bytes creates write-after-read dependences, so memory is planned before waits.
      {"insert-waits", Contract::Exact, false, [](auto &) { return createInsertWaits(); }},
      // Waits are the edges of graphs.
      {"form-graphs", Contract::Exact, true, [](auto &) { return createFormGraphs(); }},
      // Last: verifies exactly what is emitted.
      {"verify-schedule", Contract::Exact, true, [](auto &) { return createVerifySchedule(); }},
  };
  return all;
}

/// Checks that every symbol is the size of an input's dimension, so that a call's inputs give its value.
LogicalResult checkSymbols(func::FuncOp main) {
  std::vector<Size> symbols = graph::symbolsOf(main), known;
  if (symbols.empty())
    return success();
  if (failed(graph::verifySymbols(main)))
    return failure();
  for (BlockArgument arg : main.getArguments()) {
    const bool isState = main.getArgAttr(arg.getArgNumber(), graph::kStateAttr) != nullptr;
    for (Size size : graph::fromMlir(arg.getType()).shape) {
      if (isState && size.isSymbolic())
        return mlir::emitError(arg.getLoc()) << "argument " << arg.getArgNumber() << " of @main is a state of "
                                             << graph::fromMlir(arg.getType()).str() << ", but states have fixed sizes";
      if (dim::isSymbol(size))
        known.push_back(size);
    }
  }
  for (Size symbol : symbols)
    if (!llvm::is_contained(known, symbol))
      return main.emitError("the size '") << dim::spell(symbol)
                                          << "' is used, but no input has a dimension of that size alone";
  return success();
}
/// Checks what later passes assume of a program. Mistakes of the user are reported here, with their line.
LogicalResult checkProgram(ModuleOp module) {
  FailureOr<func::FuncOp> found = findMain(module);
  if (failed(found))
    return failure();
  func::FuncOp main = *found;
  if (!main) {
    if (!module.getOps<sched::ProgramOp>().empty())
      return success(); // scheduled already
    return module.emitError("there is nothing to compile: the module needs a func.func @main");
  }
  auto check = [](Type type, Location loc, const Twine &what) -> LogicalResult {
    if (!graph::isSupported(type))
      return mlir::emitError(loc) << what << " has the type " << type
                                  << ", which is no tensor of a type that Tressel has";
    if (!dim::isKnown(graph::fromMlir(type).shape))
      return mlir::emitError(loc) << what << " has the type " << type
                                  << ", whose size is not known; give each dimension a size, or a name: #tressel.dims<\"n\", 4>";
    return success();
  };
  for (BlockArgument arg : main.getArguments())
    if (failed(check(arg.getType(), arg.getLoc(), "argument " + Twine(arg.getArgNumber()) + " of @main")))
      return failure();
  WalkResult known = main.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (failed(check(type, op->getLoc(), "the result of '" + op->getName().getStringRef() + "'")))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (known.wasInterrupted() || failed(checkSymbols(main)))
    return failure();
  llvm::DenseMap<Attribute, Type> states;
  for (BlockArgument arg : main.getArguments())
    if (Attribute state = main.getArgAttr(arg.getArgNumber(), graph::kStateAttr))
      states[state] = arg.getType();
  llvm::DenseSet<Attribute> written;
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (Attribute state = main.getResultAttr(i, graph::kStateAttr)) {
      if (!written.insert(state).second)
        return main.emitError("the state ") << state << " is given two next values";
      if (Type old = states.lookup(state); old && old != main.getResultTypes()[i])
        return main.emitError("the next value of the state ")
               << state << " has the type " << main.getResultTypes()[i] << ", but the state is " << old;
    }
  return success();
}
} // namespace

std::string problemWithNames(const PipelineOptions &options) {
  auto unknown = [](const std::string &name, const char *what) {
    return "there is no pass '" + name + "' to " + what + "; the passes are " +
           llvm::join(pipelinePassNames(), ", ");
  };
  for (const std::string &name : options.disabled) {
    auto stage = llvm::find_if(stages(), [&](const Stage &s) { return s.name == name; });
    if (stage == stages().end())
      return unknown(name, "disable");
    if (!stage->optional)
      return "the pass '" + name + "' cannot be disabled: what follows needs it";
  }
  if (!options.stopAfter.empty() && !llvm::is_contained(pipelinePassNames(), options.stopAfter))
    return unknown(options.stopAfter, "stop after");
  return "";
}

std::vector<std::string> pipelinePassNames() {
  std::vector<std::string> names;
  for (const Stage &stage : stages())
    if (!llvm::is_contained(names, stage.name))
      names.push_back(stage.name);
  return names;
}

LogicalResult runPipeline(ModuleOp module, const PipelineOptions &options) {
  if (std::string problem = problemWithNames(options); !problem.empty())
    return mlir::emitError(UnknownLoc::get(module.getContext()), problem);
  if (failed(checkProgram(module)))
    return failure();
  std::optional<DifferentialCheck> check;
  if (options.verifyEach)
    check.emplace(module, options);
  if (check && check->isTooLarge() && failed(verifyInPieces(module, options)))
    return failure();
  for (const Stage &stage : stages()) {
    if (llvm::is_contained(options.disabled, stage.name))
      continue;
    if (options.beforePass)
      options.beforePass(stage.name);
    auto start = std::chrono::steady_clock::now();
    PassManager pm(module.getContext());
    pm.addPass(stage.create(options));
    if (failed(pm.run(module))) // verifies the module after the pass
      return failure();
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (options.timings)
      options.timings->push_back({stage.name, took.count()});
    if (options.afterPass && failed(options.afterPass(module, stage.name)))
      return failure();
    if (check && failed(check->check(module, stage.name, stage.contract))) {
      if (options.blamed)
        *options.blamed = stage.name;
      return failure();
    }
    if (stage.name == options.stopAfter)
      break;
  }
  return success();
}

std::string formatTimings(ArrayRef<PassTime> timings) {
  double total = 0;
  for (const PassTime &time : timings)
    total += time.seconds;
  std::string text = "   seconds  share  pass\n";
  for (const PassTime &time : timings)
    text += llvm::formatv("{0,10:f6} {1,5:f1}%  {2}\n", time.seconds, total > 0 ? 100 * time.seconds / total : 0.0,
                          time.pass);
  return text + llvm::formatv("{0,10:f6} 100.0%  total\n", total).str();
}

void registerPasses(const std::function<PipelineOptions()> &options) {
  llvm::StringSet<> known;
  for (const Stage &stage : llvm::reverse(stages())) // the last occurrence of a pass does all that it can
    if (known.insert(stage.name).second)
      registerPass([&stage, options] { return stage.create(options()); });
  registerPass([] { return createDifferentiate(); });
}

} // namespace tressel::passes
