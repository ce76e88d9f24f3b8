// tressel: the command line. Parses options, runs a command, turns errors into one message and an exit code.
#include "tools/tressel/Completion.h"
#include "tools/tressel/Tool.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>

using namespace tressel;
using namespace tressel::tool;

namespace {

constexpr char kOverview[] =
    R"(Tressel compiles tensor programs and runs them, on this computer's processor or on machines
with GPUs.

  tressel inspect model.onnx                         what goes in and out, which ops, what is missing
  tressel run model.onnx --random-inputs 1           compile in memory, run once, show the outputs
  tressel explain model.onnx                         what a step will take, what bounds it, what would help
  tressel calibrate                                  measures this machine for that
  tressel compile model.onnx -o model.tsl            write a package: it runs without the compiler
  tressel run model.tsl --input x=x.npy --output-dir out
)";
constexpr char kExit[] =
    R"(Exit status: 0 done; 1 the model or an input is at fault; 2 wrong usage; 3 the machine lacks something;
4 outputs differ from what was expected; 70 a bug in Tressel.
More: docs/cli.md)";

constexpr char kRunExamples[] = R"(
Examples:
  tressel run model.onnx --random-inputs 1
  tressel run model.onnx --dim batch=4 --input x=x.npy --output-dir out
  tressel run model.tsl --input x=x.npy --expect y=y.npy --rtol 1e-4 --atol 1e-5
  tressel run model.onnx --random-inputs 1 --warmup 10 --repeat 100 --json
  tressel run model.onnx --random-inputs 1 --timeline model.html)";
constexpr char kCompileExamples[] = R"(
Examples:
  tressel compile model.onnx -o model.tsl            a package for this machine
  tressel compile model.onnx --cpu baseline,v3,v4    a package for every x86-64, fast on each
  tressel compile model.onnx --emit schedule         show the compiled schedule
  tressel compile model.mlir --emit asm -o -         show the machine code)";

constexpr char kExplainExamples[] = R"(
Examples:
  tressel explain model.onnx --dim batch=8           on this machine
  tressel explain model.tsl --timeline step.html     and draw it
  tressel explain model.onnx --device sim:my.json    on a machine that a file describes (docs/machines.md)
  tressel explain model.onnx --device sim:dgx-h100:64 --dim batch=2048 --ranks data=64
                                                     as one of 64 processes that share the batch (docs/parallel.md)
  tressel explain model.onnx --device sim:dgx-h100:64 --dim batch=2048 --parallel 64
                                                     how to split it over 64 accelerators)";

/// An error message for what is no seed; CLI11 would turn -1 into a huge one.
std::string isSeed(const std::string &text) {
  constexpr const char *what = "a seed is a number from 0 to 18446744073709551615, not '";
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
    return what + text + "'";
  errno = 0;
  (void)std::strtoull(text.c_str(), nullptr, 10);
  return errno ? what + text + "'" : "";
}

/// Changes of one letter (or two letters swapped) that make one word of the other.
size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (!i || !j) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

/// What is wrong with the first word of the command line if it is no command; else empty.
std::string unknownCommand(const CLI::App &app, int argc, char **argv) {
  int first = 1;
  while (first < argc && argv[first][0] == '-')
    first += std::string_view(argv[first]) == "--completion" ? 2 : 1; // with its value
  if (first >= argc)
    return {};
  const std::string word = argv[first];
  std::string best, all;
  for (const CLI::App *command : app.get_subcommands(nullptr)) {
    const std::string &name = command->get_name();
    if (name == word)
      return {};
    all += (all.empty() ? "" : ", ") + name;
    if (best.empty() || editDistance(word, name) < editDistance(word, best))
      best = name;
  }
  const bool close = editDistance(word, best) <= std::max<size_t>(1, word.size() / 3);
  return "there is no command '" + word + "'; " +
         (close ? "did you mean '" + best + "'?" : "the commands are " + all + ".");
}

void addKeepSubnormals(CLI::App &c, bool &flag) {
  c.add_flag("--keep-subnormals", flag,
             "arithmetic on f32 keeps numbers below 1.2e-38 instead of taking them for zeros, which can take a hundred times as long");
}

