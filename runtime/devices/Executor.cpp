#include "tressel/runtime/Executor.h"

#include "Issue.h"
#include "runtime/executable/ExecutableImpl.h"
#include "runtime/schedule/ScheduleSizes.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/DeviceStorage.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <chrono>

namespace tressel::runtime {
namespace {

/// Sizes that an executor remembers.
constexpr size_t kInstances = 8;

struct Instance {
  dim::Values dims;
  Schedule numbers;
  std::vector<DeviceKernel> kernels;
};

/// What an Executor has allocated on a device.
struct Allocation {
  Device *device = nullptr;
  void *memory = nullptr;
  int64_t bytes = 0;
  uint64_t losses = 0; ///< of the device, when it was allocated
};

/// Memory of callers that devices know for as long as this lives.
class Adoption {
public:
  Adoption() = default;
  Adoption(const Adoption &) = delete;
  ~Adoption() { drop(); }
  /// What lies elsewhere than on a host is a device's own.
  void add(Device &host, const void *memory, int64_t bytes, const Home &home) {
    if (!memory || bytes == 0 || !isHost(home))
      return;
    host.adopt(memory, bytes, home.memory == MemoryKind::Device ? MemoryKind::Host : home.memory);
    list_.push_back({&host, memory});
  }
  void drop() {
    for (const auto &[host, memory] : list_)
      host->disown(memory);
    list_.clear();
  }

private:
  std::vector<std::pair<Device *, const void *>> list_;
};

} // namespace

struct Executor::Impl {
  std::shared_ptr<Machine> machine; // outlives what follows
  std::shared_ptr<DeviceMemory> memory;
  uint64_t losses = 0; ///< of the machine's devices, as far as this knows
  ExecutorOptions options;
  std::shared_ptr<const ExecutableImpl> executable; // null: without code
  Schedule own;                                     // without code
  std::vector<std::vector<Allocation>> arenas;      // by call in flight
  std::vector<Allocation> derived;                  // by state, none where the caller binds
  std::vector<void *> boundStates;                  // by state, null where derived
  std::vector<std::unique_ptr<Instance>> instances; // the most recently used first
  Allocation pretended;                             // constants, without code
  Adoption constants, states;
  std::shared_ptr<const void> statesOwner;
  bool bound = false;
  bool prepared = false;
  std::vector<std::unique_ptr<Issuer>> issuers; // by call in flight

  ~Impl() {
    issuers.clear();
    free(pretended);
    freeAll();
  }
  void freeAll() {
    for (auto &list : arenas)
      for (Allocation &a : list)
        free(a);
    for (Allocation &a : derived)
      free(a);
  }

  const Schedule &schedule() const { return executable ? executable->schedule() : own; }
  Device &host() const { return machine->at({}); }

