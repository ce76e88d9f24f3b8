// The CPU's tile registers (AMX): wrappers of the instructions that SplitProduct uses. No other file of the kernels
// uses AMX. EmulatedTiles.h has the same interface in plain C++.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace tressel::kernels {
namespace {

struct AmxTiles {
  /// LDTILECFG: loads 64 bytes with the shapes of the tiles, and zeroes the tiles.
  [[gnu::always_inline]] static void configure(const void *shapes) { _tile_loadconfig(shapes); }
  /// TILERELEASE
  [[gnu::always_inline]] static void release() { _tile_release(); }
  /// TILEZERO
  template <int Tile> [[gnu::always_inline]] static void zero() { _tile_zero(Tile); }
  /// TILELOADD: loads rows that are `stride` bytes apart.
  template <int Tile> [[gnu::always_inline]] static void load(const void *from, int64_t stride) {
    _tile_loadd(Tile, from, stride);
  }
  /// TILESTORED
  template <int Tile> [[gnu::always_inline]] static void store(void *to, int64_t stride) {
    _tile_stored(Tile, to, stride);
  }
  /// TDPBF16PS: adds products of pairs of bf16 to sums in f32.
  template <int Sums, int Left, int Right> [[gnu::always_inline]] static void multiply() {
    _tile_dpbf16ps(Sums, Left, Right);
  }
};

} // namespace
} // namespace tressel::kernels
