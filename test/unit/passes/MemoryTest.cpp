// Programs on accelerators whose memory is too small for all at once: what fits alone runs, and gives the interpreter's
// results.
#include "passes/Pipeline.h"

#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/sched/Sched.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "passes/place/MemoryNeeds.h"
#include "passes/Util.h"
#include "test/support/RandomGraph.h"
#include "tools/tressel-opt/ModelProviders.h"
#include "tressel/runtime/MachineModel.h"
#include <gtest/gtest.h>

#include <iostream>
#include <random>

using namespace mlir;
using namespace tressel;

namespace {

class MemoryTest : public ::testing::Test {
protected:
  MemoryTest() : handler(&context, [this](Diagnostic &d) { messages += d.str() + "\n"; }) {
    DialectRegistry registry;
    graph::registerDialects(registry);
    sched::registerDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Takes the program through all passes on an accelerator of so many bytes, each pass compared with the interpreter.
  bool compile(ModuleOp program, int64_t bytes) {
    runtime::MachineModel machine = runtime::machinePreset("2gpu-pcie3");
    machine.devices[1].memoryBytes = bytes;
    passes::PipelineOptions o;
    o.providers = tools::modelProviders();
    o.machine = &machine;
    o.verifyEach = true;
    o.decisions = &decisions;
    o.disabled = {"split-producers", "stage-copies"}; // matters of time, which get in the way of counting
    decisions.clear();
    messages.clear();
    compiled = cast<ModuleOp>(program->clone());
    return succeeded(passes::runPipeline(*compiled, o));
  }
  bool compile(const std::string &text, int64_t bytes) {
    program = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(program) << messages;
    return program && compile(*program, bytes);
  }
  /// Bytes of the accelerator for buffers, and for what stays there.
  int64_t arenaBytes() {
    int64_t bytes = 0;
    compiled->walk([&](sched::ArenaOp arena) {
      if (arena.getDevice() == sched::DeviceKind::Gpu && arena.getIndex() == 0)
        bytes += static_cast<int64_t>(*arena.getSize());
    });
    return bytes;
  }
  int64_t residentBytes() {
    int64_t bytes = 0;
    compiled->walk([&](sched::StateOp state) {
      if (state.getDevice() == sched::DeviceKind::Gpu && state.getIndex() == 0)
        bytes += ((sched::bytesOf(state.getTensorType()) + 63) / 64 * 64).number();
    });
    return bytes;
  }
  int64_t numCopies() { return count<sched::CopyOp>(); }
  template <typename Op> int64_t count() {
    int64_t n = 0;
    compiled->walk([&](Op op) { n += op->template getParentOfType<sched::StepOp>() ? 1 : 0; });
    return n;
  }
  /// Launches of the step on the accelerator, and on the host.
  std::pair<int64_t, int64_t> numLaunches() {
    std::pair<int64_t, int64_t> n;
    compiled->walk([&](sched::LaunchOp op) {
      const bool isThere = op.getStream().getDefiningOp<sched::StreamOp>().getDevice() == sched::DeviceKind::Gpu;
      ++(isThere ? n.first : n.second);
    });
    return n;
  }
  bool wasDecided(const std::string &part) {
    return llvm::any_of(decisions, [&](const runtime::Decision &d) {
      return d.pass == "fit-memory" && d.text.find(part) != std::string::npos;
    });
  }

  MLIRContext context;
  std::string messages;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> program, compiled;
  runtime::Decisions decisions;
};

/// @main over tensors of 16 KiB.
std::string mainOf(const std::vector<std::string> &inputs, const std::vector<std::string> &parameters,
                   const std::string &body, const std::string &result) {
  std::string arguments;
  for (const auto &[list, attribute] : {std::pair{&inputs, "tressel.name"}, std::pair{&parameters, "tressel.state"}})
    for (const std::string &name : *list)
      arguments +=
          (arguments.empty() ? "%" : ", %") + name + ": tensor<64x64xf32> {" + attribute + " = \"" + name + "\"}";
  return "func.func @main(" + arguments + ") -> (tensor<64x64xf32> {tressel.name = \"r\"}) {\n" + body + "  return %" +
         result + " : tensor<64x64xf32>\n}\n";
}
constexpr int64_t kTensor = 64 * 64 * 4;
std::string op(const std::string &result, const std::string &name, const std::vector<std::string> &operands,
               bool isPlaced = true) {
  std::string values, types;
  for (const std::string &operand : operands) {
    values += (values.empty() ? "%" : ", %") + operand;
    types += (types.empty() ? "" : ", ") + std::string("tensor<64x64xf32>");
  }
  return "  %" + result + " = tressel." + name + " " + values + (isPlaced ? " {tressel.device = \"gpu0\"}" : "") +
         " : (" + types + ") -> tensor<64x64xf32>\n";
}

TEST_F(MemoryTest, AClusterIsNoLargerThanItsDevice) {
  // Eight sums: one kernel for all would need nine operands and a result at once; each needs two.
  std::vector<std::string> inputs{"x0"};
  std::string body, last = "x0";
  for (int i = 1; i <= 8; ++i) {
    inputs.push_back("x" + std::to_string(i));
    body += op("s" + std::to_string(i), "add", {last, inputs.back()});
    last = "s" + std::to_string(i);
  }
  const std::string text = mainOf(inputs, {}, body, last);
  ASSERT_TRUE(compile(text, 20 * kTensor)) << messages;
  EXPECT_EQ(numLaunches().first, 1);
  for (int64_t tensors : {2, 3, 5}) {
    ASSERT_TRUE(compile(text, tensors * kTensor)) << tensors << ": " << messages;
    EXPECT_GT(numLaunches().first, 1);
    EXPECT_LE(arenaBytes(), tensors * kTensor);
    EXPECT_EQ(numCopies(), 10); // nine in, one out
  }
  EXPECT_FALSE(compile(text, kTensor * 3 / 2));
  EXPECT_NE(messages.find("'add' needs 32768 bytes of gpu0 at once, which has 24576: 16384 for its result"),
            std::string::npos)
      << messages;
}

TEST_F(MemoryTest, WhatPrepareMakesComesInEachCallWhereItCannotStay) {
  // Four parameters, each turned over once, on the device; products need three tensors at a time.
  std::string body, last = "x";
  std::vector<std::string> parameters;
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    parameters.push_back("w" + n);
    body += op("e" + n, "exp", {"w" + n}) + op("s" + n, "atan2", {last, "e" + n});
    last = "s" + n;
  }
  const std::string text = mainOf({"x"}, parameters, body, last);
  ASSERT_TRUE(compile(text, 20 * kTensor)) << messages;
  const int64_t all = numCopies();
  for (int64_t tensors : {6, 4, 3, 2}) {
    ASSERT_TRUE(compile(text, tensors * kTensor)) << tensors << ": " << messages;
    EXPECT_LE(arenaBytes() + residentBytes(), tensors * kTensor);
    EXPECT_LE(numCopies(), all + 4);
  }
  EXPECT_TRUE(wasDecided("in each call"));
  EXPECT_EQ(residentBytes(), 0);
}

TEST_F(MemoryTest, WhatFitsExactlyRuns) {
  // Five products, and all read at the end: nothing fuses, nothing is computed in place.
  std::string body, last = "x";
  for (int i = 0; i < 5; ++i, last = "a" + std::to_string(i - 1))
    body += op("a" + std::to_string(i), "matmul", {last, last});
  for (int i = 4; i-- > 0;) {
    body += op("b" + std::to_string(i), "matmul", {last, "a" + std::to_string(i)});
    last = "b" + std::to_string(i);
  }
  const std::string text = mainOf({"x"}, {}, body, last);
  ASSERT_TRUE(compile(text, 6 * kTensor)) << messages; // a0 to a4, and the next
  EXPECT_EQ(numCopies(), 2);
  EXPECT_EQ(arenaBytes(), 6 * kTensor);
  for (int64_t bytes : {6 * kTensor - 64, 5 * kTensor, 4 * kTensor, 3 * kTensor}) {
    ASSERT_TRUE(compile(text, bytes)) << bytes << ": " << messages;
    EXPECT_GT(numCopies(), 2);
    EXPECT_LE(arenaBytes(), bytes);
  }
  EXPECT_FALSE(compile(text, 3 * kTensor - 64));
}

TEST_F(MemoryTest, ProgramsThatNobodyPlacedRunOnTheHostWhereNothingElseHasRoom) {
  std::string body = op("a", "exp", {"x"}, false), last = "a";
  for (int i = 0; i < 6; ++i) {
    body += op("s" + std::to_string(i), "atan2", {last, "x"}, false);
    last = "s" + std::to_string(i);
  }
  const std::string text = mainOf({"x"}, {}, body, last);
  for (int64_t bytes : {int64_t(64), kTensor - 64, kTensor, 2 * kTensor, 3 * kTensor})
    EXPECT_TRUE(compile(text, bytes)) << bytes << ": " << messages;
}

TEST_F(MemoryTest, TheHostHasAMemoryToo) {
  // Three values that the accelerator has made are with the host when it has them all.
  std::string body;
  for (const char *n : {"0", "1", "2"})
    body +=
        op(std::string("a") + n, "matmul", {n[0] == '0' ? "x" : std::string("a") + static_cast<char>(n[0] - 1), "x"}) +
        op(std::string("b") + n, "sin", {std::string("a") + n}, false);
  body += op("c", "matmul", {"b0", "b1"}, false) + op("d", "matmul", {"c", "b2"}, false);
  program = parseSourceString<ModuleOp>(mainOf({"x"}, {}, body, "d"), &context);
  ASSERT_TRUE(program) << messages;
  program->walk([](Operation *each) {
    if (passes::isComputation(each) && !graph::deviceOf(each))
      graph::setDevice(each, graph::kHost);
  });
  runtime::MachineModel machine = runtime::machinePreset("2gpu-pcie3");
  passes::PipelineOptions o;
  o.providers = tools::modelProviders();
  o.machine = &machine;
  machine.devices[0].memoryBytes = 4 * kTensor;
  compiled = cast<ModuleOp>(program->clone());
  EXPECT_TRUE(succeeded(passes::runPipeline(*compiled, o))) << messages;
  machine.devices[0].memoryBytes = 3 * kTensor - 64;
  compiled = cast<ModuleOp>(program->clone());
  EXPECT_TRUE(failed(passes::runPipeline(*compiled, o)));
  EXPECT_NE(messages.find("bytes of cpu"), std::string::npos) << messages;
  EXPECT_NE(messages.find("(-:"), std::string::npos) << messages;
}

/// What fit-memory did, from its decisions.
struct Done {
  int64_t out = 0, again = 0, streamed = 0;
  bool any = false;
  void add(const runtime::Decisions &decisions) {
    for (const runtime::Decision &d : decisions)
      if (d.pass == "fit-memory" && d.where.op == "the program") {
        any = true;
        auto number = [&](const char *behind) {
          const size_t at = d.text.find(behind);
          return std::stoll(d.text.substr(d.text.rfind(' ', at - 1) + 1));
        };
        out += number(" values are spilled"), again += number(" are rematerialized"),
            streamed += number(" parameters");
      }
  }
};

/// Random programs of all ops on one device: refused only where an op alone is too large, at every size down to a
/// third.
TEST_F(MemoryTest, RandomProgramsKeepTheirResultsInLessMemory) {
  int runs = 0, changed = 0, refused = 0;
  Done all;
  for (uint64_t seed = 300; seed < 314; ++seed) {
    test::RandomGraph random = test::randomGraph(context, seed, {.minOps = 40, .maxOps = 80, .dynamicShare = 0});
    random.module->walk([](Operation *each) {
      if (passes::isComputation(each) && isa<func::FuncOp>(each->getParentOp()) && !graph::infoOf(each)->hasEffects)
        graph::setDevice(each, {runtime::DeviceKind::Gpu, 0});
    });
    ASSERT_TRUE(compile(*random.module, int64_t(1) << 34)) << messages;
    const int64_t whole = arenaBytes() + residentBytes();
    for (int64_t tenths : {10, 7, 5, 3}) {
      const int64_t bytes = whole * tenths / 10;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(bytes) + " of " + std::to_string(whole) +
                   " bytes");
      if (whole == 0)
        break;
      if (!compile(*random.module, bytes)) {
        // The op that is named really needs more.
        const size_t at = messages.find("' needs ");
        ASSERT_NE(at, std::string::npos) << messages;
        EXPECT_GT(std::stoll(messages.substr(at + 8)), bytes) << messages;
        ++refused;
        continue;
      }
      ++runs;
      EXPECT_LE(arenaBytes() + residentBytes(), bytes);
      Done now;
      now.add(decisions), all.add(decisions);
      changed += now.any;
    }
  }
  std::cout << runs << " programs fitted, " << changed << " of them changed; " << refused << " refused; " << all.out
            << " values were spilled, " << all.again << " were rematerialized, " << all.streamed
            << " parameters were streamed\n";
  EXPECT_GT(runs, 20);
  EXPECT_GT(changed, 10);
}

