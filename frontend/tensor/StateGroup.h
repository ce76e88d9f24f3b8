// The lock of a compiled program's Variables.
//
// A program updates the Variables that it assigns in place. From the moment that the call is handed over to the engine
// until the update is done, no other call may read or change them. A StateGroup is the lock for that. Each Variable
// begins with a group of its own. When a program that assigns a Variable is compiled, the groups of all its Variables
// become one. So a call takes one lock, however many Variables it assigns, and calls of programs that share no Variable
// run concurrently.
//
// Programs that only read Variables take no lock. Each of their contexts has a StateReader with a flag of its own. A
// program that is about to update raises the group's flag, then waits until its readers' flags are down; a reader
// raises its own flag, then looks at the group's. Both use sequential consistency, so at least one of them sees the
// other's flag.
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

  /// Alive while the memory of the group's Variables is written, or until a task that will write it is submitted. The
  /// caller holds the lock. The constructor waits for readers.
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

  void release(); ///< drops the reference of a Variable that is destroyed

private:
  friend class StateReader;
  /// The Variable's first group. Its root is the group in effect.
  static StateGroup &of(VariableImpl &variable);
  StateGroup &root() {
    StateGroup *at = this;
    while (StateGroup *next = at->joined_.load(std::memory_order_seq_cst))
      at = next;
    return *at;
  }
  /// Locks the root, and returns it.
  StateGroup &lock();
  void unlock();
  void take();
  bool tryTake();
  /// Locks another root as well as this one, which the caller holds. Waits for one only while it does not hold the
  /// other.
  void takeToo(StateGroup &other);
  bool isMine() const;

  std::atomic<uint32_t> state_{0};           ///< 0: free, 1: locked, 2: locked, and a thread sleeps
  std::atomic<const void *> owner_{nullptr}; ///< thread token of the holder
  uint32_t depth_ = 0;                       ///< how many more times the owner has locked it
  std::atomic<bool> writing_{false};
  std::atomic<StateGroup *> joined_{nullptr};  ///< parent in the union-find tree; holds a reference to it
  std::atomic<uint32_t> references_{1};        ///< of Variables, and of groups that were joined into it
  uint32_t rank_ = 0;                          ///< union-find rank: the depth of the tree below
  std::vector<StateReader *> readers_;         ///< under the lock of the root
};

/// Marks a call that reads the memory of Variables. One call at a time uses it.
class StateReader {
public:
  /// The Variables outlive it.
  explicit StateReader(std::span<const std::shared_ptr<VariableImpl>> variables);
  ~StateReader();
  StateReader(const StateReader &) = delete;
  StateReader &operator=(const StateReader &) = delete;

  /// Returns when no call updates one of the Variables; none begins to before end().
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
        return group->root().isMine(); // this thread's own call updates, and has called this one
    return true;
  }
  void waitForWriter();

  std::atomic<bool> reading_{false};
  std::vector<StateGroup *> groups_; ///< all different when it was made; the Variables hold them
};

} // namespace tressel::detail
