// Costs, derived from the loop forms and decompositions of ops.
#include "ir/op/TableSupport.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>

namespace tressel::op {

/// Measured on generated code with vectors of 4096 f32, AVX-512, one thread, in units of 11.8 ps per element (`tressel
/// run`).
int64_t scalarFlops(ScalarOp op) {
  switch (op) {
  case ScalarOp::Operand:
  case ScalarOp::Index:
  case ScalarOp::Size:
  case ScalarOp::Const:
  case ScalarOp::Cast:
    return 0;
  case ScalarOp::Exp:
    return 12;
  case ScalarOp::Div:
    return 16;
  case ScalarOp::Expm1:
  case ScalarOp::Logistic:
    return 18;
  case ScalarOp::Sqrt:
    return 20;
  case ScalarOp::Erf:
  case ScalarOp::Atan:
    return 22;
  case ScalarOp::Tanh:
    return 28;
  case ScalarOp::Log:
  case ScalarOp::Cosh:
    return 30;
  case ScalarOp::Rsqrt:
    return 34;
  case ScalarOp::Sinh:
  case ScalarOp::Atan2:
    return 40;
  case ScalarOp::Log1p:
    return 45;
  case ScalarOp::Asin:
  case ScalarOp::Acos:
  case ScalarOp::Rem:
    return 52;
  case ScalarOp::Sin:
  case ScalarOp::Cos:
  case ScalarOp::Tan:
    return 110;
  case ScalarOp::Pow:
    return 240;
  default:
    return 1;
  }
}

static int64_t scalarFlops(const ScalarProgram &program) {
  int64_t n = 0;
  for (const ScalarNode &node : program.nodes)
    n += scalarFlops(node.op);
  return n;
}

Size flopsOfLoop(const OpInfo &op, std::span<const TensorType> operands, std::span<const TensorType> results,
                 const Attrs &attrs) {
  std::optional<LoopForm> loop = op.loopForm(op, operands, results, attrs);
  if (!loop && op.kernelForm) {
    std::optional<KernelForm> kernel = op.kernelForm(op, operands, results, attrs);
    return kernel ? static_cast<int64_t>(kernel->flops) : 0;
  }
  if (!loop) {
    // For example grouped convolutions: each output point reads the weights of its group once.
    if (op.family != Family::Convolution || !dim::isKnown(results.front().shape))
      return 0;
    int64_t perOutput = operands[1].shape.numElements() / std::max<int64_t>(1, operands[1].shape.extent(0));
    return 2 * dim::hint(dim::numElements(results.front().shape)) * perOutput;
  }
  double points = 1; // a double, as sizes beyond any memory must not wrap around
  for (Size d : loop->domain)
    points *= d == kDynamic ? 1 : static_cast<double>(dim::hint(d));
  const int64_t each = scalarFlops(loop->body) + (loop->combine != Combine::None);
  constexpr auto kMost = static_cast<double>(int64_t(1) << 58); // small enough that sums of some do not overflow
  return static_cast<int64_t>(std::min(points * static_cast<double>(each), kMost));
}

namespace {
/// Sums up the costs of the ops of a decomposition.
class CountingEmitter : public Emitter {
public:
  std::vector<Ref> emit(const OpInfo &op, std::span<const Ref> inputs, const Attrs &attrs) override {
    std::vector<TensorType> types;
    for (Ref ref : inputs)
      types.push_back(typeOf(ref));
    std::vector<TensorType> results = op.infer(op, types, attrs).types;
    flops += op.flops(op, types, results, attrs);
    std::vector<Ref> refs;
    for (const TensorType &t : results)
      refs.push_back(add(t));
    return refs;
  }
  Ref constant(double, DType type) override { return add({type, {}}); }
  Ref constant(const HostTensor &value) override { return add(value.type); }
  TensorType typeOf(Ref value) override { return *static_cast<const TensorType *>(value); }
  Ref add(const TensorType &type) {
    values.push_back(std::make_unique<TensorType>(type));
    return values.back().get();
  }

  Size flops;

private:
  std::vector<std::unique_ptr<TensorType>> values;
};
} // namespace

Size flopsOfDecomposition(const OpInfo &op, std::span<const TensorType> operands, std::span<const TensorType>,
                          const Attrs &attrs) {
  CountingEmitter emitter;
  std::vector<Emitter::Ref> inputs;
  for (const TensorType &t : operands)
    inputs.push_back(emitter.add(t));
  op.decompose(op, emitter, inputs, attrs);
  return emitter.flops;
}

} // namespace tressel::op
