// Which kernels a compilation makes, and which it has already: in the program, in the process, on disk.
#include "codegen/Compile.h"
#include "codegen/cpu/CompileKernels.h"
#include "ir/graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "test/unit/codegen/Harness.h"
#include "test/unit/frontend/Files.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Executable.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace tressel;
using namespace tressel::codegen;

namespace {

class KernelCache : public testing::Test {
protected:
  KernelCache() : context(mlir::MLIRContext::Threading::DISABLED) {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
    clearCaches();
  }
  CompiledProgram compile(const std::string &text, ObjectCache *disk) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
    EXPECT_TRUE(module);
    CompileOptions options;
    options.allowLibrary = false, options.cache = disk, options.report = &report;
    return codegen::compile(*module, options);
  }
  /// A program of a file, whose ops stand `shift` lines below where they stood. `index` is one of four rows.
  static std::string program(int shift) {
    auto at = [&](int line) { return " loc(\"model.cpp\":" + std::to_string(line + shift) + ":1)\n"; };
    return "func.func @main(%x: tensor<4x32xf32> {tressel.name = \"x\"}, %i: tensor<1xi64> {tressel.name = \"i\"})\n"
           "    -> (tensor<1x32xf32> {tressel.name = \"y\"}, tensor<4xf32> {tressel.name = \"z\"}) {\n"
           "  %0 = tressel.take %x, %i {axis = 0 : i64} : (tensor<4x32xf32>, tensor<1xi64>) -> tensor<1x32xf32>" + at(10) +
           "  %1 = tressel.exp %x : (tensor<4x32xf32>) -> tensor<4x32xf32>" + at(11) +
           "  %2 = tressel.sum %1 {axis = array<i64: 1>} : (tensor<4x32xf32>) -> tensor<4xf32>" + at(12) +
           "  return %0, %2 : tensor<1x32xf32>, tensor<4xf32>\n}";
  }

  mlir::MLIRContext context;
  CompileReport report;
};

TEST_F(KernelCache, EqualKernelsAreCompiledOnce) {
  const Target target("native");
  codegen::test::Graph g;
  const int32_t x = g.input({f32, {100}});
  g.results = {g.unary(op::ScalarOp::Exp, x)};
  auto plan = buildLoopPlan(g);
  ASSERT_TRUE(plan);
  const LoopSchedule schedule = scheduleLoops(*plan, target.features());
  const KernelSource first{*plan, schedule, {"first", {}, {}}, {}}, second{*plan, schedule, {"second", {}, {}}, {}};
  KernelCodeStats stats;
  const KernelCode code = compileKernels({first, second}, target, nullptr, &stats);
  EXPECT_EQ(code.objects.size(), 1u);
  EXPECT_EQ(stats.compiled, 1);
  EXPECT_EQ(stats.shared, 1);
  auto image = runtime::Image::load(linkImage(code));
  EXPECT_NE(image->find("first"), nullptr);
  EXPECT_EQ(image->find("first"), image->find("second"));
}

TEST_F(KernelCache, ASecondProgramTakesWhatTheFirstMade) {
  const CompiledProgram cold = compile(program(0), nullptr);
  EXPECT_GE(report.numCompiled, 2);
  EXPECT_EQ(report.numCached, 0);
  const CompiledProgram warm = compile(program(0), nullptr);
  EXPECT_EQ(report.numCompiled, 0);
  EXPECT_GE(report.numCached, 2);
  EXPECT_EQ(cold.image, warm.image);
}

TEST_F(KernelCache, AnotherProcessTakesThemFromDisk) {
  tressel::test::Folder folder;
  ObjectCache disk(folder / "cache");
  const CompiledProgram cold = compile(program(0), &disk);
  const int kernels = report.numCompiled;
  EXPECT_EQ(disk.info().entries, kernels);
  clearCaches(); // as another process is
  const CompiledProgram warm = compile(program(0), &disk);
  EXPECT_EQ(report.numCompiled, 0);
  EXPECT_EQ(report.numCached, kernels);
  EXPECT_EQ(cold.image, warm.image);
  clearCaches();
  compile(program(0), nullptr);
  EXPECT_EQ(report.numCompiled, kernels);
}

// Handles of sizes are numbers of one process; keys hold what they stand for.
TEST_F(KernelCache, SymbolicSizesAreTheSameInEveryProcess) {
  tressel::test::Folder folder;
  const std::string text = R"(
func.func @main(%x: tensor<?x24xf32, #tressel.dims<"rows", 24>> {tressel.name = "x"})
    -> (tensor<?xf32, #tressel.dims<"rows">> {tressel.name = "y"}) {
  %0 = tressel.exp %x : (tensor<?x24xf32, #tressel.dims<"rows", 24>>) -> tensor<?x24xf32, #tressel.dims<"rows", 24>>
  %1 = tressel.sum %0 {axis = array<i64: 1>} : (tensor<?x24xf32, #tressel.dims<"rows", 24>>) -> tensor<?xf32, #tressel.dims<"rows">>
  return %1 : tensor<?xf32, #tressel.dims<"rows">>
})";
  for (bool first : {true, false}) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ObjectCache disk(folder / "cache");
      if (!first)
        for (int i = 0; i < 100; ++i)
          dim::symbol("other" + std::to_string(i)) + i;
      compile(text, &disk);
      ::_exit(!HasFailure() && (report.numCompiled > 0) == first && (report.numCached > 0) != first ? 0 : 1);
    }
    int status = 1;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << first;
  }
}

TEST_F(KernelCache, DamagedEntriesAreCompiledAgain) {
  tressel::test::Folder folder;
  ObjectCache disk(folder / "cache");
  const CompiledProgram cold = compile(program(0), &disk);
  const int kernels = report.numCompiled;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(disk.folder()))
    if (entry.is_regular_file() && entry.path().filename() != "state")
      std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
  clearCaches();
  EXPECT_EQ(compile(program(0), &disk).image, cold.image);
  EXPECT_EQ(report.numCompiled, kernels);
  clearCaches();
  EXPECT_EQ(compile(program(0), &disk).image, cold.image);
  EXPECT_EQ(report.numCompiled, 0);
}

TEST_F(KernelCache, AnotherInstructionSetIsAnotherKernel) {
  compile(program(0), nullptr);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(program(0), mlir::ParserConfig(&context));
  CompileOptions options;
  options.cpu = "baseline", options.allowLibrary = false, options.cache = nullptr, options.report = &report;
  codegen::compile(*module, options);
  EXPECT_EQ(report.numCached, runtime::hostCpuLevel() == runtime::CpuLevel::Baseline ? report.numKernels : 0);
}

// Lines are no part of what is compiled: they move, nothing is compiled, and a failure names the line where the op is now.
TEST_F(KernelCache, ShiftedSourceCompilesNothing) {
  compile(program(0), nullptr);
  for (int shift : {1, 7}) {
    const CompiledProgram moved = compile(program(shift), nullptr);
    EXPECT_EQ(report.numCompiled, 0);
    auto executable = runtime::Executable::create(moved.schedule, moved.image, moved.constants.joined());
    runtime::Context run(executable);
    const std::vector<float> x(128, 1.0f);
    std::vector<float> y(32), z(4);
    const int64_t outside = 9;
    run.bindStates({});
    try {
      run.run(std::vector<const void *>{x.data(), &outside}, std::vector<void *>{y.data(), z.data()});
      ADD_FAILURE() << "row 9 of 4 was taken";
    } catch (const Error &e) {
      EXPECT_NE(std::string(e.what()).find("model.cpp:" + std::to_string(10 + shift)), std::string::npos) << e.what();
    }
  }
}

} // namespace
