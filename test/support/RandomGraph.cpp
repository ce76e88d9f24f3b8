#include "test/support/RandomGraph.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Evaluate.h"
#include "test/support/RandomOps.h"
#include "tressel/runtime/Dim.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>

namespace tressel::test {
namespace {

using op::HostTensor;
using op::OpInfo;

/// A value of the graph: what it is, and what it might be after rounding elsewhere than here.
struct Known {
  mlir::Value value;
  HostTensor exact, blurred;
};

constexpr double kLargest = 1e3; ///< no value is larger, so that nothing overflows a few ops later, f16 neither

/// What one op may round away, relative to its result.
double blurOf(DType type) {
  switch (type) {
  case DType::f64:
    return 0x1p-48;
  case DType::f32:
    return 0x1p-20;
  case DType::f16:
    return 0x1p-9;
  case DType::bf16:
    return 0x1p-6;
  default:
    return 0;
  }
}

DType cellType(const OpCall &call) { return (call.operands.empty() ? call.results : call.operands).front().dtype; }

class Builder {
public:
  Builder(mlir::MLIRContext &context, uint64_t seed, const RandomGraphOptions &options)
      : context_(context), options_(options), seed_(seed), random_(seed), builder_(&context) {}

  RandomGraph build() {
    mlir::Location loc = mlir::FileLineColLoc::get(&context_, "random", 1, 1);
    RandomGraph graph;
    graph.module = mlir::ModuleOp::create(loc);
    builder_.setInsertionPointToEnd(graph.module->getBody());
    function_ = mlir::func::FuncOp::create(builder_, loc, "main", builder_.getFunctionType({}, {}));
    builder_.setInsertionPointToStart(function_.addEntryBlock());
    if (random_.chance(options_.dynamicShare))
      nameSizes();
    if (random_.chance(options_.largeShare)) {
      maxElements_ = 1 << 15;
      newValue({someType(), largeShape()}, {});
    }
    for (int64_t i = random_.between(1, 3); i > 0; --i)
      newValue({someType(), randomShape(random_, 1, {.maxRank = 4, .maxSize = 8})}, {});
    const auto wanted = random_.between(options_.minOps, options_.maxOps);
    const auto wishes = std::min<int64_t>(options_.cellsPerGraph, wanted);
    int64_t made = 0;
    for (int64_t wish = 0; wish < wishes; ++wish) {
      const auto &cells = possibleCells();
      const Cell &cell = cells[(seed_ * static_cast<uint64_t>(wishes) + static_cast<uint64_t>(wish)) % cells.size()];
      for (int tries = 0, done = 0; tries < 20 && !done; ++tries)
        made += done = addOp(*cell.op, cell.dtype);
      for (int64_t among = wanted / wishes - 1, tries = 0; among > 0 && tries < 60 * wanted; ++tries) {
        const bool done = addOp(*random_.pick(op::allOps()), {});
        among -= done;
        made += done;
      }
    }
    for (int64_t tries = 0; made < wanted && tries < 60 * wanted; ++tries)
      made += addOp(*random_.pick(op::allOps()), {});
    finish();
    graph.inputs = std::move(inputs_);
    return graph;
  }

private:
  DType someType() {
    if (random_.chance(options_.f32Share))
      return f32;
    return static_cast<DType>(random_.below(kNumDTypes));
  }
  mlir::Location here() {
    return mlir::FileLineColLoc::get(&context_, "random", static_cast<unsigned>(values_.size()) + 1, 1);
  }

  Shape largeShape() {
    if (random_.chance(0.5))
      return {random_.between(4097, 9000)};
    return {random_.between(65, 100), random_.between(65, 100)};
  }

  /// One or two numbers become sizes that are known only when the program runs.
  void nameSizes() {
    for (const char *name : {"n", "m"}) {
      const auto value = random_.between(2, 6);
      if (!dims_.empty() && (dims_.front().first == value || random_.chance(0.5)))
        continue;
      const auto low = random_.between(0, value), high = value + random_.below(100);
      dims_.push_back({value, dim::symbol(name, low, high)});
      sizes_.bind(dims_.back().second, value);
    }
  }
  /// Every size that is such a number is taken for it. An attribute may only name what an input has: `given`.
  template <typename Sizes> Sizes symbolic(Sizes sizes, bool given = false) const {
    for (int64_t &size : sizes)
      for (auto [value, symbol] : dims_)
        if (size == value && (!given || llvm::is_contained(given_, symbol)))
          size = symbol;
    return sizes;
  }

