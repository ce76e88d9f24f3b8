// Whole programs through the pipeline, code generation and the executor, against the interpreter.
#include "codegen/Compile.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Interpreter.h"
#include "ir/op/ScalarProgram.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"

#include "mlir/Parser/Parser.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace tressel;

namespace {

const char *const mlp = R"(
func.func @main(%x: tensor<64x784xf32> {tressel.name = "x"}, %w: tensor<784x256xf32> {tressel.state = "0.weight"},
                %b: tensor<256xf32> {tressel.state = "0.bias"}) -> (tensor<64x256xf32> {tressel.name = "out"}) {
  %0 = tressel.matmul %x, %w : (tensor<64x784xf32>, tensor<784x256xf32>) -> tensor<64x256xf32>
  %1 = tressel.add %0, %b : (tensor<64x256xf32>, tensor<256xf32>) -> tensor<64x256xf32>
  %2 = tressel.relu %1 : (tensor<64x256xf32>) -> tensor<64x256xf32>
  %3 = tressel.softmax %2 {axis = -1 : i64} : (tensor<64x256xf32>) -> tensor<64x256xf32>
  return %3 : tensor<64x256xf32>
})";

const char *const convnet = R"(
func.func @main(%x: tensor<2x1x12x12xf32> {tressel.name = "x"}, %w: tensor<6x1x5x5xf32> {tressel.state = "w"},
                %b: tensor<6x1x1xf32> {tressel.state = "b"}) -> (tensor<2x216xf32> {tressel.name = "out"}, tensor<6x1x1xf32> {tressel.state = "b"}) {
  %0 = tressel.conv %x, %w {pad_low = array<i64: 2, 2>, pad_high = array<i64: 2, 2>} : (tensor<2x1x12x12xf32>, tensor<6x1x5x5xf32>) -> tensor<2x6x12x12xf32>
  %1 = tressel.add %0, %b : (tensor<2x6x12x12xf32>, tensor<6x1x1xf32>) -> tensor<2x6x12x12xf32>
  %2 = tressel.relu %1 : (tensor<2x6x12x12xf32>) -> tensor<2x6x12x12xf32>
  %3 = tressel.max_pool %2 {window = array<i64: 2, 2>} : (tensor<2x6x12x12xf32>) -> tensor<2x6x6x6xf32>
  %4 = tressel.reshape %3 {shape = array<i64: 2, 216>} : (tensor<2x6x6x6xf32>) -> tensor<2x216xf32>
  %5 = tressel.add %b, %b : (tensor<6x1x1xf32>, tensor<6x1x1xf32>) -> tensor<6x1x1xf32>
  return %4, %5 : tensor<2x216xf32>, tensor<6x1x1xf32>
})";

// Heads in groups of two, with what stands before and after.
const char *const attention = R"(
func.func @main(%x: tensor<2x6x70x16xf32> {tressel.name = "x"}, %k: tensor<2x3x50x16xf32> {tressel.name = "k"},
                %v: tensor<2x3x50x24xf32> {tressel.name = "v"}) -> (tensor<2x6x70x24xf32> {tressel.name = "out"}) {
  %q = tressel.tanh %x : (tensor<2x6x70x16xf32>) -> tensor<2x6x70x16xf32>
  %0 = tressel.scaled_dot_product_attention %q, %k, %v {causal = true} : (tensor<2x6x70x16xf32>, tensor<2x3x50x16xf32>, tensor<2x3x50x24xf32>) -> tensor<2x6x70x24xf32>
  %1 = tressel.abs %0 : (tensor<2x6x70x24xf32>) -> tensor<2x6x70x24xf32>
  return %1 : tensor<2x6x70x24xf32>
})";

// No head, and no image: nothing to do, which is no error.
const char *const noAttention = R"(
func.func @main(%q: tensor<2x0x3x8xf32> {tressel.name = "q"}, %k: tensor<2x0x4x8xf32> {tressel.name = "k"},
                %v: tensor<2x0x4x8xf32> {tressel.name = "v"}) -> (tensor<2x0x3x8xf32> {tressel.name = "out"}) {
  %0 = tressel.scaled_dot_product_attention %q, %k, %v : (tensor<2x0x3x8xf32>, tensor<2x0x4x8xf32>, tensor<2x0x4x8xf32>) -> tensor<2x0x3x8xf32>
  return %0 : tensor<2x0x3x8xf32>
})";

