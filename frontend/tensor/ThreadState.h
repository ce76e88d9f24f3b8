// The per-thread state that every op reads, in one variable: where the library is loaded late, each access to a
// thread-local variable costs a call, and there is little room for such variables.
#pragma once

#include <cstdint>

namespace tressel::detail {

class LocationScope;
class Recorder;
class TensorTape;

struct ThreadState {
  Recorder *recorder = nullptr;                 ///< see Recorder::current()
  const LocationScope *locationScope = nullptr; ///< the innermost
  TensorTape *tape = nullptr;                   ///< the innermost of value_and_grad, see frontend/trace/TensorTape.h
  int checkNanDepth = 0;                        ///< CheckNan objects alive
  uint32_t callDepth = 0;                       ///< see enterCall()
  uint32_t segment = 0;                         ///< of the trace: the checkpoint() that is being recorded, or 0
  bool goesBack = false;                        ///< of the trace: what is recorded computes gradients
  void *remembered = nullptr;                   ///< the cache of imperative calls, of Eager.cpp
};
extern thread_local constinit ThreadState threadState;

/// This thread's number, small and from 1 on, to index per-thread data. Unique among live threads, except that threads
/// in their last destructors all have kEndingThread.
uint32_t threadNumber();
inline constexpr uint32_t kEndingThread = ~uint32_t(0);

} // namespace tressel::detail
