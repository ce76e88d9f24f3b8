// What the writer and the reader of packages share: the file's header and the checksum.
//
// File: Header, then the FlatBuffers metadata (Package.fbs), then sections of bytes that the metadata names. Metadata
// and sections begin at multiples of 64; the bytes between them are zero.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tressel::runtime {

inline constexpr char kPackageMagic[8] = {'T', 'R', 'E', 'S', 'S', 'E', 'L', '\n'};

struct PackageHeader {
  char magic[8];
  uint32_t version;
  uint32_t headerBytes;
  uint64_t fileBytes;
  uint64_t metadataBytes; ///< they begin after the header
  uint64_t metadataChecksum;
  uint64_t reserved[2];
  uint64_t headerChecksum; ///< of all fields before it
};
static_assert(sizeof(PackageHeader) == 64);

/// Where a number is a size, this and what follows stand for the expressions of the schedule's table.
inline constexpr int64_t kFirstExpression = INT64_MIN + 1;

/// Whether callers see the same function: inputs, outputs, symbols, and states that they bind.
bool sameSignature(const Schedule &a, const Schedule &b);

constexpr uint64_t kPackageAlignment = 64;
constexpr uint64_t alignUp(uint64_t bytes) { return (bytes + kPackageAlignment - 1) & ~(kPackageAlignment - 1); }

/// Against damage, not against intent. Four independent lanes keep up with memory; every step is invertible in the word
/// it takes in, so that a change within one word is always noticed.
struct ChecksumLanes {
  static constexpr size_t kBlock = 32;
  uint64_t lanes[4] = {1, 2, 3, 4};

  static uint64_t mix(uint64_t lane, uint64_t word) {
    constexpr uint64_t odd = 0x9e3779b97f4a7c15u;
    return std::rotl((lane ^ word) * odd, 29);
  }
  void addBlock(const std::byte *bytes) {
    constexpr size_t ahead = 4096; // further than the processor does by itself: a third less time, where memory is far
    __builtin_prefetch(bytes + ahead);
    uint64_t words[4];
    std::memcpy(words, bytes, kBlock);
    for (int i = 0; i < 4; ++i)
      lanes[i] = mix(lanes[i], words[i]);
  }
  /// `rest` is less than a block: what is behind the last whole one of `all` bytes.
  uint64_t finish(std::span<const std::byte> rest, uint64_t all) {
    for (size_t at = 0, i = 0; at < rest.size(); at += 8, ++i) {
      uint64_t word = 0;
      std::memcpy(&word, rest.data() + at, rest.size() - at < 8 ? rest.size() - at : 8);
      lanes[i] = mix(lanes[i], word);
    }
    uint64_t sum = all;
    for (uint64_t lane : lanes) {
      sum = mix(sum, lane);
      sum ^= sum >> 31;
    }
    return sum;
  }
};

inline uint64_t checksum(std::span<const std::byte> bytes) {
  ChecksumLanes lanes;
  size_t at = 0;
  for (; at + ChecksumLanes::kBlock <= bytes.size(); at += ChecksumLanes::kBlock)
    lanes.addBlock(bytes.data() + at);
  return lanes.finish(bytes.subspan(at), bytes.size());
}

} // namespace tressel::runtime
