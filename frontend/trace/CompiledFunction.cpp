#include "frontend/trace/CompiledFunction.h"

#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Machine.h"
#include "frontend/tensor/Make.h"
#include "tressel/runtime/CommandLog.h"
#include "tressel/runtime/DeviceStorage.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Instantiate.h"

#include <array>
#include <cstring>
#include <utility>

namespace tressel::detail {
using namespace runtime;

/// A first guess, before the program was measured: 4 flops and 8 bytes a nanosecond, 50 ns a launch.
static double guessNs(const Schedule &schedule, const runtime::CommandList &program) {
  double ns = 0;
  for (const Command &c : program.commands) {
    ns += 50;
    if (c.kind == CommandKind::Launch)
      ns += static_cast<double>(schedule.kernels[c.kernel].flops) / 4 +
            static_cast<double>(schedule.kernels[c.kernel].bytes) / 8;
    double bodies = 0;
    for (uint32_t i = 0; i < numBodies(c.kind); ++i)
      bodies += guessNs(schedule, schedule.bodies[c.body + i]);
    const int64_t trips = c.kind == CommandKind::Loop ? dim::hint(program.scalars[c.firstScalar]) : 1;
    ns += bodies * static_cast<double>(trips);
  }
  return ns;
}

CompiledFunction::CompiledFunction(std::shared_ptr<const Executable> executable,
                                   std::vector<std::shared_ptr<VariableImpl>> states,
                                   const CompiledFunctionOptions &options)
    : executable_(std::move(executable)), states_(std::move(states)), name_(internName(options.name)),
      machine_(options.machine), strictDonation_(options.strictDonation), spread_(options.spread),
      cost_(guessNs(executable_->schedule(), executable_->schedule().step)), firstCalls_(executable_->schedule()) {
  for (const ValueDesc &output : schedule().outputs)
    outputs_.push_back({output.type, output.type.shape.isStatic() ? output.type.bytes() : 0, output.home.device});
  size_t bound = 0;
  for (const StateDesc &state : schedule().states)
    if (state.kind != StateKind::Derived) {
      (state.kind == StateKind::Mutable ? written_ : read_).push_back(bound++);
      homes_.push_back(homeNumber(state.home.device));
    }
  if (!written_.empty()) {
    std::vector<std::shared_ptr<VariableImpl>> all = states_;
    for (const SpreadUse &use : spread_)
      all.push_back(use.whole);
    StateGroup::join(all);
  }
}

CompiledFunction::~CompiledFunction() { delete handy_.load(); }

CompiledFunction::Slot::Slot(const CompiledFunction &program) {
  if (program.machine_)
    executor = std::make_unique<Executor>(program.executable_, program.machine_);
  else
    context.emplace(program.executable_);
  if (!program.read_.empty() && program.written_.empty())
    reader.emplace(program.states_);
}

//--- Variables --------------------------------------------------------------------------------------------------------

void CompiledFunction::checkNotFailed(const VariableImpl &variable, const SourceLoc &where) const {
  const Storage &storage = *variable.value.impl()->storage;
  if (!Engine::reached(storage.ready())) [[unlikely]]
    return;
  const FailureRef why = storage.failure();
  if (!why) [[likely]]
    return;
  why->observed.store(true);
  const std::string at = why->where.str();
  fail<RuntimeError>("'" + std::string(name_) + "' needs the Variable '" + variable.name +
                         "', which has no value since the call that was to write it failed: " +
                         (why->op.empty() ? "" : why->op + ": ") + why->message +
                         (at.empty() ? "" : " (at " + at + ")"),
                     where, name_,
                     "give it a value again, with Variable::assign, load_parameters or load_state; so for all that the "
                     "failed call was to write");
}

void CompiledFunction::checkHome(size_t state, const SourceLoc &where) const {
  const TensorImpl &now = *states_[state]->value.impl();
  if (now.home != homes_[state]) [[unlikely]]
    fail<Error>("'" + std::string(name_) + "' was compiled with the Variable '" + states_[state]->name + "' on " +
                    nameOf(deviceOfHome(homes_[state])) + ", and it was moved to " + nameOf(deviceOfHome(now.home)) +
                    " meanwhile",
                where, name_, "call again: it is compiled anew then");
  if (now.home)
    checkMachine(now, machine_, where, name_);
}

bool CompiledFunction::isCurrent(const Binding &binding) const {
  for (size_t i = 0; i < read_.size(); ++i)
    if (binding.versions[i] != states_[read_[i]]->version.load(std::memory_order_acquire))
      return false;
  return true;
}

/// A binding of the states that are only read, current at `epoch` or later.
std::shared_ptr<const CompiledFunction::Binding> CompiledFunction::currentBinding(uint64_t epoch, const SourceLoc &where) {
  std::unique_lock lock(mutex_);
  if (epoch_ == epoch)
    return binding_;
  if (!binding_ || !isCurrent(*binding_)) {
    lock.unlock();
    auto next = std::make_shared<Binding>();
    for (const size_t i : read_) {
      const StateGroup::Lock one(*states_[i]);
      if (states_[i]->spread) [[unlikely]] // programs without a mesh read the host's value
        states_[i]->spread->settle(*states_[i], where);
      checkNotFailed(*states_[i], where);
      checkHome(i, where);
      next->versions.push_back(states_[i]->version.load(std::memory_order_acquire));
      next->storages.emplace_back(states_[i]->value.impl()->storage);
    }
    for (const StoragePin &pin : next->storages)
      Engine::global().wait(*pin.get(), where, "binding a Variable");
    lock.lock();
    binding_ = std::move(next);
  }
  epoch_ = epoch;
  return binding_;
}

/// The memory that the program updates in place: the Variable's own. If a tensor still holds that, the Variable first
/// moves to a copy. The group is locked.
Storage *CompiledFunction::donated(size_t state, const SourceLoc &where) {
  VariableImpl &variable = *states_[state];
  if (variable.spread) [[unlikely]] { // a program without a mesh
    variable.spread->settle(variable, where);
    variable.spread->noteWhole();
  }
  checkNotFailed(variable, where);
  const TensorImpl &now = *variable.value.impl();
  if (now.home | homes_[state]) [[unlikely]] {
    checkHome(state, where);
    DeviceMemory::forgetHostCopy(*now.storage);
  }
  const bool adopted = now.storage->adopted();
  if (!adopted && now.references.load(std::memory_order_acquire) == 1 && now.storage->heldOnce()) [[likely]]
    return now.storage.get();
  const int64_t bytes = now.storage->bytes();
  if (!adopted) { // memory that the user gave (a mapped file, say) is copied once without a finding
    const SourceLoc holder = variable.readAt ? variable.readAt : now.where;
    if (strictDonation_)
      fail<Error>("'" + std::string(name_) + "' updates the Variable '" + variable.name + "', whose value is still held by a tensor" +
                      (holder ? ", read or made at " + holder.str() : std::string()),
                  where, name_, "let that tensor go before the call, or call without JitOptions::strict_donation, which copies the value");
    {
      std::lock_guard one(mutex_);
      held_ = {variable.name, bytes, holder};
    }
    stateCopies_.fetch_add(1, std::memory_order_relaxed);
  }
  if (now.home) {
    Tensor copy = deviceTensor(now.type, bytes, machine_, deviceOfHome(now.home), where, name_);
    const StorageRef from = now.storage, to = copy.impl()->storage;
    Engine::global().submit({.op = "copy of a Variable", .where = where}, {&from, 1}, {&to, 1},
                            [bytes, home = now.home, memory = DeviceMemory::of(machine_)](const TaskView &task) {
                              memory->copy(task.outputs[0], deviceOfHome(home), task.inputs[0], deviceOfHome(home),
                                           bytes);
                              return int32_t(kKernelOk);
                            });
    std::swap(variable.value, copy);
    return variable.value.impl()->storage.get();
  }
  Tensor copy = resultTensor(now.type, bytes, where);
  const StorageRef from = now.storage, to = copy.impl()->storage;
  Engine::global().submit({.op = "copy of a Variable", .where = where, .cost = &copyCost_}, {&from, 1}, {&to, 1},
                          [bytes](const TaskView &task) {
                            std::memcpy(task.outputs[0], task.inputs[0], static_cast<size_t>(bytes));
                            return int32_t(kKernelOk);
                          });
  std::swap(variable.value, copy);
  return variable.value.impl()->storage.get();
}

std::optional<double> CompiledFunction::achievedSideBySide() {
  if (!machine_)
    return std::nullopt;
  std::optional<double> share;
  const auto call = machine_->beginCall(/*isAside=*/true); // nothing is at work meanwhile
  auto look = [&](const Slot &slot) {
    if (slot.executor->caller() == machine_->caller() && !machine_->log().commands.empty())
      share = timelineOf(*slot.executor).sideBySide;
  };
  if (std::unique_ptr<Slot> handy(handy_.exchange(nullptr, std::memory_order_acquire)); handy) {
    look(*handy);
    release(std::move(handy));
  }
  std::lock_guard lock(mutex_);
  for (const auto &slot : spare_)
    look(*slot);
  return share;
}

Decisions CompiledFunction::findings() const {
  Decisions found = firstCalls_.findings();
  if (const uint64_t copies = stateCopies()) {
    std::lock_guard lock(mutex_);
    found.push_back({"donation",
                     {"'" + held_.variable + "'", held_.where.file ? held_.where.file : "", held_.where.line},
                     std::to_string(copies) + (copies == 1 ? " Variable was" : " Variables were") +
                         " copied before a call updated them, as tensors held their values; the latest, of " +
                         std::to_string(held_.bytes) + " bytes, was read or made here"});
  }
  return found;
}

//--- Contexts ---------------------------------------------------------------------------------------------------------

std::unique_ptr<CompiledFunction::Slot> CompiledFunction::acquire() {
  if (Slot *slot = handy_.exchange(nullptr, std::memory_order_acquire))
    return std::unique_ptr<Slot>(slot);
  {
    std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      auto slot = std::move(spare_.back());
      spare_.pop_back();
      return slot;
    }
  }
  return std::make_unique<Slot>(*this);
}