/// "64M" or "50%".
MemoryBudget memoryBudgetOf(const std::string &text) {
  std::string number = text;
  if (text.ends_with('%')) {
    number.pop_back();
    double percent = 0;
    if (!CLI::detail::lexical_cast(number, percent) || !(percent >= 0 && percent <= 100))
      throw CLI::ValidationError("--memory-budget", text + ": a share is between 0% and 100%");
    return MemoryBudget::share(percent / 100);
  }
  int64_t bytes = 0;
  if (!CLI::AsSizeValue(/*kb_is_1000=*/false)(number).empty() || !CLI::detail::lexical_cast(number, bytes) || bytes < 0)
    throw CLI::ValidationError("--memory-budget",
                               text + ": neither a size like 500000, 64M or 2G nor a share like 50%");
  return bytes;
}
void addMemoryBudget(CLI::App &c, MemoryBudget &budget) {
  c.add_option_function<std::string>(
       "--memory-budget", [&budget](const std::string &text) { budget = memoryBudgetOf(text); },
       "what intermediate values may take at once: 64M, or 50% of what they take without a bound; what does not fit is "
       "computed again")
      ->type_name("SIZE");
}

void addAutocast(CLI::App &c, std::optional<DType> &type) {
  c.add_option_function<std::string>(
       "--autocast", [&type](const std::string &name) { type = name == "f16" ? f16 : bf16; },
       "compute products of f32 (matmul, convolutions) in bf16 or f16, with sums in f32; all else stays f32")
      ->check(CLI::IsMember({"bf16", "f16"}))
      ->type_name("TYPE");
}

void addCompile(CLI::App &app, CompileArgs &a) {
  auto *c = app.add_subcommand("compile", "Compile a model into a package, or show a stage of its compilation");
  c->add_option("MODEL", a.model, "an .onnx file, or an .mlir file in the graph dialect")->required();
  c->add_option("-o,--output", a.output,
                "where to write; - is standard output. Default: MODEL's name with .tsl for a "
                "package, standard output for text");
  c->add_option(
      "--dim", a.dims,
      "NAME=N or NAME=LO..HI: the size of a named dimension, or what it lies between (repeatable); any size if not "
      "given");
  c->add_option("--cpu", a.cpus,
                "what the package runs on: baseline (every x86-64), v3 (AVX2), v4 (AVX-512) or native "
                "(this machine); several, separated by commas, and the best that a machine has is taken there")
      ->delimiter(',')
      ->check(CLI::IsMember({"baseline", "v3", "v4", "native"}))
      ->capture_default_str();
  c->add_option("--emit", a.emit, "what to write: graph, placed, schedule, llvm, asm, ptx or package")
      ->check(CLI::IsMember({"graph", "placed", "schedule", "llvm", "asm", "ptx", "package"}))
      ->capture_default_str();
  c->add_option("--format", a.format,
                "package (a .tsl file), or the same as a shared or static library to link, with a C header beside it")
      ->check(CLI::IsMember({"package", "shared", "static"}))
      ->capture_default_str();
  c->add_option("--load-library", a.libraries, "FILE.so that registers custom ops that the model uses (repeatable)");
  c->add_flag("--allow-library", a.allowLibrary,
              "may use oneDNN's kernels, which the package then needs to have installed where it runs");
  c->add_flag("--strip-locations", a.stripLocations, "leave names of files and nodes out of the package");
  c->add_flag("--deterministic", a.deterministic, "the same bits for any number of threads, whatever is fused, measured or recomputed");
  c->add_option("--device", a.device, "the machine: cpu; cuda, a server with one GPU of the architecture --gpu; or sim:NAME (h100, dgx-h100, ...) or sim:FILE.json")
      ->capture_default_str();
  c->add_option(
       "--gpu", a.gpus,
       "make kernels for GPUs of this architecture: sm_80, sm_90, sm_90a, sm_100, sm_100a, sm_120 (repeatable; the "
       "first decides how "
       "kernels are cut). No GPU needs to be here. GPUs then compute whatever they can")
      ->delimiter(',');
  c->add_option("--tuning", a.tuning,
                "with --gpu: FILE.json of how kernels are cut, as `compile --tune` measured it on a card");
  c->add_flag("--tune", a.tune,
              "measure on this machine's card, which --gpu names the architecture of, what the file of --tuning does "
              "not have, and add it; takes about a second for each kernel");
  c->add_option("--use-history", a.useHistory,
                "FILE.json of measured times (tressel run --history), which the plan goes by");
  c->add_flag("--timings", a.timings, "print on standard error where the time went");
  c->add_flag("--no-cache", a.noCache, "compile everything anew, and keep nothing for the next time");
  c->add_flag("--measure", a.measure, "choose kernels of products and convolutions by timing them on this machine");
  c->add_flag("--winograd", a.winograd,
              "3x3 convolutions may use Winograd's method: faster, but results are off by up to some 1e-4 of the largest");
  addKeepSubnormals(*c, a.keepSubnormals);
  addMemoryBudget(*c, a.memoryBudget);
  addAutocast(*c, a.autocast);
  c->add_flag("--tressel-verify-each", a.verifyEach, "interpret the program before and after each pass (slow)")
      ->group("For developers");
  c->add_option("--disable-pass", a.disabledPasses, "leave a pass out, by name (repeatable)")->group("For developers");
  c->footer(kCompileExamples);
}

