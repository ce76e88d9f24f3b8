// Compiled code by key, from the nearest place that has it: this process, what came with Tressel, or the folder that
// all processes of a user share.
#pragma once

#include "codegen/ObjectCache.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tressel::codegen {

using Code = std::shared_ptr<const std::vector<char>>;

/// Code that was compiled when Tressel was built. Immutable, so thread-safe.
class CodeArchive {
public:
  virtual ~CodeArchive() = default;
  virtual Code find(const CacheKey &key) const = 0; ///< null: it has none
};

/// How many kernels a compilation took from where. Kernels that are equal but for their symbol are one.
struct KernelCodeStats {
  double seconds = 0;
  int compiled = 0; ///< to machine code
  int cached = 0;   ///< found in this process's memory, in an archive or on disk
  int shared = 0;   ///< equal to another of the program
};

/// Null where it has to be compiled. `archive` and `disk` may be null.
Code findCode(const CacheKey &key, const CodeArchive *archive, ObjectCache *disk);
/// For the next who looks, in this process and, with `disk`, in others. The process keeps 64 MB of what came last.
void keepCode(const CacheKey &key, const Code &code, ObjectCache *disk);
/// Forgets what the process keeps: for measuring compilation from nothing.
void clearCodeCache();

/// Calls what `worker` makes for 0 to `count` - 1, in this order as threads are free. Each of the pool's threads that
/// takes part makes a worker of its own, as machines of LLVM belong to one thread at a time; with `count` 1 this thread
/// does it.
void forEachInParallel(size_t count, const std::function<std::function<void(size_t)>()> &worker);

} // namespace tressel::codegen