void CompiledFunction::release(std::unique_ptr<Slot> slot) {
  Slot *none = nullptr;
  if (handy_.compare_exchange_strong(none, slot.get(), std::memory_order_release, std::memory_order_relaxed)) {
    (void)slot.release();
    return;
  }
  std::lock_guard lock(mutex_);
  spare_.push_back(std::move(slot));
}

/// `written`: memory of the states that are assigned.
void CompiledFunction::bind(Slot &slot, const std::shared_ptr<const Binding> &binding, void *const *written) const {
  if (slot.binding == binding && !slot.bound.empty()) [[likely]] {
    for (size_t i = 0; i < written_.size(); ++i)
      if (void *&bound = slot.bound[written_[i]]; bound != written[i]) [[unlikely]] {
        bound = written[i];
        slot.executor ? slot.executor->moveState(written_[i], bound) : slot.context->moveState(written_[i], bound);
      }
    return;
  }
  slot.epoch = ~uint64_t(0);
  const auto before = std::move(slot.binding); // keeps the old memory alive until the new one is bound
  slot.bound.resize(states_.size());
  for (size_t i = 0; i < read_.size(); ++i)
    slot.bound[read_[i]] = binding->storages[i].get()->data();
  for (size_t i = 0; i < written_.size(); ++i)
    slot.bound[written_[i]] = written[i];
  slot.executor ? slot.executor->bindStates(slot.bound) : slot.context->bindStates(slot.bound);
  slot.binding = binding;
}

