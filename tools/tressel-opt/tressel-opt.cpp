// tressel-opt: parses, verifies, runs passes on the command line, prints. For tests and for looking at single passes.
#include "ModelProviders.h"

#include "codegen/cpu/GeneratedProvider.h"
#include "codegen/onednn/Provider.h"
#include "ir/graph/Graph.h"
#include "ir/sched/Sched.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Pipeline.h"
#include "llvm/Support/CommandLine.h"

namespace {
using namespace tressel;

llvm::cl::opt<bool>
    verifyEach("tressel-verify-each",
               llvm::cl::desc("interpret before and after each pass of --tressel-pipeline, name the culprit"));
llvm::cl::opt<bool> passTiming("tressel-pass-timing",
                               llvm::cl::desc("print the seconds of each pass of --tressel-pipeline"));
llvm::cl::list<std::string> disabled("tressel-disable-pass", llvm::cl::CommaSeparated,
                                     llvm::cl::desc("passes that --tressel-pipeline leaves out"));
llvm::cl::opt<std::string> stopAfter("tressel-stop-after", llvm::cl::desc("last pass of --tressel-pipeline"));
llvm::cl::opt<int64_t> streams("tressel-streams", llvm::cl::init(1), llvm::cl::desc("compute streams of the CPU"));

llvm::cl::opt<bool>
    ownKernels("tressel-kernels-of-this-machine",
               llvm::cl::desc("let the providers of this machine bid in --tressel-pipeline, not those of the "
                              "fixed model that makes tests independent of it"));

passes::Providers providers() {
  if (!ownKernels)
    return tools::modelProviders();
  static const codegen::Target target("native");
  static const auto generated = codegen::makeGeneratedProvider(target);
  static const auto library = onednn::makeProvider();
  return {generated.get(), library.get()};
}

/// The whole pipeline as one pass of the command line.
struct WholePipeline : mlir::PassWrapper<WholePipeline, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WholePipeline)
  llvm::StringRef getArgument() const final { return "tressel-pipeline"; }
  llvm::StringRef getDescription() const final { return "all passes, from a graph to a verified schedule"; }
  void getDependentDialects(mlir::DialectRegistry &registry) const final { sched::registerDialect(registry); }
  void runOnOperation() override {
    std::vector<passes::PassTime> timings;
    passes::PipelineOptions options;
    options.providers = providers();
    options.disabled = {disabled.begin(), disabled.end()};
    options.stopAfter = stopAfter;
    options.streams = streams;
    options.verifyEach = verifyEach;
    options.timings = &timings;
    if (failed(passes::runPipeline(getOperation(), options)))
      signalPassFailure();
    if (passTiming)
      llvm::errs() << passes::formatTimings(timings);
  }
};
} // namespace

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  graph::registerDialects(registry);
  sched::registerDialect(registry);
  mlir::registerTransformsPasses();
  passes::registerPasses(tools::modelProviders());
  mlir::PassRegistration<WholePipeline>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Tressel's optimizer driver\n", registry));
}
