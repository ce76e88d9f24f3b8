// sort, argsort, top_k: the order of one line at a time. Stable; NaN is the largest number; -0 and 0 are equal.
#include "codegen/bitcode/kernels/Kernel.h"

namespace tressel::bitcode {
namespace {

template <int Bytes> struct Unsigned;
template <> struct Unsigned<1> {
  using Type = uint8_t;
};
template <> struct Unsigned<2> {
  using Type = uint16_t;
};
template <> struct Unsigned<4> {
  using Type = uint32_t;
};
template <> struct Unsigned<8> {
  using Type = uint64_t;
};
template <class T> using KeyOf = typename Unsigned<sizeof(T)>::Type;

template <class T> constexpr bool isFloatBits = IsFloat<WideOf<T>>::value;

/// An unsigned number that is ordered as the elements are.
template <class T> KeyOf<T> keyOf(T x) {
  using Key = KeyOf<T>;
  constexpr Key top = static_cast<Key>(Key(1) << (sizeof(T) * 8 - 1));
  if constexpr (isFloatBits<T>) {
    const WideOf<T> value = widen(x);
    if (value != value)
      return static_cast<Key>(~Key(0));
    if (value == 0)
      return top;
    const Key bits = __builtin_bit_cast(Key, x);
    return bits & top ? static_cast<Key>(~bits) : static_cast<Key>(bits | top);
  } else if constexpr (__is_same(T, bool) || __is_same(T, uint8_t)) {
    return static_cast<Key>(x);
  } else {
    return static_cast<Key>(static_cast<Key>(x) ^ top);
  }
}

template <class Key> struct Entry {
  Key key;
  uint32_t index;
  bool before(const Entry &o) const { return key != o.key ? key < o.key : index < o.index; }
};

/// Few entries: insertion. Many: by one byte of the key after the other, the least significant first; digits that all
/// entries share cost one look. Returns the array of the two that holds the result.
template <class Key> Entry<Key> *sortEntries(Entry<Key> *entries, Entry<Key> *other, int64_t count) {
  if (count <= 48) {
    for (int64_t i = 1; i < count; ++i) {
      const Entry<Key> e = entries[i];
      int64_t j = i;
      for (; j > 0 && e.key < entries[j - 1].key; --j)
        entries[j] = entries[j - 1];
      entries[j] = e;
    }
    return entries;
  }
  uint32_t counts[256];
  for (unsigned digit = 0; digit < sizeof(Key); ++digit) {
    const unsigned shift = digit * 8;
    for (uint32_t &c : counts)
      c = 0;
    for (int64_t i = 0; i < count; ++i)
      ++counts[static_cast<uint8_t>(entries[i].key >> shift)];
    if (counts[static_cast<uint8_t>(entries[0].key >> shift)] == static_cast<uint64_t>(count))
      continue;
    uint32_t before = 0;
    for (uint32_t &c : counts) {
      const uint32_t n = c;
      c = before;
      before += n;
    }
    for (int64_t i = 0; i < count; ++i)
      other[counts[static_cast<uint8_t>(entries[i].key >> shift)]++] = entries[i];
    Entry<Key> *swapped = entries;
    entries = other;
    other = swapped;
  }
  return entries;
}

template <class Key> void siftDown(Entry<Key> *heap, int64_t count, int64_t at) {
  const Entry<Key> e = heap[at];
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count)
      break;
    if (child + 1 < count && heap[child].before(heap[child + 1]))
      ++child;
    if (!e.before(heap[child]))
      break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = e;
}

/// The first `k` of the line in order, for small k: a heap of the best so far, the worst of them on top.
template <class T> Entry<KeyOf<T>> *selectEntries(const T *x, int64_t stride, int64_t count, int64_t k, KeyOf<T> flip,
                                                  Entry<KeyOf<T>> *heap) {
  using Key = KeyOf<T>;
  for (int64_t i = 0; i < k; ++i)
    heap[i] = {static_cast<Key>(keyOf(x[i * stride]) ^ flip), static_cast<uint32_t>(i)};
  for (int64_t i = k / 2; i-- > 0;)
    siftDown(heap, k, i);
  for (int64_t i = k; i < count; ++i) {
    const Key key = static_cast<Key>(keyOf(x[i * stride]) ^ flip);
    if (key < heap[0].key) { // an equal one that comes later is no better
      heap[0] = {key, static_cast<uint32_t>(i)};
      siftDown(heap, k, 0);
    }
  }
  for (int64_t left = k; left-- > 1;) {
    const Entry<Key> last = heap[left];
    heap[left] = heap[0];
    heap[0] = last;
    siftDown(heap, left, 0);
  }
  return heap;
}

/// params: size of the dimension, elements between its neighbours, how many are wanted, whether the largest come first.
/// A unit is one line. Scratch: two arrays of entries.
template <class T> int32_t order(const T *x, T *values, int64_t *indices, void *scratch, const int64_t *params,
                                 int64_t begin, int64_t end) {
  using Key = KeyOf<T>;
  const int64_t size = params[0], stride = params[1], wanted = params[2];
  const Key flip = params[3] ? static_cast<Key>(~Key(0)) : Key(0);
  auto *entries = static_cast<Entry<Key> *>(scratch);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t outer = unit / stride, inner = unit % stride;
    const T *line = x + outer * size * stride + inner;
    const int64_t to = outer * wanted * stride + inner;
    Entry<Key> *sorted;
    if (wanted > 0 && wanted <= size / 16) {
      sorted = selectEntries(line, stride, size, wanted, flip, entries);
    } else {
      for (int64_t i = 0; i < size; ++i)
        entries[i] = {static_cast<Key>(keyOf(line[i * stride]) ^ flip), static_cast<uint32_t>(i)};
      sorted = sortEntries(entries, entries + size, size);
    }
    for (int64_t i = 0; i < wanted; ++i) {
      if (values)
        values[to + i * stride] = line[sorted[i].index * stride];
      if (indices)
        indices[to + i * stride] = sorted[i].index;
    }
  }
  return kOk;
}

template <class T>
int32_t sort(void *const *buffers, void *scratch, const int64_t *params, int64_t begin, int64_t end) {
  return order(static_cast<const T *>(buffers[0]), static_cast<T *>(buffers[1]), nullptr, scratch, params, begin, end);
}
template <class T>
int32_t argsort(void *const *buffers, void *scratch, const int64_t *params, int64_t begin, int64_t end) {
  return order(static_cast<const T *>(buffers[0]), static_cast<T *>(nullptr), static_cast<int64_t *>(buffers[1]),
               scratch, params, begin, end);
}
template <class T>
int32_t topK(void *const *buffers, void *scratch, const int64_t *params, int64_t begin, int64_t end) {
  return order(static_cast<const T *>(buffers[0]), static_cast<T *>(buffers[1]), static_cast<int64_t *>(buffers[2]),
               scratch, params, begin, end);
}

} // namespace

TRESSEL_KERNEL(sort, sort)
TRESSEL_KERNEL(argsort, argsort)
TRESSEL_KERNEL(top_k, topK)

} // namespace tressel::bitcode
