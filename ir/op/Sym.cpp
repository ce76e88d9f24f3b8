#include "ir/op/Sym.h"

#include "tressel/runtime/Dim.h"

namespace tressel::op {

int32_t ScalarRecorder::add(const ScalarNode &node) {
  // Programs are short and most matches are recent, so a backward scan beats a hash table.
  for (size_t i = 0; i < program.nodes.size(); ++i)
    if (program.nodes[i] == node)
      return static_cast<int32_t>(i);
  program.nodes.push_back(node);
  return static_cast<int32_t>(program.nodes.size() - 1);
}

int32_t ScalarRecorder::constant(DType type, double value, int64_t integer) {
  ScalarNode node{ScalarOp::Const, type};
  if (isFloat(type))
    node.f = value;
  else
    node.i = type == DType::boolean ? value != 0 : integer;
  return add(node);
}

Sym SymContext::index(int64_t dim) const {
  ScalarNode node{ScalarOp::Index, DType::i64};
  node.i = dim;
  return {recorder, recorder->add(node)};
}

Sym SymContext::sizeOf(Size size) const {
  if (size.isNumber())
    return {recorder, recorder->constant(DType::i64, 0, size.number())};
  ScalarNode node{ScalarOp::Size, DType::i64};
  node.size = size;
  return {recorder, recorder->add(node)};
}

Sym SymContext::linearIndex() const {
  Sym linear{recorder, recorder->constant(DType::i64, 0, 0)};
  for (int64_t d = 0; d < rank(); ++d)
    linear = d == 0 ? index(0) : linear * size(d) + index(d);
  return linear;
}

ScalarProgram recordElementwise(const OpInfo &op, std::span<const TensorType> operands, const TensorType &result,
                                const Attrs &attrs) {
  DType compute = accumulatorType(computeType(op, operands, {&result, 1}));
  ScalarRecorder recorder;
  SymContext cx(&recorder, compute, result.shape);
  std::vector<Sym> in;
  for (size_t i = 0; i < operands.size(); ++i) {
    ScalarNode node{ScalarOp::Operand, operands[i].dtype};
    node.i = static_cast<int64_t>(i);
    bool condition = op.elementwise->boolOperands >> i & 1;
    in.push_back(Sym(&recorder, recorder.add(node)).to(condition ? DType::boolean : compute));
  }
  Sym value = op.elementwise->record(cx, in.data(), attrs).to(result.dtype);
  recorder.program.result = value.node;
  return std::move(recorder.program);
}

} // namespace tressel::op
