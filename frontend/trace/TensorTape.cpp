// Gradients of what is called: a tape over tensors, whether they are values of a trace or of imperative calls.
#include "frontend/trace/TensorTape.h"

#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Make.h"
#include "frontend/tensor/ThreadState.h"
#include "frontend/trace/Record.h"
#include "frontend/trace/Recorder.h"
#include "ir/op/Gradient.h"

#include <tressel/autograd.h>
#include <tressel/custom_op.h>
#include <tressel/ops.h>

#include <deque>
#include <optional>
#include <unordered_map>

namespace tressel::detail {

namespace {
/// Where a call stood: its line, and the line of the user's that the layer around it was called from.
struct Origin {
  std::source_location at;
  std::optional<std::source_location> caller;
};

/// Puts ops where calls go. A Ref stands for a value: of a trace, the value's address; else that of the TensorImpl,
/// which lives as long as this.
class TensorEmitter final : public op::Emitter {
public:
  explicit TensorEmitter(const std::source_location &where) : where_(where) {}

  Ref refOf(const Tensor &tensor) {
    Ref ref = tensor.impl();
    if (tensor.traced() && tensor.impl()->value) {
      const auto alias = aliases_.find(tensor.impl()->value);
      ref = alias == aliases_.end() ? tensor.impl()->value : alias->second;
    }
    held_.try_emplace(ref, tensor);
    return ref;
  }
  const Tensor &tensorOf(Ref ref) const { return held_.at(ref); }
  /// A value of the trace is the same as a tensor from outside of it.
  void alias(void *value, const Tensor &tensor) { aliases_[value] = refOf(tensor); }

  std::vector<Ref> emit(const op::OpInfo &info, std::span<const Ref> inputs, const op::Attrs &attrs) override {
    std::vector<Arg> args;
    for (Ref input : inputs)
      args.push_back(Arg(tensorOf(input), where_));
    std::vector<Ref> refs;
    for (const Tensor &result : recordList(info, args, attrs, where_))
      refs.push_back(refOf(result));
    return refs;
  }
  Ref constant(double value, DType type) override { return refOf(filled({}, value, type, where_, "value_and_grad")); }
  Ref constant(const op::HostTensor &value) override { return refOf(fromBytes(value.data.get(), value.type, where_)); }
  TensorType typeOf(Ref value) override { return tensorOf(value).type(); }

  /// What follows stands at the line of what it is the gradient of.
  void enter(const Origin &origin) {
    scope_.reset();
    where_ = origin.at;
    if (origin.caller)
      scope_.emplace(*origin.caller, /*library=*/true);
  }
  void leave() { scope_.reset(); }
  SourceLoc line() const { return userLine(toLoc(where_)); }
  const std::source_location &where() const { return where_; }

private:
  std::source_location where_;
  std::optional<LocationScope> scope_;
  std::unordered_map<Ref, Tensor> held_;
  std::unordered_map<void *, Ref> aliases_;
};

/// Knows the gradients that applications give their own ops.
class OpTape final : public op::Tape {
public:
  OpTape(TensorEmitter &emitter, std::span<const Ref> inputs) : Tape(emitter, inputs), emitter_(emitter) {}

  std::vector<Ref> pull(const op::OpInfo &info, const op::GradientCall &call) override {
    const auto made = customGradient(info, tensorsOf(call.operands), tensorsOf(call.results),
                                     tensorsOf(call.cotangents), emitter_.line());
    return made ? wantedRefs(*made, call) : Tape::pull(info, call);
  }
  std::vector<Ref> pullControl(void *control, const op::GradientCall &call) {
    return wantedRefs(Recorder::current()->pullBack(control, tensorsOf(call.cotangents), call.wanted, emitter_.where()),
                      call);
  }

private:
  void enter(const void *origin) override { emitter_.enter(*static_cast<const Origin *>(origin)); }
  std::vector<Tensor> tensorsOf(std::span<const Ref> refs) {
    std::vector<Tensor> tensors;
    for (Ref ref : refs)
      tensors.push_back(ref ? emitter_.tensorOf(ref) : Tensor());
    return tensors;
  }
  std::vector<Ref> wantedRefs(std::span<const Tensor> made, const op::GradientCall &call) {
    std::vector<Ref> refs(made.size(), nullptr);
    for (size_t i = 0; i < made.size(); ++i)
      if (call.wanted[i] && made[i].defined())
        refs[i] = emitter_.refOf(made[i]);
    return refs;
  }

