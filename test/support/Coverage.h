// Which ops stand in random programs, in which types and places.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <map>
#include <string>
#include <vector>

namespace tressel::test {

/// An op with a type of its first operand (of its result if it has no operands).
struct Cell {
  const op::OpInfo *op;
  DType dtype;
  bool dynamic; ///< it takes sizes that are known only when the program runs
};
/// All that random calls can be made of, by what the records' `infer` accepts.
const std::vector<Cell> &possibleCells();

/// Where an op stands: with sizes that are all known, with some that are not; and, besides, in a branch or loop.
enum class Place : uint8_t { Static, Dynamic, Nested };
inline constexpr int kNumPlaces = 3;

/// How often ops stand in graphs, by op, type of the first operand (of the result if there is none) and place.
class Coverage {
public:
  void add(mlir::ModuleOp module);
  void add(const Coverage &other);
  /// One line per op of the table: static/dynamic/nested per type.
  std::string table() const;
  struct Gap {
    Cell cell;
    Place place;
    std::string str() const; ///< "add of bf16, nested"
  };
  /// Possible cells that stand in none of a place. With `everywhere` in each place, else only those that stand nowhere.
  std::vector<Gap> missing(bool everywhere) const;
  bool lacks(const Gap &gap) const; ///< still

  /// As lines "op type static dynamic nested", and back; false for another text.
  std::string text() const;
  bool parse(const std::string &text);

private:
  using Counts = std::array<int64_t, kNumPlaces>;
  Counts countsOf(const Cell &cell) const;
  std::map<std::string, std::map<DType, Counts>> counts_;
};

} // namespace tressel::test
