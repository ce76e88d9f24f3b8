#include "ir/interpreter/Interpreter.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Structure.h"
#include "ir/interpreter/Evaluate.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "llvm/ADT/DenseMap.h"

#include <cstring>
#include <random>

namespace tressel::graph {
namespace {

using op::HostTensor;
using Tensors = std::vector<HostTensor>;

class Interpreter {
public:
  Interpreter(Observer observer, dim::Values dims = {}) : observer_(observer), dims_(std::move(dims)) {}

  /// Interprets a region; `outputs` becomes the operands of its terminator.
  bool runRegion(mlir::Region &region, llvm::ArrayRef<HostTensor> inputs, Tensors &outputs) {
    if (!region.hasOneBlock())
      return fail(region.getParentOp(), "has no single block to interpret");
    mlir::Block &block = region.front();
    if (block.getNumArguments() != inputs.size())
      return fail(region.getParentOp(),
                  "takes " + std::to_string(block.getNumArguments()) + " inputs, not " + std::to_string(inputs.size()));
    auto main = llvm::dyn_cast<mlir::func::FuncOp>(region.getParentOp());
    if (main) {
      llvm::FailureOr<Mesh> mesh = meshOf(main);
      if (failed(mesh))
        return fail(main, "has no mesh that can be read");
      mesh_ = *std::move(mesh);
    }
    // For arguments and results on ranks, the caller passes and gets the whole.
    const bool isCut = main && main->hasAttr(kCutAttr);
    auto onRanks = [&](mlir::BlockArgument argument, const HostTensor &input) -> std::optional<Sharding> {
      const unsigned i = argument.getArgNumber();
      if (!isCut || !isArgumentOnRanks(main, i))
        return std::nullopt;
      return parseSharding(main.getArgAttrOfType<mlir::StringAttr>(i, kShardingAttr), input.type.rank(), mesh_).sharding;
    };
    for (auto [argument, input] : llvm::zip_equal(block.getArguments(), inputs))
      if (const auto sharding = onRanks(argument, input))
        ofRanks_[argument] = partsOf(input, *sharding, mesh_);
      else
        values_[argument] = input;
    // Symbols that are alone in a dimension first, as an expression of them may come earlier. Parts have the same sizes
    // on all ranks.
    for (bool last : {false, true})
      for (mlir::BlockArgument argument : block.getArguments())
        if (!bind(argument, on(0, argument), region.getParentOp(), !last))
          return false;
    for (mlir::Operation &op : block) {
      if (isCut && op.hasTrait<mlir::OpTrait::IsTerminator>()) {
        for (mlir::OpOperand &operand : op.getOpOperands()) {
          auto parts = ofRanks_.find(operand.get());
          const auto words = main.getResultAttrOfType<mlir::StringAttr>(operand.getOperandNumber(), kShardingAttr);
          // A constant exists on every rank.
          const bool isThere = parts != ofRanks_.end();
          if (isThere ? !words : words && !mlir::matchPattern(operand.get(), mlir::m_Constant()))
            return fail(&op, "returns a value of the ranks that is not to lie there, or the reverse");
          outputs.push_back(
              !isThere
                  ? values_.lookup(operand.get())
                  : joined(parts->second, parseSharding(words, parts->second[0].type.rank(), mesh_).sharding, mesh_));
        }
        return true;
      }
      if (isRanked(&op)) {
        if (!runOnRanks(&op))
          return false;
        continue;
      }
      Tensors operands;
      for (mlir::Value operand : op.getOperands())
        operands.push_back(values_.lookup(operand));
      if (op.hasTrait<mlir::OpTrait::IsTerminator>()) {
        outputs = std::move(operands);
        return true;
      }
      Tensors results;
      if (!runOp(&op, operands, results))
        return false;
      for (auto [value, result] : llvm::zip_equal(op.getResults(), results))
        if (std::string problem = unlike(value.getType(), result.type, false); !problem.empty())
          return fail(&op, "gives " + result.type.str() + ", its type says " + fromMlir(value.getType()).str());
      if (observer_)
        observer_(&op, operands, results);
      for (auto [value, result] : llvm::zip_equal(op.getResults(), results))
        values_[value] = std::move(result);
    }
    return fail(region.getParentOp(), "has no terminator");
  }