// Few rows by many columns, a transposed side, and a batch.
const char *const products = R"(
func.func @main(%x: tensor<5x600xf32> {tressel.name = "x"}, %w: tensor<600x1200xf32> {tressel.state = "w"},
                %u: tensor<100x300xf32> {tressel.name = "u"}, %t: tensor<400x300xf32> {tressel.state = "t"},
                %a: tensor<3x96x200xf32> {tressel.name = "a"}, %b: tensor<3x200x160xf32> {tressel.name = "b"})
    -> (tensor<5x1200xf32> {tressel.name = "y"}, tensor<100x400xf32> {tressel.name = "z"}, tensor<3x96x160xf32> {tressel.name = "c"}) {
  %0 = tressel.matmul %x, %w : (tensor<5x600xf32>, tensor<600x1200xf32>) -> tensor<5x1200xf32>
  %1 = tressel.relu %0 : (tensor<5x1200xf32>) -> tensor<5x1200xf32>
  %2 = tressel.transpose %t {permutation = array<i64: 1, 0>} : (tensor<400x300xf32>) -> tensor<300x400xf32>
  %3 = tressel.matmul %u, %2 : (tensor<100x300xf32>, tensor<300x400xf32>) -> tensor<100x400xf32>
  %4 = tressel.matmul %a, %b : (tensor<3x96x200xf32>, tensor<3x200x160xf32>) -> tensor<3x96x160xf32>
  %5 = tressel.abs %4 : (tensor<3x96x160xf32>) -> tensor<3x96x160xf32>
  return %1, %3, %5 : tensor<5x1200xf32>, tensor<100x400xf32>, tensor<3x96x160xf32>
})";

/// A program of f32 with another type.
std::string inType(std::string text, const std::string &type) {
  for (size_t at = 0; (at = text.find("f32", at)) != text.npos; at += type.size())
    text.replace(at, 3, type);
  return text;
}
/// Types of 16 bits and how far a result may be off, of itself: where sums round differently, by one or two of the
/// type's steps.
constexpr std::pair<const char *, double> halves[] = {{"f16", 0x1p-9}, {"bf16", 0x1p-6}};

class Compile : public testing::Test {
protected:
  Compile() : context(mlir::MLIRContext::Threading::DISABLED) {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    context.appendDialectRegistry(registry);
  }

  mlir::OwningOpRef<mlir::ModuleOp> parse(const char *text) {
    return mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  }

  /// Runs the compiled form and compares every output, and every state that it writes, with the interpreter's.
  void check(const char *text, const codegen::CompileOptions &options, op::interp::Tolerance tolerance = {1e-5, 1e-6}) {
    auto module = parse(text);
    ASSERT_TRUE(module);
    auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
    std::vector<op::HostTensor> values = graph::randomInputs(main, 7);
    graph::Interpretation expected = graph::interpret(main, values);
    ASSERT_TRUE(expected) << expected.error;
    std::vector<bool> isState, resultIsState;
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      isState.push_back(main.getArgAttr(i, graph::kStateAttr) != nullptr);
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      resultIsState.push_back(main.getResultAttr(i, graph::kStateAttr) != nullptr);

    codegen::CompiledProgram program = codegen::compile(*module, options);
    auto executable = runtime::Executable::create(program.schedule, program.image, program.constants.joined());
    runtime::Context run(executable);
    std::vector<void *> states;
    std::vector<const void *> inputs;
    std::vector<op::HostTensor> copies = values; // states are written
    for (size_t i = 0; i < values.size(); ++i)
      if (isState[i])
        states.push_back(copies[i].data.get());
      else
        inputs.push_back(copies[i].data.get());
    run.bindStates(states);
    std::vector<op::HostTensor> outputs;
    std::vector<void *> pointers;
    for (size_t i = 0; i < expected.outputs.size(); ++i)
      if (!resultIsState[i]) {
        outputs.push_back(op::HostTensor::allocate(expected.outputs[i].type));
        pointers.push_back(outputs.back().data.get());
      }
    run.run(inputs, pointers);
    size_t next = 0;
    for (size_t i = 0; i < expected.outputs.size(); ++i)
      if (!resultIsState[i]) {
        EXPECT_EQ(op::interp::compare(outputs[next++], expected.outputs[i], tolerance), "") << "output " << i;
      }
  }
  /// How many kernels of the compiled program are of this provider.
  int64_t count(const char *text, const char *provider) {
    const codegen::CompiledProgram program = codegen::compile(*parse(text), {.allowLibrary = false, .prefer = provider});
    return std::ranges::count(program.schedule.kernels, provider, &runtime::KernelDesc::provider);
  }
  mlir::MLIRContext context;
};

