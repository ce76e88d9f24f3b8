// Kernels of imperative ops: one per layout class (Class.h), for all sizes. Common ones are precompiled in the library
// (Prebuilt.h). Others are compiled by a background thread, or by the first task that needs one, whichever comes first.
//
//   std::shared_ptr<Kernel> kernel = findKernel(classified.call);       // null: this op is not one kernel
//   if (!kernel->ready()) ...                                           // queue a task: it waits for the code
//   status = kernel->launch(buffers, sizes);                            // compiles if it must; throws what that throws
//
// All functions may be called from any thread.
#pragma once

#include "codegen/OpKernel.h"
#include "frontend/eager/SizeCode.h"
#include "tressel/runtime/Engine.h"
#include "tressel/runtime/FloatMode.h"
#include "tressel/runtime/Image.h"

#include <atomic>
#include <bit>
#include <exception>
#include <memory>
#include <mutex>

namespace tressel::eager {

/// Something that is compiled once, by the first thread that asks for it.
class Compiled {
public:
  virtual ~Compiled() = default;
  bool ready() const { return state_.load(std::memory_order_acquire) == State::Done; }
  bool failed() const { return state_.load(std::memory_order_acquire) == State::Failed; }
  /// Returns when it is compiled, by this thread if no other has begun. Throws what the compiler threw.
  void ensure() {
    if (!ready()) [[unlikely]]
      ensureSlowly();
  }

protected:
  virtual void compile() = 0;
  void setReady() { state_.store(State::Done, std::memory_order_release); }

private:
  void ensureSlowly();
  enum class State : uint8_t { Waiting, Running, Done, Failed };
  std::atomic<State> state_{State::Waiting};
  std::exception_ptr error_; // written before Failed
};

/// Queues it for the background compiler, first in, first out. Skipped if the queue holds the last reference by then.
void compileInBackground(std::shared_ptr<Compiled> what);

/// Held by a queued task that needs code which is not compiled yet.
class WaitsForCode {
public:
  WaitsForCode() { count.fetch_add(1, std::memory_order_relaxed); }
  WaitsForCode(const WaitsForCode &) : WaitsForCode() {}
  WaitsForCode(WaitsForCode &&) noexcept : WaitsForCode() {}
  ~WaitsForCode() { count.fetch_sub(1, std::memory_order_relaxed); }

  static std::atomic<int64_t> count;
};

class Kernel : public Compiled {
public:
  explicit Kernel(codegen::OpCall call) : call_(std::move(call)) {}
  /// With code that is compiled already.
  struct Code {
    runtime::KernelFn fn = nullptr;
    std::shared_ptr<const void> owner;
    Size range = 1, points = 1; ///< as of codegen::OpKernel
    double nsPerPoint = 0;
    runtime::FloatMode floats = runtime::FloatMode::Any;
  };
  Kernel(codegen::OpCall call, Code code);

  const codegen::OpCall &call() const { return call_; }
  /// Runs it over all its units, on the pool's threads where there is work for several. Returns a KernelStatus.
  int32_t launch(void *const *buffers, const int64_t *sizes) {
    ensure();
    const runtime::KernelArgs args{buffers, sizes, nullptr, 0, nullptr, 0, nullptr};
    const int64_t range = range_(sizes);
    if (range == 1) [[likely]]
      return runHere(args, 1);
    return launchMany(args, range);
  }
  /// The same for a class with one symbol, the number of elements of its result.
  int32_t launchFlat(void *const *buffers, const int64_t &size) {
    ensure();
    const runtime::KernelArgs args{buffers, &size, nullptr, 0, nullptr, 0, nullptr};
    if (size <= oneUnit_) [[likely]]
      return runHere(args, 1);
    return launchMany(args, range_(&size));
  }
  runtime::OpCost *costOfFlat(int64_t size) {
    return ready() ? &costs_[std::bit_width(static_cast<uint64_t>(size))] : nullptr;
  }
  /// The predicted cost of a launch at these sizes, for the engine. Null until the code is compiled: such a task is
  /// queued.
  runtime::OpCost *costOf(const int64_t *sizes) {
    return ready() ? &costs_[std::bit_width(static_cast<uint64_t>(points_(sizes)))] : nullptr;
  }

protected:
  void compile() override;

private:
  void setCode(Code code);
  int32_t runHere(const runtime::KernelArgs &args, int64_t range) const {
    runtime::FloatScope scope(code_.floats);
    return code_.fn(&args, 0, range);
  }
  int32_t launchMany(const runtime::KernelArgs &args, int64_t range);

  const codegen::OpCall call_;
  Code code_;
  SizeCode range_, points_;
  int64_t oneUnit_ = 0; ///< of a class with one symbol: the largest size that is one unit of work
  runtime::OpCost costs_[64];
};

/// The kernel of a class, compiled or not; null if the class has none. The cache keeps the last few thousand.
std::shared_ptr<Kernel> findKernel(const codegen::OpCall &call);

/// One more compiled function.
void countEagerFunction();
/// Incremented when kernels are forgotten: every other cache of kernels compares it and drops its own.
extern std::atomic<uint64_t> generation;
/// Forgets every compiled kernel; the prebuilt ones stay usable. For measuring compilation from a cold start.
void clearKernels();

} // namespace tressel::eager