  bool runOp(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands, Tensors &results) {
    for (mlir::Type type : op->getResultTypes())
      if (!isSupported(type) || !dim::isKnown(fromMlir(type).shape))
        return fail(op, "has a result that is no tensor of a known shape");
    if (const op::OpInfo *info = infoOf(op)) {
      op::Attrs attrs = attrsOf(op, *info);
      if (op::isSymbolic(attrs)) {
        try {
          attrs = op::withSizes(attrs, dims_);
        } catch (const Error &error) {
          return fail(op, error.message());
        }
      }
      op::interp::Evaluation evaluation = op::interp::run(*info, operands, attrs);
      if (!evaluation)
        return fail(op, evaluation.error);
      results = std::move(evaluation.outputs);
      return true;
    }
    if (op->getNumResults() == 1)
      if (std::optional<HostTensor> constant = constantValue(op->getResult(0))) {
        results.push_back(*std::move(constant));
        return true;
      }
    if (auto cluster = llvm::dyn_cast<ClusterOp>(op))
      return runRegion(cluster.getBody(), operands, results);
    if (auto launch = llvm::dyn_cast<LaunchOp>(op))
      return runLaunch(launch, operands, results);
    if (llvm::isa<PackOp>(op)) {
      results.push_back(HostTensor::allocate(fromMlir(op->getResult(0).getType())));
      return true;
    }
    if (auto cond = llvm::dyn_cast<CondOp>(op))
      return runRegion(isSet(operands.front()) ? cond.getThen() : cond.getOtherwise(), operands.drop_front(), results);
    if (auto loop = llvm::dyn_cast<WhileOp>(op))
      return runWhile(loop, operands, results);
    if (auto scan = llvm::dyn_cast<ScanOp>(op))
      return runScan(scan, operands, results);
    return fail(op, "is not an op that the interpreter knows");
  }

  std::string error;

private:
  /// Why a value of type `got` is invalid for `declared`; empty if it is valid. Binds the symbols of `declared`.
  std::string unlike(mlir::Type declared, const TensorType &got, bool partial) {
    if (!isSupported(declared))
      return "no tensor type";
    const TensorType type = fromMlir(declared);
    if (type.dtype != got.dtype)
      return "another element type";
    try {
      return dim::unify(type.shape, got.shape, dims_, partial);
    } catch (const Error &error) {
      return error.message();
    }
  }
  bool bind(mlir::BlockArgument argument, const HostTensor &input, mlir::Operation *parent, bool partial) {
    const std::string problem = unlike(argument.getType(), input.type, partial);
    if (problem.empty())
      return true;
    return fail(parent, "argument " + std::to_string(argument.getArgNumber()) + " is given " + input.type.str() + ": " +
                            problem);
  }

  bool runLaunch(LaunchOp launch, llvm::ArrayRef<HostTensor> operands, Tensors &results) {
    auto kernel = mlir::SymbolTable::lookupNearestSymbolFrom<KernelOp>(launch, launch.getKernelAttr());
    if (!kernel)
      return fail(launch, "names no kernel");
    if (!kernel.isExternal())
      return runRegion(kernel.getBody(), operands, results);
    for (mlir::Type type : launch.getResultTypes()) // an outlined pack
      results.push_back(HostTensor::allocate(fromMlir(type)));
    return true;
  }