  TensorEmitter &emitter_;
};
} // namespace

std::optional<std::vector<Tensor>> customGradient(const op::OpInfo &info, std::span<const Tensor> operands,
                                                  std::span<const Tensor> results, std::span<const Tensor> cotangents,
                                                  SourceLoc where) {
  const CustomOpSpec *spec = info.custom ? customSpec(info.name) : nullptr;
  if (!spec || !spec->gradient)
    return std::nullopt;
  std::vector<Tensor> given(cotangents.begin(), cotangents.end());
  for (size_t i = 0; i < given.size(); ++i)
    if (!given[i].defined())
      given[i] =
          zeros(std::vector<Size>(results[i].type().shape.begin(), results[i].type().shape.end()), results[i].dtype());
  std::vector<Tensor> made =
      spec->gradient({operands.begin(), operands.end()}, {results.begin(), results.end()}, given);
  if (made.size() != operands.size())
    fail<Error>("its gradient function gives " + std::to_string(made.size()) + " tensors for " +
                    std::to_string(operands.size()) + " operands",
                where, info.name);
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i].defined() && isFloat(operands[i].dtype()) && made[i].type() != operands[i].type())
      fail<ShapeError>("its gradient of operand " + std::to_string(i) + " is " + made[i].type().str() +
                           ", but the operand is " + operands[i].type().str(),
                       where, info.name);
  return made;
}

class TensorTape {
public:
  TensorTape(std::span<const Tensor> inputs, const std::source_location &where)
      : where_(where), recorder_(Recorder::current()), depth_(depthNow()), emitter_(where), inputs_(refsOf(inputs)),
        tape_(emitter_, inputs_), outer_(threadState.tape) {
    if (recorder_)
      for (const Tensor &input : inputs)
        if (!input.traced())
          if (void *value = recorder_->valueIn(input, toLoc(where)))
            emitter_.alias(value, input);
  }

  void begin() { threadState.tape = this; }
  void end() {
    if (isOpen_)
      threadState.tape = outer_;
    isOpen_ = false;
  }
  TensorTape *outer() const { return outer_; }
  /// Whether what this thread calls now is part of what is remembered, and not of a body, which is remembered as a
  /// whole, or of another trace.
  bool isHere() const {
    return recorder_ == Recorder::current() && depth_ == depthNow() && !(recorder_ && recorder_->followsTypes());
  }
  void note(const op::OpInfo &info, std::span<const Tensor> operands, const op::Attrs &attrs,
            std::span<const Tensor> results, const std::source_location &where) {
    tape_.note(info, refsOf(operands), refsOf(results), attrs, originOf(where));
  }
  void noteControl(void *control, std::span<const Tensor> operands, std::span<const Tensor> results,
                   const std::source_location &where) {
    tape_.note([this, control](const op::GradientCall &call) { return tape_.pullControl(control, call); },
               refsOf(operands), refsOf(results), originOf(where));
  }

