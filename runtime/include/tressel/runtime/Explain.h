// What a schedule will do on a machine, in words and figures: how long the step takes, what runs where, what hides
// behind what, what bounds it, and what would help.
#pragma once

#include "tressel/runtime/Decision.h"
#include "tressel/runtime/Simulate.h"

#include <optional>
#include <string>
#include <vector>

namespace tressel::runtime {

/// Time on the critical path that one limit takes: "arithmetic of cpu", "memory of gpu0", "copies to gpu0 over
/// pcie0.down".
struct Limit {
  std::string name;
  Picoseconds time = 0;
};
/// The step if one part of the machine were twice as fast.
struct Remedy {
  std::string name; ///< "memory of cpu twice as fast"
  Picoseconds step = 0;
};

struct Explanation {
  Timeline timeline;
  struct Link {
    std::string name;
    Picoseconds busy = 0; ///< at its full rate
  };
  std::vector<Link> links; ///< those that carry something, in the machine's order
  std::vector<CollectiveUse> collectives;
  /// (T_c + T_m - T) / min(T_c, T_m): T the step, T_c with transfers taking no time, T_m with computation taking none.
  /// Raw: anomalies of scheduling may put it below 0 or above 1. Nothing where there is no transfer, or no computation.
  std::optional<double> overlap;
  std::optional<double>
      achieved; ///< Timeline::sideBySide of a call; `timeline` has the planned one. Set by who has run one
  Picoseconds computeTime = 0, transferTime = 0; ///< T_c, T_m
  /// Of graphs that accelerators take (DeviceGraphs.h), and the host's time to issue their commands one by one.
  struct Graph {
    uint64_t kernels = 0, copies = 0, fills = 0; ///< loops unrolled
    uint32_t edges = 0;                          ///< between commands of the list, of which a loop is one
    double issueSeconds = 0;
  };
  std::vector<Graph> graphs;
  /// What only a run knows, and the step therefore assumes: that the condition of a loop is computed twice and its body once, and
  /// that a branch takes its longer side. So many loops and branches, also those inside of others.
  uint32_t assumedLoops = 0, assumedBranches = 0;
  int64_t peakBytes = 0, peakLowerBoundBytes = 0; ///< of arenas, as planned
  /// What one device needs: its arenas, and what lies there from call to call or belongs to the caller (states, inputs,
  /// results, constants of the host). In the order of the machine's devices; those that need nothing are left out.
  struct DeviceMemory {
    std::string device;
    int64_t arenaBytes = 0, heldBytes = 0, capacity = 0;
  };
  std::vector<DeviceMemory> memory;
  std::vector<Limit> limits;                      ///< the longest first
  std::vector<Remedy> remedies;                   ///< those that shorten the step by at least 1%, the best first
  Decisions decisions;
};

/// For people: "99.4 MiB".
std::string spellBytes(int64_t bytes);

/// As `simulate`, with the same errors.
Explanation explain(const Schedule &schedule, const MachineModel &machine, Decisions decisions = {});

/// For people; `most` lines of each list.
std::string explainText(const Schedule &schedule, const Explanation &explanation, size_t most = 12);
/// One object: "schema": 1, "program", "machine", "step_seconds", "lower_bound_seconds", "overlap" (null where there is
/// none), "side_by_side" (Timeline::sideBySide of the plan, or null), "side_by_side_achieved" (of the latest call, or
/// null), "peak_bytes", "peak_lower_bound_bytes", "resources" [{"name", "busy_seconds"}] (engines, then "link NAME"),
/// "critical_path" [{"name", "op", "file", "line", "resource", "begin_seconds", "seconds"}], "limits" [{"name",
/// "seconds"}], "remedies" [{"name", "step_seconds"}], "decisions" [{"pass", "op", "file", "line", "text"}], "graphs"
/// [{"kernels", "copies", "fills", "edges", "issue_seconds"}], "mesh" {"data": 8}, "collectives" [{"name", "members",
/// "hosts", "algorithm", "count", "bytes", "seconds"}], "assumed_loops", "assumed_branches".
std::string explainJson(const Schedule &schedule, const Explanation &explanation);

} // namespace tressel::runtime