  //--- Memory -------------------------------------------------------------------------------------------------------
  void free(Allocation &a) const {
    if (a.memory && a.losses == memory->losses(a.device->caps().device)) // else it is gone, and its address may be another's
      a.device->release(a.memory);
    a = {};
  }
  void provide(Allocation &a, const Home &home, int64_t bytes, const Schedule &s, Space space, uint32_t index) {
    if (a.memory && a.bytes >= bytes)
      return;
    free(a);
    Device &device = machine->at(home.device);
    const bool isHost = home.device.kind == DeviceKind::Cpu;
    try {
      a.memory = device.allocate(bytes, isHost && home.memory == MemoryKind::Device ? MemoryKind::Host : home.memory);
    } catch (const OutOfMemory &e) {
      throw OutOfMemory(blameLargest(s, space, index, concat("'", s.name, "' needs ", bytes, " bytes: ", e.message())));
    }
    a.device = &device;
    a.bytes = bytes;
    a.losses = memory->losses(home.device);
  }
  /// Names a command that needs the most of the memory.
  static Error::Details blameLargest(const Schedule &s, Space space, uint32_t index, std::string message) {
    Error::Details details;
    details.message = std::move(message);
    int64_t most = -1;
    auto look = [&](const CommandList &p) {
      for (const Command &c : p.commands) {
        int64_t bytes = 0;
        for (uint32_t k = 0; k < c.numOperands; ++k)
          if (const BufferDesc &b = s.buffers[p.operands[c.firstOperand + k].buffer];
              b.space == space && b.index == index)
            bytes += b.bytes;
        if (bytes > most && c.loc < s.locations.size() && c.loc != 0) {
          most = bytes;
          const Location &l = s.locations[c.loc];
          details.op = l.op;
          if (!l.file.empty())
            details.where = {internName(l.file), l.line};
        }
      }
    };
    look(s.prepare);
    look(s.step);
    for (const CommandList &body : s.bodies)
      look(body);
    return details;
  }
  /// For so many calls at once.
  void provideArenas(const Schedule &s, size_t calls = 1) {
    arenas.resize(std::max(arenas.size(), calls));
    for (size_t call = 0; call < calls; ++call) {
      arenas[call].resize(s.arenas.size());
      for (uint32_t i = 0; i < s.arenas.size(); ++i)
        provide(arenas[call][i], {s.arenas[i].device, s.arenas[i].memory}, s.arenas[i].bytes, s, Space::Arena, i);
    }
  }
  void provideDerived() {
    const Schedule &s = schedule();
    derived.resize(s.states.size());
    for (uint32_t i = 0; i < s.states.size(); ++i)
      if (s.states[i].kind == StateKind::Derived || !executable) // without code nobody binds any
        provide(derived[i], s.states[i].home, s.states[i].type.bytes(), s, Space::State, i);
  }

  //--- Making -------------------------------------------------------------------------------------------------------
  void start() {
    memory = DeviceMemory::of(machine);
    losses = memory->losses();
    const Schedule &s = schedule();
    if (!s.mesh.empty())
      throwError<InputError>(
          "'", s.name,
          "' is the program of one rank of a mesh: expandRanks (Ranks.h) makes that of all ranks for one "
          "process, and across processes there is no communicator yet");
    for (const StreamDesc &stream : s.streams)
      machine->at(stream.device);
    for (const auto *values : {&s.inputs, &s.outputs})
      for (const ValueDesc &value : *values)
        machine->at(value.home.device);
    for (const StateDesc &state : s.states)
      machine->at(state.home.device);
    auto checkRoutes = [&](const CommandList &p) {
      for (const Command &c : p.commands) {
        if (c.kind != CommandKind::Copy)
          continue;
        const DeviceRef from = homeOf(s, s.buffers[p.operands[c.firstOperand].buffer]).device,
                        to = homeOf(s, s.buffers[p.operands[c.firstOperand + 1].buffer]).device;
        if (!machine->at(from).reaches(to))
          throwError<InputError>("'", s.name, "' copies from ", nameOf(from), " to ", nameOf(to), ", but ",
                                 machine->name(), " has no route there");
      }
    };
    checkRoutes(s.prepare);
    checkRoutes(s.step);
    for (const CommandList &body : s.bodies)
      checkRoutes(body);
    if (!s.constants.empty()) {
      int64_t bytes = 0;
      for (const ConstantDesc &c : s.constants)
        bytes = std::max(bytes, c.offset + c.bytes);
      if (executable)
        constants.add(host(), executable->constants, bytes, {});
      else
        provide(pretended, {}, bytes, s, Space::Constant, 0);
    }
    provideDerived();
    boundStates.assign(s.states.size(), nullptr);
    if (s.dims.empty())
      instanceFor({});
    provideIssuers(1);
    if (!executable ||
        std::ranges::all_of(s.states, [](const StateDesc &state) { return state.kind == StateKind::Derived; }))
      bound = true;
  }

  void provideIssuers(size_t calls) {
    while (issuers.size() < calls)
      issuers.push_back(std::make_unique<Issuer>(*machine, schedule()));
  }

