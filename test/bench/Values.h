// Numbers that every arm and every reference makes alike, in whatever language it is written (values.py): inputs and
// weights are not exchanged, and results can be compared across processes.
#pragma once

#include <cstdint>
#include <string_view>

namespace tressel::bench {

/// Element `i` of the array `seed`: evenly spread over [-0.5, 0.5).
inline float valueAt(uint32_t seed, uint64_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 0x9e3779b1u + seed * 0x85ebca77u;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  x *= 0x297a2d39u;
  x ^= x >> 15;
  return static_cast<float>(x >> 8) * 0x1p-24f - 0.5f;
}

/// The seed of an array that has a name: FNV-1a.
inline uint32_t seedOf(std::string_view name) {
  uint32_t hash = 0x811c9dc5u;
  for (const char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
  return hash;
}

} // namespace tressel::bench
