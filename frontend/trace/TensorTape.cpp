// Gradients of what is called: a tape over tensors, whether they are values of a trace or of imperative calls.
#include "frontend/trace/TensorTape.h"

#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Make.h"
#include "frontend/tensor/ThreadState.h"
#include "frontend/trace/Record.h"
#include "ir/op/Gradient.h"

#include <tressel/autograd.h>
#include <tressel/custom_op.h>
#include <tressel/ops.h>

#include <unordered_map>

namespace tressel::detail {

/// Puts ops where calls go. A Ref is a tensor's TensorImpl, which lives as long as this.
class TensorEmitter final : public op::Emitter {
public:
  explicit TensorEmitter(const std::source_location &where) : where_(where) {}

  Ref refOf(const Tensor &tensor) {
    held_.try_emplace(tensor.impl(), tensor);
    return tensor.impl();
  }
  const Tensor &tensorOf(Ref ref) const { return held_.at(ref); }

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

private:
  const std::source_location where_;
  std::unordered_map<Ref, Tensor> held_;
};

/// Knows the gradients that applications give their own ops.
class OpTape final : public op::Tape {
public:
  OpTape(TensorEmitter &emitter, std::span<const Ref> inputs, SourceLoc where)
      : Tape(emitter, inputs), emitter_(emitter), where_(where) {}

private:
  std::vector<Ref> pull(const op::OpInfo &info, const op::GradientCall &call) override {
    const CustomOpSpec *spec = info.custom ? customSpec(info.name) : nullptr;
    if (!spec || !spec->gradient)
      return Tape::pull(info, call);
    auto tensorsOf = [&](std::span<const Ref> refs) {
      std::vector<Tensor> tensors;
      for (Ref ref : refs)
        tensors.push_back(ref ? emitter_.tensorOf(ref) : Tensor());
      return tensors;
    };
    const std::vector<Tensor> operands = tensorsOf(call.operands), results = tensorsOf(call.results);
    std::vector<Tensor> given = tensorsOf(call.cotangents);
    for (size_t i = 0; i < given.size(); ++i)
      if (!given[i].defined())
        given[i] = zeros(sizesOf(results[i]), results[i].dtype());
    const std::vector<Tensor> made = spec->gradient(operands, results, given);
    if (made.size() != operands.size())
      fail<Error>("its gradient function gives " + std::to_string(made.size()) + " tensors for " +
                      std::to_string(operands.size()) + " operands",
                  where_, info.name);
    std::vector<Ref> refs(made.size(), nullptr);
    for (size_t i = 0; i < made.size(); ++i) {
      if (!call.wanted[i] || !made[i].defined())
        continue;
      if (made[i].type() != operands[i].type())
        fail<ShapeError>("its gradient of operand " + std::to_string(i) + " is " + made[i].type().str() +
                             ", but the operand is " + operands[i].type().str(),
                         where_, info.name);
      refs[i] = emitter_.refOf(made[i]);
    }
    return refs;
  }
  static std::vector<Size> sizesOf(const Tensor &t) { return {t.type().shape.begin(), t.type().shape.end()}; }

  TensorEmitter &emitter_;
  const SourceLoc where_;
};

class TensorTape {
public:
  TensorTape(std::span<const Tensor> inputs, const std::source_location &where)
      : where_(where), emitter_(where), inputs_(refsOf(inputs)), tape_(emitter_, inputs_, toLoc(where)),
        outer_(threadState.tape) {}

  void begin() { threadState.tape = this; }
  void end() {
    if (isOpen_)
      threadState.tape = outer_;
    isOpen_ = false;
  }
  TensorTape *outer() const { return outer_; }
  void note(const op::OpInfo &info, std::span<const Tensor> operands, const op::Attrs &attrs, std::span<const Tensor> results) {
    tape_.note(info, refsOf(operands), refsOf(results), attrs);
  }

  std::vector<Tensor> gradients(const Tensor &loss) {
    if (!loss.defined() || !isFloat(loss.dtype()) || !loss.type().shape.isStatic() || loss.type().shape.numElements() != 1)
      fail<ShapeError>("a gradient is that of one float, not of " + (loss.defined() ? loss.type().str() : std::string("an empty tensor")),
                       toLoc(where_), "value_and_grad", "reduce the loss with mean() or sum()");
    end(); // outer tapes remember what follows
    const op::Emitter::Ref result = emitter_.refOf(loss), one = emitter_.refOf(filled(loss.type().shape, 1, loss.dtype(), where_, "value_and_grad"));
    std::vector<op::Emitter::Ref> found;
    try {
      found = tape_.backward({&result, 1}, {&one, 1}, inputs_);
    } catch (const op::expr::NoGradient &e) {
      fail<Error>(e.message(), toLoc(where_), "value_and_grad");
    }
    std::vector<Tensor> gradients;
    for (size_t i = 0; i < found.size(); ++i) {
      const TensorType type = emitter_.typeOf(inputs_[i]);
      gradients.push_back(found[i] ? emitter_.tensorOf(found[i]) : full(std::vector<Size>(type.shape.begin(), type.shape.end()), 0, type.dtype, where_));
    }
    return gradients;
  }

private:
  std::vector<op::Emitter::Ref> refsOf(std::span<const Tensor> tensors) {
    std::vector<op::Emitter::Ref> refs;
    for (const Tensor &t : tensors)
      refs.push_back(emitter_.refOf(t));
    return refs;
  }

  const std::source_location where_;
  TensorEmitter emitter_;
  const std::vector<op::Emitter::Ref> inputs_;
  OpTape tape_;
  TensorTape *const outer_;
  bool isOpen_ = true;
};

void noteOnTapes(const op::OpInfo &info, std::span<const Tensor> operands, op::Attrs attrs, std::span<const Tensor> results) {
  op::completeAttrs(info, attrs);
  for (TensorTape *tape = threadState.tape; tape; tape = tape->outer())
    tape->note(info, operands, attrs, results);
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
