// Gradients of random programs: a loss over what a program returns is differentiated with respect to its floats.
//   random-gradients [--seed S] [--count N] [--inject] [--failures N] [--print]
// Two judges: central differences of the interpreter's values along random directions say whether the gradient is right
// (programs of f64, every other seed; every eighth is differentiated twice); the interpreter says whether what is
// compiled computes that gradient. Of three programs one is compiled as it is, one with parts whose values are dropped
// and made again (autograd::checkpoint), one with such parts and a memory budget; in each, some of the inputs are
// states that the step updates in place. Compiled with `deterministic`, those with parts must give the bits of the
// whole. With --inject an op of the gradient is replaced by another: a failure when the differences do not show it.
// Exit status: 0 fine, 1 a failure, 2 usage.
#include "codegen/Compile.h"
#include "ir/graph/BuilderEmitter.h"
#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Segment.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Element.h"
#include "ir/interpreter/Interpreter.h"
#include "ir/op/Exprs.h"
#include "passes/Passes.h"
#include "passes/verify/ExtractProgram.h"
#include "test/random/Inject.h"
#include "test/support/Blur.h"
#include "test/support/RandomGraph.h"
#include "test/support/ShrinkGraph.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Simulated.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

using namespace tressel;
using op::HostTensor;

namespace {

llvm::cl::opt<uint64_t> seedOption("seed", llvm::cl::desc("of the first program"), llvm::cl::init(1));
llvm::cl::opt<int> countOption("count", llvm::cl::desc("number of programs"), llvm::cl::init(100));
llvm::cl::opt<int> failuresOption("failures", llvm::cl::desc("end after so many"), llvm::cl::init(3));
llvm::cl::opt<bool> injectOption("inject", llvm::cl::desc("replace an op of the gradient"));
llvm::cl::opt<bool> printOption("print", llvm::cl::desc("print every program"));

using Inputs = std::vector<HostTensor>;
using Program = mlir::OwningOpRef<mlir::ModuleOp>;

mlir::func::FuncOp mainOf(mlir::ModuleOp module) { return module.lookupSymbol<mlir::func::FuncOp>("main"); }
Program copyOf(mlir::ModuleOp module) { return mlir::cast<mlir::ModuleOp>(module->clone()); }
mlir::Operation *endOf(mlir::ModuleOp module) { return mainOf(module).getBody().front().getTerminator(); }
bool isFloatValue(mlir::Value value) { return isFloat(graph::fromMlir(value.getType()).dtype); }

void returnOnly(mlir::ModuleOp module, llvm::ArrayRef<mlir::Value> results) {
  endOf(module)->setOperands(results);
  passes::setSignature(mainOf(module));
}

/// Runs passes silently; false where one refuses.
bool runs(mlir::ModuleOp module, std::unique_ptr<mlir::Pass> pass) {
  mlir::ScopedDiagnosticHandler silent(module.getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
  mlir::PassManager passes(module.getContext());
  passes.enableVerifier(false);
  passes.addPass(std::move(pass));
  return mlir::succeeded(passes.run(module));
}

/// Returns the sum of log(1 + x^2) over the elements of some values: finite, and with another cotangent for each.
class Loss : op::expr::Fragment {
public:
  Loss(mlir::OpBuilder &b, mlir::Location loc) : Fragment(emitter_), emitter_(b, loc) {}
  mlir::Value of(llvm::ArrayRef<mlir::Value> values) {
    op::expr::Expr all;
    for (mlir::Value value : values) {
      const op::expr::Expr x = op::expr::wide(take(value.getAsOpaquePointer()));
      const op::expr::Expr one = op::expr::wide(op::expr::sum(op::expr::log1p(x * x)));
      all = all ? all + one : one;
    }
    return graph::BuilderEmitter::value(emit(all));
  }

private:
  graph::BuilderEmitter emitter_;
};

void returnLossOf(mlir::ModuleOp module, llvm::ArrayRef<mlir::Value> values) {
  mlir::OpBuilder b(endOf(module));
  returnOnly(module, Loss(b, endOf(module)->getLoc()).of(values));
}

/// Appends the gradients of the first result. Not where a call has none; then `wrong` says what is wrong, if a rule is.
bool differentiate(mlir::ModuleOp module, std::string *wrong = nullptr) {
  try {
    return runs(module, passes::createDifferentiate());
  } catch (const InternalError &error) {
    if (wrong)
      *wrong = error.message();
    return false;
  }
}

bool isHarmless(mlir::ModuleOp module, const Inputs &inputs, uint64_t seed) {
  test::Computed computed;
  return test::isHarmless(mainOf(module), inputs, seed, computed, /*anyOperands=*/true);
}

/// A loss over the outputs of a program that have a gradient which rounding does not change much; null where there is none.
/// `wrong` says which rule is wrong, if one is.
Program lossOf(test::RandomGraph &graph, uint64_t seed, bool twice, std::string &wrong) {
  auto lossOver = [&](llvm::ArrayRef<unsigned> outputs) {
    Program program = copyOf(*graph.module);
    llvm::SmallVector<mlir::Value> values;
    for (unsigned i : outputs)
      values.push_back(endOf(*program)->getOperand(i));
    returnLossOf(*program, values);
    if (twice) { // a loss over the gradient
      if (!differentiate(*program, &wrong))
        return Program();
      values.assign(std::next(endOf(*program)->operand_begin()), endOf(*program)->operand_end());
      if (values.empty()) // no input has a gradient
        return Program();
      returnLossOf(*program, values);
    }
    return runs(*program, mlir::createCanonicalizerPass()) ? std::move(program) : Program();
  };
  auto isFine = [&](const Program &loss) {
    Program gradient = loss ? copyOf(*loss) : Program();
    return gradient && differentiate(*gradient, &wrong) && isHarmless(*gradient, graph.inputs, seed);
  };
  llvm::SmallVector<unsigned> kept;
  for (mlir::OpOperand &output : endOf(*graph.module)->getOpOperands())
    if (isFloatValue(output.get()) && isFine(lossOver(output.getOperandNumber())))
      kept.push_back(output.getOperandNumber());
  if (kept.empty())
    return {};
  Program all = lossOver(kept);
  return kept.size() == 1 || isFine(all) ? std::move(all) : lossOver(kept.front());
}

/// Where along a direction the inputs are: x + at * direction.
Inputs moved(const Inputs &inputs, const Inputs &direction, double at) {
  Inputs there = inputs;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!direction[k].data)
      continue;
    there[k] = HostTensor::allocate(inputs[k].type);
    for (int64_t i = 0, n = inputs[k].type.shape.numElements(); i < n; ++i)
      there[k].as<double>()[i] = inputs[k].as<double>()[i] + at * direction[k].as<double>()[i];
  }
  return there;
}

