#include "test/random/Checks.h"
#include "codegen/Compile.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Interpreter.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"

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

Check compiles(bool allowLibrary, bool quick) {
  return [allowLibrary, quick](mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs,
                               std::vector<op::HostTensor> &outputs) -> std::string {
    std::vector<const void *> in;
    for (const op::HostTensor &t : inputs)
      in.push_back(t.data.get());
    auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
    dim::Values sizes;
    for (auto [type, tensor] : llvm::zip_equal(main.getArgumentTypes(), inputs))
      if (std::string problem = dim::unify(graph::fromMlir(type).shape, tensor.type.shape, sizes, true);
          !problem.empty())
        return problem;
    std::vector<void *> out;
    try {
      for (mlir::Type type : main.getResultTypes()) {
        const TensorType declared = graph::fromMlir(type);
        outputs.push_back(op::HostTensor::allocate({declared.dtype, dim::evaluate(declared.shape, sizes)}));
        out.push_back(outputs.back().data.get());
      }
      codegen::CompileOptions options;
      options.cache = nullptr; // what is tested is compiled, and the user's cache is not for programs that nobody wrote
      options.allowLibrary = allowLibrary;
      options.quickCode = quick;
      codegen::CompiledProgram program = codegen::compile(module, options);
      runtime::Context context(
          runtime::Executable::create(std::move(program.schedule), program.image, program.constants.joined()));
      context.bindStates({});
      context.run(in, out, sizes);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
}

} // namespace tressel::test
