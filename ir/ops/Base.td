// What a record says of an op, and the families that say most of it for their members. docs/adding-an-op.md is the guide.
#ifndef TRESSEL_IR_OPS_BASE
#define TRESSEL_IR_OPS_BASE

include "ir/graph/Dialect.td"

// Attributes, as records write them: Default<Int, "-1">:$axis, Maybe<Ints>:$axis.
defvar Tensor = AnyRankedTensor;
defvar Int = I64Attr;
defvar Ints = DenseI64ArrayAttr;
// Numbers, or expressions of symbolic sizes (tressel/runtime/Size.h).
def Size : TypedSignlessIntegerAttrBase<I64, "int64_t", "a size">;
def Sizes : DenseArrayAttrBase<"DenseI64ArrayAttr", "int64_t", "i64">;
defvar Float = F64Attr;
defvar Bool = BoolAttr;
defvar Type = TypeAttr; // an element type
defvar Str = StrAttr;
class Default<Attr attr, string value> : DefaultValuedAttr<attr, value>;
class Maybe<Attr attr> : OptionalAttr<attr>;
// Operands: Tensor:$x; Optional<Tensor>:$bias at the end of the list; Variadic<Tensor>:$inputs as the last.

// Values of `prebuilt`.
defvar Floats = ["f32", "f64"];
defvar Numbers = ["f32", "f64", "i32", "i64"];
defvar AllFloats = ["f32", "f64", "f16", "bf16"];
defvar AllNumbers = ["f32", "f64", "i32", "i64", "f16", "bf16"];

// Every op. C++ names are functions of ir/op (namespace tressel::op) with the signature of the OpInfo field they fill.
class TableOp<string mnemonic, string family_> : Op<Tressel_Dialect, mnemonic> {
  // Several by name, (outs Tensor:$values, Tensor:$indices), or (outs Variadic<Tensor>:$parts): `infer` says how many.
  let results = (outs Tensor:$result);
  string family = family_;

  // What the result is. A fragment is an expression or statements with `return`.
  code scalar = "";        // elementwise: over scalars, see ir/ops/README.md
  code decomposition = ""; // composite: over expressions of other ops
  // The reverse rule, over expressions of other ops: the operands' cotangents as {first, second, ...}, or one expression
  // if there is one operand; {} where one is zero. Names are the operands and attributes, `y` and `dy` the first result and
  // its cotangent, `out(i)` and `d(i)` those of result i; `d(i)` may be empty. What comes out is summed over the dimensions
  // that the operand was broadcast along, and converted to its element type. Elementwise ops get theirs from `scalar`, and
  // composites from `decomposition`, where none stands here.
  code gradient = "";
  // What the results are, and the checks of operands and attributes: either the name of a C++ function, or a fragment
  // over the operands' types and the attributes that ends with `return result(type)` or `return fail(rule, "why")`.
  string infer = ?;
  code types = "";
  string loopForm = "noLoopForm"; // C++: the op as one loop nest
  string kernelForm = "nullptr"; // C++: the op as a call of a bitcode kernel, for what is no loop nest
  int overwrites = -1;     // the operand whose bytes the first result may take over when a bitcode kernel runs
  string evaluate = "";    // C++ in ir/interpreter; elementwise ops and composites need none
  string flops = "flopsOfLoop";
  string combine = "None"; // reductions: op::Combine
  bit isMean = 0;          // the combined value is divided by the number of elements
  // Composite, of one operand, with the attributes axis and keepdims: the results, over expressions `part(i)`, result i of parts of equal
  // sizes, stacked along a new last dimension. Devices that have a part of what is reduced then exchange these alone, once. Neither
  // this nor the decomposition may hold composites.
  code fromParts = "";

  // Element types of an elementwise op: what operands are converted to (Any, Number, Float, Integer, Bool, Bits), what the
  // result is (Compute, Bool, Attr), and which operands (a bit each) are conditions.
  string compute = "Any";
  string element = "Compute";
  int boolOperands = 0;

  // What the simplifier may know.
  bit commutative = 0;
  bit isView = 0;           // the operand's bytes in another shape
  bit idempotent = 0;       // f(f(x)) = f(x)
  string identity = "";     // a number c with f(x, c) = x, exactly: -0.0 for a sum of floats
  string compose = "nullptr";    // C++: merges f(f(x)) into one
  string isIdentity = "nullptr"; // C++: whether the op returns its operand unchanged
  string reorder = "nullptr";    // C++: the op on tensors whose dimensions stand in another order

  // C++: which dimensions are cut together when tensors are cut into parts for several devices (ir/op/ShardingRule.h).
  string sharding = "shardingOfLoop";

