#include "frontend/eager/Kernel.h"

#include "runtime/types/Clock.h"
#include "frontend/eager/Prebuilt.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Shutdown.h"
#include "tressel/runtime/ThreadPool.h"

#include <tressel/eager.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <thread>
#include <unordered_map>
#include <utility>

namespace tressel::eager {

std::atomic<uint64_t> generation{1};

namespace {

/// Kernels and negative answers that are cached; the oldest are evicted.
constexpr size_t kMostKernels = 4096;
/// Work per piece that is worth a thread of the pool; less than kSplitNs is not split.
constexpr double kPieceNs = 10000, kSplitNs = 25000;

struct Counts {
  std::atomic<uint64_t> prebuilt{0}, compiled{0}, programs{0}, failed{0}, nanoseconds{0};
};
Counts counts;

class Table {
public:
  static Table &instance() {
    static auto *table = new Table; // queued tasks may outlive static destruction
    return *table;
  }
  std::shared_ptr<Kernel> find(const codegen::OpCall &call) {
    std::string key = call.str();
    {
      std::lock_guard lock(mutex_);
      if (auto it = kernels_.find(key); it != kernels_.end() && !(it->second && it->second->failed()))
        return it->second;
    }
    std::shared_ptr<Kernel> made;
    if (auto code = findPrebuilt(call)) {
      made = std::make_shared<Kernel>(call, std::move(*code));
      counts.prebuilt.fetch_add(1, std::memory_order_relaxed);
    } else {
      const runtime::StaticsUse use;
      if (codegen::planOpKernel(call))
        made = std::make_shared<Kernel>(call);
    }
    std::lock_guard lock(mutex_);
    auto [it, isNew] = kernels_.emplace(key, made);
    if (!isNew) { // another thread was faster, or compiling it failed before
      if (it->second && it->second->failed())
        it->second = made;
      return it->second;
    }
    order_.push_back(std::move(key));
    if (order_.size() > kMostKernels) {
      kernels_.erase(order_.front());
      order_.pop_front();
    }
    if (made && !made->ready())
      compileInBackground(made);
    return made;
  }
  void clear() {
    std::lock_guard lock(mutex_);
    kernels_.clear();
    order_.clear();
  }

private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Kernel>> kernels_; ///< null: the class has none
  std::deque<std::string> order_;
};

/// The background compiler's thread. Tasks do not depend on it: they compile what it has not begun. It ends with the
/// process.
class Compiler {
public:
  static Compiler &instance() {
    static auto *compiler = new Compiler;
    return *compiler;
  }
  void push(std::shared_ptr<Compiled> what) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(what));
    if (!std::exchange(begun_, true)) {
      runtime::startInternalThread("tressel.compile", [this] { work(); }).detach();
      runtime::atShutdown({.stage = runtime::ShutdownStage::Code,
                           .isNeeded = [] { return WaitsForCode::count.load() > 0; },
                           .finish = [](std::chrono::steady_clock::time_point until) { instance().finish(until); },
                           .patience = std::chrono::seconds(5)});
    }
    wake_.notify_one();
  }

  void finish(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    idle_.wait_until(lock, until, [&] { return queue_.empty() && !current_; });
  }

private:
  static void ensure(Compiled &what) {
    try {
      what.ensure();
    } catch (const std::exception &) { // reported to the tasks that use it
    }
  }
  [[noreturn]] void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      current_ = nullptr;
      if (queue_.empty())
        idle_.notify_all();
      wake_.wait(lock, [&] { return !queue_.empty(); });
      current_ = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      if (current_.use_count() > 1)
        ensure(*current_);
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<std::shared_ptr<Compiled>> queue_;
  std::shared_ptr<Compiled> current_; ///< of the thread
  bool begun_ = false;
};

} // namespace

