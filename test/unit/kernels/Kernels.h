// Library kernels called as the executor calls them, at every level that this machine has.
#pragma once

#include "runtime/kernels/EmulatedTiles.h"
#include "runtime/kernels/Fields.h"
#include "runtime/kernels/Levels.h"
#include "tressel/runtime/Cpu.h"
#include "tressel/runtime/Half.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace tressel::kernels::test {

/// The CPU's tile registers; null if it has none, or the system does not lend them.
inline const SplitKernels *realTiles() {
  return kernelLevel().split == &tressel_emulated_tiles ? nullptr : kernelLevel().split;
}
inline std::vector<Level> levels() {
  std::vector<Level> all;
  for (int level = 0; level <= static_cast<int>(runtime::hostCpuLevel()); ++level)
    all.emplace_back(static_cast<runtime::CpuLevel>(level));
  return all;
}
/// With tiles as well: emulated ones wherever AVX-512 is there beside them, and the CPU's own.
inline std::vector<Level> levelsAndTiles() {
  std::vector<Level> all = levels();
  if (all.back().cpu == runtime::CpuLevel::V4)
    all.emplace_back(runtime::CpuLevel::V4, &tressel_emulated_tiles);
  if (realTiles())
    all.emplace_back(runtime::CpuLevel::V4, realTiles());
  return all;
}
inline std::string nameOf(const Level &level) {
  return std::string(runtime::nameOf(level.cpu)) +
         (!level.split ? "" : level.split == &tressel_emulated_tiles ? "_emulated_tiles" : "_tiles");
}
inline void PrintTo(const Level &level, std::ostream *os) { *os << nameOf(level); }

/// Values that products keep exact for a while: sums of them show a wrong term, not a rounding.
inline std::vector<float> randomValues(Size n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<float> v(static_cast<size_t>(n));
  for (float &x : v)
    x = static_cast<float>(static_cast<int>(rng() % 33) - 16) / 16;
  return v;
}

inline uint16_t narrowed(float x, Element element) {
  return element == Element::F16 ? halfFromFloat(x) : bfloatFromFloat(x);
}
inline float widened(uint16_t x, Element element) {
  return element == Element::F16 ? halfToFloat(x) : bfloatToFloat(x);
}
/// How far rounding to the type moves a number, of itself.
inline double epsilonOf(Element element) {
  return element == Element::F16 ? 0x1p-11 : element == Element::BF16 ? 0x1p-8 : 0;
}

/// Values as they are stored, and what those are.
struct Stored {
  std::vector<float> values;
  std::vector<uint16_t> halves;
  Stored(std::vector<float> v, Element element) : values(std::move(v)) {
    for (float &x : values)
      if (element != Element::F32)
        halves.push_back(narrowed(x, element)), x = widened(halves.back(), element);
  }
  void *get() { return halves.empty() ? static_cast<void *>(values.data()) : halves.data(); }
};

/// Memory of exactly these bytes, aligned as the executor's: one byte more is an error under ASan.
class Memory {
public:
  explicit Memory(Size bytes)
      : bytes_(static_cast<size_t>(bytes)),
        data_(static_cast<std::byte *>(::operator new(bytes_, std::align_val_t(64)))) {
    std::fill(data_, data_ + bytes_, std::byte(0xff)); // NaN, to f32
  }
  ~Memory() { ::operator delete(data_, std::align_val_t(64)); }
  Memory(const Memory &) = delete;
  void *get() const { return data_; }
  float *floats() const { return reinterpret_cast<float *>(data_); }
  float at(int64_t i, Element element) const {
    return element == Element::F32 ? floats()[i] : widened(reinterpret_cast<uint16_t *>(data_)[i], element);
  }

private:
  size_t bytes_;
  std::byte *data_;
};

/// Runs all units in chunks of `chunk`, the last first.
inline void run(const runtime::LoadedKernel &kernel, std::vector<void *> buffers, Size units, int64_t chunk,
                Size scratchBytes, const std::vector<int64_t> &scalars = {}) {
  Memory scratch(scratchBytes);
  runtime::KernelArgs args{buffers.data(), scalars.data(), scratch.get(), 0, kernel.state, 0, nullptr};
  const int64_t end = units.number();
  for (int64_t begin = (end - 1) / chunk * chunk; begin >= 0; begin -= chunk)
    ASSERT_EQ(kernel.fn(&args, begin, std::min(begin + chunk, end)), runtime::kKernelOk);
}

} // namespace tressel::kernels::test
