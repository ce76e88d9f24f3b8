#include "GpuLibraries.h"

#include "Driver.h"
#include "runtime/types/Concat.h"

#include <dlfcn.h>
#include <initializer_list>
#include <optional>

namespace tressel::runtime::cuda {
namespace {

template <typename Fn> Fn symbol(void *library, const char *name) { return reinterpret_cast<Fn>(dlsym(library, name)); }

using VersionOf = std::optional<std::string> (*)(void *library);

GpuLibrary look(const char *name, std::initializer_list<const char *> files, VersionOf versionOf) {
  GpuLibrary found{.name = name};
  for (const char *file : files)
    if (void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL)) {
      found.file = file;
      found.version = versionOf(library).value_or("unknown");
      return found;
    }
  return found;
}

std::optional<std::string> cublasVersion(void *library) {
  const auto version = symbol<size_t (*)()>(library, "cublasLtGetVersion");
  return version ? std::optional(versionText(version())) : std::nullopt;
}
std::optional<std::string> cudnnVersion(void *library) {
  const auto version = symbol<size_t (*)()>(library, "cudnnGetVersion");
  return version ? std::optional(versionText(version())) : std::nullopt;
}
std::optional<std::string> ncclVersion(void *library) {
  const auto version = symbol<int (*)(int *)>(library, "ncclGetVersion");
  int number = 0;
  if (!version || version(&number) != 0 || number <= 0)
    return std::nullopt;
  return versionText(static_cast<size_t>(number));
}
std::optional<std::string> jitLinkVersion(void *library) {
  const auto version = symbol<int (*)(unsigned *, unsigned *)>(library, "nvJitLinkVersion");
  unsigned major = 0, minor = 0;
  if (!version || version(&major, &minor) != 0)
    return std::nullopt;
  return concat(major, ".", minor);
}

} // namespace

std::string versionText(size_t version) {
  return concat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

std::string openLibrary(const char *file, const std::function<void(const FindSymbol &)> &resolve) {
  void *const opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!opened)
    return whyNotOpened(file);
  std::string missing;
  resolve([&](const char *name) {
    void *const function = dlsym(opened, name);
    if (!function)
      missing += concat(missing.empty() ? "" : ", ", name);
    return function;
  });
  return missing.empty() ? "" : concat(file, " lacks ", missing);
}

std::vector<GpuLibrary> listLibraries() {
  return {look("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}, cublasVersion),
          look("cuDNN", {"libcudnn.so.9"}, cudnnVersion), look("NCCL", {"libnccl.so.2"}, ncclVersion),
          look("nvJitLink", {"libnvJitLink.so.13", "libnvJitLink.so.12"}, jitLinkVersion)};
}

} // namespace tressel::runtime::cuda
