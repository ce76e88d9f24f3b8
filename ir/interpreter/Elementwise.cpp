// Elementwise ops, and ops that create values.
#include "ir/interpreter/Evaluate.h"

namespace tressel::op::interp {

void forEachElement(Inputs in, Outputs out, DType compute, ElementFn fn, const void *fragment) {
  HostTensor &result = out[0];
  std::vector<Element> operands(in.size());
  // f32 numbers are flushed when they are converted to or from another type, but not when their bits are only moved.
  auto converts = [](DType single, DType other) {
    return single == DType::f32 && (other == DType::f64 || other == DType::boolean);
  };
  const DType to = result.type.dtype;
  for (Walk at(result.type.shape); at; ++at) {
    for (size_t i = 0; i < in.size(); ++i)
      operands[i] = converts(in[i].type.dtype, compute)
                        ? loadFlushed(in[i], broadcastPosition(in[i].type.shape, at.index()))
                        : load(in[i], broadcastPosition(in[i].type.shape, at.index()));
    Element value = fn(fragment, {&result.type.shape, &at.index(), at.position()}, operands.data());
    if (converts(compute, to) || converts(to, compute))
      value = flushedIn(DType::f32, value);
    store(result, at.position(), value);
  }
}

} // namespace tressel::op::interp
