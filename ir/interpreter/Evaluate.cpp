#include "ir/interpreter/Evaluate.h"

#include "ir/op/Infer.h"
#include "tressel/runtime/Error.h"

namespace tressel::op::interp {
std::vector<Emitter::Ref> EvaluatingEmitter::emit(const OpInfo &op, std::span<const Ref> inputs, const Attrs &attrs) {
  std::vector<HostTensor> operands;
  for (Ref ref : inputs)
    operands.push_back(valueOf(ref));
  Evaluation result = run(op, operands, attrs);
  if (!result) // the composite's record or a value is invalid; in either case the user gets the error
    throw RuntimeError({.message = result.error, .op = op.name});
  std::vector<Ref> refs;
  for (HostTensor &t : result.outputs)
    refs.push_back(add(std::move(t)));
  return refs;
}

Emitter::Ref EvaluatingEmitter::constant(double value, DType type) {
  HostTensor scalar = HostTensor::allocate({type, {}});
  store(scalar, 0, value);
  return add(std::move(scalar));
}

Evaluation run(const OpInfo &op, std::span<const HostTensor> inputs, Attrs attrs) {
  Evaluation result;
  result.error = completeAttrs(op, attrs);
  if (!result)
    return result;
  std::vector<TensorType> types;
  for (const HostTensor &t : inputs)
    types.push_back(t.type);
  Inferred inferred = inferTypes(op, types, attrs);
  if (!inferred) {
    result.error = inferred.error;
    return result;
  }
  try {
    if (op.evaluate) {
      for (const TensorType &type : inferred.types)
        result.outputs.push_back(HostTensor::allocate(type));
      op.evaluate(op, inputs, attrs, result.outputs);
    } else {
      EvaluatingEmitter emitter;
      std::vector<Emitter::Ref> operands;
      for (const HostTensor &t : inputs)
        operands.push_back(emitter.add(t));
      for (Emitter::Ref ref : op.decompose(op, emitter, operands, attrs))
        result.outputs.push_back(emitter.valueOf(ref));
      for (size_t i = 0; i < result.outputs.size(); ++i)
        if (result.outputs[i].type != inferred.types[i])
          throw RuntimeError({.message = "the decomposition gives " + result.outputs[i].type.str() + ", not the inferred " +
                                         inferred.types[i].str(),
                              .op = op.name});
    }
  } catch (const Error &error) {
    result.outputs.clear();
    result.error = error.message();
  }
  return result;
}

} // namespace tressel::op::interp
