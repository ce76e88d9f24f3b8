#include "tools/tressel/Tool.h"

#include "tools/tressel/Compiler.h"
#include "tressel/runtime/Device.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/HostLoad.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

namespace tressel::tool {

namespace fs = std::filesystem;

Verbosity &verbosity() {
  static Verbosity v;
  return v;
}

static bool colored() {
  static const bool yes = isatty(STDERR_FILENO) && !std::getenv("NO_COLOR");
  return yes;
}
std::string harmless(std::string text) {
  for (char &c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
      c = '?';
  return text;
}
static void line(const char *color, const char *kind, const std::string &raw) {
  const std::string message = harmless(raw);
  std::fflush(stdout);
  if (colored())
    std::fprintf(stderr, "tressel: %s%s:\033[0m %s\n", color, kind, message.c_str());
  else
    std::fprintf(stderr, "tressel: %s: %s\n", kind, message.c_str());
}
void detail(const std::string &message) {
  if (verbosity().verbose && !verbosity().quiet)
    line("\033[2m", "info", message);
}
void note(const std::string &message) {
  if (!verbosity().quiet)
    line("\033[1m", "note", message);
}
void noteLoad() {
  const runtime::MachineModel machine = runtime::hostMachine();
  const runtime::DeviceModel &cpu = machine.devices.front();
  if (cpu.pieceSeconds <= 0)
    return;
  if (const std::optional<std::string> load = runtime::describeLoad(cpu, runtime::timePiece(cpu.threads)))
    note(*load);
}
void complain(const std::string &message) { line("\033[1;31m", "error", message); }

void ProgressLine::show(const std::string &text) {
  static const bool terminal = isatty(STDERR_FILENO);
  if (!terminal || verbosity().quiet || std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1))
    return;
  std::lock_guard lock(mutex_);
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}
ProgressLine::~ProgressLine() {
  if (shown_)
    std::fputs("\r\033[K", stderr);
}

void writeFile(const std::string &path, std::string_view bytes) {
  const std::span<const std::byte> piece = std::as_bytes(std::span(bytes));
  writeFile(path, {&piece, 1});
}

void writeFile(const std::string &path, std::span<const std::span<const std::byte>> pieces) {
  if (path == "-") {
    for (std::span<const std::byte> piece : pieces)
      if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size())
        throw EnvironmentError(std::string("standard output: ") + std::strerror(errno));
    if (std::fflush(stdout))
      throw EnvironmentError(std::string("standard output: ") + std::strerror(errno));
    return;
  }
  try {
    runtime::writeFile(path, pieces);
  } catch (const RuntimeError &e) {
    throw EnvironmentError(e.what());
  }
}

void checkWritable(const std::string &path) {
  if (path == "-")
    return;
  if (fs::is_directory(path))
    throw EnvironmentError(path + ": is a folder");
  if (fs::exists(path) && !fs::is_regular_file(path)) { // a device or a pipe is written in its place
    if (access(path.c_str(), W_OK) != 0)
      throw EnvironmentError(path + ": cannot be written: " + std::strerror(errno));
    return;
  }
  const fs::path folder = fs::path(path).parent_path();
  std::string probe = (folder / ".tressel-XXXXXX").string();
  const int file = mkstemp(probe.data());
  if (file < 0)
    throw EnvironmentError(path + ": cannot be written: " + std::strerror(errno));
  close(file);
  unlink(probe.c_str());
}

void makeFolder(const std::string &path) {
  std::error_code ec;
  fs::create_directories(path, ec);
  if (ec)
    throw EnvironmentError(path + ": " + ec.message());
}

