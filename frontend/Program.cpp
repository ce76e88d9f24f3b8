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
                 std::string name)
    : executable_(std::move(executable)), states_(std::move(states)), name_(internName(name)),
      cost_(guessNs(executable_->schedule(), executable_->schedule().step)) {
  for (const ValueDesc &output : schedule().outputs)
    outputs_.push_back(output.type);
}

Program::~Program() { delete handy_.load(); }

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
    for (const StorageRef &s : next->storages) {
      Engine::global().wait(*s, where);
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
  return std::make_unique<Slot>(Slot{Context(executable_), nullptr});
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
  context.bindStates(next->pointers);
  binding = next;
}

int32_t Program::execute(std::unique_ptr<Slot> slot, const TaskView &task, size_t numInputs, const dim::Values *dims) {
  const std::span<const void *const> inputs{const_cast<const void *const *>(task.inputs), numInputs};
  if (dims)
    slot->context.run(inputs, {task.outputs, outputs_.size()}, *dims);
  else
    slot->context.run(inputs, {task.outputs, outputs_.size()});
  release(std::move(slot)); // a context whose call failed is dropped
  return kKernelOk;
}

namespace {
/// The storages of tensors one behind the other. A single one stays where it is: counting a reference up and down costs as much
/// as a tiny op.
class StorageRefs {
public:
  template <typename Fn> StorageRefs(size_t n, Fn storageOf) {
    if (n == 1) {
      all_ = {&storageOf(0), 1};
      return;
    }
    StorageRef *copies = few_;
    if (n > kFew) {
      many_.resize(n);
      copies = many_.data();
    }
    for (size_t i = 0; i < n; ++i)
      copies[i] = storageOf(i);
    all_ = {copies, n};
  }
  StorageRefs(const StorageRefs &) = delete;
  std::span<const StorageRef> all() const { return all_; }

private:
  static constexpr size_t kFew = 4;
  StorageRef few_[kFew];
  std::vector<StorageRef> many_;
  std::span<const StorageRef> all_;
};
} // namespace

void Program::run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, SourceLoc where) {
  std::shared_ptr<const dim::Values> dims;
  if (!schedule().dims.empty()) {
    std::vector<Shape> shapes;
    for (const Tensor *input : inputs)
      shapes.push_back(input->shape());
    dims = std::make_shared<const dim::Values>(dimsOf(schedule(), shapes));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    TensorType type = outputs_[i];
    if (dims)
      type.shape = dim::evaluate(type.shape, *dims);
    outputs[i] = allocateTensor(type, where, name_);
  }
  const StorageRefs in(inputs.size(), [&](size_t i) -> const StorageRef & { return inputs[i]->impl()->storage; });
  const StorageRefs out(outputs.size(), [&](size_t i) -> const StorageRef & { return outputs[i].impl()->storage; });
  const uint64_t epoch = variableEpoch.load(std::memory_order_acquire);
  if (!states_.empty() && epoch_.load(std::memory_order_acquire) != epoch)
    currentBinding(where); // a state that is not there, or failed, is told here
  Engine::global().submit(
      {.op = name_, .where = where, .cost = &cost_}, in.all(), out.all(),
      [&](const TaskView &task) {
        auto slot = acquire();
        if (slot->epoch != epoch && !states_.empty()) {
          slot->bind(currentBinding(where));
          slot->epoch = epoch;
        }
        return execute(std::move(slot), task, inputs.size(), dims.get());
      },
      [&] {
        // What the Variables are now, whatever they are when the task runs.
        return [self = shared_from_this(), binding = currentBinding(where), n = inputs.size(),
                dims = std::move(dims)](const TaskView &task) {
          auto slot = self->acquire();
          slot->bind(binding);
          return self->execute(std::move(slot), task, n, dims.get());
        };
      });
}

} // namespace tressel::detail
