// What a compiled function will do, told ahead.
#include "frontend/jit/Explain.h"

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Explain.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/Instantiate.h"

#include <ostream>

namespace tressel {
namespace detail {
namespace {

/// With typical sizes where they are symbolic.
runtime::Schedule numbersOf(const runtime::Schedule &schedule, std::string &note) {
  if (schedule.dims.empty())
    return schedule;
  dim::Values sizes;
  for (Size symbol : schedule.dims) {
    sizes.bind(symbol, dim::hint(symbol));
    note += (note.empty() ? "for " : ", ") + std::string(dim::symbolName(symbol)) + " = " + std::to_string(dim::hint(symbol));
  }
  note += "\n";
  return runtime::instantiate(schedule, sizes);
}

} // namespace

Prediction predict(const runtime::Schedule &symbolic, const runtime::MachineModel &machine,
                   runtime::Decisions decisions, std::optional<double> achieved) {
  Prediction prediction;
  const runtime::Schedule schedule = numbersOf(symbolic, prediction.text);
  runtime::Explanation e = runtime::explain(schedule, machine, std::move(decisions));
  e.achieved = achieved;
  prediction.step_seconds = runtime::seconds(e.timeline.end);
  prediction.lower_bound_seconds = runtime::seconds(e.timeline.lowerBound);
  prediction.overlap = e.overlap;
  prediction.planned_side_by_side = e.timeline.sideBySide;
  prediction.achieved_side_by_side = achieved;
  prediction.compute_seconds = runtime::seconds(e.computeTime),
  prediction.transfer_seconds = runtime::seconds(e.transferTime);
  prediction.peak_bytes = e.peakBytes;
  prediction.peak_lower_bound_bytes = e.peakLowerBoundBytes;
  for (const auto &[device, arenaBytes, heldBytes, capacity] : e.memory)
    prediction.memory.push_back({device, heldBytes, arenaBytes, capacity});
  prediction.text += explainText(schedule, e);
  prediction.drawing = timelineText(schedule, {&e.timeline, 1}, 100, /*utf8=*/false);
  return prediction;
}

void drawPlan(const std::string &path, const runtime::Schedule &symbolic, const runtime::MachineModel &machine) {
  const runtime::TimelineWriter write = runtime::timelineWriter(path);
  if (!write)
    throw Error("'" + path + "' does not say in which form the plan is to be drawn: name it .html, .svg, .json (Perfetto) or .dot");
  std::string note;
  const runtime::Schedule schedule = numbersOf(symbolic, note);
  runtime::Timeline plan = runtime::simulate(schedule, machine);
  plan.kind = runtime::TimelineKind::Planned;
  const std::string text = write(schedule, {&plan, 1});
  runtime::writeFile(path, std::as_bytes(std::span(text)));
}

} // namespace detail

std::ostream &operator<<(std::ostream &out, const Prediction &prediction) { return out << prediction.text; }
std::ostream &operator<<(std::ostream &out, const ParallelComparison &comparison) { return out << comparison.text; }

} // namespace tressel
