#include "frontend/eager/Eager.h"
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Make.h"
#include "frontend/trace/Record.h"

#include "frontend/eager/Class.h"
#include "frontend/eager/Kernel.h"
#include "frontend/eager/OnDevice.h"
#include "frontend/eager/EagerFunction.h"
#include "frontend/tensor/Convert.h"
#include "frontend/tensor/ThreadState.h"
#include "frontend/tensor/WeakTypes.h"
#include "frontend/trace/Debug.h"
#include "ir/op/Infer.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Shutdown.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace tressel::detail {
using namespace runtime;
using eager::Kernel;

namespace {

//--- Flat calls -------------------------------------------------------------------------------------------------------

constexpr size_t kMostFlat = 3; ///< operands
constexpr int64_t kMaxFlat = dim::kMaxSize;

/// An elementwise op over one flat dimension, for given element types.
struct FlatEntry {
  const op::OpInfo *info = nullptr;
  uint64_t operands = 0; ///< per operand a byte: see Operand
  DType result = DType::f32;
  std::array<DType, kMostFlat> number{}; ///< the type that a number is converted to
  int64_t elementBytes = 0;
  int64_t hugeFrom = 0;                       ///< elements from which on a result is huge
  std::shared_ptr<Kernel> kernel, kernelHuge; ///< looked up at the first call of that size
  std::vector<TensorType> types;              ///< of sample operands, of two elements or one
  op::Attrs attrs, complete;

  [[gnu::noinline]] bool find(bool huge) {
    for (TensorType &t : types)
      if (t.rank())
        t.shape[0] = huge ? hugeFrom : 2;
    const TensorType whole{result, {huge ? hugeFrom : 2}};
    (huge ? kernelHuge : kernel) = eager::findKernel(eager::classesOf(*info, types, whole, complete).front().call);
    return (huge ? kernelHuge : kernel) != nullptr;
  }
};

/// Bits of an operand's byte; kSeen is the highest bit of the word.
enum Operand : uint64_t { kNumber = 0x40, kSingle = 0x20, kSeen = uint64_t(1) << 63 };

size_t slotOf(const op::OpInfo &info, uint64_t operands, size_t slots) {
  const uint64_t h = (reinterpret_cast<uintptr_t>(&info) ^ operands * kHashFactor) * 0xD6E8FEB86659FD93u;
  return static_cast<size_t>(h >> 40) & (slots - 1);
}

/// How a call is run, cached so that the same call need not consult the op's rules again.
struct Memo {
  const op::OpInfo *info = nullptr;
  size_t hash = 0;
  std::vector<TensorType> types;
  op::Attrs attrs;
  struct Result {
    TensorType type;
    int64_t bytes;
  };
  std::vector<Result> results;
  /// One kernel, two kernels with `partialBytes` of memory between them, a program, or, with none of these, a view.
  struct Launch {
    std::shared_ptr<Kernel> kernel;
    std::vector<int64_t> sizes;
  };
  std::vector<Launch> launches;
  int64_t partialBytes = 0;
  bool empty = false; ///< no result has elements
  std::unique_ptr<eager::EagerFunctionCall> function;
  /// Calls so far, if a kernel for these exact sizes may replace the general one; see `specialize`.
  uint32_t calls = 0;
  bool maySpecialize = false;
  std::shared_ptr<Kernel> special;
  std::unique_ptr<eager::EagerFunctionCall> specialFunction;

