// Kernels chosen by timing them: who is timed, when, and that the faster one is taken.
#include "codegen/Compile.h"
#include "codegen/Measure.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "passes/Pipeline.h"

#include "mlir/Parser/Parser.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace tressel;
using codegen::Measurements;

namespace {

const char *const chain = R"(
func.func @main(%x: tensor<64x96xf32> {tressel.name = "x"}, %w: tensor<96x96xf32> {tressel.state = "w"}) -> (tensor<64x96xf32> {tressel.name = "y"}) {
  %0 = tressel.matmul %x, %w : (tensor<64x96xf32>, tensor<96x96xf32>) -> tensor<64x96xf32>
  %1 = tressel.exp %0 : (tensor<64x96xf32>) -> tensor<64x96xf32>
  %2 = tressel.matmul %1, %w : (tensor<64x96xf32>, tensor<96x96xf32>) -> tensor<64x96xf32>
  return %2 : tensor<64x96xf32>
})";

/// Bids for single ops, at a price.
class Priced final : public passes::KernelProvider {
public:
  Priced(std::string name, double seconds, bool onlyContractions) : name_(std::move(name)), seconds_(seconds), only_(onlyContractions) {}
  llvm::StringRef name() const override { return name_; }
  graph::KernelTarget target() const override {
    return name_ == "generated" ? graph::KernelTarget::Host : graph::KernelTarget::HostLibrary;
  }
  std::optional<passes::Bid> bid(const passes::Candidate &c, llvm::ArrayRef<bool>) const override {
    if (c.ops.size() != 1 || (only_ && graph::infoOf(c.root)->family != op::Family::Contraction))
      return std::nullopt;
    passes::Bid bid;
    bid.seconds = seconds_;
    bid.params = name_ == "generated" ? "" : "{}";
    return bid;
  }

private:
  std::string name_;
  double seconds_;
  bool only_;
};

class Measure : public testing::Test {
protected:
  Measure() : context(mlir::MLIRContext::Threading::DISABLED) {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
    Measurements::clear();
  }
  /// Who runs the products.
  std::vector<std::string> chosen(Measurements &measurements) {
    std::vector<std::unique_ptr<passes::KernelProvider>> measured;
    passes::PipelineOptions options;
    for (const passes::KernelProvider *p : providers) {
      measured.push_back(codegen::makeMeasured(*p, measurements));
      options.providers.push_back(measured.back().get());
    }
    options.stopAfter = "form-clusters";
    auto module = mlir::parseSourceString<mlir::ModuleOp>(chain, mlir::ParserConfig(&context));
    EXPECT_TRUE(succeeded(passes::runPipeline(*module, options)));
    std::vector<std::string> names;
    module->walk([&](graph::ClusterOp cluster) {
      for (mlir::Operation &op : cluster.getBody().front())
        if (const op::OpInfo *info = graph::infoOf(&op); info && info->family == op::Family::Contraction)
          names.push_back(cluster.getProvider().str());
    });
    return names;
  }
  codegen::KernelTimer timer(double generated, double library) {
    return [=, this](mlir::ModuleOp module, const passes::KernelProvider &provider) -> std::optional<double> {
      ++timed;
      auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
      EXPECT_EQ(main.getNumArguments(), 2u);
      states += main.getArgAttr(1, graph::kStateAttr) ? 1 : 0;
      return provider.name() == "generated" ? generated : library;
    };
  }
  mlir::MLIRContext context;
  Priced generated{"generated", 10e-6, false}, library{"library", 5e-6, true};
  std::vector<const passes::KernelProvider *> providers{&generated, &library};
  int timed = 0, states = 0;
};

TEST_F(Measure, TheFasterOneIsTaken) {
  Measurements agreeing(providers, timer(10e-6, 4e-6), nullptr, "here");
  EXPECT_EQ(chosen(agreeing), (std::vector<std::string>{"library", "library"}));
  // Two providers, and the second product has the first one's sizes.
  EXPECT_EQ(timed, 2);
  EXPECT_EQ(states, 2); // the weights may be packed while they are timed, as they will be
  Measurements::clear();
  Measurements otherwise(providers, timer(1e-6, 4e-6), nullptr, "here");
  EXPECT_EQ(chosen(otherwise), (std::vector<std::string>{"generated", "generated"}));
}