std::map<std::string, DimRange> parseDims(const std::vector<std::string> &options) {
  std::map<std::string, DimRange> dims;
  for (const std::string &option : options) {
    const size_t at = option.rfind('='); // names of dimensions may hold anything
    const std::string value = at == std::string::npos ? "" : option.substr(at + 1);
    auto wrong = [&] { return UsageError("--dim takes NAME=N or NAME=LO..HI, not '" + option + "'"); };
    auto number = [&](const std::string &text) {
      char *end = nullptr;
      errno = 0;
      const long long size = std::strtoll(text.c_str(), &end, 10);
      if (text.empty() || *end || errno)
        throw wrong();
      return static_cast<int64_t>(size);
    };
    if (at == 0 || value.empty())
      throw wrong();
    const size_t dots = value.find("..");
    DimRange range;
    range.lo = number(value.substr(0, dots));
    range.hi = dots == std::string::npos ? range.lo : number(value.substr(dots + 2));
    if (range.lo != range.hi && range.hi > dim::kMaxSize)
      throw UsageError("--dim " + option + ": no dimension is larger than " + std::to_string(dim::kMaxSize));
    if (range.lo > range.hi)
      throw UsageError("--dim " + option + ": the range is empty");
    if (!dims.emplace(option.substr(0, at), range).second)
      throw UsageError("--dim " + option.substr(0, at) + " is given twice");
  }
  return dims;
}

std::map<std::string, int64_t> parseSizes(const std::vector<std::string> &options) {
  std::map<std::string, int64_t> sizes;
  for (const auto &[name, range] : parseDims(options)) {
    if (range.lo != range.hi)
      throw UsageError("--dim " + name + ": give one size here; ranges are for tressel compile");
    sizes.emplace(name, range.lo);
  }
  return sizes;
}

void checkTolerances(double rtol, double atol) {
  if (!(rtol >= 0 && std::isfinite(rtol) && atol >= 0 && std::isfinite(atol)))
    throw UsageError("--rtol and --atol must be finite and not negative");
}

void checkCompiled(std::initializer_list<std::pair<const char *, bool>> options) {
  for (const auto &[option, isGiven] : options)
    if (isGiven)
      throw UsageError(std::string(option) + " says how to compile, and a package is compiled already; give the model that it was made of");
}

void refuseDevice(const std::string &device, const InputError &why) {
  if (device.ends_with(".json"))
    throw; // the file is at fault: the error stays an InputError
  throw UsageError(why.message());
}

std::shared_ptr<runtime::Machine> machineOf(const std::string &device, const std::string &architecture, bool stamps) {
  if (device == "cuda" || device.starts_with("cuda:")) try {
      return runtime::openMachine(device, {.architecture = architecture, .stamps = stamps});
    } catch (const InputError &) {
      throw;
    } catch (const Error &missing) {
      throw EnvironmentError(missing.message() + "; `tressel devices` lists what is, and --device sim:h100 --gpu sm_90 emulates the kernels of a GPU");
    }
  if (device != "cpu" && !device.starts_with("cpu:") && !device.starts_with("sim:"))
    throw UsageError("--device: '" + device + "' is no device; `tressel devices` lists what is available");
  try {
    return runtime::openMachine(device);
  } catch (const InputError &wrong) {
    refuseDevice(device, wrong);
  }
}

bool endsWith(std::string_view text, std::string_view suffix) { return text.ends_with(suffix); }

std::string humanBytes(int64_t bytes) {
  const char *units[] = {"bytes", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1000 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}

std::string humanSeconds(double seconds) {
  char text[32];
  if (seconds < 1e-3)
    std::snprintf(text, sizeof text, "%.2f us", seconds * 1e6);
  else if (seconds < 1)
    std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.2f s", seconds);
  return text;
}

CompilerLibrary &compiler() {
  static CompilerLibrary *library = [] {
    std::error_code ec;
    fs::path self = fs::read_symlink("/proc/self/exe", ec);
    fs::path file = self.parent_path().parent_path() / "lib" / "libtressel_compiler.so";
    // Never unloaded: the compiler's static state outlives main. Lazy: it calls few of the functions of LLVM and MLIR
    // that it is linked to, and binding all takes longer than most commands.
    void *handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
      throw EnvironmentError(std::string("the compiler cannot be loaded: ") + dlerror());
    auto entry = reinterpret_cast<CompilerEntry>(dlsym(handle, kCompilerEntry));
    if (!entry)
      throw EnvironmentError(file.string() + " is not Tressel's compiler");
    return entry();
  }();
  return *library;
}

} // namespace tressel::tool
