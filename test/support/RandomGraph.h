// Random programs in the graph dialect, made of all ops of the table as their records allow.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace tressel::test {

struct RandomGraphOptions {
  int minOps = 5, maxOps = 40;
  int64_t maxElements = 4096; ///< of any value
  double f32Share = 0.55;     ///< of new inputs and constants; the other types share the rest
};

struct RandomGraph {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< one func.func @main
  std::vector<op::HostTensor> inputs;       ///< what it is to be run on
};

/// The graph of a seed, the same on every machine. While it is made, it is run twice: on its inputs, and with every float off
/// by a few units in the last place after every op. An op whose result would then differ by more than a part of
/// `looseTolerance` is left out: so values are finite, and a result outside the tolerance is an error of who computed it,
/// not of the graph's conditioning.
RandomGraph randomGraph(mlir::MLIRContext &context, uint64_t seed, const RandomGraphOptions &options = {});

/// How often ops stand in graphs, by name and type of the first operand (of the result if there is none).
class Coverage {
public:
  void add(mlir::ModuleOp module);
  /// One line per op of the table.
  std::string table() const;
  /// Ops that stand nowhere.
  std::vector<std::string> missing() const;

private:
  std::map<std::string, std::map<DType, int>> counts_;
};

} // namespace tressel::test