constexpr const char *kFunctionHelp = "which function of a package that has several; else its first";

void addRun(CLI::App &app, RunArgs &a) {
  auto *c = app.add_subcommand("run", "Run a model or a package");
  c->add_option("MODEL", a.model, "an .onnx file, an .mlir file in the graph dialect, or a .tsl package")->required();
  c->add_option("--function", a.function, kFunctionHelp);
  c->add_option("--input", a.inputs, "[NAME=]FILE with the value of an input: .npy, .npz or ONNX's .pb (repeatable)");
  c->add_option("--random-inputs", a.randomSeed, "fill the inputs that are not given with random numbers from SEED")
      ->type_name("SEED")
      ->check(isSeed);
  c->add_option("--dim", a.dims, "NAME=N: the size of a named dimension (repeatable); else from the inputs, else 1");
  c->add_option("--output-dir", a.outputDir, "write each output there as NAME.npy, and outputs.json");
  c->add_option("--expect", a.expect, "NAME=FILE: compare an output with a file (repeatable)");
  c->add_option("--rtol", a.rtol, "relative tolerance of --expect and --test-data")->capture_default_str();
  c->add_option("--atol", a.atol, "absolute tolerance of --expect and --test-data")->capture_default_str();
  c->add_option("--test-data", a.testData,
                "a folder with input_0.pb, output_0.pb, ... (or with test_data_set_0, ...): "
                "take the inputs from it and compare the outputs");
  c->add_option("--repeat", a.repeat, "timed runs")->check(CLI::Range(1, 1000000000))->capture_default_str();
  c->add_option("--warmup", a.warmup, "runs before those")->check(CLI::Range(0, 1000000000))->capture_default_str();
  c->add_flag("--json", a.json, "print results and times as one JSON object");
  c->add_option("--device", a.device,
                "the machine: cpu; cpu:N, its cores as N accelerators; cuda, this one with its NVIDIA GPUs; or "
                "sim:NAME (2gpu-pcie3, h100, ...) or sim:FILE.json, which is simulated: true numbers, virtual time")
      ->capture_default_str();
  c->add_option("--gpu", a.gpus, "with sim:...: run the kernels of GPUs of this architecture (sm_90), emulated on the processor, instead of the processor's own; with cuda: compile for it instead of the card's own")
      ->expected(1);
  c->add_option("--history", a.history,
                "FILE.json: time the kernels of as many calls more as --repeat says, and add the times to the file");
  c->add_option("--tuning", a.tuning,
                "for kernels of GPUs: FILE.json of how kernels are cut, as `compile --tune` measured it on a card");
  c->add_option("--use-history", a.useHistory, "FILE.json of measured times, which the plan goes by");
  c->add_flag("--no-library", a.noLibrary, "use no kernels of oneDNN");
  c->add_flag("--no-cache", a.noCache, "compile everything anew, and keep nothing for the next time");
  c->add_flag("--measure", a.measure, "choose kernels of products and convolutions by timing them on this machine");
  c->add_flag("--winograd", a.winograd,
              "3x3 convolutions may use Winograd's method: faster, but results are off by up to some 1e-4 of the largest");
  addKeepSubnormals(*c, a.keepSubnormals);
  addMemoryBudget(*c, a.memoryBudget);
  addAutocast(*c, a.autocast);
  c->add_option("--load-library", a.libraries, "FILE.so with kernels of custom ops that the program uses (repeatable)");
  c->add_option("--timeline", a.timeline,
                "FILE.json (Perfetto), .svg, .html or .dot: draw when the commands of one more call ran; - draws in the "
                "terminal");
  c->footer(kRunExamples);
}

