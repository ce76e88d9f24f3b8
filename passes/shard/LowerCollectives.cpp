#include "passes/Passes.h"
#include "passes/Util.h"
#include "passes/place/MachineCosts.h"
#include "passes/shard/Parts.h"

#include "ir/graph/Graph.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/MachineModel.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_LOWERCOLLECTIVES
#include "passes/Passes.h.inc"

namespace {
/// Two ways to combine m bytes of n ranks within a process, both in the ranks' order, so that all have the same bits:
///
///   at once         each rank reads the others' m bytes and combines all: (n - 1) m to each, one latency
///   in two steps    each rank combines an n-th, and reads the others' results: 2 (n - 1) / n m to each, two latencies
class LowerCollectives : public impl::LowerCollectivesBase<LowerCollectives> {
public:
  LowerCollectives(const runtime::MachineModel *machine, std::vector<runtime::DeviceRef> devices, Decisions *decisions)
      : machine(machine), devices(std::move(devices)), decisions(decisions) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main)
      return;
    FailureOr<graph::Mesh> mesh = graph::meshOf(*main);
    if (failed(mesh))
      return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(main->getBody().front()))
      if (auto reduce = dyn_cast<graph::AllReduceOp>(op))
        if (failed(lower(reduce, *mesh)))
          return signalPassFailure();
  }

private:
  LogicalResult lower(graph::AllReduceOp reduce, const graph::Mesh &mesh) {
    FailureOr<SmallVector<unsigned>> axes = graph::axesOf(reduce, reduce.getOver(), mesh);
    const std::optional<op::Combine> how = parseCombine(reduce.getBy());
    if (failed(axes))
      return failure();
    if (!how)
      return reduce.emitOpError("combines by \"")
             << reduce.getBy() << "\", which is none of sum, prod, max, min, any, all";
    OpBuilder b(reduce);
    PartBuilder parts(b, reduce.getLoc(), mesh);
    const Value value = reduce.getValue();
    const TensorType type = graph::fromMlir(value.getType());
    const int64_t ranks = mesh.numAlong(*axes), bytes = bytesOf(value.getType());
    const Size count = dim::numElements(type.shape);
    const auto part = dim::divideExactly(count, ranks);
    const std::optional<Times> times = timesOf(bytes, ranks);
    // A part lies where a buffer may begin.
    constexpr int64_t kAlignment = 64;
    const bool fits = part && part->isNumber() && part->number() > 0 &&
                      part->number() * static_cast<int64_t>(sizeOf(type.dtype)) % kAlignment == 0;
    const bool inSteps = fits && ranks > 2 && times && times->inSteps < times->atOnce;
    Value combined;
    if (!inSteps) {
      combined = parts.combine(parts.collect(value, *axes, true), *how, true);
    } else {
      const Value flat = parts.make("reshape", value, {op::Sizes{count}}, true);
      SmallVector<Value> blocks;
      for (int64_t i = 0; i < ranks; ++i)
        blocks.push_back(parts.slice(flat, 0, *part * i, *part, true));
      const Value own = parts.combine(parts.exchange(blocks, *axes), *how, true);
      combined = parts.make("reshape", parts.concat(parts.collect(own, *axes, true), 0, true),
                            {op::Sizes(type.shape.begin(), type.shape.end())}, true);
    }
    if (decisions) {
      const graph::FileLine line = graph::fileLineOf(reduce.getLoc());
      std::string text = std::string(inSteps ? "in two steps" : "at once");
      if (times)
        text += "; predicted: at once " + runtime::spellSeconds(times->atOnce) + ", in two steps " +
                runtime::spellSeconds(times->inSteps);
      decisions->push_back(
          {"lower-collectives",
           {"all_reduce of " + std::to_string(bytes) + " bytes", line.file, static_cast<uint32_t>(line.line)},
           text});
    }
    reduce.getResult().replaceAllUsesWith(combined);
    reduce.erase();
    ++numLowered;
    return success();
  }

  struct Times {
    double atOnce, inSteps;
  };
  /// Of the exchange alone; all links to a rank are as that between the first two.
  std::optional<Times> timesOf(int64_t bytes, int64_t ranks) const {
    const std::vector<runtime::DeviceRef> all = acceleratorsOf(machine, devices);
    if (!machine || all.size() < 2)
      return std::nullopt;
    const MachineCosts costs(*machine);
    const auto from = costs.indexOf(all[0]), to = costs.indexOf(all[1]);
    auto seconds = [&](int64_t each) -> std::optional<double> {
      if (const auto direct = costs.transfer(*from, *to, each, false))
        return direct->latency + static_cast<double>(ranks - 1) * (direct->seconds - direct->latency);
      const auto down = costs.transfer(*from, 0, each, false), up = costs.transfer(0, *to, each, false);
      if (!down || !up)
        return std::nullopt;
      return down->seconds + up->latency + static_cast<double>(ranks - 1) * (up->seconds - up->latency);
    };
    const auto whole = seconds(bytes), part = seconds(bytes / ranks);
    if (!from || !to || !whole || !part)
      return std::nullopt;
    return Times{*whole, 2 * *part};
  }

  const runtime::MachineModel *machine;
  std::vector<runtime::DeviceRef> devices;
  Decisions *decisions;
};
} // namespace

std::unique_ptr<Pass> createLowerCollectives(const runtime::MachineModel *machine,
                                             std::vector<runtime::DeviceRef> devices, Decisions *decisions) {
  return std::make_unique<LowerCollectives>(machine, std::move(devices), decisions);
}

} // namespace tressel::passes
