// Ways to split a program over many accelerators, each a process of its own, compared by what is predicted of one rank.
#pragma once

#include "codegen/Compile.h"

#include <optional>
#include <string>
#include <vector>

namespace tressel::codegen {

/// Makes @main the program of one rank of a mesh ("data=8, model=4"). Inputs that say nothing else are cut along `dimension`, by the
/// mesh's first axis; what an annotation names and the mesh lacks stays whole. States lie on the rank's accelerator.
void makeRankProgram(mlir::ModuleOp module, const std::string &mesh, std::optional<int> dimension);

/// One way, and what it takes.
struct Layout {
  std::string name; ///< "data = 8, weights in parts"
  std::vector<std::pair<std::string, int64_t>> mesh; ///< axes and their sizes
  double stepSeconds = 0, computeSeconds = 0, transferSeconds = 0; ///< the last two as Explanation::computeTime and transferTime
  int64_t rankBytes = 0;                                           ///< of an accelerator's memory: states, and what the step makes
  std::string bound;                                               ///< what takes most of the critical path
  int64_t inRow = 0,
          microBatches = 0; ///< of a pipeline, one program for all accelerators; rankBytes of the one that needs most
  std::string error;                                               ///< why it cannot be; then all else is empty
};

struct LayoutComparison {
  std::vector<Layout> layouts; ///< the first is one accelerator alone
  std::optional<size_t> best;  ///< the fastest that can be
  std::string text;            ///< a table, and the reason of the choice
};

/// Compares for `ranks` accelerators: one alone with all of the batch; each with its share of it, and with the states
/// that no output depends on (momentum), or all states, in parts; and where annotations name other axes than "data",
/// these together with "data" for each way to factor the number. Where ops are of stages, also a pipeline of each
/// length that divides the number and has no more accelerators than there are stages, in the best order, for one
/// process of a machine that has all of them. The module stays as it is. `options` are those of the compilation, with a
/// machine that has accelerators.
LayoutComparison compareLayouts(mlir::ModuleOp module, int64_t ranks, std::optional<int> dimension, const CompileOptions &options);

} // namespace tressel::codegen
