#include "codegen/Compile.h"
#include "ir/graph/Graph.h"
#include "test/random/Checks.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tressel::test {

Check compiles(bool allowLibrary) {
  return [allowLibrary](mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs,
                        std::vector<op::HostTensor> &outputs) -> std::string {
    std::vector<const void *> in;
    for (const op::HostTensor &t : inputs)
      in.push_back(t.data.get());
    std::vector<void *> out;
    for (mlir::Type type : module.lookupSymbol<mlir::func::FuncOp>("main").getResultTypes()) {
      outputs.push_back(op::HostTensor::allocate(graph::fromMlir(type)));
      out.push_back(outputs.back().data.get());
    }
    try {
      codegen::CompileOptions options;
      options.allowLibrary = allowLibrary;
      codegen::CompiledProgram program = codegen::compile(module, options);
      runtime::Context context(
          runtime::Executable::create(std::move(program.schedule), program.image, program.constants));
      context.bindStates({});
      context.run(in, out);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
}

} // namespace tressel::test
