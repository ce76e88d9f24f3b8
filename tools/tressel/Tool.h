// What all commands share: global options, messages, exit codes, files.
#pragma once

#include "tressel/runtime/Error.h"
#include "tressel/runtime/MemoryBudget.h"
#include "tressel/runtime/Types.h"

#include <chrono>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tressel::runtime {
class Machine;
}

namespace tressel::tool {

/// The contract with scripts (docs/cli.md).
enum Exit : int {
  kOk = 0,
  kInput = 1,       ///< the model, a package, an input file or a size is at fault
  kUsage = 2,       ///< the command line is
  kEnvironment = 3, ///< no such device, no memory, no disk
  kDiffers = 4,     ///< outputs differ from what --expect or --test-data say
  kBug = 70,
};

struct UsageError : Error {
  using Error::Error;
};
struct EnvironmentError : Error {
  using Error::Error;
};

/// -q and -v.
struct Verbosity {
  bool quiet = false, verbose = false;
};
Verbosity &verbosity();
/// Text from files without control characters, which could steer a terminal.
std::string harmless(std::string text);
/// Lines on standard error: with -v only, always but with -q, always.
void detail(const std::string &message);
void note(const std::string &message);
/// Prints a note when this machine is slower now than when it was calibrated, as predictions are then too low.
void noteLoad();
void complain(const std::string &message);

/// One line of progress on standard error, shown once the work takes longer than a second; only on a terminal, and
/// without -q. The destructor erases it.
class ProgressLine {
public:
  ~ProgressLine();
  /// Thread-safe; cheap where nothing is shown.
  void show(const std::string &text);

private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  bool shown_ = false;
};

/// Writes to standard output for "-", else to a file beside `path` that is then renamed, so that no reader sees half a
/// file. Throws EnvironmentError.
void writeFile(const std::string &path, std::string_view bytes);
void writeFile(const std::string &path, std::span<const std::span<const std::byte>> pieces);
/// Throws EnvironmentError if writeFile would: checked before long work. Leaves no file.
void checkWritable(const std::string &path);
/// The folder and those above it. Throws EnvironmentError.
void makeFolder(const std::string &path);

/// A dimension's size (lo equals hi), or its range.
struct DimRange {
  int64_t lo = 1, hi = 1;
};
/// "NAME=N" and "NAME=LO..HI" of --dim. Throws UsageError for another form.
std::map<std::string, DimRange> parseDims(const std::vector<std::string> &options);
/// The same where sizes are wanted, not ranges.
std::map<std::string, int64_t> parseSizes(const std::vector<std::string> &options);
/// Throws UsageError for what is negative or no number.
void checkTolerances(double rtol, double atol);
/// Throws UsageError if one of these options, which say how to compile, is given (true) with a package.
void checkCompiled(std::initializer_list<std::pair<const char *, bool>> options);
/// Rethrows `why`, the error for a device that does not exist: as UsageError if its name is wrong, as InputError if the
/// device's file is. Called in the catch block.
[[noreturn]] void refuseDevice(const std::string &device, const InputError &why);
/// The machine that --device names; null for `cpu`. Throws UsageError or EnvironmentError for a device that is unknown
/// or absent, and what reading a machine's file throws. `stamps`: GPUs record the time of each command, and run no CUDA
/// graphs.
std::shared_ptr<runtime::Machine> machineOf(const std::string &device, const std::string &architecture = {},
                                            bool stamps = false);

bool endsWith(std::string_view text, std::string_view suffix);
/// "1.2 MB".
std::string humanBytes(int64_t bytes);
/// "1.23 ms".
std::string humanSeconds(double seconds);

// The commands. Each returns an exit code or throws.
struct CompileArgs {
  std::string model, output, device = "cpu", emit = "package", format = "package";
  std::optional<DType> autocast;
  std::string useHistory, tuning;
  MemoryBudget memoryBudget;
  std::vector<std::string> cpus = {"native"};
  std::vector<std::string> gpus, dims, disabledPasses, libraries;
  bool allowLibrary = false, stripLocations = false, deterministic = false, timings = false, noCache = false,
       measure = false, winograd = false, keepSubnormals = false, verifyEach = false, tune = false;
};
struct RunArgs {
  std::string model, device = "cpu", testData, outputDir, timeline, history, useHistory, tuning, function;
  std::optional<DType> autocast;
  MemoryBudget memoryBudget;
  std::vector<std::string> gpus, inputs, dims, expect, libraries;
  std::optional<uint64_t> randomSeed;
  double rtol = 1e-4, atol = 1e-5;
  int repeat = 1, warmup = 0;
  bool json = false, noLibrary = false, noCache = false, measure = false, winograd = false, keepSubnormals = false;
};
struct BisectArgs {
  std::string model, output = "bisect.mlir", device = "cpu";
  std::vector<std::string> gpus, inputs, dims, libraries;
  uint64_t seed = 1;
  std::optional<double> rtol, atol;
  bool noLibrary = false, keepSubnormals = false;
};
struct InspectArgs {
  std::string file, function;
  bool json = false;
};
int compileCommand(const CompileArgs &args);
int runCommand(const RunArgs &args);
int bisectCommand(const BisectArgs &args);
int inspectCommand(const InspectArgs &args);
int devicesCommand(bool json);
struct CacheArgs {
  std::string action = "info"; ///< info, path, verify, clear
  bool json = false;
};
int cacheCommand(const CacheArgs &args);
struct ExplainArgs {
  std::string model, device = "cpu", timeline, useHistory, tuning, function, ranks;
  std::optional<DType> autocast;
  MemoryBudget memoryBudget;
  std::vector<std::string> gpus, dims, libraries;
  int64_t parallel = 0;
  bool json = false, allowLibrary = false, winograd = false, keepSubnormals = false;
};
int explainCommand(const ExplainArgs &args);
struct CalibrateArgs {
  std::string output; ///< empty: where compilations look for it
};
int calibrateCommand(const CalibrateArgs &args);

} // namespace tressel::tool
