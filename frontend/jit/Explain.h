#pragma once

#include "tressel/runtime/Decision.h"
#include "tressel/runtime/MachineModel.h"

#include <tressel/jit.h>

namespace tressel::detail {

/// Symbolic sizes count as the compiler takes them for typical.
Prediction predict(const runtime::Schedule &schedule, const runtime::MachineModel &machine,
                   runtime::Decisions decisions, std::optional<double> achieved = {});
/// Writes the timeline in the form that the file's name says. Throws Error for other names.
void drawPlan(const std::string &path, const runtime::Schedule &schedule, const runtime::MachineModel &machine);

} // namespace tressel::detail