  Instance &instanceFor(const dim::Values &dims) {
    for (size_t i = 0; i < instances.size(); ++i)
      if (instances[i]->dims == dims) {
        std::rotate(instances.begin(), instances.begin() + static_cast<ptrdiff_t>(i),
                    instances.begin() + static_cast<ptrdiff_t>(i) + 1);
        return *instances.front();
      }
    auto made = std::make_unique<Instance>();
    made->dims = dims;
    const Schedule &s = schedule();
    if (s.dims.empty()) {
      made->numbers = s;
    } else {
      checkDims(s, dims);
      made->numbers = instantiate(s, dims);
      for (const ArenaDesc &arena : made->numbers.arenas)
        if (arena.bytes > kMaxBytes)
          throw OutOfMemory(
              concat("'", s.name, "' needs ", arena.bytes, " bytes for these sizes, more than any machine has"));
      if (const auto violations = verifySchedule(made->numbers); !violations.empty())
        throwError<InputError>("schedule '", s.name, "' is not safe to run: ", violations[0].message);
    }
    provideArenas(made->numbers);
    for (size_t k = 0; k < made->numbers.kernels.size(); ++k) {
      DeviceKernel kernel;
      kernel.desc = &made->numbers.kernels[k];
      if (executable) {
        kernel.fn = executable->kernels[k].fn;
        kernel.state = executable->kernels[k].state;
        kernel.epilogue = executable->epilogues[k];
      }
      made->kernels.push_back(kernel);
    }
    if (instances.size() == kInstances)
      instances.pop_back();
    instances.insert(instances.begin(), std::move(made));
    return *instances.front();
  }

  //--- Running ------------------------------------------------------------------------------------------------------
  /// Where the spaces of the schedule are in this call.
  Bases bases(std::span<const void *const> inputs, std::span<void *const> outputs, size_t inFlight = 0) const {
    const Schedule &s = schedule();
    Bases b;
    for (const Allocation &a : arenas[inFlight])
      b.of[size_t(Space::Arena)].push_back(static_cast<std::byte *>(a.memory));
    for (const void *input : inputs)
      b.of[size_t(Space::Input)].push_back(static_cast<std::byte *>(const_cast<void *>(input)));
    for (void *output : outputs)
      b.of[size_t(Space::Output)].push_back(static_cast<std::byte *>(output));
    for (size_t i = 0; i < s.states.size(); ++i)
      b.of[size_t(Space::State)].push_back(
          static_cast<std::byte *>(derived[i].memory ? derived[i].memory : boundStates[i]));
    for (const ConstantDesc &c : s.constants)
      b.of[size_t(Space::Constant)].push_back(
          (executable ? const_cast<std::byte *>(executable->constants) : static_cast<std::byte *>(pretended.memory)) +
          c.offset);
    return b;
  }

  /// Of arenas nothing is kept between calls, nor of outputs.
  void discard(std::span<const Allocation> memory) const {
    for (const Allocation &a : memory)
      if (a.memory)
        a.device->discard(a.memory, a.bytes);
  }
  void prepareNow(const Schedule &numbers, std::span<const DeviceKernel> kernels) {
    const auto call = machine->beginCall();
    discard(arenas[0]);
    discard(derived);
    const Bases where = bases({}, {});
    conclude(numbers, runtime::runCalls(
                          *machine, {issuers.data(), 1}, 1,
                          [&](size_t) {
                            return IssuedCall{.list = 0, .numbers = &numbers, .kernels = kernels, .bases = &where};
                          },
                          options.timeoutNs));
  }
  void stepNow(const Schedule &numbers, std::span<const DeviceKernel> kernels, std::span<const Call> calls) {
    const size_t atOnce = std::min<size_t>(numbers.inFlight, calls.size());
    const auto call = machine->beginCall();
    std::vector<Bases> where(atOnce);
    conclude(numbers,
             runtime::runCalls(
                 *machine, {issuers.data(), atOnce}, calls.size(),
                 [&](size_t i) {
                   Bases &mine = where[i % atOnce] = bases(calls[i].inputs, calls[i].outputs, i % atOnce);
                   discard(arenas[i % atOnce]);
                   for (size_t k = 0; k < numbers.outputs.size(); ++k)
                     if (const int64_t bytes = numbers.outputs[k].type.bytes())
                       machine->at(numbers.outputs[k].home.device).discard(mine.of[size_t(Space::Output)][k], bytes);
                   return IssuedCall{
                       .number = static_cast<uint32_t>(i), .numbers = &numbers, .kernels = kernels, .bases = &mine};
                 },
                 options.timeoutNs));
  }
  void conclude(const Schedule &numbers, const DeviceFailureRef &failure) {
    if (!failure)
      return;
    const size_t count = issuers.size();
    issuers.clear(); // what has failed has failed for good
    provideIssuers(count);
    if (failure->kind == FailureKind::DeviceLost)
      recover(*failure);
    throwFailure(numbers, *failure);
  }

