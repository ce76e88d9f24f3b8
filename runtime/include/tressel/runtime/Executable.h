// A verified schedule with its code, ready to be called.
#pragma once

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Handle.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace tressel::runtime {

/// Immutable and shared between threads: schedule, code, constants.
class Executable : public std::enable_shared_from_this<Executable> {
public:
  /// Verifies the schedule, maps the image, resolves every kernel. Throws InputError (a bad schedule or image, a
  /// missing provider, an image for another CPU) and OutOfMemory. `constants` is kept alive.
  static std::shared_ptr<const Executable> create(Schedule schedule, std::span<const std::byte> image,
                                                  std::shared_ptr<const std::vector<std::byte>> constants,
                                                  const ProgramCode &code = {});
  /// The same with the constants anywhere in memory, kept alive by `owner`: a mapped file, say. 64-byte aligned ones
  /// are used in place, others are copied once.
  static std::shared_ptr<const Executable> create(Schedule schedule, std::span<const std::byte> image,
                                                  std::span<const std::byte> constants,
                                                  std::shared_ptr<const void> owner, const ProgramCode &code = {});
  virtual ~Executable() = default;
  const Schedule &schedule() const { return schedule_; }

protected:
  Executable() = default;
  Schedule schedule_;
};

/// When the commands of one call ran, by the monotonic clock. Filled by Context::run while it is set.
struct Profile {
  struct Span {
    int64_t startNs = 0, endNs = 0;
  };
  std::vector<Span> commands; ///< one per command of `step`, of the latest call
};

/// Where a context's memory comes from, if not from the library's own blocks. Called in the threads that make, run and
/// destroy the context. `allocate` gives at least `bytes` bytes with the alignment, or null when there is none.
struct HostAllocator {
  void *(*allocate)(size_t bytes, size_t alignment, void *user) = nullptr;
  void (*release)(void *memory, size_t bytes, void *user) = nullptr;
  void *user = nullptr;
};

class PackageStates;

struct ContextOptions {
  /// Sizes of dimensions by name up to which memory is taken at once; calls beyond them are refused. Only for symbolic
  /// dimensions of the schedule, within their bounds; the others grow as calls need it.
  std::vector<std::pair<std::string, int64_t>> max_dims;
  /// Most bytes that the context may hold: arenas, scratch and derived state. What would need more throws OutOfMemory.
  int64_t max_bytes = std::numeric_limits<int64_t>::max();
  HostAllocator allocator = {};
  /// What it binds and updates (States.h), shared with other contexts of the package.
  std::shared_ptr<PackageStates> states = {};
};

/// A caller's tensor: dense, row-major, at least element-aligned (64 bytes are fastest).
struct View {
  void *data = nullptr;
  TensorType type;
};

/// The memory and bindings of one caller: arenas, derived state, operand tables with pointers filled in once. Belongs
/// to one thread at a time. A call allocates nothing, unless symbolic sizes are other than in the last few calls. One
/// that was moved from throws Error.
class Context {
public:
  /// Throws Error when `options` name no dimension of the program or leave its bounds, and InputError when the program needs
  /// more than the processor: Executor (Executor.h) runs such ones.
  explicit Context(std::shared_ptr<const Executable> executable, const ContextOptions &options = {});
  ~Context();
  Context(Context &&) noexcept;
  Context &operator=(Context &&) noexcept;

  /// Binds the states that are not Derived, in schedule order, and runs `prepare`. Call again after a parameter
  /// changed. The bytes stay the caller's and must outlive the binding; `owner`, if any, is held as long. 64-byte
  /// alignment is fastest, element alignment suffices.
  void bindStates(std::span<void *const> states, std::shared_ptr<const void> owner = nullptr);
  /// Other memory for the i-th of the states that `bindStates` takes, which is mutable and holds its value there. Nothing
  /// is prepared again. Throws Error for a state that is only read.
  void moveState(size_t index, void *memory);
  /// Runs `step`, in the caller's thread (kernels large enough are split over the pool). Inputs and outputs in schedule
  /// order; outputs must not overlap inputs or each other (an Error). Throws RuntimeError naming op and line; outputs
  /// are then undefined, and so are mutable states if `wroteStates()`.
  void run(std::span<const void *const> inputs, std::span<void *const> outputs);
  /// The same for a program with symbolic sizes, for these values of all its symbols (`dimsOf` finds them from the
  /// inputs' shapes). The first call with other sizes lays the program out anew and proves that it is safe; the last
  /// few are remembered, and memory only grows. Throws ShapeError when a value leaves the symbol's bounds.
  void run(std::span<const void *const> inputs, std::span<void *const> outputs, const dim::Values &dims);
  /// The same with the types checked, and the values of symbols found from the inputs' shapes; outputs have the types
  /// that `outputTypes` gives. Throws ShapeError too, which names the input or output and both types.
  void run(std::span<const View> inputs, std::span<const View> outputs);
  /// Whether the latest `run` began to write a mutable state. False after one that failed before: all have their values still.
  bool wroteStates() const;
  /// Types of the outputs for inputs of these types. Throws ShapeError.
  std::vector<TensorType> outputTypes(std::span<const TensorType> inputs) const;
  /// Arena bytes held now.
  int64_t arenaBytes() const;
  /// All bytes that `max_bytes` bounds, held now.
  int64_t bytes() const;

  /// Takes time stamps around every command of the following calls, until set to null. Costs some 30 ns a command, and commands that would run
  /// side by side run one after the other.
  void setProfile(Profile *profile);

  const Executable &executable() const;

private:
  struct Impl;
  Held<std::unique_ptr<Impl>> impl_;
};

} // namespace tressel::runtime
