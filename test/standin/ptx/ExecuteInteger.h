// Integers, logic, predicates and moves.
#pragma once

#include "test/standin/ptx/Lanes.h"

#include <type_traits>

namespace tressel::standin::ptx::PTX_EXECUTE {

template <class T> inline T divide(T a, T b) {
  if (b == 0)
    return static_cast<T>(~T(0));
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return static_cast<T>(0 - std::make_unsigned_t<T>(a));
  return static_cast<T>(a / b);
}
template <class T> inline T remainder(T a, T b) {
  if (b == 0)
    return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return 0;
  return static_cast<T>(a % b);
}
template <class T> inline T multiplyHigh(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>(static_cast<Wide>(a) * b >> 64);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b) >> (8 * sizeof(T)));
  }
}
template <class T> inline T multiplyLow(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <> inline int32_t multiplyLow(int32_t a, int32_t b) { return static_cast<int32_t>(uint32_t(a) * uint32_t(b)); }
template <> inline uint32_t multiplyLow(uint32_t a, uint32_t b) { return a * b; }
template <> inline int16_t multiplyLow(int16_t a, int16_t b) { return static_cast<int16_t>(int32_t(a) * int32_t(b)); }
template <> inline uint16_t multiplyLow(uint16_t a, uint16_t b) {
  return static_cast<uint16_t>(uint32_t(a) * uint32_t(b));
}

/// Shifts clamp their amount at the width.
template <class T> inline T shiftLeft(T a, uint32_t b) {
  constexpr uint32_t kWidth = 8 * sizeof(T);
  const auto shifted = static_cast<T>(a << (b & (kWidth - 1)));
  return b >= kWidth ? T(0) : shifted;
}
template <class T> inline T shiftRight(T a, uint32_t b) {
  constexpr uint32_t kWidth = 8 * sizeof(T);
  const uint32_t amount = b < kWidth - 1 ? b : kWidth - 1;
  const auto shifted = static_cast<T>(a >> amount);
  if constexpr (std::is_signed_v<T>)
    return shifted;
  else
    return b >= kWidth ? T(0) : shifted;
}

template <class T> inline T extractField(T a, uint32_t b, uint32_t c) {
  // PTX ISA, bfe: position and length are bytes; bits behind the end are the sign of the field.
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t kWidth = 8 * sizeof(T), kTop = kWidth - 1;
  const uint32_t position = b & 255, length = c & 255;
  bool sign = false;
  if (std::is_signed_v<T> && length) {
    const uint32_t at = position + length - 1 < kTop ? position + length - 1 : kTop;
    sign = static_cast<U>(a) >> at & 1;
  }
  U result = sign ? static_cast<U>(~U(0)) : U(0);
  if (length) {
    const U field = position < kWidth ? static_cast<U>(a) >> position : U(0);
    // Of the bits behind the end there are none but copies of the sign.
    const uint32_t given = position < kWidth ? (length < kWidth - position ? length : kWidth - position) : 0;
    const U mask = given >= kWidth ? static_cast<U>(~U(0)) : static_cast<U>((U(1) << given) - 1);
    result = static_cast<U>((result & ~mask) | (field & mask));
  }
  return static_cast<T>(result);
}
template <class T> inline T insertField(T a, T b, uint32_t c, uint32_t d) {
  constexpr uint32_t kWidth = 8 * sizeof(T);
  const uint32_t position = c & 255, length = d & 255;
  if (position >= kWidth || !length)
    return b;
  const T field = length >= kWidth ? static_cast<T>(~T(0)) : static_cast<T>((T(1) << length) - 1);
  const T mask = static_cast<T>(field << position);
  return static_cast<T>((b & ~mask) | (static_cast<T>(a << position) & mask));
}

inline uint32_t permute(uint32_t a, uint32_t b, uint32_t c) {
  const uint64_t bytes = a | uint64_t(b) << 32;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t selector = c >> (4 * i);
    auto byte = static_cast<uint32_t>(bytes >> (8 * (selector & 7))) & 255;
    if (selector & 8)
      byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}
/// prmt with a mode: forwards, backwards, a byte four times, edges, halves.
inline uint32_t permuteMode(unsigned mode, uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t s = c & 3;
  switch (mode) {
  case 1: // f4e
    return permute(a, b, s | (s + 1) << 4 | (s + 2) << 8 | (s + 3) << 12);
  case 2: // b4e
    return permute(a, b, s | ((s - 1) & 7) << 4 | ((s - 2) & 7) << 8 | ((s - 3) & 7) << 12);
  case 3: // rc8
    return permute(a, b, s * 0x1111);
  case 4: // ecl: at most byte i is from s on
    return permute(a, b, (s > 0 ? s : 0) | (s > 1 ? s : 1) << 4 | (s > 2 ? s : 2) << 8 | 3u << 12);
  case 5: // ecr
    return permute(a, b, 0 | (s < 1 ? s : 1) << 4 | (s < 2 ? s : 2) << 8 | s << 12);
  default: // rc16
    return permute(a, b, s & 1 ? 0x3232 : 0x1010);
  }
}

template <class T> inline uint32_t leadingBit(T a, bool isAmount) {
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t kTop = 8 * sizeof(T) - 1;
  const U bits = std::is_signed_v<T> && a < 0 ? static_cast<U>(~U(a)) : static_cast<U>(a);
  if (!bits)
    return ~0u;
  const uint32_t at = kTop - static_cast<uint32_t>(std::countl_zero(bits));
  return isAmount ? kTop - at : at;
}
template <class T> inline T reverseBits(T a) {
  T result = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); ++i)
    result = static_cast<T>(result | (a >> i & 1) << (8 * sizeof(T) - 1 - i));
  return result;
}

