#include "frontend/eager/OneOp.h"

#include "ir/op/Infer.h"

namespace tressel::eager {

std::vector<Tensor> recordOp(detail::TraceRecorder &recorder, const codegen::OpCall &call,
                             std::span<const uint32_t> homes) {
  const op::OpInfo &info = *call.op;
  std::vector<Tensor> arguments;
  for (size_t i = 0; i < call.operands.size(); ++i)
    arguments.push_back(recorder.input(call.operands[i], "in" + std::to_string(i), {}, homes.empty() ? 0 : homes[i]));
  const op::Inferred inferred = op::inferTypes(info, call.operands, call.attrs);
  if (!inferred)
    throw Error(Error::Details{.message = inferred.error, .op = info.name});
  std::vector<Tensor> results(inferred.types.size());
  recorder.op(info, arguments, inferred.types, call.attrs, {}, results);
  return results;
}

} // namespace tressel::eager