  std::vector<Tensor> gradients(const Tensor &loss) {
    if (!loss.defined() || !isFloat(loss.dtype()) || !loss.type().shape.isStatic() || loss.type().shape.numElements() != 1)
      fail<ShapeError>("a gradient is that of one float, not of " + (loss.defined() ? loss.type().str() : std::string("an empty tensor")),
                       toLoc(where_), "value_and_grad", "reduce the loss with mean() or sum()");
    end(); // outer tapes remember what follows
    std::vector<Tensor> gradients(inputs_.size());
    {
      const Recorder::GradientStep step(recorder_, loss, tensorsOf(inputs_), toLoc(where_));
      if (!recorder_ || !recorder_->followsTypes())
        goBack(loss, gradients);
    }
    if (recorder_)
      for (size_t i = 0; i < gradients.size(); ++i) // as every recorder of this function numbers them
        gradients[i] = recorder_->makeValue(
            emitter_.typeOf(inputs_[i]),
            gradients[i].defined() ? recorder_->valueIn(gradients[i], toLoc(where_)) : nullptr, toLoc(where_));
    return gradients;
  }

private:
  void goBack(const Tensor &loss, std::span<Tensor> gradients) {
    const op::Emitter::Ref result = emitter_.refOf(loss), one = emitter_.refOf(filled(loss.type().shape, 1, loss.dtype(), where_, "value_and_grad"));
    std::vector<op::Emitter::Ref> found;
    struct Leave {
      TensorEmitter &emitter;
      ~Leave() { emitter.leave(); }
    } leave{emitter_};
    try {
      found = tape_.backward({&result, 1}, {&one, 1}, inputs_);
    } catch (const op::expr::NoGradient &e) {
      fail<Error>(e.message(), emitter_.line(), "value_and_grad", e.hint());
    }
    for (size_t i = 0; i < found.size(); ++i) {
      const TensorType type = emitter_.typeOf(inputs_[i]);
      gradients[i] = found[i] ? emitter_.tensorOf(found[i])
                              : full(std::vector<Size>(type.shape.begin(), type.shape.end()), 0, type.dtype, where_);
    }
  }
  std::vector<Tensor> tensorsOf(std::span<const op::Emitter::Ref> refs) const {
    std::vector<Tensor> tensors;
    for (op::Emitter::Ref ref : refs)
      tensors.push_back(emitter_.tensorOf(ref));
    return tensors;
  }
  static size_t depthNow() { return Recorder::current() ? Recorder::current()->depth() : 0; }
  const Origin *originOf(const std::source_location &where) {
    const LocationScope *scope = LocationScope::current();
    const std::optional<std::source_location> caller =
        scope && scope->library() ? std::optional(scope->where()) : std::nullopt;
    return &origins_.emplace_back(where, caller);
  }
  std::vector<op::Emitter::Ref> refsOf(std::span<const Tensor> tensors) {
    std::vector<op::Emitter::Ref> refs;
    for (const Tensor &t : tensors)
      refs.push_back(emitter_.refOf(t));
    return refs;
  }

  const std::source_location where_;
  Recorder *const recorder_;
  const size_t depth_;
  TensorEmitter emitter_;
  const std::vector<op::Emitter::Ref> inputs_;
  OpTape tape_;
  std::deque<Origin> origins_;
  TensorTape *const outer_;
  bool isOpen_ = true;
};

void noteOnTapes(const op::OpInfo &info, std::span<const Tensor> operands, op::Attrs attrs,
                 std::span<const Tensor> results, const std::source_location &where) {
  op::completeAttrs(info, attrs);
  for (TensorTape *tape = threadState.tape; tape; tape = tape->outer())
    if (tape->isHere())
      tape->note(info, operands, attrs, results, where);
}

void noteControlOnTapes(void *control, std::span<const Tensor> operands, std::span<const Tensor> results,
                        const std::source_location &where) {
  for (TensorTape *tape = threadState.tape; tape; tape = tape->outer())
    if (tape->isHere())
      tape->noteControl(control, operands, results, where);
}

GradientScope::GradientScope(std::span<const Tensor> inputs, const std::source_location &where) {
  for (const Tensor &input : inputs)
    if (!input.defined() || !isFloat(input.dtype()))
      fail<Error>("there is no gradient with respect to " + (input.defined() ? input.type().str() : std::string("an empty tensor")),
                  toLoc(where), "value_and_grad", "convert it to floats with cast()");
  tape_ = std::make_unique<TensorTape>(inputs, where);
  tape_->begin();
}
GradientScope::~GradientScope() { tape_->end(); }

std::vector<Tensor> GradientScope::gradients(const Tensor &loss) { return tape_->gradients(loss); }

std::vector<Tensor> valuesOf(std::span<const Variable> variables, const std::source_location &where) {
  std::vector<Tensor> values;
  for (const Variable &variable : variables) {
    values.push_back(variable.value(where));
    if (!isFloat(values.back().dtype()))
      fail<Error>("there is no gradient with respect to '" + variable.name(where) + "' of " + values.back().type().str(), toLoc(where),
                  "value_and_grad", "leave Variables that hold no floats out");
  }
  return values;
}

} // namespace tressel::detail
