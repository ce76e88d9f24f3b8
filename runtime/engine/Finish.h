// Lets the end of the process wait for the engine.
#pragma once

#include <chrono>

namespace tressel::runtime {

/// Returns true when all that was submitted to Engine::global() before is done, or false at `until`.
bool finishQueued(std::chrono::steady_clock::time_point until);

} // namespace tressel::runtime