/// Ops that read any two values made before: in what one op needs, and in half of what all need.
TEST_F(MemoryTest, WebsOfValuesFitWhereverTheirOpsDo) {
  Done all;
  int64_t copies = 0, uses = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<std::string> inputs{"x0", "x1"}, parameters{"w0", "w1", "w2"};
    std::vector<std::string> values{"x0", "x1", "w0", "w1", "w2"};
    std::string body;
    const int count = 12 + static_cast<int>(random() % 20);
    for (int i = 0; i < count; ++i) {
      const char *names[] = {"matmul", "matmul", "atan2", "exp", "sin"};
      const std::string name = names[random() % 5], result = "v" + std::to_string(i);
      std::vector<std::string> operands{values[random() % values.size()]};
      if (name == "matmul" || name == "atan2")
        operands.push_back(values[random() % values.size()]);
      uses += static_cast<int64_t>(operands.size());
      body += op(result, name, operands);
      values.push_back(result);
    }
    std::string last = values.back();
    for (size_t i = values.size() - 1; i-- > 5;) { // everything is needed at the end, the last made first
      body += op("r" + std::to_string(i), i % 3 ? "atan2" : "matmul", {last, values[i]});
      last = "r" + std::to_string(i);
      uses += 2;
    }
    const std::string text = mainOf(inputs, parameters, body, last);
    ASSERT_TRUE(compile(text, int64_t(1) << 34)) << messages;
    const int64_t whole = arenaBytes() + residentBytes();
    for (int64_t bytes : {whole, whole * 3 / 4, whole / 2, 3 * kTensor}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(bytes) + " of " + std::to_string(whole) +
                   " bytes");
      ASSERT_TRUE(compile(text, bytes)) << messages;
      EXPECT_LE(arenaBytes() + residentBytes(), bytes);
      all.add(decisions);
      copies += numCopies();
    }
  }
  std::cout << all.out << " values were spilled, " << all.again << " were rematerialized, " << all.streamed
            << " parameters were streamed; " << copies << " copies of " << 4 * uses << " uses\n";
  EXPECT_GT(all.out, 100);
  EXPECT_GT(all.again, 5);
  EXPECT_GT(all.streamed, 20);
  EXPECT_LE(copies, 2 * 4 * uses); // nothing goes back and forth without end
}

} // namespace
