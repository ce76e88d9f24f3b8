// Conversions of the 16-bit floats, exact or rounded to nearest, ties to even. Written once, used by every layer that
// touches single elements; generated code has its own vector forms, which tests compare with these.
#pragma once

#include <bit>
#include <cstdint>

namespace tressel {
namespace detail {

/// Rounds to a 16-bit format of `E` exponent and `M` mantissa bits. Takes a double, which holds every float exactly, so
/// that neither source type is rounded twice.
template <int E, int M> constexpr uint16_t roundToSmallFloat(double value) {
  constexpr int bias = (1 << (E - 1)) - 1;
  constexpr uint16_t infinity = ((1 << E) - 1) << M;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 63) << 15;
  const int exponent = static_cast<int>(bits >> 52) & 0x7ff;
  uint64_t mantissa = bits & ((uint64_t(1) << 52) - 1);
  if (exponent == 0x7ff) {
    const uint16_t payload = static_cast<uint16_t>(mantissa >> (52 - M));
    return sign | infinity | (mantissa ? payload | uint16_t(1 << (M - 1)) : uint16_t(0));
  }
  const int biased = exponent - 1023 + bias;
  if (biased >= (1 << E) - 1)
    return sign | infinity;
  int shift = 52 - M;
  if (biased >= 1) {
    mantissa |= static_cast<uint64_t>(biased) << 52; // a carry of the rounding moves into the exponent, up to infinity
  } else {
    shift += 1 - biased;
    if (shift > 53)
      return sign; // below half of the smallest subnormal
    mantissa |= uint64_t(1) << 52;
  }
  const uint64_t half = uint64_t(1) << (shift - 1), rest = mantissa & ((half << 1) - 1);
  uint64_t quotient = mantissa >> shift;
  if (rest > half || (rest == half && (quotient & 1)))
    ++quotient;
  return sign | static_cast<uint16_t>(quotient);
}

} // namespace detail

constexpr uint16_t halfFromDouble(double value) { return detail::roundToSmallFloat<5, 10>(value); }
constexpr uint16_t halfFromFloat(float value) { return halfFromDouble(value); }
constexpr float halfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, exponent = (bits >> 10) & 31,
                 mantissa = bits & 1023;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f; // exact
  return sign ? -magnitude : magnitude;
}

constexpr uint16_t bfloatFromDouble(double value) { return detail::roundToSmallFloat<8, 7>(value); }
constexpr uint16_t bfloatFromFloat(float value) { return bfloatFromDouble(value); }
constexpr float bfloatToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

/// IEEE binary16 as a value: two bytes in memory, arithmetic in float.
struct Half {
  uint16_t bits = 0;
  constexpr Half() = default;
  constexpr explicit Half(double value) : bits(halfFromDouble(value)) {}
  constexpr operator float() const { return halfToFloat(bits); }
};
/// bfloat16, likewise.
struct BFloat16 {
  uint16_t bits = 0;
  constexpr BFloat16() = default;
  constexpr explicit BFloat16(double value) : bits(bfloatFromDouble(value)) {}
  constexpr operator float() const { return bfloatToFloat(bits); }
};

} // namespace tressel
