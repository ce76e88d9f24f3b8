// Rows of asynchronous execution: what handing ops over costs, saves and bounds.
#pragma once

#include "Bench.h"

namespace tressel::bench {

/// The arms of async.*, loop.*, branches.* and memory.queue.10m; empty for other rows.
Arms asyncArms(const std::string &row);

} // namespace tressel::bench
