#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/BuilderEmitter.h"
#include "ir/graph/ControlGradient.h"
#include "ir/graph/Graph.h"
#include "ir/op/Exprs.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Passes.h.inc"

namespace {
/// Builds a tensor whose elements are all equal.
class Filled : op::expr::Fragment {
public:
  Filled(OpBuilder &b, Location loc) : Fragment(emitter_), emitter_(b, loc) {}
  Value like(Value value, double number) {
    const TensorType type = graph::fromMlir(value.getType());
    return graph::BuilderEmitter::value(emit(op::expr::full({type.shape.begin(), type.shape.end()}, number, type.dtype)));
  }

private:
  graph::BuilderEmitter emitter_;
};

bool holdsFloats(Value value) { return isFloat(graph::fromMlir(value.getType()).dtype); }

class Differentiate : public impl::DifferentiateBase<Differentiate> {
public:
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main) || failed(differentiate(*main)))
      signalPassFailure();
  }

private:
  static StringAttr nameOf(func::FuncOp main, unsigned argument) {
    for (StringRef attr : {StringRef(graph::kNameAttr), StringRef(graph::kStateAttr)})
      if (auto name = main.getArgAttrOfType<StringAttr>(argument, attr))
        return name;
    return StringAttr::get(main.getContext(), "arg" + Twine(argument));
  }

  FailureOr<SmallVector<BlockArgument>> inputsOf(func::FuncOp main) {
    SmallVector<BlockArgument> inputs;
    llvm::StringSet<> missing;
    for (const std::string &name : wrt)
      missing.insert(name);
    for (BlockArgument argument : main.getArguments()) {
      const StringRef name = nameOf(main, argument.getArgNumber());
      const bool named = missing.erase(name);
      if (named && !holdsFloats(argument))
        return main.emitError("there is no gradient with respect to '") << name << "' of " << argument.getType();
      if (named || (wrt.empty() && holdsFloats(argument)))
        inputs.push_back(argument);
    }
    if (!missing.empty())
      return main.emitError("no argument is called '") << missing.begin()->getKey() << "'";
    return inputs;
  }

  LogicalResult differentiate(func::FuncOp main) {
    Block &block = main.getBody().front();
    Operation *end = block.getTerminator();
    if (end->getNumOperands() == 0)
      return main.emitError("returns nothing whose gradient could be taken");
    const TensorType loss = graph::fromMlir(end->getOperand(0).getType());
    if (!isFloat(loss.dtype) || !loss.shape.isStatic() || loss.shape.numElements() != 1)
      return main.emitError("a gradient is that of one float, not of ") << end->getOperand(0).getType() << ", the first result";
    auto inputs = inputsOf(main);
    if (failed(inputs))
      return failure();
    for (Operation &op : llvm::make_early_inc_range(block))
      if (auto control = dyn_cast<graph::ControlOpInterface>(op))
        graph::exposeResiduals(control);
    OpBuilder b(end);
    graph::GradientContext context;
    SmallVector<Value> gradients;
    try {
      gradients = graph::gradientsOf(b, block, {end->getOperand(0)}, {Filled(b, end->getLoc()).like(end->getOperand(0), 1)},
                                     SmallVector<Value>(inputs->begin(), inputs->end()), context);
    } catch (const op::expr::NoGradient &e) {
      return main.emitError(e.message());
    }
    SmallVector<Value> results(end->getOperands());
    SmallVector<DictionaryAttr> attrs;
    main.getAllResultAttrs(attrs);
    attrs.resize(results.size());
    for (auto [gradient, input] : llvm::zip(gradients, *inputs)) {
      results.push_back(gradient ? gradient : Filled(b, end->getLoc()).like(input, 0));
      attrs.push_back(b.getDictionaryAttr(
          b.getNamedAttr(graph::kNameAttr, b.getStringAttr("grad." + nameOf(main, input.getArgNumber()).getValue()))));
      ++numGradients;
    }
    end->setOperands(results);
    main.setFunctionType(b.getFunctionType(main.getArgumentTypes(), ValueRange(results).getTypes()));
    main.setAllResultAttrs(attrs);
    return success();
  }
};
} // namespace
} // namespace tressel::passes
