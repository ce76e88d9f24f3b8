#include "codegen/Layouts.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Stage.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/shard/Stages.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Explain.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/Ranks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <set>

using namespace mlir;

namespace tressel::codegen {
namespace {

constexpr llvm::StringLiteral kData = "data";

/// The words of an annotation without the axes that a mesh lacks.
std::string wordsFor(StringRef words, const graph::Mesh &mesh) {
  SmallVector<StringRef> dims;
  words.split(dims, ',');
  return llvm::join(llvm::map_range(dims,
                                    [&](StringRef dim) {
                                      SmallVector<StringRef> axes, kept;
                                      dim.split(axes, '+');
                                      for (StringRef axis : axes)
                                        if (mesh.find(axis.trim()))
                                          kept.push_back(axis.trim());
                                      return kept.empty() ? std::string("-") : llvm::join(kept, "+");
                                    }),
                    ", ");
}

/// Axes that annotations name, besides kData.
std::vector<std::string> namedAxes(func::FuncOp main) {
  std::set<std::string> names;
  auto add = [&](Attribute words) {
    SmallVector<StringRef> parts;
    if (auto text = dyn_cast_if_present<StringAttr>(words))
      text.getValue().split(parts, ',');
    for (StringRef part : parts) {
      SmallVector<StringRef> axes;
      part.split(axes, '+');
      for (StringRef axis : axes)
        if (!axis.trim().empty() && axis.trim() != "-" && axis.trim() != kData)
          names.insert(axis.trim().str());
    }
  };
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    add(main.getArgAttr(i, graph::kShardingAttr));
  main.walk([&](Operation *op) {
    if (graph::isShardAnnotation(op))
      add(op->getAttr("axes"));
  });
  return {names.begin(), names.end()};
}

/// Arguments that are states on which only next values of states depend: momentum, and not weights.
llvm::SmallDenseSet<unsigned> statesOfUpdates(func::FuncOp main) {
  Block &block = main.getBody().front();
  llvm::DenseSet<Value> needed; // by what the caller gets
  for (OpOperand &result : block.getTerminator()->getOpOperands())
    if (!main.getResultAttr(result.getOperandNumber(), graph::kStateAttr))
      needed.insert(result.get());
  for (Operation &op : llvm::reverse(block))
    if (llvm::any_of(op.getResults(), [&](Value result) { return needed.contains(result); }))
      needed.insert(op.operand_begin(), op.operand_end());
  llvm::SmallDenseSet<unsigned> found;
  for (BlockArgument argument : block.getArguments())
    if (main.getArgAttr(argument.getArgNumber(), graph::kStateAttr) && !needed.contains(argument))
      found.insert(argument.getArgNumber());
  return found;
}

/// Cuts a state that says nothing itself along its first dimension that the ranks divide; what is small stays whole. As
/// parallel::shard_each does, so that what is compared is what one gets.
void cutState(func::FuncOp main, unsigned i, int64_t ranks) {
  constexpr int64_t kSmall = 64 * 1024;
  const TensorType type = graph::fromMlir(main.getArgumentTypes()[i]);
  const auto given = main.getArgAttrOfType<StringAttr>(i, graph::kShardingAttr);
  if ((given && given.getValue().find_if([](char c) { return llvm::isAlnum(c); }) != StringRef::npos) || type.bytes() < kSmall)
    return;
  std::vector<std::string> words(static_cast<size_t>(type.rank()), "-");
  for (int d = 0; d < type.rank(); ++d)
    if (type.shape.extent(d) % ranks == 0) {
      words[static_cast<size_t>(d)] = kData.str();
      main.setArgAttr(i, graph::kShardingAttr, StringAttr::get(main.getContext(), llvm::join(words, ", ")));
      return;
    }
}

/// Stages that ops are annotated with; 0: none is.
int64_t numStages(func::FuncOp main) {
  int64_t stages = 0;
  for (Operation &op : main.getBody().front())
    stages = std::max(stages, graph::stageOf(&op).value_or(-1) + 1);
  return stages;
}

/// The dimension of an input that is cut over kData, by its words or as all are; nothing where it has none.
std::optional<int> batchOf(func::FuncOp main, unsigned i, std::optional<int> dimension) {
  if (main.getArgAttr(i, graph::kStateAttr))
    return std::nullopt;
  if (auto words = main.getArgAttrOfType<StringAttr>(i, graph::kShardingAttr)) {
    SmallVector<StringRef> dims;
    words.getValue().split(dims, ',');
    const auto *found = llvm::find_if(dims, [](StringRef dim) { return dim.trim() == kData; });
    return found == dims.end() ? std::nullopt : std::optional(static_cast<int>(found - dims.begin()));
  }
  return dimension && *dimension < cast<RankedTensorType>(main.getArgumentTypes()[i]).getRank() ? dimension
                                                                                                : std::nullopt;
}

/// How many micro-batches keep `inRow` accelerators busy for most of the time, of those that the parts of all inputs
/// can be cut into; 0: none.
int64_t microBatchesFor(func::FuncOp main, int64_t data, int64_t inRow, std::optional<int> dimension) {
  for (int64_t count : {4 * inRow, 2 * inRow, inRow})
    if (llvm::all_of(llvm::seq(0u, main.getNumArguments()), [&](unsigned i) {
          const auto batch = batchOf(main, i, dimension);
          return !batch || dim::divideExactly(graph::fromMlir(main.getArgumentTypes()[i]).shape[*batch], data * count);
        }))
      return count;
  return 0;
}

/// Makes @main a program of micro-batches through so many accelerators in a row, each `data` of them, for one process.
/// States lie on the accelerators of the stage that reads them.
LogicalResult makePipeline(func::FuncOp main, int64_t data, int64_t microBatches, int64_t inRow,
                           std::optional<int> dimension) {
  Builder b(main.getContext());
  main->setAttr(graph::kMeshAttr,
                b.getStringAttr((kData + "=" + Twine(data) + ", micro=" + Twine(microBatches)).str()));
  main->setAttr(graph::kPipelineAttr, graph::pipelineAttr(main.getContext(), "micro", inRow));
  llvm::DenseSet<Operation *> named;
  if (failed(passes::assignStages(main, named)))
    return failure();
  llvm::DenseMap<Attribute, int64_t> placeOf;
  for (auto [i, stage] : passes::stagesOfStates(main))
    placeOf[main.getArgAttr(i, graph::kStateAttr)] = stage % inRow;
  for (Operation &op : main.getBody().front()) // Shard finds out again
    if (!named.contains(&op))
      graph::takeStage(&op);
  auto put = [&](Attribute state, auto set) {
    const auto found = placeOf.find(state);
    if (found == placeOf.end())
      return set(graph::kHomeAttr, Attribute());
    if (data == 1)
      return set(graph::kHomeAttr,
                 b.getStringAttr(runtime::nameOf({runtime::DeviceKind::Gpu, static_cast<uint16_t>(found->second)})));
    set(graph::kHomeAttr, b.getStringAttr(graph::kRanks));
    set(graph::kStageAttr, b.getI64IntegerAttr(found->second));
  };
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (const Attribute state = main.getResultAttr(i, graph::kStateAttr))
      put(state, [&](StringRef name, Attribute value) {
        value ? main.setResultAttr(i, name, value) : (void)main.removeResultAttr(i, b.getStringAttr(name));
      });
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (const Attribute state = main.getArgAttr(i, graph::kStateAttr)) {
      main.removeArgAttr(i, graph::kShardingAttr);
      put(state, [&](StringRef name, Attribute value) {
        value ? main.setArgAttr(i, name, value) : (void)main.removeArgAttr(i, b.getStringAttr(name));
      });
    } else if (const auto batch = batchOf(main, i, dimension)) {
      std::vector<std::string> words(static_cast<size_t>(cast<RankedTensorType>(main.getArgumentTypes()[i]).getRank()),
                                     "-");
      words[static_cast<size_t>(*batch)] = (kData + "+micro").str();
      main.setArgAttr(i, graph::kShardingAttr, b.getStringAttr(llvm::join(words, ", ")));
    }
  return success();
}

/// The step of the rank whose program the module is, or of all accelerators of a pipeline.
void predict(ModuleOp module, Layout &layout, CompileOptions options) {
  options.scheduleOnly = true;
  options.decisions = nullptr, options.report = nullptr;
  try {
    const runtime::Schedule schedule = runtime::scheduleOfRank(compile(module, options).schedule, 0);
    dim::Values sizes; // typical ones where they are open
    for (Size symbol : schedule.dims)
      sizes.bind(symbol, dim::hint(symbol));
    const runtime::Schedule exact = schedule.dims.empty() ? schedule : runtime::instantiate(schedule, sizes);
    const runtime::Explanation e = runtime::explain(exact, *options.machine, {});
    layout.stepSeconds = runtime::seconds(e.timeline.end);
    layout.computeSeconds = runtime::seconds(e.computeTime);
    layout.transferSeconds = runtime::seconds(e.transferTime);
    layout.bound = e.limits.empty() ? "" : e.limits.front().name;
    std::map<uint16_t, int64_t> bytes; // by accelerator; of a pipeline there are several
    auto add = [&](runtime::DeviceRef device, int64_t more) {
      if (device.kind == runtime::DeviceKind::Gpu)
        layout.rankBytes = std::max(layout.rankBytes, bytes[device.index] += more);
    };
    for (const runtime::ArenaDesc &arena : exact.arenas)
      add(arena.device, arena.bytes.number());
    for (const runtime::StateDesc &state : exact.states)
      add(state.home.device, state.type.bytes());
  } catch (const Error &error) {
    layout.error = error.message();
  }
}

std::string textOf(const LayoutComparison &all, int64_t ranks, const runtime::MachineModel &machine) {
  std::string text =
      llvm::formatv("{0} accelerators like gpu0 of {1}, each with a process of its own{2}\n", ranks, machine.name,
                    llvm::any_of(all.layouts, [](const Layout &layout) { return layout.inRow > 0; })
                        ? "; a pipeline has one for all"
                        : "")
          .str();
  size_t width = 8;
  for (const Layout &layout : all.layouts)
    width = std::max(width, layout.name.size());
  auto line = [&](StringRef name, const Twine &rest) {
    text += "  " + name.str() + std::string(width + 2 - name.size(), ' ') + rest.str() + "\n";
  };
  line("layout", "       step  speed-up  computes  exchanges  memory of a rank");
  const double alone = all.layouts.front().stepSeconds;
  for (const Layout &layout : all.layouts) {
    if (!layout.error.empty()) {
      line(layout.name, "cannot be: " + layout.error);
      continue;
    }
    const std::string speedUp = alone > 0 ? llvm::formatv("{0:f2}", alone / layout.stepSeconds).str() : "-";
    line(layout.name,
         llvm::formatv("{0,11}  {1,8}  {2,8}  {3,9}  {4,16}", runtime::spellSeconds(layout.stepSeconds), speedUp,
                       runtime::spellSeconds(layout.computeSeconds), runtime::spellSeconds(layout.transferSeconds),
                       runtime::spellBytes(layout.rankBytes))
             .str());
  }
  if (!all.best)
    return text + "none of these can be\n";
  const Layout &best = all.layouts[*all.best];
  text += "recommended: " + best.name + ", the fastest that fits";
  if (!best.bound.empty())
    text += "; what bounds it most: " + best.bound;
  const auto smallest = llvm::min_element(all.layouts, [](const Layout &a, const Layout &b) {
    return std::pair(!a.error.empty(), a.rankBytes) < std::pair(!b.error.empty(), b.rankBytes);
  });
  if (smallest->rankBytes < best.rankBytes)
    text += llvm::formatv("\nleast memory: {0}, {1} of a rank, {2:f2} times the step", smallest->name,
                          runtime::spellBytes(smallest->rankBytes), smallest->stepSeconds / best.stepSeconds)
                .str();
  return text + "\n";
}

} // namespace

void makeRankProgram(ModuleOp module, const std::string &meshText, std::optional<int> dimension) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main)
    return;
  Builder b(module.getContext());
  main->setAttr(graph::kMeshAttr, b.getStringAttr(meshText));
  main->setAttr(graph::kRankProgramAttr, b.getUnitAttr());
  const auto ranks = b.getStringAttr(graph::kRanks);
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (main.getResultAttr(i, graph::kStateAttr))
      main.setResultAttr(i, graph::kHomeAttr, ranks);
  const std::string axis = StringRef(meshText).split('=').first.trim().str();
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    const bool isState = main.getArgAttr(i, graph::kStateAttr) != nullptr;
    if (isState)
      main.setArgAttr(i, graph::kHomeAttr, ranks);
    const auto rank = cast<RankedTensorType>(main.getArgumentTypes()[i]).getRank();
    if (isState || main.getArgAttr(i, graph::kShardingAttr) || !dimension || *dimension >= rank)
      continue;
    std::vector<std::string> words(static_cast<size_t>(rank), "-");
    words[static_cast<size_t>(*dimension)] = axis;
    main.setArgAttr(i, graph::kShardingAttr, b.getStringAttr(llvm::join(words, ", ")));
  }
}

