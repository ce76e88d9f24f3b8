// What devices ask the engine of imperative ops, which is no part of their library.
#pragma once

#include "tressel/runtime/Lane.h"

#include <atomic>

namespace tressel::runtime {

/// Whether the task of a point has run. The engine sets it; in a process without one, no storage has a point.
extern std::atomic<bool (*)(Point)> isPointReached;

} // namespace tressel::runtime
