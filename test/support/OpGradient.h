// The gradient of one call of an op, as its reverse rule gives it, with numbers.
#pragma once

#include "ir/interpreter/Evaluate.h"
#include "ir/op/Gradient.h"
#include "test/support/RandomOps.h"

#include <optional>
#include <span>
#include <vector>

namespace tressel::test {

/// A call and the cotangents of its operands, evaluated as they are built. Throws NoGradient and what else the rule
/// throws.
class OpGradient {
public:
  using Tensors = std::vector<op::HostTensor>;
  /// `cotangents` has one tensor per result; those of integers do not matter.
  OpGradient(const OpCall &call, const Tensors &operands, const Tensors &cotangents) {
    std::vector<uint8_t> wanted;
    for (const op::HostTensor &t : operands) {
      in_.push_back(emitter_.add(t));
      wanted.push_back(isFloat(t.type.dtype));
    }
    for (const op::HostTensor &t : cotangents)
      given_.push_back(isFloat(t.type.dtype) ? emitter_.add(t) : nullptr);
    tape_.emplace(emitter_, in_);
    const std::vector<op::Emitter::Ref> out = tape_->emit(*call.op, in_, call.attrs);
    made_ = pullBack(*call.op, *tape_, {in_, out, given_, call.attrs, wanted});
  }
  /// Per operand, without data where it is zero.
  Tensors gradients() const { return valuesOf(made_); }
  /// Those of the sum of the gradients' elements, each times its weight.
  Tensors gradientsOfGradients(const Tensors &weights) {
    std::vector<op::Emitter::Ref> given;
    for (size_t i = 0; i < made_.size(); ++i)
      given.push_back(made_[i] ? emitter_.add(weights[i]) : nullptr);
    return valuesOf(tape_->backward(made_, given, in_));
  }

private:
  Tensors valuesOf(const std::vector<op::Emitter::Ref> &refs) const {
    Tensors list;
    for (op::Emitter::Ref ref : refs)
      list.push_back(ref ? emitter_.valueOf(ref) : op::HostTensor());
    return list;
  }
  op::interp::EvaluatingEmitter emitter_;
  std::vector<op::Emitter::Ref> in_, given_, made_;
  std::optional<op::Tape> tape_;
};

} // namespace tressel::test
