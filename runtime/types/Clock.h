// This computer's clock, which only goes forward.
#pragma once

#include <chrono>
#include <cstdint>

namespace tressel::runtime {

inline int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline double nowSeconds() { return 1e-9 * static_cast<double>(nowNs()); }
inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace tressel::runtime
