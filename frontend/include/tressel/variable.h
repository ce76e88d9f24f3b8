// Variable: a named cell that holds a tensor and can be assigned. Copies of a Variable are the same cell. Parameters
// and running statistics are Variables. A traced program reads the Variables it touches when it is called, and updates
// those that it assigns: they are its state, and need not be passed.
//
// A compiled program updates a Variable in place. Tensors never change: if a tensor that was read from the Variable
// still holds its memory, the value is first copied to new memory, which becomes the Variable's. JitStats::state_copies
// counts such copies, and JitOptions::strict_donation makes them an error. Calls that assign the same Variables run one
// after the other. A call that fails before it has written a Variable leaves all of them unchanged; ops that may fail
// run before a program's first write where possible.
//
// A Variable has a home: the host, an accelerator, or several (`on`). Its value stays there between calls, and programs
// update it in that memory.
#pragma once

#include <tressel/tensor.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tressel {

namespace detail {
class Spread;
class StateGroup;
struct VariableImpl {
  VariableImpl() = default;
  VariableImpl(const VariableImpl &) = delete;
  ~VariableImpl();

  Tensor value; ///< under the lock of the group; its type stays
  std::string name;
  uint32_t home = 0; ///< TensorImpl::home of its value, also before it has one; under the lock
  std::string sharding; ///< of Variable::shard; under the lock
  std::shared_ptr<Spread> spread; ///< of a Variable on several devices; under the lock
  std::atomic<uint64_t> version{0}; ///< counts assignments
  std::atomic<bool> frozen{false};  ///< not trained
  std::atomic<StateGroup *> group{nullptr}; ///< made with the first call that needs its lock
  SourceLoc readAt;                 ///< where the latest tensor was read from it outside of programs; under the lock

  Tensor get(SourceLoc where);
  /// A value that lies elsewhere is copied to the Variable's home.
  void set(Tensor next);
  void move(uint32_t to, SourceLoc where);
};
/// Counts all assignments of the process: as long as it stands still, all bound states are current.
extern std::atomic<uint64_t> variableEpoch;
} // namespace detail

class Variable {
public:
  Variable() : impl_(std::make_shared<detail::VariableImpl>()) {}
  explicit Variable(Tensor value, std::string name = "");
  /// For the library: the cell itself.
  explicit Variable(std::shared_ptr<detail::VariableImpl> impl) : impl_(std::move(impl)) {}

  /// In a trace: the state's current value there.
  Tensor value(std::source_location where = std::source_location::current()) const;
  /// Throws ShapeError when there is a value of another type or shape. Of a Variable on an accelerator, the value is copied there.
  void assign(const Tensor &value, std::source_location where = std::source_location::current()) const;
  /// Moves the Variable for good: its value is in the memory of that device from now on, where programs read and update
  /// it, and later values are copied there. Programs that use it are compiled anew. Throws Error when the machine has
  /// no such device, and TraceError in a trace.
  void on(Device device, std::source_location where = std::source_location::current()) const;
  /// Moves the Variable to several accelerators at once, the ranks of a mesh in this order: each has the value, or its
  /// part of it (`shard`). Programs with a mesh of these accelerators read and update it there (docs/parallel.md). All
  /// other uses see its value on the host, which is copied on demand. Throws as above, and where a device is the host
  /// or named twice.
  void on(const std::vector<Device> &devices, std::source_location where = std::source_location::current()) const;
  /// Where its value is, or will be: the host, unless it was made from a tensor elsewhere or moved. The host too if it
  /// is on several accelerators.
  Device device(std::source_location where = std::source_location::current()) const;
  /// How compiled functions with a mesh cut it, a word per dimension: "-, model" cuts the second dimension along the
  /// axis "model" (docs/parallel.md). Empty: it is whole on each accelerator. Programs that use it are compiled anew;
  /// those without a mesh ignore it. Throws ShapeError unless there are as many words as dimensions, TraceError in a
  /// trace.
  void shard(std::string axes, std::source_location where = std::source_location::current()) const;
  /// False for one that was moved from too; everything else of such a Variable throws Error.
  bool defined() const { return impl_ && impl_->value.defined(); }
  /// Known without waiting, the same inside and outside a trace.
  const TensorType &type(std::source_location where = std::source_location::current()) const {
    return get(where).value.type();
  }
  const Shape &shape(std::source_location where = std::source_location::current()) const { return type(where).shape; }
  DType dtype(std::source_location where = std::source_location::current()) const { return type(where).dtype; }
  uint64_t version(std::source_location where = std::source_location::current()) const {
    return get(where).version.load(std::memory_order_acquire);
  }
  const std::string &name(std::source_location where = std::source_location::current()) const {
    return get(where).name;
  }
  /// Whether training leaves it alone. Assigning is still possible.
  bool frozen(std::source_location where = std::source_location::current()) const {
    return get(where).frozen.load(std::memory_order_relaxed);
  }
  void set_name(std::string name, std::source_location where = std::source_location::current()) const {
    get(where).name = std::move(name);
  }

  const std::shared_ptr<detail::VariableImpl> &impl() const { return impl_; }

protected:
  detail::VariableImpl &get(const std::source_location &where) const {
    if (!impl_) [[unlikely]]
      detail::failMoved("Variable", where);
    return *impl_;
  }
  std::shared_ptr<detail::VariableImpl> impl_;
};

/// Whether both are the same cell.
inline bool same(const Variable &a, const Variable &b) { return a.impl() == b.impl(); }

/// By name: parameters by path, as a module gives them, say.
using NamedVariables = std::vector<std::pair<std::string, Variable>>;

} // namespace tressel
