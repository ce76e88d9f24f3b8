// Whether a kernel runs with subnormal numbers as zeros (docs/numbers.md). The processor has one mode for f32 and f64, so a
// kernel has one by the types it computes in, and its caller sets the thread's mode around the call.
//
//   FloatScope scope;
//   scope.enter(desc.floats);            // costs something only where the mode differs
//   status = fn(&args, 0, range);
//   // the state that the thread had is back at the end of the scope
#pragma once

#include <cstdint>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace tressel::runtime {

enum class FloatMode : uint8_t {
  Any,   ///< moves bits or computes in integers: runs in whatever mode the thread is in
  Keep,  ///< IEEE arithmetic: computes in f64, is the user's code, or was asked for (`keep_subnormals`)
  Flush, ///< computes in f32: subnormal operands count as zeros, subnormal results become zeros of their sign
};

#if defined(__SSE2__)
/// Also sets rounding to nearest and masks exceptions: results do not depend on what the caller has set for itself.
class FloatScope {
public:
  FloatScope() = default;
  explicit FloatScope(FloatMode mode) { enter(mode); }
  ~FloatScope() {
    if (entered_)
      _mm_setcsr(saved_);
  }
  FloatScope(const FloatScope &) = delete;
  FloatScope &operator=(const FloatScope &) = delete;

  void enter(FloatMode mode) {
    if (mode == FloatMode::Any)
      return;
    if (!entered_) {
      entered_ = true;
      saved_ = current_ = _mm_getcsr();
    }
    const uint32_t wanted = mode == FloatMode::Flush ? kFlush : kKeep;
    if (((current_ ^ wanted) & ~kStickyFlags) == 0)
      return;
    _mm_setcsr(wanted);
    current_ = wanted;
  }

private:
  static constexpr uint32_t kStickyFlags = 0x3f, kKeep = 0x1f80, kFlush = kKeep | 0x8040; ///< of MXCSR
  uint32_t saved_ = 0, current_ = 0;
  bool entered_ = false;
};
#else
class FloatScope {
public:
  FloatScope() = default;
  explicit FloatScope(FloatMode) {}
  void enter(FloatMode) {}
};
#endif

} // namespace tressel::runtime
