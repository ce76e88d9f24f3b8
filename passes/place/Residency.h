// Decides evictions, prefetches and rematerializations for a step whose order is known. Works on numbers alone:
// FitMemory reads them from the IR and writes the decisions back into it.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tressel::passes::residency {

inline constexpr uint32_t kNone = ~0u;

/// Work of one engine. Engines are numbers; each executes its tasks in the order of the sequence.
struct Task {
  double seconds = 0;
  uint32_t engine = kNone;                      ///< kNone: no engine works
  llvm::SmallVector<uint32_t, 4> reads, writes; ///< values, each once
  int64_t scratch = 0;                          ///< further bytes of its device that it takes while it runs
  unsigned device = 0;
  /// Values that it reads whose bytes the result `overwriter` may take after their last use.
  llvm::SmallVector<uint32_t, 2> overwrites;
  uint32_t overwriter = 0; ///< index into `writes` of the result that may take those bytes
  llvm::SmallVector<uint32_t, 1> segments; ///< segments of the program that it belongs to
  bool mayRematerialize = false;           ///< deterministic and without effects, so it may run again
};

/// What tasks write and read.
struct Value {
  int64_t bytes = 0;
  unsigned device = 0;     ///< 0: the host
  bool isResident = false; ///< in the device's memory ahead of the step and throughout it
  bool isFixed = false;    ///< may not be evicted
  uint32_t droppedBy = kNone; ///< the segment after which it is evicted even where there is room
  /// The value that is its copy on the host; kNone with `isOnHost` where the host has a copy ahead of the step. The
  /// copy that Spill makes is no value.
  uint32_t onHost = kNone;
  bool isOnHost = false;
  /// The task that copies it in from the host, in whose place Prefetch stands; the task that copies it out to the host.
  uint32_t copiedBy = kNone, copiedOutBy = kNone;
  double outSeconds = 0, inSeconds = 0; ///< infinite where there is no other memory to copy it to
  uint32_t outEngine = kNone, inEngine = kNone;
};

struct Step {
  std::vector<Task> tasks;
  std::vector<Value> values;
  bool hostIsBounded = false; ///< the host's memory is bounded too
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
  /// Eviction order: largest bytes and time saved per second of transfer; else furthest next use.
  bool byCost = false;
  /// Rematerialize a value where that takes less than this share of the time of copying it. 0: never rematerialize.
  double rematerializeBelow = 0;
  /// Copies stand right where they are needed: fewer bytes are live at once, but no copy overlaps with compute.
  bool isLate = false;
  double farther = 1;  ///< with byCost: the exponent of the time until the next use in the score; 0 ignores that time
  int depth = 4; ///< how deep the cost of rematerializing a value follows operands that must be rematerialized too
};

/// The task that does not fit even though everything else is evicted, and the bytes that it needs: for its own values,
/// and for those that cannot be evicted while it runs.
struct Misfit {
  uint32_t task = kNone;
  int64_t bytes = 0;
};

/// Where a sequence needs more than a device's memory, evicts values (Belady, "A study of replacement algorithms",
/// 1966: all future uses are known), each at most once between two of its uses, so that copies are bounded. A value
/// without a copy on the host is spilled, early enough that the spill ends before its bytes are needed. What was
/// evicted, or starts on the host, is prefetched as early as helps and there is room.
std::optional<Misfit> fit(const Step &step, unsigned device, const Rule &rule, Sequence &sequence);

/// Peak bytes of the device over the sequence.
int64_t peakOf(const Step &step, unsigned device, llvm::ArrayRef<Item> sequence);

/// Predicted seconds until the last item ends. Each engine executes its items in order, and an item that needs bytes
/// waits until enough are free. `limits` by device, 0 for no bound. Infinity where an item never gets its bytes.
double secondsOf(const Step &step, llvm::ArrayRef<Item> sequence, llvm::ArrayRef<int64_t> limits);

} // namespace tressel::passes::residency