//--- Calls ------------------------------------------------------------------------------------------------------------

int32_t CompiledFunction::execute(Slot &slot, const std::shared_ptr<const Binding> &binding, const TaskView &task, size_t numInputs,
                                  const dim::Values *dims) {
  if (!states_.empty())
    bind(slot, binding, task.outputs + outputs_.size());
  const std::span<const void *const> inputs{const_cast<const void *const *>(task.inputs), numInputs};
  const std::span<void *const> outputs{task.outputs, outputs_.size()};
  const bool isObserved = !slot.executor && firstCalls_.isOpen();
  if (isObserved != (slot.profile != nullptr)) [[unlikely]] {
    slot.profile = isObserved ? std::make_unique<Profile>() : nullptr;
    slot.context->setProfile(slot.profile.get());
  }
  struct Report { // also of a call that throws
    const Slot &slot;
    const TaskView &task;
    ~Report() { task.wroteStates = slot.executor || slot.context->wroteStates(); }
  } report{slot, task};
  if (slot.executor) [[unlikely]]
    dims ? slot.executor->run(inputs, outputs, *dims) : slot.executor->run(inputs, outputs);
  else if (dims)
    slot.context->run(inputs, outputs, *dims);
  else
    slot.context->run(inputs, outputs);
  if (isObserved) [[unlikely]]
    firstCalls_.add(*slot.profile, hostMachine().devices.front(), Corrections::ofHost());
  return kKernelOk;
}

