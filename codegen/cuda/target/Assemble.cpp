#include "codegen/cuda/target/Assemble.h"

#include "tressel/runtime/Error.h"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace tressel::codegen::cuda {
namespace {

namespace fs = std::filesystem;

/// Where a toolkit may be, most particular first.
std::vector<fs::path> toolkits() {
  std::vector<fs::path> found;
  for (const char *name : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"})
    if (const char *value = std::getenv(name); value && *value)
      found.emplace_back(value);
  found.emplace_back("/usr/local/cuda");
  return found;
}

/// The figures of each kernel in what the assembler prints when asked to be verbose.
std::vector<KernelResources> readLog(std::string_view log) {
  std::vector<KernelResources> kernels;
  // The number before `unit`, on a line.
  auto numberBefore = [](std::string_view line, std::string_view unit) -> int64_t {
    const size_t at = line.find(unit);
    if (at == std::string_view::npos)
      return 0;
    size_t begin = at;
    while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
      --begin;
    int64_t value = 0;
    std::from_chars(line.data() + begin, line.data() + at, value);
    return value;
  };
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    constexpr std::string_view entry = "Compiling entry function '";
    if (const size_t at = line.find(entry); at != std::string_view::npos) {
      const std::string_view name = line.substr(at + entry.size());
      kernels.push_back({.symbol = std::string(name.substr(0, name.find('\'')))});
    } else if (kernels.empty()) {
      continue;
    } else if (line.find(" bytes stack frame") != std::string_view::npos) {
      kernels.back().stackBytes = numberBefore(line, " bytes stack frame");
      kernels.back().spillStores = numberBefore(line, " bytes spill stores");
      kernels.back().spillLoads = numberBefore(line, " bytes spill loads");
    } else if (line.find("Used ") != std::string_view::npos) {
      kernels.back().registers = static_cast<int>(numberBefore(line, " registers"));
      kernels.back().sharedBytes = numberBefore(line, " bytes smem");
    }
  }
  return kernels;
}

[[noreturn]] void refuse(const std::string &tool, const Arch &arch, const std::string &words) {
  throw InternalError("generated PTX for " + std::string(arch.name) + " is refused by " + tool + ": " + words);
}

/// One that works is found once per process.
class Assembler {
public:
  virtual ~Assembler() = default;
  virtual Assembled assemble(std::string_view ptx, const Arch &arch) = 0;
  std::string name;
};

class NvJitLink final : public Assembler {
public:
  /// Null, with `why` extended, if there is none.
  static std::unique_ptr<NvJitLink> find(std::string &why) {
    auto library = std::make_unique<NvJitLink>();
    for (const char *file : {"libnvJitLink.so.13", "libnvJitLink.so.12"}) {
      std::vector<std::string> paths{file};
      for (const fs::path &toolkit : toolkits())
        for (const char *folder : {"lib64", "lib"})
          paths.push_back((toolkit / folder / file).string());
      for (const std::string &path : paths) {
        void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle)
          continue;
        if (library->resolve(handle))
          return library;
        dlclose(handle);
        why += path + " lacks functions; ";
      }
    }
    why += "no libnvJitLink.so.13 or .12 on the loader's path, under CUDA_HOME, CUDA_PATH, CUDA_ROOT or "
           "/usr/local/cuda";
    return nullptr;
  }

