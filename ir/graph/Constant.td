// The constant. Unlike ops of the table it has a class of its own, because its value is an MLIR attribute.
#ifndef TRESSEL_GRAPH_CONSTANT
#define TRESSEL_GRAPH_CONSTANT

include "ir/graph/Dialect.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tressel_ConstantOp : Op<Tressel_Dialect, "constant", [ConstantLike, Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "a tensor known when the program is compiled";
  let description = [{
    Small values are inline; large ones are resource blobs, which are never hashed: row-major elements, a bool takes one byte.
    ```mlir
    %0 = tressel.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %1 = tressel.constant dense_resource<weights> : tensor<784x256xf32>
    ```
    Rules: (C1) the type is a static tensor of a supported element type; (C2) a blob is there and has the type's size; (C3) the
    value is dense, a splat or a blob.
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
  let hasVerifier = 1;
}

#endif
