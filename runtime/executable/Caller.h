// What a caller of a program has, whether one processor runs it (Context.cpp) or the devices of a machine (devices/Executor.cpp): the states that
// it bound, the sizes that it called with, and the checks of what it gives.
#pragma once

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Schedule.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace tressel::runtime {

/// The numbers of a program with symbolic sizes for these values, verified. Throws ShapeError for values that leave their bounds, OutOfMemory for
/// sizes that no machine has room for, and InputError for a schedule that is not safe with them.
Schedule numbersFor(const Schedule &schedule, const dim::Values &dims);
/// The least values of all symbols. What prepare uses has the same size for all.
dim::Values leastDims(const Schedule &schedule);

/// What was made for the latest few sets of sizes.
template <typename Made> class BySizes {
public:
  /// Null: none was made for these. It is the front from now on.
  Made *find(const dim::Values &dims) {
    for (size_t i = 0; i < all_.size(); ++i)
      if (all_[i]->dims == dims) {
        std::rotate(all_.begin(), all_.begin() + static_cast<ptrdiff_t>(i), all_.begin() + static_cast<ptrdiff_t>(i) + 1);
        return all_.front().get();
      }
    return nullptr;
  }
  Made &add(std::unique_ptr<Made> made) {
    if (all_.size() == kMost)
      all_.pop_back();
    all_.insert(all_.begin(), std::move(made));
    return front();
  }
  bool empty() const { return all_.empty(); }
  /// The most recently used.
  Made &front() const { return *all_.front(); }
  void clear() { all_.clear(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

private:
  static constexpr size_t kMost = 8;
  std::vector<std::unique_ptr<Made>> all_;
};

/// The memory that a caller bound for states, by state; null where the executable has its own.
class BoundStates {
public:
  explicit BoundStates(const Schedule &schedule);
  bool areBound() const { return areBound_; }
  void *operator[](size_t state) const { return memory_[state]; }
  size_t numCallers() const { return callers_.size(); } ///< that the caller binds

  /// Takes the caller's states in the order of the schedule; `prepare` is called before they count as bound, and `owner` is held from then on. Throws
  /// Error for another number of them, or null.
  template <typename Prepare> void bind(std::span<void *const> states, std::shared_ptr<const void> owner, Prepare &&prepare) {
    set(states);
    prepare();
    areBound_ = true;
    owner_ = std::move(owner);
  }
  /// Other memory for the i-th of the caller's states, a mutable one: returns its number. Throws Error for another.
  size_t move(size_t i, void *memory);

private:
  void set(std::span<void *const> states);
  const Schedule &schedule_;
  std::vector<uint32_t> callers_; ///< numbers of the states that the caller binds
  std::vector<void *> memory_;
  std::shared_ptr<const void> owner_;
  bool areBound_ = false;
};

/// The caller's memory for one call.
struct CallArguments {
  std::span<const void *const> inputs;
  std::span<void *const> outputs;
};
/// Throws Error, naming the input or output, unless the calls have the inputs and outputs of the schedule (of numbers), none is null, and no output
/// overlaps an input or output of any of the calls.
void checkArguments(const Schedule &numbers, std::span<const CallArguments> calls, bool areStatesBound);

/// The message with the op and line of a command, as errors have them.
Error::Details detailsOf(const Schedule &schedule, uint32_t location, std::string message);

} // namespace tressel::runtime
