// Random tensors on the host. Numbers are counter-based (Philox 4x32-10), keyed by seed and element index, so that a
// seed gives the same tensor on every machine and with any number of threads.
#pragma once

#include <tressel/tensor.h>

#include <cstdint>
#include <optional>
#include <source_location>

namespace tressel::rng {

/// Normally distributed. Without a seed the process's next one is used; these are the same in each run. Throws
/// TraceError in a trace, where the numbers would be fixed: use the op random_uniform there.
Tensor normal(const Shape &shape, std::optional<uint64_t> seed = {}, double mean = 0, double deviation = 1,
              DType dtype = f32, std::source_location where = std::source_location::current());
/// In [low, high).
Tensor uniform(const Shape &shape, std::optional<uint64_t> seed = {}, double low = 0, double high = 1,
               DType dtype = f32, std::source_location where = std::source_location::current());

} // namespace tressel::rng
