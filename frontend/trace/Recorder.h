// What the ops of a thread go to while it traces.
#pragma once

#include "frontend/tensor/Fail.h"
#include "ir/op/OpInfo.h"

#include <tressel/control.h>

#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tressel::detail {

class Fingerprint;

/// What a trace does with ops. One is active per thread at most; a nested jit call joins the outer trace.
class Recorder {
public:
  Recorder();
  virtual ~Recorder() = default;
  Recorder(const Recorder &) = delete;
  Recorder &operator=(const Recorder &) = delete;

  /// `results` is filled: one per entry of `types`.
  virtual void op(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const TensorType> types,
                  const op::Attrs &attrs, SourceLoc where, std::span<Tensor> results) = 0;
  virtual Tensor read(const std::shared_ptr<VariableImpl> &variable, SourceLoc where) = 0;
  virtual void assign(const std::shared_ptr<VariableImpl> &variable, const Tensor &value, SourceLoc where) = 0;

  /// Also inside of a body: there a Variable becomes an argument of the body, and an assigned one also a result.
  Tensor readVariable(const std::shared_ptr<VariableImpl> &variable, SourceLoc where);
  void assignVariable(const std::shared_ptr<VariableImpl> &variable, const Tensor &value, SourceLoc where);
  /// Records the bodies, each once, and the op that runs them.
  std::vector<Tensor> control(const ControlCall &call);

  /// How many bodies are being recorded, nested.
  size_t depth() const { return bodies_.size(); }
  /// True if values have types only: then there is no program to differentiate.
  virtual bool followsTypes() const { return false; }
  /// Whether parameters without a value get one: while shapes are inferred, but in no real trace.
  virtual bool mayCreateParameters() const { return false; }

  /// While one is alive, a gradient is recorded. It counts as one step of the function, whatever ops it takes.
  class GradientStep {
  public:
    GradientStep(Recorder *recorder, std::span<const Tensor> results, std::span<const Tensor> cotangents,
                 std::span<const Tensor> inputs, SourceLoc where);
    ~GradientStep();
    GradientStep(const GradientStep &) = delete;
    GradientStep &operator=(const GradientStep &) = delete;

  private:
    Recorder *recorder_; ///< null outside of traces
    uint64_t numValues_;
  };

  /// The value of a tensor in the trace, as TensorImpl::value; null in recorders that follow types.
  virtual void *valueIn(const Tensor &, SourceLoc) { return nullptr; }
  /// The cotangents of the operands of an op with bodies (`control`, as given to noteControlOnTapes()), from those of
  /// its results; undefined where one is zero or not wanted.
  virtual std::vector<Tensor> pullBack(void *control, std::span<const Tensor> cotangents,
                                       std::span<const uint8_t> wanted, const std::source_location &where);
  uint64_t number() const { return number_; }

  /// Numbers a new segment of the function, see CheckpointScope; and marks a value of it as kept.
  uint32_t beginSegment() { return ++numSegments_; }
  virtual void keep(const Tensor &) {}

  /// What is recorded is valid until this counter changes: a module's own, see Node::structure.
  using Counter = std::shared_ptr<const std::atomic<uint64_t>>;
  void dependOn(const Counter &counter) {
    if (structure_.empty() || structure_.back().first != counter)
      structure_.emplace_back(counter, counter->load());
  }
  /// The counters, with their values when they were noted.
  const std::vector<std::pair<Counter, uint64_t>> &structure() const { return structure_; }
  /// A module has given this result.
  virtual void leaveModule(const ScopeOwner &, std::span<const Tensor>) {}

  /// The one active in this thread, or null.
  static Recorder *current();

  /// A value of this trace.
  Tensor makeValue(const TensorType &type, void *value, SourceLoc where);

protected:
  /// Another tensor for a value. The function that is recorded does not see it, so it takes no number.
  Tensor makeAlias(const TensorType &type, void *value, SourceLoc where) {
    Tensor alias = makeValue(type, value, where);
    --numValues_;
    return alias;
  }
  struct BodyVariable {
    std::shared_ptr<VariableImpl> variable;
    Tensor outside, argument, current; ///< its value before the op, at the begin of the body, now
    bool assigned = false;
  };
  struct BodyRecord {
    bool isCondition = false;
    std::vector<Tensor> arguments, results;
    std::vector<BodyVariable> variables; ///< those the body reads or assigns; each is one more argument
  };
  // Hooks for bodies, called in this order; the ops of a body come between beginBody and endBody.
  virtual void beginControl(const ControlCall &) {}
  virtual void beginBody() {}
  /// A further argument of the open body at this depth.
  virtual Tensor bodyArgument(size_t depth, const TensorType &type, SourceLoc where);
  virtual void endBody(const BodyRecord &, SourceLoc) {}
  /// The fingerprint of what is recorded; null in a recorder without one.
  virtual Fingerprint *fingerprintOf() { return nullptr; }
  /// The op's values: its results, then the Variables that a body assigned.
  virtual std::vector<Tensor> endControl(const ControlCall &call, std::span<const BodyRecord> bodies,
                                         std::span<const std::shared_ptr<VariableImpl>> assigned,
                                         std::span<const TensorType> types);

private:
  BodyVariable &bodyVariable(size_t depth, const std::shared_ptr<VariableImpl> &variable, SourceLoc where);
  void checkResults(const ControlCall &call, std::span<const BodyRecord> records) const;
  std::vector<BodyRecord *> bodies_; ///< being recorded, outermost first

  uint64_t number_, numValues_ = 0;
  uint32_t numSegments_ = 0;
  std::vector<std::pair<Counter, uint64_t>> structure_;
};

/// Counts all changes of modules' structure. As long as it stands still, no Node::structure has changed.
extern std::atomic<uint64_t> structureEpoch;

/// Makes a recorder the current one.
class RecorderScope {
public:
  explicit RecorderScope(Recorder *recorder);
  ~RecorderScope();
  RecorderScope(const RecorderScope &) = delete;
  RecorderScope &operator=(const RecorderScope &) = delete;

private:
  Recorder *previous_;
};

/// Follows types only: running forward under it finds the shapes of parameters.
class InferRecorder : public Recorder {
public:
  Tensor input(const TensorType &type, SourceLoc where) { return makeValue(type, nullptr, where); }
  void op(const op::OpInfo &, std::span<const Tensor>, std::span<const TensorType> types, const op::Attrs &,
          SourceLoc where, std::span<Tensor> results) override {
    for (size_t i = 0; i < types.size(); ++i)
      results[i] = makeValue(types[i], nullptr, where);
  }
  Tensor read(const std::shared_ptr<VariableImpl> &variable, SourceLoc where) override {
    return makeValue(variable->value.type(), nullptr, where);
  }
  void assign(const std::shared_ptr<VariableImpl> &, const Tensor &, SourceLoc) override {}
  bool followsTypes() const override { return true; }
  bool mayCreateParameters() const override { return true; }
};

} // namespace tressel::detail
