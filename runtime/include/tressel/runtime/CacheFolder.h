// Where a user's files are kept from one process to the next: compiled kernels, and figures of the machine.
#pragma once

#include <string>

namespace tressel::runtime {

/// TRESSEL_CACHE_DIR, $XDG_CACHE_HOME/tressel or ~/.cache/tressel, absolute. Empty, with the reason in `why` if that is given: the first is set to
/// nothing, there is no home, or the folder there belongs to another user or can be written by others. The folder need not exist.
std::string cacheFolder(std::string *why = nullptr);

} // namespace tressel::runtime
