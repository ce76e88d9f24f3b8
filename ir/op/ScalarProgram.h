// The scalar program of an elementwise op, recorded from its record's `scalar` fragment: a small DAG in post-order
// (operands precede their node). Code generation, the cost model and importers read it.
#pragma once

#include "tressel/runtime/Types.h"

#include <cstdint>
#include <vector>

namespace tressel::op {

/// The primitive scalar functions. Every backend implements these and nothing else.
enum class ScalarOp : uint8_t {
  Operand, ///< imm.i: which operand of the op
  Index,   ///< imm.i: which dimension of the domain; the element's index in it, i64
  Size,    ///< imm.size; i64
  Const,   ///< imm.f for floats, imm.i for integers and bool
  Cast,    ///< to the node's dtype; float to integer truncates, anything to bool is != 0
  // Arithmetic, both operands of the node's dtype. Integers wrap around.
  Add,
  Sub,
  Mul,
  Div,
  Rem,
  Pow,
  Min,
  Max,
  Atan2,
  Neg,
  Abs,
  Sign,
  Floor,
  Ceil,
  Round,
  Trunc,
  Sqrt,
  Rsqrt,
  Exp,
  Expm1,
  Log,
  Log1p,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Erf,
  Logistic,
  // Comparisons: operands share a type, the node's dtype is bool.
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  IsNan,
  // Bool and integers.
  And,
  Or,
  Xor,
  Not,
  Shl,
  Shr,    ///< Shr brings in zeros, for signed types too
  Select, ///< (bool, a, b)
};

struct ScalarNode {
  ScalarOp op;
  DType dtype;
  int32_t args[3] = {-1, -1, -1}; ///< indices of earlier nodes
  double f = 0;                   ///< Const of a float type
  int64_t i = 0;                  ///< Const of an integer type, Operand, Index
  tressel::Size size = {};        ///< Size
  bool operator==(const ScalarNode &) const = default;
};

/// The result is node `result`, which need not be the last one. Min and Max propagate NaN. Div and Rem of integers
/// round towards minus infinity, as in the array API; division of an integer by zero gives 0.
struct ScalarProgram {
  std::vector<ScalarNode> nodes;
  int32_t result = -1;
};

/// Cost of one evaluation, in units of an addition.
int64_t scalarFlops(ScalarOp op);

} // namespace tressel::op