  // --- Ranks: a value on ranks is one tensor per rank.
  bool isRanked(mlir::Operation *op) const {
    return !mesh_.empty() &&
           (isOnRanks(op) || llvm::isa<DealOp, CollectOp, CarryOp, CarriedOp>(op) || isCollective(op) ||
            llvm::any_of(op->getOperands(), [&](mlir::Value v) { return ofRanks_.contains(v); }));
  }
  const HostTensor &on(int64_t rank, mlir::Value value) {
    auto found = ofRanks_.find(value);
    return found == ofRanks_.end() ? values_[value] : found->second[static_cast<size_t>(rank)];
  }
  bool runOnRanks(mlir::Operation *op) {
    const int64_t ranks = mesh_.numRanks();
    if (op->hasTrait<mlir::OpTrait::IsTerminator>())
      return fail(op, "returns a value of the ranks");
    if (auto collect = llvm::dyn_cast<CollectOp>(op)) {
      auto axes = axesOf(op, collect.getOver(), mesh_);
      if (failed(axes) || static_cast<int64_t>(collect.getNumResults()) != mesh_.numAlong(*axes))
        return fail(op, "does not fit the mesh");
      for (auto [place, result] : llvm::enumerate(collect.getResults())) {
        const auto at = static_cast<int64_t>(place);
        if (!collect.getOnRanks())
          values_[result] = on(mesh_.rankAt(at, *axes, 0), collect.getValue());
        else
          for (int64_t rank = 0; rank < ranks; ++rank)
            ofRanks_[result].push_back(HostTensor(on(mesh_.rankAt(at, *axes, rank), collect.getValue())));
      }
      return true;
    }
    std::vector<Tensors> all;
    // Results that are the same on all ranks of a group are computed once, for the first rank.
    const auto alike = llvm::isa<AllReduceOp, AllGatherOp>(op)
                           ? axesOf(op, axesOfCollective(op), mesh_)
                           : llvm::FailureOr<llvm::SmallVector<unsigned>>(llvm::failure());
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (const int64_t first = succeeded(alike) ? mesh_.rankAt(0, *alike, rank) : rank; first < rank) {
        all.push_back(all[static_cast<size_t>(first)]);
        continue;
      }
      const dim::Values whole = dims_;
      runtime::bindRank(dims_, mesh_.axes, rank);
      Tensors operands, results;
      for (mlir::Value operand : op->getOperands())
        operands.push_back(on(rank, operand));
      const bool fits = runOnRank(op, rank, operands, results);
      for (auto [value, result] : llvm::zip(op->getResults(), results))
        if (fits && !unlike(value.getType(), result.type, false).empty())
          return fail(op, "gives " + result.type.str() + " on rank " + std::to_string(rank) + ", its type says " +
                              fromMlir(value.getType()).str());
      dims_ = whole;
      if (!fits)
        return false;
      if (observer_ && isOnRanks(op))
        observer_(op, operands, results);
      all.push_back(std::move(results));
    }
    for (auto [i, result] : llvm::enumerate(op->getResults()))
      for (const Tensors &results : all)
        ofRanks_[result].push_back(results[i]);
    return true;
  }
  bool runOnRank(mlir::Operation *op, int64_t rank, llvm::ArrayRef<HostTensor> operands, Tensors &results) {
    auto deal = llvm::dyn_cast<DealOp>(op);
    if (!deal && !isCollective(op) && !llvm::isa<CarryOp, CarriedOp>(op))
      return runOp(op, operands, results);
    auto axes = axesOf(op, op->getAttrOfType<mlir::ArrayAttr>("over"), mesh_);
    if (failed(axes))
      return fail(op, "does not fit the mesh");
    if (deal) {
      if (operands.size() != 1 && static_cast<int64_t>(operands.size()) != mesh_.numAlong(*axes))
        return fail(op, "does not fit the mesh");
      results.push_back(operands[operands.size() == 1 ? 0 : static_cast<size_t>(mesh_.placeOf(rank, *axes))]);
      return true;
    }
    auto ofPlace = [&](int64_t place) { return on(mesh_.rankAt(place, *axes, rank), op->getOperand(0)); };
    if (auto gather = llvm::dyn_cast<AllGatherOp>(op)) {
      std::vector<HostTensor> parts;
      for (int64_t place = 0; place < mesh_.numAlong(*axes); ++place)
        parts.push_back(ofPlace(place));
      results.push_back(
          op::interp::run(*op::findOp("concat"), parts, {static_cast<int64_t>(gather.getDim())}).outputs.at(0));
      return true;
    }
    if (llvm::isa<CarriedOp>(op)) {
      results.push_back(ofPlace(mesh_.numAlong(*axes) - 1));
      return true;
    }
    auto scatter = llvm::dyn_cast<ReduceScatterOp>(op);
    auto carry = llvm::dyn_cast<CarryOp>(op);
    const llvm::StringRef how = op->getAttrOfType<mlir::StringAttr>("by");
    static constexpr std::pair<llvm::StringLiteral, const char *> kOps[] = {
        {"sum", "add"},     {"prod", "mul"},       {"max", "maximum"},
        {"min", "minimum"}, {"any", "logical_or"}, {"all", "logical_and"}};
    const auto *by = llvm::find_if(kOps, [&](const auto &pair) { return pair.first == how; });
    if (by == std::end(kOps))
      return fail(op, "combines by an unknown word");
    auto combine = [&](const HostTensor &a, const HostTensor &b) {
      const HostTensor pair[] = {a, b};
      return op::interp::run(*op::findOp(by->second), pair, {}).outputs.at(0);
    };
    std::vector<HostTensor> values;
    const int64_t end = carry ? mesh_.placeOf(rank, *axes) : mesh_.numAlong(*axes);
    if (carry)
      values.push_back(operands[1]);
    for (int64_t place = 0; place < end; ++place)
      values.push_back(ofPlace(place));
    const bool inTurn = carry || op->hasAttr("in_turn");
    auto all = [&](auto &self, llvm::ArrayRef<HostTensor> some) -> HostTensor {
      if (some.size() == 1)
        return some.front();
      const size_t first = inTurn ? some.size() - 1 : llvm::bit_ceil(some.size()) / 2;
      return combine(self(self, some.take_front(first)), self(self, some.drop_front(first)));
    };
    HostTensor combined = all(all, values);
    if (scatter) {
      const auto d = static_cast<size_t>(scatter.getDim());
      const int64_t ranks = mesh_.numAlong(*axes);
      op::Sizes from(static_cast<size_t>(combined.type.rank()), 0),
          to(combined.type.shape.begin(), combined.type.shape.end());
      const int64_t part = to[d].number() / ranks, place = mesh_.placeOf(rank, *axes);
      if (part * ranks != to[d].number())
        return fail(op, "does not fit the mesh");
      from[d] = place * part, to[d] = (place + 1) * part;
      combined = op::interp::run(*op::findOp("slice"), {&combined, 1}, {from, to}).outputs.at(0);
    }
    results.push_back(combined);
    return true;
  }