enum class Verdict { Right, Wrong, Unknown };

/// Judges gradients (of the inputs of f64, in order) by differences along random directions; no direction may have a kink
/// near the inputs. `problem` says what is wrong.
Verdict judge(mlir::ModuleOp loss, const Inputs &inputs, llvm::ArrayRef<HostTensor> gradients, uint64_t seed, std::string &problem) {
  test::Random random(seed);
  Verdict verdict = Verdict::Unknown;
  for (int tries = 0; tries < 4; ++tries) {
    Inputs direction;
    double slope = 0, scale = 0;
    size_t next = 0;
    for (const HostTensor &input : inputs) {
      if (input.type.dtype != f64) {
        direction.push_back({});
        continue;
      }
      direction.push_back(test::randomTensor(input.type, random, {-1, 1}));
      const HostTensor &gradient = gradients[next++];
      for (int64_t i = 0, n = input.type.shape.numElements(); i < n; ++i) {
        const double term = gradient.as<double>()[i] * direction.back().as<double>()[i];
        slope += term, scale += std::abs(term);
      }
    }
    auto at = [&](double t) {
      const graph::Interpretation run = graph::interpret(mainOf(loss), moved(inputs, direction, t));
      return run ? *run.outputs.front().as<double>() : std::nan("");
    };
    const double h = 2e-6, here = at(0), up = at(h), up2 = at(2 * h), down = at(-h), down2 = at(-2 * h);
    const double right = (up - here) / h, left = (here - down) / h, near = (up - down) / (2 * h), far = (up2 - down2) / (4 * h);
    const double size = 1 + std::abs(near) + scale;
    if (!std::isfinite(up2 + up + down + down2) || std::abs(right - left) > 1e-5 * size || std::abs(near - far) > 1e-6 * size)
      continue;
    verdict = Verdict::Right;
    if (std::abs(near - slope) <= 1e-5 * size)
      continue;
    problem = "the slope along a direction is " + std::to_string(near) + " by differences, " + std::to_string(slope) + " by the gradient";
    return Verdict::Wrong;
  }
  return verdict;
}

