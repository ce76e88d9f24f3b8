// Loaded before a benchmark's own libraries (LD_PRELOAD), makes every kernel do nothing: rows that compare what they
// compute must fail then (check_compared.py). It stands between the runtime and the two calls by which that finds
// kernels, so nothing of the runtime knows of it.
#include "tressel/runtime/Kernel.h"

#include <cstring>
#include <dlfcn.h>
#include <string>

namespace {

int32_t nothing(const tressel::runtime::KernelArgs *, int64_t, int64_t) { return tressel::runtime::kKernelOk; }
tressel::runtime::LoadedKernel makeNothing(const tressel::runtime::KernelDesc &) { return {nothing, nullptr, nullptr}; }
const tressel::runtime::KernelFactory factory = makeNothing;

/// The C library's own: dlsym itself cannot be asked for it.
void *realSymbol(void *handle, const char *name) {
  using Function = void *(*)(void *, const char *);
  static const auto real = [] {
    void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    return reinterpret_cast<Function>(found ? found : dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  }();
  return real(handle, name);
}

/// Whether an address is code of an image, which is loaded from a file in memory (runtime/executable/Image.cpp).
bool isOfImage(void *address) {
  Dl_info info;
  return dladdr(address, &info) && info.dli_fname && std::strncmp(info.dli_fname, "/proc/self/fd/", 14) == 0;
}

} // namespace

/// The runtime looks up the kernels of images, and the factories of libraries of kernels.
extern "C" [[gnu::visibility("default")]] void *dlsym(void *handle, const char *name) noexcept {
  void *found = realSymbol(handle, name);
  if (std::strcmp(name, "tressel_kernel_factory") == 0)
    return found ? const_cast<void *>(static_cast<const void *>(&factory)) : nullptr;
  return found && isOfImage(found) ? reinterpret_cast<void *>(nothing) : found;
}

namespace tressel::runtime {

/// Factories that are linked into the program.
[[gnu::visibility("default")]] void registerKernelProvider(std::string name, KernelFactory) {
  using Function = void (*)(std::string, KernelFactory);
  static const auto real = reinterpret_cast<Function>(
      realSymbol(RTLD_NEXT, "_ZN7tressel7runtime22registerKernelProviderENSt7__cxx1112basic_stringIcSt11char_"
                            "traitsIcESaIcEEEPFNS0_12LoadedKernelERKNS0_10KernelDescEE"));
  real(std::move(name), makeNothing);
}

} // namespace tressel::runtime
