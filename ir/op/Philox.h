// Philox 4x32-10 over 64-bit integers, either recorded or plain; the scalar fragments of random ops use it. Salmon et
// al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
#pragma once

#include <array>

namespace tressel::op {

/// Four words of 32 random bits each, for a key and a counter (i64).
template <class I64> std::array<I64, 4> philox(I64 key, I64 counter) {
  const auto mask = like(key, 0xffffffff);
  I64 k0 = key & mask, k1 = key >> 32;
  std::array<I64, 4> c{counter & mask, counter >> 32, like(key, 0), like(key, 0)};
  for (int round = 0; round < 10; ++round) {
    const I64 p0 = c[0] * 0xD2511F53, p1 = c[2] * 0xCD9E8D57;
    c = {(p1 >> 32) ^ c[1] ^ k0, p1 & mask, (p0 >> 32) ^ c[3] ^ k1, p0 & mask};
    k0 = (k0 + 0x9E3779B9) & mask;
    k1 = (k1 + 0xBB67AE85) & mask;
  }
  return c;
}

} // namespace tressel::op
