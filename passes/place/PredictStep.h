// What a step would take once its launches are placed: the passes that follow, tried on a copy of the program.
#pragma once

#include "passes/Passes.h"

namespace tressel::passes {

/// Seconds of the step of `module`, whose launches are placed and which stays as it is: with its copies, what has to
/// leave a memory, and, where providers are given, launches cut into blocks of rows. Infinity where these passes fail,
/// as for a program that does not fit into the memory of a device.
double predictedStep(mlir::ModuleOp module, const runtime::MachineModel &machine, const Providers *rows);

} // namespace tressel::passes
