// Random programs against the interpreter: compiled and run, here or on simulated machines, or only simplified.
//   random-graphs [--seed S] [--count N] [--check compile|devices|parts|ranks|gpu|simplify] [--no-library] [--quick]
//   [--well-every N] [--print]
//                 [--inject op|control] [--failures N] [--save FILE]
//   random-graphs --sum FILE... [--fill [--check ...]]
// Prints what was covered, by op, type and place; of 300 programs or more, an op and type that stood in none is a
// failure, of 2,000 or more one that did not stand in each place. --save writes that down, --sum adds up what several
// runs wrote; with --fill, programs of what they lack are made and checked as well, and what is still lacking is a
// failure however few programs there are. A program that gives other results is shrunk and printed with its seed. With
// --inject the program that is handed on is wrong (Inject.h): then it is a failure when that goes unnoticed. Exit
// status: 0 fine, 1 a failure, 2 usage.
#include "ir/graph/Graph.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Interpreter.h"
#include "test/random/Checks.h"
#include "test/random/Inject.h"
#include "test/support/RandomGraph.h"
#include "test/support/ShrinkGraph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <fstream>
#include <memory>
#include <optional>

using namespace tressel;

namespace {

llvm::cl::opt<uint64_t> seedOption("seed", llvm::cl::desc("of the first program"), llvm::cl::init(1));
llvm::cl::opt<int> countOption("count", llvm::cl::desc("number of programs"), llvm::cl::init(100));
llvm::cl::opt<std::string> checkOption("check", llvm::cl::desc("compile, devices, parts, ranks, gpu or simplify"),
                                       llvm::cl::init("compile"));
llvm::cl::opt<bool> noLibrary("no-library", llvm::cl::desc("compile without library kernels"));
llvm::cl::opt<bool> quickOption("quick", llvm::cl::desc("compile quickly rather than well"));
llvm::cl::opt<int> wellOption("well-every", llvm::cl::desc("compile every so-manieth well, for all that is quick"));
llvm::cl::opt<std::string> saveOption("save", llvm::cl::desc("a file for what was covered"));
llvm::cl::opt<bool> sumOption("sum", llvm::cl::desc("add up files that were saved"));
llvm::cl::opt<bool> fillOption("fill", llvm::cl::desc("make programs of what the sum lacks"));
llvm::cl::list<std::string> fileOptions(llvm::cl::Positional, llvm::cl::desc("saved files"));
llvm::cl::opt<std::string> injectOption("inject", llvm::cl::desc("op or control: change one behind the check's back"));
llvm::cl::opt<int> failuresOption("failures", llvm::cl::desc("end after so many"), llvm::cl::init(3));
llvm::cl::opt<bool> printOption("print", llvm::cl::desc("print every program"));

/// Copies: a linker that runs in this process resets LLVM's options.
struct Options {
  uint64_t seed = seedOption;
  int count = countOption, failures = failuresOption;
  bool inject = injectOption.getNumOccurrences() > 0, injectControl = injectOption == "control", print = printOption;
  int wellEvery = wellOption;
  std::string save = saveOption;
  bool fill = fillOption;
};

mlir::func::FuncOp mainOf(mlir::ModuleOp module) { return module.lookupSymbol<mlir::func::FuncOp>("main"); }

/// What is wrong with the outputs computed by `check` of a program, or "".
std::string problemOf(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs, const test::Check &check) {
  graph::Interpretation want = graph::interpret(mainOf(module), inputs);
  if (!want)
    return "the interpreter: " + want.error;
  mlir::OwningOpRef<mlir::ModuleOp> copy = mlir::cast<mlir::ModuleOp>(module->clone());
  std::vector<op::HostTensor> got;
  if (std::string error = check(*copy, inputs, got); !error.empty())
    return error;
  if (got.size() != want.outputs.size())
    return "gives " + std::to_string(got.size()) + " outputs";
  for (size_t i = 0; i < got.size(); ++i) {
    std::string difference =
        op::interp::compare(got[i], want.outputs[i], op::interp::looseTolerance(want.outputs[i].type.dtype));
    if (!difference.empty())
      return "output " + std::to_string(i) + " " + difference;
  }
  return "";
}

bool isWrongResult(const std::string &problem) { return llvm::StringRef(problem).starts_with("output "); }

/// What a run did: programs, failures, and where ops stood.
struct Summary {
  int64_t programs = 0, failures = 0;
  test::Coverage coverage;

