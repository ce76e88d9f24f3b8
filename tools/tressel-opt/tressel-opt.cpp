// tressel-opt: parses, verifies, runs passes on the command line, prints. For tests and for looking at single passes.
#include "ModelProviders.h"

#include "codegen/Compile.h"
#include "codegen/CustomProvider.h"
#include "ir/graph/Graph.h"
#include "ir/sched/Sched.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Pipeline.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/MachineModel.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

namespace {
using namespace tressel;

llvm::cl::opt<bool>
    verifyEach("tressel-verify-each",
               llvm::cl::desc("interpret before and after each pass of --tressel-pipeline, name the culprit"));
llvm::cl::opt<int64_t> verifyWork("tressel-verify-work", llvm::cl::init(500'000'000),
                                  llvm::cl::desc("operations that --tressel-verify-each interprets at once"));
llvm::cl::opt<bool> passTiming("tressel-pass-timing",
                               llvm::cl::desc("print the seconds of each pass of --tressel-pipeline"));
llvm::cl::list<std::string> disabled("tressel-disable-pass", llvm::cl::CommaSeparated,
                                     llvm::cl::desc("passes that --tressel-pipeline leaves out"));
llvm::cl::opt<std::string> stopAfter("tressel-stop-after", llvm::cl::desc("last pass of --tressel-pipeline"));
llvm::cl::opt<int64_t> streams("tressel-streams", llvm::cl::init(1), llvm::cl::desc("compute streams of the CPU"));

llvm::cl::opt<std::string> machineName("tressel-machine", llvm::cl::desc("what programs are placed on: sim:NAME or sim:FILE.json"));

/// Null: this host alone.
const runtime::MachineModel *machine() {
  if (machineName.empty())
    return nullptr;
  try {
    static const runtime::MachineModel model = runtime::machineNamed(machineName);
    return &model;
  } catch (const Error &error) {
    llvm::errs() << "--tressel-machine: " << error.message() << "\n";
    std::exit(1);
  }
}

llvm::cl::opt<bool>
    ownKernels("tressel-kernels-of-this-machine",
               llvm::cl::desc("let the providers of this machine bid in --tressel-pipeline, not those of the "
                              "fixed model that makes tests independent of it"));

passes::Providers providers() {
  static const auto custom = codegen::makeCustomProvider();
  if (!ownKernels) {
    passes::Providers model = tools::modelProviders();
    model.push_back(custom.get());
    return model;
  }
  static const codegen::ProviderSet machine("native", /*allowLibrary=*/true);
  return machine.list;
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
    options.machine = machine();
    options.verifyEach = verifyEach;
    options.verifyWork = verifyWork;
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
  passes::registerPasses([] {
    passes::PipelineOptions options;
    options.providers = options.hostProviders = tools::modelProviders();
    options.machine = machine();
    return options;
  });
  mlir::PassRegistration<WholePipeline>();
  auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, "Tressel's optimizer driver\n", registry);
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> text = mlir::openInputFile(input, &error);
  if (text)
    error = graph::problemForParser(text->getBuffer(), input);
  std::unique_ptr<llvm::ToolOutputFile> file = error.empty() ? mlir::openOutputFile(output, &error) : nullptr;
  if (!error.empty()) {
    llvm::errs() << error << "\n";
    return 1;
  }
  const auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (mlir::failed(mlir::MlirOptMain(file->os(), std::move(text), registry, config)))
    return 1;
  file->keep();
  return 0;
}
