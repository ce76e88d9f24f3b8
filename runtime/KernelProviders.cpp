#include "tressel/runtime/Kernel.h"

#include <map>
#include <mutex>

namespace tressel::runtime {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, KernelFactory> factories;
};

/// Made at first use: providers register themselves before main.
Registry &registry() {
  static Registry &instance = *new Registry();
  return instance;
}

} // namespace

void registerKernelProvider(std::string name, KernelFactory factory) {
  std::lock_guard lock(registry().mutex);
  registry().factories[std::move(name)] = factory;
}

KernelFactory findKernelProvider(const std::string &name) {
  std::lock_guard lock(registry().mutex);
  auto it = registry().factories.find(name);
  return it == registry().factories.end() ? nullptr : it->second;
}

} // namespace tressel::runtime