  /// So many programs have to hold everything in every place.
  bool isComplete() const { return programs >= 2000; }

  void save(const std::string &path) const {
    std::ofstream(path) << programs << " " << failures << "\n" << coverage.text();
  }
  /// Adds a file; false if it is none.
  bool add(const std::string &path) {
    std::ifstream file(path);
    int64_t further = 0, failed = 0;
    std::string text;
    if (!(file >> further >> failed) || !std::getline(file, text, '\0'))
      return false;
    test::Coverage other;
    if (!other.parse(text))
      return false;
    programs += further, failures += failed;
    coverage.add(other);
    return true;
  }
  /// Prints it; whether all is fine, coverage included. A handful of programs cannot hold everything, unless they were
  /// made for it (`strict`).
  bool report(bool strict) const {
    llvm::outs() << "ops in " << programs << " programs, by type of the first operand\n" << coverage.table();
    const std::vector<test::Coverage::Gap> missing = coverage.missing(isComplete());
    if (programs < 300 && !strict)
      return failures == 0;
    for (const test::Coverage::Gap &gap : missing)
      llvm::errs() << "no program has " << gap.str() << "\n";
    return failures == 0 && missing.empty();
  }
};

/// A context with the dialects. What is uniqued in one is never freed, so it does not serve for ever.
std::unique_ptr<mlir::MLIRContext> makeContext() {
  mlir::DialectRegistry registry;
  graph::registerDialects(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

/// Adds up what was saved; nothing, with a message, where a file is something else.
std::optional<Summary> sumOf(const std::vector<std::string> &files) {
  Summary all;
  for (const std::string &file : files)
    if (!all.add(file)) {
      llvm::errs() << "random-graphs: " << file << " is not what --save writes\n";
      return std::nullopt;
    }
  return all;
}

} // namespace

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "Random programs against the reference interpreter\n");
  const Options options;
  test::MutationTally mutations;
  Summary summary;
  if (sumOption) {
    const std::optional<Summary> all = sumOf(fileOptions);
    if (!all)
      return 2;
    summary = *all;
    if (!options.fill) {
      const bool fine = summary.report(false);
      llvm::outs() << summary.programs << " programs, " << summary.failures << " failures\n";
      return fine ? 0 : 1;
    }
  }
  test::MemoryCoverage memory;
  test::GpuCoverage gpu;
  test::RankCoverage ranks;
  const test::Check well = checkOption == "compile" ? test::compiles(!noLibrary, false) : test::Check();
  test::Check usual = checkOption == "simplify"  ? test::simplifies()
                      : checkOption == "compile" ? test::compiles(!noLibrary, quickOption)
                      : checkOption == "devices" ? test::runsOnDevices(&mutations, &memory)
                      : checkOption == "parts"   ? test::runsInParts(&mutations)
                      : checkOption == "ranks"   ? test::runsAsRanks(&ranks)
                      : checkOption == "gpu"     ? test::runsOnGpu(&gpu)
                      : checkOption == "card"    ? test::runsOnGpu(&gpu, true)
                                                 : test::Check();
  if (!usual) {
    llvm::errs() << "random-graphs: --check is compile, devices, parts, ranks, gpu, card or simplify\n";
    return 2;
  }
  if (options.fill && (!sumOption || options.inject)) {
    llvm::errs() << "random-graphs: --fill goes with --sum\n";
    return 2;
  }
  if (options.inject && injectOption != "op" && injectOption != "control") {
    llvm::errs() << "random-graphs: --inject is op or control\n";
    return 2;
  }
  int injected = 0, noticed = 0;
  std::unique_ptr<mlir::MLIRContext> context;
  auto tryOne = [&](uint64_t number, const test::RandomGraphOptions &how, const std::string &made = "") {
    const std::string seed = std::to_string(number) + made;
    if (!context || summary.programs % 100 == 0)
      context = makeContext();
    test::RandomGraph graph = test::randomGraph(*context, number, how);
    const test::Check &check =
        well && options.wellEvery && number % static_cast<uint64_t>(options.wellEvery) == 0 ? well : usual;
    summary.coverage.add(*graph.module);
    ++summary.programs;
    if (options.print)
      llvm::outs() << "// seed " << seed << "\n" << *graph.module << "\n";
    if (mlir::failed(mlir::verify(*graph.module))) {
      llvm::errs() << "seed " << seed << ": the program does not verify\n";
      ++summary.failures;
      return;
    }
    if (options.inject) {
      // A wrong op that is not seen in the results (a maximum of positive numbers with 0, say) is no error, so only
      // those count whose results the interpreter finds different.
      mlir::OwningOpRef<mlir::ModuleOp> wrong = mlir::cast<mlir::ModuleOp>((*graph.module)->clone());
      if (!(options.injectControl ? test::injectWrongControl : test::injectWrongOp)(*wrong, number))
        return;
      graph::Interpretation a = graph::interpret(mainOf(*graph.module), graph.inputs);
      graph::Interpretation b = graph::interpret(mainOf(*wrong), graph.inputs);
      bool differs = false;
      for (size_t k = 0; a && b && k < a.outputs.size(); ++k) {
        op::interp::Tolerance wide = op::interp::looseTolerance(a.outputs[k].type.dtype);
        wide.rtol *= 4;
        wide.atol *= 4;
        differs |= !op::interp::compare(b.outputs[k], a.outputs[k], wide).empty();
      }
      if (!differs)
        return;
      ++injected;
      std::string problem = problemOf(*graph.module, graph.inputs, [&](mlir::ModuleOp, auto inputs, auto &outputs) {
        return check(*wrong, inputs, outputs);
      });
      noticed += !problem.empty();
      if (problem.empty())
        llvm::errs() << "seed " << seed << ": a wrong op went unnoticed\n";
      return;
    }
    std::string problem = problemOf(*graph.module, graph.inputs, check);
    if (problem.empty())
      return;
    ++summary.failures;
    llvm::errs() << "FAILED seed " << seed << ": " << problem << "\n";
    test::RandomGraph small = test::shrinkGraph(*graph.module, graph.inputs, [&](mlir::ModuleOp module, auto inputs) {
      if (mlir::failed(mlir::verify(module)) || !graph::interpret(mainOf(module), inputs))
        return false;                                            // shrunk too far
      const std::string left = problemOf(module, inputs, check); // a wrong result stays one, an error too
      return !left.empty() && isWrongResult(left) == isWrongResult(problem);
    });
    llvm::errs() << "from " << test::countOps(*graph.module) << " ops to " << test::countOps(*small.module) << ": "
                 << problemOf(*small.module, small.inputs, check) << "\n"
                 << *small.module << "\n";
  };
  uint64_t seed = options.seed;
  for (int i = 0; i < options.count && !options.fill && summary.failures < options.failures; ++i)
    tryOne(seed++, {});
  // What chance has left out: programs full of it.
  const int64_t byChance = summary.programs;
  if ((summary.isComplete() || options.fill) && !options.inject)
    for (const test::Coverage::Gap &gap : summary.coverage.missing(/*everywhere=*/summary.isComplete()))
      for (int tries = 0; tries < 20 && summary.failures < options.failures && summary.coverage.lacks(gap); ++tries)
        tryOne(seed++,
               {.dynamicShare = gap.place == test::Place::Dynamic ? 1.0 : 0.35, .nestedShare = 1, .cell = &gap.cell},
               " for " + gap.str());

  if (ranks.programs > 0)
    llvm::outs() << ranks.str() << "\n";
  if (gpu.programs > 0)
    llvm::outs() << gpu.str() << "\n";
  if (memory.programs > 0)
    llvm::outs() << memory.str() << "\n";
  if (options.inject) {
    llvm::outs() << noticed << " of " << injected << " wrong programs were noticed\n";
    return injected > 0 && noticed == injected ? 0 : 1;
  }
  if (mutations.schedules)
    llvm::outs() << mutations.text() << "\n";
  if (!options.save.empty())
    summary.save(options.save);
  if (options.fill)
    llvm::outs() << byChance << " programs of the files, " << summary.programs - byChance << " made of what they lack\n";
  return summary.report(options.fill) ? 0 : 1;
}