int32_t CompiledFunction::runInTask(const TaskView &task, size_t numInputs, const dim::Values *dims) {
  auto slot = acquire();
  if (!states_.empty())
    throw InternalError("a program with Variables was run in a task");
  const int32_t status = execute(*slot, nullptr, task, numInputs, dims);
  release(std::move(slot));
  return status;
}

std::shared_ptr<const dim::Values> CompiledFunction::dimsFor(std::span<const Tensor *const> inputs, const Slot *kept) const {
  if (kept)
    return kept->dims;
  if (schedule().dims.empty())
    return nullptr;
  std::vector<Shape> shapes;
  for (const Tensor *input : inputs)
    shapes.push_back(input->shape());
  return std::make_shared<const dim::Values>(dimsOf(schedule(), shapes));
}

void CompiledFunction::makeOutputs(std::span<Tensor> outputs, const dim::Values *dims, const SourceLoc &where) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto &[type, bytes, device] = outputs_[i];
    if (dims || !isHost(device)) [[unlikely]] {
      const TensorType evaluated{type.dtype, dims ? dim::evaluate(type.shape, *dims) : type.shape};
      const int64_t needed = bytesOf(evaluated, where, name_);
      outputs[i] = isHost(device) ? resultTensor(evaluated, needed, where)
                                  : deviceTensor(evaluated, needed, machine_, device, where, name_);
    } else {
      outputs[i] = resultTensor(type, bytes, where);
    }
  }
}

void CompiledFunction::bringSpread(const SourceLoc &where) {
  bool isWritten = false;
  for (const SpreadUse &use : spread_) {
    const StateGroup::Lock lock(*use.whole);
    if (use.whole->spread != use.spread)
      fail<Error>("the Variable '" + use.whole->name + "' was moved while '" + name_ + "', which uses it, was called",
                  where, "jit", "move Variables between calls, or call again");
    use.spread->bring(*use.whole, *use.layout, where);
    if (!use.isWritten)
      continue;
    use.spread->noteWritten(*use.layout);
    use.whole->version.fetch_add(1, std::memory_order_release);
    isWritten = true;
  }
  if (isWritten)
    variableEpoch.fetch_add(1, std::memory_order_release);
}

