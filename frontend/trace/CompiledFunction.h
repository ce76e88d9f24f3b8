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
  bool strictDonation = false;                         ///< a Variable whose old value is still held is an Error
};

class CompiledFunction : public std::enable_shared_from_this<CompiledFunction> {
public:
  /// `states` are the Variables of the executable's states, in schedule order without the derived ones. A program that has
  /// mutable ones joins the groups of all.
  CompiledFunction(std::shared_ptr<const runtime::Executable> executable, std::vector<std::shared_ptr<VariableImpl>> states,
                   const CompiledFunctionOptions &options);
  ~CompiledFunction();
  CompiledFunction(const CompiledFunction &) = delete;

  /// The memory of the states that are only read, at one time. Contexts bound to another one bind again before they run.
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
    std::shared_ptr<const dim::Values> dims;     ///< of the call that left it to its caller
    std::vector<runtime::Storage *> inputs, outputs; ///< of the call that is handed over
  };

  /// Inputs in schedule order, of the schedule's types; symbolic sizes follow from them (ShapeError where they do not
  /// agree). Runs at once when the inputs are there and the program is
  /// small, else on a lane of the engine. Failures of the run are carried by the outputs; and by the Variables that it assigns, if
  /// it has begun to write them.
  /// `keep` is the slot of a caller that comes again with inputs of the same types: used if it is there, left there by
  /// a call that ran at once, and null after any other.
  void run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, const SourceLoc &where,
           std::unique_ptr<Slot> *keep = nullptr);
  /// The same inside of a task, over its storages, for a program without Variables. `dims`: sizes that the inputs' shapes
  /// give; null if there are none.
  int32_t runInTask(const runtime::TaskView &task, size_t numInputs, const dim::Values *dims);
  /// Takes back what a caller has kept.
  void release(std::unique_ptr<Slot> slot);

  const runtime::Schedule &schedule() const { return executable_->schedule(); }
  size_t numOutputs() const { return outputs_.size(); }
  /// Calls' copies of Variables' values that were still held.
  uint64_t stateCopies() const { return stateCopies_.load(std::memory_order_relaxed); }
  /// Kernels whose first calls contradicted what they were predicted to take, and Variables that had to be copied.
  runtime::Decisions findings() const;
  /// Timeline::sideBySide of the latest call, where the machine has kept its log and has run nothing else since.
  std::optional<double> achievedSideBySide();

private:
  /// Throws RuntimeError when the Variable has no value because the call that was to write it failed: says which, why,
  /// and what to do. Does not wait: what is still computed may yet fail.
  void checkNotFailed(const VariableImpl &variable, const SourceLoc &where) const;
  /// Parts get the values that somebody assigned meanwhile; those that this call writes are alone current from now on.
  void bringSpread(const SourceLoc &where);
  bool isCurrent(const Binding &binding) const;
  std::shared_ptr<const Binding> currentBinding(uint64_t epoch, const SourceLoc &where);
  std::shared_ptr<const dim::Values> dimsFor(std::span<const Tensor *const> inputs, const Slot *kept) const;
  void makeOutputs(std::span<Tensor> outputs, const dim::Values *dims, const SourceLoc &where) const;
  runtime::Storage *donated(size_t state, const SourceLoc &where);
  /// Throws Error where the Variable lies elsewhere than the program was compiled for.
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
    int64_t bytes = 0; ///< of a static type
    runtime::DeviceRef device;
  };
  std::vector<Output> outputs_;
  runtime::OpCost cost_, copyCost_{1000};
  runtime::FirstCalls firstCalls_;

  std::atomic<uint64_t> stateCopies_{0};
  struct Held { ///< the latest copy of a value that was still held
    std::string variable;
    int64_t bytes = 0;
    SourceLoc where;
  };

  mutable std::mutex mutex_; // guards what follows
  Held held_;
  std::vector<std::unique_ptr<Slot>> spare_;
  std::atomic<Slot *> handy_{nullptr}; ///< one more, owned: a caller alone takes no lock
  std::shared_ptr<const Binding> binding_;
  uint64_t epoch_ = ~uint64_t(0); ///< at which binding_ was last found current
};

} // namespace tressel::detail