  /// Devices that were lost work again, empty: what is on them is allocated anew, and `prepare` will fill it.
  void recover(const DeviceFailure &failure) {
    for (const auto &device : machine->devices())
      device->reset();
    DeviceMemory::lost(*machine, failure);
    renew();
  }
  /// What was on a device that was lost is allocated anew.
  void renew() {
    prepared = false;
    losses = memory->losses();
    const Schedule &numbers = instances.empty() ? schedule() : instances.front()->numbers;
    freeAll();
    if (!instances.empty())
      provideArenas(numbers);
    provideDerived();
  }

  [[noreturn]] static void throwFailure(const Schedule &s, const DeviceFailure &failure) {
    auto locationOf = [&](uint64_t packed) -> const Location * {
      const CommandTag tag = CommandTag::unpack(packed);
      const CommandList &p = tag.list == 0 ? s.prepare : tag.list == 1 ? s.step : s.bodies[tag.list - 2];
      const uint32_t loc = tag.command < p.commands.size() ? p.commands[tag.command].loc : 0;
      return loc != 0 && loc < s.locations.size() ? &s.locations[loc] : nullptr;
    };
    Error::Details details;
    details.message = failure.message;
    if (const Location *l = locationOf(failure.tag)) {
      details.op = l->op;
      if (!l->file.empty())
        details.where = {internName(l->file), l->line};
    }
    if (failure.kind == FailureKind::Race && failure.otherTag != failure.tag)
      if (const Location *l = locationOf(failure.otherTag))
        details.message +=
            concat(" (the other is ", l->op, l->file.empty() ? "" : concat(" at ", l->file, ":", l->line), ")");
    if (failure.kind == FailureKind::Unsupported)
      throw InputError(std::move(details));
    throw RuntimeError(std::move(details));
  }

  void runPrepare() {
    const Schedule &s = schedule();
    if (!s.dims.empty() && instances.empty()) { // what prepare uses has a fixed size: the least serves
      dim::Values least;
      for (int64_t symbol : s.dims)
        least.bind(symbol, dim::bounds(symbol).lo);
      instanceFor(least);
    }
    const Instance &instance = *instances.front();
    prepareNow(instance.numbers, instance.kernels);
    prepared = true;
  }

  void checkArguments(const Schedule &s, std::span<const Call> calls) const {
    if (!bound)
      throwError<Error>("the states of '", s.name, "' are not bound (call bindStates first)");
    struct Range {
      uintptr_t begin, end;
      const std::string *name;
      bool isOutput;
    };
    std::vector<Range> ranges;
    auto add = [&](const ValueDesc &value, const void *data, bool isOutput) {
      const int64_t bytes = value.type.bytes();
      if (!data && bytes)
        throwError<Error>(isOutput ? "output '" : "input '", value.name, "' is null");
      const auto begin = reinterpret_cast<uintptr_t>(data);
      if (bytes)
        ranges.push_back({begin, begin + static_cast<uintptr_t>(bytes), &value.name, isOutput});
    };
    for (const Call &call : calls) {
      if (call.inputs.size() != s.inputs.size() || call.outputs.size() != s.outputs.size())
        throwError<Error>("'", s.name, "' takes ", s.inputs.size(), " inputs and ", s.outputs.size(), " outputs, not ",
                          call.inputs.size(), " and ", call.outputs.size());
      for (size_t i = 0; i < call.inputs.size(); ++i)
        add(s.inputs[i], call.inputs[i], false);
      for (size_t i = 0; i < call.outputs.size(); ++i)
        add(s.outputs[i], call.outputs[i], true);
    }
    for (const Range &output : ranges)
      for (const Range &other : ranges)
        if (output.isOutput && &other != &output && output.begin < other.end && other.begin < output.end)
          throwError<Error>("output '", *output.name, "' overlaps ", other.isOutput ? "output '" : "input '",
                            *other.name, "'");
  }

