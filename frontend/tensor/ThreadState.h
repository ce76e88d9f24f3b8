// What every op reads of its thread, in one place: the library may be loaded late, where each thread-local variable
// costs a call, and larger ones could not be had otherwise.
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
  void *remembered = nullptr;                   ///< what imperative calls found: of Eager.cpp
};
extern thread_local constinit ThreadState threadState;

/// Of this thread, from 1 on and small: for what is kept by thread. No two threads have the same at the same time, but
/// those that run their last destructors, whose number is kEndingThread.
uint32_t threadNumber();
inline constexpr uint32_t kEndingThread = ~uint32_t(0);

} // namespace tressel::detail