template <class T> void selectHandler(Warp &warp, const Instr &instr) {
  const T *a = warp.source<T>(instr.op[1]), *b = warp.source<T>(instr.op[2]);
  const uint32_t mask = warp.predicate(instr.op[3]);
  if (!warp.isPartial) [[likely]]
    return select(warp.target<T>(instr.op[0]), mask, a, b);
  auto *out = reinterpret_cast<T *>(warp.scratch);
  select(out, mask, a, b);
  T *target = warp.target<T>(instr.op[0]);
  select(target, warp.active, static_cast<const T *>(out), static_cast<const T *>(target));
}

template <class T> void copyHandler(Warp &warp, const Instr &instr) {
  const T *a = warp.source<T>(instr.op[1]);
  T *target = warp.target<T>(instr.op[0]);
  if (!warp.isPartial) [[likely]]
    std::memcpy(target, a, sizeof(T) * kLanes);
  else
    select(target, warp.active, a, static_cast<const T *>(target));
}

template <class T, class U> void addIntegers(const Table &add, const char *type, const char *unsignedType) {
  // Sums of numbers without sign, as those with it may not overflow in C++.
  add("add", type, binary<U, U, U, decltype([](U a, U b) { return static_cast<U>(a + b); })>);
  add("sub", type, binary<U, U, U, decltype([](U a, U b) { return static_cast<U>(a - b); })>);
  add("mul.lo", type, binary<T, T, T, decltype([](T a, T b) { return multiplyLow<T>(a, b); })>);
  add("mul.hi", type, binary<T, T, T, decltype([](T a, T b) { return multiplyHigh<T>(a, b); })>);
  add("mad.lo", type,
      ternary<U, U, U, U, decltype([](U a, U b, U c) { return static_cast<U>(multiplyLow<U>(a, b) + c); })>);
  add("mad.hi", type, ternary<T, T, T, U, decltype([](T a, T b, U c) {
                                return static_cast<T>(static_cast<U>(multiplyHigh<T>(a, b)) + c);
                              })>);
  add("div", type, binary<T, T, T, decltype([](T a, T b) { return divide<T>(a, b); })>);
  add("rem", type, binary<T, T, T, decltype([](T a, T b) { return remainder<T>(a, b); })>);
  add("min", type, binary<T, T, T, decltype([](T a, T b) { return a < b ? a : b; })>);
  add("max", type, binary<T, T, T, decltype([](T a, T b) { return a > b ? a : b; })>);
  add("shr", type, binary<T, T, uint32_t, decltype([](T a, uint32_t b) { return shiftRight<T>(a, b); })>);
  add("neg", type, unary<U, U, decltype([](U a) { return static_cast<U>(0 - a); })>);
  add("abs", type, unary<T, T, decltype([](T a) { return static_cast<T>(a < 0 ? static_cast<T>(U(0) - U(a)) : a); })>);
  add("sad", type, ternary<U, T, T, U, decltype([](T a, T b, U c) {
                             return static_cast<U>(c + (a < b ? U(b) - U(a) : U(a) - U(b)));
                           })>);
  add("setp.eq", type, compare<T, decltype([](T a, T b) { return a == b; })>);
  add("setp.ne", type, compare<T, decltype([](T a, T b) { return a != b; })>);
  add("setp.lt", type, compare<T, decltype([](T a, T b) { return a < b; })>);
  add("setp.le", type, compare<T, decltype([](T a, T b) { return a <= b; })>);
  add("setp.gt", type, compare<T, decltype([](T a, T b) { return a > b; })>);
  add("setp.ge", type, compare<T, decltype([](T a, T b) { return a >= b; })>);
  if constexpr (sizeof(T) >= 4) {
    add("bfind", type, unary<uint32_t, T, decltype([](T a) { return leadingBit<T>(a, false); })>);
    add("bfind.shiftamt", type, unary<uint32_t, T, decltype([](T a) { return leadingBit<T>(a, true); })>);
    add("bfe", type, ternary<T, T, uint32_t, uint32_t, decltype([](T a, uint32_t b, uint32_t c) {
                               return extractField<T>(a, b, c);
                             })>);
  }
  (void)unsignedType;
}