  void run(Instance &instance, std::span<const Call> given) {
    const Schedule &s = instance.numbers;
    const bool computes = host().caps().computes;
    if (computes)
      checkArguments(s, given);
    Adoption adopted;
    for (size_t i = 0; i < s.states.size(); ++i)
      if (s.states[i].kind == StateKind::Mutable)
        adopted.add(host(), boundStates[i], s.states[i].type.bytes(), s.states[i].home);
    const size_t atOnce = std::min<size_t>(s.inFlight, given.size());
    if (losses != memory->losses()) [[unlikely]] { // another program's call met it
      issuers.clear();
      renew();
    }
    provideArenas(s, std::max<size_t>(atOnce, 1));
    provideIssuers(std::max<size_t>(atOnce, 1));
    if (!prepared)
      runPrepare();
    if (computes) {
      for (const Call &call : given) {
        for (size_t i = 0; i < call.inputs.size(); ++i)
          adopted.add(host(), call.inputs[i], s.inputs[i].type.bytes(), s.inputs[i].home);
        for (size_t i = 0; i < call.outputs.size(); ++i)
          adopted.add(host(), call.outputs[i], s.outputs[i].type.bytes(), s.outputs[i].home);
      }
      return stepNow(s, instance.kernels, given);
    }
    // Memory of a machine that does not compute; what lies on an accelerator has an address there, where the caller
    // gives one.
    struct Pretended {
      Machine &machine;
      std::vector<std::pair<Device *, void *>> all;
      ~Pretended() {
        for (auto [device, memory] : all)
          device->release(memory);
      }
      void *like(const ValueDesc &value, const void *given) {
        if (given && !isHost(value.home))
          return const_cast<void *>(given);
        Device &device = machine.at(value.home.device);
        const MemoryKind kind =
            isHost(value.home) && value.home.memory == MemoryKind::Device ? MemoryKind::Host : value.home.memory;
        return all.emplace_back(&device, device.allocate(value.type.bytes(), kind)).second;
      }
    } pretend{*machine, {}};
    std::vector<std::vector<const void *>> inputs(given.size());
    std::vector<std::vector<void *>> outputs(given.size());
    std::vector<Call> calls;
    for (size_t k = 0; k < given.size(); ++k) {
      for (size_t i = 0; i < s.inputs.size(); ++i)
        inputs[k].push_back(pretend.like(s.inputs[i], i < given[k].inputs.size() ? given[k].inputs[i] : nullptr));
      for (size_t i = 0; i < s.outputs.size(); ++i)
        outputs[k].push_back(pretend.like(s.outputs[i], i < given[k].outputs.size() ? given[k].outputs[i] : nullptr));
      calls.push_back({inputs[k], outputs[k]});
    }
    stepNow(s, instance.kernels, calls);
  }
};

Executor::Executor(std::shared_ptr<const Executable> executable, std::shared_ptr<Machine> machine,
                   const ExecutorOptions &options)
    : impl_(std::make_unique<Impl>()) {
  impl_->machine = std::move(machine);
  impl_->options = options;
  impl_->executable = std::static_pointer_cast<const ExecutableImpl>(std::move(executable));
  impl_->start();
}
Executor::Executor(Schedule schedule, std::shared_ptr<Machine> machine, const ExecutorOptions &options)
    : impl_(std::make_unique<Impl>()) {
  impl_->machine = std::move(machine);
  impl_->options = options;
  if (impl_->host().caps().computes)
    throw Error("a schedule without code runs only on a machine that does not compute");
  if (const auto violations = verifySchedule(schedule); !violations.empty())
    throwError<InputError>("schedule '", schedule.name, "' is not safe to run: ", violations[0].message);
  impl_->own = std::move(schedule);
  impl_->start();
}
Executor::~Executor() = default;
Executor::Executor(Executor &&) noexcept = default;
Executor &Executor::operator=(Executor &&) noexcept = default;

void Executor::bindStates(std::span<void *const> states, std::shared_ptr<const void> owner) {
  Impl &impl = *impl_;
  const Schedule &s = impl.schedule();
  size_t index = 0;
  impl.bound = impl.prepared = false;
  impl.states.drop();
  for (size_t i = 0; i < s.states.size(); ++i) {
    const StateDesc &state = s.states[i];
    if (state.kind == StateKind::Derived)
      continue;
    if (index >= states.size())
      throwError<Error>("'", s.name, "' has more states to bind than ", states.size());
    impl.boundStates[i] = states[index++];
    if (!impl.boundStates[i] && state.type.bytes())
      throwError<Error>("the memory bound for state '", state.name, "' is null");
    if (state.kind != StateKind::Mutable) // those are adopted for each call, as they may have moved
      impl.states.add(impl.host(), impl.boundStates[i], state.type.bytes(), state.home);
  }
  if (index != states.size())
    throwError<Error>("'", s.name, "' has ", index, " states to bind, not ", states.size());
  impl.runPrepare();
  impl.bound = true;
  impl.statesOwner = std::move(owner);
}

void Executor::moveState(size_t index, void *memory) {
  Impl &impl = *impl_;
  const Schedule &s = impl.schedule();
  for (size_t i = 0, at = 0; i < s.states.size(); ++i) {
    if (s.states[i].kind == StateKind::Derived || at++ != index)
      continue;
    if (s.states[i].kind != StateKind::Mutable || !impl.bound)
      break;
    impl.boundStates[i] = memory;
    return;
  }
  throwError<Error>("state ", index, " of '", s.name, "' cannot be moved: it is no mutable one that is bound");
}

void Executor::run(std::span<const void *const> inputs, std::span<void *const> outputs) {
  if (!impl_->schedule().dims.empty())
    throwError<Error>("'", impl_->schedule().name, "' has symbolic sizes: give their values with the call");
  const Call call{inputs, outputs};
  impl_->run(impl_->instanceFor({}), {&call, 1});
}
void Executor::run(std::span<const void *const> inputs, std::span<void *const> outputs, const dim::Values &dims) {
  if (impl_->schedule().dims.empty())
    return run(inputs, outputs);
  const Call call{inputs, outputs};
  impl_->run(impl_->instanceFor(dims), {&call, 1});
}
void Executor::runCalls(std::span<const Call> calls, const dim::Values &dims) {
  impl_->run(impl_->instanceFor(impl_->schedule().dims.empty() ? dim::Values() : dims), calls);
}

const Schedule &Executor::schedule() const { return impl_->schedule(); }
const Schedule &Executor::numbers() const {
  return impl_->instances.empty() ? impl_->schedule() : impl_->instances.front()->numbers;
}
Machine &Executor::machine() const { return *impl_->machine; }
int64_t Executor::bytesOn(DeviceRef device) const {
  int64_t bytes = 0;
  auto add = [&](const std::vector<Allocation> &list) {
    for (const Allocation &a : list)
      if (a.memory && a.device->caps().device == device)
        bytes += a.bytes;
  };
  std::ranges::for_each(impl_->arenas, add);
  add(impl_->derived);
  return bytes;
}

} // namespace tressel::runtime
