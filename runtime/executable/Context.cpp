// Runs programs of one processor. Everything that a call needs is laid out when the context is made: operand pointers,
// and one record per command that points to its own. A call sets the pointers to inputs and outputs and walks the
// records. Commands run in issue order, which is valid for any number of streams because waits point backward.
#include "Caller.h"
#include "ExecutableImpl.h"
#include "Operands.h"
#include "runtime/schedule/ScheduleSizes.h"
#include "runtime/types/Clock.h"
#include "runtime/types/Concat.h"
#include "runtime/types/KernelStatus.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/FloatMode.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/States.h"
#include "tressel/runtime/ThreadPool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

namespace tressel::runtime {
namespace {

/// Target duration of the parts in which concurrent commands are given to threads: a thread that is awake takes one
/// within two microseconds.
constexpr int32_t kPartNs = 10'000;

/// Copies and fills of at least this many bytes are split over the pool.
constexpr int64_t kSplitBytes = int64_t(1) << 20;

/// One command, ready to run.
struct Step {
  CommandKind kind;
  uint8_t elementBytes = 1; // Fill
  bool hasIndex = false;    // Loop: the body takes the number of the iteration
  uint32_t command = 0;
  uint32_t body = 0; // Branch, While, Loop: the first of its command lists
  uint32_t together = 1;              // Launch: number of steps from here on that run concurrently
  int32_t nsBefore = 0, nsBehind = 0; // and this step's share of their total work, as a range
  KernelFn fn = nullptr, epilogue = nullptr;
  KernelArgs args = {};
  int64_t range = 0, grain = 1; // Launch: units. Copy and Fill: bytes. Loop: trips.
  int64_t scratchStride = 0;
  uint64_t fillValue = 0;
  FloatMode floats = FloatMode::Any, epilogueFloats = FloatMode::Any;

  /// A single call of the kernel, without an epilogue or a split: the common case.
  bool isPlain() const { return !epilogue && range <= grain && range > 0; }
};

/// A command list with its bodies, ready to run for one set of sizes.
struct LaidOut {
  const Schedule *schedule = nullptr;
  Operands operands;
  std::vector<std::vector<Step>> steps; ///< by command list

