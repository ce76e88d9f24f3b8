// Notes that a process prints once.
#pragma once

#include <string_view>

namespace tressel::runtime {

/// Whether this call is the first one with `text` in this process. Parts of a process that are linked with a copy of the host archive each, as the command line
/// and the compiler's library are, share the answer: it is kept in libtressel_runtime.so.
bool isFirstNote(std::string_view text);

} // namespace tressel::runtime
