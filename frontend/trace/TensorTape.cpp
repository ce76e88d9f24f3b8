// Gradients of the ops that a thread calls: a tape over tensors, be they values of a trace or results of imperative
// calls.
#include "frontend/trace/TensorTape.h"

#include "frontend/tensor/Machine.h"

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
/// Replaces empty cotangents by zeros.
void fillIn(std::vector<Tensor> &cotangents, std::span<const Tensor> results) {
  for (size_t i = 0; i < cotangents.size(); ++i)
    if (!cotangents[i].defined())
      cotangents[i] =
          zeros(std::vector<Size>(results[i].type().shape.begin(), results[i].type().shape.end()), results[i].dtype());
}

/// Checks what an application's gradient function gave: a tensor of each operand's type, or an empty one. Throws.
std::vector<Tensor> checkedGradient(std::vector<Tensor> made, std::span<const Tensor> operands, SourceLoc where,
                                    const char *op) {
  if (made.size() != operands.size())
    fail<Error>("its gradient function gives " + std::to_string(made.size()) + " tensors for " +
                    std::to_string(operands.size()) + " operands",
                where, op);
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i].defined() && isFloat(operands[i].dtype()) && made[i].type() != operands[i].type())
      fail<ShapeError>("its gradient of operand " + std::to_string(i) + " is " + made[i].type().str() +
                           ", but the operand is " + operands[i].type().str(),
                       where, op);
  return made;
}

/// The source of a call: its line, and the user's line that called the library's layer around it.
struct Origin {
  std::source_location at;
  std::optional<std::source_location> caller;
  std::optional<int> stage;
};

/// Emits ops as calls, which are recorded in the trace or run at once. A Ref is the identity of a value: the address of
/// the trace's value, else that of the TensorImpl, which this object keeps alive.
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
  /// Makes a value of the trace stand for a tensor from outside of it.
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

  /// Ops emitted from here on get the line and the stage of the call whose gradient they compute.
  void enter(const Origin &origin) {
    scope_.reset();
    back_.reset();
    where_ = origin.at;
    back_.emplace(origin.stage);
    if (origin.caller)
      scope_.emplace(*origin.caller, /*library=*/true);
  }
  void leave() {
    scope_.reset();
    back_.reset();
  }
  SourceLoc line() const { return userLine(toLoc(where_)); }
  const std::source_location &where() const { return where_; }

private:
  std::source_location where_;
  std::optional<LocationScope> scope_;
  std::optional<GoingBack> back_;
  std::unordered_map<Ref, Tensor> held_;
  std::unordered_map<void *, Ref> aliases_;
};

/// A tape that uses the gradients that applications register for their own ops.
class OpTape final : public op::Tape {
public:
  OpTape(TensorEmitter &emitter, std::span<const Ref> inputs) : Tape(emitter, inputs), emitter_(emitter) {}

