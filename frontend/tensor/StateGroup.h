// Who may touch the Variables of a compiled program, and when.
//
// A program updates the Variables that it assigns in place. While it does, or while it is handed over to the engine, no other call may
// take their values or change them. A StateGroup is the lock for that. Each Variable begins with a group of its own; a program joins the
// groups of all its Variables when it is compiled, if it assigns one of them. So a call takes one lock, however many Variables it
// assigns, and calls of programs that have no Variable in common run side by side.
//
// Programs that only read Variables take no lock. Each of their contexts has a StateReader, a flag in memory of its own; a program that is
// about to update waits until the flags of its group's readers are down, and raises one that readers look at. Both sides write their own
// flag before they look at the other's, in one order for all threads, so one of them sees the other.
#pragma once

#include <tressel/variable.h>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace tressel::detail {

class StateReader;

class StateGroup {
public:
  /// Makes one group of the Variables' groups. Waits for calls that hold one of them.
  static void join(std::span<const std::shared_ptr<VariableImpl>> variables);

  /// Holds the lock of a Variable's group. A thread that holds it may take it again.
  class Lock {
  public:
    explicit Lock(VariableImpl &variable) : group_(&of(variable).lock()) {}
    ~Lock() { group_->unlock(); }
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;
    StateGroup &group() const { return *group_; }

  private:
    StateGroup *group_;
  };

  /// While the memory of the group's Variables is written, or given to a task that will. The lock is held. Waits for readers.
  class Writing {
  public:
    explicit Writing(StateGroup &group);
    ~Writing() { group_.writing_.store(outer_, std::memory_order_release); }
    Writing(const Writing &) = delete;
    Writing &operator=(const Writing &) = delete;

  private:
    StateGroup &group_;
    const bool outer_;
  };

  void release(); ///< of a Variable that goes

private:
  friend class StateReader;
  /// The Variable's first group; what became of it is its root.
  static StateGroup &of(VariableImpl &variable);
  StateGroup &root() {
    StateGroup *at = this;
    while (StateGroup *next = at->joined_.load(std::memory_order_seq_cst))
      at = next;
    return *at;
  }
  /// Locks the root, and gives it.
  StateGroup &lock();
  void unlock();
  void take();
  bool isMine() const;

  std::atomic<uint32_t> state_{0};             ///< 0: free, 1: locked, 2: locked, and somebody sleeps
  std::atomic<const void *> owner_{nullptr};   ///< names a thread
  uint32_t depth_ = 0;                         ///< how often the owner has locked it again
  std::atomic<bool> writing_{false};
  std::atomic<StateGroup *> joined_{nullptr};  ///< the group that it became a part of; holds a reference to it
  std::atomic<uint32_t> references_{1};        ///< of Variables, and of groups that were joined to it
  uint32_t rank_ = 0;                          ///< how deep groups are joined to it
  std::vector<StateReader *> readers_;         ///< under the lock of the root
};

/// Says that a call reads the memory of Variables. One call at a time uses it.
class StateReader {
public:
  /// The Variables outlive it.
  explicit StateReader(std::span<const std::shared_ptr<VariableImpl>> variables);
  ~StateReader();
  StateReader(const StateReader &) = delete;
  StateReader &operator=(const StateReader &) = delete;

  /// Returns when no call updates one of the Variables; none does until end().
  void begin() {
    while (!tryBegin()) [[unlikely]]
      waitForWriter();
  }
  void end() { reading_.store(false, std::memory_order_release); }

private:
  friend class StateGroup;
  bool tryBegin() {
    reading_.store(true, std::memory_order_seq_cst);
    for (StateGroup *group : groups_)
      if (group->root().writing_.load(std::memory_order_seq_cst)) [[unlikely]]
        return group->root().isMine(); // the call that updates has called this one
    return true;
  }
  void waitForWriter();

  std::atomic<bool> reading_{false};
  std::vector<StateGroup *> groups_; ///< all different when it was made; the Variables hold them
};

} // namespace tressel::detail
