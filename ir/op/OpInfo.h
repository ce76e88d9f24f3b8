// The op table: one entry per op, generated from its record in ir/ops/*.td. Passes, the frontend, the importers, the
// interpreter and the tests query this table instead of comparing op names. No MLIR here.
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

/// Contractions, convolutions and their like, which take most of a network's time. Libraries have kernels for these.
constexpr bool isProduct(Family family) {
  return family == Family::Contraction || family == Family::Convolution || family == Family::ConvolutionByWeights ||
         family == Family::ConvolutionByData;
}

struct OpInfo;
struct ShardingRule;

/// Result types, or an error that names the violated rule and the operands' types, without location.
struct Inferred {
  std::vector<TensorType> types;
  std::string error; ///< empty: fine
  explicit operator bool() const { return error.empty(); }
};

/// A dense row-major tensor in host memory, the value of the interpreter. Copies share the bytes.
struct HostTensor {
  TensorType type;
  std::shared_ptr<std::byte[]> data;
  static HostTensor allocate(const TensorType &type); ///< zeroed, 64-byte aligned
  template <typename T> T *as() const { return reinterpret_cast<T *>(data.get()); }
};

/// Receives the ops of a decomposition or derivative: an MLIR rewriter, a trace, the interpreter. A Ref is the
/// emitter's own handle of a value.
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

/// The input of a reverse rule: a call of an op, with the cotangents of its results. A cotangent is the derivative of
/// some number with respect to a value, and has the value's type.
struct GradientCall {
  std::span<const Emitter::Ref> operands, results;
  std::span<const Emitter::Ref> cotangents; ///< one per result; null where it is zero
  const Attrs &attrs;
  std::span<const uint8_t> wanted; ///< per operand: its cotangent is wanted
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

/// The type to which an op's operands are converted after promotion, before its scalar fragment or combiner. Any: none.
/// Number: bools are rejected. Float: integers and bools become f32. Integer: other types are rejected. Bool: nonzero
/// is true. Bits: floats are rejected.
enum class ComputeClass : uint8_t { Any, Number, Float, Integer, Bool, Bits };
/// The element type of an elementwise result: the compute type, bool, or that of the attribute `dtype`.
enum class ElementRule : uint8_t { Compute, Bool, Attr };

class Sym;
class SymContext;
struct ElementwiseInfo {
  /// Applies the record's scalar fragment to recorded scalars (Sym.h).
  Sym (*record)(const SymContext &, const Sym *operands, const Attrs &);
  ElementRule element;
  uint8_t boolOperands; ///< bit i: operand i is a condition, converted to bool and not part of promotion
};

/// An op rewritten for tensors with permuted dimensions (OpInfo::reorder). Orders are permutations as `transpose` takes
/// them, with all entries from 0 to rank - 1; an empty order leaves the tensor unchanged. An operand with fewer
/// dimensions than its order first gets leading ones of size 1.
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
  std::span<const char *const> resultNames; ///< one per result, or a single one for a variable number
  int numResults;                           ///< -1: `infer` determines it
  bool commutative;
  /// The result is the operand's bytes in another shape: no kernel, the buffer is shared.
  bool isView;
  bool idempotent; ///< f(f(x)) = f(x)