/// Marks up to three runs of ops as parts whose values are made again.
void markParts(mlir::ModuleOp module, test::Random &random) {
  llvm::SmallVector<mlir::Operation *> ops;
  for (mlir::Operation &op : mainOf(module).getBody().front().without_terminator())
    if (graph::infoOf(&op) || llvm::isa<graph::ControlOpInterface>(op))
      ops.push_back(&op);
  int64_t next = 0;
  for (int64_t part = 1; part <= 3; ++part) {
    const auto begin = random.between(next, next + 3), end = begin + random.between(2, 12);
    if (end >= static_cast<int64_t>(ops.size()))
      return;
    next = end;
    const auto run = llvm::ArrayRef(ops).slice(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    for (mlir::Operation *op : run) {
      graph::setSegment(op, part);
      if (llvm::any_of(op->getUsers(), [&](mlir::Operation *user) {
            return !llvm::is_contained(run, mainOf(module).getBody().front().findAncestorOpInBlock(*user));
          }))
        op->setAttr(graph::kKeptAttr, mlir::UnitAttr::get(op->getContext()));
    }
  }
}

/// Some arguments whose gradient is returned become states that the step updates: x - g / 64. Results that are updates stand
/// last.
void updateStates(mlir::ModuleOp module, test::Random &random) {
  mlir::func::FuncOp main = mainOf(module);
  mlir::Operation *end = endOf(module);
  llvm::SmallVector<mlir::Value> outputs{end->getOperand(0)}, updates;
  llvm::SmallVector<unsigned> states;
  unsigned next = 1;
  mlir::OpBuilder b(end);
  for (mlir::BlockArgument argument : main.getArguments()) {
    if (!isFloatValue(argument))
      continue;
    mlir::Value gradient = end->getOperand(next++);
    if (graph::fromMlir(argument.getType()).shape.isStatic() && random.chance(0.6)) {
      graph::BuilderEmitter emitter(b, end->getLoc());
      const auto dtype = graph::fromMlir(argument.getType()).dtype;
      const op::Emitter::Ref rate = emitter.constant(1.0 / 64, dtype);
      const op::Emitter::Ref g = gradient.getAsOpaquePointer(), x = argument.getAsOpaquePointer();
      const op::Emitter::Ref scaled = emitter.emit(*op::findOp("mul"), {{g, rate}}, {})[0];
      updates.push_back(graph::BuilderEmitter::value(emitter.emit(*op::findOp("sub"), {{x, scaled}}, {})[0]));
      states.push_back(argument.getArgNumber());
    } else {
      outputs.push_back(gradient);
    }
  }
  const auto firstState = static_cast<unsigned>(outputs.size());
  llvm::append_range(outputs, updates);
  returnOnly(module, outputs);
  for (auto [i, argument] : llvm::enumerate(states)) {
    const auto name = b.getStringAttr("state" + std::to_string(i));
    main.removeArgAttr(argument, graph::kNameAttr);
    main.setArgAttr(argument, graph::kStateAttr, name);
    main.removeResultAttr(firstState + static_cast<unsigned>(i), b.getStringAttr(graph::kNameAttr));
    main.setResultAttr(firstState + static_cast<unsigned>(i), graph::kStateAttr, name);
  }
}

/// What is compiled, and how.
struct Compiled {
  bool allowLibrary = true;
  double share = -1;     ///< of the memory
  bool isolate = false;  ///< kernels work on copies of their operands with guards around them
  bool deterministic = false;
};

/// Compiles and runs the program once: its results, updates included. The error is one line.
std::string run(mlir::ModuleOp module, const Inputs &inputs, const Compiled &how, std::vector<HostTensor> &results) {
  mlir::func::FuncOp main = mainOf(module);
  dim::Values sizes;
  for (auto [type, tensor] : llvm::zip_equal(main.getArgumentTypes(), inputs))
    if (std::string problem = dim::unify(graph::fromMlir(type).shape, tensor.type.shape, sizes, true); !problem.empty())
      return problem;
  std::vector<const void *> in;
  llvm::StringMap<HostTensor> states;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (auto name = main.getArgAttrOfType<mlir::StringAttr>(static_cast<unsigned>(i), graph::kStateAttr)) {
      HostTensor state = HostTensor::allocate(input.type);
      std::memcpy(state.data.get(), input.data.get(), static_cast<size_t>(input.type.bytes()));
      states[name] = state;
    } else {
      in.push_back(input.data.get());
    }
  }
  std::vector<void *> out;
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    if (auto name = main.getResultAttrOfType<mlir::StringAttr>(i, graph::kStateAttr)) {
      results.push_back(states[name]);
      continue;
    }
    const TensorType type = graph::fromMlir(main.getResultTypes()[i]);
    results.push_back(HostTensor::allocate({type.dtype, dim::evaluate(type.shape, sizes)}));
    out.push_back(results.back().data.get());
  }
  codegen::CompileOptions options{
      .allowLibrary = how.allowLibrary, .deterministic = how.deterministic, .quickCode = true};
  options.cache = nullptr;
  if (how.share >= 0)
    options.memoryBudget = MemoryBudget::share(how.share);
  try {
    codegen::CompiledProgram program = codegen::compile(module, options);
    std::vector<void *> bound;
    for (const runtime::StateDesc &state : program.schedule.states)
      if (state.kind != runtime::StateKind::Derived)
        bound.push_back(states[state.name].data.get());
    if (how.isolate) {
      runtime::Executor executor(program.load(), runtime::SimulatedMachine::create(runtime::machinePreset("2gpu-pcie3"), {.checkRaces = true, .poison = true, .isolate = true}));
      executor.bindStates(bound);
      executor.run(in, out, sizes);
    } else {
      runtime::Context context(program.load());
      context.bindStates(bound);
      context.run(in, out, sizes);
    }
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

struct Tally {
  int programs = 0, without = 0, judged = 0, kinks = 0, compiled = 0, steps = 0, parts = 0, budgets = 0, unmet = 0,
      twice = 0, alike = 0;
  test::Coverage coverage;
};

/// What differs between the compiled program and the interpreter's results, or "".
std::string problemOfCompiled(mlir::ModuleOp module, const Inputs &inputs, const Compiled &how, Tally *tally = nullptr) {
  const graph::Interpretation want = graph::interpret(mainOf(module), inputs);
  if (!want)
    return "the interpreter: " + want.error;
  std::vector<HostTensor> got;
  std::string error = run(*copyOf(module), inputs, how, got);
  if (llvm::StringRef(error).contains("memory budget")) { // it says what the least is; larger ones than that are met
    got.clear();
    if (tally)
      ++tally->unmet;
    error = run(*copyOf(module), inputs, {.allowLibrary = how.allowLibrary, .isolate = how.isolate}, got);
  }
  if (!error.empty())
    return error;
  for (size_t i = 0; i < got.size(); ++i)
    if (std::string difference = op::interp::compare(got[i], want.outputs[i], op::interp::looseTolerance(want.outputs[i].type.dtype));
        !difference.empty())
      return "output " + std::to_string(i) + " " + difference;
  return "";
}

/// What two ways to compute the same differ in, both compiled with `deterministic`, or "".
std::string differenceOf(mlir::ModuleOp one, mlir::ModuleOp other, const Inputs &inputs, Compiled how) {
  how.deterministic = true;
  std::vector<HostTensor> want, got;
  if (std::string error = run(*copyOf(one), inputs,
                              {.allowLibrary = how.allowLibrary, .isolate = how.isolate, .deterministic = true}, want);
      !error.empty())
    return error;
  std::string error = run(*copyOf(other), inputs, how, got);
  if (llvm::StringRef(error).contains("memory budget")) {
    got.clear(), how.share = -1;
    error = run(*copyOf(other), inputs, how, got);
  }
  if (!error.empty())
    return error;
  for (size_t i = 0; i < got.size(); ++i)
    if (std::string difference = op::interp::compare(got[i], want[i]); !difference.empty())
      return "output " + std::to_string(i) + " is not the same bit for bit: " + difference;
  return "";
}

} // namespace

