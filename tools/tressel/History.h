// --history and --use-history: files of measured times.
#pragma once

#include "tressel/runtime/KernelHistory.h"

#include <memory>
#include <string>

namespace tressel::tool {

/// The file's history; null for an empty name. Prints a note if it is of another machine than `machine`. Throws
/// InputError.
std::shared_ptr<const runtime::KernelHistory> historyFrom(const std::string &file, const std::string &machine);

/// Throws before anything is measured if the file cannot be written, has other contents, or is of another machine.
void checkHistory(const std::string &file, const std::string &machine);
/// Adds the measurements to the file, which is created if there is none.
void addToHistory(const std::string &file, const runtime::KernelHistory &measured);

} // namespace tressel::tool
