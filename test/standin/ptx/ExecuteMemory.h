// Loads and stores. What all lanes of a warp do at once within one span of memory is done at once; the rest, and all
// that is wrong, lane by lane.
#pragma once

#include "test/standin/ptx/Lanes.h"

namespace tressel::standin::ptx::PTX_EXECUTE {

enum class Where : uint8_t {
  Global,
  Block, ///< shared memory, parameters, constants: what the block has one region of
  Any    ///< generic and local addresses: lane by lane
};

/// How the addresses of 32 lanes lie.
struct Pattern {
  bool isUniform = false, isConsecutive = false;
};

template <unsigned Size> inline Pattern patternOf(const uint64_t *a) {
  const uint64_t first = a[0], step = a[1] - first;
  if (step != 0 && step != Size)
    return {};
  uint64_t strays = 0;
#if defined(__clang__)
  _Pragma("clang loop vectorize(enable)")
#endif
      for (unsigned l = 0; l < kLanes; ++l) strays |= a[l] ^ (first + l * step);
  return {!strays && !step, !strays && step};
}

struct Range {
  uint64_t low = ~uint64_t(0), high = 0, bits = 0;
};
inline Range rangeOf(const uint64_t *a, uint32_t mask) {
  Range range;
  if (mask == kAllLanes) {
    // As numbers with sign, which vectors compare: what is outside of that order is outside of all memory.
    int64_t low = INT64_MAX, high = INT64_MIN;
    uint64_t bits = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
      const auto x = static_cast<int64_t>(a[l]);
      low = x < low ? x : low;
      high = x > high ? x : high;
      bits |= a[l];
    }
    if (low < 0)
      return {0, ~uint64_t(0), bits};
    return {static_cast<uint64_t>(low), static_cast<uint64_t>(high), bits};
  }
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const uint64_t x = a[__builtin_ctz(rest)];
    range.low = x < range.low ? x : range.low;
    range.high = x > range.high ? x : range.high;
    range.bits |= x;
  }
  return range;
}

/// What memory the addresses [low, high] are of: where the byte of address 0 would be. Null: more than one, or none.
struct Found {
  std::byte *zero = nullptr;
  Span *span = nullptr;
  bool isFound = false;
};
template <Where W> inline Found lookUp(Warp &warp, const Instr &instr, uint64_t low, uint64_t end, bool isWrite) {
  Found found;
  if constexpr (W == Where::Global) {
    Span *&cached = warp.block->caches[instr.aux];
    if (!cached || low < cached->begin || end > cached->end) {
      Span *span = warp.block->find(low);
      if (!span || low < span->begin || end > span->end)
        return found;
      cached = span;
    }
    if (isWrite && cached->isReadOnly)
      return found;
    found.span = cached;
    found.zero = cached->host - cached->begin;
    found.isFound = true;
  } else if constexpr (W == Where::Block) {
    const Region &region = warp.block->region(instr.space);
    if (end > region.bytes || (isWrite && instr.space != Space::Shared))
      return found;
    found.zero = region.host;
    found.isFound = true;
  }
  return found;
}

inline void markLanes(uint64_t *bits, const uint64_t *a, uint32_t mask, uint64_t begin, unsigned size) {
  // Aligned, and of at most 16 bytes: within a word.
  const uint64_t ones = size == 16 ? 0xffff : (uint64_t(1) << size) - 1;
  if (mask != kAllLanes) {
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      const uint64_t offset = a[__builtin_ctz(rest)] - begin;
      bits[offset >> 6] |= ones << (offset & 63);
    }
    return;
  }
  // Neighbours are often in the same word.
  uint64_t at = (a[0] - begin) >> 6, word = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    const uint64_t offset = a[l] - begin;
    if (offset >> 6 != at) {
      bits[at] |= word;
      at = offset >> 6, word = 0;
    }
    word |= ones << (offset & 63);
  }
  bits[at] |= word;
}
template <bool Write>
inline void markAccess(Span *span, const uint64_t *a, uint32_t mask, uint64_t low, uint64_t end, unsigned size,
                       bool isWhole) {
  if (!span)
    return;
  uint64_t *bits = Write ? span->writes : span->reads;
  if (!bits)
    return;
  uint64_t &from = Write ? span->writesFrom : span->readsFrom, &to = Write ? span->writesTo : span->readsTo;
  low -= span->begin, end -= span->begin;
  from = low < from ? low : from;
  to = end > to ? end : to;
  if (isWhole)
    mark(bits, low, end);
  else if (span->begin % size == 0)
    markLanes(bits, a, mask, span->begin, size);
  else
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      const uint64_t offset = a[__builtin_ctz(rest)] - span->begin;
      mark(bits, offset, offset + size);
    }
}

template <class M> inline M get(const std::byte *from) {
  M value;
  std::memcpy(&value, from, sizeof(M));
  return value;
}
template <class M> inline void put(std::byte *to, M value) { std::memcpy(to, &value, sizeof(M)); }

template <class T> inline void setAll(T *out, T value) { PTX_LANES(l) out[l] = value; }

