#include "test/random/Checks.h"
#include "ir/interpreter/Interpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace tressel::test {

Check simplifies() {
  return [](mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs,
            std::vector<op::HostTensor> &outputs) -> std::string {
    mlir::PassManager passes(module.getContext());
    passes.addPass(mlir::createCanonicalizerPass());
    passes.addPass(mlir::createCSEPass());
    if (mlir::failed(passes.run(module)) || mlir::failed(mlir::verify(module)))
      return "the simplifier fails";
    graph::Interpretation result = graph::interpret(module.lookupSymbol<mlir::func::FuncOp>("main"), inputs);
    outputs = std::move(result.outputs);
    return result.error;
  };
}

} // namespace tressel::test