  std::vector<Ref> pull(const op::OpInfo &info, const op::GradientCall &call) override {
    const auto made = customGradient(info, tensorsOf(call.operands), tensorsOf(call.results),
                                     tensorsOf(call.cotangents), emitter_.line());
    return made ? wantedRefs(*made, call) : Tape::pull(info, call);
  }
  std::vector<Ref> pullFunction(const op::GradientCall &call,
                                const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &gradient) {
    std::vector<Tensor> cotangents = tensorsOf(call.cotangents);
    fillIn(cotangents, tensorsOf(call.results));
    return wantedRefs(gradient(cotangents), call);
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
  TensorTape(std::span<const Tensor> inputs, const char *op, const std::source_location &where)
      : where_(where), op_(op), recorder_(Recorder::current()), depth_(depthNow()), emitter_(where),
        inputs_(refsOf(inputs)), tape_(emitter_, inputs_), outer_(threadState.tape) {
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
  /// Whether this tape records the op that this thread calls now. It does not for an op of another trace, nor for one
  /// inside of a body: there it records the op with the body.
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

  /// Records calls of a function as one op whose gradient is `pull`.
  void noteFunction(op::Tape::PullBack pull, std::span<const Tensor> operands, std::span<const Tensor> results,
                    const std::source_location &where) {
    tape_.note(std::move(pull), refsOf(operands), refsOf(results), originOf(where));
  }
  OpTape &tape() { return tape_; }
  const char *op() const { return op_; }
  /// Whether the op that this thread calls now is inside of a body, whose op this tape records as a whole.
  bool isOutside() const {
    return recorder_ && recorder_ == Recorder::current() && depth_ < depthNow() && !recorder_->followsTypes();
  }

  std::vector<Tensor> gradients(const Tensor &loss) {
    if (!loss.defined() || !isFloat(loss.dtype()) || !loss.type().shape.isStatic() || loss.type().shape.numElements() != 1)
      fail<ShapeError>("a gradient is that of one float, not of " +
                           (loss.defined() ? loss.type().str() : std::string("an empty tensor")),
                       toLoc(where_), op_, "reduce the loss with mean() or sum()");
    const Tensor one = filled(loss.type().shape, 1, loss.dtype(), where_, op_);
    return pullBack({&loss, 1}, {&one, 1});
  }

  std::vector<Tensor> pullBack(std::span<const Tensor> results, std::span<const Tensor> cotangents) {
    if (recorder_ != Recorder::current())
      fail<TraceError>(recorder_ ? "the function that was differentiated belongs to a trace that has ended"
                                 : "the function that was differentiated was called outside of this trace",
                       toLoc(where_), op_);
    checkLike("cotangent", "result", cotangents, results);
    end(); // outer tapes record the gradient's ops
    std::vector<Tensor> gradients(inputs_.size());
    {
      const Recorder::GradientStep step(recorder_, results, cotangents, tensorsOf(inputs_), toLoc(where_));
      if (!recorder_ || !recorder_->followsTypes())
        goBack(results, cotangents, gradients);
    }
    if (recorder_)
      for (size_t i = 0; i < gradients.size(); ++i) // every recorder numbers gradients alike
        gradients[i] = recorder_->makeValue(
            emitter_.typeOf(inputs_[i]),
            gradients[i].defined() ? recorder_->valueIn(gradients[i], toLoc(where_)) : nullptr, toLoc(where_));
    return gradients;
  }

  void checkLike(const char *what, const char *ofWhat, std::span<const Tensor> got,
                 std::span<const Tensor> wanted) const {
    if (got.size() != wanted.size())
      fail<ShapeError>("there are " + std::to_string(got.size()) + " " + what + "s for " +
                           std::to_string(wanted.size()) + " " + ofWhat + "s",
                       toLoc(where_), op_);
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i].defined() && wanted[i].defined() && isFloat(wanted[i].dtype()) && got[i].type() != wanted[i].type())
        fail<ShapeError>(std::string(what) + " " + std::to_string(i) + " is " + got[i].type().str() + ", but the " +
                             ofWhat + " is " + wanted[i].type().str(),
                         toLoc(where_), op_);
  }
  std::vector<Tensor> inputs() const { return tensorsOf(inputs_); }
  const std::source_location &where() const { return where_; }

private:
  void goBack(std::span<const Tensor> results, std::span<const Tensor> cotangents, std::span<Tensor> gradients) {
    std::vector<op::Emitter::Ref> of, given;
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].defined() && cotangents[i].defined() && isFloat(results[i].dtype())) {
        of.push_back(emitter_.refOf(results[i]));
        given.push_back(emitter_.refOf(cotangents[i]));
      }
    std::vector<op::Emitter::Ref> found;
    struct Leave {
      TensorEmitter &emitter;
      ~Leave() { emitter.leave(); }
    } leave{emitter_};
    try {
      found = tape_.backward(of, given, inputs_);
    } catch (const op::expr::NoGradient &e) {
      fail<Error>(e.message(), emitter_.line(), op_, e.hint());
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
    return &origins_.emplace_back(where, caller, currentStage());
  }
  std::vector<op::Emitter::Ref> refsOf(std::span<const Tensor> tensors) {
    std::vector<op::Emitter::Ref> refs;
    for (const Tensor &t : tensors)
      refs.push_back(emitter_.refOf(t));
    return refs;
  }

  const std::source_location where_;
  const char *const op_;
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

GradientScope::GradientScope(std::span<const Tensor> inputs, const char *op, const std::source_location &where) {
  for (const Tensor &input : inputs)
    if (!input.defined() || !isFloat(input.dtype()))
      fail<Error>("there is no gradient with respect to " +
                      (input.defined() ? input.type().str() : std::string("an empty tensor")),
                  toLoc(where), op, "convert it to floats with cast()");
  tape_ = std::make_unique<TensorTape>(inputs, op, where);
  tape_->begin();
}
GradientScope::~GradientScope() { tape_->end(); }

void GradientScope::end() { tape_->end(); }
std::vector<Tensor> GradientScope::gradients(const Tensor &loss) { return tape_->gradients(loss); }
std::vector<Tensor> GradientScope::pullBack(std::span<const Tensor> results, std::span<const Tensor> cotangents) {
  return tape_->pullBack(results, cotangents);
}

std::vector<Tensor> GradientScope::pushForward(std::span<const Tensor> results, std::span<const Tensor> tangents) {
  tape_->checkLike("tangent", "input", tangents, tape_->inputs());
  tape_->end();
  // pullBack is linear in the cotangents, so its own pullback gives the tangents, at any cotangents.
  std::vector<Tensor> any(results.size()), floats;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].defined() && isFloat(results[i].dtype()))
      floats.push_back(any[i] = filled(results[i].type().shape, 0, results[i].dtype(), tape_->where(), tape_->op()));
  GradientScope linear(floats, tape_->op(), tape_->where());
  const std::vector<Tensor> cotangents = pullBack(results, any);
  const std::vector<Tensor> found = linear.pullBack(cotangents, tangents);
  std::vector<Tensor> all(results.size());
  size_t next = 0;
  for (size_t i = 0; i < results.size(); ++i)
    if (any[i].defined())
      all[i] = found[next++];
  return all;
}

