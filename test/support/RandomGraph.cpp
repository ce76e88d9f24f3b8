#include "test/support/RandomGraph.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Evaluate.h"
#include "passes/verify/ExtractProgram.h"
#include "test/support/Blur.h"
#include "test/support/NestOps.h"
#include "test/support/SymbolicSizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tressel::test {
namespace {

using op::HostTensor;
using op::OpInfo;

/// A value of the graph: what it is, and what it might be after rounding elsewhere than here.
struct Known {
  mlir::Value value;
  HostTensor exact, up, down;
};

class Builder {
public:
  Builder(mlir::MLIRContext &context, uint64_t seed, const RandomGraphOptions &options)
      : context_(context), options_(options), seed_(seed), random_(seed), up_(seed, Blur::Up), down_(seed, Blur::Down),
        builder_(&context) {}

  RandomGraph build() {
    mlir::Location loc = mlir::FileLineColLoc::get(&context_, "random", 1, 1);
    RandomGraph graph;
    graph.module = mlir::ModuleOp::create(loc);
    builder_.setInsertionPointToEnd(graph.module->getBody());
    function_ = mlir::func::FuncOp::create(builder_, loc, "main", builder_.getFunctionType({}, {}));
    builder_.setInsertionPointToStart(function_.addEntryBlock());
    if (random_.chance(options_.dynamicShare))
      sizes_.draw(random_);
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
      const Cell &cell =
          options_.cell ? *options_.cell
                        : cells[(seed_ * static_cast<uint64_t>(wishes) + static_cast<uint64_t>(wish)) % cells.size()];
      const int64_t before = made;
      for (int tries = 0, done = 0; tries < 40 && !done; ++tries)
        made += done =
            addOp(*cell.op, cell.dtype, cell.dynamic && !sizes_.empty() && tries < 25 ? Wanted::Dynamic : Wanted::Any);
      if (made > before)
        wishes_.push_back(values_.back().value.getDefiningOp());
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
    if (random_.chance(options_.nestedShare))
      nestOps(graph, random_, std::move(wishes_));
    return graph;
  }

private:
  DType someType() {
    if (options_.floats) {
      const auto type = random_.chance(0.8) ? *options_.floats : static_cast<DType>(random_.below(kNumDTypes));
      return isFloat(type) ? *options_.floats : type;
    }
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

  /// An input of the function, sometimes a constant. Given its contents, or random ones of the domain. An input's sizes
  /// are symbols where it is `dynamic`.
  size_t newValue(const TensorType &type, op::Domain domain, std::optional<HostTensor> contents = {},
                  bool dynamic = true) {
    HostTensor tensor = contents ? *contents : randomTensor(type, random_, domain);
    mlir::Value value;
    const TensorType declared = dynamic ? sizes_.declared(type) : type;
    if (declared == type && random_.chance(0.25)) {
      value = graph::createConstant(builder_, here(), type, {tensor.data.get(), static_cast<size_t>(type.bytes())});
    } else {
      value = function_.getBody().front().addArgument(graph::toMlir(&context_, declared), here());
      inputs_.push_back(tensor);
      sizes_.give(declared);
    }
    values_.push_back({value, tensor, tensor, tensor});
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
  enum class Wanted { Any, Dynamic };
  bool addOp(const OpInfo &op, std::optional<DType> dtype, Wanted wanted = Wanted::Any) {
    std::vector<Choice> choices;
    std::optional<OpCall> call = choose(op, dtype, choices);
    if (!call || call->results.empty() || (dtype && cellType(*call) != *dtype))
      return false;
    for (const TensorType &type : call->results)
      if (type.shape.numElements() > maxElements_ || type.shape.numElements() == 0)
        return false;
    auto isOtherFloat = [&](const TensorType &type) {
      return options_.floats && isFloat(type.dtype) && type.dtype != *options_.floats;
    };
    if (llvm::any_of(call->operands, isOtherFloat) || llvm::any_of(call->results, isOtherFloat) ||
        llvm::is_contained(options_.without, op.name))
      return false;

    std::vector<HostTensor> exact, up, down;
    std::vector<std::optional<TensorType>> known;
    for (size_t i = 0; i < choices.size(); ++i) {
      if (choices[i].known && inDomain(op, i, values_[*choices[i].known].exact)) {
        const Known &value = values_[*choices[i].known];
        known.push_back(graph::fromMlir(value.value.getType()));
        exact.push_back(value.exact), up.push_back(value.up), down.push_back(value.down);
      } else {
        choices[i].known.reset();
        known.push_back({});
        exact.push_back(randomOperand(*call, i, random_));
        up.push_back(exact.back()), down.push_back(exact.back());
      }
    }
    const op::Attrs attrs = call->attrs; // with numbers for sizes
    const std::optional<bool> dynamic = sizes_.declare(*call, known);
    if (!dynamic || (wanted == Wanted::Dynamic && !isDynamicCall(*call, known, *dynamic)))
      return false;

    // Tried on host tensors first: only then does it become part of the graph.
    op::interp::Evaluation result = op::interp::run(op, exact, attrs);
    op::interp::Evaluation above = op::interp::run(op, up, attrs), below = op::interp::run(op, down, attrs);
    if (!result || !above || !below)
      return false;
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      up_.apply(op, exact, above.outputs[i]);
      down_.apply(op, exact, below.outputs[i]);
      if (!isHarmless(result.outputs[i], above.outputs[i]) || !isHarmless(result.outputs[i], below.outputs[i]))
        return false;
    }

    std::vector<mlir::Value> operands;
    for (size_t i = 0; i < choices.size(); ++i) {
      const size_t k = choices[i].known ? *choices[i].known : newValue(choices[i].type, {}, exact[i], *dynamic);
      operands.push_back(values_[k].value);
    }
    mlir::Operation *created = graph::createOp(builder_, here(), op, operands, call->attrs);
    for (size_t i = 0; i < result.outputs.size(); ++i)
      values_.push_back(
          {created->getResult(static_cast<unsigned>(i)), result.outputs[i], above.outputs[i], below.outputs[i]});
    return true;
  }

  /// Whether an operand's size or an attribute is a symbol.
  bool isDynamicCall(const OpCall &call, const std::vector<std::optional<TensorType>> &known, bool dynamic) const {
    for (size_t i = 0; i < known.size(); ++i)
      if (isDynamic(known[i] ? *known[i] : dynamic ? sizes_.declared(call.operands[i]) : call.operands[i]))
        return true;
    return op::isSymbolic(call.attrs);
  }

  /// Outputs: what nobody uses, and now and then a value that is used as well.
  void finish() {
    std::vector<mlir::Value> outputs;
    for (const Known &known : values_) {
      mlir::Operation *op = known.value.getDefiningOp();
      if (op && graph::infoOf(op) && (known.value.use_empty() || random_.chance(0.05)))
        outputs.push_back(known.value);
    }
    mlir::func::ReturnOp::create(builder_, here(), outputs);
    passes::setSignature(function_);
  }

  mlir::MLIRContext &context_;
  const RandomGraphOptions &options_;
  uint64_t seed_;
  Random random_;
  Blur up_, down_;
  int64_t maxElements_ = 4096; ///< of any value
  mlir::OpBuilder builder_;
  mlir::func::FuncOp function_;
  std::vector<Known> values_;
  std::vector<mlir::Operation *> wishes_; ///< that were made
  SymbolicSizes sizes_;
  std::vector<HostTensor> inputs_;
};

} // namespace

RandomGraph randomGraph(mlir::MLIRContext &context, uint64_t seed, const RandomGraphOptions &options) {
  return Builder(context, seed, options).build();
}

} // namespace tressel::test
