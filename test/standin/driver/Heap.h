// Memory as the cards see it: that of cards, at addresses which the host cannot touch, and the host's memory that was allocated pinned or registered.
//
// Memory that was not written is poison, and so is what was freed: 0xFF bytes are a NaN in every floating-point type and a large negative integer. An address that
// was freed is the first to be given out again, so what still uses it meets another tensor.
#pragma once

#include "../ptx/Ptx.h"
#include "History.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tressel::standin {

enum class MemoryType : uint8_t { Card, Pinned, Registered };

struct Allocation {
  uint64_t begin = 0, bytes = 0;
  MemoryType type = MemoryType::Card;
  int card = -1;            ///< -1: the host's
  std::byte *host = nullptr; ///< where its contents are in this process
  const void *pool = nullptr; ///< that it was allocated from in stream order
  std::shared_ptr<const std::string> freedBy; ///< a stream-ordered free that has run
  History history;
  ptx::Span span;
  std::vector<uint64_t> readBits, writeBits;
  uint64_t end() const { return begin + bytes; }
  std::string describe() const;
};

class Heap {
public:
  Heap();
  ~Heap();
  /// Null: the card has not that much left.
  Allocation *allocateOnCard(int card, uint64_t bytes);
  /// Null: no memory.
  Allocation *allocatePinned(uint64_t bytes);
  /// Null: a part of it is there already.
  Allocation *registerHost(void *memory, uint64_t bytes);
  /// `isUsed`: what still uses it finds poison, in memory that is not given back.
  void free(Allocation *allocation, bool isUsed = false);
  /// That has this byte; null: none, so it is pageable memory of the host, or nothing.
  Allocation *find(uint64_t address);
  bool isCardAddress(uint64_t address) const { return address - base_ < kReserved; }
  const std::map<uint64_t, std::unique_ptr<Allocation>> &all() const { return allocations_; }
  uint64_t used(int card) const;
  uint64_t capacity = uint64_t(8) << 30; ///< of each card
  /// False: what is allocated has the bytes that it happens to have.
  bool poisons = true;

private:
  static constexpr uint64_t kReserved = uint64_t(1) << 40, kAlign = 512;
  Allocation *add(std::unique_ptr<Allocation> allocation);
  uint64_t base_ = 0, next_ = 0;
  std::map<uint64_t, std::unique_ptr<Allocation>> allocations_;
  std::vector<std::byte *> kept_; ///< freed while they were used
  std::map<uint64_t, std::vector<uint64_t>> freed_; ///< addresses by their size in bytes, the latest last
};

/// The runs of set bits between two offsets, which are cleared.
std::vector<Bytes> takeRuns(std::vector<uint64_t> &bits, uint64_t from, uint64_t to);

} // namespace tressel::standin
