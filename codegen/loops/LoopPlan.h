// A kernel as one loop nest: the form between the ops and the machine code.
//
// All values live over the same loop dimensions, parallel ones (P) and reduced ones (R). A value is "full" (over P x R)
// or "reduced" (over P). Every op that is not a reduction is inlined into its users by composing index expressions, so
// what remains is a DAG of scalar expressions over the loop dimensions, the reductions that consume them, stage by
// stage, and the stores. See README.md in this folder.
#pragma once

#include "codegen/loops/KernelGraph.h"
#include "tressel/runtime/FloatMode.h"

#include <optional>
#include <string>
#include <vector>

namespace tressel::codegen {

// Code computes the sizes, coefficients and offsets that are symbolic from its launch's scalars when it is entered.

/// offset + sum of coefficient * loop index + sum of scale * value of an integer expression.
struct Affine {
  std::vector<Size> coef; ///< one per loop dimension
  Size offset;
  struct Indirect {
    int32_t expr;
    Size scale;
    bool operator==(const Indirect &) const = default;
  };
  std::vector<Indirect> indirect;
  bool operator==(const Affine &) const = default;
};

enum class ExprKind : uint8_t {
  Scalar,  ///< op over args
  Load,    ///< element `index` of buffer `buffer`, 0 where the guard does not hold
  Index,   ///< the value of `index`, i64
  InRange, ///< 0 <= index < size
  Checked, ///< args[0] as an index of a dimension of `size`: negative counts from the end, a bad one fails the launch
  Reduced, ///< the result of reduction number i
};

struct Expr {
  ExprKind kind = ExprKind::Scalar;
  DType dtype = DType::f32;
  op::ScalarOp op = op::ScalarOp::Const;
  int32_t args[3] = {-1, -1, -1};
  double f = 0;
  int64_t i = 0;
  Size size;
  Affine index;
  int32_t buffer = -1;
  int32_t guard = -1; ///< bool expression, -1: always
  uint64_t dims = 0;  ///< loop dimensions its value depends on, a bit each
};

struct Reduction {
  int32_t body = -1; ///< expression over P x R
  op::Combine combine = op::Combine::Sum;
  double scale = 1;
  Size divisor = 1;              ///< symbolic: the combined value is multiplied by its reciprocal
  DType accumulate = DType::f32; ///< type of the body and of the accumulator
  DType dtype = DType::f32;      ///< of the result
  int stage = 0;                 ///< all reductions of a stage share one pass over R
};

struct Store {
  int32_t buffer = -1;
  int32_t value = -1;
  Affine index;
  bool full = false; ///< stored once per point of P x R, in the last stage
};

struct LoopDim {
  Size size = 1;
  bool reduced = false;
};

struct Buffer {
  DType dtype = DType::f32;
  Size elements;
};

/// In which order a reduction adds up (or multiplies) floats.
enum class TermOrder : uint8_t {
  Free,      ///< the fastest
  OneByOne,  ///< one after the other, the last reduced dimension innermost
  AlongLanes ///< that dimension runs over the lanes of a few vectors, of which each sums up its own terms
};

struct LoopPlan {
  std::vector<LoopDim> dims; ///< the parallel ones, then the reduced ones, outermost first
  int32_t numParallel = 0;
  /// >= 0: the first so many dims are the rows that units of work are made of, never merged with later ones. -1: free.
  int32_t unitDims = -1;
  std::vector<Expr> exprs; ///< arguments precede users
  std::vector<Reduction> reductions;
  std::vector<Store> stores;
  std::vector<Buffer> buffers; ///< inputs, then results
  int32_t numInputs = 0;
  int numStages = 0; ///< passes over R that compute reductions
  bool keepSubnormals = false; ///< of f32
  /// Results have the same bits whatever else the nest computes: each operation is rounded by itself, where a
  /// multiplication and an addition are one instruction otherwise, and the op and its sizes alone give the order of a
  /// reduction's terms.
  bool deterministic = false;
  TermOrder order = TermOrder::Free; ///< of all reductions where it counts

  // For costs: at typical sizes, where sizes are symbolic.
  int64_t parallelPoints() const;
  int64_t reducedPoints() const;
  /// Bytes of all buffers that the nest can reach, each once.
  int64_t bytes() const;
  /// Canonical text: equal plans give equal code. Also what `--emit` and failing tests show.
  std::string str() const;
  /// In which mode its code runs: that of f64 where it computes in f64.
  runtime::FloatMode floats() const;
  /// Whether it computes in f32 in the mode of f64: then its code makes zeros of subnormal numbers itself.
  bool flushesExplicitly() const;
  /// How many terms of a sum of floats may be added one after the other; such blocks are added up with compensation. Where each
  /// term is read from memory, blocks are short, as memory takes the time; in a product of matrices most terms are in registers.
  int64_t sumBlock() const;
  static constexpr int64_t kSumBlock = 32, kProductBlock = 1024;
};

/// Nothing if the ops do not share one nest (`why` says which rule is broken). `rowDims` >= 0: so many leading
/// dims of the results stay apart, as an epilogue's rows.
std::optional<LoopPlan> buildLoopPlan(const KernelGraph &graph, std::string *why = nullptr, int rowDims = -1);

} // namespace tressel::codegen
