// Attributes of ops that are sizes: a number, or an expression over symbols (Attributes.td).
#ifndef TRESSEL_GRAPH_SIZE
#define TRESSEL_GRAPH_SIZE

include "mlir/IR/AttrTypeBase.td"

def Tressel_Size : Attr<CPred<"::tressel::graph::isSize($_self)">, "size"> {
  let storageType = "::mlir::Attribute";
  let returnType = "::tressel::Size";
  let convertFromStorage = "::tressel::graph::sizeOf($_self)";
  let constBuilderCall = "::tressel::graph::sizeAttr($_builder.getContext(), $0)";
}

#endif