  // Element types of which imperative calls find their kernels compiled in the library, in the usual layouts
  // (frontend/eager/prebuilt).
  list<string> prebuilt = [];

  // For people and tests.
  string numpy = ?;            // independent oracle: a NumPy expression over operand and attribute names
  list<string> domains = [];   // "low, high" of random test values, one per operand
  // How random tests call the op where its family's rules do not fit: a line per operand or attribute with alternatives,
  // "w: c f 3 2*h | c f 1 1", "labels: i64 n", "groups: g", "mode: nearest | linear"; see test/support/Samples.h.
  list<string> samples = [];
  string example = "";         // a C++ expression that stands for itself; the op page shows it with its value
}

// --- Elementwise: operands broadcast, element types promote -----------------------------------------------------------
class Elementwise<string mnemonic> : TableOp<mnemonic, "Elementwise"> {
  let description = [{
    - (C1) the operands' shapes broadcast;
    - (C2) the operands' element types suit the op.
  }];
  let infer = "inferElementwise";
  let loopForm = "loopFormElementwise";
  let reorder = "reorderElementwise";
}
class Unary<string mnemonic> : Elementwise<mnemonic> {
  let prebuilt = Floats;
  let arguments = (ins Tensor:$x);
  let compute = "Float";
}
class Binary<string mnemonic> : Elementwise<mnemonic> {
  let prebuilt = Numbers;
  let arguments = (ins Tensor:$a, Tensor:$b);
  let compute = "Number";
}
class Comparison<string mnemonic> : Elementwise<mnemonic> {
  let prebuilt = Numbers;
  let arguments = (ins Tensor:$a, Tensor:$b);
  let element = "Bool";
}
class Logical<string mnemonic> : Elementwise<mnemonic> {
  let prebuilt = ["bool"];
  let compute = "Bool";
  let element = "Bool";
}

// --- Values made of nothing: shape and type are attributes --------------------------------------------------------------
class Creation<string mnemonic> : TableOp<mnemonic, "Constant"> {
  let compute = "Any";
  let element = "Attr";
  let infer = "inferCreation";
  let loopForm = "loopFormElementwise";
}

// --- Reductions: `axis` absent means all dimensions -----------------------------------------------------------------------
class Reduction<string mnemonic, string combine_> : TableOp<mnemonic, "Reduction"> {
  let prebuilt = Numbers;
  let description = [{
    - (C1) every axis is in [-rank, rank), none twice.
  }];
  let arguments = (ins Tensor:$x, Maybe<Ints>:$axis, Default<Bool, "false">:$keepdims);
  let infer = "inferReduction";
  let loopForm = "loopFormReduction";
  let reorder = "reorderReduction";
  let evaluate = "interp::reduce";
  let combine = combine_;
  let compute = "Any";
}
class OrderReduction<string mnemonic, string combine_> : Reduction<mnemonic, combine_> {
  let description = [{
    - (C1) every axis is in [-rank, rank), none twice;
    - (C2) a largest or smallest element exists: the reduced dimensions are not empty.
  }];
}
class ArgReduction<string mnemonic, string combine_> : OrderReduction<mnemonic, combine_> {
  let arguments = (ins Tensor:$x, Default<Int, "-1">:$axis, Default<Bool, "false">:$keepdims);
  let infer = "inferArgReduction";
}

// --- Movement of data ---------------------------------------------------------------------------------------------------------
class ShapeOp<string mnemonic> : TableOp<mnemonic, "Shape">;
class View<string mnemonic> : ShapeOp<mnemonic> {
  let isView = 1;
  let evaluate = "interp::view";
  let isIdentity = "sameType";
  let sharding = "shardingOfReshape";
}
class Indexing<string mnemonic> : TableOp<mnemonic, "Indexing">;

// --- Linear algebra and windows ---------------------------------------------------------------------------------------------
class Contraction<string mnemonic> : TableOp<mnemonic, "Contraction"> {
  let combine = "Sum";
  let compute = "Number";
}
// Of this family are ops that libraries run as `conv`, with its operands and attributes.
class Convolution<string mnemonic> : TableOp<mnemonic, "Convolution"> {
  let combine = "Sum";
  let compute = "Float";
  let reorder = "reorderImage";
  let sharding = "shardingOfConv";
}
class Window<string mnemonic, string combine_> : TableOp<mnemonic, "Window"> {
  let combine = combine_;
  let reorder = "reorderImage";
}

// --- Written in other ops -----------------------------------------------------------------------------------------------------
class Composite<string mnemonic> : TableOp<mnemonic, "Composite"> {
  let flops = "flopsOfDecomposition";
  let sharding = "shardingOfDecomposition";
}

#endif
