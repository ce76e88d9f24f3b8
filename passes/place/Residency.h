// What is evicted from a device's memory, when it is prefetched, and what is rematerialized instead, for a step whose order is
// known. In numbers alone: FitMemory reads them from the IR, and writes what is decided here into it.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tressel::passes::residency {

inline constexpr uint32_t kNone = ~0u;

/// Work of one engine. Engines are numbers; each does its work in the order of the sequence.
struct Task {
  double seconds = 0;
  uint32_t engine = kNone;                      ///< kNone: no engine works
  llvm::SmallVector<uint32_t, 4> reads, writes; ///< values, each once
  int64_t scratch = 0;                          ///< bytes of its device that it takes besides while it runs
  unsigned device = 0;
  llvm::SmallVector<uint32_t, 2>
      overwrites;          ///< of what it reads: one of its results may take these bytes after their last use
  uint32_t overwriter = 0; ///< among `writes`: that result
  llvm::SmallVector<uint32_t, 1> segments; ///< parts of the program that it belongs to
  bool mayRematerialize = false; ///< gives the same result each time, and does nothing else
};

/// What tasks write and read.
struct Value {
  int64_t bytes = 0;
  unsigned device = 0;     ///< 0: the host
  bool isResident = false; ///< there ahead of the step and all the time
  bool isFixed = false;    ///< may not be evicted
  uint32_t droppedBy = kNone; ///< the part of the program after which it is evicted, whatever room there is
  /// The same on the host: a value, or kNone with `isOnHost` for what is there ahead of the step. Its own copy there,
  /// made by Spill, is no value.
  uint32_t onHost = kNone;
  bool isOnHost = false;
  /// The task that copies it in from there, which Prefetch then stands for; or the one that copies it out to there.
  uint32_t copiedBy = kNone, copiedOutBy = kNone;
  double outSeconds = 0, inSeconds = 0; ///< infinite where there is no other memory to copy it to
  uint32_t outEngine = kNone, inEngine = kNone;
};

struct Step {
  std::vector<Task> tasks;
  std::vector<Value> values;
  bool hostIsBounded = false; ///< what lies on the host counts as well
  bool isBounded(unsigned device) const { return device != 0 || hostIsBounded; }
};

struct Item {
  enum Kind : uint8_t { Run, Rematerialize, Prefetch, Spill } kind;
  uint32_t index; ///< of a task for Run and Rematerialize, of a value for Prefetch and Spill
  bool operator==(const Item &) const = default;
};
using Sequence = std::vector<Item>;

struct Rule {
  int64_t limit = 0; ///< bytes of the device for values that are not resident
  bool byCost =
      false; ///< eviction order: largest bytes and time saved per second of transfer; else furthest next use
  /// What is rematerialized instead of being copied: where that takes less than this share of the copies' time. 0:
  /// nothing.
  double rematerializeBelow = 0;
  bool isLate =
      false; ///< copies stand right where they are needed: less lies side by side, and they hide behind nothing
  double farther = 1; ///< with byCost: the power of the time until the next use, 0 for none of it
  int depth = 4;      ///< of what is rematerialized to rematerialize something else, as far as the costs look
};

/// The task for which there is not enough room though all else is evicted, and the bytes that it needs: for its own
/// values, and for those that cannot be evicted while it runs.
struct Misfit {
  uint32_t task = kNone;
  int64_t bytes = 0;
};

/// Makes room: where a sequence needs more than a device's memory, values are evicted (Belady, "A study of replacement
/// algorithms", 1966: the whole future is known), once on each stretch between two uses at most, so that nothing is
/// copied endlessly. What has no copy on the host is copied there, early enough to end before its bytes are needed;
/// what was evicted, or is on the host in the first place, is prefetched as early as helps and there is room.
std::optional<Misfit> fit(const Step &step, unsigned device, const Rule &rule, Sequence &sequence);

/// Bytes of the device at the place in the sequence where most are taken.
int64_t peakOf(const Step &step, unsigned device, llvm::ArrayRef<Item> sequence);

/// Seconds until all has ended, when each engine takes its work as it comes, and whoever needs bytes waits for them.
/// `limits` by device, 0 for no bound. Infinity where they never suffice.
double secondsOf(const Step &step, llvm::ArrayRef<Item> sequence, llvm::ArrayRef<int64_t> limits);

} // namespace tressel::passes::residency
