// A vector register of the level for which the file is compiled. Everything here is local to its translation unit: the
// linker must never merge functions of different levels.
#pragma once

#include <cstdint>

#if !defined(TRESSEL_KERNEL_LEVEL)
#error "compiled once per level: TRESSEL_KERNEL_LEVEL names it (runtime/kernels/CMakeLists.txt)"
#endif
/// The exported name of a file's table: `product` becomes productV3.
#define TRESSEL_AT_LEVEL(name) TRESSEL_AT_LEVEL_2(name, TRESSEL_KERNEL_LEVEL)
#define TRESSEL_AT_LEVEL_2(name, level) TRESSEL_AT_LEVEL_3(name, level)
#define TRESSEL_AT_LEVEL_3(name, level) name##level

namespace tressel::kernels {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kRegisters = 32;
#elif defined(__AVX2__)
constexpr int kLanes = 8, kRegisters = 16;
#else
constexpr int kLanes = 4, kRegisters = 16;
#endif

typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
typedef float UnalignedVector __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

[[gnu::always_inline]] inline Vector load(const float *from) {
  return *reinterpret_cast<const UnalignedVector *>(from);
}
/// All lanes equal x. (Subtracting zero compiles to no instruction.)
[[gnu::always_inline]] inline Vector broadcast(float x) { return x - Vector{}; }
[[gnu::always_inline]] inline void store(float *to, Vector v) { *reinterpret_cast<UnalignedVector *>(to) = v; }

constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }
constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// The begin of part `i` when `whole` is divided into `parts` nearly equal parts.
constexpr int64_t part(int64_t whole, int64_t parts, int64_t i) { return whole * i / parts; }

} // namespace
} // namespace tressel::kernels