  /// Whether a kernel could not be compiled; the next call tries again.
  bool failed() const {
    for (const Launch &launch : launches)
      if (launch.kernel->failed())
        return true;
    return false;
  }
};

/// A thread's cache of calls. Direct-mapped: collisions evict.
struct Remembered {
  static constexpr size_t kFlat = 256, kMemos = 512;
  uint64_t generation = 0;
  std::array<FlatEntry, kFlat> flat;
  std::array<std::shared_ptr<Memo>, kMemos> memos;
};

thread_local constinit bool threadEnds = false;

[[gnu::noinline]] Remembered *makeRemembered() {
  if (threadEnds)
    return nullptr;
  runtime::watchExit();
  auto *remembered = static_cast<Remembered *>(threadState.remembered);
  if (!remembered) {
    struct Owner {
      Remembered *own = new Remembered;
      ~Owner() {
        threadEnds = true;
        threadState.remembered = nullptr;
        delete own;
      }
    };
    static thread_local Owner owner;
    threadState.remembered = remembered = owner.own;
  }
  const uint64_t now = eager::generation.load(std::memory_order_acquire);
  if (remembered->generation != now) {
    remembered->generation = now;
    remembered->flat.fill({});
    remembered->memos.fill(nullptr);
  }
  return remembered;
}

/// Null while the thread ends.
[[gnu::always_inline]] inline Remembered *memory(const ThreadState &state) {
  auto *r = static_cast<Remembered *>(state.remembered);
  if (r && r->generation == eager::generation.load(std::memory_order_relaxed)) [[likely]]
    return r;
  return makeRemembered();
}

bool isSingle(const Shape &shape) {
  for (Size d : shape)
    if (d != 1)
      return false;
  return true;
}

/// Fills the entry of a flat call that is new to the thread. False: the call is not flat, or is wrong.
bool makeFlat(FlatEntry &entry, const op::OpInfo &info, std::span<const Arg *const> operandsOfCall,
              std::span<const op::Attr> given, uint64_t operands) {
  op::Attrs attrs(given.begin(), given.end());
  std::vector<Arg> args;
  for (const Arg *arg : operandsOfCall)
    args.push_back(*arg);
  if (!op::completeAttrs(info, attrs).empty())
    return false;
  const WeakTypes weak(info, args);
  std::vector<TensorType> types;
  FlatEntry made;
  for (size_t i = 0; i < args.size(); ++i) {
    const uint64_t bits = operands >> 8 * i & 0xff;
    const bool number = bits & kNumber;
    const DType dtype = number ? weak.of(args[i], i) : args[i].tensor().dtype();
    if (number)
      made.number[i] = dtype;
    types.push_back({dtype, bits & (kNumber | kSingle) ? Shape() : Shape{2}});
  }
  const op::Inferred inferred = op::inferTypes(info, types, attrs);
  if (!inferred || inferred.types.size() != 1)
    return false;
  made.result = inferred.types.front().dtype;
  made.elementBytes = sizeOf(made.result);
  made.hugeFrom = (eager::kHugeBytes + made.elementBytes - 1) / made.elementBytes;
  made.info = &info;
  made.operands = operands;
  made.attrs.assign(given.begin(), given.end());
  made.complete = std::move(attrs);
  made.types = std::move(types);
  entry = std::move(made);
  return true;
}

/// Converts a number to one element. False: it does not fit.
[[gnu::always_inline]] inline bool convertNumber(const Arg &arg, DType to, uint64_t *element) {
  if (arg.kind() == Arg::Kind::Float) {
    const double v = arg.as_double();
    if (to == DType::f32) {
      const float f = static_cast<float>(v);
      std::memcpy(element, &f, sizeof f);
    } else {
      convertElements(element, to, &v, DType::f64, 1);
    }
    return true;
  }
  const int64_t v = arg.as_int();
  if (to == DType::f32) {
    const float f = static_cast<float>(v);
    std::memcpy(element, &f, sizeof f);
    return true;
  }
  if (!fitsNumber(v, to))
    return false;
  convertElements(element, to, &v, DType::i64, 1);
  return true;
}

/// A queued flat call, with the values of its numbers.
struct FlatTask {
  std::shared_ptr<Kernel> kernel;
  uint64_t numbers[kMostFlat];
  int64_t size;
  uint8_t count, isNumber;
  std::optional<eager::WaitsForCode> waits;
  int32_t operator()(const TaskView &task) const {
    void *buffers[kMostFlat + 1];
    void *const *next = task.inputs;
    for (uint8_t i = 0; i < count; ++i)
      buffers[i] = isNumber >> i & 1 ? const_cast<uint64_t *>(&numbers[i]) : *next++;
    buffers[count] = task.outputs[0];
    return kernel->launchFlat(buffers, size);
  }
};

} // namespace

