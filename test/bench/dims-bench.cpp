// What a dynamic dimension costs: programs compiled for one size, for all sizes, and for all sizes by generated code
// alone, run in turn. Prints medians.
#include "ir/graph/Graph.h"
#include "test/support/SizedRun.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <random>

using namespace tressel;
using op::Ints;
using test::ProgramBuilder;

namespace {

using Build = mlir::OwningOpRef<mlir::ModuleOp> (*)(mlir::MLIRContext &, int64_t n);

TensorType floats(Shape shape) { return {f32, shape}; }

mlir::Value dense(ProgramBuilder &b, mlir::Value x, int64_t from, int64_t to, const std::string &name) {
  auto w = b.state(floats({from, to}), name + ".w"), bias = b.state(floats({to}), name + ".b");
  return b.op("relu", {b.op("add", {b.op("matmul", {x, w}), bias})});
}
mlir::OwningOpRef<mlir::ModuleOp> mlp(mlir::MLIRContext &context, int64_t n) {
  ProgramBuilder b(context);
  return b.finish({dense(b, dense(b, b.input(floats({n, 784})), 784, 512, "0"), 512, 512, "1")});
}
mlir::OwningOpRef<mlir::ModuleOp> images(mlir::MLIRContext &context, int64_t n) {
  ProgramBuilder b(context);
  mlir::Value x = b.input(floats({n, 16, 32, 32}));
  for (int i = 0; i < 2; ++i) {
    auto w = b.state(floats({32, i ? 32 : 16, 3, 3}), std::to_string(i));
    x = b.op("relu", {b.op("conv", {x, w}, {{"pad_low", Ints{1, 1}}, {"pad_high", Ints{1, 1}}})});
  }
  return b.finish({x});
}
mlir::OwningOpRef<mlir::ModuleOp> attention(mlir::MLIRContext &context, int64_t n) {
  ProgramBuilder b(context);
  auto q = b.input(floats({8, n, 64})), k = b.input(floats({8, n, 64})), v = b.input(floats({8, n, 64}));
  return b.finish({b.op("scaled_dot_product_attention", {q, k, v})});
}

double processorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A compiled program with its operands.
class Arm {
public:
  Arm(mlir::ModuleOp module, const codegen::CompileOptions &options, const dim::Values &dims) : dims_(dims) {
    codegen::CompiledProgram program = codegen::compile(module, options);
    auto executable = program.load();
    context_ = std::make_unique<runtime::Context>(executable);
    for (const runtime::KernelDesc &kernel : executable->schedule().kernels)
      libraryKernels += kernel.provider == "onednn";
    for (const runtime::StateDesc &state : executable->schedule().states)
      if (state.kind != runtime::StateKind::Derived)
        states_.push_back(memory(state.type));
    for (const runtime::ValueDesc &input : executable->schedule().inputs)
      inputs_.push_back(memory(input.type));
    for (const runtime::ValueDesc &output : executable->schedule().outputs)
      outputs_.push_back(memory(output.type));
    context_->bindStates(states_);
  }
  int libraryKernels = 0;
  double seconds() {
    const double before = processorSeconds();
    context_->run(inputs_, outputs_, dims_);
    return processorSeconds() - before;
  }

private:
  void *memory(const TensorType &type) {
    held_.push_back(op::HostTensor::allocate({type.dtype, dim::evaluate(type.shape, dims_)}));
    std::minstd_rand random(1);
    for (int64_t i = 0, n = held_.back().type.shape.numElements(); i < n; ++i)
      held_.back().as<float>()[i] = static_cast<float>(random() % 2000) / 1000 - 1;
    return held_.back().data.get();
  }
  dim::Values dims_;
  std::unique_ptr<runtime::Context> context_;
  std::vector<op::HostTensor> held_;
  std::vector<void *> states_, outputs_;
  std::vector<const void *> inputs_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace

int main() {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::DialectRegistry registry;
  graph::registerDialects(registry);
  context.appendDialectRegistry(registry);
  const Size n = dim::symbol("n", 1, 1024);
  std::printf("%-28s %12s %12s %12s %10s %10s\n", "program", "one size", "all sizes", "generated", "gen/all",
              "all/one");
  const std::tuple<const char *, Build, int64_t> rows[] = {{"784-512-512, n = 1", mlp, 1},
                                                           {"784-512-512, n = 256", mlp, 256},
                                                           {"two 3x3 convs, n = 1", images, 1},
                                                           {"two 3x3 convs, n = 16", images, 16},
                                                           {"attention 8x64, n = 64", attention, 64},
                                                           {"attention 8x64, n = 256", attention, 256}};
  for (const auto &[name, build, size] : rows) {
    dim::Values dims;
    dims.bind(n, size);
    auto fixed = build(context, size), all = build(context, n.number()), generated = build(context, n.number());
    Arm arms[] = {Arm(*fixed, {}, {}), Arm(*all, {}, dims), Arm(*generated, {.allowLibrary = false}, dims)};
    std::vector<double> samples[3];
    constexpr int rounds = 100;
    for (int round = 0; round < rounds + 5; ++round)
      for (int arm = 0; arm < 3; ++arm)
        if (const double seconds = arms[arm].seconds(); round >= 5)
          samples[arm].push_back(seconds);
    const double one = median(samples[0]), every = median(samples[1]), own = median(samples[2]);
    std::printf("%-28s %9.1f us %9.1f us %9.1f us %10.2f %10.2f   %d of oneDNN\n", name, one * 1e6, every * 1e6,
                own * 1e6, own / every, every / one, arms[1].libraryKernels);
  }
}