  /// Types of the results. Checks operands' number, types, shapes and attributes; every rule has a number in `description`.
  Inferred (*infer)(const OpInfo &, std::span<const TensorType>, const Attrs &);
  /// The loop form of a call, or nothing. Types are those that `infer` accepted.
  std::optional<LoopForm> (*loopForm)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results,
                                      const Attrs &);
  /// The kernel form of a call, or nothing for types without a kernel (a decomposition converts them). May be null.
  std::optional<KernelForm> (*kernelForm)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results,
                                          const Attrs &);
  /// The operand whose bytes the first result of a bitcode kernel may take over after their last use, or -1.
  int overwrites;
  /// Reference evaluation: typed arithmetic without vectorization, which shares nothing with code generation. Null for
  /// composites, which are evaluated through their decomposition.
  void (*evaluate)(const OpInfo &, std::span<const HostTensor>, const Attrs &, std::span<HostTensor> results);
  /// For a composite: builds its results from other ops. Null for primitives.
  std::vector<Emitter::Ref> (*decompose)(const OpInfo &, Emitter &, std::span<const Emitter::Ref>, const Attrs &);
  /// For composite reductions with attributes `axis` and `keepdims`: the results of the whole, from the op's results
  /// (without keepdims) on parts of equal size, each stacked along a new last dimension. Null if these do not determine
  /// the whole.
  std::vector<Emitter::Ref> (*fromParts)(const OpInfo &, Emitter &, std::span<const Emitter::Ref>, const Attrs &);
  /// The reverse rule (Gradient.h): the operands' cotangents, null where one is zero or not wanted. Null for composites
  /// that are differentiated through their decomposition, and for ops that have no gradient.
  std::vector<Emitter::Ref> (*gradient)(const OpInfo &, Emitter &, const GradientCall &);
  /// Floating-point operations of one call.
  Size (*flops)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results, const Attrs &);

  /// NumPy expression over operand and attribute names, the independent reference of tests
  const char *numpy;
  std::span<const Domain> domains; ///< one per operand; empty: the default
  /// calls for random tests (test/support/Samples.h); empty: by its family's rules
  std::span<const char *const> samples;
  const char *example;             ///< one runnable line for the docs, may be empty

  ComputeClass compute;
  Combine combine;                ///< reductions, contractions, windows
  bool isMean;                    ///< the combined value is divided by the number of elements combined
  /// f(x, c) = x bit for bit, and f(c, x) if commutative. For integers, its integer value
  std::optional<double> identity;
  /// Whether f(f(x, inner), outer) = f(x, merged), and with which attributes. May be null.
  bool (*compose)(const Attrs &inner, const Attrs &outer, Attrs &merged);
  /// Whether the op returns its only operand unchanged. May be null.
  bool (*isIdentity)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results, const Attrs &);
  /// The op with permuted dimensions: on operands in the returned orders and with the returned attributes, it gives its
  /// result in the returned order. `order` is the requested order of the result, or of operand 0 for the family
  /// Reduction. Nothing if there is no such form. Null for ops whose dimensions have meanings that no attribute
  /// changes.
  std::optional<Reordered> (*reorder)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results,
                                      const Attrs &, const Ints &order);
  /// The sharding rule (ShardingRule.h): which dimensions are cut together. Null: the op only runs on whole tensors.
  ShardingRule (*sharding)(const OpInfo &, std::span<const TensorType>, std::span<const TensorType> results,
                           const Attrs &);
  const ElementwiseInfo *elementwise; ///< null for ops without a scalar fragment
  const runtime::CustomOp *custom;    ///< not null: no record, runs a kernel from outside (CustomOp.h)
  /// Has effects besides its results (prints, checks): never removed, merged, or moved past another such op.
  bool hasEffects;

  int attrIndex(std::string_view name) const; ///< -1 if there is none
};

/// All ops that have a record, in the order of the records.
std::span<const OpInfo *const> allOps();
/// An op of a record, or one that was registered (CustomOp.h). Null if unknown.
const OpInfo *findOp(std::string_view name);

/// Fills in defaults, and converts integers to sizes where the attribute is one. Returns an error that names a missing,
/// unknown or mistyped attribute, or "".
std::string completeAttrs(const OpInfo &op, Attrs &attrs);

/// Whether an attribute contains a symbolic size (Dim.h).
bool isSymbolic(const Attrs &attrs);
/// Replaces symbols by numbers. Throws Error for a symbol without a value.
Attrs withSizes(const Attrs &attrs, const dim::Values &values);

/// NumPy broadcasting; nothing if the shapes do not fit. Sizes must be provably equal, or one of them 1; an unknown
/// size takes on the other one.
std::optional<Shape> broadcastShapes(const Shape &a, const Shape &b);
/// The type to which operands of `op` are converted (before f16 and bf16 are widened, see `accumulatorType`). Operands
/// are those that `infer` accepted. An op without operands computes in i64 for an integer or bool result, else in f64.
DType computeType(const OpInfo &op, std::span<const TensorType> operands, std::span<const TensorType> results);
/// f32 for f16 and bf16, else the type itself.
constexpr DType accumulatorType(DType type) { return type == DType::f16 || type == DType::bf16 ? DType::f32 : type; }

/// The array API's promotion table; an integer with a float takes the float's type.
DType promote(DType a, DType b);

} // namespace tressel::op