  int64_t sizeOf(Size size) const { return dim::evaluate(size, dims_); }
  static bool isSet(const HostTensor &flag) { return flag.data.get()[0] != std::byte(0); }

  bool runWhile(WhileOp loop, llvm::ArrayRef<HostTensor> operands, Tensors &carried) {
    const size_t numCarried = loop.getCarried().size();
    Tensors inputs(operands.begin(), operands.end());
    for (int64_t trips = 0;; ++trips) {
      Tensors flag, next;
      if (!runRegion(loop.getCondition(), inputs, flag))
        return false;
      if (!isSet(flag.front()))
        break;
      if (loop.getBound() && trips == static_cast<int64_t>(*loop.getBound()))
        return fail(loop, "runs more often than the " + std::to_string(trips) + " times that it promises at most");
      if (!runRegion(loop.getBody(), inputs, next))
        return false;
      std::move(next.begin(), next.end(), inputs.begin());
    }
    carried.assign(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(numCarried));
    return true;
  }

  bool runScan(ScanOp scan, llvm::ArrayRef<HostTensor> operands, Tensors &results) {
    const size_t numCarried = scan.getCarried().size(), numSlices = scan.getSlices().size();
    int64_t trips = 0;
    try {
      trips = sizeOf(scan.getTrips());
    } catch (const Error &error) {
      return fail(scan, error.message());
    }
    results.assign(operands.begin(), operands.begin() + static_cast<ptrdiff_t>(numCarried));
    for (mlir::Type type : mlir::TypeRange(scan.getResultTypes()).drop_front(numCarried)) {
      TensorType stacked = fromMlir(type);
      for (Size &size : stacked.shape)
        size = sizeOf(size);
      results.push_back(HostTensor::allocate(stacked));
    }
    for (int64_t i = 0; i < trips; ++i) {
      Tensors inputs{HostTensor::allocate({DType::i64, {}})}, yielded;
      *inputs[0].as<int64_t>() = i;
      inputs.insert(inputs.end(), results.begin(), results.begin() + static_cast<ptrdiff_t>(numCarried));
      for (const HostTensor &stacked : operands.slice(numCarried, numSlices)) {
        TensorType type = stacked.type;
        type.shape = Shape(std::span(stacked.type.shape.begin() + 1, stacked.type.shape.end()));
        inputs.push_back(HostTensor::allocate(type));
        std::memcpy(inputs.back().data.get(), stacked.data.get() + i * type.bytes(), static_cast<size_t>(type.bytes()));
      }
      inputs.insert(inputs.end(), operands.begin() + static_cast<ptrdiff_t>(numCarried + numSlices), operands.end());
      if (!runRegion(scan.getBody(), inputs, yielded))
        return false;
      for (size_t k = 0; k < yielded.size(); ++k)
        if (k < numCarried)
          results[k] = yielded[k];
        else
          std::memcpy(results[k].data.get() + i * yielded[k].type.bytes(), yielded[k].data.get(),
                      static_cast<size_t>(yielded[k].type.bytes()));
    }
    return true;
  }