  std::span<const Step> of(uint32_t list) const { return steps[list]; }
};

/// Advances a loop's operands, and restores them at the end of the scope, after a failure too.
class Moving {
public:
  Moving(Operands &operands, uint32_t body) : operands_(operands), body_(body) {}
  ~Moving() { operands_.move(body_, -steps_); }
  Moving(const Moving &) = delete;
  Moving &operator=(const Moving &) = delete;
  void next() {
    operands_.move(body_, 1);
    ++steps_;
  }

private:
  Operands &operands_;
  const uint32_t body_;
  int64_t steps_ = 0;
};

/// Marks runs of commands that several threads may execute concurrently: consecutive generated kernels of which none
/// touches what another writes, each too short to be split. Kernels of libraries may have other effects than on their
/// operands, so those keep their order.
class SideBySide {
public:
  SideBySide(const Schedule &s, uint32_t list, std::span<Step> steps) : s_(s), list_(listOf(s, list)), steps_(steps) {}
  /// No run extends across `boundary`.
  void mark(size_t boundary) {
    for (size_t i = 0; i <= steps_.size(); ++i)
      if (i == steps_.size() || i == boundary || !joins(i)) {
        close(i);
        if (i < steps_.size() && canJoin(i))
          add(i);
      } else {
        add(i);
      }
  }

private:
  static constexpr size_t kMost = 256;
  struct Range {
    Space space;
    uint32_t index;
    int64_t begin, end;
    bool isWritten;
  };
  bool canJoin(size_t i) const {
    const Command &c = list_.commands[steps_[i].command];
    return c.kind == CommandKind::Launch && s_.kernels[c.kernel].target == KernelTarget::Host && steps_[i].range > 0 &&
           steps_[i].range <= steps_[i].grain && nsOf(i) <= 2 * kPartNs;
  }
  /// Rough estimate, with operands in a near cache.
  int64_t nsOf(size_t i) const {
    constexpr int64_t kBytesPerNs = 64, kFlopsPerNs = 32;
    const KernelDesc &desc = s_.kernels[list_.commands[steps_[i].command].kernel];
    return desc.bytes.number() / kBytesPerNs + desc.flops.number() / kFlopsPerNs + 1;
  }
  template <typename Fn> bool anyRange(size_t i, Fn fn) const {
    const Command &c = list_.commands[steps_[i].command];
    for (uint32_t k = 0; k < c.numOperands; ++k) {
      const Operand &o = list_.operands[c.firstOperand + k];
      const BufferDesc &b = s_.buffers[o.buffer];
      if (fn(Range{b.space, b.index, b.offset.number(), (b.offset + b.bytes).number(), o.access != Access::Read}))
        return true;
    }
    return false;
  }
  bool joins(size_t i) const {
    return first_ != i && i - first_ < kMost && canJoin(i) && !anyRange(i, [&](const Range &mine) {
             return std::ranges::any_of(ranges_, [&](const Range &other) {
               return (mine.isWritten || other.isWritten) && mine.space == other.space && mine.index == other.index && mine.begin < other.end &&
                      other.begin < mine.end;
             });
           });
  }
  void add(size_t i) {
    if (ns_ == 0)
      first_ = i;
    ns_ += nsOf(i);
    anyRange(i, [&](const Range &range) {
      ranges_.push_back(range);
      return false;
    });
  }
  /// Ends the run before i.
  void close(size_t i) {
    if (ns_ >= 2 * kPartNs && i - first_ > 1) {
      steps_[first_].together = static_cast<uint32_t>(i - first_);
      int32_t ns = 0;
      for (size_t k = first_; k < i; ++k) {
        steps_[k].nsBefore = ns;
        steps_[k].nsBehind = ns += static_cast<int32_t>(nsOf(k));
      }
    }
    first_ = i;
    ns_ = 0;
    ranges_.clear();
  }

  const Schedule &s_;
  const CommandList &list_;
  std::span<Step> steps_;
  size_t first_ = 0;
  int64_t ns_ = 0; ///< of the current run
  std::vector<Range> ranges_;
};

bool writesState(const Schedule &s, const CommandList &commandList, const Command &c) {
  for (uint32_t k = 0; k < c.numOperands; ++k) {
    const Operand &operand = commandList.operands[c.firstOperand + k];
    if (const BufferDesc &b = s.buffers[operand.buffer];
        operand.access != Access::Read && b.space == Space::State && s.states[b.index].kind == StateKind::Mutable)
      return true;
  }
  for (uint32_t k = 0; k < numBodies(c.kind); ++k)
    for (const CommandList &body = s.bodies[c.body + k]; const Command &inner : body.commands)
      if (writesState(s, body, inner))
        return true;
  return false;
}
size_t firstWrite(const Schedule &s) {
  const auto &commands = s.step.commands;
  return static_cast<size_t>(std::ranges::find_if(commands, [&](const Command &c) { return writesState(s, s.step, c); }) -
                             commands.begin());
}

/// The step laid out for one set of sizes; the only one of a program without symbols.
struct Instance {
  dim::Values dims;
  Schedule numbers; ///< empty without symbols: the executable's own schedule is used
  LaidOut step;
  /// index of the first command of the step that writes a mutable state; the number of commands if none does
  size_t firstWrite = 0;
  std::vector<int64_t> inputBytes, outputBytes;

