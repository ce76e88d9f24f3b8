// Tensor maps: what cuTensorMapEncodeTiled asks of its arguments ("CUDA Driver API", Tensor Map Object Management), and
// what the interpreter reads.
#include "Entries.h"

#include "../ptx/TensorMap.h"

#include <cstring>

namespace tressel::standin {
namespace {

constexpr unsigned kMostDimensions = 5;
constexpr uint64_t kMostElements = uint64_t(1) << 32, kStrideEnd = uint64_t(1) << 40;

/// Bytes of an element; 0 for packed types, which are not interpreted.
unsigned bytesOf(int type) { // CUtensorMapDataType
  constexpr uint8_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return type >= 0 && type < static_cast<int>(std::size(kBytes)) ? kBytes[type] : 0;
}

Result cuTensorMapEncodeTiled(void *result, int type, unsigned rank, void *address, const uint64_t *sizes,
                              const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                              int swizzle, int promotion, int fill) {
  return call("cuTensorMapEncodeTiled", Needs::Context, [&](World &world) -> Result {
    ptx::TensorMap map;
    map.elementBytes = static_cast<uint8_t>(bytesOf(type));
    map.address = reinterpret_cast<uint64_t>(address);
    if (world.architecture < 90 || reinterpret_cast<uintptr_t>(result) % 64 || rank < 1 || rank > kMostDimensions ||
        map.address % 16)
      return kInvalidValue;
    if (promotion < 0 || promotion > 3 || fill < 0 || fill > 1 || interleave < 0 || interleave > 2 || swizzle < 0 ||
        swizzle > 6)
      return kInvalidValue;
    if (!map.elementBytes || interleave || swizzle > 3 || fill)
      return kNotSupported; // by the stand-in
    map.rank = static_cast<uint8_t>(rank);
    for (unsigned d = 0; d < rank; ++d) {
      if (sizes[d] == 0 || sizes[d] > kMostElements || box[d] == 0 || box[d] > 256 ||
          (d && (steps[d] == 0 || steps[d] > 8)))
        return kInvalidValue;
      map.sizes[d] = sizes[d];
      map.box[d] = static_cast<uint16_t>(box[d]);
      map.steps[d] = static_cast<uint8_t>(d ? steps[d] : 1); // the first is not looked at
      if (d + 1 < rank) {
        if (strides[d] % 16 || strides[d] >= kStrideEnd)
          return kInvalidValue;
        map.strides[d] = strides[d];
      }
      if (map.steps[d] != 1)
        return kNotSupported;
    }
    constexpr unsigned kSpans[] = {0, 32, 64, 128};
    const unsigned inner = box[0] * map.elementBytes;
    if (inner % 16 || (swizzle && inner > kSpans[swizzle]))
      return kInvalidValue;
    map.swizzle = static_cast<ptx::TensorMap::Swizzle>(swizzle);
    if (world.plant == "map-stride" && rank > 1)
      map.strides[0] += 16;
    if (world.plant == "map-swizzle")
      map.swizzle = ptx::TensorMap::Swizzle::None;
    std::memset(result, 0, 128);
    std::memcpy(result, &map, sizeof map);
    return kSuccess;
  });
}

const Entry kEntries[] = {{"cuTensorMapEncodeTiled", reinterpret_cast<void *>(&cuTensorMapEncodeTiled)}};

} // namespace

std::span<const Entry> tensorEntries() { return kEntries; }

} // namespace tressel::standin
