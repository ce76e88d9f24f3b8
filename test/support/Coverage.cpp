#include "test/support/Coverage.h"
#include "ir/graph/Graph.h"
#include "test/support/RandomOps.h"
#include "test/support/SymbolicSizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <sstream>

namespace tressel::test {

using op::OpInfo;

/// Whether the call is also legal with one of its sizes as a symbol.
static bool takesSymbols(const OpCall &call) {
  for (const std::vector<TensorType> *types : {&call.operands, &call.results})
    for (const TensorType &type : *types)
      for (Size size : type.shape) {
        SymbolicSizes sizes;
        sizes.add(size.number(), dim::symbol("n", 1, (size + 5).number()));
        sizes.give(sizes.declared(type)); // by some other input
        OpCall symbolic = call;
        std::optional<bool> dynamic =
            sizes.declare(symbolic, std::vector<std::optional<TensorType>>(call.operands.size()));
        if (!dynamic)
          continue;
        for (const TensorType &operand : call.operands)
          if (*dynamic && isDynamic(sizes.declared(operand)))
            return true;
        if (symbolic.attrs != call.attrs)
          return true;
      }
  return false;
}

const std::vector<Cell> &possibleCells() {
  static const std::vector<Cell> cells = [] {
    std::vector<Cell> list;
    for (const OpInfo *info : op::allOps())
      for (int type = 0; type < kNumDTypes; ++type) {
        const auto dtype = static_cast<DType>(type);
        Random random(17);
        bool possible = false, dynamic = false;
        for (int tries = 0; tries < 40 && !dynamic; ++tries) {
          std::optional<OpCall> call = proposeCall(*info, dtype, random);
          if (!call || call->results.empty() || cellType(*call) != dtype)
            continue;
          possible = true;
          dynamic = takesSymbols(*call);
        }
        if (possible)
          list.push_back({info, dtype, dynamic});
      }
    return list;
  }();
  return cells;
}

void Coverage::add(mlir::ModuleOp module) {
  auto isDynamicValue = [](mlir::Value value) { return isDynamic(graph::fromMlir(value.getType())); };
  module.walk([&](mlir::Operation *op) {
    const OpInfo *info = graph::infoOf(op);
    if (!info || op->getNumResults() == 0)
      return;
    const mlir::Value first = op->getNumOperands() ? op->getOperand(0) : op->getResult(0);
    auto &counts = counts_[info->name][graph::fromMlir(first.getType()).dtype];
    const bool dynamic =
        llvm::any_of(op->getOperands(), isDynamicValue) || llvm::any_of(op->getResults(), isDynamicValue);
    ++counts[static_cast<size_t>(dynamic ? Place::Dynamic : Place::Static)];
    if (!llvm::isa<mlir::func::FuncOp>(op->getParentOp()))
      ++counts[static_cast<size_t>(Place::Nested)];
  });
}

void Coverage::add(const Coverage &other) {
  for (const auto &[name, types] : other.counts_)
    for (const auto &[type, counts] : types)
      for (size_t place = 0; place < counts.size(); ++place)
        counts_[name][type][place] += counts[place];
}

std::string Coverage::table() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::left_justify("static/dynamic/nested", 28);
  for (int type = 0; type < kNumDTypes; ++type)
    os << llvm::right_justify(std::string(nameOf(static_cast<DType>(type))), 14);
  os << "\n";
  for (const OpInfo *info : op::allOps()) {
    os << llvm::left_justify(info->name, 28);
    auto row = counts_.find(info->name);
    for (int type = 0; type < kNumDTypes; ++type) {
      std::string cell = ".";
      if (row != counts_.end())
        if (auto at = row->second.find(static_cast<DType>(type)); at != row->second.end())
          cell =
              std::to_string(at->second[0]) + "/" + std::to_string(at->second[1]) + "/" + std::to_string(at->second[2]);
      os << llvm::right_justify(cell, 14);
    }
    os << "\n";
  }
  return text;
}

Coverage::Counts Coverage::countsOf(const Cell &cell) const {
  if (auto row = counts_.find(cell.op->name); row != counts_.end())
    if (auto at = row->second.find(cell.dtype); at != row->second.end())
      return at->second;
  return {};
}

bool Coverage::lacks(const Gap &gap) const { return countsOf(gap.cell)[static_cast<size_t>(gap.place)] == 0; }

std::vector<Coverage::Gap> Coverage::missing(bool everywhere) const {
  std::vector<Gap> gaps;
  for (const Cell &cell : possibleCells()) {
    if (!everywhere) {
      if (countsOf(cell) == Counts())
        gaps.push_back({cell, Place::Static});
      continue;
    }
    for (Place place : {Place::Static, Place::Dynamic, Place::Nested})
      if (lacks({cell, place}) && (cell.dynamic || place != Place::Dynamic))
        gaps.push_back({cell, place});
  }
  return gaps;
}

std::string Coverage::Gap::str() const {
  const char *places[] = {"static", "dynamic", "nested"};
  return std::string(cell.op->name) + " of " + std::string(nameOf(cell.dtype)) + ", " +
         places[static_cast<size_t>(place)];
}

std::string Coverage::text() const {
  std::string text;
  for (const auto &[name, types] : counts_)
    for (const auto &[type, counts] : types) {
      text += name + " " + std::to_string(static_cast<int>(type));
      for (int64_t count : counts)
        text += " " + std::to_string(count);
      text += "\n";
    }
  return text;
}

bool Coverage::parse(const std::string &text) {
  counts_.clear();
  std::istringstream in(text);
  std::string name;
  for (int type; in >> name;) {
    if (!(in >> type) || type < 0 || type >= kNumDTypes || !op::findOp(name))
      return false;
    for (int64_t &count : counts_[name][static_cast<DType>(type)])
      if (!(in >> count))
        return false;
  }
  return true;
}

} // namespace tressel::test
