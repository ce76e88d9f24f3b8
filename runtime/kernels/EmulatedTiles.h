// AmxTiles.h in plain C++, for tests on CPUs without tile registers. It follows the operation sections of Intel's
// manual (Software Developer's Manual, volume 2: LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TILERELEASE, TDPBF16PS):
//
// - Each thread has eight tiles of up to 16 rows of up to 64 bytes (palette 1, the only one). Configuring and releasing
//   zero them; a load zeroes what is beyond the tile's rows and bytes.
// - An element of a row takes a sum of the products of the even members of its pairs and one of the odd members, each
//   from 0 and in the order of the depth, with one rounding per product (fused); then the two sums are added, and the
//   result to what was there. Rounding is to nearest even. Operands below 2^-126 count as zeros, and so do results that
//   are below 2^-126 when they are rounded as if exponents had no end; the sign stays. The control register (MXCSR)
//   does not matter, except that the thread must round to nearest.
// - A use that faults on a CPU ends the process, with a line that says why.
//
// The sign and payload of a NaN result are unspecified: kernels do not depend on them.
#pragma once

#include "SplitProduct.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace tressel::kernels {
namespace {

class EmulatedTiles {
public:
  static void configure(const void *shapes);
  static void release() { state = {}; }
  template <int Tile> static void zero() { clear(valid("TILEZERO", Tile)); }
  template <int Tile> static void load(const void *from, int64_t stride) { load(Tile, from, stride); }
  template <int Tile> static void store(void *to, int64_t stride) { store(Tile, to, stride); }
  template <int Sums, int Left, int Right> static void multiply() { multiply(Sums, Left, Right); }

  /// Number of tile products so far, by all threads.
  static int64_t numProducts() { return __atomic_load_n(&products, __ATOMIC_RELAXED); }

private:
  static constexpr int kTiles = 8, kRows = 16, kBytes = 64, kPairs = kBytes / 4;
  struct Tile {
    int rows, bytes; ///< 0: the tile does not exist
    alignas(64) unsigned char data[kRows][kBytes];
  };
  struct State {
    bool configured;
    Tile tiles[kTiles];
  };
  static inline thread_local State state = {};
  static inline int64_t products = 0;

  [[noreturn, gnu::cold, gnu::noinline]] static void fault(const char *instruction, const char *why, int tile = -1) {
    std::fprintf(stderr, "tressel: emulated tiles: %s faults: ", instruction);
    if (tile >= 0)
      std::fprintf(stderr, "tile %d ", tile);
    std::fprintf(stderr, "%s\n", why);
    std::abort();
  }
  static Tile &valid(const char *instruction, int tile) {
    if (!state.configured)
      fault(instruction, "no tiles are configured in this thread");
    Tile &t = state.tiles[tile];
    if (t.rows == 0)
      fault(instruction, "has no shape", tile);
    if (t.bytes % 4 != 0)
      fault(instruction, "has rows that are no multiple of 4 bytes", tile);
    return t;
  }
  static void clear(Tile &tile) { __builtin_memset(tile.data, 0, sizeof tile.data); }
  static void load(int tile, const void *from, int64_t stride);
  static void store(int tile, void *to, int64_t stride);
  static void multiply(int sums, int left, int right);