bool runFlat(const op::OpInfo &info, std::span<const Arg *const> args, std::span<const op::Attr> attrs,
             Tensor &result) {
  const ThreadState &state = threadState;
  if (state.recorder || state.tape || state.checkNanDepth || checkingNanEverywhere()) [[unlikely]]
    return false;
  // The result's shape is that of the operand that is not one element, if there is one.
  uint64_t operands = kSeen;
  const Shape *shape = nullptr;
  Storage *inputs[kMostFlat];
  size_t numInputs = 0;
  bool anyWide = false;
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg &arg = *args[i];
    uint64_t bits;
    if (arg.kind() != Arg::Kind::Tensor) {
      bits = kNumber | static_cast<uint64_t>(arg.kind());
    } else {
      const TensorImpl *t = arg.tensor().impl();
      if (!t || t->trace | t->home) [[unlikely]]
        return false;
      bits = static_cast<uint64_t>(t->type.dtype);
      const Shape &own = t->type.shape;
      if (!shape) {
        shape = &own;
        anyWide = !isSingle(own);
      } else if (own != *shape) {
        if (isSingle(own) && own.rank() <= shape->rank() && anyWide) {
          bits |= kSingle;
        } else if (!anyWide && shape->rank() <= own.rank() && !isSingle(own)) {
          for (size_t j = 0; j < i; ++j) // all before are single
            if (!(operands >> 8 * j & kNumber))
              operands |= kSingle << 8 * j;
          shape = &own;
          anyWide = true;
        } else {
          return false;
        }
      }
      inputs[numInputs++] = t->storage.get();
    }
    operands |= bits << 8 * i;
  }
  if (!shape) [[unlikely]]
    return false;
  const int64_t size = shape->numElements();
  if (size == 0 || size > kMaxFlat) [[unlikely]]
    return false;
  Remembered *const own = memory(state);
  if (!own) [[unlikely]]
    return false;
  FlatEntry &entry = own->flat[slotOf(info, operands, Remembered::kFlat)];
  if (entry.info != &info || entry.operands != operands || !std::ranges::equal(entry.attrs, attrs)) [[unlikely]]
    if (!makeFlat(entry, info, args, attrs, operands))
      return false;
  const std::shared_ptr<Kernel> &kernel = size < entry.hugeFrom ? entry.kernel : entry.kernelHuge;
  if ((!kernel || kernel->failed()) && !entry.find(size >= entry.hugeFrom)) [[unlikely]]
    return false;
  uint64_t numbers[kMostFlat];
  uint8_t isNumber = 0;
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i]->kind() != Arg::Kind::Tensor) {
      isNumber |= uint8_t(1 << i);
      if (!convertNumber(*args[i], entry.number[i], &numbers[i])) [[unlikely]]
        return false;
    }
  const SourceLoc at = toLoc(args.front()->where()), user = state.locationScope ? userLine(at) : at;
  result = resultTensor({entry.result, *shape}, size * entry.elementBytes, user);
  Storage *const output = result.impl()->storage.get();
  Engine::global().submit(
      {.op = info.name, .where = user, .cost = kernel->costOfFlat(size)}, {inputs, numInputs}, {&output, 1},
      [&](const TaskView &task) {
        void *buffers[kMostFlat + 1];
        void *const *next = task.inputs;
        for (size_t i = 0; i < args.size(); ++i)
          buffers[i] = isNumber >> i & 1 ? &numbers[i] : *next++;
        buffers[args.size()] = task.outputs[0];
        return kernel->launchFlat(buffers, size);
      },
      [&] {
        FlatTask task{kernel, {}, size, static_cast<uint8_t>(args.size()), isNumber, {}};
        if (!kernel->ready())
          task.waits.emplace();
        std::copy_n(numbers, args.size(), task.numbers);
        return task;
      });
  return true;
}

//--- All other calls --------------------------------------------------------------------------------------------------

namespace {

size_t hashOf(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const op::Attr> attrs) {
  uint64_t h = reinterpret_cast<uintptr_t>(&info);
  for (const Tensor &t : inputs)
    h = mixHash(h, t.impl()->type);
  for (const op::Attr &attr : attrs)
    h = op::mixHash(h, attr);
  return h;
}

bool matches(const Memo &memo, const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const op::Attr> attrs,
             size_t hash) {
  if (memo.hash != hash || memo.info != &info || memo.types.size() != inputs.size() ||
      !std::ranges::equal(memo.attrs, attrs))
    return false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].impl()->type != memo.types[i])
      return false;
  return true;
}

/// The kernel of a call, and the values of its symbols.
std::optional<Memo::Launch> launchOf(const op::OpInfo &info, std::span<const TensorType> types,
                                     const TensorType &result, const op::Attrs &attrs,
                                     std::vector<eager::Classified> *classes = nullptr) {
  std::vector<eager::Classified> all = eager::classesOf(info, types, result, attrs);
  for (eager::Classified &c : all)
    if (!eager::agrees(c, result.shape.numElements()))
      continue;
    else if (auto kernel = eager::findKernel(c.call))
      return Memo::Launch{std::move(kernel), std::move(c.sizes)};
  if (classes)
    *classes = std::move(all);
  return std::nullopt;
}

