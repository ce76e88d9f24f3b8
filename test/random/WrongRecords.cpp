// Bugs in records on purpose: each op of the table once more with one field that is wrong, in small programs that are
// compiled, against the interpreter's results of the right op. Prints, by field, for how many ops that was noticed.
//   wrong-records [--print]     --print names the ops for which it was not
// Exit status 1 if it was noticed for less than two thirds of the ops that have the field: some changes change nothing
// (`tril` is idempotent, though its record does not say so).
#include "ir/graph/Graph.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Element.h"
#include "ir/interpreter/Interpreter.h"
#include "passes/verify/ExtractProgram.h"
#include "test/random/Checks.h"
#include "test/support/Blur.h"
#include "test/support/RandomOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

#include <deque>
#include <map>

using namespace tressel;

namespace {

/// Copies live for ever: the type of an op in MLIR is their address.
std::deque<std::pair<std::string, op::OpInfo>> copies;
op::OpInfo &copyOf(const op::OpInfo &op) {
  auto &[name, info] = copies.emplace_back("wrong" + std::to_string(copies.size()) + "_" + op.name, op);
  info.name = name.c_str();
  return info;
}

/// A donor of a field: another op of the same operands and attributes.
bool isAlike(const op::OpInfo &a, const op::OpInfo &b) {
  return &a != &b && a.operands.size() == b.operands.size() && a.numResults == b.numResults && a.compute == b.compute &&
         std::equal(
             a.attrs.begin(), a.attrs.end(), b.attrs.begin(), b.attrs.end(),
             [](const op::AttrSpec &x, const op::AttrSpec &y) { return x.kind == y.kind && x.optional == y.optional; });
}

using Wrong = std::function<bool(op::OpInfo &)>; ///< false where the field does not matter

/// The rule of the op that was copied, but the last dimension is one longer.
std::map<const op::OpInfo *, const op::OpInfo *> originals;
op::Inferred inferLonger(const op::OpInfo &op, std::span<const TensorType> operands, const op::Attrs &attrs) {
  op::Inferred inferred = originals.at(&op)->infer(op, operands, attrs);
  for (TensorType &type : inferred.types)
    if (type.rank() > 0)
      type.shape[type.rank() - 1] += 1;
  return inferred;
}

/// That of the op that was copied, and one more, or the opposite.
std::vector<op::Emitter::Ref> decomposeAndMore(const op::OpInfo &op, op::Emitter &emitter,
                                               std::span<const op::Emitter::Ref> inputs, const op::Attrs &attrs) {
  std::vector<op::Emitter::Ref> results = originals.at(&op)->decompose(op, emitter, inputs, attrs);
  const DType type = emitter.typeOf(results.front()).dtype;
  const op::Emitter::Ref operands[] = {results.front(), emitter.constant(1, type)};
  results.front() = type == bool_ ? emitter.emit(*op::findOp("logical_not"), {operands, 1}, {}).front()
                                  : emitter.emit(*op::findOp("add"), operands, {}).front();
  return results;
}

const std::vector<std::pair<const char *, Wrong>> &fields() {
  static const std::vector<std::pair<const char *, Wrong>> list = {
      {"expression",
       [](op::OpInfo &wrong) {
         for (const op::OpInfo *other : op::allOps())
           if (wrong.elementwise && other->elementwise && isAlike(wrong, *other) &&
               wrong.elementwise->element == other->elementwise->element &&
               wrong.elementwise->boolOperands == other->elementwise->boolOperands &&
               wrong.elementwise->record != other->elementwise->record) {
             wrong.elementwise = other->elementwise;
             return !wrong.decompose;
           }
         return false;
       }},
      {"combine",
       [](op::OpInfo &wrong) {
         static const std::map<op::Combine, op::Combine> others = {
             {op::Combine::Sum, op::Combine::Max},       {op::Combine::Prod, op::Combine::Sum},
             {op::Combine::Max, op::Combine::Min},       {op::Combine::Min, op::Combine::Max},
             {op::Combine::Any, op::Combine::All},       {op::Combine::All, op::Combine::Any},
             {op::Combine::ArgMax, op::Combine::ArgMin}, {op::Combine::ArgMin, op::Combine::ArgMax}};
         auto other = others.find(wrong.combine);
         if (other == others.end() || wrong.decompose)
           return false;
         wrong.combine = other->second;
         return true;
       }},
      {"mean",
       [](op::OpInfo &wrong) {
         wrong.isMean = !wrong.isMean;
         return wrong.family == op::Family::Reduction && wrong.combine == op::Combine::Sum && !wrong.decompose;
       }},
      {"decomposition",
       [](op::OpInfo &wrong) {
         wrong.decompose = decomposeAndMore;
         return originals.at(&wrong)->decompose != nullptr;
       }},
      {"inference",
       [](op::OpInfo &wrong) {
         wrong.infer = inferLonger;
         return true;
       }},
      {"idempotent",
       [](op::OpInfo &wrong) {
         return !std::exchange(wrong.idempotent, true) && wrong.operands.size() == 1 && wrong.elementwise != nullptr;
       }},
      {"identity element",
       [](op::OpInfo &wrong) {
         wrong.identity = 2;
         return wrong.elementwise && wrong.operands.size() == 2 &&
                wrong.elementwise->element == op::ElementRule::Compute;
       }},
      {"is the identity",
       [](op::OpInfo &wrong) {
         wrong.isIdentity = [](const op::OpInfo &, std::span<const TensorType> from, std::span<const TensorType> to,
                               const op::Attrs &) { return from[0] == to[0]; };
         return wrong.operands.size() == 1 && wrong.elementwise != nullptr;
       }},
  };
  return list;
}

/// The op on its operands, on its own result, and on the operand with a constant of twos.
struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Program(mlir::MLIRContext &context, const op::OpInfo &op, const test::OpCall &call) {
    mlir::OpBuilder b(&context);
    const mlir::Location loc = b.getUnknownLoc();
    module = mlir::ModuleOp::create(loc);
    b.setInsertionPointToEnd(module->getBody());
    auto function = mlir::func::FuncOp::create(b, loc, "main", b.getFunctionType({}, {}));
    mlir::Block *body = function.addEntryBlock();
    b.setInsertionPointToEnd(body);
    llvm::SmallVector<mlir::Value> operands, results;
    for (const TensorType &type : call.operands)
      operands.push_back(body->addArgument(graph::toMlir(&context, type), loc));
    auto apply = [&](llvm::ArrayRef<mlir::Value> to) {
      std::vector<TensorType> types;
      for (mlir::Value value : to)
        types.push_back(graph::fromMlir(value.getType()));
      // The right op decides what is legal, so that both programs have the same parts.
      if (call.op->infer(*call.op, types, call.attrs) && op.infer(op, types, call.attrs))
        llvm::append_range(results, graph::createOp(b, loc, op, to, call.attrs)->getResults());
    };
    apply(operands);
    if (!operands.empty() && !results.empty() && operands[0].getType() == results[0].getType()) {
      llvm::SmallVector<mlir::Value> again(operands);
      again[0] = results[0];
      apply(again);
    }
    if (operands.size() == 2) {
      op::HostTensor twos = op::HostTensor::allocate(call.operands[1]);
      for (int64_t i = 0; i < twos.type.shape.numElements(); ++i)
        op::interp::store(twos, i, int64_t(2));
      apply({operands[0],
             graph::createConstant(b, loc, twos.type, {twos.data.get(), static_cast<size_t>(twos.type.bytes())})});
    }
    mlir::func::ReturnOp::create(b, loc, results);
    passes::setSignature(function);
  }
  mlir::func::FuncOp main() { return module->lookupSymbol<mlir::func::FuncOp>("main"); }
};

