// Random programs in the graph dialect, made of all ops of the table as their records allow.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "test/support/Coverage.h"

#include <optional>
#include <string>
#include <vector>

namespace tressel::test {

struct RandomGraphOptions {
  int minOps = 20, maxOps = 60;
  double largeShare = 0.04;   ///< of graphs whose first input has more than 4096 elements
  double dynamicShare = 0.35; ///< of graphs with sizes that are known only when they run
  double nestedShare = 0.8;   ///< of graphs in which branches and loops are tried
  double f32Share = 0.55;     ///< of new inputs and constants; the other types share the rest
  /// So many ops of each graph are the next ones of `possibleCells()`: consecutive seeds go round them all.
  int cellsPerGraph = 10;
  const Cell *cell = nullptr; ///< if not null, this one instead
  std::optional<DType> floats;      ///< all floats are of this type, most inputs and constants too
  std::vector<std::string> without; ///< ops that are not to stand in it
};

struct RandomGraph {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< one func.func @main
  std::vector<op::HostTensor> inputs;       ///< what it is to be run on
};

/// The graph of a seed, the same on every machine. While it is made, it is run three times: on its inputs, and with
/// every float off by a few units in the last place after every op, up and down (Blur.h). An op whose result would then
/// differ by more than a part of `looseTolerance` is left out, and so are branches and loops (NestOps.h): values are
/// finite, and a result outside the tolerance is an error of who computed it, not of the graph's conditioning.
RandomGraph randomGraph(mlir::MLIRContext &context, uint64_t seed, const RandomGraphOptions &options = {});

} // namespace tressel::test
