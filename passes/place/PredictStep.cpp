#include "passes/place/PredictStep.h"

#include "mlir/Pass/PassManager.h"
#include "passes/schedule/ListSchedule.h"

#include <limits>

using namespace mlir;

namespace tressel::passes {

double predictedStep(ModuleOp module, const runtime::MachineModel &machine, const Providers *rows) {
  OwningOpRef<ModuleOp> copy = module.clone();
  // An error only means that this placement is impossible, so it is not shown.
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) { return success(); });
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  pm.addPass(createInsertTransfers(&machine));
  pm.addPass(createStageCopies(&machine));
  if (rows) {
    constexpr int64_t kTrials = 12;
    pm.addPass(createSplitProducers(*rows, &machine, nullptr, kTrials));
  }
  pm.addPass(createFitMemory(&machine));
  FailureOr<func::FuncOp> main = failure();
  if (succeeded(pm.run(*copy)))
    main = findMain(*copy);
  if (failed(main) || !*main)
    return std::numeric_limits<double>::infinity();
  MachineCosts costs(machine);
  return lengthOf(planStep(*main, IssueOrder(*main, /*leastMemory=*/false), costs, Effort::Quick));
}

} // namespace tressel::passes