  bool fail(mlir::Operation *op, const std::string &what) {
    const FileLine at = fileLineOf(op->getLoc());
    if (!at.file.empty())
      error = at.file + ":" + std::to_string(at.line) + ": ";
    // Messages of the table begin with the op's name.
    const std::string name = op->getName().stripDialect().str() + ": ";
    error += what.starts_with(name) ? what : name + what;
    return false;
  }

  llvm::DenseMap<mlir::Value, HostTensor> values_;
  Mesh mesh_; ///< of the function
  llvm::DenseMap<mlir::Value, Tensors> ofRanks_;
  Observer observer_;
  dim::Values dims_;
};

} // namespace

static HostTensor runOne(const char *name, std::vector<HostTensor> operands, op::Attrs attrs) {
  const op::OpInfo &info = *op::findOp(name);
  op::completeAttrs(info, attrs);
  return op::interp::run(info, operands, attrs).outputs.at(0);
}

std::vector<HostTensor> partsOf(const HostTensor &whole, const Sharding &sharding, const Mesh &mesh) {
  std::vector<HostTensor> parts;
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    const dim::Values at = coordinatesOf(rank, mesh);
    op::Sizes starts, limits;
    for (auto [d, axes] : llvm::enumerate(sharding.dims)) {
      const Size size = whole.type.shape[static_cast<int>(d)];
      starts.push_back(dim::evaluate(firstOf(size, axes, mesh), at));
      limits.push_back(starts.back() + dim::evaluate(partOf(size, axes, mesh), at));
    }
    parts.push_back(runOne("slice", {whole}, {starts, limits, op::Ints()}));
  }
  return parts;
}

HostTensor joined(const std::vector<HostTensor> &parts, const Sharding &sharding, const Mesh &mesh) {
  llvm::SmallVector<unsigned> all;
  for (const auto &axes : sharding.dims)
    all.append(axes.begin(), axes.end());
  std::vector<HostTensor> values;
  for (int64_t place = 0; place < mesh.numAlong(all); ++place)
    values.push_back(parts[static_cast<size_t>(mesh.rankAt(place, all, 0))]);
  for (size_t d = sharding.dims.size(); d-- > 0;) { // parts of the last dimension are adjacent
    const auto n = mesh.numAlong(sharding.dims[d]);
    std::vector<HostTensor> next;
    for (auto at = values.begin(); at != values.end(); at += n)
      next.push_back(n == 1 ? *at : runOne("concat", {at, at + n}, {static_cast<int64_t>(d)}));
    values = std::move(next);
  }
  return values.front();
}

Interpretation interpret(mlir::func::FuncOp function, llvm::ArrayRef<op::HostTensor> inputs, Observer observer) {
  const op::KeepSubnormals mode(op::KeepSubnormals::active() || keepsSubnormals(function));
  Interpreter interpreter(observer);
  Interpretation result;
  if (!interpreter.runRegion(function.getBody(), inputs, result.outputs))
    result = {{}, std::move(interpreter.error)};
  return result;
}

Interpretation interpret(mlir::Operation *op, llvm::ArrayRef<op::HostTensor> operands, const dim::Values &dims) {
  const op::KeepSubnormals mode(op::KeepSubnormals::active() || keepsSubnormals(op));
  Interpreter interpreter(nullptr, dims);
  Interpretation result;
  if (!interpreter.runOp(op, operands, result.outputs))
    result = {{}, std::move(interpreter.error)};
  return result;
}

std::vector<op::HostTensor> randomInputs(mlir::func::FuncOp function, uint64_t seed, double low, double high,
                                         const dim::Values &dims) {
  std::mt19937_64 random(seed);
  std::vector<op::HostTensor> inputs;
  for (mlir::Type type : function.getArgumentTypes()) {
    TensorType concrete = fromMlir(type);
    concrete.shape = dim::evaluate(concrete.shape, dims);
    HostTensor tensor = HostTensor::allocate(concrete);
    for (int64_t i = 0, n = tensor.type.shape.numElements(); i < n; ++i) {
      // Not by the standard library, whose distributions differ between implementations: a seed must mean the same
      // everywhere.
      const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
      if (isFloat(tensor.type.dtype))
        op::interp::store(tensor, i, low + (high - low) * unit);
      else
        op::interp::store(tensor, i, static_cast<int64_t>(unit < 0.5 ? 0 : 1));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

} // namespace tressel::graph
