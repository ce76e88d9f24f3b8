// What is known of an op: one table entry, generated from its record in ir/ops/*.td. Passes, the frontend, the importers,
// the interpreter and the tests ask this table; nobody asks for an op by name. No MLIR here.
#pragma once

#include "ir/op/Attr.h"
#include "ir/op/KernelForm.h"
#include "ir/op/LoopForm.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Types.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::runtime {
struct CustomOp;
}

namespace tressel::op {

enum class Family : uint8_t {
  Elementwise,
  Reduction,
  Contraction,
  Convolution,
  ConvolutionByWeights,
  ConvolutionByData,
  Window,
  Shape,
  Indexing,
  Ordering,
  Control,
  Random,
  Collective,
  Composite,
  Constant,
  Custom,
};

/// Sums of products, in which a network's time goes: what libraries have kernels for.
constexpr bool isProduct(Family family) {
  return family == Family::Contraction || family == Family::Convolution || family == Family::ConvolutionByWeights ||
         family == Family::ConvolutionByData;
}

struct OpInfo;
struct ShardingRule;

/// Result types, or an error that names the rule that is broken and the operands' types, without location.
struct Inferred {
  std::vector<TensorType> types;
  std::string error; ///< empty: fine
  explicit operator bool() const { return error.empty(); }
};

/// A dense row-major tensor in host memory: the interpreter's value. Copies share.
struct HostTensor {
  TensorType type;
  std::shared_ptr<std::byte[]> data;
  static HostTensor allocate(const TensorType &type); ///< zeroed, 64-byte aligned
  template <typename T> T *as() const { return reinterpret_cast<T *>(data.get()); }
};

/// Where a decomposition or a derivative puts the ops it is made of: an MLIR rewriter, a trace, the interpreter.
/// A Ref is the emitter's own handle of a value.
class Emitter {
public:
  using Ref = const void *;
  virtual ~Emitter() = default;
  virtual std::vector<Ref> emit(const OpInfo &op, std::span<const Ref> inputs, const Attrs &attrs) = 0;
  /// A scalar constant of rank 0.
  virtual Ref constant(double value, DType type) = 0;
  /// A constant of any shape.
  virtual Ref constant(const HostTensor &value) = 0;
  virtual TensorType typeOf(Ref value) = 0;
};

/// A call of an op whose results' cotangents are known: what a reverse rule reads. A cotangent is the derivative of
/// some number with respect to a value, of that value's type.
struct GradientCall {
  std::span<const Emitter::Ref> operands, results;
  std::span<const Emitter::Ref> cotangents; ///< one per result; null where it is zero
  const Attrs &attrs;
  std::span<const uint8_t> wanted; ///< per operand, whether its cotangent is asked for
};

struct OperandSpec {
  const char *name;
  bool variadic; ///< only the last may be
  bool optional; ///< may be absent at the end of the operand list
};

/// Range of values in which a random test may feed an operand, both ends included.
struct Domain {
  double low = -2, high = 2;
};

/// What an op's operands are converted to before its scalar fragment or combiner sees them, after promotion.
/// Any: nothing more. Number: bools are refused. Float: integers and bools become f32. Integer: others are refused.
/// Bool: nonzero is true. Bits: floats are refused.
enum class ComputeClass : uint8_t { Any, Number, Float, Integer, Bool, Bits };
/// An elementwise result's element type: that of the computation, bool, or the attribute `dtype`.
enum class ElementRule : uint8_t { Compute, Bool, Attr };

class Sym;
class SymContext;
struct ElementwiseInfo {
  /// Applies the record's scalar fragment to recorded scalars (Sym.h).
  Sym (*record)(const SymContext &, const Sym *operands, const Attrs &);
  ElementRule element;
  uint8_t boolOperands; ///< bit i: operand i is a condition, converted to bool and not part of promotion
};

/// What an op is on tensors whose dimensions stand in another order (OpInfo::reorder). Orders are permutations as
/// `transpose` takes them, with all entries from 0 to rank - 1; an empty one leaves the tensor as it is. An operand of
/// fewer dimensions than its order has entries gets leading ones of size 1 first.
struct Reordered {
  Attrs attrs;
  std::vector<Ints> operands; ///< one per operand
  Ints result;
};

struct OpInfo {
  const char *name;        ///< "add": the frontend's function, the IR's mnemonic and the docs' name in one
  Family family;
  const char *summary;     ///< one line
  const char *description; ///< markdown: shapes, errors
  std::span<const OperandSpec> operands;
  std::span<const AttrSpec> attrs;
  std::span<const char *const> resultNames; ///< one per result, or the one of a variable number
  int numResults;                           ///< -1: `infer` says how many
  bool commutative;
  /// The result is the operand's bytes in another shape: no kernel, the buffer is shared.
  bool isView;
  bool idempotent; ///< f(f(x)) = f(x)