  static uint32_t bitsOf(float x) { return __builtin_bit_cast(uint32_t, x); }
  static float ofBits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
  static float flushed(float x) {
    const uint32_t bits = bitsOf(x);
    return ofBits(bits & 0x7f800000 ? bits : bits & 0x80000000);
  }
  static float sum(float a, float b) { return flushed(flushed(a) + flushed(b)); }
  static void widen(const unsigned char *row, float (&to)[2 * kPairs]) {
    uint16_t halves[2 * kPairs];
    __builtin_memcpy(halves, row, sizeof halves);
    for (int i = 0; i < 2 * kPairs; ++i)
      to[i] = flushed(ofBits(uint32_t(halves[i]) << 16));
  }
  static void addProducts(const float (&a)[2 * kPairs], const float (&b)[2 * kPairs], float (&sums)[2 * kPairs]);
};

inline void EmulatedTiles::configure(const void *shapes) {
  const char *const name = "LDTILECFG";
  unsigned char bytes[64];
  __builtin_memcpy(bytes, shapes, sizeof bytes);
  release();
  if (bytes[0] == 0) // the same as a release
    return;
  if (bytes[0] != 1)
    fault(name, "there is no such palette");
  if (bytes[1] != 0)
    fault(name, "an interrupted load is not resumed here");
  for (int i = 2; i < 64; ++i) // the entries of tiles 8 to 15 are reserved
    if (bytes[i] != 0 && (i < 16 || (i >= 32 && i < 48) || i >= 56))
      fault(name, "a reserved byte is not 0");
  for (int tile = 0; tile < kTiles; ++tile) {
    Tile &t = state.tiles[tile];
    t.bytes = bytes[16 + 2 * tile] | bytes[17 + 2 * tile] << 8, t.rows = bytes[48 + tile];
    if (t.rows > kRows || t.bytes > kBytes)
      fault(name, "has more than 16 rows or 64 bytes in a row", tile);
    if ((t.rows == 0) != (t.bytes == 0))
      fault(name, "has rows or bytes alone", tile);
  }
  state.configured = true;
}

inline void EmulatedTiles::load(int tile, const void *from, int64_t stride) {
  Tile &t = valid("TILELOADD", tile);
  clear(t);
  for (int r = 0; r < t.rows; ++r)
    __builtin_memcpy(t.data[r], static_cast<const char *>(from) + r * stride, static_cast<size_t>(t.bytes));
}

inline void EmulatedTiles::store(int tile, void *to, int64_t stride) {
  const Tile &t = valid("TILESTORED", tile);
  for (int r = 0; r < t.rows; ++r)
    __builtin_memcpy(static_cast<char *>(to) + r * stride, t.data[r], static_cast<size_t>(t.bytes));
}

/// sums += a * b, lane by lane.
inline void EmulatedTiles::addProducts(const float (&a)[2 * kPairs], const float (&b)[2 * kPairs],
                                       float (&sums)[2 * kPairs]) {
  constexpr uint32_t kLeast = 0x00800000; // 2^-126
  float next[2 * kPairs];
  bool anyLeast = false;
  for (int i = 0; i < 2 * kPairs; ++i) {
    next[i] = __builtin_fmaf(a[i], b[i], sums[i]);
    anyLeast |= (bitsOf(next[i]) & 0x7fffffff) == kLeast;
  }
  // A result below 2^-126 with an unbounded exponent must be flushed, but rounding as a subnormal may turn it into
  // 2^-126. So results equal to 2^-126 are recomputed at 2^64 times the size.
  if (anyLeast)
    for (int i = 0; i < 2 * kPairs; ++i)
      if ((bitsOf(next[i]) & 0x7fffffff) == kLeast) {
        const bool aIsLess = (bitsOf(a[i]) & 0x7fffffff) < (bitsOf(b[i]) & 0x7fffffff);
        const float less = aIsLess ? a[i] : b[i], more = aIsLess ? b[i] : a[i];
        const float scaled = __builtin_fmaf(less * 0x1p64f, more, sums[i] * 0x1p64f);
        if (__builtin_fabsf(scaled) < 0x1p-62f)
          next[i] = 0 * next[i];
      }
  for (int i = 0; i < 2 * kPairs; ++i)
    sums[i] = flushed(next[i]);
}

inline void EmulatedTiles::multiply(int sums, int left, int right) {
  const char *const name = "TDPBF16PS";
  Tile &c = valid(name, sums);
  const Tile &a = valid(name, left), &b = valid(name, right);
  if (sums == left || sums == right || left == right)
    fault(name, "two of its tiles are the same");
  if (c.rows != a.rows || c.bytes != b.bytes || a.bytes != 4 * b.rows)
    fault(name, "the shapes of its tiles do not fit together");
  __atomic_fetch_add(&products, 1, __ATOMIC_RELAXED);
  float of[kRows][2 * kPairs] = {}; // the right side
  for (int k = 0; k < b.rows; ++k)
    widen(b.data[k], of[k]);
  for (int m = 0; m < c.rows; ++m) {
    float row[2 * kPairs], pair[2 * kPairs], pairs[2 * kPairs] = {}, result[kPairs];
    widen(a.data[m], row);
    for (int k = 0; k < b.rows; ++k) {
      for (int i = 0; i < 2 * kPairs; i += 2)
        pair[i] = row[2 * k], pair[i + 1] = row[2 * k + 1];
      addProducts(pair, of[k], pairs);
    }
    __builtin_memcpy(result, c.data[m], sizeof result);
    for (int n = 0; n < c.bytes / 4; ++n)
      result[n] = sum(result[n], sum(pairs[2 * n], pairs[2 * n + 1]));
    __builtin_memcpy(c.data[m], result, sizeof result);
  }
}

} // namespace
} // namespace tressel::kernels

/// Entry of libtressel_emulated_tiles.so: SplitProduct.cpp on emulated tiles, and the number of tile products, by which
/// a test can tell whether tiles were used.
extern "C" const tressel::kernels::SplitKernels tressel_emulated_tiles;
extern "C" int64_t tressel_emulated_tile_products();