/// Whether one of a few random calls shows that `wrong` is not `right`; nothing if there was none.
std::optional<bool> isNoticed(mlir::MLIRContext &context, const op::OpInfo &right, const op::OpInfo &wrong,
                              const test::Check &check) {
  bool tried = false;
  test::Random random(5);
  for (int i = 0; i < 24; ++i) {
    const DType types[] = {f32, f32, i32, bool_};
    std::optional<test::OpCall> call = test::proposeCall(right, types[i % 4], random);
    if (!call || call->results.empty())
      continue;
    std::vector<op::HostTensor> inputs;
    for (size_t k = 0; k < call->operands.size(); ++k)
      inputs.push_back(test::randomOperand(*call, k, random));
    Program good(context, right, *call), bad(context, wrong, *call);
    graph::Interpretation want = graph::interpret(good.main(), inputs);
    if (!want)
      continue;
    tried = true;
    std::vector<op::HostTensor> got;
    if (!check(*bad.module, inputs, got).empty() || got.size() != want.outputs.size())
      return true;
    for (size_t k = 0; k < got.size(); ++k)
      if (!op::interp::compare(got[k], want.outputs[k], op::interp::looseTolerance(got[k].type.dtype)).empty())
        return true;
  }
  return tried ? std::optional(false) : std::nullopt;
}

} // namespace

int main(int argc, char **argv) {
  const bool print = argc > 1 && std::string_view(argv[1]) == "--print";
  mlir::DialectRegistry registry;
  graph::registerDialects(registry);
  const test::Check check = test::compiles(/*allowLibrary=*/false, /*quick=*/true);
  llvm::outs().SetUnbuffered();
  int status = 0;
  for (const auto &[field, change] : fields()) {
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    mlir::ScopedDiagnosticHandler quiet(&context, [](mlir::Diagnostic &) {});
    int noticed = 0, all = 0;
    for (const op::OpInfo *right : op::allOps()) {
      op::OpInfo &wrong = copyOf(*right);
      originals[&wrong] = right;
      if (!change(wrong))
        continue;
      std::optional<bool> seen = isNoticed(context, *right, wrong, check);
      all += seen.has_value();
      noticed += seen.value_or(false);
      if (print && seen == false)
        llvm::outs() << field << " of " << right->name << " was not noticed\n";
    }
    llvm::outs() << field << ": noticed for " << noticed << " of " << all << " ops\n";
    status |= noticed * 3 < all * 2 || all == 0;
  }
  return status;
}