  /// An input of the function, sometimes a constant. Given its contents, or random ones of the domain. An input's sizes
  /// are symbols where it is `dynamic`.
  size_t newValue(const TensorType &type, op::Domain domain, std::optional<HostTensor> contents = {},
                  bool dynamic = true) {
    HostTensor tensor = contents ? *contents : randomTensor(type, random_, domain);
    mlir::Value value;
    const TensorType declared{type.dtype, dynamic ? symbolic(type.shape) : type.shape};
    if (declared == type && random_.chance(0.25)) {
      value = graph::createConstant(builder_, here(), type, {tensor.data.get(), static_cast<size_t>(type.bytes())});
    } else {
      value = function_.getBody().front().addArgument(graph::toMlir(&context_, declared), here());
      inputs_.push_back(tensor);
      given_.append(declared.shape.begin(), declared.shape.end());
    }
    values_.push_back({value, tensor, tensor});
    return values_.size() - 1;
  }

  /// The operand with its place in the graph, or nothing yet: a type for which a new value will be made.
  struct Choice {
    TensorType type;
    std::optional<size_t> known;
  };

  /// Often one of the latest, so that programs are deep.
  size_t someKnown() {
    const auto count = static_cast<int64_t>(values_.size());
    const int64_t back = random_.chance(0.5) ? random_.below(std::min<int64_t>(count, 3)) : random_.below(count);
    return static_cast<size_t>(count - 1 - back);
  }

  /// Known values where their types fit, else new ones. With the first operand of type `dtype`, if that is given.
  std::optional<OpCall> choose(const OpInfo &op, std::optional<DType> dtype, std::vector<Choice> &choices) {
    choices.clear();
    if (op.operands.empty())
      return proposeCall(op, dtype.value_or(someType()), random_);
    size_t first = someKnown();
    for (int tries = 0; dtype && tries < 8 && values_[first].exact.type.dtype != *dtype; ++tries)
      first = someKnown();
    if (dtype && values_[first].exact.type.dtype != *dtype)
      return chooseAfter(proposeCall(op, *dtype, random_), choices);
    if (random_.chance(0.6) && op.operands.size() > 1) { // all of them known
      std::vector<TensorType> types;
      for (size_t i = 0; i < op.operands.size(); ++i) {
        const size_t k = i ? someKnown() : first;
        choices.push_back({values_[k].exact.type, k});
        types.push_back(choices.back().type);
      }
      if (auto call = proposeAttrs(op, types, random_, 4))
        return call;
      choices.clear();
    }
    std::optional<OpCall> call;
    const TensorType &start = values_[first].exact.type;
    if (random_.chance(0.85))
      call = proposeCall(op, start.dtype, random_, {}, &start);
    if (call)
      choices.push_back({start, first});
    else
      call = proposeCall(op, dtype.value_or(someType()), random_);
    return chooseAfter(std::move(call), choices);
  }

  /// The operands that are not chosen yet.
  std::optional<OpCall> chooseAfter(std::optional<OpCall> call, std::vector<Choice> &choices) {
    if (!call)
      return {};
    for (size_t i = choices.size(); i < call->operands.size(); ++i) {
      Choice choice{call->operands[i], {}};
      std::vector<size_t> same;
      for (size_t k = 0; k < values_.size(); ++k)
        if (values_[k].exact.type == choice.type)
          same.push_back(k);
      if (!same.empty() && random_.chance(0.6))
        choice.known = random_.pick(same);
      choices.push_back(choice);
    }
    return call;
  }

  /// Adds a call of `op`; false if what was made up is not legal, or not harmless.
  bool addOp(const OpInfo &op, std::optional<DType> dtype) {
    std::vector<Choice> choices;
    std::optional<OpCall> call = choose(op, dtype, choices);
    if (!call || call->results.empty() || (dtype && cellType(*call) != *dtype))
      return false;
    for (const TensorType &type : call->results)
      if (type.shape.numElements() > maxElements_ || type.shape.numElements() == 0)
        return false;

    // Tried on host tensors first: only then does it become part of the graph.
    std::vector<HostTensor> exact, blurred;
    for (size_t i = 0; i < choices.size(); ++i) {
      if (choices[i].known && inDomain(op, i, values_[*choices[i].known].exact)) {
        exact.push_back(values_[*choices[i].known].exact);
        blurred.push_back(values_[*choices[i].known].blurred);
      } else {
        choices[i].known.reset();
        exact.push_back(randomOperand(*call, i, random_));
        blurred.push_back(exact.back());
      }
    }
    op::interp::Evaluation result = op::interp::run(op, exact, call->attrs);
    op::interp::Evaluation other = op::interp::run(op, blurred, call->attrs);
    if (!result || !other)
      return false;
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      blur(other.outputs[i], *call);
      if (!isHarmless(result.outputs[i], other.outputs[i]))
        return false;
    }