  void measure(const Schedule &s) {
    firstWrite = runtime::firstWrite(s);
    for (const ValueDesc &input : s.inputs)
      inputBytes.push_back(input.type.bytes());
    for (const ValueDesc &output : s.outputs)
      outputBytes.push_back(output.type.bytes());
  }
  /// checkArguments for a single call, fast enough for every call.
  bool fits(std::span<const void *const> inputs, std::span<void *const> outputs) const {
    bool good = inputs.size() == inputBytes.size() && outputs.size() == outputBytes.size();
    for (size_t i = 0; good && i < inputs.size(); ++i)
      good = inputs[i] || !inputBytes[i];
    auto apart = [](const void *a, int64_t aBytes, const void *b, int64_t bBytes) {
      const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
      return !aBytes || !bBytes || x >= y + static_cast<uintptr_t>(bBytes) || y >= x + static_cast<uintptr_t>(aBytes);
    };
    for (size_t i = 0; good && i < outputs.size(); ++i) {
      good = outputs[i] || !outputBytes[i];
      for (size_t k = 0; good && k < inputs.size(); ++k)
        good = apart(outputs[i], outputBytes[i], inputs[k], inputBytes[k]);
      for (size_t k = 0; good && k < i; ++k)
        good = apart(outputs[i], outputBytes[i], outputs[k], outputBytes[k]);
    }
    return good;
  }
};
int32_t runPlain(const Step &step, FloatScope &scope) {
  scope.enter(step.floats);
  return step.fn(&step.args, 0, step.range);
}

/// Alternates between a kernel and its epilogue chunk by chunk, so that the epilogue finds the kernel's results in the
/// cache.
int32_t runKernel(const Step &step, const KernelArgs &args, int64_t begin, int64_t end, FloatScope &scope) {
  scope.enter(step.floats);
  if (!step.epilogue)
    return step.fn(&args, begin, end);
  int32_t status = kKernelOk;
  for (int64_t to; begin < end && status == kKernelOk; begin = to) {
    to = step.grain < end - begin ? begin + step.grain : end;
    scope.enter(step.floats);
    status = step.fn(&args, begin, to);
    scope.enter(step.epilogueFloats);
    if (status == kKernelOk)
      status = step.epilogue(&args, begin, to);
  }
  return status;
}

int32_t launch(const Step &step, FloatScope &callers) {
  if (step.range <= step.grain)
    return step.range > 0 ? runKernel(step, step.args, 0, step.range, callers) : int32_t(kKernelOk);
  std::atomic<int32_t> status{kKernelOk};
  ThreadPool::global().parallelFor(step.range, step.grain, [&](int64_t begin, int64_t end, int worker) {
    KernelArgs args = step.args;
    args.worker = worker;
    if (args.scratch)
      args.scratch = static_cast<std::byte *>(args.scratch) + worker * step.scratchStride;
    FloatScope scope;
    if (int32_t code = runKernel(step, args, begin, end, scope); code != kKernelOk) {
      int32_t none = kKernelOk;
      status.compare_exchange_strong(none, code, std::memory_order_relaxed);
    }
  });
  return status.load(std::memory_order_relaxed);
}

/// Runs independent steps concurrently. Returns the first in their order that failed, with its status, or null.
const Step *launchSideBySide(std::span<const Step> steps, int32_t &status) {
  std::mutex mutex;
  const Step *failed = nullptr;
  ThreadPool::global().parallelFor(steps.back().nsBehind, kPartNs, [&](int64_t begin, int64_t end, int worker) {
    FloatScope scope;
    // The steps whose share of the work begins in this part.
    for (auto at = std::ranges::lower_bound(steps, begin, {}, &Step::nsBefore); at != steps.end() && at->nsBefore < end; ++at) {
      const Step &step = *at;
      KernelArgs args = step.args;
      args.worker = worker;
      if (args.scratch)
        args.scratch = static_cast<std::byte *>(args.scratch) + worker * step.scratchStride;
      const int32_t code = runKernel(step, args, 0, step.range, scope);
      if (code == kKernelOk)
        continue;
      std::lock_guard lock(mutex);
      if (!failed || &step < failed)
        failed = &step, status = code;
      return;
    }
  });
  return failed;
}

void copyBytes(void *to, const void *from, int64_t bytes) {
  ThreadPool::global().parallelFor(bytes, kSplitBytes, [&](int64_t begin, int64_t end, int) {
    std::memcpy(static_cast<std::byte *>(to) + begin, static_cast<const std::byte *>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

void fillBytes(void *to, const Step &step) {
  // A pattern of eight bytes is valid for every element size.
  uint64_t pattern = 0;
  std::memcpy(&pattern, &step.fillValue, step.elementBytes);
  for (unsigned bytes = step.elementBytes; bytes < 8; bytes *= 2)
    pattern |= pattern << (8 * bytes);
  ThreadPool::global().parallelFor((step.range + 7) / 8, kSplitBytes / 8, [&](int64_t begin, int64_t end, int) {
    auto *bytes = static_cast<std::byte *>(to);
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(bytes + i * 8, &pattern, static_cast<size_t>(std::min<int64_t>(8, step.range - i * 8)));
  });
}

} // namespace

struct Context::Impl {
  explicit Impl(std::shared_ptr<const ExecutableImpl> executable) : executable(std::move(executable)), states(schedule()) {}

  std::shared_ptr<const ExecutableImpl> executable;
  std::vector<StorageRef> arenas;
  std::vector<StorageRef> derived; // by state; null where the caller binds it
  StorageRef scratch;
  int64_t scratchStride = 0;
  BoundStates states;
  LaidOut prepare;
  BySizes<Instance> instances;
  dim::Values maxDims;
  bool wroteStates = false;
  std::shared_ptr<PackageStates> shared; ///< the bound states, if they are shared with other contexts
  uint64_t seen = 0;                     ///< version of `shared` that is bound
  bool updatesStates = false;
  Profile *profile = nullptr;
  // steps hold its address, so it must not move
  std::unique_ptr<KernelFailure> failure = std::make_unique<KernelFailure>();
  HostAllocator allocator;
  int64_t maxBytes = std::numeric_limits<int64_t>::max();
  std::vector<const void *> inputPointers; // of a call with views
  std::vector<void *> outputPointers;
  dim::Values viewDims;

  const Schedule &schedule() const { return executable->schedule(); }
  void run(Instance &instance, std::span<const void *const> inputs, std::span<void *const> outputs);

  /// `s` is the executable's schedule, or its instance for some sizes.
  void layOut(const Schedule &s, uint32_t root, LaidOut &out) const {
    out.schedule = &s;
    out.operands.layOut(s, root);
    std::vector<void *> begins;
    for (const StorageRef &arena : arenas)
      begins.push_back(arena->data());
    out.operands.bind(Space::Arena, begins);
    begins.clear();
    for (const ConstantDesc &constant : s.constants)
      begins.push_back(const_cast<std::byte *>(executable->constants + constant.offset));
    out.operands.bind(Space::Constant, begins);
    bindStates(out);
    out.steps.assign(s.bodies.size() + 2, {});
    layOutSteps(s, root, out);
    if (ThreadPool::global().numThreads() > 1)
      for (uint32_t list = 0; list < out.steps.size(); ++list)
        SideBySide(s, list, out.steps[list]).mark(list == 1 ? firstWrite(s) : SIZE_MAX);
  }
  void bind(std::span<void *const> pointers, std::shared_ptr<const void> owner);
  void bindShared();
  void bindStates(LaidOut &out) const {
    for (uint32_t i = 0; i < derived.size(); ++i)
      if (void *memory = derived[i] ? derived[i]->data() : states[i])
        out.operands.bind(Space::State, i, memory);
  }
  void layOutSteps(const Schedule &s, uint32_t list, LaidOut &out) const {
    const CommandList &commands = listOf(s, list);
    for (size_t i = 0; i < commands.commands.size(); ++i) {
      const Command &c = commands.commands[i];
      Step step{.kind = c.kind, .command = static_cast<uint32_t>(i)};
      step.args.buffers = out.operands.of(list).data() + c.firstOperand;
      step.args.failure = failure.get();
      if (c.kind == CommandKind::Launch) {
        const KernelDesc &desc = s.kernels[c.kernel];
        step.fn = executable->kernels[c.kernel].fn;
        step.epilogue = executable->epilogues[c.kernel];
        step.args.scalars = c.numScalars ? bitsOf(commands.scalars) + c.firstScalar : nullptr; // numbers
        step.args.state = executable->kernels[c.kernel].state;
        step.args.scratch = desc.scratchBytes != 0 ? scratch->data() : nullptr;
        step.scratchStride = scratchStride;
        step.range = desc.range.number();
        step.grain = desc.grain.number();
        step.floats = desc.floats, step.epilogueFloats = desc.epilogueFloats;
      } else if (hasBodies(c.kind)) {
        step.body = bodyNumber(c);
        for (uint32_t k = 0; k < numBodies(c.kind); ++k)
          layOutSteps(s, bodyNumber(c, k), out);
        if (c.kind == CommandKind::Loop) {
          step.range = commands.scalars[c.firstScalar].number();
          step.hasIndex = hasIndex(c);
        }
      } else {
        const BufferDesc &b = s.buffers[commands.operands[c.firstOperand].buffer];
        step.range = b.bytes.number();
        step.elementBytes = static_cast<uint8_t>(sizeOf(b.type.dtype));
        step.fillValue = c.fillValue;
      }
      out.steps[list].push_back(step);
    }
  }

  /// Bytes held now, without arenas that are about to be replaced.
  int64_t heldBytes() const {
    int64_t bytes = scratch ? scratch->bytes() : 0;
    for (const auto *list : {&arenas, &derived})
      for (const StorageRef &storage : *list)
        bytes += storage ? storage->bytes() : 0;
    return bytes;
  }

  /// Allocates, and adds the bytes to `held`.
  StorageRef allocate(int64_t bytes, int64_t &held) const {
    if (bytes > maxBytes - held)
      throwError<OutOfMemory>("'", schedule().name, "' needs ", held + bytes, " bytes, but its context may hold ", maxBytes);
    held += bytes;
    if (!allocator.allocate || bytes == 0)
      return Storage::allocate(bytes);
    struct Block {
      HostAllocator from;
      size_t bytes;
    };
    auto block = std::make_unique<Block>(allocator, static_cast<size_t>(bytes));
    void *memory = allocator.allocate(block->bytes, 64, allocator.user);
    if (!memory)
      throwError<OutOfMemory>("the caller's allocator has no ", bytes, " bytes for '", schedule().name, "'");
    auto release = [](void *data, void *user) {
      std::unique_ptr<Block> block(static_cast<Block *>(user));
      if (block->from.release)
        block->from.release(data, block->bytes, block->from.user);
    };
    return Storage::adopt(memory, bytes, release, block.release());
  }

  /// Provides the arenas for a schedule of numbers. Their contents are not preserved: command lists leave nothing
  /// there. Returns whether an address changed.
  bool provide(const Schedule &s) {
    // All or nothing: if one allocation fails, the old arenas stay.
    std::vector<StorageRef> larger = arenas;
    larger.resize(s.arenas.size());
    int64_t held = heldBytes(); // counts the old blocks until the new ones exist
    for (size_t i = 0; i < s.arenas.size(); ++i)
      if (!larger[i] || larger[i]->bytes() < s.arenas[i].bytes.number())
        larger[i] = allocate(s.arenas[i].bytes.number(), held);
    int64_t stride = scratchStride;
    for (const KernelDesc &kernel : s.kernels)
      stride = std::max(stride, (kernel.scratchBytes + 63).number() / 64 * 64);
    if (stride > scratchStride)
      scratch = allocate(stride * ThreadPool::global().numThreads(), held);
    bool moved = stride > scratchStride;
    scratchStride = stride;
    for (size_t i = 0; i < larger.size(); ++i)
      moved |= i >= arenas.size() || arenas[i] != larger[i];
    arenas = std::move(larger);
    return moved;
  }

  /// The step laid out for these sizes, from the cache or made now.
  Instance &instanceFor(const dim::Values &dims) {
    if (Instance *known = instances.find(dims))
      return *known;
    for (const auto &[symbol, most] : maxDims.all())
      if (const Size *value = dims.find(symbol); value && value->number() > most.number())
        throwError<ShapeError>("dimension '", dim::symbolName(symbol), "' of '", schedule().name, "' is ", *value,
                               ", but the context was made for at most ", most);
    auto made = std::make_unique<Instance>();
    made->dims = dims;
    made->numbers = numbersFor(schedule(), dims);
    if (provide(made->numbers)) {
      instances.clear(); // they point into freed arenas
      layOut(schedule(), 0, prepare);
    }
    layOut(made->numbers, 1, made->step);
    made->measure(made->numbers);
    return instances.add(std::move(made));
  }

  /// Computes the symbols' values from the inputs. Throws ShapeError if an input does not match its type. `list` is
  /// type-erased, so that one copy of the code serves all callers.
  [[gnu::noinline]] void checkInputs(size_t count, const TensorType &(*typeOf)(const void *list, size_t i),
                                     const void *list, dim::Values &dims) const {
    const Schedule &s = schedule();
    std::array<Shape, 16> few; // a call must not allocate
    std::vector<Shape> many(count > few.size() ? count : 0);
    Shape *shapes = many.empty() ? few.data() : many.data();
    for (size_t i = 0; i < count; ++i) {
      const TensorType &type = typeOf(list, i);
      shapes[i] = type.shape;
      if (i < s.inputs.size() && type.dtype != s.inputs[i].type.dtype)
        throwError<ShapeError>("input '", s.inputs[i].name, "' of '", s.name, "' is ", s.inputs[i].type.str(),
                               ", given ", type.str());
    }
    dims = dimsOf(s, std::span<const Shape>(shapes, count));
  }

  [[noreturn]] void fail(const CommandList &commandList, const Step &step, int32_t status) const {
    const Command &c = commandList.commands[step.command];
    throw RuntimeError(detailsOf(schedule(), c.loc,
                                 status == kKernelSaysWhy ? failure->take()
                                                          : concat(describeStatus(status), " in kernel '", schedule().kernels[c.kernel].symbol, "'")));
  }

  [[gnu::noinline]] void executeBodies(const Step &step, LaidOut &at, FloatScope &scope) {
    void *const *operands = step.args.buffers;
    auto execute = [&](uint32_t body) { this->execute<false>(at, body, at.of(body), scope); };
    auto flag = [&] { return *static_cast<const uint8_t *>(operands[0]) != 0; };
    switch (step.kind) {
    case CommandKind::Branch:
      execute(step.body + (flag() ? 0 : 1));
      break;
    case CommandKind::While:
      for (execute(step.body); flag(); execute(step.body))
        execute(step.body + 1);
      break;
    default: {
      Moving moving(at.operands, step.body);
      for (int64_t i = 0; i < step.range; ++i) {
        if (step.hasIndex)
          *static_cast<int64_t *>(operands[0]) = i;
        execute(step.body);
        moving.next();
      }
    }
    }
  }

  /// One FloatScope for the whole call: consecutive kernels of one mode switch it once.
  template <bool Profiled> void execute(LaidOut &at, uint32_t list, std::span<const Step> steps, FloatScope &scope) {
    for (size_t i = 0; i < steps.size(); ++i) {
      const Step &step = steps[i];
      if (!Profiled && step.together > 1) [[unlikely]] {
        int32_t status = kKernelOk;
        if (const Step *failed = launchSideBySide(steps.subspan(i, step.together), status))
          fail(listOf(*at.schedule, list), *failed, status);
        i += step.together - 1;
        continue;
      }
      [[maybe_unused]] int64_t start = 0;
      if constexpr (Profiled)
        start = nowNs();
      switch (step.kind) {
      case CommandKind::Launch:
        if (int32_t status = step.isPlain() ? runPlain(step, scope) : launch(step, scope); status != kKernelOk)
            [[unlikely]]
          fail(listOf(*at.schedule, list), step, status);
        break;
      case CommandKind::Copy:
        copyBytes(step.args.buffers[1], step.args.buffers[0], step.range);
        break;
      case CommandKind::Fill:
        fillBytes(step.args.buffers[0], step);
        break;
      case CommandKind::Branch:
      case CommandKind::While:
      case CommandKind::Loop:
        executeBodies(step, at, scope);
        break;
      case CommandKind::HostCall:
      case CommandKind::Collective:
        break; // rejected when the context was made
      }
      if constexpr (Profiled)
        profile->commands[step.command] = {start, nowNs()};
    }
  }
};

Context::Context(std::shared_ptr<const Executable> executable, const ContextOptions &options)
    : impl_(std::make_unique<Impl>(std::static_pointer_cast<const ExecutableImpl>(std::move(executable)))) {
  Impl &impl = *impl_;
  impl.allocator = options.allocator;
  impl.maxBytes = options.max_bytes;
  const Schedule &schedule = impl.schedule();
  rejectUnsupported(schedule);
  int64_t held = 0;
  for (const StateDesc &state : schedule.states)
    impl.derived.push_back(state.kind == StateKind::Derived ? impl.allocate(state.type.bytes(), held) : StorageRef());
  for (const auto &[name, size] : options.max_dims) {
    const Size symbol = findDim(schedule, name);
    if (symbol == 0)
      throwError<Error>("'", schedule.name, "' has no dimension '", name, "' of symbolic size");
    const dim::Bounds range = dim::bounds(symbol);
    if (size < range.lo || size > range.hi)
      throwError<Error>("dimension '", name, "' of '", schedule.name, "' lies between ", range.lo, " and ", range.hi,
                        ", so it is never as large as ", size);
    impl.maxDims.bind(symbol, size);
  }
  if (schedule.dims.empty()) {
    impl.provide(schedule);
    Instance &only = impl.instances.add(std::make_unique<Instance>());
    impl.layOut(schedule, 1, only.step);
    only.measure(schedule);
  } else {
    // With symbolic sizes prepare runs for the least ones, which take least memory: the sizes it uses do not depend on
    // symbols.
    dim::Values sizes = leastDims(schedule);
    impl.provide(instantiate(schedule, sizes));
    if (!options.max_dims.empty()) {
      dim::Values most = impl.maxDims;
      for (const auto &[symbol, least] : sizes.all())
        most.bind(symbol, least); // for a symbol without a value
      impl.provide(instantiate(schedule, most));
    }
  }
  impl.layOut(schedule, 0, impl.prepare);
  impl.updatesStates =
      std::ranges::any_of(schedule.states, [](const StateDesc &state) { return state.kind == StateKind::Mutable; });
  if (impl.states.numCallers() == 0) {
    bindStates({});
  } else if (options.states) {
    impl.shared = options.states;
    impl.bindShared();
  }
}

Context::~Context() = default;
Context::Context(Context &&) noexcept = default;
Context &Context::operator=(Context &&) noexcept = default;

const Executable &Context::executable() const { return *impl_->executable; }

void Context::bindStates(std::span<void *const> states, std::shared_ptr<const void> owner) {
  impl_->bind(states, std::move(owner));
}

void Context::Impl::bind(std::span<void *const> pointers, std::shared_ptr<const void> owner) {
  states.bind(pointers, std::move(owner), [&] {
    bindStates(prepare);
    for (const auto &instance : instances)
      bindStates(instance->step);
    FloatScope scope;
    execute<false>(prepare, 0, prepare.of(0), scope);
  });
}

/// Rebinds states that are shared, after another context has changed them.
void Context::Impl::bindShared() {
  bind(shared->pointersFor(schedule()), shared);
  seen = shared->version();
}

void Context::moveState(size_t index, void *memory) {
  const auto state = static_cast<uint32_t>(impl_->states.move(index, memory));
  for (const auto &instance : impl_->instances)
    instance->step.operands.bind(Space::State, state, memory);
}
bool Context::wroteStates() const { return impl_->wroteStates; }

void Context::Impl::run(Instance &instance, std::span<const void *const> inputs, std::span<void *const> outputs) {
  LaidOut &step = instance.step;
  if (shared && shared->version() != seen) [[unlikely]]
    bindShared();
  if (!states.areBound() || !instance.fits(inputs, outputs)) [[unlikely]] {
    const CallArguments call{inputs, outputs};
    checkArguments(*step.schedule, {&call, 1}, states.areBound());
  }
  step.operands.bind(Space::Input, {const_cast<void *const *>(inputs.data()), inputs.size()});
  step.operands.bind(Space::Output, outputs);
  wroteStates = false;
  if (shared && updatesStates)
    seen = shared->change();
  FloatScope scope;
  const std::span<const Step> steps = step.of(1), reading = steps.first(instance.firstWrite);
  if (profile) [[unlikely]] {
    profile->commands.resize(steps.size());
    execute<true>(step, 1, reading, scope);
    wroteStates = reading.size() < steps.size();
    execute<true>(step, 1, steps.subspan(reading.size()), scope);
  } else {
    execute<false>(step, 1, reading, scope);
    wroteStates = reading.size() < steps.size();
    execute<false>(step, 1, steps.subspan(reading.size()), scope);
  }
}

void Context::run(std::span<const void *const> inputs, std::span<void *const> outputs) {
  Impl &impl = *impl_;
  if (!impl.schedule().dims.empty())
    throwError<Error>("'", impl.schedule().name, "' has symbolic sizes: give their values with the call");
  impl.run(impl.instances.front(), inputs, outputs);
}

void Context::run(std::span<const void *const> inputs, std::span<void *const> outputs, const dim::Values &dims) {
  Impl &impl = *impl_;
  if (impl.schedule().dims.empty())
    return run(inputs, outputs);
  impl.run(impl.instanceFor(dims), inputs, outputs);
}

std::vector<TensorType> Context::outputTypes(std::span<const TensorType> inputs) const {
  Impl &impl = *impl_;
  const Schedule &s = impl.schedule();
  dim::Values dims;
  impl.checkInputs(
      inputs.size(),
      [](const void *list, size_t i) -> const TensorType & { return static_cast<const TensorType *>(list)[i]; },
      inputs.data(), dims);
  std::vector<TensorType> types;
  for (const ValueDesc &output : s.outputs)
    types.push_back({output.type.dtype, dim::evaluate(output.type.shape, dims)});
  return types;
}

void Context::run(std::span<const View> inputs, std::span<const View> outputs) {
  Impl &impl = *impl_;
  const Schedule &s = impl.schedule();
  auto haveTypes = [](std::span<const View> views, const std::vector<ValueDesc> &values) {
    return std::ranges::equal(views, values, {}, &View::type, &ValueDesc::type);
  };
  if (!s.dims.empty() || !haveTypes(inputs, s.inputs) || !haveTypes(outputs, s.outputs)) {
    impl.checkInputs(
        inputs.size(),
        [](const void *list, size_t i) -> const TensorType & { return static_cast<const View *>(list)[i].type; },
        inputs.data(), impl.viewDims);
    for (size_t i = 0; i < std::min(outputs.size(), s.outputs.size()); ++i) { // their number is checked below
      const TensorType &type = s.outputs[i].type;
      if (const TensorType want{type.dtype, dim::evaluate(type.shape, impl.viewDims)}; outputs[i].type != want)
        throwError<ShapeError>("output '", s.outputs[i].name, "' of '", s.name, "' is ", want.str(), ", given ",
                               outputs[i].type.str());
    }
  }
  impl.inputPointers.clear(), impl.outputPointers.clear();
  for (const View &view : inputs)
    impl.inputPointers.push_back(view.data);
  for (const View &view : outputs)
    impl.outputPointers.push_back(view.data);
  run(impl.inputPointers, impl.outputPointers, impl.viewDims);
}

int64_t Context::bytes() const { return impl_->heldBytes(); }

int64_t Context::arenaBytes() const {
  int64_t bytes = 0;
  for (const StorageRef &arena : impl_->arenas)
    bytes += arena->bytes();
  return bytes;
}

void Context::setProfile(Profile *profile) { impl_->profile = profile; }

} // namespace tressel::runtime
