// Numbers that every arm and every reference makes alike, in whatever language it is written (values.py): inputs and
// weights are not exchanged, and results can be compared across processes.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace tressel::bench {

/// Element `i` of the array `seed`: evenly spread over [-0.5, 0.5).
inline float valueAt(uint32_t seed, uint64_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 0x9e3779b1u + seed * 0x85ebca77u;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  x *= 0x297a2d39u;
  x ^= x >> 15;
  return static_cast<float>(x >> 8) * 0x1p-24f - 0.5f;
}

/// The seed of an array that has a name: FNV-1a.
inline uint32_t seedOf(std::string_view name) {
  uint32_t hash = 0x811c9dc5u;
  for (const char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
  return hash;
}

/// Of uniform numbers of the variance 2 / inputs.
inline float weightScale(int64_t inputs) { return std::sqrt(24.0f / static_cast<float>(inputs)); }

/// A parameter of a network that is trained or compared, by its name.
inline std::vector<float> parameterValues(std::string_view name, std::span<const int64_t> shape) {
  const auto count = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const bool isVector = shape.size() == 1;
  // Inputs of one result: of [in, out], or of [out, in, window...].
  const float scale = isVector ? 0.2f : weightScale(shape.size() == 2 ? shape[0] : count / shape[0]);
  const float offset = isVector && (last == "scale" || last == "running_var") ? 1 : 0;
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = valueAt(seedOf(name), i) * scale + offset;
  return values;
}

} // namespace tressel::bench
