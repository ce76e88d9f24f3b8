// Per-caller state of a program, shared by programs of one processor (Context.cpp) and of a machine
// (devices/Executor.cpp): bound states, sizes of the last calls, and checks of arguments.
#pragma once

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Schedule.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace tressel::runtime {

/// The schedule with numbers for its symbolic sizes, verified. Throws ShapeError for values outside their bounds,
/// OutOfMemory for sizes that no machine has memory for, and InputError for a schedule that is not safe with them.
Schedule numbersFor(const Schedule &schedule, const dim::Values &dims);
/// The least value of each symbol. Sizes that prepare uses do not depend on symbols, so any value serves.
dim::Values leastDims(const Schedule &schedule);

/// An LRU cache of objects made for a set of sizes.
template <typename Made> class BySizes {
public:
  /// Null if there is none for these sizes. Moves the object to the front.
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

/// The memory that a caller has bound for states, by state; null for states that the executable owns.
class BoundStates {
public:
  explicit BoundStates(const Schedule &schedule);
  bool areBound() const { return areBound_; }
  void *operator[](size_t state) const { return memory_[state]; }
  size_t numCallers() const { return callers_.size(); } ///< number of states that the caller binds

  /// Binds the caller's states, in the order of the schedule. Calls `prepare` before it commits to them, and holds
  /// `owner` from then on. Throws Error for a wrong number of states, or a null one.
  template <typename Prepare> void bind(std::span<void *const> states, std::shared_ptr<const void> owner, Prepare &&prepare) {
    set(states);
    prepare();
    areBound_ = true;
    owner_ = std::move(owner);
  }
  /// Rebinds the i-th of the caller's states, which must be mutable, to other memory; returns its number in the
  /// schedule. Throws Error if it is not.
  size_t move(size_t i, void *memory);

private:
  void set(std::span<void *const> states);
  const Schedule &schedule_;
  std::vector<uint32_t> callers_; ///< numbers of the states that the caller binds
  std::vector<void *> memory_;
  std::shared_ptr<const void> owner_;
  bool areBound_ = false;
};

/// The memory of a caller's inputs and outputs for one call.
struct CallArguments {
  std::span<const void *const> inputs;
  std::span<void *const> outputs;
};
/// Checks the arguments of several calls against the schedule (of numbers): right numbers of inputs and outputs, none
/// null, no output that overlaps an input or output of any of the calls. Throws Error, naming the input or output.
void checkArguments(const Schedule &numbers, std::span<const CallArguments> calls, bool areStatesBound);

/// A message with the op and source line of a command, in the form of errors.
Error::Details detailsOf(const Schedule &schedule, uint32_t location, std::string message);

} // namespace tressel::runtime
