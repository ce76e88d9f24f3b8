#include "tressel/runtime/Executor.h"

#include "Issue.h"
#include "runtime/executable/Caller.h"
#include "runtime/executable/ExecutableImpl.h"
#include "runtime/schedule/ScheduleSizes.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/DeviceStorage.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>

namespace tressel::runtime {
namespace {

struct Instance {
  dim::Values dims;
  Schedule numbers; ///< empty without symbols: the schedule itself serves
  uint64_t number = 0; ///< of the executor's instances, from 1
};

/// What an Executor has allocated on a device.
struct Allocation {
  Device *device = nullptr;
  void *memory = nullptr;
  int64_t bytes = 0;
  uint64_t losses = 0; ///< of the device, when it was allocated
};

/// The caller's memory that commands name, where the host checks addresses and has to be told of it. What lies elsewhere is a device's own.
class CallersMemory {
public:
  /// Unless the caller has registered it.
  void addForCall(Device &host, const void *memory, int64_t bytes, const Home &home) {
    if (host.caps().checksMemory && !host.knowsMemory(memory, bytes, kindOf(home)))
      add(host, memory, bytes, home);
  }
  void add(Device &host, const void *memory, int64_t bytes, const Home &home) {
    if (host.caps().checksMemory && memory && bytes > 0 && isHost(home))
      registered_.emplace_back(host, memory, bytes, kindOf(home));
  }
  void clear() { registered_.clear(); }

private:
  static MemoryKind kindOf(const Home &home) { return home.memory == MemoryKind::Device ? MemoryKind::Host : home.memory; }
  std::vector<RegisteredMemory> registered_;
};

} // namespace

struct Executor::Impl {
  Impl(std::shared_ptr<Machine> machine, const ExecutorOptions &options, std::shared_ptr<const ExecutableImpl> executable, Schedule own = {})
      : machine(std::move(machine)), options(options), executable(std::move(executable)), own(std::move(own)), states(schedule()) {}

