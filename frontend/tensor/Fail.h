// Errors at the user's line.
#pragma once

#include <tressel/scope.h>

#include <string>
#include <utility>

namespace tressel::detail {

/// Throws `E` with the user's line, the lines it was called through, and the module that was running.
template <typename E>
[[noreturn]] void fail(std::string message, SourceLoc where, std::string op = {}, std::string hint = {}) {
  throw E(Error::Details{std::move(message) + modulePath(), userLine(where), std::move(op), std::move(hint),
                         userTrace(where)});
}

} // namespace tressel::detail