LayoutComparison compareLayouts(ModuleOp module, int64_t ranks, std::optional<int> dimension, const CompileOptions &options) {
  LayoutComparison all;
  enum class States : uint8_t { Whole, UpdatesInParts, InParts };
  using Axes = std::vector<std::pair<std::string, int64_t>>;
  auto add = [&](const std::string &name, const Axes &axes, States states) {
    const std::string meshText = llvm::join(llvm::map_range(axes, [](const auto &axis) { return axis.first + "=" + std::to_string(axis.second); }), ", ");
    OwningOpRef<ModuleOp> copy = cast<ModuleOp>(module->clone());
    auto main = copy->lookupSymbol<func::FuncOp>("main");
    main->setAttr(graph::kMeshAttr, StringAttr::get(main.getContext(), meshText));
    Layout layout{.name = name, .mesh = axes};
    const FailureOr<graph::Mesh> mesh = [&] {
      ScopedDiagnosticHandler handler(main.getContext(), [&](Diagnostic &diagnostic) { layout.error = "it " + diagnostic.str(); });
      return graph::meshOf(main);
    }();
    if (layout.error.empty()) {
      for (unsigned i = 0; i < main.getNumArguments(); ++i)
        if (auto words = main.getArgAttrOfType<StringAttr>(i, graph::kShardingAttr); words && !words.getValue().trim().empty())
          main.setArgAttr(i, graph::kShardingAttr, StringAttr::get(main.getContext(), wordsFor(words.getValue(), *mesh)));
      main.walk([&](Operation *op) {
        if (graph::isShardAnnotation(op))
          op->setAttr("axes", StringAttr::get(main.getContext(), wordsFor(op->getAttrOfType<StringAttr>("axes").getValue(), *mesh)));
      });
      const llvm::SmallDenseSet<unsigned> updates = statesOfUpdates(main);
      for (unsigned i = 0; i < main.getNumArguments() && states != States::Whole; ++i)
        if (main.getArgAttr(i, graph::kStateAttr) && (states == States::InParts || updates.contains(i)))
          cutState(main, i, axes.front().second);
      makeRankProgram(*copy, meshText, dimension);
      predict(*copy, layout, options);
    }
    all.layouts.push_back(std::move(layout));
  };
  auto main = module.lookupSymbol<func::FuncOp>("main");
  auto addPipeline = [&](int64_t inRow) {
    const int64_t data = ranks / inRow, microBatches = microBatchesFor(main, data, inRow, dimension);
    Layout layout{.name = (data > 1 ? "data = " + std::to_string(data) + ", " : std::string()) + "pipeline of " +
                          std::to_string(inRow) + ", micro-batches = " + std::to_string(microBatches),
                  .mesh = {{kData.str(), data}},
                  .inRow = inRow,
                  .microBatches = microBatches};
    if (microBatches == 0) {
      layout.name = "pipeline of " + std::to_string(inRow);
      layout.error = "the batch has no equal parts for " + std::to_string(data * inRow) + " micro-batches";
    } else {
      OwningOpRef<ModuleOp> copy = cast<ModuleOp>(module->clone());
      ScopedDiagnosticHandler handler(module.getContext(),
                                      [&](Diagnostic &diagnostic) { layout.error = "it " + diagnostic.str(); });
      if (succeeded(makePipeline(copy->lookupSymbol<func::FuncOp>("main"), data, microBatches, inRow, dimension)))
        predict(*copy, layout, options);
    }
    all.layouts.push_back(std::move(layout));
  };
  add("one accelerator", {{kData.str(), 1}}, States::Whole);
  if (ranks > 1) {
    const std::string n = std::to_string(ranks);
    add("data = " + n, {{kData.str(), ranks}}, States::Whole);
    if (!statesOfUpdates(main).empty())
      add("data = " + n + ", optimizer in parts", {{kData.str(), ranks}}, States::UpdatesInParts);
    const bool hasStates = llvm::any_of(llvm::seq(0u, main.getNumArguments()), [&](unsigned i) { return main.getArgAttr(i, graph::kStateAttr) != nullptr; });
    if (hasStates)
      add("data = " + n + ", weights in parts", {{kData.str(), ranks}}, States::InParts);
    for (const std::string &axis : namedAxes(main))
      for (int64_t size = 2; size <= ranks; size *= 2)
        if (ranks % size == 0) {
          const std::string name = "data = " + std::to_string(ranks / size) + ", " + axis + " = " + std::to_string(size);
          add(name, {{kData.str(), ranks / size}, {axis, size}}, States::Whole);
        }
    for (int64_t inRow = 2; inRow <= std::min(ranks, numStages(main)); ++inRow)
      if (ranks % inRow == 0)
        addPipeline(inRow);
  }
  for (size_t i = 0; i < all.layouts.size(); ++i)
    if (all.layouts[i].error.empty() && (!all.best || all.layouts[i].stepSeconds < all.layouts[*all.best].stepSeconds))
      all.best = i;
  all.text = textOf(all, ranks, *options.machine);
  return all;
}

} // namespace tressel::codegen
