// Elementwise ops, and those that make values of nothing.
#include "ir/interpreter/Evaluate.h"

namespace tressel::op::interp {

void forEachElement(Inputs in, Outputs out, ElementFn fn, const void *fragment) {
  HostTensor &result = out[0];
  std::vector<Element> operands(in.size());
  for (Walk at(result.type.shape); at; ++at) {
    for (size_t i = 0; i < in.size(); ++i)
      operands[i] = load(in[i], broadcastPosition(in[i].type.shape, at.index()));
    store(result, at.position(), fn(fragment, {&result.type.shape, &at.index(), at.position()}, operands.data()));
  }
}

} // namespace tressel::op::interp
