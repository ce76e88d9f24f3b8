// Planted faults are found: in a pass, in a kernel; and made small.
#include "codegen/Bisect.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/interpreter/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "tressel/runtime/CustomOp.h"
#include "tressel/runtime/ThreadPool.h"

#include <gtest/gtest.h>

#include <cstdio>

using namespace tressel;
using codegen::BisectReport;

namespace {

int32_t chunkyKernel(const tressel_call *call, int64_t begin, int64_t end) {
  const float *x = static_cast<const float *>(call->inputs[0].data);
  float *y = static_cast<float *>(call->outputs[0].data);
  for (int64_t i = begin; i < end; ++i)
    y[i] = x[i - begin]; // right only for the first chunk
  return 0;
}
int32_t splitHaterKernel(const tressel_call *call, int64_t begin, int64_t end) {
  if (begin == 0 && end == call->inputs[0].sizes[0])
    return 0;
  std::snprintf(call->message, static_cast<size_t>(call->message_bytes), "will not be split");
  return 1;
}

bool registerOps() {
  auto infer = [](runtime::CustomOp::Types in, const auto &) { return std::vector{in[0]}; };
  auto range = [](auto in, auto, const auto &) { return in[0].shape[0]; };
  runtime::registerCustomOp(
      {.name = "test.chunky", .symbol = "test_chunky", .kernel = chunkyKernel, .infer = infer, .range = range});
  runtime::registerCustomOp({.name = "test.splithater",
                             .symbol = "test_splithater",
                             .kernel = splitHaterKernel,
                             .infer = infer,
                             .range = range});
  return true;
}

class BisectTest : public testing::Test {
protected:
  BisectTest() {
    static const bool registered = registerOps();
    (void)registered;
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
    context.loadAllAvailableDialects();
  }

  BisectReport bisect(const std::string &body, codegen::BisectOptions options = {}) {
    const std::string text =
        R"(func.func @main(%x: tensor<64x32xf32> {tressel.name = "x"}, %w: tensor<32xf32> {tressel.state = "w"})
        -> (tensor<64x32xf32> {tressel.name = "y"}, tensor<64xf32> {tressel.name = "z"}) {
      )" +
        body + R"(
      return %y, %z : tensor<64x32xf32>, tensor<64xf32>
    })";
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    options.inputs = graph::randomInputs(module->lookupSymbol<mlir::func::FuncOp>("main"), 1);
    return codegen::bisect(*module, options);
  }
  static size_t numOps(const std::string &text) {
    size_t n = 0;
    for (size_t at = text.find("= tressel."); at != std::string::npos; at = text.find("= tressel.", at + 1))
      ++n;
    return n;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

const char *const kProgram = R"(
      %a = tressel.add %x, %w : (tensor<64x32xf32>, tensor<32xf32>) -> tensor<64x32xf32>
      %b = tressel.exp %a : (tensor<64x32xf32>) -> tensor<64x32xf32>
      %c = tressel.sub %b, %x : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
      %y = tressel.softmax %c {axis = 0 : i64} : (tensor<64x32xf32>) -> tensor<64x32xf32>
      %z = tressel.sum %b {axis = array<i64: 1>} : (tensor<64x32xf32>) -> tensor<64xf32>)";

TEST_F(BisectTest, FindsNothingInASoundProgram) {
  BisectReport report = bisect(kProgram);
  EXPECT_EQ(report.kind, BisectReport::Kind::Agrees) << report.difference;
  EXPECT_EQ(report.reproducer, "");
}

TEST_F(BisectTest, NamesThePassAndLeavesTheOp) {
  for (const char *pass : {"simplify", "form-clusters"}) {
    codegen::BisectOptions options;
    options.afterPass = [&](mlir::ModuleOp m, llvm::StringRef name) {
      if (name == pass)
        m.walk([](mlir::Operation *op) {
          if (op->getName().getStringRef() != "tressel.sub")
            return;
          mlir::OpBuilder b(op);
          op->replaceAllUsesWith(graph::createOp(b, op->getLoc(), *op::findOp("add"), op->getOperands(), {}));
          op->erase();
        });
      return mlir::success();
    };
    BisectReport report = bisect(kProgram, options);
    EXPECT_EQ(report.kind, BisectReport::Kind::Pass);
    EXPECT_EQ(report.culprit, pass);
    EXPECT_EQ(report.ops, "sub") << report.reproducer;
    EXPECT_EQ(numOps(report.reproducer), 1u) << report.reproducer;
    EXPECT_EQ(report.inputs.size(), 2u);
    EXPECT_NE(report.difference.find("output 'y'"), std::string::npos) << report.difference;
    // The reproducer is a program that shows it again.
    auto small = mlir::parseSourceString<mlir::ModuleOp>(report.reproducer, &context);
    ASSERT_TRUE(small);
    options.inputs = report.inputs;
    EXPECT_EQ(codegen::bisect(*small, options).culprit, pass);
  }
}

TEST_F(BisectTest, NamesTheKernel) {
  if (runtime::ThreadPool::global().numThreads() < 2)
    GTEST_SKIP() << "one thread splits nothing";
  std::string body = kProgram;
  body.replace(body.find("%b = tressel.exp %a"), 19, "%b = tressel.test.chunky %a");
  BisectReport report = bisect(body);
  EXPECT_EQ(report.kind, BisectReport::Kind::Kernel) << report.culprit;
  EXPECT_EQ(report.culprit, "test.chunky");
  EXPECT_EQ(report.provider, "custom");
  EXPECT_EQ(report.ops, "test.chunky");
  EXPECT_EQ(numOps(report.reproducer), 1u) << report.reproducer;
}

TEST_F(BisectTest, NamesWhatCannotRun) {
  if (runtime::ThreadPool::global().numThreads() < 2)
    GTEST_SKIP() << "one thread splits nothing";
  std::string body = kProgram;
  body.replace(body.find("%b = tressel.exp %a"), 19, "%b = tressel.test.splithater %a");
  BisectReport report = bisect(body);
  EXPECT_EQ(report.kind, BisectReport::Kind::CannotRun);
  EXPECT_NE(report.difference.find("will not be split"), std::string::npos) << report.difference;
  EXPECT_EQ(report.ops, "test.splithater") << report.reproducer;
}

} // namespace
