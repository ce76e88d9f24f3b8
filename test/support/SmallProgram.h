// Programs of a few launches over a host and two accelerators, made up at random, small enough that every order of
// their commands, and every way to place them, can be tried: what the planner makes of them against the best there is.
#pragma once

#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tressel::test {

/// Values are inputs, on the host, then the results of the launches in order.
struct SmallProgram {
  struct Launch {
    std::vector<uint32_t> reads;
    int64_t flops = 0;
    std::optional<uint32_t> device; ///< 0: the host, i: accelerator i - 1; nothing: the planner's choice
  };
  std::vector<int64_t> elements; ///< f32, by value
  uint32_t numInputs = 0;
  std::vector<Launch> launches;

  /// What nobody reads is a result.
  std::vector<uint32_t> results() const;
  /// In the graph dialect, a kernel for each launch.
  std::string text() const;
};

/// At most so many launches, of which the planner places none or all.
SmallProgram randomSmallProgram(uint64_t seed, int mostLaunches, bool isPlaced);
/// A host and two accelerators, of figures that let nothing share: engines run one thing at a time, and each pair of
/// memories has a link of its own.
runtime::MachineModel smallMachine();

struct SmallPlan {
  int64_t planned = 0; ///< picoseconds, by the clock of plans
  int64_t best = 0;    ///< of all orders, and of all placements where they are free
  double ratio() const { return static_cast<double>(planned) / static_cast<double>(best); }
};
/// Plans with the passes from placement to waits, without cutting launches into blocks of rows, and searches. Nothing
/// if that takes too many steps. Throws Error when a pass fails.
std::optional<SmallPlan> planSmall(const SmallProgram &program);

/// How plans compare with the best: of `count` programs from a seed on. Sorted.
struct SmallPlans {
  std::vector<double> ratios;
  int skipped = 0; ///< not searched to the end
  double at(double share) const { return ratios[static_cast<size_t>(share * static_cast<double>(ratios.size() - 1))]; }
  double mean() const;
  std::string text() const; ///< a line
};
SmallPlans planManySmall(uint64_t seed, int count, int mostLaunches, bool isPlaced);

} // namespace tressel::test
