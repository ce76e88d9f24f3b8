#include "test/random/Checks.h"
#include "codegen/Compile.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Interpreter.h"
#include "test/support/Placement.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Simulated.h"

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

namespace {
using Run = std::function<void(mlir::ModuleOp module, llvm::ArrayRef<const void *> in, llvm::ArrayRef<void *> out,
                               const dim::Values &sizes)>;
Check runs(Run run) {
  return [run = std::move(run)](mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs,
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
      run(module, in, out, sizes);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
}

std::shared_ptr<const runtime::Executable> executableOf(mlir::ModuleOp module, codegen::CompileOptions options,
                                                        const std::function<void(const runtime::Schedule &)> &look = {}) {
  options.cache = nullptr; // what is tested is compiled, and the user's cache is not for programs that nobody wrote
  codegen::CompiledProgram program = codegen::compile(module, options);
  if (look)
    look(program.schedule);
  return runtime::Executable::create(std::move(program.schedule), program.image, program.constants.joined());
}
} // namespace

Check compiles(bool allowLibrary, bool quick) {
  return runs([allowLibrary, quick](mlir::ModuleOp module, auto in, auto out, const dim::Values &sizes) {
    runtime::Context context(executableOf(module, {.allowLibrary = allowLibrary, .quickCode = quick}));
    context.bindStates({});
    context.run(in, out, sizes);
  });
}

Check runsOnDevices(MutationTally *tally) {
  return runs([tally](mlir::ModuleOp module, auto in, auto out, const dim::Values &sizes) {
    uint64_t seed = 1; // the same for the same program, also while it is shrunk
    module.walk(
        [&](mlir::Operation *op) { seed = seed * 31 + op->getNumOperands() + op->getName().getStringRef().size(); });
    runtime::MachineModel model = runtime::machinePreset("2gpu-pcie3");
    if (seed % 3 == 0) // copies take long, but begin at once: it pays to cut what waits for them
      for (runtime::LinkModel &link : model.links)
        link.bytesPerSecond = 1e6, link.latencySeconds = 1e-12;
    if (seed % 6 == 0) // and longer still without pinned memory: it pays to copy into it first
      for (runtime::RouteModel &route : model.routes)
        route.pageableBytesPerSecond = 1e5;
    placeAtRandom(module, seed, 2);
    auto executable = executableOf(module, {.machine = &model, .quickCode = true}, [&](const runtime::Schedule &s) {
      if (!tally)
        return;
      if (const std::string problem = tryMutations(s.dims.empty() ? s : runtime::instantiate(s, sizes), *tally); !problem.empty())
        throw Error(problem);
    });
    auto machine = runtime::SimulatedMachine::create(
        model, {.interleaving = seed, .checkRaces = true, .poison = true, .isolate = true, .checkCopies = true});
    runtime::Executor executor(executable, machine);
    executor.bindStates({});
    executor.run(in, out, sizes);
  });
}

} // namespace tressel::test
