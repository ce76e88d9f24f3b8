// A compiled program with its Variables, ready to be called from any thread.
#pragma once

#include "tressel/runtime/Corrections.h"
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

class Program : public std::enable_shared_from_this<Program> {
public:
  /// `states` are the Variables behind the executable's states, in schedule order without the derived ones; they are
  /// only read. `name` is what errors and timelines call it. `machine`: what it runs on; null: the processor.
  Program(std::shared_ptr<const runtime::Executable> executable, std::vector<std::shared_ptr<VariableImpl>> states,
          std::string name, std::shared_ptr<runtime::Machine> machine = nullptr);
  ~Program();
  Program(const Program &) = delete;

  /// The memory of all states at one time. Contexts bound to another one bind again before they run.
  struct Binding {
    std::vector<runtime::StorageRef> storages;
    std::vector<void *> pointers;
    std::vector<uint64_t> versions;
  };
  /// A context with what it is bound to. One call at a time uses it.
  struct Slot {
    std::optional<runtime::Context> context;     ///< on the processor
    std::unique_ptr<runtime::Executor> executor; ///< on a machine
    std::shared_ptr<const Binding> binding;
    uint64_t epoch = ~uint64_t(0);           ///< a call at this epoch needs no other binding
    std::unique_ptr<runtime::Profile> profile; ///< of the program's first calls
    std::shared_ptr<const dim::Values> dims; ///< of the call that left it to its caller

    void bind(const std::shared_ptr<const Binding> &next);
  };

  /// Inputs in schedule order, of the schedule's types; symbolic sizes follow from them (ShapeError where they do not
  /// agree). Runs at once when the inputs are there and the program is
  /// small, else on a lane of the engine. Failures of the run are carried by the outputs.
  /// `keep` is the slot of a caller that comes again with inputs of the same types: used if it is there, left there by
  /// a call that ran at once, and null after any other.
  void run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, const SourceLoc &where,
           std::unique_ptr<Slot> *keep = nullptr);
  /// The same inside of a task, over its storages. `dims`: sizes that the inputs' shapes give; null if there are none.
  int32_t runInTask(const runtime::TaskView &task, size_t numInputs, const dim::Values *dims);
  /// Takes back what a caller has kept.
  void release(std::unique_ptr<Slot> slot);

  const runtime::Schedule &schedule() const { return executable_->schedule(); }
  size_t numOutputs() const { return outputs_.size(); }
  /// Kernels whose first calls contradicted what they were predicted to take.
  runtime::Decisions findings() const { return firstCalls_.findings(); }

  /// Throws RuntimeError when the Variable has no value because the call that was to write it failed: says which, why,
  /// and what to do. Does not wait: what is still computed may yet fail.
  static void checkNotFailed(const VariableImpl &variable, const SourceLoc &where, const char *name);

private:
  std::shared_ptr<const Binding> currentBinding(SourceLoc where);
  std::unique_ptr<Slot> acquire();
  int32_t execute(Slot &slot, const runtime::TaskView &task, size_t numInputs, const dim::Values *dims);

  std::shared_ptr<const runtime::Executable> executable_;
  std::vector<std::shared_ptr<VariableImpl>> states_;
  const char *name_;
  const std::shared_ptr<runtime::Machine> machine_; ///< null: the processor
  struct Output {
    TensorType type;
    int64_t bytes = 0; ///< of a static type
  };
  std::vector<Output> outputs_;
  runtime::OpCost cost_;
  runtime::FirstCalls firstCalls_;

  std::mutex mutex_; // guards what follows
  std::vector<std::unique_ptr<Slot>> spare_;
  std::atomic<Slot *> handy_{nullptr}; ///< one more, owned: a caller alone takes no lock
  std::shared_ptr<const Binding> binding_;
  std::atomic<uint64_t> epoch_{~uint64_t(0)}; ///< at which binding_ was last found current; written under the mutex
};

} // namespace tressel::detail
