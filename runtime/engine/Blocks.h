// Memory for results of tasks, reused in stream order. A block belongs to a storage from submit() until the storage's
// last handle is released. Queued tasks may use it longer than that: the block is then free for tasks that run after
// them, which holds for later tasks of the same lane at once, and for all others when they are done.
#pragma once

#include "tressel/runtime/Engine.h"

#include <string>

namespace tressel::runtime {

class Blocks {
public:
  /// For a task that runs now: it may only get bytes that no queued task uses.
  static constexpr int kNoLane = -1;

  static StorageRef make(int64_t bytes);
  /// Allocates the storage's bytes, if it has none, for a task of that lane (a number in the process). False if that
  /// would exceed the memory limit.
  static bool materialize(Storage &storage, int lane, const TaskInfo &info);
  /// Whether `bytes` more are within the limit, if need be after freeing idle blocks.
  static bool fits(int64_t bytes);
  /// The largest holders of memory, for OutOfMemory: "cannot allocate 400 bytes: ...".
  static std::string report(int64_t bytes);

  static Engine::Memory memory();
  static void setLimit(int64_t bytes);
  static void trim();
};

} // namespace tressel::runtime
