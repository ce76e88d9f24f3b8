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
  bool optional; ///< may be disabled: later passes and the runtime do without
  std::function<std::unique_ptr<Pass>(const PipelineOptions &)> create;
};

Providers allProviders(const PipelineOptions &options) {
  Providers all = options.providers;
  for (const KernelProvider *provider : options.hostProviders)
    if (!llvm::is_contained(all, provider))
      all.push_back(provider);
  return all;
}

/// The order, and why.
const std::vector<Stage> &stages() {
  static const std::vector<Stage> all = {
      // First of all: from here on where an op is computed is an attribute of it, and nothing else.
      {"resolve-devices", Contract::Exact, false,
       [](auto &options) { return createResolveDevices(options.machine, options.devices); }},
      // Before the rest, so that everything after it works on less.
      {"simplify", Contract::Exact, true, [](auto &) { return createSimplify(); }},
      // Before clustering: a row kernel found among primitives is the same whether a model called softmax or wrote it
      // out.
      // After simplify, which can still see through whole composites.
      {"decompose-composites", Contract::Reassociates, false,
       [](auto &options) { return createDecomposeComposites(options.providers); }},
      // Decompositions are written for reading: they leave equal ops and constants behind.
      {"simplify", Contract::Exact, true, [](auto &) { return createSimplify(); }},
      // On primitives and what they fold to; before layouts and kernels, which are for the types.
      {"autocast", Contract::Precision, true,
       [](auto &options) {
         return createAutocast(
             AutocastOptions{options.autocast ? std::string(nameOf(*options.autocast)) : std::string()});
       }},
      // What is computed in half the width may have no kernel as a whole any more.
      {"decompose-composites", Contract::Reassociates, false,
       [](auto &options) { return createDecomposeComposites(options.providers); }},
      // On primitives, whose rules are known, in the types that they are computed in; before all that looks at sizes,
      // which are those of parts
      // from here on.
      {"shard", Contract::Reassociates, false,
       [](auto &options) { return createShard(options.machine, options.devices, options.decisions); }},
      // Before clusters, which take sums of parts into what is computed with them.
      {"lower-collectives", Contract::Exact, false,
       [](auto &options) {
         LowerCollectivesOptions o;
         o.bucketBytes = options.bucketBytes;
         return createLowerCollectives(o, options.machine, options.devices, options.decisions);
       }},
      // Ranks that differ in their sizes get kernels of their own; all others share one compilation, and are expanded
      // once that is done.
      {"expand-ranks", Contract::Exact, false,
       [](auto &options) { return createExpandRanks(options.machine, options.devices, /*onlyUneven=*/true); }},
      // On primitives, most of which do not care in which order their dimensions stand; before whatever looks at single
      // ops, since layouts are a matter of the whole network.
      {"assign-layouts", Contract::Reassociates, true,
       [](auto &options) { return createAssignLayouts(options.providers); }},
      // Transposes that were there already meet those at the borders of the new layouts.
      {"simplify", Contract::Exact, true, [](auto &) { return createSimplify(); }},
      // Once ops are primitives; clustering then takes what computes the operand into the first step.
      {"split-reductions", Contract::Reassociates, true,
       [](auto &options) {
         SplitReductionsOptions o;
         if (llvm::any_of(options.providers, [](auto *p) { return p->isForGpu(); })) // a block per result: as many as keep the largest cards busy
           o.minUnits = 256, o.minElements = 65536, o.splitDimensions = true;
         return createSplitReductions(o);
       }},
      // On the final graph, of which clustering then makes kernels: what is made again joins those that read it.
      {"recompute-cheap", Contract::Reassociates, true,
       [](auto &options) {
         RecomputeCheapOptions o;
         if (options.machine &&
             options.machine->devices.size() > 1) // kernels that read more at once may not fit where others would
           o.minBytes = std::numeric_limits<int64_t>::max();
         return createRecomputeCheap(o);
       }},
      // On the final graph. Providers say here what scratch memory kernels need and which operands they want packed.
      {"form-clusters", Contract::Exact, false,
       [](auto &options) {
         return createFormClusters(options.providers, options.decisions, options.machine, options.hostProviders);
       }},
      // After clustering, as it makes symbols of clusters; before scheduling, which counts launches and not ops.
      {"outline-kernels", Contract::Exact, false, [](auto &) { return createOutlineKernels(); }},
      // Launches of one rank become those of all.
      {"expand-ranks", Contract::Exact, false,
       [](auto &options) { return createExpandRanks(options.machine, options.devices); }},
      // Clusters, not single ops, which would be mispriced; outlined, so that equal ones are priced once.
      {"place-clusters", Contract::Exact, true,
       [](auto &options) {
         return createPlaceClusters(allProviders(options), options.machine, options.decisions, options.devices);
       }},
      // Once it is known who reads what where.
      {"insert-transfers", Contract::Exact, false,
       [](auto &options) { return createInsertTransfers(options.machine); }},
      // Once transfers can be seen; before rows, which are staged one by one.
      {"stage-copies", Contract::Exact, true,
       [](auto &options) { return createStageCopies(options.machine, options.decisions); }},
      // Once transfers can be seen; before memory and the order, which it asks for what waits for them.
      {"split-producers", Contract::Reassociates, true,
       [](auto &options) { return createSplitProducers(allProviders(options), options.machine, options.decisions); }},
      // Once every copy can be seen. Spills and prefetches are transfers too, and whether all fits
      // depends on the order.
      {"fit-memory", Contract::Exact, true,
       [](auto &options) { return createFitMemory(options.machine, options.decisions); }},
      // The same for the host, whose memory has no bound but the caller's.
      {"fit-budget", Contract::Exact, false,
       [](auto &options) { return createFitBudget(options.memoryBudget, options.machine, options.decisions); }},
      // Once it is known where every launch runs, those that were cut or are repeated too.
      {"settle-kernels", Contract::Reassociates, false,
       [](auto &options) { return createSettleKernels(options.hostProviders); }},
      // The order of commands is settled here and nowhere else.
      {"build-schedule", Contract::Exact, false,
       [](auto &options) {
         BuildScheduleOptions o;
         o.streams = options.streams;
         return createBuildSchedule(o, options.machine, options.decisions);
       }},
      // Lifetimes need the order.
      {"plan-memory", Contract::Exact, false,
       [](auto &options) { return createPlanMemory(PlanMemoryOptions(), options.machine); }},
      // Reuse of bytes makes write-after-read edges, so waits come after memory.
      {"insert-waits", Contract::Exact, false, [](auto &) { return createInsertWaits(); }},
      // Waits are their edges.
      {"form-graphs", Contract::Exact, true, [](auto &) { return createFormGraphs(); }},
      // The proof, of what is really emitted.
      {"verify-schedule", Contract::Exact, true, [](auto &) { return createVerifySchedule(); }},
  };
  return all;
}

/// Every symbolic size is one of a dimension of an input, so that a call's inputs give it.
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
/// What later passes take for granted of a program. The user's mistakes end here, with their line.
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
  for (const Stage &stage : llvm::reverse(stages())) // of a pass that runs twice the last one does all that it can
    if (known.insert(stage.name).second)
      registerPass([&stage, options] { return stage.create(options()); });
  registerPass([] { return createDifferentiate(); });
}

} // namespace tressel::passes
