// Predicts the time of a step whose launches are placed, by running the passes that follow on a copy of the program.
#pragma once

#include "passes/Passes.h"

namespace tressel::passes {

/// Predicted seconds of a step of `module`, whose launches are placed; `module` is not changed. Counts transfers,
/// spills and prefetches, and, where providers are given, launches cut into row blocks (`rows`). Infinity where these
/// passes fail, as for a program that does not fit into a device's memory.
double predictedStep(mlir::ModuleOp module, const runtime::MachineModel &machine, const Providers *rows);

} // namespace tressel::passes
