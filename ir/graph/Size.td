// Attributes of ops that are sizes: a number, or an expression over symbols (Attributes.td).
#ifndef TRESSEL_GRAPH_SIZE
#define TRESSEL_GRAPH_SIZE

include "mlir/IR/AttrTypeBase.td"

// The accessor gives the size in the sense of tressel/runtime/Dim.h.
def Tressel_Size : Attr<CPred<"::tressel::graph::isSize($_self)">, "size"> {
  let storageType = "::mlir::Attribute";
  let returnType = "int64_t";
  let convertFromStorage = "::tressel::graph::sizeOf($_self)";
  let constBuilderCall = "::tressel::graph::sizeAttr($_builder.getContext(), $0)";
}

#endif
