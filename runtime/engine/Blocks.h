// Memory of tasks' results, in stream order. A block belongs to a storage from submit() until the last handle of the
// storage goes. Queued tasks may use it for longer: it is then free for tasks that run after them, which is known for
// those of the same lane, and for everybody once they are done.
#pragma once

#include "tressel/runtime/Engine.h"

#include <string>

namespace tressel::runtime {

class Blocks {
public:
  /// Runs now, so it may only have bytes that nobody uses any more.
  static constexpr int kNoLane = -1;

  static StorageRef make(int64_t bytes);
  /// Gives the storage its bytes, if it has none, for a task of that lane (of the process). False when there is no
  /// memory within the bound.
  static bool materialize(Storage &storage, int lane, const TaskInfo &info);
  /// Whether so many bytes more are within the bound, after idle ones were given back if need be.
  static bool fits(int64_t bytes);
  /// Who holds how much, for OutOfMemory: "cannot allocate 400 bytes: ...".
  static std::string report(int64_t bytes);

  static Engine::Memory memory();
  static void setLimit(int64_t bytes);
  static void trim();
};

} // namespace tressel::runtime