  /// Types of the results. Checks operands' number, types, shapes and attributes; every rule has a number in `description`.
  Inferred (*infer)(const OpInfo &, std::span<const TensorType>, const Attrs &);
  /// As one loop nest, or nothing. Types are those `infer` accepted.
  std::optional<LoopForm> (*loopForm)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results,
                                      const Attrs &);
  /// As a call of a bitcode kernel, or nothing for types it has none for (a decomposition converts them). May be null.
  std::optional<KernelForm> (*kernelForm)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results,
                                          const Attrs &);
  /// The operand whose bytes the first result of a bitcode kernel may take over after their last use, or -1.
  int overwrites;
  /// The reference interpreter: typed arithmetic, no vectorization, shares nothing with code generation. Null for
  /// composites that are evaluated through their decomposition.
  void (*evaluate)(const OpInfo &, std::span<const HostTensor>, const Attrs &, std::span<HostTensor> results);
  /// Composite: the results, written in other ops. Null for primitives.
  std::vector<Emitter::Ref> (*decompose)(const OpInfo &, Emitter &, std::span<const Emitter::Ref>, const Attrs &);
  /// Composite reductions, with attributes `axis` and `keepdims`: the results, from what the op makes (without keepdims) of
  /// parts of equal sizes, result by result stacked along a new last dimension. Null where more of the parts is needed.
  std::vector<Emitter::Ref> (*fromParts)(const OpInfo &, Emitter &, std::span<const Emitter::Ref>, const Attrs &);
  /// The reverse rule (Gradient.h): the operands' cotangents, null where one is zero or not wanted. Null for composites
  /// that are differentiated through their decomposition, and for ops that have no gradient.
  std::vector<Emitter::Ref> (*gradient)(const OpInfo &, Emitter &, const GradientCall &);
  /// Floating-point operations of one call.
  Size (*flops)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results, const Attrs &);

  const char *numpy;               ///< NumPy expression over operand and attribute names: the independent oracle
  std::span<const Domain> domains; ///< one per operand; empty: the default
  std::span<const char *const> samples; ///< how random tests call it (test/support/Samples.h); empty: by its family's rules
  const char *example;             ///< one runnable line for the docs, may be empty

  ComputeClass compute;
  Combine combine;                ///< reductions, contractions, windows
  bool isMean;                    ///< the combined value is divided by the number of elements combined
  std::optional<double> identity; ///< f(x, c) = x bit for bit; if commutative f(c, x) too. For integers its integer value
  /// Whether f(f(x, inner), outer) = f(x, merged), and with which attributes. May be null.
  bool (*compose)(const Attrs &inner, const Attrs &outer, Attrs &merged);
  /// Whether the op returns its only operand unchanged. May be null.
  bool (*isIdentity)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results, const Attrs &);
  /// With the returned attributes the op, of its operands in their returned orders, is its result in the returned order.
  /// `order` is wanted of the result, or for the family Reduction of operand 0. Nothing if the op has no such form.
  /// Null for ops that tell dimensions apart in ways that no attribute says.
  std::optional<Reordered> (*reorder)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results,
                                      const Attrs &, const Ints &order);
  /// Which dimensions are cut together when tensors are cut into parts (ShardingRule.h). Null: the op runs on whole
  /// tensors.
  ShardingRule (*sharding)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results,
                           const Attrs &);
  const ElementwiseInfo *elementwise; ///< null for ops without a scalar fragment
  const runtime::CustomOp *custom;    ///< not null: no record, runs a kernel from outside (CustomOp.h)
  /// Does something besides computing its results (prints, checks): never removed, merged or moved past another such op.
  bool hasEffects;

  int attrIndex(std::string_view name) const; ///< -1 if there is none
};

/// All ops that have a record, in the order of the records.
std::span<const OpInfo *const> allOps();
/// An op of a record, or one that was registered (CustomOp.h). Null if unknown.
const OpInfo *findOp(std::string_view name);

/// Fills defaults, and makes sizes of the numbers that stand for some; the error names a missing, unknown or mistyped
/// attribute.
std::string completeAttrs(const OpInfo &op, Attrs &attrs);

/// Whether an integer of an attribute is a symbolic size (Dim.h).
bool isSymbolic(const Attrs &attrs);
/// With numbers for the symbols. Throws Error when one has no value.
Attrs withSizes(const Attrs &attrs, const dim::Values &values);

/// NumPy broadcasting; nothing if the shapes do not fit. Sizes that are not certainly equal do not, unless one is 1; a
/// size of which nothing is known takes the other.
std::optional<Shape> broadcastShapes(const Shape &a, const Shape &b);
/// What the operands of `op` are converted to (before f16 and bf16 are widened, see `accumulatorType`). Operands are
/// those `infer` accepted; an op without operands computes in i64 for an integer or bool result, else in f64.
DType computeType(const OpInfo &op, std::span<const TensorType> operands, std::span<const TensorType> results);
/// f32 for f16 and bf16, else the type itself.
constexpr DType accumulatorType(DType type) { return type == DType::f16 || type == DType::bf16 ? DType::f32 : type; }

/// The array API's promotion table; an integer with a float takes the float's type.
DType promote(DType a, DType b);

} // namespace tressel::op