/// Whether known sizes make the kernel faster: windows and movements compare indices with sizes at every element. Not
/// for ops that would sum in another order: a call must give the same bits before and after.
bool isBetterSpecialized(const op::OpInfo &info) {
  return info.family == op::Family::Window || info.family == op::Family::Shape || info.family == op::Family::Indexing;
}

/// The memo of a call that was made often: with a kernel for its sizes once that is compiled, until then the same memo.
/// An op with a list of operands (concat) gets a program instead, which copies them.
std::shared_ptr<Memo> specialize(const std::shared_ptr<Memo> &memo, SourceLoc where) {
  if (!memo->special && !memo->specialFunction) {
    op::Attrs complete = memo->attrs;
    (void)op::completeAttrs(*memo->info, complete);
    const codegen::OpCall exact{memo->info, memo->types, complete, {}};
    if (memo->info->operands.back().variadic)
      memo->specialFunction = eager::findEagerFunctions(exact, {});
    else
      memo->special = eager::findKernel(exact);
  }
  const eager::Compiled *const wanted = memo->specialFunction
                                            ? memo->specialFunction->choose(where).get()
                                            : static_cast<const eager::Compiled *>(memo->special.get());
  if (!wanted || !wanted->ready()) {
    memo->maySpecialize = wanted && !wanted->failed();
    return memo;
  }
  auto made = std::make_shared<Memo>();
  made->info = memo->info, made->hash = memo->hash, made->types = memo->types, made->attrs = memo->attrs;
  made->results = memo->results;
  if (memo->specialFunction)
    made->function = std::move(memo->specialFunction);
  else
    made->launches.push_back({memo->special, {}});
  return made;
}
constexpr uint32_t kOftenCalled = 64;

std::shared_ptr<Memo> makeMemo(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const op::Attr> attrs,
                               SourceLoc where, size_t hash) {
  auto memo = std::make_shared<Memo>();
  memo->info = &info;
  memo->hash = hash;
  memo->attrs.assign(attrs.begin(), attrs.end());
  for (const Tensor &t : inputs)
    memo->types.push_back(t.type());
  op::Attrs complete = memo->attrs;
  memo->empty = true;
  for (const TensorType &type : inferResults(info, inputs, complete, where)) {
    memo->results.push_back({type, bytesOf(type, where, info.name)});
    memo->empty &= memo->results.back().bytes == 0;
  }
  if (info.isView || (memo->empty && !info.hasEffects && !info.custom))
    return memo;
  std::vector<eager::Classified> classes;
  if (!info.custom && !info.hasEffects) {
    const TensorType &result = memo->results.front().type;
    if (auto split =
            inputs.size() == 1 ? eager::splitReduction(info, memo->types[0], result, complete) : std::nullopt) {
      auto first = launchOf(info, {&split->first, 1}, split->partial, split->firstAttrs);
      auto second = launchOf(info, {&split->second, 1}, result, split->secondAttrs);
      if (first && second) {
        memo->launches = {std::move(*first), std::move(*second)};
        memo->partialBytes = split->partial.bytes();
        return memo;
      }
    }
    if (auto launch = launchOf(info, memo->types, result, complete, &classes)) {
      memo->launches.push_back(std::move(*launch));
      memo->maySpecialize = isBetterSpecialized(info);
      return memo;
    }
  }
  memo->function = eager::findEagerFunctions({&info, memo->types, complete, {}}, classes);
  if (info.custom) // custom ops' functions run in the caller's thread
    memo->function->choose(where)->ensure();
  return memo;
}

constexpr size_t kFewOperands = 8;

/// Runs the kernels of a memo over a task's storages.
int32_t launchAll(const Memo &memo, const TaskView &task) {
  const size_t numInputs = memo.types.size(), numResults = memo.results.size();
  void *few[2 * kFewOperands];
  std::vector<void *> many(numInputs + numResults > 2 * kFewOperands ? numInputs + numResults : 0);
  void **buffers = many.empty() ? few : many.data();
  std::copy_n(task.inputs, numInputs, buffers);
  if (memo.launches.size() == 1) {
    std::copy_n(task.outputs, numResults, buffers + numInputs);
    return memo.launches[0].kernel->launch(buffers, memo.launches[0].sizes.data());
  }
  const StorageRef partial = Storage::allocate(memo.partialBytes);
  buffers[1] = partial->data();
  if (const int32_t status = memo.launches[0].kernel->launch(buffers, memo.launches[0].sizes.data());
      status != kKernelOk)
    return status;
  buffers[0] = partial->data();
  buffers[1] = task.outputs[0];
  return memo.launches[1].kernel->launch(buffers, memo.launches[1].sizes.data());
}

