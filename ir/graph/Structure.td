// The ops that give a graph its structure: clusters (ops that become one kernel), kernels (outlined clusters), launches
// of kernels, and packs (operands rearranged for a library). Ops that compute are in ir/ops/*.td.
#ifndef TRESSEL_GRAPH_STRUCTURE
#define TRESSEL_GRAPH_STRUCTURE

include "ir/graph/Attributes.td"
include "ir/graph/Dialect.td"
include "ir/graph/Size.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class StructureOp<string mnemonic, list<Trait> traits = []> : Op<Tressel_Dialect, mnemonic, traits>;

def Tressel_ClusterOp : StructureOp<"cluster", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "ops that become one kernel";
  let description = [{
    The body computes the results from the block arguments, one per input. `provider` made the winning bid. `target` says
    which devices take the kernel, for example `#tressel.target<gpu>`; the default is a host, with code from the program's
    code image. `params` describe the kernel to a library's factory, or to code generation for another target; without
    `params` the code is generated from the body. The kernel does `range` units of independent work, at least `grain` of
    them per task, with `scratch` bytes per worker.

    `root_ops = n` splits the body: its first n ops are the root, which a library kernel computes and writes to the buffer
    of result 0. The rest is a generated epilogue, which runs on the same units afterwards and reads that value back. So
    the root's value has the shape of result 0 and its width per element. The order of the inputs is: those of the root,
    `packs` packed ones (read by the library, not by the body), further ones of the epilogue.

    ```mlir
    %r = tressel.cluster(%x, %w, %b) {provider = "generated", range = 64 : i64, grain = 1 : i64}
        : (tensor<64x784xf32>, tensor<784x256xf32>, tensor<256xf32>) -> tensor<64x256xf32> {
    ^bb0(%0: tensor<64x784xf32>, %1: tensor<784x256xf32>, %2: tensor<256xf32>):
      %3 = tressel.matmul %0, %1 : (tensor<64x784xf32>, tensor<784x256xf32>) -> tensor<64x256xf32>
      ...
      tressel.yield %4 : tensor<64x256xf32>
    }
    ```
    Rules: (1) one block argument per input, of its type; (2) the yield has the results' types; (3) range and grain are
    positive, scratch is not negative; (4) root_ops counts ops of the body and leaves an epilogue; (5) the root has one
    value that the epilogue uses, of the first result's shape and width; (6) kernels that are not the host's own code have params; (7) there is
    a result, or an op with effects.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, StrAttr:$provider, DefaultValuedAttr<Tressel_KernelTargetAttr, "::tressel::graph::KernelTarget::Host">:$target,
                   DefaultValuedAttr<StrAttr, "\"\"">:$params,
                   DefaultValuedAttr<Tressel_Size, "1">:$range, DefaultValuedAttr<I64Attr, "1">:$grain,
                   DefaultValuedAttr<Tressel_Size, "0">:$scratch, OptionalAttr<I64Attr>:$root_ops,
                   DefaultValuedAttr<I64Attr, "0">:$packs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $results) $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tressel_YieldOp : StructureOp<"yield", [Pure, Terminator, ReturnLike,
                                            ParentOneOf<["ClusterOp", "KernelOp", "CondOp", "WhileOp", "ScanOp"]>]> {
  let summary = "the results of a cluster, a kernel or a body";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Tressel_PackOp : StructureOp<"pack", [Pure]> {
  let summary = "an operand rearranged for a library";
  let description = [{
    The bytes that the library kernel given by `provider` and `params` makes of the operand. Their layout is private to
    the library.
    ```mlir
    %p = tressel.pack %w provider "onednn" params "{...}" : tensor<784x256xf32> -> tensor<802816xui8>
    ```
    Rules: (1) the result is a static tensor<Nxui8>; (2) params are not empty.
  }];
  let arguments = (ins AnyRankedTensor:$operand, StrAttr:$provider, StrAttr:$params);
  let results = (outs RankedTensorOf<[UI8]>:$result);
  let assemblyFormat = "$operand `provider` $provider `params` $params attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Tressel_KernelOp : StructureOp<"kernel", [FunctionOpInterface, IsolatedFromAbove]> {
  let summary = "a cluster or a pack, outlined: what is compiled once and launched";
  let description = [{
    Has the body and attributes of a cluster. The kernel of a pack has no body, as the layout is private to the library.
    `flops` and `bytes` are totals over the range (each operand read or written once), for the cost model and timelines.
    ```mlir
    tressel.kernel @matmul_add_relu_0(%arg0: tensor<64x784xf32>, ...) -> tensor<64x256xf32>
        attributes {provider = "generated", range = 64 : i64} { ... tressel.yield %0 : tensor<64x256xf32> }
    ```
    Rules: (1) those of cluster hold for the body; (2) without a body: a library of the host, params, one input, one
    tensor<Nxui8> result.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                   OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
                   StrAttr:$provider, DefaultValuedAttr<Tressel_KernelTargetAttr, "::tressel::graph::KernelTarget::Host">:$target, DefaultValuedAttr<StrAttr, "\"\"">:$params,
                   DefaultValuedAttr<Tressel_Size, "1">:$range, DefaultValuedAttr<I64Attr, "1">:$grain,
                   DefaultValuedAttr<Tressel_Size, "0">:$scratch, OptionalAttr<I64Attr>:$root_ops,
                   DefaultValuedAttr<I64Attr, "0">:$packs, DefaultValuedAttr<I64Attr, "0">:$flops,
                   DefaultValuedAttr<I64Attr, "0">:$bytes);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    llvm::ArrayRef<mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    llvm::ArrayRef<mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    mlir::Region *getCallableRegion() { return isExternal() ? nullptr : &getBody(); }
    /// Whether it is a host kernel whose code is generated from its body.
    bool isGenerated() { return getTarget() == KernelTarget::Host && getParams().empty() && !isExternal(); }
    bool isForGpu() { return getTarget() >= KernelTarget::Gpu; }
  }];
}

def Tressel_LaunchOp : StructureOp<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel";
  let description = [{
    ```mlir
    %r = tressel.launch @matmul_add_relu_0(%x, %w, %b) : (tensor<64x784xf32>, ...) -> tensor<64x256xf32>
    ```
    Rules: (1) the symbol is a tressel.kernel; (2) operands and results have the types of its signature.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)";
}

#endif
