// Hashes of what tells calls, programs and types apart. Not part of any file: they may change.
#pragma once

#include "tressel/runtime/Types.h"

#include <cstdint>

namespace tressel {

/// 2^64 over the golden ratio, made odd: products with it spread the bits of small numbers.
inline constexpr uint64_t kHashFactor = 0x9E3779B97F4A7C15u;

constexpr uint64_t mixHash(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kHashFactor;
  return hash ^ hash >> 29;
}
constexpr uint64_t mixHash(uint64_t hash, const TensorType &type) {
  hash = mixHash(hash, static_cast<uint64_t>(type.dtype) << 8 | static_cast<uint64_t>(type.rank()));
  for (Size size : type.shape)
    hash = mixHash(hash, static_cast<uint64_t>(size.bits()));
  return hash;
}

} // namespace tressel
