// Rows about the time that compiling takes.
#pragma once

#include "Bench.h"

namespace tressel::bench {

/// The arms of a row "compile.*"; none if there is no such row.
Arms compileArms(const std::string &row);

} // namespace tressel::bench