/// Loads N numbers of type M each into registers of type R.
template <class M, class R, unsigned N, Where W> void load(Warp &warp, const Instr &instr) {
  constexpr unsigned kSize = sizeof(M) * N;
  const uint64_t *base = warp.source<uint64_t>(instr.op[N]);
  const uint64_t offset = static_cast<uint64_t>(instr.imm);
  const uint32_t mask = warp.active;
  R *out[N];
  for (unsigned n = 0; n < N; ++n)
    out[n] = warp.target<R>(instr.op[n]);
  if constexpr (W != Where::Any)
    if (mask == kAllLanes) [[likely]] {
      const Pattern pattern = patternOf<kSize>(base);
      const uint64_t low = base[0] + offset;
      if (pattern.isUniform && low % kSize == 0) {
        const uint64_t end = low + kSize;
        if (const Found found = lookUp<W>(warp, instr, low, end, false); found.isFound) {
          markAccess<false>(found.span, nullptr, 1, low, end, kSize, true);
          for (unsigned n = 0; n < N; ++n)
            setAll<R>(out[n], static_cast<R>(get<M>(found.zero + low + n * sizeof(M))));
          return;
        }
      } else if (pattern.isConsecutive && low % kSize == 0) {
        const uint64_t end = low + kSize * kLanes;
        if (const Found found = lookUp<W>(warp, instr, low, end, false); found.isFound) {
          markAccess<false>(found.span, nullptr, mask, low, end, kSize, true);
          const std::byte *from = found.zero + low;
          if constexpr (N == 1 && sizeof(M) == sizeof(R))
            std::memcpy(out[0], from, kSize * kLanes);
          else
            PTX_LANES(l)
            for (unsigned n = 0; n < N; ++n) out[n][l] = static_cast<R>(get<M>(from + l * kSize + n * sizeof(M)));
          return;
        }
      }
    }
  alignas(64) uint64_t a[kLanes];
  PTX_LANES(l) a[l] = base[l] + offset;
  if constexpr (W != Where::Any) {
    const Range range = rangeOf(a, mask);
    if (range.bits % kSize == 0 && range.high < ~uint64_t(0) - kSize) {
      if (const Found found = lookUp<W>(warp, instr, range.low, range.high + kSize, false); found.isFound) {
        markAccess<false>(found.span, a, mask, range.low, range.high + kSize, kSize, false);
        if (mask == kAllLanes) {
#ifdef __SSE2__
          if constexpr (N == 4 && sizeof(M) == 4 && sizeof(R) == 4) {
            for (unsigned l = 0; l < kLanes; l += 4) {
              __m128 x[4];
              for (unsigned n = 0; n < 4; ++n)
                x[n] = _mm_loadu_ps(reinterpret_cast<const float *>(found.zero + a[l + n]));
              _MM_TRANSPOSE4_PS(x[0], x[1], x[2], x[3]);
              for (unsigned n = 0; n < 4; ++n)
                _mm_storeu_ps(reinterpret_cast<float *>(out[n] + l), x[n]);
            }
            return;
          }
#endif
          for (unsigned l = 0; l < kLanes; ++l)
            for (unsigned n = 0; n < N; ++n)
              out[n][l] = static_cast<R>(get<M>(found.zero + a[l] + n * sizeof(M)));
        } else
          for (uint32_t rest = mask; rest; rest &= rest - 1) {
            const auto l = static_cast<unsigned>(__builtin_ctz(rest));
            for (unsigned n = 0; n < N; ++n)
              out[n][l] = static_cast<R>(get<M>(found.zero + a[l] + n * sizeof(M)));
          }
        return;
      }
    }
  }
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(rest));
    const std::byte *from = warp.block->locate(warp, instr, instr.space, l, a[l], kSize, true, false);
    for (unsigned n = 0; n < N; ++n)
      out[n][l] = static_cast<R>(get<M>(from + n * sizeof(M)));
  }
}

