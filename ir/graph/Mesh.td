// Ops that pass values between a program and the ranks of a mesh, and collectives of the ranks.
#ifndef TRESSEL_GRAPH_MESH
#define TRESSEL_GRAPH_MESH

include "ir/graph/Dialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class MeshOp<string mnemonic, list<Trait> traits = []> : Op<Tressel_Dialect, mnemonic, [Pure] # traits>;

def Tressel_DealOp : MeshOp<"deal"> {
  let summary = "one of several values on each rank";
  let description = [{
    On the rank with row-major number i along the axes `over` the result is operand i. A single operand goes to every rank. Operands are values of the
    program, or of the ranks: then each rank selects one of its own. The op itself copies nothing: transfers are inserted later for its readers.
    ```mlir
    %part = tressel.deal %first, %second over ["data"] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    ```
    Rules: (1) `over` names axes of the mesh, none twice; (2) one operand, or one for each rank along `over`; (3) sizes of the result may depend on
    the rank, and are its operand's there.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, StrArrayAttr:$over);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$values `over` $over attr-dict `:` functional-type($values, $result)";
}

def Tressel_CollectOp : MeshOp<"collect"> {
  let summary = "the values of several ranks, one by one";
  let description = [{
    Result i is the operand on the rank with row-major number i along the axes `over`, and coordinate 0 along all others. With the attribute `on_ranks` the
    results are values of the ranks, and the other coordinates are those of the rank that reads them. The op itself copies nothing.
    ```mlir
    %parts:2 = tressel.collect %part over ["data"] : tensor<16x8xf32> -> tensor<16x8xf32>, tensor<16x8xf32>
    ```
    Rules: (1) `over` names axes of the mesh, none twice; (2) one result for each rank along `over`; (3) sizes of the operand may depend on the rank,
    those of a result do not.
  }];
  let arguments = (ins AnyRankedTensor:$value, StrArrayAttr:$over, UnitAttr:$on_ranks);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$value `over` $over (`on_ranks` $on_ranks^)? attr-dict `:` type($value) `->` type($results)";
}

def Tressel_AllReduceOp : MeshOp<"all_reduce", [SameOperandsAndResultType]> {
  let summary = "the values of all ranks along some axes, combined";
  let description = [{
    Combines the elements of all ranks along `over` by "sum", "prod", "max", "min", "any" or "all"; every rank gets the result. Ranks are combined in order, in a tree of
    halves of which the first is as long as a power of two; with `in_turn`, one rank after the other.
    ```mlir
    %sum = tressel.all_reduce %part by "sum" over ["data"] : tensor<16x8xf32>
    ```
    Rules: (1) `over` names axes of the mesh, none twice; (2) sizes do not depend on coordinates along `over`.
  }];
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$by, StrArrayAttr:$over, UnitAttr:$in_turn);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `by` $by `over` $over (`in_turn` $in_turn^)? attr-dict `:` type($value)";
}

def Tressel_CarryOp : MeshOp<"carry", [SameOperandsAndResultType]> {
  let summary = "what the ranks before along some axes have, combined";
  let description = [{
    On the first rank along `over` the result is `initial`, on each other one `initial` and the values of the ranks before, combined in their order as `by`
    says. What combines it with a rank's own value, and nothing else, is named by `carried`: then nothing is combined twice, as each rank goes on with what
    the one before has.
    ```mlir
    %before = tressel.carry %gradient from %zero by "sum" over ["micro"] : tensor<8x4xf32>
    %sum = tressel.add %before, %gradient {tressel.device = "ranks"} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %all = tressel.carried %sum of %before over ["micro"] : tensor<8x4xf32>
    ```
    Rules: (1) `over` names axes of the mesh, none twice; (2) sizes do not depend on coordinates along `over`.
  }];
  let arguments = (ins AnyRankedTensor:$value, AnyRankedTensor:$initial, StrAttr:$by, StrArrayAttr:$over);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `from` $initial `by` $by `over` $over attr-dict `:` type($value)";
}

def Tressel_CarriedOp : MeshOp<"carried", [SameOperandsAndResultType]> {
  let summary = "the value of the last rank along some axes";
  let description = [{
    Every rank gets the value of the last rank along `over`. The second operand is the result of the `carry` from which the value was computed.
    Rules: (1) `over` names axes of the mesh, none twice; (2) the second operand is the result of a `carry` over the same axes.
  }];
  let arguments = (ins AnyRankedTensor:$value, AnyRankedTensor:$before, StrArrayAttr:$over);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `of` $before `over` $over attr-dict `:` type($value)";
}

def Tressel_ReduceScatterOp : MeshOp<"reduce_scatter"> {
  let summary = "a rank's part of the values of all ranks along some axes, combined";
  let description = [{
    As all_reduce, but each rank only gets its part of the result along dimension `dim`, in rank order.
    ```mlir
    %part = tressel.reduce_scatter %value by "sum" along 0 over ["data"] : tensor<32x8xf32> -> tensor<16x8xf32>
    ```
    Rules: (1) `over` names axes of the mesh, none twice; (2) the ranks along `over` divide dimension `dim`.
  }];
  let arguments = (ins AnyRankedTensor:$value, StrAttr:$by, I64Attr:$dim, StrArrayAttr:$over);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `by` $by `along` $dim `over` $over attr-dict `:` type($value) `->` type($result)";
}

def Tressel_AllGatherOp : MeshOp<"all_gather"> {
  let summary = "the values of all ranks along some axes, joined";
  let description = [{
    Concatenates the values of all ranks along `over` along dimension `dim`, in rank order; every rank gets the result.
    ```mlir
    %whole = tressel.all_gather %part along 0 over ["data"] : tensor<16x8xf32> -> tensor<32x8xf32>
    ```
    Rules: (1) `over` names axes of the mesh, none twice; (2) sizes of the result do not depend on coordinates along `over`; (3) they are those of the
    operand, but for dimension `dim`, where they are the sum over the ranks.
  }];
  let arguments = (ins AnyRankedTensor:$value, I64Attr:$dim, StrArrayAttr:$over);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `along` $dim `over` $over attr-dict `:` type($value) `->` type($result)";
}

#endif