void Compiled::ensureSlowly() {
  const runtime::StaticsUse use; // taken before the claim, as it throws at the end of the process
  State expected = State::Waiting;
  if (state_.compare_exchange_strong(expected, State::Running)) {
    const auto start = std::chrono::steady_clock::now();
    State after = State::Done;
    try {
      compile();
    } catch (...) {
      error_ = std::current_exception();
      after = State::Failed;
      counts.failed.fetch_add(1, std::memory_order_relaxed);
    }
    counts.nanoseconds.fetch_add(static_cast<uint64_t>(1e9 * runtime::secondsSince(start)), std::memory_order_relaxed);
    state_.store(after, std::memory_order_release);
    state_.notify_all();
  } else {
    while (state_.load(std::memory_order_acquire) == State::Running)
      state_.wait(State::Running, std::memory_order_acquire);
  }
  if (failed())
    std::rethrow_exception(error_);
}

std::atomic<int64_t> WaitsForCode::count{0};
void compileInBackground(std::shared_ptr<Compiled> what) { Compiler::instance().push(std::move(what)); }

Kernel::Kernel(codegen::OpCall call, Code code) : call_(std::move(call)) {
  setCode(std::move(code));
  setReady();
}

void Kernel::setCode(Code code) {
  range_ = SizeCode(code.range, call_.symbols);
  points_ = SizeCode(code.points, call_.symbols);
  if (call_.symbols.size() == 1) {
    int64_t below = 0, above = int64_t(1) << 24; // one unit's largest size lies between
    while (below + 1 < above) {
      const int64_t middle = (below + above) / 2;
      (range_(&middle) <= 1 ? below : above) = middle;
    }
    oneUnit_ = below;
  } else if (call_.symbols.empty()) {
    oneUnit_ = 1; // single elements
  }
  for (int bits = 0; bits < 64; ++bits) { // 15 ns of a call, and what it computes
    const double ns = 15 + code.nsPerPoint * 0.75 * static_cast<double>(uint64_t(1) << bits);
    new (&costs_[bits]) runtime::OpCost(ns);
  }
  code_ = std::move(code);
}

void Kernel::compile() {
  std::optional<codegen::OpKernel> planned = codegen::planOpKernel(call_);
  if (!planned)
    throw InternalError("an op that had a kernel has none: " + call_.str());
  auto image = runtime::Image::load(codegen::compileOpKernels({&*planned, 1}));
  Code code;
  code.fn = reinterpret_cast<runtime::KernelFn>(image->find(planned->symbol));
  if (!code.fn)
    throw InternalError("no kernel in the image of " + call_.str());
  code.owner = std::move(image);
  code.range = planned->range, code.points = planned->points, code.nsPerPoint = planned->nsPerPoint;
  code.floats = planned->floats;
  setCode(std::move(code));
  counts.compiled.fetch_add(1, std::memory_order_relaxed);
}

int32_t Kernel::launchMany(const runtime::KernelArgs &args, int64_t range) {
  if (range <= 0)
    return runtime::kKernelOk;
  const double ns = code_.nsPerPoint * static_cast<double>(points_(args.scalars));
  if (ns < kSplitNs)
    return runHere(args, range);
  const auto pieces = static_cast<int64_t>(std::min(ns / kPieceNs, 1e6));
  std::atomic<int32_t> status{runtime::kKernelOk};
  runtime::ThreadPool::global().parallelFor(
      range, std::max<int64_t>(1, range / pieces), [&](int64_t begin, int64_t end, int worker) {
        runtime::KernelArgs own = args;
        own.worker = worker;
        const runtime::FloatScope scope(code_.floats);
        if (const int32_t failed = code_.fn(&own, begin, end); failed != runtime::kKernelOk)
          status.store(failed, std::memory_order_relaxed);
      });
  return status;
}

std::shared_ptr<Kernel> findKernel(const codegen::OpCall &call) { return Table::instance().find(call); }

void countEagerFunction() { counts.programs.fetch_add(1, std::memory_order_relaxed); }

void clearKernels() {
  Table::instance().clear();
  generation.fetch_add(1, std::memory_order_acq_rel);
}

} // namespace tressel::eager

namespace tressel {

EagerStats eager_stats() {
  auto read = [](const std::atomic<uint64_t> &n) { return n.load(std::memory_order_relaxed); };
  const eager::Counts &counts = eager::counts;
  return {eager::numPrebuilt(),  read(counts.prebuilt), read(counts.compiled),
          read(counts.programs), read(counts.failed),   1e-9 * static_cast<double>(read(counts.nanoseconds))};
}

} // namespace tressel