  Assembled assemble(std::string_view ptx, const Arch &arch) override {
    std::lock_guard lock(mutex_);
    const std::string target = "-arch=" + std::string(arch.name);
    const char *options[] = {target.c_str(), "-Xptxas=-v"};
    struct Handle {
      ~Handle() {
        if (link)
          destroy(&link);
      }
      void *link = nullptr;
      int (*destroy)(void **);
    } handle{.destroy = destroy_};
    const std::string text(ptx); // ends with a zero
    constexpr int kPtx = 2;
    int result = create_(&handle.link, 2, options);
    if (result == 0)
      result = addData_(handle.link, kPtx, text.c_str(), text.size() + 1, "kernels");
    if (result == 0)
      result = complete_(handle.link);
    if (result != 0)
      refuse(name, arch, log(handle.link, errorLogSize_, errorLog_) + " (result " + std::to_string(result) + ")");
    Assembled assembled;
    size_t size = 0;
    if (cubinSize_(handle.link, &size) != 0)
      refuse(name, arch, "no code");
    assembled.cubin.resize(size);
    if (cubin_(handle.link, assembled.cubin.data()) != 0)
      refuse(name, arch, "no code");
    assembled.kernels = readLog(log(handle.link, infoLogSize_, infoLog_));
    assembled.tool = name;
    return assembled;
  }

private:
  bool resolve(void *library) {
    auto get = [&](auto &function, const std::string &symbol) {
      // Each version has names of its own; the plain ones are not in all.
      void *address = dlsym(library, symbol.c_str());
      for (int major = 13; !address && major >= 12; --major)
        for (int minor = 9; !address && minor >= 0; --minor)
          address = dlsym(library, ("__" + symbol + "_" + std::to_string(major) + "_" + std::to_string(minor)).c_str());
      function = reinterpret_cast<std::decay_t<decltype(function)>>(address);
      return address != nullptr;
    };
    int (*version)(unsigned *, unsigned *) = nullptr;
    if (!get(create_, "nvJitLinkCreate") || !get(destroy_, "nvJitLinkDestroy") || !get(addData_, "nvJitLinkAddData") ||
        !get(complete_, "nvJitLinkComplete") || !get(cubinSize_, "nvJitLinkGetLinkedCubinSize") ||
        !get(cubin_, "nvJitLinkGetLinkedCubin") || !get(errorLogSize_, "nvJitLinkGetErrorLogSize") ||
        !get(errorLog_, "nvJitLinkGetErrorLog") || !get(infoLogSize_, "nvJitLinkGetInfoLogSize") ||
        !get(infoLog_, "nvJitLinkGetInfoLog"))
      return false;
    name = "nvJitLink";
    unsigned major = 0, minor = 0;
    if (get(version, "nvJitLinkVersion") && version(&major, &minor) == 0)
      name += " " + std::to_string(major) + "." + std::to_string(minor);
    return true;
  }
  static std::string log(void *link, int (*sizeOf)(void *, size_t *), int (*read)(void *, char *)) {
    size_t size = 0;
    if (!link || sizeOf(link, &size) != 0 || size == 0)
      return {};
    std::string text(size, '\0');
    if (read(link, text.data()) != 0)
      return {};
    text.resize(std::strlen(text.c_str()));
    return text;
  }

  std::mutex mutex_; ///< nothing says that the library may be called by several threads
  int (*create_)(void **, uint32_t, const char **) = nullptr;
  int (*destroy_)(void **) = nullptr;
  int (*addData_)(void *, int, const void *, size_t, const char *) = nullptr;
  int (*complete_)(void *) = nullptr;
  int (*cubinSize_)(void *, size_t *) = nullptr;
  int (*cubin_)(void *, void *) = nullptr;
  int (*errorLogSize_)(void *, size_t *) = nullptr, (*infoLogSize_)(void *, size_t *) = nullptr;
  int (*errorLog_)(void *, char *) = nullptr, (*infoLog_)(void *, char *) = nullptr;
};