// Sums of 784 products reach 16 here, and softmax turns their absolute rounding into a relative one.
constexpr op::interp::Tolerance kLogits{5e-5, 1e-6};
TEST_F(Compile, MlpWithLibrary) { check(mlp, {}, kLogits); }
TEST_F(Compile, MlpWithoutLibrary) { check(mlp, {.allowLibrary = false}, kLogits); }
TEST_F(Compile, MlpBaseline) { check(mlp, {.cpu = "baseline", .allowLibrary = false}, kLogits); }
TEST_F(Compile, Products) {
  check(products, {.allowLibrary = false, .prefer = "builtin"}, {1e-4, 1e-4});
  EXPECT_EQ(count(products, "builtin"), 5); // three, and two that pack
}
TEST_F(Compile, ProductsOfHalves) {
  for (auto [type, step] : halves) {
    const std::string text = inType(products, type);
    check(text.c_str(), {.allowLibrary = false, .prefer = "builtin"}, {step, step});
    EXPECT_EQ(count(text.c_str(), "builtin"), 5) << text;
  }
}
TEST_F(Compile, Attention) {
  check(attention, {.allowLibrary = false});
  check(noAttention, {.allowLibrary = false});
  EXPECT_EQ(count(attention, "builtin"), 1);
}
TEST_F(Compile, AttentionWithMasks) {
  // Of all heads, of an image's, of a head of all images, of each; for queries alike or each its own.
  for (const char *mask : {"50xf32", "2x1x1x50xi1", "70x50xi1", "6x70x50xf32", "2x6x1x50xi1", "2x6x70x50xf32"}) {
    std::string text = attention;
    auto replace = [&](const std::string &from, const std::string &to) {
      text.replace(text.find(from), from.size(), to);
    };
    replace(", %v {causal = true}", std::string(", %v, %m {causal = ") + (std::strchr(mask, 'i') ? "false}" : "true}"));
    replace("tensor<2x3x50x24xf32> {tressel.name = \"v\"}",
            std::string("tensor<2x3x50x24xf32> {tressel.name = \"v\"}, %m: tensor<") + mask +
                "> {tressel.name = \"m\"}");
    replace("tensor<2x3x50x24xf32>) ->", std::string("tensor<2x3x50x24xf32>, tensor<") + mask + ">) ->");
    SCOPED_TRACE(text);
    check(text.c_str(), {.allowLibrary = false});
    EXPECT_EQ(count(text.c_str(), "builtin"), 1);
  }
}
TEST_F(Compile, ConvolutionWithLibrary) { check(convnet, {}); }
TEST_F(Compile, ConvolutionWithoutLibrary) { check(convnet, {.allowLibrary = false}); }

