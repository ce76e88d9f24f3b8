#pragma once

#include "tressel/runtime/Decision.h"
#include "tressel/runtime/MachineModel.h"

#include <tressel/jit.h>

namespace tressel::detail {

/// Symbolic sizes get the values that the compiler takes as typical.
Prediction predict(const runtime::Schedule &schedule, const runtime::MachineModel &machine,
                   runtime::Decisions decisions, std::optional<double> achieved = {});
/// Writes the timeline in the form of the file's extension. Throws Error for other extensions.
void drawPlan(const std::string &path, const runtime::Schedule &schedule, const runtime::MachineModel &machine);

} // namespace tressel::detail