void addBisect(CLI::App &app, BisectArgs &a) {
  auto *c =
      app.add_subcommand("bisect", "Find the pass or kernel that makes a compiled model differ from the interpreter");
  c->add_option("MODEL", a.model, "an .onnx file, or an .mlir file in the graph dialect")->required();
  c->add_option("--input", a.inputs, "[NAME=]FILE with the value of an input (repeatable); others are random");
  c->add_option("--random-inputs", a.seed, "SEED of the inputs that are not given")
      ->type_name("SEED")
      ->check(isSeed)
      ->capture_default_str();
  c->add_option("--dim", a.dims, "NAME=N: the size of a named dimension (repeatable)");
  c->add_option("--rtol", a.rtol, "relative tolerance; 0 where --atol alone is given, by element type where neither is");
  c->add_option("--atol", a.atol, "absolute tolerance; 0 where --rtol alone is given, by element type where neither is");
  c->add_option("--device", a.device,
                "the machine that the model is compiled for and run on: cpu, sim:NAME or sim:FILE.json")
      ->capture_default_str();
  c->add_option("--gpu", a.gpus, "with sim:...: look at the kernels of GPUs of this architecture (sm_90), emulated on the processor")->expected(1);
  c->add_flag("--no-library", a.noLibrary, "use no kernels of oneDNN");
  addKeepSubnormals(*c, a.keepSubnormals);
  c->add_option("--load-library", a.libraries, "FILE.so that registers custom ops that the model uses (repeatable)");
  c->add_option("-o,--output", a.output, "where to write the smallest program that shows the difference")
      ->capture_default_str();
  c->footer("\nPrints a verdict. Exit status 0: no difference; 4: there is one.");
}

void addExplain(CLI::App &app, ExplainArgs &a) {
  auto *c = app.add_subcommand("explain", "Predict a step: how long it takes, what bounds it, and what would help");
  c->add_option("MODEL", a.model, "an .onnx file, an .mlir file in the graph dialect, or a .tsl package")->required();
  c->add_option("--function", a.function, kFunctionHelp);
  c->add_option("--device", a.device,
                "the machine: cpu (this one); cpu:N, its cores as N accelerators; cuda, with --gpu; sim:NAME "
                "(2gpu-pcie3, h100, h200, dgx-h100, cluster-10gbe, ...) or sim:FILE.json")
      ->capture_default_str();
  c->add_option(
       "--gpu", a.gpus,
       "predict with the kernels made for GPUs of this architecture: sm_80, sm_90, sm_90a, sm_100, sm_100a, sm_120")
      ->expected(1);
  c->add_option("--dim", a.dims, "NAME=N: the size of a named dimension (repeatable); else 1");
  c->add_option("--parallel", a.parallel, "N: compare ways to split the model over N accelerators, and recommend one")
      ->check(CLI::Range(1, 4096));
  c->add_option("--ranks", a.ranks,
                "MESH, as data=64 or data=8,model=4: predict one of so many processes, each with an accelerator of its "
                "own; the first axis cuts the first dimension of inputs")
      ->check([](const std::string &mesh) { return mesh.empty() ? "names no axis: as data=64" : std::string(); });
  c->add_option("--tuning", a.tuning,
                "with --gpu: FILE.json of how kernels are cut, as `compile --tune` measured it on a card");
  c->add_option("--use-history", a.useHistory,
                "FILE.json of measured times (tressel run --history), which count instead of the machine's figures");
  c->add_option("--timeline", a.timeline, "draw the predicted step into a file: .json (for Perfetto), .html, .svg or .dot");
  c->add_flag("--json", a.json, "print one JSON object");
  c->add_flag("--allow-library", a.allowLibrary, "may use oneDNN's kernels");
  c->add_flag("--winograd", a.winograd, "3x3 convolutions may use Winograd's method");
  addKeepSubnormals(*c, a.keepSubnormals);
  addMemoryBudget(*c, a.memoryBudget);
  addAutocast(*c, a.autocast);
  c->add_option("--load-library", a.libraries, "FILE.so that registers custom ops that the model uses (repeatable)");
  c->footer(kExplainExamples);
}

