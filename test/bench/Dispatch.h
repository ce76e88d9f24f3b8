// Rows of imperative ops: what a call costs, and ops of common sizes against NumPy.
#pragma once

#include "Bench.h"

namespace tressel::bench {

/// The arms of dispatch.op, dispatch.sync and eager.ops; empty for other rows.
Arms dispatchArms(const std::string &row);

} // namespace tressel::bench
