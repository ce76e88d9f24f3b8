#include "Peaks.h"
#include "Bench.h"

#include <algorithm>
#include <atomic>
#include <cpuid.h>
#include <cstdlib>
#include <cstring>
#include <immintrin.h>
#include <memory>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace tressel::bench {
namespace {

/// `rounds` times 32 multiply-adds of vectors, enough of them independent to hide their latency.
template <typename Vector> [[gnu::always_inline]] inline float multiplyAdds(int64_t rounds) {
  constexpr int chains = 16;
  Vector sums[chains] = {}, factor = Vector{} + 0.99f, addend = Vector{} + 0.01f;
  for (int64_t i = 0; i < rounds; ++i)
    for (int repeat = 0; repeat < 2; ++repeat)
#pragma GCC unroll 16
      for (int c = 0; c < chains; ++c)
        sums[c] = sums[c] * factor + addend;
  float total = 0;
  for (const Vector &sum : sums)
    total += sum[0];
  return total;
}
template <int Lanes> using Vector __attribute__((vector_size(Lanes * sizeof(float)))) = float;
[[gnu::target("avx512f")]] float multiplyAddsV4(int64_t rounds) { return multiplyAdds<Vector<16>>(rounds); }
[[gnu::target("avx2,fma")]] float multiplyAddsV3(int64_t rounds) { return multiplyAdds<Vector<8>>(rounds); }
float multiplyAddsBaseline(int64_t rounds) { return multiplyAdds<Vector<4>>(rounds); }

/// As runtime/kernels/Levels.cpp asks for them.
bool hasTiles() {
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;
  constexpr long kRequestState = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM
  const char *wanted = std::getenv("TRESSEL_KERNEL_TILES");
  unsigned a, b, c, d;
  return !(wanted && std::strcmp(wanted, "0") == 0) && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kBf16) &&
         (d & kTiles) && syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
}

struct alignas(64) TileShapes {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
/// `rounds` times four products of tiles, whose sums do not wait for each other.
[[gnu::target("amx-tile,amx-bf16")]] void multiplyTiles(int64_t rounds) {
  const TileShapes shapes;
  _tile_loadconfig(&shapes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

/// Seconds in which so many threads call `work` once each.
template <typename F> double secondsTogether(int threads, F work) {
  return secondsOf([&] {
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t)
      others.emplace_back([&, t] { work(t); });
    work(0);
    for (std::thread &other : others)
      other.join();
  });
}

} // namespace

double peakFlops(int threads) {
  constexpr int64_t rounds = 200000;
  const bool v4 = __builtin_cpu_supports("avx512f"), v3 = __builtin_cpu_supports("avx2");
  const auto work = v4 ? multiplyAddsV4 : v3 ? multiplyAddsV3 : multiplyAddsBaseline;
  std::atomic<float> kept = 0;
  const double seconds = secondsTogether(threads, [&](int) { kept = work(rounds); });
  return 2.0 * 32 * (v4 ? 16 : v3 ? 8 : 4) * rounds * threads / seconds;
}

double tilePeakFlops(int threads) {
  static const bool there = hasTiles();
  if (!there)
    return 0;
  constexpr int64_t rounds = 100000;
  constexpr double flopsOfTile = 2.0 * 16 * 16 * 32, partsOfF32 = 6;
  return 4 * flopsOfTile / partsOfF32 * rounds * threads / secondsTogether(threads, [](int) { multiplyTiles(rounds); });
}

double copyBandwidth(int threads) {
  constexpr size_t each = size_t(128) << 20;
  std::vector<std::unique_ptr<char[]>> from, to;
  for (int t = 0; t < threads; ++t) {
    from.emplace_back(new char[each]);
    to.emplace_back(new char[each]);
    std::memset(from.back().get(), 1, each);
    std::memset(to.back().get(), 1, each);
  }
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const double seconds = secondsTogether(threads, [&](int t) {
      std::memcpy(to[static_cast<size_t>(t)].get(), from[static_cast<size_t>(t)].get(), each);
    });
    best = std::max(best, 2.0 * each * threads / seconds);
  }
  return best;
}

} // namespace tressel::bench