/// Operands: the address, then what is stored.
template <class M, class R, unsigned N, Where W> void store(Warp &warp, const Instr &instr) {
  constexpr unsigned kSize = sizeof(M) * N;
  const uint64_t *base = warp.source<uint64_t>(instr.op[0]);
  const uint64_t offset = static_cast<uint64_t>(instr.imm);
  const uint32_t mask = warp.active;
  const R *in[N];
  for (unsigned n = 0; n < N; ++n)
    in[n] = warp.source<R>(instr.op[1 + n]);
  if constexpr (W != Where::Any) {
    const uint64_t first = base[0] + offset;
    if (mask == kAllLanes && first % kSize == 0 && patternOf<kSize>(base).isConsecutive) [[likely]] {
      const uint64_t end = first + kSize * kLanes;
      if (const Found found = lookUp<W>(warp, instr, first, end, true); found.isFound) {
        markAccess<true>(found.span, nullptr, mask, first, end, kSize, true);
        std::byte *to = found.zero + first;
        if constexpr (N == 1 && sizeof(M) == sizeof(R))
          std::memcpy(to, in[0], kSize * kLanes);
        else
          PTX_LANES(l)
          for (unsigned n = 0; n < N; ++n) put<M>(to + l * kSize + n * sizeof(M), static_cast<M>(in[n][l]));
        return;
      }
    }
  }
  alignas(64) uint64_t a[kLanes];
  PTX_LANES(l) a[l] = base[l] + offset;
  if constexpr (W != Where::Any) {
    const Range range = rangeOf(a, mask);
    if (range.bits % kSize == 0 && range.high < ~uint64_t(0) - kSize) {
      if (const Found found = lookUp<W>(warp, instr, range.low, range.high + kSize, true); found.isFound) {
        markAccess<true>(found.span, a, mask, range.low, range.high + kSize, kSize, false);
        if (mask == kAllLanes) {
#ifdef __SSE2__
          if constexpr (N == 4 && sizeof(M) == 4 && sizeof(R) == 4) {
            for (unsigned l = 0; l < kLanes; l += 4) {
              __m128 x[4];
              for (unsigned n = 0; n < 4; ++n)
                x[n] = _mm_loadu_ps(reinterpret_cast<const float *>(in[n] + l));
              _MM_TRANSPOSE4_PS(x[0], x[1], x[2], x[3]);
              for (unsigned n = 0; n < 4; ++n)
                _mm_storeu_ps(reinterpret_cast<float *>(found.zero + a[l + n]), x[n]);
            }
            return;
          }
#endif
          for (unsigned l = 0; l < kLanes; ++l)
            for (unsigned n = 0; n < N; ++n)
              put<M>(found.zero + a[l] + n * sizeof(M), static_cast<M>(in[n][l]));
        } else
          for (uint32_t rest = mask; rest; rest &= rest - 1) {
            const auto l = static_cast<unsigned>(__builtin_ctz(rest));
            for (unsigned n = 0; n < N; ++n)
              put<M>(found.zero + a[l] + n * sizeof(M), static_cast<M>(in[n][l]));
          }
        return;
      }
    }
  }
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(rest));
    std::byte *to = warp.block->locate(warp, instr, instr.space, l, a[l], kSize, false, true);
    for (unsigned n = 0; n < N; ++n)
      put<M>(to + n * sizeof(M), static_cast<M>(in[n][l]));
  }
}

/// A parameter at a place known: sub bytes.
template <class M, class R> void loadParam(Warp &warp, const Instr &instr) {
  const R value = static_cast<R>(get<M>(warp.block->params.host + instr.imm));
  perLane<R>(warp, instr.op[0], [value](unsigned) { return value; });
}

template <class M, class R, Where W>
void addAccess(const Table &add, const char *type, const char *ld, const char *st) {
  const char *const suffixes[] = {"", ".v2", ".v4"};
  (void)suffixes;
  add(ld, type, load<M, R, 1, W>);
  add(st, type, store<M, R, 1, W>);
}
template <class M, class R, Where W>
void addVectors(const Table &add, const char *type2, const char *type4, const char *ld, const char *st) {
  add(ld, type2, load<M, R, 2, W>);
  add(st, type2, store<M, R, 2, W>);
  if constexpr (sizeof(M) <= 4) {
    add(ld, type4, load<M, R, 4, W>);
    add(st, type4, store<M, R, 4, W>);
  }
}
template <Where W> void addSpace(const Table &add, const char *ld, const char *st) {
  addAccess<uint8_t, uint16_t, W>(add, "u8", ld, st);
  addAccess<int8_t, int16_t, W>(add, "s8", ld, st);
  addAccess<uint16_t, uint16_t, W>(add, "b16", ld, st);
  addAccess<uint32_t, uint32_t, W>(add, "b32", ld, st);
  addAccess<uint64_t, uint64_t, W>(add, "b64", ld, st);
  addVectors<uint8_t, uint16_t, W>(add, "u8.v2", "u8.v4", ld, st);
  addVectors<int8_t, int16_t, W>(add, "s8.v2", "s8.v4", ld, st);
  addVectors<uint16_t, uint16_t, W>(add, "b16.v2", "b16.v4", ld, st);
  addVectors<uint32_t, uint32_t, W>(add, "b32.v2", "b32.v4", ld, st);
  addVectors<uint64_t, uint64_t, W>(add, "b64.v2", "b64.v4", ld, st);
}
inline void addMemoryHandlers(const Table &add) {
  addSpace<Where::Global>(add, "ld.global", "st.global");
  addSpace<Where::Block>(add, "ld.block", "st.block");
  addSpace<Where::Any>(add, "ld.any", "st.any");
  add("ld.param", "u8", loadParam<uint8_t, uint16_t>);
  add("ld.param", "s8", loadParam<int8_t, int16_t>);
  add("ld.param", "b16", loadParam<uint16_t, uint16_t>);
  add("ld.param", "b32", loadParam<uint32_t, uint32_t>);
  add("ld.param", "b64", loadParam<uint64_t, uint64_t>);
}

} // namespace tressel::standin::ptx::PTX_EXECUTE