  std::shared_ptr<Machine> machine; // outlives what follows
  std::shared_ptr<DeviceMemory> memory;
  uint64_t losses = 0; ///< of the machine's devices, as far as this knows
  ExecutorOptions options;
  std::shared_ptr<const ExecutableImpl> executable; // null: without code
  Schedule own;                                     // without code
  std::vector<std::vector<Allocation>> arenas;      // by call in flight
  std::vector<Allocation> derived;                  // by state, none where the caller binds
  BoundStates states;
  BySizes<Instance> instances;
  uint64_t numInstances = 0; // ever made
  LoadedKernels kernels;
  Allocation pretended;                             // constants, without code
  CallersMemory constants;
  std::vector<CallersMemory> statesMemory;          // by state
  bool prepared = false;
  std::vector<std::unique_ptr<Issuer>> issuers; // by call in flight
  DeviceFailureRef broken;                      // after which a device did not come back

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
    uint32_t location = 0;
    int64_t most = -1;
    for (uint32_t list = 0; list < s.bodies.size() + 2; ++list)
      for (const CommandList &p = listOf(s, list); const Command &c : p.commands) {
        int64_t bytes = 0;
        for (uint32_t k = 0; k < c.numOperands; ++k)
          if (const BufferDesc &b = s.buffers[p.operands[c.firstOperand + k].buffer]; b.space == space && b.index == index)
            bytes += b.bytes.number();
        if (bytes > most && c.loc < s.locations.size() && c.loc != 0)
          most = bytes, location = c.loc;
      }
    return detailsOf(s, location, std::move(message));
  }
  /// For so many calls at once.
  void provideArenas(const Schedule &s, size_t calls = 1) {
    arenas.resize(std::max(arenas.size(), calls));
    for (size_t call = 0; call < calls; ++call) {
      arenas[call].resize(s.arenas.size());
      for (uint32_t i = 0; i < s.arenas.size(); ++i)
        provide(arenas[call][i], {s.arenas[i].device, s.arenas[i].memory}, s.arenas[i].bytes.number(), s, Space::Arena,
                i);
    }
  }
  void provideDerived() {
    const Schedule &s = schedule();
    derived.resize(s.states.size());
    for (uint32_t i = 0; i < s.states.size(); ++i)
      if (s.states[i].kind == StateKind::Derived || !executable) // without code, the executor has all of them
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
          "' is the program of one rank of a mesh, which ranks in processes of their own run; they cannot exchange "
          "anything yet, so it can be explained, and not run. A program for all ranks in this process has no "
          "tressel.rank_program");
    for (const StreamDesc &stream : s.streams)
      machine->at(stream.device);
    for (const auto *values : {&s.inputs, &s.outputs})
      for (const ValueDesc &value : *values)
        machine->at(value.home.device);
    for (const StateDesc &state : s.states)
      machine->at(state.home.device);
    for (uint32_t list = 0; list < s.bodies.size() + 2; ++list)
      checkRoutes(s, listOf(s, list));
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
    statesMemory.resize(s.states.size());
    loadKernels();
    if (s.dims.empty())
      instanceFor({});
    provideIssuers(1);
    if (states.numCallers() == 0)
      states.bind({}, nullptr, [] {}); // the first call prepares
  }
  void checkRoutes(const Schedule &s, const CommandList &p) const {
    for (const Command &c : p.commands) {
      if (c.kind != CommandKind::Copy)
        continue;
      const DeviceRef from = homeOf(s, s.buffers[p.operands[c.firstOperand].buffer]).device,
                      to = homeOf(s, s.buffers[p.operands[c.firstOperand + 1].buffer]).device;
      if (!machine->at(from).reaches(to))
        throwError<InputError>("'", s.name, "' copies from ", nameOf(from), " to ", nameOf(to), ", but ", machine->name(), " has no route there");
    }
  }
  void loadKernels() {
    std::vector<KernelCode> code;
    for (size_t k = 0; k < schedule().kernels.size(); ++k) {
      code.push_back({.desc = &schedule().kernels[k]});
      if (executable) {
        code.back().fn = executable->kernels[k].fn;
        code.back().state = executable->kernels[k].state;
        code.back().epilogue = executable->epilogues[k];
      }
    }
    kernels.load(*machine, schedule(), code, executable ? executable->gpu : nullptr);
  }
  void provideIssuers(size_t calls) {
    while (issuers.size() < calls)
      issuers.push_back(std::make_unique<Issuer>(*machine, schedule()));
  }

  const Schedule &numbersOf(const Instance &instance) const { return schedule().dims.empty() ? schedule() : instance.numbers; }
  Instance &instanceFor(const dim::Values &dims) {
    if (Instance *known = instances.find(dims))
      return *known;
    auto made = std::make_unique<Instance>();
    made->dims = dims;
    made->number = ++numInstances;
    if (!schedule().dims.empty()) // a symbol without a value is an error
      made->numbers = numbersFor(schedule(), dims);
    provideArenas(numbersOf(*made));
    return instances.add(std::move(made));
  }

  //--- Running ------------------------------------------------------------------------------------------------------
  /// Where the spaces of the schedule are in this call.
  Begins begins(std::span<const void *const> inputs, std::span<void *const> outputs, size_t inFlight = 0) const {
    const Schedule &s = schedule();
    Begins b;
    auto in = [&](Space space) -> std::vector<void *> & { return b.of[static_cast<size_t>(space)]; };
    for (const Allocation &a : arenas[inFlight])
      in(Space::Arena).push_back(a.memory);
    for (const void *input : inputs)
      in(Space::Input).push_back(const_cast<void *>(input));
    in(Space::Input).resize(s.inputs.size());
    in(Space::Output).assign(outputs.begin(), outputs.end());
    in(Space::Output).resize(s.outputs.size());
    for (size_t i = 0; i < s.states.size(); ++i)
      in(Space::State).push_back(derived[i].memory ? derived[i].memory : states[i]);
    for (const ConstantDesc &c : s.constants)
      in(Space::Constant)
          .push_back((executable ? const_cast<std::byte *>(executable->constants) : static_cast<std::byte *>(pretended.memory)) + c.offset);
    return b;
  }

  /// Of arenas nothing is kept between calls, nor of outputs.
  void discard(std::span<const Allocation> memory) const {
    for (const Allocation &a : memory)
      if (a.memory)
        a.device->discard(a.memory, a.bytes);
  }
  IssuedCall callOf(const Instance &instance, uint32_t list, const Begins &where) const {
    return {.list = list, .numbers = &numbersOf(instance), .sizes = instance.number, .kernels = &kernels, .begins = &where};
  }
  void prepareNow() {
    const Schedule &s = schedule();
    if (broken)
      throwFailure(s, *broken);
    const Instance &instance = !s.dims.empty() && instances.empty() ? instanceFor(leastDims(s)) : instances.front();
    const auto call = machine->beginCall();
    discard(arenas[0]);
    discard(derived);
    const Begins where = begins({}, {});
    conclude(numbersOf(instance),
             runtime::runCalls(*machine, {issuers.data(), 1}, 1, [&](size_t) { return callOf(instance, 0, where); }, options.timeoutNs));
    prepared = true;
  }
  void stepNow(const Instance &instance, std::span<const Call> calls) {
    const Schedule &numbers = numbersOf(instance);
    if (broken)
      throwFailure(numbers, *broken);
    const size_t atOnce = std::min<size_t>(numbers.inFlight, calls.size());
    const auto call = machine->beginCall();
    machine->setCaller(this);
    std::vector<Begins> where(atOnce);
    auto next = [&](size_t i) {
      Begins &mine = where[i % atOnce] = begins(calls[i].inputs, calls[i].outputs, i % atOnce);
      discard(arenas[i % atOnce]);
      for (size_t k = 0; k < numbers.outputs.size(); ++k)
        if (const int64_t bytes = numbers.outputs[k].type.bytes())
          machine->at(numbers.outputs[k].home.device).discard(mine.of[size_t(Space::Output)][k], bytes);
      IssuedCall issued = callOf(instance, 1, mine);
      issued.number = static_cast<uint32_t>(i);
      return issued;
    };
    conclude(numbers, runtime::runCalls(*machine, {issuers.data(), atOnce}, calls.size(), next, options.timeoutNs));
  }
  void conclude(const Schedule &numbers, const DeviceFailureRef &failure) {
    if (!failure)
      return;
    const size_t count = issuers.size();
    issuers.clear(); // what has failed has failed for good
    try {
      provideIssuers(count);
      if (failure->kind == FailureKind::DeviceLost)
        recover(*failure);
    } catch (const Error &) { // the device does not come back, which is not what happened first
      issuers.clear();
      broken = failure;
    }
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
    freeAll();
    if (!instances.empty())
      provideArenas(numbersOf(instances.front()));
    provideDerived();
  }

  [[noreturn]] static void throwFailure(const Schedule &s, const DeviceFailure &failure) {
    auto locationOf = [&](uint64_t packed) {
      const CommandTag tag = CommandTag::unpack(packed);
      const CommandList &p = listOf(s, tag.list);
      return tag.command < p.commands.size() ? p.commands[tag.command].loc : 0;
    };
    Error::Details details = detailsOf(s, locationOf(failure.tag), failure.message);
    if (failure.kind == FailureKind::Race && failure.otherTag != failure.tag)
      if (const uint32_t other = locationOf(failure.otherTag); other != 0 && other < s.locations.size()) {
        const Location &l = s.locations[other];
        details.message += concat(" (the other is ", l.op, l.file.empty() ? "" : concat(" at ", l.file, ":", l.line), ")");
      }
    if (failure.kind == FailureKind::Unsupported)
      throw InputError(std::move(details));
    throw RuntimeError(std::move(details));
  }

  void bind(std::span<void *const> given, std::shared_ptr<const void> owner) {
    states.bind(given, std::move(owner), [&] {
      prepared = false;
      for (uint32_t i = 0; i < schedule().states.size(); ++i)
        know(i);
      prepareNow();
    });
  }
  void know(size_t state) {
    const StateDesc &desc = schedule().states[state];
    statesMemory[state].clear();
    if (desc.kind != StateKind::Derived)
      statesMemory[state].add(host(), states[state], desc.type.bytes(), desc.home);
  }

  void run(Instance &instance, std::span<const Call> given) {
    const Schedule &s = numbersOf(instance);
    const size_t atOnce = std::max<size_t>(std::min<size_t>(s.inFlight, given.size()), 1);
    if (host().caps().computes) {
      std::vector<CallArguments> arguments;
      for (const Call &call : given)
        arguments.push_back({call.inputs, call.outputs});
      checkArguments(s, arguments, states.areBound());
    }
    if (losses != memory->losses()) [[unlikely]] { // another program's call met it
      issuers.clear();
      renew();
    }
    provideArenas(s, atOnce);
    provideIssuers(atOnce);
    if (!prepared)
      prepareNow();
    if (!host().caps().computes)
      return pretend(instance, given);
    CallersMemory known;
    for (const Call &call : given) {
      for (size_t i = 0; i < call.inputs.size(); ++i)
        known.addForCall(host(), call.inputs[i], s.inputs[i].type.bytes(), s.inputs[i].home);
      for (size_t i = 0; i < call.outputs.size(); ++i)
        known.addForCall(host(), call.outputs[i], s.outputs[i].type.bytes(), s.outputs[i].home);
    }
    stepNow(instance, given);
  }
  void pretend(const Instance &instance, std::span<const Call> given) {
    const Schedule &s = numbersOf(instance);
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
    stepNow(instance, calls);
  }
};