/// First layer, residual block, depthwise: each with what follows it.
const char *const residualNet = R"(
func.func @main(%x: tensor<2x3x21x19xf32> {tressel.name = "x"}, %w0: tensor<16x3x3x3xf32> {tressel.state = "w0"},
                %b: tensor<16x1x1xf32> {tressel.state = "b"}, %w1: tensor<16x16x3x3xf32> {tressel.state = "w1"},
                %w2: tensor<16x1x5x5xf32> {tressel.state = "w2"}, %w3: tensor<40x16x1x1xf32> {tressel.state = "w3"})
    -> (tensor<2x40x6x5xf32> {tressel.name = "out"}) {
  %0 = tressel.conv %x, %w0 {strides = array<i64: 2, 2>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>} : (tensor<2x3x21x19xf32>, tensor<16x3x3x3xf32>) -> tensor<2x16x11x10xf32>
  %1 = tressel.add %0, %b : (tensor<2x16x11x10xf32>, tensor<16x1x1xf32>) -> tensor<2x16x11x10xf32>
  %2 = tressel.relu %1 : (tensor<2x16x11x10xf32>) -> tensor<2x16x11x10xf32>
  %3 = tressel.conv %2, %w1 {pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>} : (tensor<2x16x11x10xf32>, tensor<16x16x3x3xf32>) -> tensor<2x16x11x10xf32>
  %4 = tressel.add %3, %2 : (tensor<2x16x11x10xf32>, tensor<2x16x11x10xf32>) -> tensor<2x16x11x10xf32>
  %5 = tressel.conv %4, %w2 {strides = array<i64: 2, 2>, pad_low = array<i64: 2, 2>, pad_high = array<i64: 2, 2>, groups = 16 : i64} : (tensor<2x16x11x10xf32>, tensor<16x1x5x5xf32>) -> tensor<2x16x6x5xf32>
  %6 = tressel.relu %5 : (tensor<2x16x6x5xf32>) -> tensor<2x16x6x5xf32>
  %7 = tressel.conv %6, %w3 : (tensor<2x16x6x5xf32>, tensor<40x16x1x1xf32>) -> tensor<2x40x6x5xf32>
  return %7 : tensor<2x40x6x5xf32>
})";
TEST_F(Compile, ResidualNetWithLibrary) { check(residualNet, {}, {1e-4, 1e-4}); }
TEST_F(Compile, ResidualNetByBuiltinKernels) {
  check(residualNet, {.allowLibrary = false, .prefer = "builtin"}, {1e-4, 1e-4});
  auto module = parse(residualNet);
  const codegen::CompiledProgram program =
      codegen::compile(*module, {.allowLibrary = false, .prefer = "builtin", .disabledPasses = {"assign-layouts"}});
  EXPECT_EQ(llvm::count_if(program.schedule.kernels,
                           [](const runtime::KernelDesc &k) { return k.provider == "builtin" && !k.epilogue.empty(); }),
            3);
}

/// The same with channels last: strides, what is scaled by channel, depthwise, groups of several features, a residual,
/// a pool that rounds up and the mean over space.
const char *const channelsLastNet = R"(
func.func @main(%x: tensor<2x17x19x32xf32> {tressel.name = "x"}, %w0: tensor<48x32x3x3xf32> {tressel.state = "w0"},
                %b: tensor<48xf32> {tressel.state = "b"}, %w1: tensor<48x1x3x3xf32> {tressel.state = "w1"}, %w2: tensor<64x48x1x1xf32> {tressel.state = "w2"},
                %w3: tensor<64x32x1x1xf32> {tressel.state = "w3"}, %w4: tensor<64x16x3x3xf32> {tressel.state = "w4"})
    -> (tensor<2x64xf32> {tressel.name = "out"}) {
  %0 = tressel.conv %x, %w0 {channels_last = true, strides = array<i64: 2, 2>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>} : (tensor<2x17x19x32xf32>, tensor<48x32x3x3xf32>) -> tensor<2x9x10x48xf32>
  %1 = tressel.add %0, %b : (tensor<2x9x10x48xf32>, tensor<48xf32>) -> tensor<2x9x10x48xf32>
  %2 = tressel.relu %1 : (tensor<2x9x10x48xf32>) -> tensor<2x9x10x48xf32>
  %3 = tressel.conv %2, %w1 {channels_last = true, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 48 : i64} : (tensor<2x9x10x48xf32>, tensor<48x1x3x3xf32>) -> tensor<2x9x10x48xf32>
  %4 = tressel.conv %3, %w2 {channels_last = true} : (tensor<2x9x10x48xf32>, tensor<64x48x1x1xf32>) -> tensor<2x9x10x64xf32>
  %5 = tressel.conv %x, %w3 {channels_last = true, strides = array<i64: 2, 2>} : (tensor<2x17x19x32xf32>, tensor<64x32x1x1xf32>) -> tensor<2x9x10x64xf32>
  %6 = tressel.add %4, %5 : (tensor<2x9x10x64xf32>, tensor<2x9x10x64xf32>) -> tensor<2x9x10x64xf32>
  %7 = tressel.conv %6, %w4 {channels_last = true, groups = 4 : i64} : (tensor<2x9x10x64xf32>, tensor<64x16x3x3xf32>) -> tensor<2x7x8x64xf32>
  %8 = tressel.max_pool %7 {channels_last = true, window = array<i64: 3, 3>, strides = array<i64: 2, 2>, ceil_mode = true} : (tensor<2x7x8x64xf32>) -> tensor<2x3x4x64xf32>
  %9 = tressel.mean %8 {axis = array<i64: 1, 2>} : (tensor<2x3x4x64xf32>) -> tensor<2x64xf32>
  return %9 : tensor<2x64xf32>
})";
TEST_F(Compile, ChannelsLastWithLibrary) { check(channelsLastNet, {}, {1e-4, 1e-4}); }
TEST_F(Compile, ChannelsLastWithoutLibrary) { check(channelsLastNet, {.allowLibrary = false}, {1e-4, 1e-4}); }
TEST_F(Compile, ChannelsLastBaseline) {
  check(channelsLastNet, {.cpu = "baseline", .allowLibrary = false}, {1e-4, 1e-4});
}