template <class T, class W> void addWide(const Table &add, const char *type) {
  add("mul.wide", type, binary<W, T, T, decltype([](T a, T b) { return static_cast<W>(W(a) * W(b)); })>);
  using U = std::make_unsigned_t<W>;
  add("mad.wide", type,
      ternary<U, T, T, U, decltype([](T a, T b, U c) { return static_cast<U>(static_cast<U>(W(a) * W(b)) + c); })>);
}

template <class T> void addBits(const Table &add, const char *type) {
  add("and", type, binary<T, T, T, decltype([](T a, T b) { return static_cast<T>(a & b); })>);
  add("or", type, binary<T, T, T, decltype([](T a, T b) { return static_cast<T>(a | b); })>);
  add("xor", type, binary<T, T, T, decltype([](T a, T b) { return static_cast<T>(a ^ b); })>);
  add("not", type, unary<T, T, decltype([](T a) { return static_cast<T>(~a); })>);
  add("cnot", type, unary<T, T, decltype([](T a) { return static_cast<T>(a == 0); })>);
  add("shl", type, binary<T, T, uint32_t, decltype([](T a, uint32_t b) { return shiftLeft<T>(a, b); })>);
  add("selp", type, selectHandler<T>);
  add("slct", type, ternary<T, T, T, int32_t, decltype([](T a, T b, int32_t c) { return c >= 0 ? a : b; })>);
  add("slct.f", type, ternary<T, T, T, float, decltype([](T a, T b, float c) { return c >= 0 ? a : b; })>);
  add("mov", type, copyHandler<T>);
  if constexpr (sizeof(T) >= 4) {
    add("popc", type, unary<uint32_t, T, decltype([](T a) { return static_cast<uint32_t>(std::popcount(a)); })>);
    add("clz", type, unary<uint32_t, T, decltype([](T a) { return static_cast<uint32_t>(std::countl_zero(a)); })>);
    add("brev", type, unary<T, T, decltype([](T a) { return reverseBits<T>(a); })>);
    add("bfi", type, quaternary<T, T, T, uint32_t, uint32_t, decltype([](T a, T b, uint32_t c, uint32_t d) {
                                  return insertField<T>(a, b, c, d);
                                })>);
  }
}

