// The eager path: each op runs as a compiled program of its own, taken from a bounded cache by op, attributes and
// types.
#pragma once

#include <cstddef>

namespace tressel::detail {

/// Programs that are kept; the least recently used goes first.
inline constexpr size_t kMaxEagerPrograms = 1024;
size_t numEagerPrograms();
void clearEagerPrograms();

} // namespace tressel::detail
