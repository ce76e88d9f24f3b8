// Who touched which bytes of a piece of memory since the last barrier: finds accesses that nothing orders.
//
// Two accesses are ordered by a barrier of the block between them, or, within a warp, by bar.warp.sync; those of
// different blocks of a cluster by a barrier of the cluster. Other instructions of a warp order nothing: the PTX ISA
// gives shfl, vote and mma no effect on memory.
#pragma once

#include "codegen/cuda/target/Arch.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tressel::codegen::cuda::emulate {

/// What orders accesses within a warp. Time is a counter of the warp; an access is stamped with it.
class WarpClock {
public:
  void reset() { now_ = all_ = 0, partial_ = false; }
  uint32_t now() const { return now_; }
  /// Lanes of the mask meet.
  void meet(uint32_t mask);
  /// Whether lane `me` has met, directly or through others, what lane `other` did at `stamp`.
  bool knows(uint32_t me, uint32_t other, uint32_t stamp) const {
    return stamp < all_ || (partial_ && stamp < known_[me][other]);
  }

  bool allKnow(uint32_t stamp) const { return stamp < all_; }

private:
  uint32_t now_ = 0, all_ = 0; ///< all lanes met last at all_
  bool partial_ = false;
  std::array<std::array<uint32_t, 32>, 32> known_{};
};

enum class AccessKind : uint8_t { Read, Write, Atomic };

class Shadow {
public:
  /// `granule`: all accesses are multiples of it.
  void cover(uint64_t bytes, uint32_t granule);
  uint64_t bytes() const { return bytes_; }
  uint32_t granule() const { return granule_; }
  /// Bytes that belong to nothing.
  void forbid(uint64_t begin, uint64_t end);

  struct Access {
    AccessKind kind = AccessKind::Read;
    uint64_t offset = 0, bytes = 0; ///< multiples of the granule, within the piece
    uint32_t thread = 0;            ///< of its cluster: see numberOf
    uint32_t epoch = 0;             ///< barriers the block has passed, counted through all blocks
    uint32_t clusterEpoch = 0;      ///< when its cluster last met
    uint32_t blockEpoch = 0;        ///< when the block began
    uint32_t launchEpoch = 0;       ///< when the launch began
    bool mustBeWritten = false;     ///< memory that is fresh in every block
    bool blocksAreOrdered = false;  ///< accesses of different blocks are never in conflict
    bool isFar = false;             ///< of a block other than the one that the memory is of
  };
  static uint32_t numberOf(uint32_t rank, uint32_t thread) { return rank * kMaxBlockThreads + thread; }
  /// What is wrong with the access, with the other thread and the byte; empty if nothing is.
  std::string check(const Access &access, const WarpClock &clock);
  /// The bytes are on their way: nobody may touch them until they are written.
  void setInFlight(uint64_t offset, uint64_t bytes, bool inFlight);

private:
  struct Cell {
    uint32_t writeEpoch = 0, writeStamp = 0;
    uint32_t readEpoch = 0, readStamp = 0, readMask = 0;
    uint32_t firstRead = 0; ///< epoch of the first one in the launch
    uint32_t farReadEpoch = 0;
    uint16_t writer = 0, readWarp = 0, farReader = 0;
    bool atomic = false;      ///< the last write was one
    bool manyAtomics = false; ///< of several warps, in one epoch
    bool manyWarps = false;   ///< have read in the epoch
    bool forbidden = false, inFlight = false;
  };
  std::string conflict(const Cell &cell, const Access &access, const WarpClock &clock) const;
  void record(Cell &cell, const Access &access, const WarpClock &clock) const;

  uint64_t bytes_ = 0;
  uint32_t granule_ = 1, shift_ = 0;
  std::vector<Cell> cells_;
};

} // namespace tressel::codegen::cuda::emulate
