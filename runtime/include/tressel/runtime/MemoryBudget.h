// A bound on the memory that a program's intermediate values take.
#pragma once

#include <cstdint>

namespace tressel {

/// How much memory the intermediate values of a program may take at once on the host: bytes, or a
/// share of what they take without a bound. Inputs, results and states (parameters, what an optimizer keeps) are not
/// counted. Programs drop values that are needed later, and compute them again, to keep to it (docs/memory.md).
class MemoryBudget {
public:
  constexpr MemoryBudget() = default; ///< no bound
  /// What is negative is 0, which no program can meet.
  constexpr MemoryBudget(int64_t bytes) : bytes_(bytes < 0 ? 0 : bytes) {}
  /// Of what the same program takes without a bound, from 0 to 1. What is less, or NaN, is 0.
  static constexpr MemoryBudget share(double share) {
    MemoryBudget budget;
    budget.share_ = share >= 0 ? share : 0;
    return budget;
  }

  constexpr bool isBound() const { return bytes_ >= 0 || share_ >= 0; }
  /// No bound is INT64_MAX.
  constexpr int64_t bytesOf(int64_t unbounded) const {
    return bytes_ >= 0   ? bytes_
           : share_ >= 0 ? static_cast<int64_t>(share_ * static_cast<double>(unbounded))
                         : INT64_MAX;
  }
  bool operator==(const MemoryBudget &) const = default;

private:
  int64_t bytes_ = -1;
  double share_ = -1;
};

} // namespace tressel
