// Thread-local scopes: lines of callers, train and inference mode, running without jit.
#pragma once

#include <tressel/tensor.h>

#include <source_location>
#include <string>
#include <vector>

namespace tressel {

/// Layers behave differently in training: dropout drops. Everything is inference unless a scope says otherwise. The
/// mode is part of what compiled functions are cached by.
class TrainScope {
public:
  explicit TrainScope(bool train = true);
  ~TrainScope();
  TrainScope(const TrainScope &) = delete;
  TrainScope &operator=(const TrainScope &) = delete;

private:
  bool previous_;
};
/// Whether a TrainScope is active in this thread.
bool training();

/// While one lives, jitted functions and hybridized modules run op by op in this thread: for debuggers and printing.
class DisableJit {
public:
  DisableJit();
  ~DisableJit();
  DisableJit(const DisableJit &) = delete;
  DisableJit &operator=(const DisableJit &) = delete;
};

namespace detail {
class InferRecorder;
bool jitDisabled();
/// Whether a trace is being recorded in this thread.
bool tracing();
/// Whether a trace is recorded, jit is disabled, or gradients are taped: then a call of a compiled function runs the
/// function itself.
bool runsOpByOp();
/// The part of the thread's scopes that programs depend on: training, and where ops are computed.
uint32_t callMode();

/// Counts nested calls of jitted functions and modules in this thread. False, without counting, when there are so many
/// that the recursion hardly ends, and the stack is nearly full. Bodies of control flow count too, with a somewhat
/// higher limit, so that a named function inside fails first and is named in the error.
bool enterCall(bool isBody = false);
void leaveCall();
/// Throws Error: `callee` calls itself without end.
[[noreturn]] void failEndless(const std::string &callee, const std::source_location &where);

/// A module, for the names in errors.
class ScopeOwner {
public:
  virtual ~ScopeOwner() = default;
  virtual std::string typeName() const = 0;
  /// Empty when `child` is not its child.
  virtual std::string nameOf(const ScopeOwner &child) const = 0;
  uint32_t placed = 0; ///< the device that its ops run on, as index + 2; 0: not placed
  uint32_t stage = 0;  ///< of a pipeline: its number + 1, or 0 without one
};

/// The line from which a module was called. It becomes the line of ops inside of a module of the library.
class LocationScope {
public:
  /// `owner` outlives the scope. Throws Error when modules call each other without end.
  LocationScope(const std::source_location &where, bool library, const ScopeOwner *owner = nullptr);
  ~LocationScope();
  LocationScope(const LocationScope &) = delete;
  LocationScope &operator=(const LocationScope &) = delete;

  const std::source_location &where() const { return where_; }
  bool library() const { return library_; }
  const ScopeOwner *owner() const { return owner_; }
  const LocationScope *parent() const { return parent_; }
  static const LocationScope *current();

private:
  std::source_location where_;
  bool library_;
  const ScopeOwner *owner_;
  const LocationScope *parent_;
  uint32_t mode_; ///< the mode outside of the scope
};

/// The user's line for an op at `where`: `where` itself, or, inside of the library, the line that called it.
SourceLoc userLine(SourceLoc where);
/// The lines through which userLine(where) was reached, innermost first.
std::vector<SourceLoc> userTrace(SourceLoc where);
/// " (in 'encoder.0.head', a Dense)" inside of modules, for messages; empty outside.
std::string modulePath();
/// For the library's layers that call other layers: the line they were called from.
std::source_location callerOf(const std::source_location &fallback);
} // namespace detail

} // namespace tressel
