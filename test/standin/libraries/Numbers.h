// Values of f32, f16 and bf16 in memory, as the stand-ins for NVIDIA's libraries read and write them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tressel::standin {

enum class Number : uint8_t { Float, Half, Bfloat };

inline uint64_t bytesOf(Number type) { return type == Number::Float ? 4 : 2; }

inline float fromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = bits >> 15 ? -1.0f : 1.0f;
  if (exponent == 31)
    return fraction ? NAN : sign * INFINITY;
  return sign * std::ldexp(static_cast<float>(exponent ? 1024 + fraction : fraction), (exponent ? exponent : 1) - 25);
}
/// To the nearest, ties to even.
inline uint16_t toHalf(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return 0x7e00;
  const float size = std::fabs(value);
  if (size == 0)
    return sign;
  if (size >= 65520)
    return sign | 0x7c00;
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = std::max(exponent, -13); // below 2^-14 the steps stay as they are
  const auto whole = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 11 - exponent)));
  // A number with steps below 1024 is subnormal; 2048 steps carry into the exponent by themselves.
  return sign | static_cast<uint16_t>(whole + (static_cast<uint32_t>(exponent + 13) << 10));
}
inline float fromBfloat(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}
inline uint16_t toBfloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (std::isnan(value))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float load(const std::byte *at, Number type) {
  if (type == Number::Float) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return type == Number::Half ? fromHalf(bits) : fromBfloat(bits);
}
inline void store(std::byte *at, Number type, float value) {
  if (type == Number::Float) {
    std::memcpy(at, &value, 4);
    return;
  }
  const uint16_t bits = type == Number::Half ? toHalf(value) : toBfloat(value);
  std::memcpy(at, &bits, 2);
}

} // namespace tressel::standin
