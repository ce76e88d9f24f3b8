// Kernels of imperative ops: one per layout class (Class.h), for all sizes. The common ones lie compiled in the library
// (Prebuilt.h); others are compiled by a thread of their own, or by the first task that needs one, whichever comes
// first.
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

/// Something that is compiled once, by whoever begins first.
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

/// Has it compiled soon by a thread of the process, in the order of the calls; not if nobody remembers it by then.
void compileInBackground(std::shared_ptr<Compiled> what);

/// A task in the queue that will need code which is not there yet has one of these.
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
  /// With code that is there already.
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
  /// The same of a class of one size, that of its results.
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
  /// What a launch takes at these sizes, for the engine. Null while there is no code: such a task is queued.
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
  int64_t oneUnit_ = 0; ///< of a class of one size: the largest that is one unit of work
  runtime::OpCost costs_[64];
};

/// The kernel of a class, compiled or not; null if the class has none. The last few thousand are remembered.
std::shared_ptr<Kernel> findKernel(const codegen::OpCall &call);

/// One more compiled function.
void countEagerFunction();
/// Counts up when kernels are forgotten: whoever remembers some beside findKernel forgets them too.
extern std::atomic<uint64_t> generation;
/// Forgets all that was compiled; what comes with the library stays usable. For measuring compilation from nothing.
void clearKernels();

} // namespace tressel::eager