void addCalibrate(CLI::App &app, CalibrateArgs &a) {
  auto *c = app.add_subcommand("calibrate", "Measure this machine's processor, and write a machine file for predictions");
  c->add_option("-o,--output", a.output, "FILE.json, or - for standard output, instead of keeping the figures for this user");
  c->footer(R"(
Examples:
  tressel calibrate                                  half a minute; best while the machine does nothing else. Compilations and predictions go by it
  tressel calibrate -o here.json                     a file for --device sim:here.json, here or elsewhere
  tressel explain model.onnx --device sim:here.json  predicts with it)");
}

void addCache(CLI::App &app, CacheArgs &a) {
  auto *c = app.add_subcommand("cache", "Show or empty the cache of compiled kernels");
  c->add_option("ACTION", a.action,
                "info (how much it holds), path (its folder), verify (delete damaged entries) or clear (delete all)")
      ->check(CLI::IsMember({"info", "path", "verify", "clear"}))
      ->capture_default_str();
  c->add_flag("--json", a.json, "print one JSON object");
}

int run(int argc, char **argv) {
  CLI::App app{kOverview, "tressel"};
  CompileArgs compile;
  RunArgs runArgs;
  InspectArgs inspect;
  BisectArgs bisect;
  CacheArgs cache;
  ExplainArgs explain;
  CalibrateArgs calibrate;
  bool devicesJson = false;
  app.set_version_flag("--version", std::string("tressel ") + TRESSEL_VERSION);
  app.add_flag("-q,--quiet", verbosity().quiet, "only results and errors");
  app.add_flag("-v,--verbose", verbosity().verbose, "say more on standard error");
  app.add_option_function<std::string>(
         "--completion",
         [&app](const std::string &shell) { throw CLI::CallForVersion(completionScript(app, shell), 0); },
         "print a script that completes tressel's commands and options: bash, zsh or fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(kExit);
  addCompile(app, compile);
  addRun(app, runArgs);
  addExplain(app, explain);
  addCalibrate(app, calibrate);
  addBisect(app, bisect);
  auto *i = app.add_subcommand("inspect", "Show what a model or package takes, gives and needs");
  i->add_option("FILE", inspect.file, "an .onnx, .mlir or .tsl file")->required();
  i->add_option("--function", inspect.function, kFunctionHelp);
  i->add_flag("--json", inspect.json, "print one JSON object");
  addCache(app, cache);
  auto *d = app.add_subcommand("devices", "List the devices that programs can run on");
  d->add_flag("--json", devicesJson, "print one JSON object");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &e) { // --help, --version
    return app.exit(e), kOk;
  } catch (const CLI::ParseError &e) {
    std::string text = unknownCommand(app, argc, argv);
    if (text.empty())
      text = e.what();
    complain(text + (text.ends_with(".") || text.ends_with("?") ? "" : ".") + " Try tressel --help");
    return kUsage;
  }
  if (app.got_subcommand("compile"))
    return compileCommand(compile);
  if (app.got_subcommand("run"))
    return runCommand(runArgs);
  if (app.got_subcommand("explain"))
    return explainCommand(explain);
  if (app.got_subcommand("calibrate"))
    return calibrateCommand(calibrate);
  if (app.got_subcommand("bisect"))
    return bisectCommand(bisect);
  if (app.got_subcommand("inspect"))
    return inspectCommand(inspect);
  if (app.got_subcommand("cache"))
    return cacheCommand(cache);
  return devicesCommand(devicesJson);
}

} // namespace

int main(int argc, char **argv) {
  try {
    const int status = run(argc, argv);
    std::cout.flush();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) || !std::cout)
      throw EnvironmentError("the results cannot be written to standard output");
    return status;
  } catch (const UsageError &e) {
    complain(e.what());
    return kUsage;
  } catch (const EnvironmentError &e) {
    complain(e.what());
    return kEnvironment;
  } catch (const OutOfMemory &e) {
    complain(e.what());
    return kEnvironment;
  } catch (const std::bad_alloc &) {
    complain("out of memory");
    return kEnvironment;
  } catch (const InternalError &e) {
    complain(std::string("internal error: ") + e.what() +
             "\nThis is a bug in Tressel; please report it with this command.");
    return kBug;
  } catch (const Error &e) {
    complain(e.what());
    return kInput;
  } catch (const std::exception &e) {
    complain(std::string("unexpected: ") + e.what() +
             "\nThis is a bug in Tressel; please report it with this command.");
    return kBug;
  } catch (...) {
    complain("unexpected exception\nThis is a bug in Tressel; please report it with this command.");
    return kBug;
  }
}
