#include "frontend/Program.h"

#include "frontend/Record.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/Dim.h"

#include <array>
#include <utility>

namespace tressel::detail {
using namespace runtime;

/// A first guess, before the program was measured: 4 flops and 8 bytes a nanosecond, 50 ns a launch.
static double guessNs(const Schedule &schedule, const runtime::Program &program) {
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

Program::Program(std::shared_ptr<const Executable> executable, std::vector<std::shared_ptr<VariableImpl>> states,
                 std::string name, std::shared_ptr<Machine> machine)
    : executable_(std::move(executable)), states_(std::move(states)), name_(internName(name)), machine_(std::move(machine)),
      cost_(guessNs(executable_->schedule(), executable_->schedule().step)), firstCalls_(executable_->schedule()) {
  for (const ValueDesc &output : schedule().outputs)
    outputs_.push_back({output.type, output.type.shape.isStatic() ? output.type.bytes() : 0});
}

Program::~Program() { delete handy_.load(); }

void Program::checkNotFailed(const VariableImpl &variable, const SourceLoc &where, const char *name) {
  const Storage &storage = *variable.value.impl()->storage;
  if (!Engine::reached(storage.ready())) [[unlikely]]
    return;
  const FailureRef why = storage.failure();
  if (!why) [[likely]]
    return;
  why->observed.store(true);
  const std::string at = why->where.str();
  fail<RuntimeError>("'" + std::string(name) + "' needs the Variable '" + variable.name +
                         "', which has no value since the call that was to write it failed: " +
                         (why->op.empty() ? "" : why->op + ": ") + why->message +
                         (at.empty() ? "" : " (at " + at + ")"),
                     where, name,
                     "give it a value again, with Variable::assign, load_parameters or load_state; so for all that the "
                     "failed call was to write");
}

std::shared_ptr<const Program::Binding> Program::currentBinding(SourceLoc where) {
  if (states_.empty())
    return nullptr;
  const uint64_t epoch = variableEpoch.load(std::memory_order_acquire);
  std::unique_lock lock(mutex_);
  if (epoch_ == epoch)
    return binding_;
  bool changed = !binding_;
  for (size_t i = 0; i < states_.size() && !changed; ++i)
    changed = binding_->versions[i] != states_[i]->version.load(std::memory_order_acquire);
  if (changed) {
    auto next = std::make_shared<Binding>();
    for (const auto &state : states_) {
      next->versions.push_back(state->version.load(std::memory_order_acquire));
      next->storages.push_back(state->value.impl()->storage);
    }
    lock.unlock();
    for (size_t i = 0; i < states_.size(); ++i)
      checkNotFailed(*states_[i], where, name_);
    for (const StorageRef &s : next->storages) {
      Engine::global().wait(*s, where, "binding a Variable");
      next->pointers.push_back(s->data());
    }
    lock.lock();
    binding_ = std::move(next);
  }
  epoch_ = epoch;
  return binding_;
}

std::unique_ptr<Program::Slot> Program::acquire() {
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
  auto slot = std::make_unique<Slot>();
  if (machine_)
    slot->executor = std::make_unique<Executor>(executable_, machine_);
  else
    slot->context.emplace(executable_);
  return slot;
}

void Program::release(std::unique_ptr<Slot> slot) {
  Slot *none = nullptr;
  if (handy_.compare_exchange_strong(none, slot.get(), std::memory_order_release, std::memory_order_relaxed)) {
    (void)slot.release();
    return;
  }
  std::lock_guard lock(mutex_);
  spare_.push_back(std::move(slot));
}

void Program::Slot::bind(const std::shared_ptr<const Binding> &next) {
  if (binding == next)
    return;
  epoch = ~uint64_t(0);
  binding = nullptr;
  if (executor)
    executor->bindStates(next->pointers);
  else
    context->bindStates(next->pointers);
  binding = next;
}

int32_t Program::execute(Slot &slot, const TaskView &task, size_t numInputs, const dim::Values *dims) {
  const std::span<const void *const> inputs{const_cast<const void *const *>(task.inputs), numInputs};
  const std::span<void *const> outputs{task.outputs, outputs_.size()};
  const bool isObserved = !slot.executor && firstCalls_.isOpen();
  if (isObserved != (slot.profile != nullptr)) [[unlikely]] {
    slot.profile = isObserved ? std::make_unique<Profile>() : nullptr;
    slot.context->setProfile(slot.profile.get());
  }
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

int32_t Program::runInTask(const TaskView &task, size_t numInputs, const dim::Values *dims) {
  auto slot = acquire();
  if (!states_.empty())
    throw InternalError("a program with Variables was run in a task");
  const int32_t status = execute(*slot, task, numInputs, dims);
  release(std::move(slot));
  return status;
}

namespace {
/// The storages of tensors one behind the other. References to them are the tensors'.
class Storages {
public:
  template <typename Fn> Storages(size_t n, Fn storageOf) : size_(n) {
    if (n > kFew)
      many_.reset(new Storage *[n]);
    Storage **all = many_ ? many_.get() : few_;
    for (size_t i = 0; i < n; ++i)
      all[i] = storageOf(i).get();
  }
  std::span<Storage *const> all() const { return {many_ ? many_.get() : few_, size_}; }

private:
  static constexpr size_t kFew = 8;
  size_t size_;
  Storage *few_[kFew];
  std::unique_ptr<Storage *[]> many_;
};
} // namespace

void Program::run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, const SourceLoc &where,
                  std::unique_ptr<Slot> *keep) {
  std::shared_ptr<const dim::Values> dims;
  if (keep && *keep) {
    dims = (*keep)->dims;
  } else if (!schedule().dims.empty()) {
    std::vector<Shape> shapes;
    for (const Tensor *input : inputs)
      shapes.push_back(input->shape());
    dims = std::make_shared<const dim::Values>(dimsOf(schedule(), shapes));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto &[type, bytes] = outputs_[i];
    if (dims) {
      const TensorType evaluated{type.dtype, dim::evaluate(type.shape, *dims)};
      outputs[i] = resultTensor(evaluated, bytesOf(evaluated, where, name_), where);
    } else {
      outputs[i] = resultTensor(type, bytes, where);
    }
  }
  const Storages in(inputs.size(), [&](size_t i) -> const StorageRef & { return inputs[i]->impl()->storage; });
  const Storages out(outputs.size(), [&](size_t i) -> const StorageRef & { return outputs[i].impl()->storage; });
  const uint64_t epoch = variableEpoch.load(std::memory_order_acquire);
  if (!states_.empty() && epoch_.load(std::memory_order_acquire) != epoch)
    currentBinding(where); // a state that is not there, or failed, is told here
  Engine::global().submit(
      {.op = name_, .where = where, .cost = &cost_}, in.all(), out.all(),
      [&](const TaskView &task) {
        std::unique_ptr<Slot> slot = keep && *keep ? std::move(*keep) : acquire();
        if (slot->epoch != epoch && !states_.empty()) {
          slot->bind(currentBinding(where));
          slot->epoch = epoch;
        }
        const int32_t status = execute(*slot, task, inputs.size(), dims.get());
        if (keep) // a context whose call failed is dropped
          slot->dims = dims, *keep = std::move(slot);
        else
          release(std::move(slot));
        return status;
      },
      [&] {
        if (keep && *keep)
          release(std::move(*keep));
        // What the Variables are now, whatever they are when the task runs.
        return [self = shared_from_this(), binding = currentBinding(where), n = inputs.size(),
                dims = std::move(dims)](const TaskView &task) {
          auto slot = self->acquire();
          slot->bind(binding);
          const int32_t status = self->execute(*slot, task, n, dims.get());
          self->release(std::move(slot));
          return status;
        };
      });
}

} // namespace tressel::detail
