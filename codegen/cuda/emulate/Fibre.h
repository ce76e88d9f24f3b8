// Stacks of their own for functions that stop in the middle and go on later: what each emulated GPU thread runs on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tressel::codegen::cuda::emulate {

/// A stack of `bytes` with inaccessible pages below, on which `run(argument)` is executed piece by piece. A fibre is
/// resumed by one host thread at a time, not always the same one. It may be dropped while it is stopped: nothing that
/// lives on its stack is destroyed then.
class Fibre {
public:
  explicit Fibre(size_t bytes);
  ~Fibre();
  Fibre(const Fibre &) = delete;

  /// From now on the fibre, whatever it was doing, begins with run(argument). `run` must not return, but end with a
  /// stop() after which nobody resumes.
  void start(void (*run)(void *), void *argument);
  /// Runs until the fibre stops.
  void resume();
  /// On the fibre's stack: back to where resume() was called.
  void stop();
  size_t bytes() const { return bytes_; }
  /// Whether the address lies on its stack.
  bool owns(const void *address) const;

private:
  struct Context;
  char *memory_ = nullptr; ///< guard pages, then the stack
  size_t bytes_;
  void (*run_)(void *) = nullptr;
  void *argument_ = nullptr;
  Context *context_;
};

} // namespace tressel::codegen::cuda::emulate
