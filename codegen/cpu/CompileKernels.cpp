#include "codegen/cpu/CompileKernels.h"

#include "codegen/cpu/CompilerId.h"
#include "runtime/types/Clock.h"
#include "tressel/runtime/Dim.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <span>

namespace tressel::codegen {
using runtime::secondsSince;
namespace {

/// What a kernel computes, as text.
std::string planOf(const KernelSource &k) {
  if (k.bitcode)
    return k.bitcode->str();
  if (k.parts.empty())
    return k.plan.str();
  std::string text;
  for (const ScheduledPart &part : k.parts) {
    text += "nest of operands";
    for (int32_t operand : part.operands)
      text += ' ' + std::to_string(operand);
    text += '\n' + part.plan.str();
  }
  return text;
}

/// All that decides the object: neither the symbol nor where in the user's source the ops stand. Symbolic sizes are spelled out,
/// as their handles mean something else in every process.
CacheKey keyOf(const KernelSource &k, const std::string &plan, const Target &target) {
  std::string signature;
  if (!k.bitcode) {
    for (int32_t o : k.signature.operands)
      signature += std::to_string(o) + ' ';
    for (Size symbol : k.signature.symbols)
      signature += dim::spell(symbol) + ' ';
    if (k.signature.rows)
      signature += "rows " + dim::spell(k.signature.rows->rows) + ' ' + dim::spell(k.signature.rows->block);
  }
  const std::string_view parts[] = {"kernel 1", compilerId(), target.key(), signature, plan};
  return cacheKeyOf(parts);
}

/// A kernel with the key and the symbol of its object.
struct Distinct {
  const KernelSource *source;
  CacheKey key;
  std::string symbol;
  size_t effort; ///< of compiling it, roughly and relatively
  Code object;
};

void emitOne(llvm::Module &module, const Distinct &k, const Target &target) {
  if (k.source->bitcode) {
    emitBitcodeCall(module, *k.source->bitcode, k.symbol);
    return;
  }
  KernelSignature signature = k.source->signature;
  signature.symbol = k.symbol;
  if (!k.source->parts.empty()) {
    emitParts(module, k.source->parts, target.features(), signature);
    return;
  }
  emitKernel(module, k.source->plan, k.source->schedule, target.features(), signature);
}

Code compileOne(const Distinct &k, const Target &target) {
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  emitOne(module, k, target);
  if (k.source->bitcode)
    target.optimizeLinked(module);
  else
    target.optimize(module);
  return std::make_shared<const std::vector<char>>(target.object(module));
}

/// What one by one would cost more than its code: LLVM's passes, and objects to link.
Code compileTogether(std::span<Distinct *const> which, const Target &target) {
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  for (const Distinct *k : which)
    emitOne(module, *k, target);
  target.optimize(module);
  return std::make_shared<const std::vector<char>>(target.object(module));
}

} // namespace

KernelCode compileKernels(const std::vector<KernelSource> &kernels, const Target &target, ObjectCache *cache,
                          KernelCodeStats *stats, const std::function<void(int, int)> &progress) {
  const auto start = std::chrono::steady_clock::now();
  KernelCode code;
  std::vector<Distinct> distinct;
  std::map<CacheKey, size_t> known;
  for (const KernelSource &k : kernels) {
    const std::string plan = planOf(k);
    const CacheKey key = keyOf(k, plan, target);
    auto [it, isNew] = known.emplace(key, distinct.size());
    if (isNew)
      distinct.push_back({&k, key, "k_" + key.hex().substr(0, 32), k.bitcode ? SIZE_MAX : plan.size(), nullptr});
    code.aliases.push_back({k.signature.symbol, distinct[it->second].symbol});
  }
  ObjectCache *const disk = target.quick() ? nullptr : cache;
  std::vector<Distinct *> missing;
  for (Distinct &k : distinct) {
    k.object = findCode(k.key, nullptr, disk);
    if (!k.object)
      missing.push_back(&k);
  }
  const size_t numMissing = missing.size();
  std::mutex progressMutex;
  int done = 0;
  auto report = [&](size_t more) {
    if (!progress)
      return;
    std::lock_guard lock(progressMutex);
    progress(done += static_cast<int>(more), static_cast<int>(numMissing));
  };
  if (target.quick()) {
    auto generated = std::partition(missing.begin(), missing.end(), [](const Distinct *k) { return k->source->bitcode; });
    if (generated != missing.end())
      (*generated)->object = compileTogether({generated, missing.end()}, target);
    report(static_cast<size_t>(missing.end() - generated));
    missing.erase(generated, missing.end());
  }
  // Long ones first, so that no thread is left with one at the end.
  std::ranges::sort(missing, [](const Distinct *a, const Distinct *b) {
    return a->effort != b->effort ? a->effort > b->effort : a < b; // both in one array: in program order
  });
  forEachInParallel(missing.size(), [&] {
    const auto own = std::make_shared<const Target>(std::string(runtime::nameOf(target.level())), target.quick());
    return [&, own](size_t i) {
      Distinct &k = *missing[i];
      k.object = compileOne(k, *own);
      keepCode(k.key, k.object, disk);
      report(1);
    };
  });
  if (cache)
    cache->flush();
  for (const Distinct &k : distinct)
    if (k.object)
      code.objects.push_back(k.object);
  if (stats) {
    stats->seconds = secondsSince(start);
    stats->compiled = static_cast<int>(numMissing);
    stats->cached = static_cast<int>(distinct.size() - numMissing);
    stats->shared = static_cast<int>(kernels.size() - distinct.size());
  }
  return code;
}

std::vector<std::byte> linkImage(const KernelCode &code) {
  std::vector<std::span<const char>> objects;
  for (const auto &object : code.objects)
    objects.emplace_back(*object);
  return linkImage(objects, code.aliases);
}

std::string printKernels(const std::vector<KernelSource> &kernels, const Target &target, bool assembly) {
  llvm::LLVMContext context;
  llvm::Module generated("kernels", context), linked("bitcode kernels", context);
  for (const KernelSource &k : kernels) {
    if (k.bitcode)
      emitBitcodeCall(linked, *k.bitcode, k.signature.symbol);
    else if (!k.parts.empty())
      emitParts(generated, k.parts, target.features(), k.signature);
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

} // namespace tressel::codegen
