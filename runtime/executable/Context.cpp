// The executor. Everything that a call needs is laid out when the context is made: a table of operand pointers per
// program, and one record per command that points into it. A call patches the inputs' and outputs' pointers and walks
// the records. Commands run in issue order: a valid order for any number of streams, because waits point backward.
#include "runtime/types/Concat.h"
#include "runtime/types/Clock.h"
#include "ExecutableImpl.h"
#include "runtime/schedule/ScheduleSizes.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/FloatMode.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/ThreadPool.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace tressel::runtime {
namespace {

/// Copies and fills of at least this many bytes are split over the pool.
constexpr int64_t kSplitBytes = int64_t(1) << 20;

/// One command, ready to run.
struct Step {
  CommandKind kind;
  uint8_t elementBytes = 1; // Fill
  uint32_t command = 0;
  KernelFn fn = nullptr, epilogue = nullptr;
  KernelArgs args = {};
  int64_t range = 0, grain = 1; // Launch: units. Copy and Fill: bytes. Loop: trips.
  int64_t scratchStride = 0;
  uint64_t fillValue = 0;
  FloatMode floats = FloatMode::Any, epilogueFloats = FloatMode::Any;

  /// One call of one kernel, as most are.
  bool isPlain() const { return !epilogue && range <= grain && range > 0; }
};

/// A pointer of the operand table that changes with every call.
struct Patch {
  void **slot;
  uint32_t index;
  int64_t offset;
};

struct Bodies;
struct BoundCommands {
  const CommandList *list = nullptr;
  std::vector<void *> pointers; // one per operand of the list
  std::vector<Step> steps;
  std::vector<Bodies> bodies;                 // of the steps that have some: Step::fillValue is the number
  std::vector<Patch> inputs, outputs, states; // those of bodies too
};

/// The command lists that a Branch, While or Loop runs.
struct Bodies {
  std::vector<BoundCommands> lists;
  bool hasIndex = false; // Loop: the body wants the number of the iteration
  struct Move {
    void **slot;
    int64_t stride;
  };
  std::vector<Move> moves; // Loop: every pointer to a buffer that moves, in its body and in bodies of that
};

/// Moves a loop's pointers, and puts them back at the end, whatever that is.
class Moving {
public:
  explicit Moving(const Bodies &bodies) : bodies(bodies) {}
  ~Moving() { by(-steps); }
  Moving(const Moving &) = delete;
  Moving &operator=(const Moving &) = delete;
  void next() {
    by(1);
    ++steps;
  }

private:
  void by(int64_t count) {
    if (count)
      for (const Bodies::Move &move : bodies.moves)
        *move.slot = static_cast<std::byte *>(*move.slot) + count * move.stride;
  }
  const Bodies &bodies;
  int64_t steps = 0;
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
  Schedule numbers; ///< empty without symbols: the executable's own serves
  BoundCommands step;
  size_t firstWrite = 0; ///< of the step's commands, that writes a mutable state; their number if none does
  std::vector<int64_t> inputBytes, outputBytes;