template <class F> void predicates(Warp &warp, const Instr &instr) {
  setPredicate(warp, instr.op[0], F{}(warp.predicate(instr.op[1]), warp.predicate(instr.op[2])));
}
inline void notPredicate(Warp &warp, const Instr &instr) {
  setPredicate(warp, instr.op[0], ~warp.predicate(instr.op[1]));
}
inline void movePredicate(Warp &warp, const Instr &instr) {
  setPredicate(warp, instr.op[0], warp.predicate(instr.op[1]));
}

inline void logic3(Warp &warp, const Instr &instr) {
  const auto *a = warp.source<uint32_t>(instr.op[1]), *b = warp.source<uint32_t>(instr.op[2]),
             *c = warp.source<uint32_t>(instr.op[3]);
  const auto table = static_cast<uint32_t>(instr.imm);
  uint32_t term[8];
  for (unsigned i = 0; i < 8; ++i)
    term[i] = table >> i & 1 ? ~0u : 0;
  perLane<uint32_t>(warp, instr.op[0], [=](unsigned l) {
    const uint32_t x = a[l], y = b[l], z = c[l];
    return (~x & ~y & ~z & term[0]) | (~x & ~y & z & term[1]) | (~x & y & ~z & term[2]) | (~x & y & z & term[3]) |
           (x & ~y & ~z & term[4]) | (x & ~y & z & term[5]) | (x & y & ~z & term[6]) | (x & y & z & term[7]);
  });
}

inline void permuteHandler(Warp &warp, const Instr &instr) {
  const auto *a = warp.source<uint32_t>(instr.op[1]), *b = warp.source<uint32_t>(instr.op[2]),
             *c = warp.source<uint32_t>(instr.op[3]);
  const unsigned mode = instr.sub;
  if (mode == 0)
    perLane<uint32_t>(warp, instr.op[0], [=](unsigned l) { return permute(a[l], b[l], c[l]); });
  else
    perLane<uint32_t>(warp, instr.op[0], [=](unsigned l) { return permuteMode(mode, a[l], b[l], c[l]); });
}

// Sums with a carry: sub: bit 0: takes it, bit 1: leaves one, bit 2: subtracts.
template <class T> void carrySum(Warp &warp, const Instr &instr) {
  const T *a = warp.source<T>(instr.op[1]), *b = warp.source<T>(instr.op[2]);
  const bool isDifference = instr.sub & 4, leaves = instr.sub & 2;
  const uint32_t in = instr.sub & 1 ? warp.carry : 0;
  uint32_t out = 0;
  T result[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) {
    const unsigned __int128 carry = in >> l & 1;
    const unsigned __int128 sum = isDifference ? static_cast<unsigned __int128>(a[l]) - b[l] - carry
                                               : static_cast<unsigned __int128>(a[l]) + b[l] + carry;
    result[l] = static_cast<T>(sum);
    out |= static_cast<uint32_t>(sum >> (8 * sizeof(T)) & 1) << l;
  }
  perLane<T>(warp, instr.op[0], [&result](unsigned l) { return result[l]; });
  if (leaves)
    warp.carry = (warp.carry & ~warp.active) | (out & warp.active);
}

inline void pack16(Warp &warp, const Instr &instr) {
  const auto *a = warp.source<uint16_t>(instr.op[1]), *b = warp.source<uint16_t>(instr.op[2]);
  perLane<uint32_t>(warp, instr.op[0], [=](unsigned l) { return a[l] | uint32_t(b[l]) << 16; });
}

