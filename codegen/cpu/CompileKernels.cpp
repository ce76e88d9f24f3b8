#include "codegen/cpu/CompileKernels.h"

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/ThreadPool.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <span>

namespace tressel::codegen {
namespace {

using Object = std::shared_ptr<const std::vector<char>>;

/// Objects by plan, signature and target; the oldest go first when it holds too much.
class ObjectCache {
public:
  static ObjectCache &instance() {
    static ObjectCache &cache = *new ObjectCache();
    return cache;
  }
  Object find(const std::string &key) {
    std::lock_guard lock(mutex_);
    auto it = objects_.find(key);
    return it == objects_.end() ? nullptr : it->second;
  }
  void insert(const std::string &key, Object object) {
    std::lock_guard lock(mutex_);
    if (!objects_.emplace(key, object).second)
      return;
    bytes_ += object->size();
    order_.push_back(key);
    while (bytes_ > kMostBytes && order_.size() > 1) {
      auto it = objects_.find(order_.front());
      bytes_ -= it->second->size();
      objects_.erase(it);
      order_.erase(order_.begin());
    }
  }
  void clear() {
    std::lock_guard lock(mutex_);
    objects_.clear(), order_.clear(), bytes_ = 0;
  }

private:
  static constexpr size_t kMostBytes = size_t(64) << 20;
  std::mutex mutex_;
  std::map<std::string, Object> objects_;
  std::vector<std::string> order_;
  size_t bytes_ = 0;
};

std::string keyOf(const KernelSource &k, const Target &target) {
  std::string key = target.key() + '\n' + k.signature.symbol + '\n';
  if (k.prebuilt)
    return key + k.prebuilt->str();
  for (int32_t o : k.signature.operands)
    key += std::to_string(o) + ' ';
  for (int64_t symbol : k.signature.symbols)
    key += dim::spell(symbol) + ' ';
  if (k.signature.rows)
    key += "rows " + dim::spell(k.signature.rows->rows) + ' ' + std::to_string(k.signature.rows->block);
  return key + '\n' + k.plan.str();
}

Object compileOne(const KernelSource &k, const Target &target) {
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  if (k.prebuilt) {
    emitPrebuilt(module, *k.prebuilt, k.signature.symbol);
    target.optimizeLinked(module);
  } else {
    emitKernel(module, k.plan, k.schedule, target.features(), k.signature);
    target.optimize(module);
  }
  return std::make_shared<const std::vector<char>>(target.object(module));
}

/// What one by one would cost more than its code: LLVM's passes, and objects to link.
Object compileTogether(const std::vector<KernelSource> &kernels, std::span<const size_t> which, const Target &target) {
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  for (size_t i : which)
    emitKernel(module, kernels[i].plan, kernels[i].schedule, target.features(), kernels[i].signature);
  target.optimize(module);
  return std::make_shared<const std::vector<char>>(target.object(module));
}

double secondsSince(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

} // namespace

std::vector<std::vector<char>> compileKernels(const std::vector<KernelSource> &kernels, const Target &target,
                                              KernelCodeStats *stats) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Object> objects(kernels.size());
  std::vector<std::string> keys(kernels.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < kernels.size(); ++i) {
    keys[i] = keyOf(kernels[i], target);
    objects[i] = ObjectCache::instance().find(keys[i]);
    if (!objects[i])
      missing.push_back(i);
  }
  const size_t numMissing = missing.size();
  if (target.quick()) {
    auto generated = std::partition(missing.begin(), missing.end(), [&](size_t i) { return kernels[i].prebuilt; });
    if (generated != missing.end())
      objects[*generated] = compileTogether(kernels, {generated, missing.end()}, target);
    missing.erase(generated, missing.end());
  }
  auto compile = [&](size_t i, const Target &with) {
    objects[i] = compileOne(kernels[i], with);
    ObjectCache::instance().insert(keys[i], objects[i]);
  };
  if (missing.size() <= 2) {
    for (size_t i : missing)
      compile(i, target);
  } else {
    // A target machine belongs to one thread at a time, so each chunk has its own.
    runtime::ThreadPool::global().parallelFor(
        static_cast<int64_t>(missing.size()), 2, [&](int64_t begin, int64_t end, int) {
          const Target own{std::string(runtime::nameOf(target.level())), target.quick()};
          for (int64_t i = begin; i < end; ++i)
            compile(missing[static_cast<size_t>(i)], own);
        });
  }
  std::vector<std::vector<char>> code;
  for (const Object &o : objects)
    if (o)
      code.push_back(*o);
  if (stats) {
    stats->seconds = secondsSince(start);
    stats->compiled = static_cast<int>(numMissing);
    stats->cached = static_cast<int>(kernels.size() - numMissing);
  }
  return code;
}

std::string printKernels(const std::vector<KernelSource> &kernels, const Target &target, bool assembly) {
  llvm::LLVMContext context;
  llvm::Module generated("kernels", context), linked("prebuilt kernels", context);
  for (const KernelSource &k : kernels) {
    if (k.prebuilt)
      emitPrebuilt(linked, *k.prebuilt, k.signature.symbol);
    else
      emitKernel(generated, k.plan, k.schedule, target.features(), k.signature);
  }
  target.optimize(generated);
  target.optimizeLinked(linked);
  std::string text;
  llvm::raw_string_ostream out(text);
  for (llvm::Module *module : {&generated, &linked}) {
    if (module->empty())
      continue;
    if (assembly)
      out << target.assembly(*module);
    else
      module->print(out, nullptr);
  }
  return text;
}

void clearKernelCache() { ObjectCache::instance().clear(); }

} // namespace tressel::codegen