  void measure(const Schedule &s) {
    firstWrite = runtime::firstWrite(s);
    for (const ValueDesc &input : s.inputs)
      inputBytes.push_back(input.type.bytes());
    for (const ValueDesc &output : s.outputs)
      outputBytes.push_back(output.type.bytes());
  }
  /// What checkArguments wants, in the time that a call has for it.
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
/// Sizes that a context remembers.
constexpr size_t kInstances = 8;

int32_t runPlain(const Step &step, FloatScope &scope) {
  scope.enter(step.floats);
  return step.fn(&step.args, 0, step.range);
}

/// A kernel and its epilogue take turns, so that the second finds in the cache what the first has written.
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

void copyBytes(void *to, const void *from, int64_t bytes) {
  ThreadPool::global().parallelFor(bytes, kSplitBytes, [&](int64_t begin, int64_t end, int) {
    std::memcpy(static_cast<std::byte *>(to) + begin, static_cast<const std::byte *>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

void fillBytes(void *to, const Step &step) {
  // A pattern of eight bytes serves every element size.
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

std::string describeStatus(int32_t status) {
  switch (status) {
  case kKernelIndexOutOfRange:
    return "an index is out of range";
  case kKernelLibraryFailed:
    return "a library call failed";
  default:
    return "the kernel failed";
  }
}

} // namespace

struct Context::Impl {
  std::shared_ptr<const ExecutableImpl> executable;
  std::vector<StorageRef> arenas;
  std::vector<StorageRef> derived; // by state; null where the caller binds
  StorageRef scratch;
  int64_t scratchStride = 0;
  std::vector<uint32_t> boundIndex; // of the caller's states
  size_t numBoundStates = 0;
  bool bound = false;
  std::shared_ptr<const void> statesOwner;
  BoundCommands prepare;
  std::vector<std::unique_ptr<Instance>> instances; // the most recently used first
  std::vector<void *> boundStates;
  dim::Values maxDims;
  bool wroteStates = false;
  Profile *profile = nullptr;
  std::unique_ptr<KernelFailure> failure = std::make_unique<KernelFailure>(); // steps hold its address
  HostAllocator allocator;
  int64_t maxBytes = std::numeric_limits<int64_t>::max();
  std::vector<const void *> inputPointers; // of a call with views
  std::vector<void *> outputPointers;
  dim::Values viewDims;

  const Schedule &schedule() const { return executable->schedule(); }
  void run(Instance &instance, std::span<const void *const> inputs, std::span<void *const> outputs);

  void *fixedPointer(const BufferDesc &b) const {
    switch (b.space) {
    case Space::Arena:
      return static_cast<std::byte *>(arenas[b.index]->data()) + b.offset;
    case Space::Constant:
      return const_cast<std::byte *>(executable->constants + schedule().constants[b.index].offset + b.offset);
    case Space::State:
      return derived[b.index] ? static_cast<std::byte *>(derived[b.index]->data()) + b.offset : nullptr;
    case Space::Input:
    case Space::Output:
      break;
    }
    return nullptr;
  }

  /// `s` is the executable's schedule, or its numbers for some sizes.
  void layOut(const Schedule &s, const CommandList &commandList, BoundCommands &out) { layOut(s, commandList, out, out); }
  /// The pointers to patch are collected in `root`.
  void layOut(const Schedule &s, const CommandList &commandList, BoundCommands &out, BoundCommands &root) {
    out.list = &commandList;
    out.pointers.resize(commandList.operands.size());
    for (size_t i = 0; i < commandList.operands.size(); ++i) {
      if (commandList.operands[i].buffer >= s.buffers.size())
        continue; // an entry that no command uses
      const BufferDesc &b = s.buffers[commandList.operands[i].buffer];
      void **slot = &out.pointers[i];
      *slot = fixedPointer(b);
      if (b.space == Space::Input)
        root.inputs.push_back({slot, b.index, b.offset});
      else if (b.space == Space::Output)
        root.outputs.push_back({slot, b.index, b.offset});
      else if (b.space == Space::State && !derived[b.index])
        root.states.push_back({slot, boundIndex[b.index], b.offset});
    }
    for (size_t i = 0; i < commandList.commands.size(); ++i) {
      const Command &c = commandList.commands[i];
      Step step{.kind = c.kind, .command = static_cast<uint32_t>(i)};
      step.args.buffers = out.pointers.data() + c.firstOperand;
      step.args.failure = failure.get();
      if (c.kind == CommandKind::Launch) {
        const KernelDesc &desc = s.kernels[c.kernel];
        step.fn = executable->kernels[c.kernel].fn;
        step.epilogue = executable->epilogues[c.kernel];
        step.args.scalars = c.numScalars ? commandList.scalars.data() + c.firstScalar : nullptr;
        step.args.state = executable->kernels[c.kernel].state;
        step.args.scratch = desc.scratchBytes ? scratch->data() : nullptr;
        step.scratchStride = scratchStride;
        step.range = desc.range;
        step.grain = desc.grain;
        step.floats = desc.floats, step.epilogueFloats = desc.epilogueFloats;
      } else if (hasBodies(c.kind)) {
        step.fillValue = out.bodies.size();
        Bodies bodies;
        bodies.lists.resize(
            numBodies(c.kind)); // they stay where they are: moving a vector moves none of its elements
        for (uint32_t k = 0; k < numBodies(c.kind); ++k)
          layOut(s, s.bodies[c.body + k], bodies.lists[k], root);
        if (c.kind == CommandKind::Loop) {
          step.range = commandList.scalars[c.firstScalar];
          bodies.hasIndex = c.numOperands == c.numScalars;
          const uint32_t numMoving = c.numScalars - 1u, firstMoving = c.firstOperand + c.numOperands - numMoving;
          for (uint32_t m = 0; m < numMoving; ++m)
            collectMoves(bodies.lists[0], commandList.operands[firstMoving + m].buffer,
                         commandList.scalars[c.firstScalar + 1 + m], bodies.moves);
        }
        out.bodies.push_back(std::move(bodies));
      } else {
        const BufferDesc &b = s.buffers[commandList.operands[c.firstOperand].buffer];
        step.range = b.bytes;
        step.elementBytes = static_cast<uint8_t>(sizeOf(b.type.dtype));
        step.fillValue = c.fillValue;
      }
      out.steps.push_back(step);
    }
  }

  static void collectMoves(BoundCommands &body, uint32_t buffer, int64_t stride, std::vector<Bodies::Move> &moves) {
    for (size_t i = 0; i < body.pointers.size(); ++i)
      if (body.list->operands[i].buffer == buffer)
        moves.push_back({&body.pointers[i], stride});
    for (Bodies &inner : body.bodies)
      for (BoundCommands &commandList : inner.lists)
        collectMoves(commandList, buffer, stride, moves);
  }

  /// Bytes held now, beside arenas of which others take the place.
  int64_t heldBytes() const {
    int64_t bytes = scratch ? scratch->bytes() : 0;
    for (const auto *list : {&arenas, &derived})
      for (const StorageRef &storage : *list)
        bytes += storage ? storage->bytes() : 0;
    return bytes;
  }

  /// Adds the bytes to those held.
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

  /// Memory for a schedule of numbers. Contents are not kept: the command lists leave nothing there. True if something
  /// moved.
  bool provide(const Schedule &s) {
    // All of it or, when there is not enough, nothing.
    std::vector<StorageRef> larger = arenas;
    larger.resize(s.arenas.size());
    int64_t held = heldBytes(); // the old blocks too, until the new ones are there
    for (size_t i = 0; i < s.arenas.size(); ++i)
      if (!larger[i] || larger[i]->bytes() < s.arenas[i].bytes)
        larger[i] = allocate(s.arenas[i].bytes, held);
    int64_t stride = scratchStride;
    for (const KernelDesc &kernel : s.kernels)
      stride = std::max(stride, (kernel.scratchBytes + 63) / 64 * 64);
    if (stride > scratchStride)
      scratch = allocate(stride * ThreadPool::global().numThreads(), held);
    bool moved = stride > scratchStride;
    scratchStride = stride;
    for (size_t i = 0; i < larger.size(); ++i)
      moved |= i >= arenas.size() || arenas[i] != larger[i];
    arenas = std::move(larger);
    return moved;
  }

  void bindTo(BoundCommands &commandList) const {
    if (boundStates.empty())
      return;
    for (const Patch &patch : commandList.states)
      *patch.slot = static_cast<std::byte *>(boundStates[patch.index]) + patch.offset;
  }

  /// Lays the step out for these sizes, or finds it.
  Instance &instanceFor(const dim::Values &dims) {
    for (size_t i = 0; i < instances.size(); ++i)
      if (instances[i]->dims == dims) {
        std::rotate(instances.begin(), instances.begin() + static_cast<ptrdiff_t>(i),
                    instances.begin() + static_cast<ptrdiff_t>(i) + 1);
        return *instances.front();
      }
    checkDims(schedule(), dims);
    for (const auto &[symbol, most] : maxDims.all())
      if (*dims.find(symbol) > most)
        throwError<ShapeError>("dimension '", dim::symbolName(symbol), "' of '", schedule().name, "' is ",
                               *dims.find(symbol), ", but the context was made for at most ", most);
    auto made = std::make_unique<Instance>();
    made->dims = dims;
    made->numbers = instantiate(schedule(), dims);
    for (const ArenaDesc &arena : made->numbers.arenas) // before the verifier calls it impossible
      if (arena.bytes > kMaxBytes)
        throwError<OutOfMemory>("'", schedule().name, "' needs ", arena.bytes, " bytes for these sizes, more than any machine has");
    if (const auto violations = verifySchedule(made->numbers); !violations.empty())
      throwError<InputError>("schedule '", schedule().name, "' is not safe to run: ", violations[0].message);
    if (provide(made->numbers)) {
      instances.clear(); // they point into what was freed
      prepare = {};
      layOut(schedule(), schedule().prepare, prepare);
      bindTo(prepare);
    }
    layOut(made->numbers, made->numbers.step, made->step);
    made->measure(made->numbers);
    bindTo(made->step);
    if (instances.size() == kInstances)
      instances.pop_back();
    instances.insert(instances.begin(), std::move(made));
    return *instances.front();
  }

  /// Finds the symbols' values. Throws ShapeError when an input has not its type. The types stand in a list of
  /// anything; one copy of the code serves all.
  [[gnu::noinline]] void checkInputs(size_t count, const TensorType &(*typeOf)(const void *list, size_t i),
                                     const void *list, dim::Values &dims) const {
    const Schedule &s = schedule();
    std::array<Shape, 16> few; // a call allocates nothing
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
    Error::Details details;
    if (status == kKernelSaysWhy)
      details.message = failure->take();
    else
      details.message = concat(describeStatus(status), " in kernel '", schedule().kernels[c.kernel].symbol, "'");
    if (c.loc < schedule().locations.size()) {
      const Location &l = schedule().locations[c.loc];
      details.op = l.op;
      if (!l.file.empty())
        details.where = {internName(l.file), l.line};
    }
    throw RuntimeError(std::move(details));
  }

  /// One scope for the whole call: kernels that follow each other in one mode switch it once.
  template <bool Profiled> void execute(const CommandList &commandList, const BoundCommands &bound) {
    FloatScope scope;
    execute<Profiled>(commandList, bound, scope);
  }

  [[gnu::noinline]] void executeBodies(const Step &step, const Bodies &bodies, void *const *operands, FloatScope &scope) {
    auto execute = [&](const BoundCommands &body) { this->execute<false>(*body.list, body, scope); };
    auto flag = [&] { return *static_cast<const uint8_t *>(operands[0]) != 0; };
    switch (step.kind) {
    case CommandKind::Branch:
      execute(bodies.lists[flag() ? 0 : 1]);
      break;
    case CommandKind::While:
      for (execute(bodies.lists[0]); flag(); execute(bodies.lists[0]))
        execute(bodies.lists[1]);
      break;
    default: {
      Moving moving(bodies);
      for (int64_t i = 0; i < step.range; ++i) {
        if (bodies.hasIndex)
          *static_cast<int64_t *>(operands[0]) = i;
        execute(bodies.lists[0]);
        moving.next();
      }
    }
    }
  }

  template <bool Profiled> void execute(const CommandList &commandList, const BoundCommands &bound, FloatScope &scope) {
    execute<Profiled>(commandList, bound, bound.steps, scope);
  }
  template <bool Profiled>
  void execute(const CommandList &commandList, const BoundCommands &bound, std::span<const Step> steps, FloatScope &scope) {
    for (const Step &step : steps) {
      [[maybe_unused]] int64_t start = 0;
      if constexpr (Profiled)
        start = nowNs();
      switch (step.kind) {
      case CommandKind::Launch:
        if (int32_t status = step.isPlain() ? runPlain(step, scope) : launch(step, scope); status != kKernelOk)
            [[unlikely]]
          fail(commandList, step, status);
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
        executeBodies(step, bound.bodies[step.fillValue], step.args.buffers, scope);
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
    : impl_(std::make_unique<Impl>()) {
  Impl &impl = *impl_;
  impl.executable = std::static_pointer_cast<const ExecutableImpl>(std::move(executable));
  impl.allocator = options.allocator;
  impl.maxBytes = options.max_bytes;
  const Schedule &schedule = impl.schedule();
  rejectUnsupported(schedule);
  int64_t held = 0;
  impl.boundIndex.resize(schedule.states.size(), 0);
  for (size_t i = 0; i < schedule.states.size(); ++i) {
    const bool isDerived = schedule.states[i].kind == StateKind::Derived;
    impl.derived.push_back(isDerived ? impl.allocate(schedule.states[i].type.bytes(), held) : StorageRef());
    if (!isDerived)
      impl.boundIndex[i] = static_cast<uint32_t>(impl.numBoundStates++);
  }
  // Of a program with symbolic sizes, the least memory: what prepare uses has a fixed size.
  dim::Values first;
  for (int64_t symbol : schedule.dims)
    first.bind(symbol, dim::bounds(symbol).lo);
  for (const auto &[name, size] : options.max_dims) {
    const int64_t symbol = findDim(schedule, name);
    if (!symbol)
      throwError<Error>("'", schedule.name, "' has no dimension '", name, "' of symbolic size");
    const dim::Bounds range = dim::bounds(symbol);
    if (size < range.lo || size > range.hi)
      throwError<Error>("dimension '", name, "' of '", schedule.name, "' lies between ", range.lo, " and ", range.hi,
                        ", so it is never as large as ", size);
    impl.maxDims.bind(symbol, size);
  }
  if (schedule.dims.empty()) {
    impl.provide(schedule);
    impl.instances.push_back(std::make_unique<Instance>());
    impl.layOut(schedule, schedule.step, impl.instances.front()->step);
    impl.instances.front()->measure(schedule);
  } else {
    impl.provide(instantiate(schedule, first));
    if (!options.max_dims.empty()) {
      dim::Values most = impl.maxDims;
      for (int64_t symbol : schedule.dims)
        most.bind(symbol, dim::bounds(symbol).lo); // where it has no value
      impl.provide(instantiate(schedule, most));
    }
  }
  impl.layOut(schedule, schedule.prepare, impl.prepare);
  if (impl.numBoundStates == 0)
    bindStates({});
}

Context::~Context() = default;
Context::Context(Context &&) noexcept = default;
Context &Context::operator=(Context &&) noexcept = default;

const Executable &Context::executable() const { return *impl_->executable; }

void Context::bindStates(std::span<void *const> states, std::shared_ptr<const void> owner) {
  Impl &impl = *impl_;
  if (states.size() != impl.numBoundStates)
    throwError<Error>("'", impl.schedule().name, "' has ", impl.numBoundStates, " states to bind, not ", states.size());
  size_t index = 0;
  for (const StateDesc &state : impl.schedule().states)
    if (state.kind != StateKind::Derived && !states[index++] && state.type.bytes())
      throwError<Error>("the memory bound for state '", state.name, "' is null");
  impl.bound = false; // until prepare is through
  impl.boundStates.assign(states.begin(), states.end());
  impl.bindTo(impl.prepare);
  for (const auto &instance : impl.instances)
    impl.bindTo(instance->step);
  impl.execute<false>(impl.schedule().prepare, impl.prepare);
  impl.bound = true;
  impl.statesOwner = std::move(owner);
}

void Context::moveState(size_t index, void *memory) {
  Impl &impl = *impl_;
  const auto &states = impl.schedule().states;
  const auto at = std::ranges::find_if(states, [&](const StateDesc &s) {
    return s.kind != StateKind::Derived && impl.boundIndex[static_cast<size_t>(&s - states.data())] == index;
  });
  if (at == states.end() || at->kind != StateKind::Mutable || !impl.bound)
    throwError<Error>("state ", index, " of '", impl.schedule().name, "' cannot be moved: it is no mutable one that is bound");
  impl.boundStates[index] = memory;
  for (const auto &instance : impl.instances)
    for (const Patch &patch : instance->step.states)
      if (patch.index == index)
        *patch.slot = static_cast<std::byte *>(memory) + patch.offset;
}
bool Context::wroteStates() const { return impl_->wroteStates; }

/// Says what is wrong with a call's arguments.
static void checkArguments(const Schedule &s, std::span<const void *const> inputs, std::span<void *const> outputs,
                           bool bound) {
  if (!bound)
    throwError<Error>("the states of '", s.name, "' are not bound (call bindStates first)");
  if (inputs.size() != s.inputs.size() || outputs.size() != s.outputs.size())
    throwError<Error>("'", s.name, "' takes ", s.inputs.size(), " inputs and ", s.outputs.size(), " outputs, not ",
                      inputs.size(), " and ", outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i] && s.inputs[i].type.bytes())
      throwError<Error>("input '", s.inputs[i].name, "' is null");
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t bytes = s.outputs[i].type.bytes();
    if (!outputs[i] && bytes)
      throwError<Error>("output '", s.outputs[i].name, "' is null");
    auto overlaps = [&](const void *other, int64_t otherBytes) {
      const auto a = reinterpret_cast<uintptr_t>(outputs[i]), b = reinterpret_cast<uintptr_t>(other);
      return bytes && otherBytes && a < b + static_cast<uintptr_t>(otherBytes) && b < a + static_cast<uintptr_t>(bytes);
    };
    for (size_t k = 0; k < inputs.size(); ++k)
      if (overlaps(inputs[k], s.inputs[k].type.bytes()))
        throwError<Error>("output '", s.outputs[i].name, "' overlaps input '", s.inputs[k].name, "'");
    for (size_t k = 0; k < i; ++k)
      if (overlaps(outputs[k], s.outputs[k].type.bytes()))
        throwError<Error>("output '", s.outputs[i].name, "' overlaps output '", s.outputs[k].name, "'");
  }
}

void Context::Impl::run(Instance &instance, std::span<const void *const> inputs, std::span<void *const> outputs) {
  const Schedule &s = instance.dims.empty() ? schedule() : instance.numbers;
  if (!bound || !instance.fits(inputs, outputs)) [[unlikely]]
    checkArguments(s, inputs, outputs, bound);
  for (const Patch &patch : instance.step.inputs)
    *patch.slot = static_cast<std::byte *>(const_cast<void *>(inputs[patch.index])) + patch.offset;
  for (const Patch &patch : instance.step.outputs)
    *patch.slot = static_cast<std::byte *>(outputs[patch.index]) + patch.offset;
  wroteStates = false;
  FloatScope scope;
  const std::span<const Step> steps = instance.step.steps, reading = steps.first(instance.firstWrite);
  if (profile) [[unlikely]] {
    profile->commands.resize(steps.size());
    execute<true>(s.step, instance.step, reading, scope);
    wroteStates = reading.size() < steps.size();
    execute<true>(s.step, instance.step, steps.subspan(reading.size()), scope);
  } else {
    execute<false>(s.step, instance.step, reading, scope);
    wroteStates = reading.size() < steps.size();
    execute<false>(s.step, instance.step, steps.subspan(reading.size()), scope);
  }
}

void Context::run(std::span<const void *const> inputs, std::span<void *const> outputs) {
  Impl &impl = *impl_;
  if (!impl.schedule().dims.empty())
    throwError<Error>("'", impl.schedule().name, "' has symbolic sizes: give their values with the call");
  impl.run(*impl.instances.front(), inputs, outputs);
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
