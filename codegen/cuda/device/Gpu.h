// What the kernels of the device library are written with. They are freestanding C++, compiled to NVPTX bitcode when
// Tressel is built. Each is a function
//   void name(void *const *context, void *const *buffers, const int64_t *params, int32_t *status)
// that every thread of the launch calls. `context` is for the epilogue alone; `buffers` are the kernel's own operands
// and results (null where nobody reads a result). `params` are constants where sizes are static: after linking,
// everything is inlined into a kernel and specialized. Strides and sizes count elements.
#pragma once

#include <stdint.h> // the compiler's own

namespace tressel::device {

#define TRESSEL_SHARED __attribute__((address_space(3)))
/// Static shared memory of a function, of undefined contents.
#define TRESSEL_SHARED_POOL(name, bytes)                                                                               \
  [[clang::loader_uninitialized]] static TRESSEL_SHARED __attribute__((aligned(16))) char name[bytes]
#define TRESSEL_INLINE inline __attribute__((always_inline))
#define TRESSEL_DEVICE(name)                                                                                           \
  extern "C" void name(void *const *context, void *const *buffers, const int64_t *params, int32_t *status)

inline constexpr int kWarp = 32;
inline constexpr int32_t kIndexOutOfRange = 1; // runtime::KernelStatus
inline constexpr unsigned kAllLanes = 0xffffffffu;

// Emitted when a kernel is linked (DeviceLibrary.cpp), as clang has no builtins for them.
extern "C" {
/// See codegen/cuda/loops/Loops.h.
void tressel_epilogue(void *const *context, float value, int64_t index);
/// c[4] += a (16 x 16) * b (16 x 8), in the registers of a warp (PTX: mma.sync.aligned.m16n8k16.row.col).
void tressel_mma_f16(float *c, const uint32_t *a, const uint32_t *b);
void tressel_mma_bf16(float *c, const uint32_t *a, const uint32_t *b);
/// Four 8 x 8 matrices of 16-bit elements (PTX: ldmatrix.sync.aligned.m8n8.x4); lane i names row i % 8 of matrix i / 8.
void tressel_ldmatrix(uint32_t *r, const TRESSEL_SHARED void *row);
void tressel_ldmatrix_trans(uint32_t *r, const TRESSEL_SHARED void *row);
/// All threads of all blocks of the cluster meet, and see what was written before (PTX: barrier.cluster).
void tressel_cluster_barrier();
/// What lies in the shared memory of the cluster's block `rank` where `here` is in the own (PTX: mapa).
float tressel_cluster_load(const TRESSEL_SHARED float *here, int rank);
}

TRESSEL_INLINE int threadIndex() { return __nvvm_read_ptx_sreg_tid_x(); }
TRESSEL_INLINE int numThreads() { return __nvvm_read_ptx_sreg_ntid_x(); }
TRESSEL_INLINE int blockIndex() { return __nvvm_read_ptx_sreg_ctaid_x(); }
TRESSEL_INLINE int numBlocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
TRESSEL_INLINE void barrier() { __syncthreads(); }

// --- Clusters

/// How blocks share the depth of a tile of a product: `parts` neighbours, which are a cluster (sm_90 and later), have a
/// part of its steps each. Their sums, which lie at the same place in the shared memory of each, are added in the order
/// of the blocks.
struct DepthShare {
  int parts, rank; ///< 1 part: the block has no neighbours