TEST_F(Compile, ConvolutionsOfHalves) { // each layer rounds
  for (auto [type, step] : halves) {
    const std::string last = inType(channelsLastNet, type), first = inType(residualNet, type);
    for (const char *cpu : {"native", "baseline"}) {
      check(last.c_str(), {.cpu = cpu, .allowLibrary = false}, {2 * step, 4 * step});
      check(first.c_str(), {.cpu = cpu, .allowLibrary = false}, {2 * step, 4 * step});
    }
    EXPECT_EQ(count(last.c_str(), "builtin"), 8) << last; // all but the depthwise one, and what packs their weights
    EXPECT_GE(count(first.c_str(), "builtin"), 4) << first;
  }
}

// A costly value that is reduced in one order of dimensions and stored in another is kept between the passes.
TEST_F(Compile, KeptValueReadTransposed) {
  check(R"(
func.func @main(%x: tensor<3x37xf32> {tressel.name = "x"}) -> (tensor<f32> {tressel.name = "s"}, tensor<3x37xf32> {tressel.name = "c"}) {
  %0 = tressel.cos %x : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %1 = tressel.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<3x37xf32>) -> tensor<37x3xf32>
  %2 = tressel.sum %1 : (tensor<37x3xf32>) -> tensor<f32>
  return %2, %0 : tensor<f32>, tensor<3x37xf32>
})",
        {});
}
TEST_F(Compile, VerifiesEachPass) { check(convnet, {.verifyEach = true}); }

TEST_F(Compile, PrintsEveryStage) {
  for (auto [stage, expected] : {std::pair{"graph", "tressel.matmul"},
                                 {"placed", "tressel.cluster"},
                                 {"schedule", "sched.launch"},
                                 {"llvm", "define"},
                                 {"asm", "ret"}}) {
    auto module = parse(mlp);
    std::string text;
    codegen::CompileOptions options;
    options.emit = stage, options.sink = [&](std::string t) { text = std::move(t); };
    codegen::compile(*module, options);
    EXPECT_NE(text.find(expected), std::string::npos) << stage << ":\n" << text.substr(0, 500);
  }
}

TEST_F(Compile, IsDeterministic) {
  auto first = parse(mlp), second = parse(mlp);
  auto a = codegen::compile(*first), b = codegen::compile(*second);
  EXPECT_EQ(a.image, b.image);
  EXPECT_EQ(a.constants, b.constants);
}