class Ptxas final : public Assembler {
public:
  static std::unique_ptr<Ptxas> find(std::string &why) {
    std::vector<fs::path> paths;
    for (const fs::path &toolkit : toolkits())
      paths.push_back(toolkit / "bin" / "ptxas");
    if (const char *list = std::getenv("PATH")) {
      std::string_view rest = list;
      while (!rest.empty()) {
        const size_t end = std::min(rest.find(':'), rest.size());
        if (end)
          paths.push_back(fs::path(rest.substr(0, end)) / "ptxas");
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    for (const fs::path &path : paths) {
      if (access(path.c_str(), X_OK) != 0)
        continue;
      auto program = std::make_unique<Ptxas>();
      program->path_ = path.string();
      std::string words;
      if (program->call({"--version"}, words) != 0)
        continue;
      program->name = "ptxas";
      if (const size_t at = words.find("release "); at != std::string::npos)
        program->name += " " + words.substr(at + 8, words.find_first_of(",\n", at) - at - 8);
      return program;
    }
    why += "no program ptxas under CUDA_HOME, CUDA_PATH, CUDA_ROOT, /usr/local/cuda or on the PATH";
    return nullptr;
  }

  Assembled assemble(std::string_view ptx, const Arch &arch) override {
    const Folder folder;
    const fs::path in = folder.path / "kernels.ptx", out = folder.path / "kernels.cubin";
    std::ofstream(in, std::ios::binary).write(ptx.data(), static_cast<std::streamsize>(ptx.size()));
    std::string words;
    if (call({"-v", "-arch=" + std::string(arch.name), in.string(), "-o", out.string()}, words) != 0)
      refuse(name, arch, words);
    Assembled assembled;
    std::ifstream file(out, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    assembled.cubin.resize(bytes.size());
    std::memcpy(assembled.cubin.data(), bytes.data(), bytes.size());
    assembled.kernels = readLog(words);
    assembled.tool = name;
    return assembled;
  }

private:
  struct Folder {
    Folder() {
      std::string name = (fs::temp_directory_path() / "tressel-ptxas-XXXXXX").string();
      if (!mkdtemp(name.data()))
        throw RuntimeError("no temporary folder can be made: " + name + ": " + std::strerror(errno));
      path = name;
    }
    ~Folder() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
    fs::path path;
  };

  /// The exit status, and what it printed.
  int call(std::vector<std::string> arguments, std::string &words) const {
    const Folder folder;
    const fs::path output = folder.path / "output";
    arguments.insert(arguments.begin(), path_);
    std::vector<char *> list;
    for (std::string &argument : arguments)
      list.push_back(argument.data());
    list.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    pid_t child = 0;
    const int failed = posix_spawn(&child, path_.c_str(), &files, nullptr, list.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    int status = 0;
    if (failed)
      return failed;
    while (waitpid(child, &status, 0) < 0)
      if (errno != EINTR)
        return errno;
    std::ifstream file(output);
    words.assign(std::istreambuf_iterator<char>(file), {});
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }

  std::string path_;
};

struct Choice {
  std::unique_ptr<Assembler> assembler;
  std::unique_ptr<Assembler> second; ///< asked where the first one spills, if nobody chose
  std::string why;
};

/// By the environment variable's value.
Choice choose(const std::string &wanted) {
  Choice choice;
  if (wanted == "none") {
    choice.why = "TRESSEL_ASSEMBLER is none";
    return choice;
  }
  if (!wanted.empty() && wanted != "nvjitlink" && wanted != "ptxas")
    throw Error({.message = "TRESSEL_ASSEMBLER is '" + wanted + "'", .hint = "use none, nvjitlink or ptxas"});
  if (wanted != "ptxas")
    choice.assembler = NvJitLink::find(choice.why);
  if (!choice.assembler && wanted != "nvjitlink") {
    choice.why += choice.why.empty() ? "" : "; ";
    choice.assembler = Ptxas::find(choice.why);
  } else if (wanted.empty()) {
    std::string ignored;
    choice.second = Ptxas::find(ignored);
  }
  return choice;
}

/// Looked for once per value, so that a test may ask for both.
const Choice &chosen() {
  static std::mutex mutex;
  static auto *found = new std::vector<std::pair<std::string, std::unique_ptr<Choice>>>;
  const char *value = std::getenv("TRESSEL_ASSEMBLER");
  const std::string wanted = value ? value : "";
  std::lock_guard lock(mutex);
  for (const auto &[name, choice] : *found)
    if (name == wanted)
      return *choice;
  found->emplace_back(wanted, std::make_unique<Choice>(choose(wanted)));
  return *found->back().second;
}

} // namespace

std::string assemblerName(std::string *why) {
  const Choice &choice = chosen();
  if (why)
    *why = choice.assembler ? "" : choice.why;
  return choice.assembler ? choice.assembler->name : "";
}

std::optional<Assembled> assemble(std::string_view ptx, const Arch &arch) {
  const Choice &choice = chosen();
  if (!choice.assembler)
    return std::nullopt;
  auto spills = [](const Assembled &code) {
    int64_t bytes = 0;
    for (const KernelResources &kernel : code.kernels)
      bytes += kernel.spillStores + kernel.spillLoads;
    return bytes;
  };
  // For sm_80 nvJitLink 13.0 takes more registers than ptxas of the same version: of attention some spill.
  Assembled code = choice.assembler->assemble(ptx, arch);
  if (const int64_t first = spills(code); first > 0 && choice.second)
    if (Assembled other = choice.second->assemble(ptx, arch); spills(other) < first)
      return other;
  return code;
}

} // namespace tressel::codegen::cuda