CheckpointScope::CheckpointScope() : previous_(threadState.segment) {
  if (Recorder *recorder = Recorder::current(); recorder && previous_ == 0)
    threadState.segment = recorder->beginSegment();
}
CheckpointScope::~CheckpointScope() { threadState.segment = previous_; }
void CheckpointScope::keep(std::span<const Tensor> results) {
  if (previous_ == 0 && threadState.segment)
    for (const Tensor &t : results)
      if (t.defined())
        Recorder::current()->keep(t);
}

std::vector<Tensor> valuesOf(std::span<const Variable> variables, const char *op, const std::source_location &where) {
  std::vector<Tensor> values;
  for (const Variable &variable : variables) {
    values.push_back(variable.value(where));
    if (!isFloat(values.back().dtype()))
      fail<Error>("there is no gradient with respect to '" + variable.name(where) + "' of " + values.back().type().str(), toLoc(where),
                  op, "leave Variables that hold no floats out");
  }
  return values;
}

std::vector<Tensor> inputsOf(const std::vector<std::pair<std::string, Variable>> &parameters, const char *op,
                             const std::source_location &where) {
  std::vector<Variable> learned;
  for (const auto &[name, parameter] : parameters)
    if (!parameter.frozen(where))
      learned.push_back(parameter);
  return valuesOf(learned, op, where);
}

std::vector<Tensor> spread(std::vector<Tensor> gradients,
                           const std::vector<std::pair<std::string, Variable>> &parameters) {
  std::vector<Tensor> all;
  size_t next = 0;
  for (const auto &[name, parameter] : parameters)
    all.push_back(parameter.frozen() ? Tensor() : std::move(gradients[next++]));
  return all;
}

} // namespace tressel::detail

namespace tressel {

std::vector<Tensor> jacobian(const std::function<Tensor()> &fn, const std::vector<Tensor> &inputs,
                             std::source_location where) {
  detail::GradientScope scope(inputs, "jacobian", where);
  Tensor y;
  {
    const TrainScope train;
    y = fn();
  }
  scope.end();
  if (!y.defined() || !isFloat(y.dtype()))
    detail::fail<ShapeError>("a Jacobian is that of a tensor of floats, not of " +
                                 (y.defined() ? y.type().str() : std::string("an empty tensor")),
                             detail::toLoc(where), "jacobian");
  const int64_t count = y.size(where);
  std::vector<Size> sizes(y.type().shape.begin(), y.type().shape.end()), rows = sizes;
  rows.insert(rows.begin(), count);
  const Tensor directions = reshape(Arg(eye({count, count}, 0, y.dtype(), where), where), rows);
  auto [none, stacked] = scan(
      [&](std::vector<Tensor> carry, Tensor direction) {
        return std::pair{carry, scope.pullBack({&y, 1}, {&direction, 1})};
      },
      std::vector<Tensor>{}, directions, where);
  std::vector<Tensor> all;
  for (const Tensor &part : stacked) {
    std::vector<Size> shape = sizes;
    shape.insert(shape.end(), part.type().shape.begin() + 1, part.type().shape.end());
    all.push_back(reshape(Arg(part, where), shape));
  }
  return all;
}

std::vector<Tensor> hessian_vector_product(const std::function<Tensor()> &fn, const std::vector<Tensor> &inputs,
                                           const std::vector<Tensor> &vectors, std::source_location where) {
  detail::GradientScope outer(inputs, "hessian_vector_product", where);
  const std::vector<Tensor> grads = value_and_grad(fn, inputs, where).grads;
  return outer.pullBack(grads, vectors);
}

std::vector<Tensor>
custom_gradient(const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &fn,
                const std::function<std::vector<Tensor>(const std::vector<Tensor> &, const std::vector<Tensor> &,
                                                        const std::vector<Tensor> &)> &gradient,
                const std::vector<Tensor> &inputs, std::source_location where) {
  using detail::TensorTape;
  std::vector<TensorTape *> here;
  for (TensorTape *tape = detail::threadState.tape; tape; tape = tape->outer()) {
    if (tape->isOutside())
      detail::fail<TraceError>(
          "a function with a gradient of its own stands in a body of control flow that is differentiated as a whole",
          detail::toLoc(where), "custom_gradient",
          "register an op with a gradient, or take the gradient inside of the body");
    if (tape->isHere())
      here.push_back(tape);
  }
  std::vector<Tensor> results;
  {
    struct Pause {
      TensorTape *const tape = std::exchange(detail::threadState.tape, nullptr);
      ~Pause() { detail::threadState.tape = tape; }
    } pause;
    results = fn(inputs);
  }
  for (TensorTape *tape : here) {
    auto pull = [gradient, inputs, results, tape, where](const op::GradientCall &call) {
      return tape->tape().pullFunction(call, [&](const std::vector<Tensor> &cotangents) {
        return detail::checkedGradient(gradient(inputs, results, cotangents), inputs, detail::toLoc(where),
                                       "custom_gradient");
      });
    };
    tape->noteFunction(pull, inputs, results, where);
  }
  return results;
}

} // namespace tressel