TEST_F(Compile, ReportsPassesAndKernels) {
  auto module = parse(mlp);
  codegen::CompileReport report;
  codegen::CompileOptions options;
  options.report = &report;
  codegen::compile(*module, options);
  EXPECT_GE(report.timings.size(), 9u);
  EXPECT_GE(report.numKernels + report.numLibraryKernels, 2);
}

/// The one kernel of an op from one tensor to another.
TEST_F(Compile, KernelsSayWhatTheyCost) {
  auto kernelOf = [&](const std::string &op, const std::string &from, const std::string &to,
                      codegen::CompileOptions options = {}) {
    const std::string text = "func.func @main(%x: tensor<" + from + "> {tressel.name = \"x\"}) -> (tensor<" + to +
                             "> {tressel.name = \"y\"}) {\n  %y = tressel." + op + " : (tensor<" + from +
                             ">) -> tensor<" + to + ">\n  return %y : tensor<" + to + ">\n}\n";
    auto module = parse(text.c_str());
    options.scheduleOnly = true;
    const codegen::CompiledProgram program = codegen::compile(*module, options);
    EXPECT_EQ(program.schedule.kernels.size(), 1u);
    return program.schedule.kernels.at(0);
  };
  const auto exp = kernelOf("exp %x", "64x64xf32", "64x64xf32"), tanh = kernelOf("tanh %x", "64x64xf32", "64x64xf32"),
             negative = kernelOf("negative %x", "64x64xf32", "64x64xf32");
  EXPECT_EQ(exp.flops, 64 * 64 * op::scalarFlops(op::ScalarOp::Exp));
  EXPECT_EQ(tanh.flops, 64 * 64 * op::scalarFlops(op::ScalarOp::Tanh));
  EXPECT_EQ(negative.flops, 64 * 64);
  EXPECT_EQ(exp.bytes, 2 * 64 * 64 * 4);
  EXPECT_FALSE(exp.moves);
  // Transposes do no arithmetic, but by tiles each element costs the same.
  const std::string swap = "transpose %x {permutation = array<i64: 1, 0>}";
  const auto near = kernelOf(swap, "64x64xf32", "64x64xf32"), far = kernelOf(swap, "1024x64xf32", "64x1024xf32");
  EXPECT_TRUE(near.moves && far.moves);
  EXPECT_GT(near.flops, 64 * 64);
  EXPECT_EQ(far.flops, 16 * near.flops);
  // Pairs make no tile: what it takes to gather them grows where lines of the cache are gone before they are read again.
  const std::string apart = "transpose %x {permutation = array<i64: 2, 1, 0>}";
  const auto nearPairs = kernelOf(apart, "32x32x2xf32", "2x32x32xf32"),
             farPairs = kernelOf(apart, "1024x32x2xf32", "2x32x1024xf32");
  EXPECT_TRUE(nearPairs.moves && farPairs.moves);
  EXPECT_GT(nearPairs.flops, near.flops / 2);
  EXPECT_GT(farPairs.flops, 4 * 32 * nearPairs.flops);
  // Keys cost something, so they are there where somebody asks.
  EXPECT_EQ(exp.key, "");
  const codegen::CompileOptions keys{.kernelKeys = true};
  const std::string key = kernelOf("exp %x", "64x64xf32", "64x64xf32", keys).key;
  EXPECT_EQ(key.size(), 16u);
  EXPECT_EQ(kernelOf("exp %x", "64x64xf32", "64x64xf32", keys).key, key);
  EXPECT_NE(kernelOf("tanh %x", "64x64xf32", "64x64xf32", keys).key, key);
  EXPECT_NE(kernelOf("exp %x", "64x32xf32", "64x32xf32", keys).key, key);
}

TEST_F(Compile, NamesWhatItDoesNotKnow) {
  auto module = parse(mlp);
  EXPECT_THROW(codegen::compile(*module, {.cpu = "pentium"}), Error);
  EXPECT_THROW(codegen::compile(*module, {.emit = "wasm"}), Error);
  EXPECT_THROW(codegen::compile(*module, {.disabledPasses = {"frobnicate"}}), Error);
}

} // namespace