    const std::optional<bool> dynamic = declaredSizes(*call, choices);
    if (!dynamic)
      return false;
    std::vector<mlir::Value> operands;
    for (size_t i = 0; i < choices.size(); ++i) {
      const size_t k = choices[i].known ? *choices[i].known : newValue(choices[i].type, {}, exact[i], *dynamic);
      operands.push_back(values_[k].value);
    }
    mlir::Operation *created = graph::createOp(builder_, here(), op, operands, call->attrs);
    for (size_t i = 0; i < result.outputs.size(); ++i)
      values_.push_back({created->getResult(static_cast<unsigned>(i)), result.outputs[i], other.outputs[i]});
    return true;
  }

  /// Whether new operands have symbols in their types: the op must accept the declared types, and its results at run
  /// time be those that were made up. The call's shape may come to name sizes. Nothing if neither way is legal.
  std::optional<bool> declaredSizes(OpCall &call, const std::vector<Choice> &choices) {
    if (dims_.empty())
      return false;
    for (bool dynamic : {true, false})
      for (bool named : {true, false}) {
        std::vector<TensorType> types;
        for (const Choice &choice : choices)
          types.push_back(
              choice.known ? graph::fromMlir(values_[*choice.known].value.getType())
                           : TensorType{choice.type.dtype, dynamic ? symbolic(choice.type.shape) : choice.type.shape});
        op::Attrs attrs = call.attrs;
        for (size_t i = 0; named && i < attrs.size(); ++i)
          if (auto *shape = std::get_if<op::Ints>(&attrs[i]);
              shape && call.op->attrs[i].name == std::string_view("shape"))
            *shape = symbolic(*shape, true);
        op::Inferred inferred = call.op->infer(*call.op, types, attrs);
        bool same = bool(inferred) && inferred.types.size() == call.results.size();
        for (size_t i = 0; same && i < inferred.types.size(); ++i)
          same = dim::isKnown(inferred.types[i].shape) && inferred.types[i].dtype == call.results[i].dtype &&
                 dim::evaluate(inferred.types[i].shape, sizes_) == call.results[i].shape;
        if (same) {
          call.attrs = attrs;
          return dynamic;
        }
      }
    return {};
  }

  bool inDomain(const OpInfo &op, size_t index, const HostTensor &tensor) {
    if (op.domains.empty())
      return true;
    // Indices are checked by the op itself.
    if (op.family == op::Family::Indexing && index > 0)
      return true;
    const op::Domain domain = domainOf(op, index);
    for (int64_t i = 0, n = tensor.type.shape.numElements(); i < n; ++i) {
      const double x = op::interp::load(tensor, i).as<double>();
      if (!(x >= domain.low && x <= domain.high))
        return false;
    }
    return true;
  }

  void blur(HostTensor &tensor, const OpCall &call) {
    if (!isFloat(tensor.type.dtype))
      return;
    const OpInfo &op = *call.op;
    double share = blurOf(tensor.type.dtype);
    for (const TensorType &operand : call.operands) // an op of many rounds in the types on its way
      share = op.decompose ? std::max(share, blurOf(operand.dtype)) : share;
    // A zero that a function of floats or a sum gives may be almost one elsewhere, which counts once it is a condition.
    const bool rounds = op.compute == op::ComputeClass::Float || op.decompose || op.combine == op::Combine::Sum;
    const double offset = !rounds ? 0 : tensor.type.dtype == f16 ? 1e-7 : 1e-20;
    for (int64_t i = 0, n = tensor.type.shape.numElements(); i < n; ++i) {
      const double x = op::interp::load(tensor, i).as<double>();
      op::interp::store(tensor, i, x * (1 + share * (2 * random_.unit() - 1)) + offset);
    }
  }

  static bool isHarmless(const HostTensor &exact, const HostTensor &blurred) {
    op::interp::Tolerance tolerance = op::interp::looseTolerance(exact.type.dtype);
    tolerance.rtol /= 4;
    tolerance.atol /= 4;
    if (isFloat(exact.type.dtype))
      for (int64_t i = 0, n = exact.type.shape.numElements(); i < n; ++i)
        if (!(std::abs(op::interp::load(exact, i).as<double>()) <= kLargest))
          return false;
    return op::interp::compare(blurred, exact, tolerance).empty();
  }

