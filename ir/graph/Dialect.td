#ifndef TRESSEL_GRAPH_DIALECT
#define TRESSEL_GRAPH_DIALECT

include "mlir/IR/OpBase.td"

def Tressel_Dialect : Dialect {
  let name = "tressel";
  let cppNamespace = "::tressel::graph";
  let summary = "tensor programs as graphs of ops, clusters and launches of kernels";
}

#endif