/// Null while code is not compiled: the task is queued.
OpCost *costOf(const Memo &memo) {
  if (memo.launches.size() > 1 && !memo.launches[1].kernel->ready())
    return nullptr;
  return memo.launches[0].kernel->costOf(memo.launches[0].sizes.data());
}

} // namespace

void runEager(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const op::Attr> attrs, SourceLoc where,
              std::span<Tensor> results) {
  uint32_t elsewhere = 0;
  for (const Tensor &t : inputs)
    elsewhere |= t.impl()->home;
  if (elsewhere) [[unlikely]]
    return eager::runOnDevice(info, inputs, attrs, where, results);
  const size_t hash = hashOf(info, inputs, attrs);
  Remembered *const own = memory(threadState);
  std::shared_ptr<Memo> none, &slot = own ? own->memos[hash >> 20 & (Remembered::kMemos - 1)] : none;
  if (!slot || !matches(*slot, info, inputs, attrs, hash) || slot->failed()) [[unlikely]]
    slot = makeMemo(info, inputs, attrs, where, hash);
  const SourceLoc user = userLine(where);
  if (info.isView) { // the same bytes in another shape
    results.front() = makeTensor(slot->results.front().type, inputs.front().impl()->storage, user);
    return;
  }
  if (slot->maySpecialize && ++slot->calls >= kOftenCalled) [[unlikely]]
    slot = specialize(slot, where);
  const std::shared_ptr<Memo> memo = slot; // running queued tasks may re-enter this function
  if (memo->function)
    if (const auto &chosen = memo->function->choose(where); chosen->ready()) [[likely]] {
      std::array<const Tensor *, kFewOperands> few;
      std::vector<const Tensor *> many(inputs.size() > few.size() ? inputs.size() : 0);
      const Tensor **arguments = many.empty() ? few.data() : many.data();
      for (size_t i = 0; i < inputs.size(); ++i)
        arguments[i] = &inputs[i];
      const auto keep = chosen;
      keep->function().run({arguments, inputs.size()}, results, user);
      return;
    }
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = resultTensor(memo->results[i].type, memo->results[i].bytes, user);
  Storage *few[2 * kFewOperands];
  std::vector<Storage *> many(inputs.size() + results.size() > 2 * kFewOperands ? inputs.size() + results.size() : 0);
  Storage **storages = many.empty() ? few : many.data();
  for (size_t i = 0; i < inputs.size(); ++i)
    storages[i] = inputs[i].impl()->storage.get();
  for (size_t i = 0; i < results.size(); ++i)
    storages[inputs.size() + i] = results[i].impl()->storage.get();
  const std::span<Storage *const> in{storages, inputs.size()}, out{storages + inputs.size(), results.size()};
  if (memo->launches.empty() && !memo->function) { // nothing to compute, but the results carry operands' failures
    static OpCost nothing(1);
    Engine::global().submit(
        {.op = info.name, .where = user, .cost = &nothing}, in, out,
        [](const TaskView &) { return int32_t(kKernelOk); },
        [] { return [](const TaskView &) { return int32_t(kKernelOk); }; });
    return;
  }
  if (memo->function) {
    auto task = memo->function->task(memo->function->choose(where));
    Engine::global().submit(
        {.op = info.name, .where = user}, in, out, [&](const TaskView &view) { return task(view); },
        [&] {
          return [task = std::move(task), waits = eager::WaitsForCode()](const TaskView &view) { return task(view); };
        });
    return;
  }
  OpCost *const cost = costOf(*memo);
  Engine::global().submit(
      {.op = info.name, .where = user, .cost = cost}, in, out,
      [&](const TaskView &task) { return launchAll(*memo, task); },
      [&] {
        std::optional<eager::WaitsForCode> waits;
        if (!cost)
          waits.emplace();
        return [memo, waits](const TaskView &task) { return launchAll(*memo, task); };
      });
}

void clearEagerFunctions() {
  eager::clearEagerFunctions();
  eager::clearDevicePrograms();
  eager::clearKernels();
}

} // namespace tressel::detail