  static TRESSEL_INLINE DepthShare of(int64_t parts) {
    const int count = static_cast<int>(parts);
    return {count, count == 1 ? 0 : blockIndex() % count};
  }
  TRESSEL_INLINE int tile() const { return parts == 1 ? blockIndex() : blockIndex() / parts; }
  /// Steps [begin, end) of all, never none where there are as many steps as parts.
  TRESSEL_INLINE int64_t begin(int64_t steps) const { return steps * rank / parts; }
  TRESSEL_INLINE int64_t end(int64_t steps) const { return steps * (rank + 1) / parts; }
  /// The sums of this block are written, and seen by all. By all threads.
  TRESSEL_INLINE void meet() const {
    if (parts == 1)
      barrier();
    else
      tressel_cluster_barrier();
  }
  /// No other block reads this one's sums any more: before they are overwritten, and before the block ends.
  TRESSEL_INLINE void leave() const {
    if (parts != 1)
      tressel_cluster_barrier();
  }
  TRESSEL_INLINE float total(const TRESSEL_SHARED float *sum) const {
    if (parts == 1)
      return *sum;
    float all = tressel_cluster_load(sum, 0);
#pragma clang loop unroll(disable)
    for (int other = 1; other < parts; ++other)
      all += tressel_cluster_load(sum, other);
    return all;
  }
};

// --- Types
// -------------------------------------------------------------------------------------------------------------

typedef float Float4 __attribute__((ext_vector_type(4)));
typedef uint32_t Word4 __attribute__((ext_vector_type(4)));
typedef uint32_t Word2 __attribute__((ext_vector_type(2)));

struct Half {
  _Float16 value;
};
struct BFloat16 {
  uint16_t bits;
};

/// The type that arithmetic on T is done in.
template <class T> struct Wide { using Type = T; };
template <> struct Wide<Half> { using Type = float; };
template <> struct Wide<BFloat16> { using Type = float; };
template <class T> using WideOf = typename Wide<T>::Type;

template <class T> TRESSEL_INLINE WideOf<T> widen(T x) {
  if constexpr (__is_same(T, Half))
    return static_cast<float>(x.value);
  else if constexpr (__is_same(T, BFloat16))
    return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
  else
    return x;
}
/// To nearest even; NaN stays NaN.
template <class T> TRESSEL_INLINE T narrow(WideOf<T> x) {
  if constexpr (__is_same(T, Half)) {
    return {static_cast<_Float16>(x)};
  } else if constexpr (__is_same(T, BFloat16)) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x);
    if (x != x)
      return {static_cast<uint16_t>(bits >> 16 | 0x40)};
    return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  } else {
    return x;
  }
}

template <class T> inline constexpr bool kIsFloat = __is_same(T, float) || __is_same(T, double);

/// V elements of T as they lie in memory, moved at once.
template <class T, int V> struct alignas(sizeof(T) * V) Pack { T e[V]; };

// --- Warps
// -------------------------------------------------------------------------------------------------------------

template <class T> TRESSEL_INLINE T shuffleWord(T x, int lane) {
  return __builtin_bit_cast(T, __nvvm_shfl_sync_idx_i32(kAllLanes, __builtin_bit_cast(int, x), lane, 31));
}
/// The value of another lane; all lanes of the warp call it.
template <class T> TRESSEL_INLINE T shuffle(T x, int lane) {
  if constexpr (sizeof(T) == 4) {
    return shuffleWord(x, lane);
  } else if constexpr (sizeof(T) == 8) {
    const auto bits = __builtin_bit_cast(uint64_t, x);
    const uint64_t low = static_cast<uint32_t>(shuffleWord(static_cast<uint32_t>(bits), lane));
    const uint64_t high = static_cast<uint32_t>(shuffleWord(static_cast<uint32_t>(bits >> 32), lane));
    return __builtin_bit_cast(T, high << 32 | low);
  } else {
    static_assert(sizeof(T) < 4);
    if constexpr (sizeof(T) == 2)
      return __builtin_bit_cast(T, static_cast<uint16_t>(shuffleWord(uint32_t(__builtin_bit_cast(uint16_t, x)), lane)));
    else if constexpr (__is_same(T, bool))
      return shuffleWord(static_cast<uint32_t>(x), lane) != 0;
    else
      return static_cast<T>(shuffleWord(static_cast<uint32_t>(static_cast<uint8_t>(x)), lane));
  }
}
TRESSEL_INLINE float warpSum(float x, int lanes = kWarp) {
  const int lane = threadIndex() % kWarp;
  for (int step = lanes / 2; step > 0; step /= 2)
    x += shuffle(x, lane ^ step);
  return x;
}

// --- Numbers
// -----------------------------------------------------------------------------------------------------------

TRESSEL_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
TRESSEL_INLINE int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Of numbers that are not negative; by 32 bits where the caller knows that they suffice: 64-bit division is slow.
TRESSEL_INLINE int64_t divide(int64_t a, int64_t b, bool narrow) {
  return narrow ? static_cast<int64_t>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b))
                : static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
}
/// An index counted from the front, or -1 if it is outside [-size, size).
TRESSEL_INLINE int64_t place(int64_t index, int64_t size) {
  index += index < 0 ? size : 0;
  return index >= 0 && index < size ? index : -1;
}

} // namespace tressel::device
