#include "Packaged.h"
#include "Values.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <unistd.h>

namespace tressel::bench {
namespace {

/// A multiple of 1/64, which 16 bits hold exactly.
float coarse(float value) { return std::floor(value * 64) / 64; }
uint16_t bf16Bits(float exact) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(exact) >> 16); }

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

} // namespace

Bytes touchedBytes(int64_t bytes) {
  const auto size = static_cast<size_t>(aligned(std::max<int64_t>(bytes, 1)));
  Bytes block(static_cast<char *>(std::aligned_alloc(64, size)), std::free);
  std::memset(block.get(), 1, size);
  return block;
}

void fillValues(void *data, const TensorType &type, uint32_t seed) {
  for (int64_t i = 0, n = type.shape.numElements(); i < n; ++i) {
    const float value = valueAt(seed, static_cast<uint64_t>(i));
    switch (type.dtype) {
    case f32:
      static_cast<float *>(data)[i] = value;
      break;
    case bf16:
      static_cast<uint16_t *>(data)[i] = bf16Bits(coarse(value));
      break;
    case f16:
      static_cast<_Float16 *>(data)[i] = static_cast<_Float16>(coarse(value));
      break;
    case i8:
      static_cast<int8_t *>(data)[i] = static_cast<int8_t>(std::floor(value * 256));
      break;
    default:
      throw std::invalid_argument("no values of " + type.str());
    }
  }
}

Outputs asFloats(const void *data, const TensorType &type) {
  Outputs out(static_cast<size_t>(type.shape.numElements()));
  for (size_t i = 0; i < out.size(); ++i)
    switch (type.dtype) {
    case f32:
      out[i] = static_cast<const float *>(data)[i];
      break;
    case bf16:
      out[i] = std::bit_cast<float>(uint32_t(static_cast<const uint16_t *>(data)[i]) << 16);
      break;
    case f16:
      out[i] = static_cast<float>(static_cast<const _Float16 *>(data)[i]);
      break;
    default:
      throw std::invalid_argument("no floats of " + type.str());
    }
  return out;
}

Packaged::Packaged(const std::function<void(const std::string &path)> &exportTo, std::vector<TensorType> inputs,
                   TensorType output)
    : outputType_(output), moved_(output.bytes()), inputs_(nullptr, std::free), outputs_(nullptr, std::free) {
  int64_t all = 0;
  for (const TensorType &type : inputs) {
    moved_ += type.bytes();
    all += aligned(type.bytes());
  }
  const int64_t half = moved_ / 2;
  inputs_ = touchedBytes(std::max(all, half));
  outputs_ = touchedBytes(std::max(output.bytes(), half));
  char *next = inputs_.get();
  for (size_t i = 0; i < inputs.size(); ++i) {
    fillValues(next, inputs[i], seedOf(nameOf(i)));
    pointers_.push_back(next);
    next += aligned(inputs[i].bytes());
  }
  output_ = outputs_.get();
  const std::string path = std::filesystem::temp_directory_path() / ("bench-" + std::to_string(getpid()) + ".tsl");
  exportTo(path);
  context_.emplace(runtime::Package::open(path).context());
  std::filesystem::remove(path); // it stays mapped
}

Arm packages(std::function<Packaged(size_t)> make, double seconds) {
  auto made = std::make_shared<std::map<size_t, Packaged>>();
  auto at = [=](size_t index) -> Packaged & {
    auto found = made->find(index);
    return found != made->end() ? found->second : made->emplace(index, make(index)).first->second;
  };
  return Arm([=](size_t index) { return secondsPerCall([&] { at(index).run(); }, seconds); },
             [=](size_t index) { return at(index).outputs(); });
}

} // namespace tressel::bench