int main(int argc, char **argv) {
  llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  llvm::cl::ParseCommandLineOptions(argc, argv, "Gradients of random programs\n");
  const uint64_t first = seedOption;
  const int count = countOption, mostFailures = failuresOption;
  const bool inject = injectOption, print = printOption;
  Tally tally;
  int failures = 0, injected = 0, noticed = 0;
  std::unique_ptr<mlir::MLIRContext> context;

  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count) && failures < mostFailures; ++seed) {
    if (!context || (seed - first) % 100 == 0) { // what is uniqued in one is never freed
      mlir::DialectRegistry registry;
      graph::registerDialects(registry);
      context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
      context->loadAllAvailableDialects();
    }
    const bool doubles = seed % 2 == 0, twice = doubles && seed % 8 == 0;
    test::RandomGraphOptions how{.minOps = twice ? 4 : 8, .maxOps = twice ? 12 : 40, .largeShare = 0.02};
    if (doubles) {
      how.floats = f64;
      how.without = {"stop_gradient"}; // the gradient is not the slope, on purpose
    }
    test::RandomGraph graph = test::randomGraph(*context, seed, how);
    ++tally.programs;
    if (print)
      llvm::outs() << "// seed " << seed << ", the program\n" << *graph.module << "\n";
    std::string wrong;
    Program loss = lossOf(graph, seed, twice, wrong);
    if (!wrong.empty()) {
      ++failures;
      llvm::errs() << "FAILED seed " << seed << ": " << wrong << "\n";
      continue;
    }
    if (!loss) {
      ++tally.without;
      continue;
    }
    Program gradient = copyOf(*loss);
    test::Random random(seed);
    const int kind = static_cast<int>(random.below(3));
    if (kind > 0)
      markParts(*gradient, random);
    Program whole = kind > 0 ? copyOf(*loss) : Program();
    differentiate(*gradient);
    if (print)
      llvm::outs() << "// seed " << seed << ", its gradient\n" << *gradient << "\n";
    auto fail = [&](const std::string &problem, mlir::ModuleOp module) {
      ++failures;
      llvm::errs() << "FAILED seed " << seed << ": " << problem << "\n" << module << "\n";
    };
    if (mlir::failed(mlir::verify(*gradient))) {
      fail("the gradient does not verify", *gradient);
      continue;
    }
    const graph::Interpretation right = graph::interpret(mainOf(*gradient), graph.inputs);
    if (inject) {
      if (!doubles)
        continue;
      const int forward = test::countOps(*loss), whole = test::countOps(*gradient);
      if (whole <= forward)
        continue;
      Program wrong = copyOf(*gradient);
      runs(*wrong, mlir::createCanonicalizerPass());
      const int left = test::countOps(*wrong);
      if (left == 0) // all is constant
        continue;
      // The last ops are the gradient's; a fault in it that moves the slopes must be seen.
      if (!test::injectWrongOp(*wrong, static_cast<uint64_t>(random.between(left / 2, left - 1))))
        continue;
      const graph::Interpretation made = graph::interpret(mainOf(*wrong), graph.inputs);
      double moved = 0, size = 0;
      bool same = made && op::interp::compare(made.outputs[0], right.outputs[0]).empty();
      for (size_t k = 1; same && k < right.outputs.size(); ++k)
        for (int64_t i = 0, n = right.outputs[k].type.shape.numElements(); i < n; ++i) {
          const double a = right.outputs[k].as<double>()[i], b = made.outputs[k].as<double>()[i];
          moved = std::max(moved, std::isfinite(b) ? std::abs(a - b) : 1e9), size += std::abs(a);
        }
      if (!same || moved < 1e-2 * (1 + size))
        continue;
      std::string problem;
      const Verdict verdict = judge(*loss, graph.inputs, llvm::ArrayRef(made.outputs).drop_front(), seed, problem);
      if (verdict == Verdict::Unknown)
        continue;
      ++injected;
      noticed += verdict == Verdict::Wrong;
      if (verdict == Verdict::Right)
        llvm::errs() << "seed " << seed << ": a wrong gradient went unnoticed\n";
      continue;
    }
    tally.coverage.add(*loss);
    tally.twice += twice;
    if (doubles) {
      std::string problem;
      const Verdict verdict = judge(*loss, graph.inputs, llvm::ArrayRef(right.outputs).drop_front(), seed, problem);
      ++(verdict == Verdict::Unknown ? tally.kinks : tally.judged);
      if (verdict == Verdict::Wrong) {
        test::RandomGraph small = test::shrinkGraph(*loss, graph.inputs, [&](mlir::ModuleOp module, auto inputs) {
          if (mlir::failed(mlir::verify(module)) || mainOf(module).getNumResults() != 1 || !graph::interpret(mainOf(module), inputs))
            return false;
          const TensorType type = graph::fromMlir(mainOf(module).getResultTypes()[0]);
          Program again = copyOf(module);
          if (type.dtype != f64 || type.shape.rank() != 0 || !differentiate(*again))
            return false;
          const graph::Interpretation now = graph::interpret(mainOf(*again), inputs);
          std::string left;
          return now && judge(module, Inputs(inputs.begin(), inputs.end()), llvm::ArrayRef(now.outputs).drop_front(), seed, left) == Verdict::Wrong;
        });
        fail(problem, *small.module);
        continue;
      }
    }
    Compiled options{.allowLibrary = seed % 5 != 0, .share = kind == 2 ? 0.7 + 0.3 * random.unit() : -1, .isolate = seed / 2 % 2 == 0};
    if (whole) {
      test::Random same = random;
      differentiate(*whole);
      updateStates(*whole, same);
    }
    updateStates(*gradient, random);
    if (mlir::failed(mlir::verify(*gradient))) {
      fail("the step does not verify", *gradient);
      continue;
    }
    ++tally.compiled;
    tally.parts += kind > 0, tally.budgets += kind == 2;
    for (unsigned i = 0; i < mainOf(*gradient).getNumArguments(); ++i)
      if (mainOf(*gradient).getArgAttr(i, graph::kStateAttr)) {
        ++tally.steps;
        break;
      }
    if (whole && mainOf(*whole).getFunctionType() == mainOf(*gradient).getFunctionType()) {
      ++tally.alike;
      if (std::string difference = differenceOf(*whole, *gradient, graph.inputs, options); !difference.empty()) {
        fail(difference, *gradient);
        continue;
      }
    }
    const std::string problem = problemOfCompiled(*gradient, graph.inputs, options, &tally);
    if (!problem.empty()) {
      test::RandomGraph small{copyOf(*gradient), graph.inputs};
      if (!llvm::StringRef(problem).contains("state")) // shrinking gives arguments and results new names
        small = test::shrinkGraph(*gradient, graph.inputs, [&](mlir::ModuleOp module, auto inputs) {
          if (mlir::failed(mlir::verify(module)) || !graph::interpret(mainOf(module), inputs))
            return false;
          const std::string left = problemOfCompiled(module, Inputs(inputs.begin(), inputs.end()), options);
          return !left.empty() && llvm::StringRef(left).starts_with("output ") == llvm::StringRef(problem).starts_with("output ");
        });
      fail(problem, *small.module);
    }
  }

  if (inject) {
    llvm::outs() << noticed << " of " << injected << " wrong gradients were noticed\n";
    return injected > 0 && noticed == injected ? 0 : 1;
  }
  llvm::outs() << "ops in programs that were differentiated, by type of the first operand\n"
               << tally.coverage.table() << tally.programs << " programs, " << tally.without
               << " of them without a gradient, or with one that rounding moves\n"
               << tally.judged << " gradients judged by differences, " << tally.twice << " of them of gradients; "
               << tally.kinks << " near a kink in each direction\n"
               << tally.alike << " the same bit for bit with and without parts\n"
               << tally.compiled << " compiled, " << tally.steps << " with states, " << tally.parts
               << " with parts that are made again, " << tally.budgets << " with a budget (" << tally.unmet
               << " could not be met)\n"
               << failures << " failures\n";
  return failures == 0 && tally.judged > tally.programs / 8 && tally.compiled > tally.programs / 4 ? 0 : 1;
}
