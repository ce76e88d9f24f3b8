// What a tensor map of the stand-in holds: the 128 bytes that cuTensorMapEncodeTiled writes and cp.async.bulk.tensor
// reads. On a card their layout is not documented; here it is this.
#pragma once

#include <cstdint>

namespace tressel::standin::ptx {

struct TensorMap {
  static constexpr uint64_t kMagic = 0x70616d726f736e74;
  enum class Swizzle : uint8_t { None, Span32, Span64, Span128 }; ///< as CUtensorMapSwizzle counts
  uint64_t magic = kMagic;
  uint64_t address = 0;
  uint64_t strides[4] = {}; ///< bytes, of all dimensions but the first
  uint64_t sizes[5] = {};   ///< elements
  uint16_t box[5] = {};
  uint8_t steps[5] = {}; ///< elements from one that is taken to the next
  uint8_t rank = 0;
  uint8_t elementBytes = 0;
  Swizzle swizzle = Swizzle::None;
};
static_assert(sizeof(TensorMap) <= 128);

/// The bits of an address in shared memory that a swizzle changes: chunks of 16 bytes change places within spans of 32,
/// 64 or 128, by the number of the 128 bytes that they are in.
inline uint64_t swizzled(uint64_t address, TensorMap::Swizzle swizzle) {
  const uint64_t chunks = swizzle == TensorMap::Swizzle::Span128  ? 7
                          : swizzle == TensorMap::Swizzle::Span64 ? 3
                          : swizzle == TensorMap::Swizzle::Span32 ? 1
                                                                  : 0;
  return address ^ ((address >> 7 & chunks) << 4);
}

} // namespace tressel::standin::ptx
