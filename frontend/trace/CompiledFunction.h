// A compiled program with its Variables, ready to be called from any thread.
#pragma once

#include "frontend/tensor/Spread.h"
#include "frontend/tensor/StateGroup.h"

#include "tressel/runtime/Corrections.h"
#include "tressel/runtime/Decision.h"
#include "tressel/runtime/Engine.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Executor.h"

#include <tressel/variable.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tressel::detail {

struct CompiledFunctionOptions {
  std::string name;                                    ///< what errors and timelines call it
  std::shared_ptr<runtime::Machine> machine = nullptr; ///< what it runs on; null: the processor
  std::vector<SpreadUse> spread = {};                  ///< Variables whose parts are among the states
  bool strictDonation = false;                         ///< a Variable whose old value a tensor still holds is an Error
};

class CompiledFunction : public std::enable_shared_from_this<CompiledFunction> {
public:
  /// `states` are the Variables of the executable's states, in schedule order without the derived ones. A program that
  /// assigns any of them joins the state groups of all.
  CompiledFunction(std::shared_ptr<const runtime::Executable> executable, std::vector<std::shared_ptr<VariableImpl>> states,
                   const CompiledFunctionOptions &options);
  ~CompiledFunction();
  CompiledFunction(const CompiledFunction &) = delete;

  /// The memory of the states that are only read, at one time. Contexts bound to an older Binding bind again before
  /// they run.
  struct Binding {
    std::vector<runtime::StoragePin> storages;
    std::vector<uint64_t> versions;
  };
  /// A context with what it is bound to. One call at a time uses it.
  struct Slot {
    explicit Slot(const CompiledFunction &program);
    std::optional<runtime::Context> context;     ///< on the processor
    std::unique_ptr<runtime::Executor> executor; ///< on a machine
    std::optional<StateReader> reader;           ///< of a program that reads Variables and assigns none
    std::shared_ptr<const Binding> binding;
    std::vector<void *> bound;                   ///< memory of all states
    uint64_t epoch = ~uint64_t(0);               ///< a call at this epoch needs no other binding
    std::unique_ptr<runtime::Profile> profile;   ///< of the program's first calls
    std::shared_ptr<const dim::Values> dims;     ///< sizes of the last call, for the caller that keeps the slot
    std::vector<runtime::Storage *> inputs, outputs; ///< of the call that is being handed over
  };

  /// Inputs in schedule order, of the schedule's types. Symbolic sizes follow from them; throws ShapeError where they
  /// do not agree. Runs in the calling thread when the inputs are ready and the program is small, else on a lane of the
  /// engine.
  /// The outputs carry a failure of the run. So do the Variables that the program assigns, if the run has begun to
  /// write them.
  /// `keep` is the slot of a caller that calls again with inputs of the same types. If it is set, the call uses it. A
  /// call that runs at once leaves its slot there; after any other call it is null.
  void run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, const SourceLoc &where,
           std::unique_ptr<Slot> *keep = nullptr);
  /// Runs inside of a task, over the task's storages; for programs without Variables. `dims`: symbolic sizes, from the
  /// inputs' shapes; null if there are none.
  int32_t runInTask(const runtime::TaskView &task, size_t numInputs, const dim::Values *dims);
  /// Takes back a slot that a caller has kept.
  void release(std::unique_ptr<Slot> slot);

  const runtime::Schedule &schedule() const { return executable_->schedule(); }
  size_t numOutputs() const { return outputs_.size(); }
  /// How many values of Variables were copied before an update, as tensors still held them.
  uint64_t stateCopies() const { return stateCopies_.load(std::memory_order_relaxed); }
  /// Kernels whose first calls took another time than predicted, and Variables that had to be copied.
  runtime::Decisions findings() const;
  /// Timeline::sideBySide of the latest call, if the machine has kept its log and has run nothing else since.
  std::optional<double> achievedSideBySide();

private:
  /// Throws RuntimeError when the Variable has no value because the call that was to write it failed. The message says
  /// which call, why, and what to do. Does not wait: a pending computation may still fail.
  void checkNotFailed(const VariableImpl &variable, const SourceLoc &where) const;
  /// Brings the parts of spread Variables up to date with values assigned since the last call. Marks the parts that
  /// this call writes as the only current copy.
  void bringSpread(const SourceLoc &where);
  bool isCurrent(const Binding &binding) const;
  std::shared_ptr<const Binding> currentBinding(uint64_t epoch, const SourceLoc &where);
  std::shared_ptr<const dim::Values> dimsFor(std::span<const Tensor *const> inputs, const Slot *kept) const;
  void makeOutputs(std::span<Tensor> outputs, const dim::Values *dims, const SourceLoc &where) const;
  runtime::Storage *donated(size_t state, const SourceLoc &where);
  /// Throws Error when the Variable is not on the device that the program was compiled for.
  void checkHome(size_t state, const SourceLoc &where) const;
  std::unique_ptr<Slot> acquire();
  void bind(Slot &slot, const std::shared_ptr<const Binding> &binding, void *const *written) const;
  int32_t execute(Slot &slot, const std::shared_ptr<const Binding> &binding, const runtime::TaskView &task, size_t numInputs,
                  const dim::Values *dims);
  enum class Outcome : uint8_t { Failed, Ran, Queued };
  Outcome read(Slot &slot, const std::shared_ptr<const dim::Values> &dims, const SourceLoc &where);
  Outcome update(Slot &slot, const std::shared_ptr<const dim::Values> &dims, const SourceLoc &where);
  Outcome submit(Slot &slot, const std::shared_ptr<const dim::Values> &dims, const std::shared_ptr<const Binding> &binding,
                 uint64_t epoch, const SourceLoc &where);

  std::shared_ptr<const runtime::Executable> executable_;
  std::vector<std::shared_ptr<VariableImpl>> states_;
  std::vector<size_t> read_, written_; ///< of the states: those that are only read, and those that are assigned
  std::vector<uint32_t> homes_;        ///< of the states: TensorImpl::home
  const char *name_;
  const std::shared_ptr<runtime::Machine> machine_; ///< null: the processor
  const bool strictDonation_;
  const std::vector<SpreadUse> spread_;
  struct Output {
    TensorType type;
    int64_t bytes = 0; ///< of a type without symbolic sizes
    runtime::DeviceRef device;
  };
  std::vector<Output> outputs_;
  runtime::OpCost cost_, copyCost_{1000};
  runtime::FirstCalls firstCalls_;

  std::atomic<uint64_t> stateCopies_{0};
  struct Held { ///< the latest value that was copied because a tensor still held it
    std::string variable;
    int64_t bytes = 0;
    SourceLoc where;
  };

  mutable std::mutex mutex_; // guards what follows
  Held held_;
  std::vector<std::unique_ptr<Slot>> spare_;
  std::atomic<Slot *> handy_{nullptr}; ///< one more spare slot, owned: a single caller takes no lock
  std::shared_ptr<const Binding> binding_;
  uint64_t epoch_ = ~uint64_t(0); ///< at which binding_ was last found current
};

} // namespace tressel::detail
