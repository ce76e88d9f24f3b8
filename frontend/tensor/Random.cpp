#include "frontend/tensor/Random.h"
#include "frontend/tensor/Convert.h"
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Make.h"
#include "tressel/runtime/ThreadPool.h"

#include <tressel/random.h>

#include <array>
#include <cmath>
#include <numbers>

namespace tressel::detail {

/// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53) * c[0], p1 = uint64_t(0xCD9E8D57) * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

uint64_t mixSeed(uint64_t seed, std::string_view name) {
  uint64_t h = seed ^ 0xCBF29CE484222325u;
  for (char c : name)
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  h = (h ^ h >> 31) *
      0x9E3779B97F4A7C15u; // FNV-1a, then mixed once more: names that differ little give keys that differ much
  return h ^ h >> 29;
}

std::atomic<uint64_t> &nextProcessSeed() {
  static std::atomic<uint64_t> next{0};
  return next;
}

/// Four numbers per counter: fill(bits, out) turns 4 words into up to 4 values.
template <typename Fill>
static Tensor randomTensor(const Shape &shape, std::optional<uint64_t> seed, DType dtype,
                           const std::source_location &where, const char *name, Fill fill) {
  if (tracing())
    fail<TraceError>("random numbers made while a function is recorded would be the same at each call", toLoc(where),
                     name,
                     "make them outside and pass them, or use random_uniform(seed, shape) with a seed that changes");
  checkCount(static_cast<size_t>(shape.numElements()), shape, where);
  if (!isFloat(dtype))
    fail<ShapeError>("random numbers are floats, not " + std::string(nameOf(dtype)), toLoc(where), name);
  const uint64_t key = seed ? *seed : mixSeed(nextProcessSeed()++, "process");
  Tensor t = allocateTensor({DType::f32, shape}, toLoc(where));
  auto *out = static_cast<float *>(t.impl()->storage->data());
  const int64_t n = t.size();
  runtime::ThreadPool::global().parallelFor((n + 3) / 4, 4096, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      std::array<float, 4> values = fill(philox(key, static_cast<uint64_t>(i)));
      for (int64_t j = 0; j < 4 && i * 4 + j < n; ++j)
        out[i * 4 + j] = values[static_cast<size_t>(j)];
    }
  });
  if (dtype == DType::f32)
    return t;
  Tensor converted = allocateTensor({dtype, shape}, toLoc(where));
  convertElements(converted.impl()->storage->data(), dtype, out, DType::f32, n);
  return converted;
}

/// In [0, 1), a multiple of 2^-24.
static float toUnit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

} // namespace tressel::detail

namespace tressel::rng {

Tensor normal(const Shape &shape, std::optional<uint64_t> seed, double mean, double deviation, DType dtype,
              std::source_location where) {
  const auto m = static_cast<float>(mean), d = static_cast<float>(deviation);
  return detail::randomTensor(shape, seed, dtype, where, "rng::normal", [=](const std::array<uint32_t, 4> &bits) {
    std::array<float, 4> values;
    for (size_t i = 0; i < 4; i += 2) { // Box-Muller; 1 - u is in (0, 1], so the logarithm is finite
      const float radius = d * std::sqrt(-2 * std::log(1 - detail::toUnit(bits[i])));
      const float angle = 2 * std::numbers::pi_v<float> * detail::toUnit(bits[i + 1]);
      values[i] = m + radius * std::cos(angle);
      values[i + 1] = m + radius * std::sin(angle);
    }
    return values;
  });
}

Tensor uniform(const Shape &shape, std::optional<uint64_t> seed, double low, double high, DType dtype,
               std::source_location where) {
  const auto from = static_cast<float>(low), width = static_cast<float>(high - low);
  return detail::randomTensor(shape, seed, dtype, where, "rng::uniform", [=](const std::array<uint32_t, 4> &bits) {
    std::array<float, 4> values;
    for (size_t i = 0; i < 4; ++i)
      values[i] = from + width * detail::toUnit(bits[i]);
    return values;
  });
}

} // namespace tressel::rng
