// sort, argsort, top_k: lines in order, by bitonic networks. Stable; NaN is the largest number; -0 and 0 are equal.
// params: KernelForm's range (lines), then size of the dimension, elements between its neighbours, how many are wanted,
// whether the largest come first; then how many lines a block sorts in shared memory, 0: one, in the results' own
// memory.
#include "codegen/cuda/device/Elements.h"

namespace tressel::device {
namespace {

template <int Bytes> struct Unsigned;
template <> struct Unsigned<1> { using Type = uint8_t; };
template <> struct Unsigned<2> { using Type = uint16_t; };
template <> struct Unsigned<4> { using Type = uint32_t; };
template <> struct Unsigned<8> { using Type = uint64_t; };
template <class T> using KeyOf = typename Unsigned<sizeof(T)>::Type;
template <class T> inline constexpr bool kIsFloatBits = kIsFloat<WideOf<T>>;
template <class T> inline constexpr KeyOf<T> kTopBit = static_cast<KeyOf<T>>(KeyOf<T>(1) << (sizeof(T) * 8 - 1));
template <class T> inline constexpr KeyOf<T> kMost = static_cast<KeyOf<T>>(~KeyOf<T>(0));

/// An unsigned number that is ordered as the elements are. NaN is kMost, and 0 of both signs kTopBit.
template <class T> TRESSEL_INLINE KeyOf<T> keyOf(T x) {
  using Key = KeyOf<T>;
  if constexpr (kIsFloatBits<T>) {
    const WideOf<T> value = widen(x);
    if (value != value)
      return kMost<T>;
    if (value == 0)
      return kTopBit<T>;
    const Key bits = __builtin_bit_cast(Key, x);
    return bits & kTopBit<T> ? static_cast<Key>(~bits) : static_cast<Key>(bits | kTopBit<T>);
  } else if constexpr (__is_same(T, bool) || __is_same(T, uint8_t)) {
    return static_cast<Key>(x);
  } else {
    return static_cast<Key>(static_cast<Key>(x) ^ kTopBit<T>);
  }
}

template <class T> struct Lines {
  const T *x;
  T *values;        ///< or null
  int64_t *indices; ///< or null
  int64_t range, size, stride, wanted;
  KeyOf<T> flip; ///< of all bits, where the largest come first

  TRESSEL_INLINE Lines(const void *x, void *values, void *indices, const int64_t *p)
      : x(static_cast<const T *>(x)), values(static_cast<T *>(values)), indices(static_cast<int64_t *>(indices)),
        range(p[0]), size(p[1]), stride(p[2]), wanted(p[3]), flip(p[4] ? kMost<T> : KeyOf<T>(0)) {}
  TRESSEL_INLINE KeyOf<T> key(T value) const { return static_cast<KeyOf<T>>(keyOf(value) ^ flip); }
  /// Where a line begins, and where its result does.
  TRESSEL_INLINE int64_t from(int64_t line) const { return line / stride * size * stride + line % stride; }
  TRESSEL_INLINE int64_t to(int64_t line) const { return line / stride * wanted * stride + line % stride; }
};

/// Places a < b that are compared, the smaller entry going to a: pair number `pair` of a bitonic network at a step of
/// merging runs of `run`. The first step compares mirrored entries, so that all comparisons have one direction, and
/// entries that are not there can be taken as the largest.
struct Pair {
  int64_t a, b;
};
TRESSEL_INLINE Pair pairOf(int64_t pair, int64_t run, int64_t step) {
  const int64_t low = pair & (step - 1), a = (pair - low) * 2 + low;
  return {a, step == run / 2 ? a - low + run - 1 - low : a + step};
}

inline constexpr int kSharedBytes = 32 << 10;
/// Entries: a key and an index.
template <class T> inline constexpr int kEntries = kSharedBytes / (sizeof(T) <= 4 ? 8 : 16);

template <class T> TRESSEL_INLINE void sortShared(const Lines<T> &s, int64_t perBlock, TRESSEL_SHARED char *pool) {
  using Key = KeyOf<T>;
  auto *keys = reinterpret_cast<TRESSEL_SHARED Key *>(pool);
  auto *numbers = reinterpret_cast<TRESSEL_SHARED uint32_t *>(pool + kEntries<T> * sizeof(Key));
  int64_t power = 1;
  while (power < s.size)
    power *= 2;
  const int64_t firstLine = blockIndex() * perBlock, entries = power * perBlock;
  for (int64_t e = threadIndex(); e < entries; e += numThreads()) {
    const int64_t line = firstLine + e / power, i = e & (power - 1);
    const bool there = line < s.range && i < s.size;
    keys[e] = there ? s.key(s.x[s.from(line) + i * s.stride]) : kMost<T>;
    numbers[e] = there ? static_cast<uint32_t>(i) : 0xffffffffu; // behind those that are there
  }
  barrier();
  // The lines' networks side by side: pairs are numbered through.
  const int64_t half = power / 2;
#pragma clang loop unroll(disable)
  for (int64_t run = 2; run <= power; run *= 2)
#pragma clang loop unroll(disable)
    for (int64_t step = run / 2; step > 0; step /= 2) {
#pragma clang loop unroll(disable)
      for (int64_t p = threadIndex(); p < half * perBlock; p += numThreads()) {
        const int64_t pair = p & (half - 1), base = (p - pair) * 2;
        const Pair places = pairOf(pair, run, step);
        const int64_t a = base + places.a, b = base + places.b;
        const Key first = keys[a], second = keys[b];
        const uint32_t m = numbers[a], n = numbers[b];
        if (second < first || (second == first && n < m)) {
          keys[a] = second, keys[b] = first;
          numbers[a] = n, numbers[b] = m;
        }
      }
      barrier();
    }
  for (int64_t e = threadIndex(); e < entries; e += numThreads()) {
    const int64_t line = firstLine + e / power, i = e & (power - 1);
    if (line >= s.range || i >= s.wanted)
      continue;
    const int64_t number = numbers[e], at = s.to(line) + i * s.stride;
    if (s.values)
      s.values[at] = s.x[s.from(line) + number * s.stride];
    if (s.indices)
      s.indices[at] = number;
  }
}

/// Sum over the block's threads.
TRESSEL_INLINE int64_t sumOfBlock(int64_t x, TRESSEL_SHARED int64_t *partial) {
  const int lane = threadIndex() % kWarp;
  for (int step = kWarp / 2; step > 0; step /= 2)
    x += shuffle(x, lane ^ step);
  if (lane == 0)
    partial[threadIndex() / kWarp] = x;
  barrier();
  int64_t sum = 0;
  for (int w = 0; w < numThreads() / kWarp; ++w)
    sum += partial[w];
  barrier();
  return sum;
}

/// The wanted-th smallest key of a line, bit by bit, and how many that are equal to it are wanted.
template <class T> struct Threshold {
  KeyOf<T> key;
  int64_t equals;
};
template <class T>
TRESSEL_INLINE Threshold<T> findThreshold(const Lines<T> &s, const T *line, TRESSEL_SHARED int64_t *partial) {
  using Key = KeyOf<T>;
  Key threshold = 0;
  int64_t left = s.wanted;
#pragma clang loop unroll(disable)
  for (int bit = static_cast<int>(sizeof(T)) * 8 - 1; bit >= 0; --bit) {
    int64_t count = 0;
    for (int64_t i = threadIndex(); i < s.size; i += numThreads())
      count += static_cast<Key>(s.key(line[i * s.stride]) >> bit) == static_cast<Key>(threshold >> bit);
    count = sumOfBlock(count, partial);
    if (left > count) {
      left -= count;
      threshold = static_cast<Key>(threshold | Key(1) << bit);
    }
  }
  return {threshold, left};
}

/// Elements of the line that are wanted, in their order: store(place, index).
template <class T, class Store>
TRESSEL_INLINE void select(const Lines<T> &s, const T *line, TRESSEL_SHARED int64_t *partial,
                           TRESSEL_SHARED int *counts, Store store) {
  if (s.wanted >= s.size) {
    for (int64_t i = threadIndex(); i < s.size; i += numThreads())
      store(i, i);
    return;
  }
  const Threshold<T> threshold = findThreshold(s, line, partial);
  int64_t taken = 0, equals = 0;
#pragma clang loop unroll(disable)
  for (int64_t first = 0; first < s.size; first += numThreads()) {
    const int64_t i = first + threadIndex();
    const KeyOf<T> key = i < s.size ? s.key(line[i * s.stride]) : kMost<T>;
    const bool equal = i < s.size && key == threshold.key;
    const Rank same = rankInBlock(equal, counts);
    const bool take = (i < s.size && key < threshold.key) || (equal && equals + same.before < threshold.equals);
    const Rank rank = rankInBlock(take, counts);
    if (take)
      store(taken + rank.before, i);
    taken += rank.all;
    equals += same.all;
  }
}

/// Elements whose keys are equal, and bits are not, stand in the sorted values in any order: puts them in the line's.
template <class T>
TRESSEL_INLINE void restoreOrder(const Lines<T> &s, const T *line, T *values, KeyOf<T> key,
                                 TRESSEL_SHARED int64_t *partial, TRESSEL_SHARED int *counts) {
  int64_t place = 0;
  for (int64_t i = threadIndex(); i < s.wanted; i += numThreads())
    place += s.key(values[i * s.stride]) < key;
  place = sumOfBlock(place, partial);
#pragma clang loop unroll(disable)
  for (int64_t first = 0; first < s.size && place < s.wanted; first += numThreads()) {
    const int64_t i = first + threadIndex();
    const bool equal = i < s.size && s.key(line[i * s.stride]) == key;
    const Rank rank = rankInBlock(equal, counts);
    if (equal && place + rank.before < s.wanted)
      values[(place + rank.before) * s.stride] = line[i * s.stride];
    place += rank.all;
  }
}

/// Entries of a long line in the memory of the result: indices, by the keys of their elements, or values alone.
template <class T> struct Indices {
  const Lines<T> &s;
  const T *line;
  int64_t *to;
  struct Entry {
    KeyOf<T> key;
    uint32_t number;
  };
  TRESSEL_INLINE Entry load(int64_t i) const {
    const int64_t number = to[i * s.stride];
    return {s.key(line[number * s.stride]), static_cast<uint32_t>(number)};
  }
  TRESSEL_INLINE void store(int64_t i, Entry e) const { to[i * s.stride] = e.number; }
  TRESSEL_INLINE bool before(Entry a, Entry b) const { return a.key != b.key ? a.key < b.key : a.number < b.number; }
};
template <class T> struct Values {
  const Lines<T> &s;
  T *to;
  struct Entry {
    KeyOf<T> key; ///< the value's bits
    uint32_t number;
  };
  TRESSEL_INLINE Entry load(int64_t i) const { return {__builtin_bit_cast(KeyOf<T>, to[i * s.stride]), 0}; }
  TRESSEL_INLINE void store(int64_t i, Entry e) const { to[i * s.stride] = __builtin_bit_cast(T, e.key); }
  TRESSEL_INLINE bool before(Entry a, Entry b) const {
    return s.key(__builtin_bit_cast(T, a.key)) < s.key(__builtin_bit_cast(T, b.key));
  }
};

/// The bitonic network over `count` entries in memory. Steps between neighbours closer than a piece that fits into
/// shared memory are done there, a piece at a time.
template <class T, class List>
TRESSEL_INLINE void sortLong(const List &list, int64_t count, TRESSEL_SHARED char *pool) {
  using Entry = typename List::Entry;
  constexpr int64_t kPiece = kEntries<T>;
  auto *keys = reinterpret_cast<TRESSEL_SHARED KeyOf<T> *>(pool);
  auto *numbers = reinterpret_cast<TRESSEL_SHARED uint32_t *>(pool + kPiece * sizeof(KeyOf<T>));
  // Runs from `run` to kPiece of the piece at `base`, of the first one only steps from `step` on.
  auto sortPiece = [&](int64_t base, int64_t run, int64_t step) {
    const int64_t there = least(kPiece, count - base);
    for (int64_t i = threadIndex(); i < there; i += numThreads()) {
      const Entry e = list.load(base + i);
      keys[i] = e.key;
      numbers[i] = e.number;
    }
    barrier();
#pragma clang loop unroll(disable)
    for (; run <= 2 * kPiece; run *= 2, step = run / 2) {
#pragma clang loop unroll(disable)
      for (; step > 0; step /= 2) {
#pragma clang loop unroll(disable)
        for (int64_t pair = threadIndex(); pair < kPiece / 2; pair += numThreads()) {
          const Pair p = pairOf(pair, run, step);
          if (p.b >= there)
            continue;
          const Entry a{keys[p.a], numbers[p.a]}, b{keys[p.b], numbers[p.b]};
          if (list.before(b, a)) {
            keys[p.a] = b.key, numbers[p.a] = b.number;
            keys[p.b] = a.key, numbers[p.b] = a.number;
          }
        }
        barrier();
      }
      if (run >= kPiece)
        break;
    }
    for (int64_t i = threadIndex(); i < there; i += numThreads())
      list.store(base + i, {keys[i], numbers[i]});
    barrier();
  };
#pragma clang loop unroll(disable)
  for (int64_t base = 0; base < count; base += kPiece)
    sortPiece(base, 2, 1);
#pragma clang loop unroll(disable)
  for (int64_t run = 2 * kPiece; run < 2 * count; run *= 2) {
#pragma clang loop unroll(disable)
    for (int64_t step = run / 2; step >= kPiece; step /= 2) {
#pragma clang loop unroll(disable)
      for (int64_t pair = threadIndex(); pair < (count + run - 1) / run * run / 2; pair += numThreads()) {
        const Pair p = pairOf(pair, run, step);
        if (p.b >= count)
          continue;
        const Entry a = list.load(p.a), b = list.load(p.b);
        if (list.before(b, a)) {
          list.store(p.a, b);
          list.store(p.b, a);
        }
      }
      barrier();
    }
#pragma clang loop unroll(disable)
    for (int64_t base = 0; base < count; base += kPiece)
      sortPiece(base, 2 * kPiece, kPiece / 2);
  }
}

/// Long lines: one per block, in the memory of the result.
template <class T>
TRESSEL_INLINE void sortInPlace(const Lines<T> &s, TRESSEL_SHARED char *pool, TRESSEL_SHARED int64_t *partial,
                                TRESSEL_SHARED int *counts) {
  const T *line = s.x + s.from(blockIndex());
  const int64_t to = s.to(blockIndex()), count = least(s.wanted, s.size);
  if (s.indices) {
    int64_t *indices = s.indices + to;
    select(s, line, partial, counts, [&](int64_t place, int64_t i) { indices[place * s.stride] = i; });
    barrier();
    sortLong<T>(Indices<T>{s, line, indices}, count, pool);
    if (s.values)
      for (int64_t i = threadIndex(); i < count; i += numThreads())
        s.values[to + i * s.stride] = line[indices[i * s.stride] * s.stride];
    return;
  }
  if (!s.values)
    return;
  T *values = s.values + to;
  select(s, line, partial, counts, [&](int64_t place, int64_t i) { values[place * s.stride] = line[i * s.stride]; });
  barrier();
  sortLong<T>(Values<T>{s, values}, count, pool);
  if constexpr (kIsFloatBits<T>) {
    restoreOrder(s, line, values, static_cast<KeyOf<T>>(kTopBit<T> ^ s.flip), partial, counts);
    barrier();
    restoreOrder(s, line, values, static_cast<KeyOf<T>>(kMost<T> ^ s.flip), partial, counts);
  }
}

} // namespace

#define TRESSEL_ORDER(name, suffix, T, values, indices)                                                                \
  TRESSEL_DEVICE(name##_##suffix) {                                                                                    \
    TRESSEL_SHARED_POOL(pool, kSharedBytes);                                                                           \
    const Lines<T> lines(buffers[0], values, indices, params);                                                         \
    sortShared(lines, params[5], pool);                                                                                \
    (void)context, (void)status;                                                                                       \
  }                                                                                                                    \
  TRESSEL_DEVICE(name##_long_##suffix) {                                                                               \
    TRESSEL_SHARED_POOL(pool, kSharedBytes);                                                                           \
    TRESSEL_SHARED_POOL(partial, kWarp * sizeof(int64_t));                                                             \
    TRESSEL_SHARED_POOL(counts, kWarp * sizeof(int));                                                                  \
    const Lines<T> lines(buffers[0], values, indices, params);                                                         \
    sortInPlace(lines, pool, reinterpret_cast<TRESSEL_SHARED int64_t *>(partial),                                      \
                reinterpret_cast<TRESSEL_SHARED int *>(counts));                                                       \
    (void)context, (void)status;                                                                                       \
  }
#define TRESSEL_ORDERS(suffix, T)                                                                                      \
  TRESSEL_ORDER(sort, suffix, T, buffers[1], nullptr)                                                                  \
  TRESSEL_ORDER(argsort, suffix, T, nullptr, buffers[1])                                                               \
  TRESSEL_ORDER(top_k, suffix, T, buffers[1], buffers[2])
TRESSEL_FOR_ALL_TYPES(TRESSEL_ORDERS)

} // namespace tressel::device
