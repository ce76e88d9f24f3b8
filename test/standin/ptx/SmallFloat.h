// Floating-point numbers of 16 bits, by their bits.
#pragma once

#include "test/standin/ptx/Lanes.h"

namespace tressel::standin::ptx::PTX_EXECUTE {

/// Of Fraction bits and the exponents that remain. Rounds once, in the direction given (kNearest...).
template <unsigned Fraction> inline uint16_t roundToSmall(double a, unsigned rounding) {
  constexpr int kExponentBits = 15 - static_cast<int>(Fraction), kLeast = 2 - (1 << (kExponentBits - 1));
  constexpr uint32_t kInfinity = ((1u << kExponentBits) - 1) << Fraction;
  const auto bits = std::bit_cast<uint64_t>(a);
  const bool isNegative = bits >> 63;
  const uint32_t sign = isNegative ? 0x8000 : 0;
  const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
  uint64_t significand = bits & 0xfffffffffffff;
  if (exponent == 0x7ff)
    return static_cast<uint16_t>(significand ? 0x7fff : sign | kInfinity);
  if (exponent)
    significand |= uint64_t(1) << 52;
  const int scale = (exponent ? exponent : 1) - 1023; // significand * 2^(scale - 52)
  const int quantum = (scale > kLeast ? scale : kLeast) - static_cast<int>(Fraction);
  const int shift = quantum - scale + 52;
  uint64_t n = shift > 63 ? 0 : significand >> shift;
  // What is cut off, compared with a half of the last place: 0 none, 1 less, 2 just that, 3 more.
  unsigned rest = significand != 0;
  if (shift <= 63) {
    const uint64_t cut = significand & ((uint64_t(1) << shift) - 1), half = uint64_t(1) << (shift - 1);
    rest = !cut ? 0 : cut < half ? 1 : cut == half ? 2 : 3;
  }
  const bool isUp = rounding == kNearest ? rest == 3 || (rest == 2 && n & 1)
                    : rounding == kDown  ? isNegative && rest
                    : rounding == kUp    ? !isNegative && rest
                                         : false;
  n += isUp;
  uint64_t result = n;
  if (scale >= kLeast)
    result += static_cast<uint64_t>(scale - kLeast) << Fraction; // the leading bit of n is one more exponent
  if (result >= kInfinity) {
    const bool toInfinity =
        rounding == kNearest || (rounding == kDown && isNegative) || (rounding == kUp && !isNegative);
    result = toInfinity ? kInfinity : kInfinity - 1;
  }
  return static_cast<uint16_t>(sign | result);
}

struct Half {
  static constexpr const char *kName = "f16", *kNameOfTwo = "f16x2";
  static constexpr uint16_t kExponent = 0x7c00;
  static uint16_t fromDouble(double a, unsigned rounding) { return roundToSmall<10>(a, rounding); }
  /// Without branches, so that the compiler can do many at once.
  static float toFloat(uint16_t a) {
    const uint32_t sign = uint32_t(a & 0x8000) << 16, magnitude = a & 0x7fff;
    // As a float with the exponent too small by 112; exact, also for what is subnormal here.
    const uint32_t shifted = magnitude << 13;
    const float normal = std::bit_cast<float>(shifted + (112u << 23));
    const float subnormal = std::bit_cast<float>((113u << 23) | shifted) - std::bit_cast<float>(113u << 23);
    const uint32_t small = std::bit_cast<uint32_t>(subnormal), large = std::bit_cast<uint32_t>(normal);
    const uint32_t finite = magnitude < 0x400 ? small : large;
    const uint32_t number = magnitude == 0x7c00 ? 0x7f800000 : finite;
    return std::bit_cast<float>(magnitude > 0x7c00 ? 0x7fffffffu : number | sign);
  }
  static double toDouble(uint16_t a) { return toFloat(a); }
};

struct Bfloat {
  static constexpr const char *kName = "bf16", *kNameOfTwo = "bf16x2";
  static constexpr uint16_t kExponent = 0x7f80;
  static uint16_t fromDouble(double a, unsigned rounding) { return roundToSmall<7>(a, rounding); }
  static float toFloat(uint16_t a) {
    const uint32_t bits = uint32_t(a) << 16;
    return std::bit_cast<float>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fffffffu : bits);
  }
  static double toDouble(uint16_t a) { return toFloat(a); }
  static uint16_t fromFloat(float a) {
    const auto bits = std::bit_cast<uint32_t>(a);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fffu : rounded);
  }
};

} // namespace tressel::standin::ptx::PTX_EXECUTE
