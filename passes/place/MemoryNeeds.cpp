#include "passes/place/MemoryNeeds.h"

#include "passes/place/MachineCosts.h"
#include "passes/Passes.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "tressel/runtime/Dim.h"

using namespace mlir;

namespace tressel::passes {

FailureOr<SmallVector<int64_t>> memoryNeeds(ModuleOp module, const runtime::MachineModel &machine) {
  OwningOpRef<ModuleOp> copy = cast<ModuleOp>(module->clone());
  PassManager pm(module.getContext());
  pm.enableVerifier(false); // the program itself is verified when it is scheduled
  pm.addPass(createBuildSchedule(BuildScheduleOptions(), &machine));
  PlanMemoryOptions options;
  options.measure = true;
  pm.addPass(createPlanMemory(options, &machine));
  if (failed(pm.run(*copy)))
    return failure();
  const MachineCosts costs(machine);
  SmallVector<int64_t> bytes(costs.devices().size(), 0);
  auto count = [&](sched::DeviceKind kind, uint64_t index, Size size) {
    const runtime::DeviceRef device{kind == sched::DeviceKind::Gpu ? runtime::DeviceKind::Gpu
                                                                   : runtime::DeviceKind::Cpu,
                                    static_cast<uint16_t>(index)};
    if (const auto d = costs.indexOf(device))
      bytes[*d] += dim::alignUp(dim::hint(size), 64).number();
  };
  for (auto program : copy->getOps<sched::ProgramOp>()) {
    for (auto arena : program.getBody().getOps<sched::ArenaOp>())
      count(arena.getDevice(), arena.getIndex(), arena.getSize().value_or(0));
    for (auto state : program.getBody().getOps<sched::StateOp>())
      count(state.getDevice(), state.getIndex(), sched::bytesOf(state.getTensorType()));
  }
  return bytes;
}

FailureOr<ArenaNeeds> arenaNeeds(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  pm.addPass(createBuildSchedule(BuildScheduleOptions(), nullptr));
  PlanMemoryOptions options;
  options.measure = true;
  pm.addPass(createPlanMemory(options, nullptr));
  if (failed(pm.run(module)))
    return failure();
  ArenaNeeds needs;
  for (auto program : module.getOps<sched::ProgramOp>()) {
    needs.bytes += dim::hint(program.getPeakBytes().value_or(Size(0)));
    needs.leastBytes += dim::hint(program.getPeakLowerBoundBytes().value_or(Size(0)));
  }
  return needs;
}

} // namespace tressel::passes
