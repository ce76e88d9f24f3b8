#include "passes/verify/ExtractProgram.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tressel::passes {

ExtractedProgram extractProgram(ArrayRef<Operation *> ops) {
  ExtractedProgram program;
  llvm::SmallDenseSet<Operation *> inside(ops.begin(), ops.end());
  llvm::SetVector<Value> inputs;
  llvm::SetVector<Operation *> constants;
  for (Operation *op : ops) {
    op->walk([&](Operation *nested) { // ops in regions use values from outside
      for (Value operand : nested->getOperands()) {
        Operation *def = operand.getDefiningOp(), *owner = operand.getParentBlock()->getParentOp();
        bool isWithin = def ? op->isProperAncestor(def) || inside.contains(def) : owner && op->isAncestor(owner);
        if (isWithin)
          continue;
        if (def && matchPattern(operand, m_Constant()))
          constants.insert(def);
        else
          inputs.insert(operand);
      }
    });
    for (Value result : op->getResults())
      if (result.use_empty() || llvm::any_of(result.getUsers(), [&](Operation *user) {
            while (user && user->getBlock() != op->getBlock())
              user = user->getParentOp();
            return !user || !inside.contains(user);
          }))
        program.results.push_back(result);
  }
  program.inputs.assign(inputs.begin(), inputs.end());

  MLIRContext *context = ops.front()->getContext();
  Location loc = UnknownLoc::get(context);
  program.module = ModuleOp::create(loc);
  if (graph::keepsSubnormals(ops.front()))
    (*program.module)->setAttr(graph::kKeepSubnormalsAttr, UnitAttr::get(context));
  if (graph::isDeterministic(ops.front()))
    (*program.module)->setAttr(graph::kDeterministicAttr, UnitAttr::get(context));
  OpBuilder b(program.module->getBodyRegion());
  auto types = [](ArrayRef<Value> values) { return llvm::map_to_vector(values, [](Value v) { return v.getType(); }); };
  auto main = func::FuncOp::create(b, loc, "main", b.getFunctionType(types(program.inputs), types(program.results)));
  Block *block = main.addEntryBlock();
  b.setInsertionPointToEnd(block);
  IRMapping map;
  for (auto [value, argument] : llvm::zip(program.inputs, block->getArguments()))
    map.map(value, argument);
  for (Operation *constant : constants)
    b.clone(*constant, map);
  for (Operation *op : ops)
    b.clone(*op, map);
  func::ReturnOp::create(b, loc, llvm::map_to_vector(program.results, [&](Value v) { return map.lookup(v); }));
  setSignature(main);
  return program;
}

void setSignature(func::FuncOp function) {
  Builder b(function.getContext());
  Block &body = function.getBody().front();
  function.removeArgAttrsAttr();
  function.removeResAttrsAttr();
  function.setFunctionType(b.getFunctionType(body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    function.setArgAttr(i, graph::kNameAttr, b.getStringAttr("x" + std::to_string(i)));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    function.setResultAttr(i, graph::kNameAttr, b.getStringAttr("y" + std::to_string(i)));
}

} // namespace tressel::passes
