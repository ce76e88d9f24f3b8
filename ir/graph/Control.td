// Control flow of the graph: ops whose bodies are programs of ordinary graph ops.
#ifndef TRESSEL_GRAPH_CONTROL
#define TRESSEL_GRAPH_CONTROL

include "ir/graph/Dialect.td"
include "ir/graph/Size.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tressel_ControlInterface : OpInterface<"ControlOpInterface"> {
  let description = [{
    An op with bodies: the interface by which passes treat all such ops alike. A body only uses its arguments. These are,
    in this order and the same in all bodies of an op: the number of the iteration (if `hasIndex`), the carried values,
    one slice of each of `slices`, the invariants. An op's results are the final carried values, then the other values
    that its last body yields.
  }];
  let cppNamespace = "::tressel::graph";
  let methods = [
    InterfaceMethod<"values that each iteration passes to the next", "::mlir::MutableOperandRange", "getCarriedMutable">,
    InterfaceMethod<"tensors that are sliced along their first dimension", "::mlir::MutableOperandRange",
                    "getSlicesMutable">,
    InterfaceMethod<"values that are the same in every iteration", "::mlir::MutableOperandRange",
                    "getInvariantsMutable">,
    InterfaceMethod<"bodies have the number of the iteration as first argument", "bool", "hasIndex">,
    InterfaceMethod<"bodies may run more than once", "bool", "repeats">,
    InterfaceMethod<"bodies certainly run", "bool", "runsBodies">,
  ];
  let extraSharedClassDeclaration = [{
    unsigned numCarried() { return $_op.getCarriedMutable().size(); }
    unsigned numSlices() { return $_op.getSlicesMutable().size(); }
    unsigned numInvariants() { return $_op.getInvariantsMutable().size(); }
    unsigned firstCarried() { return $_op.hasIndex() ? 1 : 0; } ///< among a body's arguments
    unsigned firstSlice() { return firstCarried() + numCarried(); }
    unsigned firstInvariant() { return firstSlice() + numSlices(); }
    ::mlir::Value carried(unsigned i) { return $_op.getCarriedMutable()[i].get(); }
    ::mlir::Value slice(unsigned i) { return $_op.getSlicesMutable()[i].get(); }
    ::mlir::Value invariant(unsigned i) { return $_op.getInvariantsMutable()[i].get(); }
    /// The invariant that an argument of a body stands for; null if it is none.
    ::mlir::Value invariantOf(::mlir::BlockArgument argument) {
      unsigned first = firstInvariant();
      return argument.getArgNumber() < first ? ::mlir::Value() : invariant(argument.getArgNumber() - first);
    }
  }];
}

class ControlOp<string mnemonic, list<Trait> traits = []> : Op<Tressel_Dialect, mnemonic, traits # [
    IsolatedFromAbove, SingleBlock, RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<Tressel_ControlInterface>]> {
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let hasRegionVerifier = 1;
}

def Tressel_CondOp : ControlOp<"cond"> {
  let summary = "one of two bodies";
  let description = [{
    Runs the first body if the condition holds, else the second. Bodies are isolated, so that a pass can work on one alone;
    values from outside are passed explicitly, as `invariants`.

    ```mlir
    %r = tressel.cond %p : tensor<i1> with(%x : tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %0 = tressel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
      tressel.yield %0 : tensor<4xf32>
    } else {
    ^bb0(%a: tensor<4xf32>):
      tressel.yield %a : tensor<4xf32>
    }
    ```
    Rules: (1) the condition is one bool; (2) each body has one argument per invariant, of its type; (3) both yield the
    results' types.
  }];
  let arguments = (ins AnyRankedTensor:$condition, Variadic<AnyRankedTensor>:$invariants);
  let regions = (region SizedRegion<1>:$then, SizedRegion<1>:$otherwise);
  let assemblyFormat = [{
    $condition `:` type($condition) (`with` `(` $invariants^ `:` type($invariants) `)`)? (`->` type($results)^)?
    attr-dict-with-keyword $then `else` $otherwise
  }];
  let hasVerifier = 1;
}

def Tressel_WhileOp : ControlOp<"while", [AttrSizedOperandSegments]> {
  let summary = "a body as long as a condition holds";
  let description = [{
    Runs the second body, which yields the next carried values, as long as the first yields true.

    ```mlir
    %r = tressel.while carries(%x : tensor<f32>) with(%limit : tensor<f32>) {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %0 = tressel.less %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      tressel.yield %0 : tensor<i1>
    } do {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %0 = tressel.add %a, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
      tressel.yield %0 : tensor<f32>
    }
    ```
    `at most 10` asserts that the body runs at most that often. A loop without this bound has no gradient.
    Rules: (1) each body has one argument per carried value, then one per invariant, of their types; (2) the condition
    yields one bool; (3) the body yields the carried types; (4) the bound is not negative.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$carried, Variadic<AnyRankedTensor>:$invariants,
                   OptionalAttr<I64Attr>:$bound);
  let regions = (region SizedRegion<1>:$condition, SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`at` `most` $bound^)? (`carries` `(` $carried^ `:` type($carried) `)`)? (`with` `(` $invariants^ `:` type($invariants) `)`)?
    (`->` type($results)^)? attr-dict-with-keyword $condition `do` $body
  }];
}

def Tressel_ScanOp : ControlOp<"scan", [AttrSizedOperandSegments]> {
  let summary = "a body a number of times";
  let description = [{
    Runs the body `trips` times. It has the number of the iteration, the carried values, slice i of each of `slices`
    (without their first dimension), the invariants; it yields the next carried values, then values that are stacked
    along a new first dimension.

    ```mlir
    %last, %all = tressel.scan 5 carries(%h : tensor<4xf32>) slices(%xs : tensor<5x4xf32>) with(%w : tensor<4xf32>)
        -> tensor<4xf32>, tensor<5x4xf32> {
    ^bb0(%i: tensor<i64>, %a: tensor<4xf32>, %x: tensor<4xf32>, %b: tensor<4xf32>):
      ...
      tressel.yield %next, %next : tensor<4xf32>, tensor<4xf32>
    }
    ```
    Rules: (1) the number of trips is not negative; (2) the first dimension of slices is `trips`; (3) the body has a
    tensor<i64>, then an argument per carried value, slice and invariant, of their types; (4) it yields the carried types,
    then those of the stacked results without their first dimension, `trips`.
  }];
  let arguments = (ins Tressel_Size:$trips, Variadic<AnyRankedTensor>:$carried, Variadic<AnyRankedTensor>:$slices,
                   Variadic<AnyRankedTensor>:$invariants);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    custom<Size>($trips) (`carries` `(` $carried^ `:` type($carried) `)`)? (`slices` `(` $slices^ `:` type($slices) `)`)?
    (`with` `(` $invariants^ `:` type($invariants) `)`)? (`->` type($results)^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

#endif
