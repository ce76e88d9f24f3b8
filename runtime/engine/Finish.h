// How the end of the process waits for the engine.
#pragma once

#include <chrono>

namespace tressel::runtime {

/// Returns when Engine::global() has done all that was submitted before, or else, with false, at `until`.
bool finishQueued(std::chrono::steady_clock::time_point until);

} // namespace tressel::runtime
