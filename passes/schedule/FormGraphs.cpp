#include "passes/Passes.h"

#include "ir/sched/Export.h"
#include "tressel/runtime/DeviceGraphs.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_FORMGRAPHS
#include "passes/Passes.h.inc"

namespace {
class FormGraphs : public impl::FormGraphsBase<FormGraphs> {
public:
  void runOnOperation() override {
    for (auto program : getOperation().getOps<sched::ProgramOp>()) {
      FailureOr<sched::Exported> exported = sched::exportWithOps(program);
      if (failed(exported))
        return signalPassFailure();
      mark(exported->schedule, exported->schedule.prepare, exported->prepare);
      mark(exported->schedule, exported->schedule.step, exported->step);
    }
  }

private:
  void mark(const runtime::Schedule &schedule, const runtime::CommandList &program, ArrayRef<Operation *> ops) {
    Builder b(&getContext());
    for (auto [number, graph] : llvm::enumerate(runtime::deviceGraphs(schedule, program))) {
      for (uint32_t node : graph.nodes)
        ops[node]->setAttr("sched.graph", b.getI64IntegerAttr(static_cast<int64_t>(number)));
      ++numGraphs;
      numNodes += graph.nodes.size();
    }
  }
};
} // namespace
} // namespace tressel::passes
