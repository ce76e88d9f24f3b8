// A verified schedule with its code, ready to be called.
#pragma once

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

#include <cstddef>
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
                                                  std::shared_ptr<const std::vector<std::byte>> constants);
  /// The same with the constants anywhere in memory, kept alive by `owner`: a mapped file, say. 64-byte aligned ones
  /// are used in place, others are copied once.
  static std::shared_ptr<const Executable> create(Schedule schedule, std::span<const std::byte> image,
                                                  std::span<const std::byte> constants,
                                                  std::shared_ptr<const void> owner);
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

struct ContextOptions {
  /// Sizes of dimensions by name up to which memory is taken at once; calls beyond them are refused. Only for symbolic
  /// dimensions of the schedule, within their bounds; the others grow as calls need it.
  std::vector<std::pair<std::string, int64_t>> max_dims;
};

/// The memory and bindings of one caller: arenas, derived state, operand tables with pointers filled in once. Belongs
/// to one thread at a time. A call allocates nothing, unless symbolic sizes are other than in the last few calls.
class Context {
public:
  /// Throws Error when `options` name no dimension of the program or leave its bounds.
  explicit Context(std::shared_ptr<const Executable> executable, const ContextOptions &options = {});
  ~Context();
  Context(Context &&) noexcept;
  Context &operator=(Context &&) noexcept;

  /// Binds the states that are not Derived, in schedule order, and runs `prepare`. Call again after a parameter
  /// changed. The bytes stay the caller's and must outlive the binding; `owner`, if any, is held as long. 64-byte
  /// alignment is fastest, element alignment suffices.
  void bindStates(std::span<void *const> states, std::shared_ptr<const void> owner = nullptr);
  /// Runs `step`, in the caller's thread (kernels large enough are split over the pool). Inputs and outputs in schedule
  /// order; outputs must not overlap inputs or each other (an Error). Throws RuntimeError naming op and line; outputs
  /// are then undefined, and so are mutable states.
  void run(std::span<const void *const> inputs, std::span<void *const> outputs);
  /// The same for a program with symbolic sizes, for these values of all its symbols (`dimsOf` finds them from the inputs'
  /// shapes). The first call with other sizes lays the program out anew and proves that it is safe; the last few are
  /// remembered, and memory only grows. Throws ShapeError when a value leaves the symbol's bounds.
  void run(std::span<const void *const> inputs, std::span<void *const> outputs, const dim::Values &dims);
  /// Arena bytes held now.
  int64_t arenaBytes() const;

  /// Takes time stamps around every command of the following calls, until set to null. Costs some 30 ns a command.
  void setProfile(Profile *profile);

  const Executable &executable() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace tressel::runtime
