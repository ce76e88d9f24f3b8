// Adds the line of the user's call to errors of reading and writing files.
#pragma once

#include "frontend/tensor/Fail.h"

#include <source_location>

namespace tressel::io {

template <typename Fn> auto atLine(const std::source_location &where, const char *op, Fn fn) {
  if (detail::tracing())
    detail::fail<TraceError>("files cannot be read or written in a trace", detail::toLoc(where), op,
                             "do it before, and pass the tensor in");
  try {
    return fn();
  } catch (const InputError &e) {
    if (e.where())
      throw;
    detail::fail<InputError>(e.message(), detail::toLoc(where), op, e.hint());
  } catch (const RuntimeError &e) {
    if (e.where())
      throw;
    detail::fail<RuntimeError>(e.message(), detail::toLoc(where), op, e.hint());
  }
}

} // namespace tressel::io