  /// Outputs: what nobody uses, and now and then a value that is used as well.
  void finish() {
    std::vector<mlir::Value> outputs;
    std::vector<mlir::Type> types;
    for (const Known &known : values_) {
      mlir::Operation *op = known.value.getDefiningOp();
      if (op && graph::infoOf(op) && (known.value.use_empty() || random_.chance(0.05))) {
        outputs.push_back(known.value);
        types.push_back(known.value.getType());
      }
    }
    mlir::func::ReturnOp::create(builder_, here(), outputs);
    mlir::Block &body = function_.getBody().front();
    function_.setFunctionType(builder_.getFunctionType(body.getArgumentTypes(), types));
    for (unsigned i = 0; i < body.getNumArguments(); ++i)
      function_.setArgAttr(i, graph::kNameAttr, builder_.getStringAttr("x" + std::to_string(i)));
    for (unsigned i = 0; i < outputs.size(); ++i)
      function_.setResultAttr(i, graph::kNameAttr, builder_.getStringAttr("y" + std::to_string(i)));
  }

  mlir::MLIRContext &context_;
  const RandomGraphOptions &options_;
  uint64_t seed_;
  Random random_;
  int64_t maxElements_ = 4096; ///< of any value
  mlir::OpBuilder builder_;
  mlir::func::FuncOp function_;
  std::vector<Known> values_;
  std::vector<std::pair<int64_t, int64_t>> dims_; ///< numbers that are symbols, with the symbol
  llvm::SmallVector<int64_t> given_;               ///< sizes of inputs
  dim::Values sizes_;                             ///< the same
  std::vector<HostTensor> inputs_;
};

} // namespace

RandomGraph randomGraph(mlir::MLIRContext &context, uint64_t seed, const RandomGraphOptions &options) {
  return Builder(context, seed, options).build();
}

const std::vector<Cell> &possibleCells() {
  static const std::vector<Cell> cells = [] {
    std::vector<Cell> list;
    for (const OpInfo *info : op::allOps())
      for (int type = 0; type < kNumDTypes; ++type) {
        const auto dtype = static_cast<DType>(type);
        Random random(17);
        bool possible = false;
        for (int tries = 0; tries < 40 && !possible; ++tries) {
          std::optional<OpCall> call = proposeCall(*info, dtype, random);
          possible = call && !call->results.empty() && cellType(*call) == dtype;
        }
        if (possible)
          list.push_back({info, dtype});
      }
    return list;
  }();
  return cells;
}

static bool isDynamic(mlir::ValueRange values) {
  return llvm::any_of(values, [](mlir::Value v) {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(v.getType());
    return type && (!type.hasStaticShape() || type.getEncoding());
  });
}

void Coverage::add(mlir::ModuleOp module) {
  module.walk([&](mlir::Operation *op) {
    const OpInfo *info = graph::infoOf(op);
    if (!info || op->getNumResults() == 0)
      return;
    mlir::Type type = op->getNumOperands() ? op->getOperand(0).getType() : op->getResult(0).getType();
    const bool nested = !llvm::isa<mlir::func::FuncOp>(op->getParentOp());
    const bool dynamic = isDynamic(op->getOperands()) || isDynamic(op->getResults());
    const Place place = nested ? Place::Nested : dynamic ? Place::Dynamic : Place::Static;
    ++counts_[info->name][graph::fromMlir(type).dtype][static_cast<size_t>(place)];
  });
}

std::string Coverage::table() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::left_justify("static/dynamic/nested", 22);
  for (int type = 0; type < kNumDTypes; ++type)
    os << llvm::right_justify(std::string(nameOf(static_cast<DType>(type))), 12);
  os << "\n";
  for (const OpInfo *info : op::allOps()) {
    os << llvm::left_justify(info->name, 22);
    auto row = counts_.find(info->name);
    for (int type = 0; type < kNumDTypes; ++type) {
      std::string cell = ".";
      if (row != counts_.end())
        if (auto at = row->second.find(static_cast<DType>(type)); at != row->second.end())
          cell =
              std::to_string(at->second[0]) + "/" + std::to_string(at->second[1]) + "/" + std::to_string(at->second[2]);
      os << llvm::right_justify(cell, 12);
    }
    os << "\n";
  }
  return text;
}

std::vector<std::string> Coverage::missing() const {
  std::vector<std::string> names;
  for (const Cell &cell : possibleCells()) {
    auto row = counts_.find(cell.op->name);
    if (row == counts_.end() || !row->second.count(cell.dtype))
      names.push_back(std::string(cell.op->name) + " of " + std::string(nameOf(cell.dtype)));
  }
  return names;
}

} // namespace tressel::test
