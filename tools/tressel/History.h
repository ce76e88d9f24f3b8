// --history and --use-history: files of measured times.
#pragma once

#include "tressel/runtime/KernelHistory.h"

#include <memory>
#include <string>

namespace tressel::tool {

/// What the file holds; null for an empty name. Says so where it is of another machine than `machine`. Throws
/// InputError.
std::shared_ptr<const runtime::KernelHistory> historyFrom(const std::string &file, const std::string &machine);

/// Throws before anything is measured: for a file that cannot be written, holds something else, or is of another
/// machine.
void checkHistory(const std::string &file, const std::string &machine);
/// Adds what was measured to the file, which is made where there is none.
void addToHistory(const std::string &file, const runtime::KernelHistory &measured);

} // namespace tressel::tool
