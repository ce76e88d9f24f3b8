// Products of matrices.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"

namespace tressel::onnx {

namespace {
using N = NodeImporter;

void matmul(N &n) {
  n.sameType(n.in(0), n.in(1));
  n.out(0, n.emit("matmul", {n.in(0), n.in(1)}));
}

/// alpha * A' B' + beta * C
void gemm(N &n) {
  Value a = n.in(0), b = n.in(1);
  n.sameType(a, b);
  double alpha = n.floatAttr("alpha", 1), beta = n.floatAttr("beta", 1);
  if (a.rank() != 2 || b.rank() != 2)
    n.fail("needs two matrices, not " + a.type.str() + " and " + b.type.str());
  if (!isFloat(a.dtype()) && (alpha != 1 || beta != 1))
    n.unsupported("alpha or beta with integers");
  if (n.intAttr("transA", 0))
    a = n.transpose(a, {1, 0});
  if (n.intAttr("transB", 0))
    b = n.transpose(b, {1, 0});
  Value v = n.emit("matmul", {a, b});
  if (alpha != 1)
    v = n.emit("mul", {v, n.scalar(v.dtype(), alpha)});
  if (n.has(2) && beta != 0) {
    Value c = n.in(2);
    n.sameType(v, c);
    auto shape = op::broadcastShapes(c.type.shape, v.type.shape);
    if (!shape || !(*shape == v.type.shape))
      n.fail("C of type " + c.type.str() + " does not broadcast to " + v.type.str());
    if (beta != 1)
      c = n.emit("mul", {c, n.scalar(v.dtype(), beta)});
    v = n.emit("add", {v, c});
  }
  n.out(0, v);
}

void einsum(N &n) {
  std::vector<Value> operands;
  for (int i = 0; i < n.numInputs(); ++i) {
    n.sameType(n.in(0), n.in(i));
    operands.push_back(n.in(i));
  }
  n.out(0, n.emit("einsum", operands, {{"equation", n.stringAttr("equation")}}));
}

constexpr OpEntry kTable[] = {{"MatMul", 1, matmul}, {"Gemm", 7, gemm}, {"Einsum", 12, einsum}};
} // namespace

std::span<const OpEntry> linearOps() { return kTable; }

} // namespace tressel::onnx