inline int32_t dotBytes(uint32_t a, uint32_t b, bool isSignedA, bool isSignedB, int32_t c) {
  auto sum = static_cast<uint32_t>(c);
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t x = a >> (8 * i) & 255, y = b >> (8 * i) & 255;
    sum += static_cast<uint32_t>((isSignedA ? static_cast<int8_t>(x) : static_cast<int32_t>(x)) *
                                 (isSignedB ? static_cast<int8_t>(y) : static_cast<int32_t>(y)));
  }
  return static_cast<int32_t>(sum);
}
inline void dotHandler(Warp &warp, const Instr &instr) {
  const auto *a = warp.source<uint32_t>(instr.op[1]), *b = warp.source<uint32_t>(instr.op[2]);
  const auto *c = warp.source<int32_t>(instr.op[3]);
  const unsigned sub = instr.sub;
  perLane<int32_t>(warp, instr.op[0], [=](unsigned l) { return dotBytes(a[l], b[l], sub & 1, sub & 2, c[l]); });
}

inline void addIntegerHandlers(const Table &add) {
  addIntegers<uint16_t, uint16_t>(add, "u16", "u16");
  addIntegers<int16_t, uint16_t>(add, "s16", "u16");
  addIntegers<uint32_t, uint32_t>(add, "u32", "u32");
  addIntegers<int32_t, uint32_t>(add, "s32", "u32");
  addIntegers<uint64_t, uint64_t>(add, "u64", "u64");
  addIntegers<int64_t, uint64_t>(add, "s64", "u64");
  addWide<uint16_t, uint32_t>(add, "u16");
  addWide<int16_t, int32_t>(add, "s16");
  addWide<uint32_t, uint64_t>(add, "u32");
  addWide<int32_t, int64_t>(add, "s32");
  addBits<uint16_t>(add, "b16");
  addBits<uint32_t>(add, "b32");
  addBits<uint64_t>(add, "b64");
  add("and", "pred", predicates<decltype([](uint32_t a, uint32_t b) { return a & b; })>);
  add("or", "pred", predicates<decltype([](uint32_t a, uint32_t b) { return a | b; })>);
  add("xor", "pred", predicates<decltype([](uint32_t a, uint32_t b) { return a ^ b; })>);
  add("not", "pred", notPredicate);
  add("mov", "pred", movePredicate);
  add("lop3", "b32", logic3);
  add("prmt", "b32", permuteHandler);
  add("carry", "b32", carrySum<uint32_t>);
  add("carry", "b64", carrySum<uint64_t>);
  add("pack", "b16", pack16);
  add("pack", "b32",
      binary<uint64_t, uint32_t, uint32_t, decltype([](uint32_t a, uint32_t b) { return a | uint64_t(b) << 32; })>);
  add("low", "b32", unary<uint16_t, uint32_t, decltype([](uint32_t a) { return static_cast<uint16_t>(a); })>);
  add("high", "b32", unary<uint16_t, uint32_t, decltype([](uint32_t a) { return static_cast<uint16_t>(a >> 16); })>);
  add("low", "b64", unary<uint32_t, uint64_t, decltype([](uint64_t a) { return static_cast<uint32_t>(a); })>);
  add("high", "b64", unary<uint32_t, uint64_t, decltype([](uint64_t a) { return static_cast<uint32_t>(a >> 32); })>);
  using U = uint32_t;
  add("shf.l.wrap", "b32", ternary<U, U, U, U, decltype([](U a, U b, U c) {
                                     return static_cast<U>((a | uint64_t(b) << 32) << (c & 31) >> 32);
                                   })>);
  add("shf.r.wrap", "b32",
      ternary<U, U, U, U, decltype([](U a, U b, U c) { return static_cast<U>((a | uint64_t(b) << 32) >> (c & 31)); })>);
  add("shf.l.clamp", "b32", ternary<U, U, U, U, decltype([](U a, U b, U c) {
                                      return c >= 32 ? a : static_cast<U>((a | uint64_t(b) << 32) << c >> 32);
                                    })>);
  add("shf.r.clamp", "b32", ternary<U, U, U, U, decltype([](U a, U b, U c) {
                                      return c >= 32 ? b : static_cast<U>((a | uint64_t(b) << 32) >> c);
                                    })>);
  add("dp4a", "b32", dotHandler);
}

} // namespace tressel::standin::ptx::PTX_EXECUTE