Executor::Executor(std::shared_ptr<const Executable> executable, std::shared_ptr<Machine> machine,
                   const ExecutorOptions &options)
    : impl_(std::make_unique<Impl>(std::move(machine), options, std::static_pointer_cast<const ExecutableImpl>(std::move(executable)))) {
  impl_->start();
}

static Schedule verified(Schedule schedule, const Machine &machine) {
  if (machine.at({}).caps().computes)
    throw Error("a schedule without code runs only on a machine that does not compute");
  if (const auto violations = verifySchedule(schedule); !violations.empty())
    throwError<InputError>("schedule '", schedule.name, "' is not safe to run: ", violations[0].message);
  return schedule;
}
Executor::Executor(Schedule schedule, std::shared_ptr<Machine> machine, const ExecutorOptions &options) {
  Schedule own = verified(std::move(schedule), *machine);
  impl_ = std::make_unique<Impl>(std::move(machine), options, nullptr, std::move(own));
  impl_->start();
}
Executor::~Executor() = default;
Executor::Executor(Executor &&) noexcept = default;
Executor &Executor::operator=(Executor &&) noexcept = default;

void Executor::bindStates(std::span<void *const> states, std::shared_ptr<const void> owner) { impl_->bind(states, std::move(owner)); }
void Executor::moveState(size_t index, void *memory) { impl_->know(impl_->states.move(index, memory)); }

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
  return impl_->instances.empty() ? impl_->schedule() : impl_->numbersOf(impl_->instances.front());
}
Machine &Executor::machine() const { return *impl_->machine; }
const void *Executor::caller() const { return &*impl_; }
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
