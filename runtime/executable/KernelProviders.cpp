#include "runtime/executable/Library.h"
#include "tressel/runtime/Kernel.h"

#include <algorithm>
#include <dlfcn.h>
#include <map>
#include <mutex>

namespace tressel::runtime {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, KernelFactory> factories;
};

/// Created at first use: providers register before main.
Registry &registry() {
  static Registry &instance = *new Registry();
  return instance;
}

/// The factory from the provider's library beside this one, which stays loaded; null if there is none.
KernelFactory loadProvider(const std::string &name) {
  if (name.empty() || !std::all_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; }))
    return nullptr;
  void *library = openLibrary(kernelLibrary(name).substr(3)); // without "lib"
  const auto *factory = library ? static_cast<const KernelFactory *>(dlsym(library, "tressel_kernel_factory")) : nullptr;
  return factory ? *factory : nullptr;
}

} // namespace

std::string kernelLibrary(const std::string &provider) { return "libtressel_" + (provider == "builtin" ? "kernels" : provider); }

void registerKernelProvider(std::string name, KernelFactory factory) {
  std::lock_guard lock(registry().mutex);
  registry().factories[std::move(name)] = factory;
}

KernelFactory findKernelProvider(const std::string &name) {
  std::lock_guard lock(registry().mutex);
  auto it = registry().factories.find(name);
  if (it != registry().factories.end())
    return it->second;
  KernelFactory factory = loadProvider(name);
  if (factory)
    registry().factories[name] = factory;
  return factory;
}

} // namespace tressel::runtime
