#include "passes/Passes.h"

#include "ir/sched/Export.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "passes/Passes.h.inc"

namespace {
class VerifySchedule : public impl::VerifyScheduleBase<VerifySchedule> {
public:
  void runOnOperation() override {
    for (auto program : getOperation().getOps<sched::ProgramOp>())
      if (failed(sched::verifySchedule(program)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace tressel::passes
