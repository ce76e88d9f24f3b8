// Random programs in the graph dialect, made of all ops of the table as their records allow.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <array>
#include <map>
#include <string>
#include <vector>

namespace tressel::test {

/// An op with a type of its first operand (of its result if it has no operands).
struct Cell {
  const op::OpInfo *op;
  DType dtype;
};
/// All that random calls can be made of, by what the records' `infer` accepts.
const std::vector<Cell> &possibleCells();

struct RandomGraphOptions {
  int minOps = 20, maxOps = 60;
  double largeShare = 0.04; ///< of graphs whose first input has more than 4096 elements
  double dynamicShare = 0.35; ///< of graphs with sizes that are known only when they run
  double f32Share = 0.55;   ///< of new inputs and constants; the other types share the rest
  /// So many ops of each graph are the next ones of `possibleCells()`: consecutive seeds go round them all.
  int cellsPerGraph = 10;
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

/// Where an op stands: with sizes that are all known, with some that are not, or in a branch or loop.
enum class Place : uint8_t { Static, Dynamic, Nested };
inline constexpr int kNumPlaces = 3;

/// How often ops stand in graphs, by op, type of the first operand (of the result if there is none) and place.
class Coverage {
public:
  void add(mlir::ModuleOp module);
  /// One line per op of the table: static/dynamic/nested per type.
  std::string table() const;
  /// Possible cells that stand nowhere: "add of bf16".
  std::vector<std::string> missing() const;

private:
  std::map<std::string, std::map<DType, std::array<int, kNumPlaces>>> counts_;
};

} // namespace tressel::test