void CompiledFunction::run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, const SourceLoc &where,
                           std::unique_ptr<Slot> *keep) {
  auto dims = dimsFor(inputs, keep ? keep->get() : nullptr);
  makeOutputs(outputs, dims.get(), where);
  std::unique_ptr<Slot> slot = keep && *keep ? std::move(*keep) : acquire();
  slot->inputs.clear(), slot->outputs.clear();
  for (const Tensor *input : inputs)
    slot->inputs.push_back(input->impl()->storage.get());
  for (const Tensor &output : outputs)
    slot->outputs.push_back(output.impl()->storage.get());
  std::optional<StateGroup::Lock> alone; // no other thread assigns between bringing the parts and writing them
  if (!spread_.empty()) [[unlikely]] {
    if (!written_.empty())
      alone.emplace(*states_[written_.front()]);
    bringSpread(where);
  }
  const Outcome outcome = states_.empty()    ? submit(*slot, dims, nullptr, 0, where)
                          : written_.empty() ? read(*slot, dims, where)
                                             : update(*slot, dims, where);
  if (outcome == Outcome::Failed)
    return; // a context whose call failed is dropped
  if (keep && outcome == Outcome::Ran) {
    slot->dims = std::move(dims);
    *keep = std::move(slot);
  } else {
    release(std::move(slot));
  }
}

/// A call that reads Variables and assigns none.
CompiledFunction::Outcome CompiledFunction::read(Slot &slot, const std::shared_ptr<const dim::Values> &dims, const SourceLoc &where) {
  struct Reading {
    StateReader &reader;
    explicit Reading(StateReader &reader) : reader(reader) { reader.begin(); }
    ~Reading() { reader.end(); }
  };
  for (std::shared_ptr<const Binding> binding;;) {
    uint64_t epoch;
    {
      const Reading reading(*slot.reader);
      epoch = variableEpoch.load(std::memory_order_acquire);
      if (slot.epoch == epoch)
        return submit(slot, dims, slot.binding, epoch, where);
      if (binding && isCurrent(*binding))
        return submit(slot, dims, binding, epoch, where);
    }
    binding = currentBinding(epoch, where); // waits for pending values, which a reader must not do
  }
}

/// A call that assigns Variables. Holds the lock of all the program's Variables.
CompiledFunction::Outcome CompiledFunction::update(Slot &slot, const std::shared_ptr<const dim::Values> &dims, const SourceLoc &where) {
  const StateGroup::Lock lock(*states_[written_.front()]);
  const StateGroup::Writing writing(lock.group());
  const uint64_t epoch = variableEpoch.load(std::memory_order_acquire);
  std::shared_ptr<const Binding> binding;
  if (!read_.empty())
    binding = slot.epoch == epoch ? slot.binding : currentBinding(epoch, where);
  for (const size_t i : written_)
    slot.outputs.push_back(donated(i, where));
  // Readers wait until `writing` ends, and then see the new versions.
  for (const size_t i : written_)
    states_[i]->version.fetch_add(1, std::memory_order_release);
  // What is bound is still current if no other Variable was assigned meanwhile.
  const bool isAlone = variableEpoch.fetch_add(1, std::memory_order_acq_rel) == epoch;
  return submit(slot, dims, binding, isAlone ? epoch + 1 : ~uint64_t(0), where);
}

CompiledFunction::Outcome CompiledFunction::submit(Slot &slot, const std::shared_ptr<const dim::Values> &dims,
                                                   const std::shared_ptr<const Binding> &binding, uint64_t epoch, const SourceLoc &where) {
  const size_t numInputs = slot.inputs.size();
  auto outcome = Outcome::Failed;
  Engine::global().submit(
      {.op = name_, .where = where, .cost = &cost_, .numStates = static_cast<uint32_t>(written_.size())}, slot.inputs, slot.outputs,
      [&](const TaskView &task) {
        const int32_t status = execute(slot, binding, task, numInputs, dims.get());
        slot.epoch = epoch;
        outcome = Outcome::Ran;
        return status;
      },
      [&] {
        outcome = Outcome::Queued;
        return [self = shared_from_this(), binding, numInputs, dims](const TaskView &task) {
          auto own = self->acquire();
          const int32_t status = self->execute(*own, binding, task, numInputs, dims.get());
          self->release(std::move(own));
          return status;
        };
      },
      [&]() -> std::span<Storage *const> { // what is bound now is read by the task, and later updates wait for it
        if (binding)
          for (const StoragePin &pin : binding->storages)
            slot.inputs.push_back(pin.get());
        return slot.inputs;
      });
  return outcome;
}

} // namespace tressel::detail
