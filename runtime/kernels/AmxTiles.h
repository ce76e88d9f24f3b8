// The CPU's tile registers, by those of their instructions that SplitProduct uses: no other file of the kernels has
// any. EmulatedTiles.h has the same in plain C++.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace tressel::kernels {
namespace {

struct AmxTiles {
  /// LDTILECFG: 64 bytes that tell the shapes of the tiles, which are zeros then.
  [[gnu::always_inline]] static void configure(const void *shapes) { _tile_loadconfig(shapes); }
  /// TILERELEASE
  [[gnu::always_inline]] static void release() { _tile_release(); }
  /// TILEZERO
  template <int Tile> [[gnu::always_inline]] static void zero() { _tile_zero(Tile); }
  /// TILELOADD: rows that begin `stride` bytes apart.
  template <int Tile> [[gnu::always_inline]] static void load(const void *from, int64_t stride) {
    _tile_loadd(Tile, from, stride);
  }
  /// TILESTORED
  template <int Tile> [[gnu::always_inline]] static void store(void *to, int64_t stride) {
    _tile_stored(Tile, to, stride);
  }
  /// TDPBF16PS: adds products of pairs of bf16 to sums of f32.
  template <int Sums, int Left, int Right> [[gnu::always_inline]] static void multiply() {
    _tile_dpbf16ps(Sums, Left, Right);
  }
};

} // namespace
} // namespace tressel::kernels