TEST_F(Measure, WithoutAChoiceNothingIsTimed) {
  providers.pop_back();
  Measurements alone(providers, timer(1, 1), nullptr, "here");
  EXPECT_EQ(chosen(alone), (std::vector<std::string>{"generated", "generated"}));
  EXPECT_EQ(timed, 0);
  Priced hopeless("library", 1, true); // at 100000 times the price
  providers = {&generated, &hopeless};
  Measurements two(providers, timer(10e-6, 1e-6), nullptr, "here");
  EXPECT_EQ(chosen(two), (std::vector<std::string>{"generated", "generated"}));
  EXPECT_EQ(timed, 1);
}

TEST_F(Measure, WhatCannotBeTimedIsPredicted) {
  auto none = [](mlir::ModuleOp, const passes::KernelProvider &) -> std::optional<double> { return std::nullopt; };
  Measurements measurements(providers, none, nullptr, "here");
  EXPECT_EQ(chosen(measurements), (std::vector<std::string>{"library", "library"}));
  EXPECT_EQ(measurements.numFailed(), 2);
}

TEST_F(Measure, TimesAreKept) {
  const std::string folder = testing::TempDir() + "measure-" + std::to_string(::getpid());
  {
    codegen::ObjectCache cache(folder);
    Measurements first(providers, timer(1e-6, 4e-6), &cache, "here");
    chosen(first);
    EXPECT_EQ(first.numMeasured(), 2);
    Measurements::clear(); // another process
    Measurements second(providers, timer(9, 9), &cache, "here");
    EXPECT_EQ(chosen(second), (std::vector<std::string>{"generated", "generated"}));
    EXPECT_EQ(second.numMeasured(), 0);
    Measurements::clear();
    Measurements elsewhere(providers, timer(9e-6, 4e-6), &cache, "there"); // a machine of its own
    EXPECT_EQ(chosen(elsewhere), (std::vector<std::string>{"library", "library"}));
    EXPECT_EQ(elsewhere.numMeasured(), 2);
  }
  std::filesystem::remove_all(folder);
}

TEST_F(Measure, LayoutsFollowWhatIsMeasured) {
  // A convolution between transposes that a pass may drop: it asks for bids on ops that stand nowhere yet.
  const char *const network = R"(
func.func @main(%x: tensor<1x32x32x64xf32> {tressel.name = "x"}, %w: tensor<64x64x3x3xf32> {tressel.state = "w"}) -> (tensor<1x32x32x64xf32> {tressel.name = "y"}) {
  %0 = tressel.transpose %x {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x32x32x64xf32>) -> tensor<1x64x32x32xf32>
  %1 = tressel.conv %0, %w {pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>} : (tensor<1x64x32x32xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x32x32xf32>
  %2 = tressel.transpose %1 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x64x32x32xf32>) -> tensor<1x32x32x64xf32>
  return %2 : tensor<1x32x32x64xf32>
})";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(network, mlir::ParserConfig(&context));
  codegen::CompileOptions options;
  codegen::CompileReport report;
  options.cache = nullptr, options.measure = true, options.winograd = true, options.report = &report;
  codegen::CompiledProgram program = codegen::compile(*module, options);
  EXPECT_GE(report.numMeasured, 3);
  EXPECT_EQ(program.schedule.kernels.size(), 2u); // the weights are packed, and there is no transpose left
}

TEST_F(Measure, RealKernels) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(chain, mlir::ParserConfig(&context));
  codegen::CompileOptions options;
  codegen::CompileReport report;
  options.cache = nullptr, options.measure = true, options.report = &report;
  codegen::CompiledProgram program = codegen::compile(*module, options);
  EXPECT_GE(report.numMeasured, 2);
  EXPECT_GE(program.schedule.kernels.size(), 2u);
  module = mlir::parseSourceString<mlir::ModuleOp>(chain, mlir::ParserConfig(&context));
  codegen::compile(*module, options);
  EXPECT_EQ(report.numMeasured, 0); // the process knows
}

} // namespace
